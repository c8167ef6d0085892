package control

import (
	"context"
	"errors"
	"time"

	"parley/agentloop"
	"parley/agentloop/lane"
	"parley/agentloop/llm"
	"parley/workspace"
	"parley/workspace/store"
)

// Text answers a command with text that its surface made: /help, /commands.
func (c *Control) Text(_ context.Context, call Call, name, text string) error {
	if err := c.may(call, verb(name)); err != nil {
		return err
	}
	return c.answer(call, text)
}

// Status of a session and of the gateway behind it.
type Status struct {
	Agent     Agent               `json:"agent"`
	Session   string              `json:"session"`
	Gen       int                 `json:"generation"`
	Overrides workspace.Overrides `json:"overrides"`
	Entries   int                 `json:"entries"`
	Running   bool                `json:"running"`
	Waiting   int                 `json:"waiting"`
	Held      string              `json:"held,omitempty"` // why the turn has not begun
	Last      *workspace.Run      `json:"last,omitempty"`
	Models    []llm.ModelHealth   `json:"models"`
	Channels  []Channel           `json:"channels,omitempty"`
	Health    string              `json:"health"`
	Reason    string              `json:"reason,omitempty"`
	Uptime    time.Duration       `json:"uptime"`
	Queue     lane.Settings       `json:"queue"`
}

// Status tells how a session and its gateway are. Others than owners see no channels and no causes.
func (c *Control) Status(_ context.Context, call Call) (Status, error) {
	if err := c.may(call, "status"); err != nil {
		return Status{}, err
	}
	key := call.Session.String()
	v := c.House.Lane(key)
	health, reason := c.Store.Health()
	st := Status{Session: key, Running: v.Running, Waiting: len(v.Waiting), Held: v.Held, Models: c.House.Models(), Health: string(health),
		Uptime: c.Now().Sub(c.House.Started()).Round(time.Second), Queue: c.House.Queue(key)}
	st.Agent, _ = c.House.Agent(call.Session.Agent)
	if owner(call) {
		st.Channels, st.Reason = c.House.Channels(), reason
	} else { // what a provider says of a failure may name keys and places
		for i := range st.Models {
			st.Models[i].LastError = ""
		}
	}
	ses, err := c.Store.SessionByKey(call.Session)
	if err == nil {
		st.Gen, st.Overrides = ses.Gen, ses.Overrides
		if run, err := c.Store.LastRun(ses.ID); err == nil {
			st.Last = &run
		}
		if last, err := c.Store.LastEntries(ses.ID, 1); err == nil && len(last) > 0 {
			st.Entries = int(last[0].N)
		}
	} else if !errors.Is(err, workspace.ErrNotFound) {
		return Status{}, err
	}
	return st, c.answer(call, st)
}

// Who is what the gateway knows of the one who asks.
type Who struct {
	Person  workspace.PersonID `json:"person"`
	Role    workspace.Role     `json:"role"`
	Name    string             `json:"name,omitempty"`
	User    string             `json:"user,omitempty"` // the network's id
	Network string             `json:"network,omitempty"`
	Session string             `json:"session"`
	Agent   Agent              `json:"agent"`
}

// WhoAmI tells people who they are here.
func (c *Control) WhoAmI(_ context.Context, call Call) (Who, error) {
	if err := c.may(call, "whoami"); err != nil {
		return Who{}, err
	}
	w := Who{Person: call.Actor.Person, Role: call.Actor.Role, Name: call.Actor.Name, Session: call.Session.String()}
	w.Agent, _ = c.House.Agent(call.Session.Agent)
	if call.Input != nil {
		w.User, w.Network = string(call.Input.Data.User), call.Input.Source
	}
	return w, c.answer(call, w)
}

// Fresh is a new generation of a session.
type Fresh struct {
	Session workspace.SessionID `json:"session"`
	Key     string              `json:"key"`
}

// NewSession starts a fresh generation under the same key. What waits in the queue belongs to it.
func (c *Control) NewSession(_ context.Context, call Call) (Fresh, error) {
	if err := c.may(call, "new"); err != nil {
		return Fresh{}, err
	}
	key := call.Session.String()
	did, err := c.commit(call, store.Effect{NewGeneration: call.Session}, func(d store.Did) any { return Fresh{Session: d.Session, Key: key} })
	if err != nil {
		return Fresh{}, err
	}
	c.House.Forget(key)
	return Fresh{Session: did.Session, Key: key}, nil
}

// Stopped is what a stop ended.
type Stopped struct {
	Run    workspace.RunID `json:"run,omitempty"`
	Queued int             `json:"queued"`
	Parts  int             `json:"parts"`
}

// Stop ends the running turn of the session, what waits behind it and what it has not sent. It is committed first,
// then the turn is cancelled; a crash in between keeps the stop. Only owners stop other people's turns.
func (c *Control) Stop(_ context.Context, call Call) (Stopped, error) {
	if err := c.may(call, "stop"); err != nil {
		return Stopped{}, err
	}
	ses, err := c.Store.SessionByKey(call.Session)
	if errors.Is(err, workspace.ErrNotFound) {
		return Stopped{}, c.answer(call, Stopped{})
	}
	if err != nil {
		return Stopped{}, err
	}
	stop := &store.Stop{Session: ses.ID, By: call.Actor.Person, Before: 1 << 62}
	if call.Input != nil {
		stop.Before = call.Input.Seq
	}
	if !owner(call) {
		stop.Requester = call.Actor.Person
	}
	match := func(first workspace.Input) bool { // the turn may be another one by now
		return first.Seq < stop.Before && (stop.Requester == "" || first.Person == stop.Requester)
	}
	view := func(d store.Did) Stopped {
		return Stopped{Run: d.Stopped.Run, Queued: len(d.Stopped.Queued), Parts: int(d.Stopped.Parts)}
	}
	did, err := c.commit(call, store.Effect{Stop: stop}, func(d store.Did) any { return view(d) })
	if err != nil {
		return Stopped{}, err
	}
	key := call.Session.String()
	c.House.Remove(key, did.Stopped.Queued...)
	c.House.Cancel(key, agentloop.ErrStopped, match)
	return view(did), nil
}

// Why is the reason behind the newest answer, or behind the input that asks when there was none.
type Why struct {
	Input *workspace.Input `json:"input,omitempty"`
	Run   *workspace.Run   `json:"run,omitempty"`
	Steps []workspace.Step `json:"steps,omitempty"`
}

// Why tells which gates a message passed, which rule chose the agent, and what the run did.
func (c *Control) Why(_ context.Context, call Call) (Why, error) {
	if err := c.may(call, "why"); err != nil {
		return Why{}, err
	}
	var w Why
	ses, err := c.Store.SessionByKey(call.Session)
	if err == nil {
		run, err := c.Store.LastRun(ses.ID)
		if err == nil && (owner(call) || run.Requester == call.Actor.Person) {
			w.Run = &run
			inputs, err := c.Store.RunInputs(run.ID)
			if err != nil {
				return Why{}, err
			}
			if len(inputs) > 0 {
				w.Input = &inputs[0]
			}
			if w.Steps, err = c.Store.Steps(run.ID); err != nil {
				return Why{}, err
			}
		}
	}
	if w.Input == nil {
		w.Input = call.Input
	}
	return w, c.answer(call, w)
}

// QueueView is what waits in a session and how it is handled.
type QueueView struct {
	lane.Settings
	Running bool     `json:"running"`
	Waiting []string `json:"waiting"`
	Changed bool     `json:"changed"`
	Held    string   `json:"held,omitempty"` // why the turn has not begun
}

// Queue shows the queue, or changes its mode for this session; mode "default" forgets the change.
func (c *Control) Queue(_ context.Context, call Call, mode string) (QueueView, error) {
	key := call.Session.String()
	show := func() QueueView {
		lv := c.House.Lane(key)
		v := QueueView{Settings: c.House.Queue(key), Running: lv.Running, Held: lv.Held}
		for _, in := range lv.Waiting {
			if owner(call) || in.Person == call.Actor.Person {
				v.Waiting = append(v.Waiting, in.Text)
			}
		}
		return v
	}
	if mode == "" {
		if err := c.may(call, "status"); err != nil {
			return QueueView{}, err
		}
		v := show()
		return v, c.answer(call, v)
	}
	if err := c.may(call, "queue"); err != nil {
		return QueueView{}, err
	}
	switch mode {
	case lane.Steer, lane.Followup, lane.Collect, lane.Interrupt:
	case "default":
		mode = ""
	default:
		return QueueView{}, workspace.Say(workspace.ErrInvalid, "There is no queue mode %q. Modes are steer, followup, collect, interrupt and default.", mode)
	}
	ses, err := c.Store.SessionByKey(call.Session)
	if err != nil {
		return QueueView{}, workspace.Say(err, "Nothing was said here yet, so there is no queue to change.")
	}
	ses.Overrides.Queue = mode
	v := show()
	v.Changed = true
	if mode != "" {
		v.Mode = mode
	}
	_, err = c.commit(call, store.Effect{Overrides: &store.SetOverrides{Session: ses.ID, Overrides: ses.Overrides}}, func(store.Did) any { return v })
	c.House.Forget(key)
	return v, err
}
