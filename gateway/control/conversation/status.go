package conversation

import (
	"context"
	"errors"
	"slices"
	"time"

	"parley/agentloop/lane"
	"parley/agentloop/llm"
	"parley/gateway/control"
	"parley/gateway/snapshot"
	"parley/gateway/transport"
	"parley/workspace"
	"parley/workspace/clip"
)

// Activity is what a session does.
type Activity struct {
	Running bool   `json:"running"`
	Waiting int    `json:"waiting"`
	Held    string `json:"held,omitempty"`   // why the turn has not begun, or is suspended
	Asleep  bool   `json:"asleep,omitempty"` // it has begun, and is suspended
}

// Status of a session and of the gateway behind it.
type Status struct {
	Agent     control.Agent       `json:"agent"`
	Session   string              `json:"session"`
	Gen       int                 `json:"generation"`
	Overrides workspace.Overrides `json:"overrides"`
	Entries   int                 `json:"entries"`
	Activity
	Last     *workspace.Run     `json:"last,omitempty"`
	Models   []llm.ModelHealth  `json:"models"`
	Channels []transport.View   `json:"channels,omitempty"`
	Health   string             `json:"health"`
	Reason   string             `json:"reason,omitempty"`
	Uptime   time.Duration      `json:"uptime"`
	Config   control.ConfigFile `json:"config"`
	Queue    lane.Settings      `json:"queue"`
	// Chain is the session's models in the order in which they are asked.
	Chain      []string        `json:"chain"`
	Activation string          `json:"activation,omitempty"` // of the room; empty: as configured
	Switched   bool            `json:"switched,omitempty"`   // the chat was led to this session
	Compacted  bool            `json:"compacted,omitempty"`  // its older part is a summary
	Usage      workspace.Usage `json:"usage"`
}

// Status tells how a session and its gateway are. Others than owners see no channels and no causes.
func (c *Conversations) Status(_ context.Context, call control.Call) (Status, error) {
	if err := c.Allow(call, "status"); err != nil {
		return Status{}, err
	}
	key := call.Session.String()
	v := c.Lanes.Lane(key)
	health, reason := c.Store.Health()
	st := Status{Session: key, Activity: Activity{v.Running, len(v.Waiting), v.Held, v.Asleep},
		Models: c.Snapshot().Models.Health(), Health: string(health),
		Uptime: c.Now().Sub(c.Process.Began).Round(time.Second), Queue: c.Lanes.Queue(key)}
	st.Agent, _ = c.Find.Agent(call.Session.Agent)
	if call.FromRoom() {
		place, err := c.Store.PlaceIn(call.Room)
		if err != nil {
			return Status{}, err
		}
		st.Activation, st.Switched = place.Activation, call.HomeKey() != call.Session
	}
	if call.Owner() {
		st.Channels, st.Reason, st.Config = c.Channels.Views(), reason, c.Process.ConfigFile()
	} else { // what a provider says of a failure may name keys and places
		for i := range st.Models {
			st.Models[i].LastError = ""
		}
	}
	ses, err := c.Store.SessionByKey(call.Session)
	if err == nil {
		st.Gen, st.Overrides, st.Compacted = ses.Gen, ses.Overrides, ses.Compacted > 0
		if st.Usage, err = c.Spent.Of(ses.ID); err != nil {
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
	return st, c.Answer(call, st)
}

// QueueView is what waits in a session and how it is handled.
type QueueView struct {
	lane.Settings
	Running bool     `json:"running"`
	Waiting []string `json:"waiting"`
	Changed bool     `json:"changed"`
	Held    string   `json:"held,omitempty"` // why the turn has not begun, or is suspended
}

// Queue shows the queue, or changes how it is handled in this session.
func (c *Conversations) Queue(_ context.Context, call control.Call, change QueueChange) (QueueView, error) {
	key := call.Session.String()
	lv := c.Lanes.Lane(key)
	v := QueueView{Settings: c.Lanes.Queue(key), Running: lv.Running}
	for _, in := range lv.Waiting {
		if call.Owner() || in.Person == call.Actor.Person {
			v.Waiting = append(v.Waiting, in.Text)
		}
	}
	if change == (QueueChange{}) {
		if err := c.Allow(call, "status"); err != nil {
			return QueueView{}, err
		}
		return v, c.Answer(call, v)
	}
	if err := c.Allow(call, "queue"); err != nil {
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

// QueueChange is what /queue changes; zero fields stay as they are.
type QueueChange struct {
	Mode     string // steer, followup, collect, interrupt; default: forget all changes
	Debounce string // a duration up to a minute
	Cap      int    // messages that may wait; 1 to 1,000
	Drop     string // summarize, old, new
}

// maxDebounce and maxCap bound what a person may set.
const (
	maxDebounce = time.Minute
	maxCap      = 1000
)

// Check says in one sentence what cannot be.
func (q QueueChange) Check() error {
	switch q.Mode {
	case "", lane.Steer, lane.Followup, lane.Collect, lane.Interrupt, "default":
	default:
		return workspace.Say(workspace.ErrInvalid,
			"There is no queue mode %q. Modes are steer, followup, collect, interrupt and default.", clip.Runes(q.Mode, 40))
	}
	if d, err := time.ParseDuration(q.Debounce); q.Debounce != "" && (err != nil || d < 0 || d > maxDebounce) {
		return workspace.Say(workspace.ErrInvalid, "debounce is a time such as 700ms or 2s, at most %s.", maxDebounce)
	}
	if q.Cap < 0 || q.Cap > maxCap {
		return workspace.Say(workspace.ErrInvalid, "cap is a number of messages from 1 to %d.", maxCap)
	}
	if q.Drop != "" && !slices.Contains([]string{"summarize", "old", "new"}, q.Drop) {
		return workspace.Say(workspace.ErrInvalid, "drop is summarize, old or new.")
	}
	return nil
}

func (q QueueChange) apply(o *workspace.Overrides) {
	if q.Mode == "default" {
		o.Queue, o.Debounce, o.Cap, o.Drop = "", "", 0, ""
	} else if q.Mode != "" {
		o.Queue = q.Mode
	}
	if q.Debounce != "" {
		o.Debounce = q.Debounce
	}
	if q.Cap > 0 {
		o.Cap = q.Cap
	}
	if q.Drop != "" {
		o.Drop = q.Drop
	}
}
