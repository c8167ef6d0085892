package api

import (
	"net/http"
	"time"

	"parley/gateway/api/wire"
	"parley/gateway/control"
	"parley/gateway/control/operator"
	"parley/gateway/spec"
	"parley/workspace"
)

// state tells how things are, and what may be typed.
type state struct {
	base
	commands func(control.Call) []Command
	ready    func() error
}

func (s state) routes() []route {
	return []route{
		{"GET /healthz", s.healthz, open, operation{"gateway", "Say that the process serves", "", nil, one(200, control.Done{}), ""}},
		{"GET /readyz", s.readyz, 0,
			operation{"gateway", "Say whether messages are taken and can be answered", "", nil, one(200, control.Done{}), ""}},
		{"GET /v1/status", s.status, 0,
			operation{"gateway", "Say how a session and the gateway behind it are", "session", nil, one(200, statusView{}), ""}},
		{"GET /v1/commands", s.list, 0,
			operation{"messages", "List the slash commands that the caller may use", "", nil, one(200, spec.List[Command]{}), ""}},
	}
}

func (s state) healthz(w http.ResponseWriter, _ *http.Request) error {
	wire.Reply(w, http.StatusOK, control.Done{Status: "ok"})
	return nil
}

func (s state) readyz(w http.ResponseWriter, _ *http.Request) error {
	if err := s.ready(); err != nil {
		return wire.RetryAfter(http.StatusServiceUnavailable, "not_ready", err.Error(), 5)
	}
	wire.Reply(w, http.StatusOK, control.Done{Status: "ready"})
	return nil
}

// Command is a slash command that may be typed in a message.
type Command struct {
	Name    string   `json:"name"` // without the slash
	Aliases []string `json:"aliases"`
	Args    string   `json:"args"` // what may follow, as help shows it
	Help    string   `json:"help"`
	Example string   `json:"example"`
}

// list lists what the caller may use in a session of their own.
func (s state) list(w http.ResponseWriter, r *http.Request) error {
	call := s.call(r)
	if err := s.control.Text(r.Context(), call, "commands", ""); err != nil {
		return err
	}
	items := []Command{}
	if s.commands != nil {
		items = append(items, s.commands(call)...)
	}
	wire.Whole(w, items)
	return nil
}

// status is of the session main of the default agent, or of ?session.
func (s state) status(w http.ResponseWriter, r *http.Request) error {
	call := s.call(r)
	text := r.URL.Query().Get("session")
	if text == "" {
		agents, err := operator.ListAgents.Call(r.Context(), s.control.Operator, call, struct{}{})
		if err != nil {
			return err
		}
		for _, a := range agents.Items {
			if a.Default {
				text = workspace.Key{Agent: a.ID, Scope: workspace.ScopeLocal, Local: "main"}.String()
			}
		}
	}
	var err error
	if call.Session, err = s.control.Sessions.Watch(r.Context(), call, control.SessionWord(text)); err != nil {
		return err
	}
	st, err := s.control.Conversations.Status(r.Context(), call)
	if err != nil {
		return err
	}
	v := statusView{Agent: st.Agent, Session: st.Session, Generation: max(st.Gen, 1), Entries: st.Entries, Running: st.Running,
		Waiting: st.Waiting, Queue: st.Queue.Mode,
		Health: st.Health, Reason: st.Reason, Uptime: int64(st.Uptime.Seconds()), Channels: append([]operator.Channel{}, st.Channels...),
		Models: []modelView{}}
	for _, m := range st.Models {
		v.Models = append(v.Models,
			modelView{m.Name, m.Model, m.Offline, m.Down, m.Failures, string(m.LastKind), control.Moment(m.NextProbe)})
	}
	if !st.Config.Since.IsZero() {
		v.Config = &st.Config
	}
	wire.Reply(w, http.StatusOK, v)
	return nil
}

// statusView is a session and the gateway behind it.
type statusView struct {
	Agent      control.Agent      `json:"agent"`
	Session    string             `json:"session"`
	Generation int                `json:"generation"`
	Entries    int                `json:"entries"`
	Running    bool               `json:"running"`
	Waiting    int                `json:"waiting"`
	Queue      string             `json:"queue"`
	Health     string             `json:"health"`
	Reason     string             `json:"reason,omitempty"`
	Uptime     int64              `json:"uptime_seconds"`
	Models     []modelView        `json:"models"`
	Channels   []operator.Channel `json:"channels"`
	// Config is for owners.
	Config *control.ConfigFile `json:"config,omitempty"`
}

type modelView struct {
	Name      string     `json:"name"`
	Model     string     `json:"model"`
	Offline   bool       `json:"offline"` // the built-in responder: no model at all
	Down      bool       `json:"down"`
	Failures  int        `json:"failures"` // in a row
	LastError string     `json:"last_error,omitempty"`
	NextProbe *time.Time `json:"next_probe,omitempty"`
}
