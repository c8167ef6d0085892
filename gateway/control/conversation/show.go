package conversation

import (
	"context"
	"time"

	"parley/gateway/control"
	"parley/gateway/spec"
	"parley/gateway/transport"
	"parley/gateway/turn"
	"parley/workspace"
)

// StatusItem is a session and the gateway behind it, as programs read them.
type StatusItem struct {
	Agent      control.Agent    `json:"agent"`
	Session    string           `json:"session"`
	Generation int              `json:"generation"`
	Entries    int              `json:"entries"`
	State      string           `json:"state"` // idle, running, waiting for a person, paused
	Running    bool             `json:"running"`
	Waiting    int              `json:"waiting"`
	Queue      string           `json:"queue"`
	Health     string           `json:"health"`
	Reason     string           `json:"reason,omitempty"`
	Uptime     int64            `json:"uptime_seconds"`
	Models     []Model          `json:"models"`
	Channels   []transport.View `json:"channels"`
	// Config is for owners.
	Config *control.ConfigFile `json:"config,omitempty"`
}

// Model tells how a model answers.
type Model struct {
	Name      string     `json:"name"`
	Model     string     `json:"model"`
	Offline   bool       `json:"offline"` // the built-in responder: no model at all
	Down      bool       `json:"down"`
	Failures  int        `json:"failures"` // in a row
	LastError string     `json:"last_error,omitempty"`
	NextProbe *time.Time `json:"next_probe,omitempty"`
}

// StatusIn names a session.
type StatusIn struct {
	Session control.SessionWord `query:"session" help:"*key* of a session; left out: main of the default agent"`
}

// ShowStatus is SayStatus for programs, of any session that the caller may watch.
var ShowStatus = control.Verb[*Conversations, StatusIn, StatusItem]{
	Name: "status", Help: "Say how a session and the gateway behind it are",
	Rights: mayLook, HTTP: "GET /v1/status", Group: "gateway",
	Do: func(ctx context.Context, c *Conversations, call control.Call, in StatusIn) (StatusItem, error) {
		if in.Session == "" {
			agent, err := c.Find.AgentOr("")
			if err != nil {
				return StatusItem{}, err
			}
			in.Session = control.SessionWord(workspace.Key{Agent: agent, Scope: workspace.ScopeLocal, Local: "main"}.String())
		}
		var err error
		if call.Session, err = c.Watch(ctx, call, in.Session); err != nil {
			return StatusItem{}, err
		}
		st, err := c.status(call)
		if err != nil {
			return StatusItem{}, err
		}
		v := StatusItem{Agent: st.Agent, Session: st.Session, Generation: max(st.Gen, 1), Entries: st.Entries,
			State: st.State, Running: st.State == turn.AtWork, Waiting: st.Waiting, Queue: st.Queue.Mode,
			Health: st.Health, Reason: st.Reason, Uptime: int64(st.Uptime.Seconds()),
			Channels: spec.Whole(st.Channels).Items, Models: []Model{}}
		for _, m := range st.Models {
			v.Models = append(v.Models, Model{Name: m.Name, Model: m.Model, Offline: m.Offline, Down: m.Down, Failures: m.Failures,
				LastError: string(m.LastKind), NextProbe: control.Moment(m.NextProbe)})
		}
		if !st.Config.Since.IsZero() {
			v.Config = &st.Config
		}
		return v, nil
	},
}
