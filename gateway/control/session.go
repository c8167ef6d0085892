package control

import (
	"context"
	"errors"
	"strings"
	"time"

	"parley/agentloop"
	"parley/agentloop/lane"
	"parley/agentloop/llm"
	"parley/gateway/snapshot"
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
	Held      string              `json:"held,omitempty"`   // why the turn has not begun, or lies still
	Asleep    bool                `json:"asleep,omitempty"` // it has begun, and lies still
	Last      *workspace.Run      `json:"last,omitempty"`
	Models    []llm.ModelHealth   `json:"models"`
	Channels  []Channel           `json:"channels,omitempty"`
	Health    string              `json:"health"`
	Reason    string              `json:"reason,omitempty"`
	Uptime    time.Duration       `json:"uptime"`
	Config    ConfigFile          `json:"config"`
	Queue     lane.Settings       `json:"queue"`
	// Chain is the session's models in the order in which they are asked.
	Chain      []string        `json:"chain"`
	Activation string          `json:"activation,omitempty"` // of the room; empty: as configured
	Switched   bool            `json:"switched,omitempty"`   // the chat was led to this session
	Compacted  bool            `json:"compacted,omitempty"`  // its older part is a summary
	Usage      workspace.Usage `json:"usage"`
}

// Status tells how a session and its gateway are. Others than owners see no channels and no causes.
func (c *Control) Status(_ context.Context, call Call) (Status, error) {
	if err := c.may(call, "status"); err != nil {
		return Status{}, err
	}
	key := call.Session.String()
	v := c.Turns.Lane(key)
	health, reason := c.Store.Health()
	st := Status{Session: key, Running: v.Running, Waiting: len(v.Waiting), Held: v.Held, Asleep: v.Asleep, Models: c.Snapshot().Models.Health(), Health: string(health),
		Uptime: c.Now().Sub(c.Process.Began).Round(time.Second), Queue: c.Turns.Queue(key)}
	st.Agent, _ = c.agent(call.Session.Agent)
	if call.placed() {
		place, err := c.Store.PlaceIn(call.Room)
		if err != nil {
			return Status{}, err
		}
		st.Activation, st.Switched = place.Activation, call.home() != call.Session
	}
	if owner(call) {
		st.Channels, st.Reason, st.Config = c.channels(), reason, c.Process.ConfigFile()
	} else { // what a provider says of a failure may name keys and places
		for i := range st.Models {
			st.Models[i].LastError = ""
		}
	}
	ses, err := c.Store.SessionByKey(call.Session)
	if err == nil {
		st.Gen, st.Overrides, st.Compacted = ses.Gen, ses.Overrides, ses.Compacted > 0
		if st.Usage, err = c.usage.of(c.Store, ses.ID); err != nil {
			return Status{}, err
		}
		if run, err := c.Store.LastRun(ses.ID); err == nil {
			st.Last = &run
		}
		if last, err := c.Store.LastEntries(ses.ID, 1); err == nil && len(last) > 0 {
			st.Entries = int(last[0].N)
		}
	} else if !errors.Is(err, workspace.ErrNotFound) {
		return Status{}, err
	}
	st.Chain = c.choices(call, call.Session.Agent, st.Overrides).Chain
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
	w.Agent, _ = c.agent(call.Session.Agent)
	if call.Input != nil {
		w.User, w.Network = string(call.Input.Data.User), call.Input.Source
	}
	return w, c.answer(call, w)
}

// Fresh is a new generation of a session.
type Fresh struct {
	Session   workspace.SessionID `json:"session"`
	Key       string              `json:"key"`
	Model     string              `json:"model,omitempty"` // that it was begun with
	Asked     bool                `json:"asked"`           // a message is answered in it at once
	Overrides workspace.Overrides `json:"overrides"`       // kept from the generation before
}

// NewSession starts a fresh generation under the same key. What waits in the queue belongs to it, and what was changed
// for the session stays. Text may begin with the name of a model, for those who may choose one; the rest is answered.
func (c *Control) NewSession(_ context.Context, call Call, text string) (Fresh, error) {
	if err := c.may(call, "new"); err != nil {
		return Fresh{}, err
	}
	key := call.Session.String()
	v := Fresh{Key: key}
	was, err := c.overridesOf(call)
	if err != nil {
		return v, err
	}
	v.Overrides = was
	changes := []store.Change{store.NewGeneration{Key: call.Session}}
	if word, rest, _ := strings.Cut(text, " "); word != "" && c.May(call, "model") {
		if m, ok := find(c.choices(call, call.Session.Agent, was).Choices, word, false); ok {
			v.Model, text, v.Overrides.Model = m.Name, strings.TrimSpace(rest), m.Name
			changes = append(changes, store.SetOverrides{Overrides: v.Overrides})
		}
	}
	if text != "" {
		if call.Input == nil {
			return v, workspace.Say(workspace.ErrInvalid, "Send the message by itself, or /new with it as one message.")
		}
		changes, v.Asked = append(changes, c.again(call, "new", text)), true
	}
	did, err := c.commit(call, func(d store.Did) any { v.Session = d.Session; return v }, changes...)
	if err != nil {
		return v, err
	}
	v.Session = did.Session
	c.Changed(key)
	if did.Asked != nil {
		c.Turns.Offer(*did.Asked)
	}
	return v, nil
}

// Stopped is what a stop ended.
type Stopped struct {
	Run    workspace.RunID `json:"run,omitempty"`
	Queued int             `json:"queued"`
	Parts  int             `json:"parts"`
	// Summary says that one was being made for /compact.
	Summary bool `json:"summary,omitempty"`
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
	stop := store.Stop{Session: ses.ID, By: call.Actor.Person, Before: 1 << 62}
	if call.Input != nil {
		stop.Before = call.Input.Seq
	}
	if !owner(call) {
		stop.Requester = call.Actor.Person
	}
	match := func(first workspace.Input) bool { // the turn may be another one by now
		return first.Seq < stop.Before && (stop.Requester == "" || first.Person == stop.Requester)
	}
	summing := c.Prompts.CancelSummary(call.Session.String(), match) // of which nothing is stored yet
	view := func(d store.Did) Stopped {
		v := stoppedOf(d)
		v.Summary = summing
		return v
	}
	did, err := c.commit(call, func(d store.Did) any { return view(d) }, stop)
	if err != nil {
		return Stopped{}, err
	}
	key := call.Session.String()
	c.Turns.Remove(key, did.Stopped.Queued...)
	c.Turns.Cancel(key, agentloop.ErrStopped, match)
	return view(did), nil
}

// Why is the reason behind the newest answer, or behind the input that asks when there was none.
type Why struct {
	Input *workspace.Input `json:"input,omitempty"`
	Run   *workspace.Run   `json:"run,omitempty"`
	Steps []workspace.Step `json:"steps,omitempty"`
	// Approvals are the questions of the run.
	Approvals []Approval `json:"approvals,omitempty"`
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
			if w.Approvals, err = c.RunApprovals(call, run.ID); err != nil {
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
	Held    string   `json:"held,omitempty"` // why the turn has not begun, or lies still
}

// Queue shows the queue, or changes how it is handled in this session.
func (c *Control) Queue(_ context.Context, call Call, change QueueChange) (QueueView, error) {
	key := call.Session.String()
	lv := c.Turns.Lane(key)
	v := QueueView{Settings: c.Turns.Queue(key), Running: lv.Running}
	for _, in := range lv.Waiting {
		if owner(call) || in.Person == call.Actor.Person {
			v.Waiting = append(v.Waiting, in.Text)
		}
	}
	if change == (QueueChange{}) {
		if err := c.may(call, "status"); err != nil {
			return QueueView{}, err
		}
		return v, c.answer(call, v)
	}
	if err := c.may(call, "queue"); err != nil {
		return QueueView{}, err
	}
	if err := change.Check(); err != nil {
		return QueueView{}, err
	}
	v.Changed = true
	err := c.override(call, change.apply, func(o workspace.Overrides) any {
		v.Settings = snapshot.QueueSettings(c.Snapshot().Queue, o)
		return v
	})
	return v, err
}
