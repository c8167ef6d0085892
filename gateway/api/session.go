package api

import (
	"net/http"
	"time"

	"parley/channels"
	"parley/gateway/control"
	"parley/gateway/spec"
	"parley/workspace"
)

// Command is a slash command that may be typed in a message.
type Command struct {
	Name    string   `json:"name"` // without the slash
	Aliases []string `json:"aliases"`
	Args    string   `json:"args"` // what may follow, as help shows it
	Help    string   `json:"help"`
	Example string   `json:"example"`
}

// listCommands lists what the caller may use in a session of their own.
func (s *server) listCommands(w http.ResponseWriter, r *http.Request) error {
	call := s.call(r)
	if err := s.opt.Control.Text(r.Context(), call, "commands", ""); err != nil {
		return err
	}
	items := []Command{}
	if s.opt.Commands != nil {
		items = append(items, s.opt.Commands(call)...)
	}
	return whole[Command](w)(items, nil)
}

// whole replies with a list that has one page.
func whole[T any](w http.ResponseWriter) func([]T, error) error {
	return func(items []T, err error) error {
		if err == nil {
			reply(w, http.StatusOK, spec.PageOf(items, len(items), nil))
		}
		return err
	}
}

// status is of the session main of the default agent, or of ?session.
func (s *server) status(w http.ResponseWriter, r *http.Request) error {
	call := s.call(r)
	text := r.URL.Query().Get("session")
	if text == "" {
		agents, err := control.ListAgents.Call(r.Context(), s.opt.Control, call, struct{}{})
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
	if call.Session, err = s.opt.Control.Watch(r.Context(), call, control.SessionWord(text)); err != nil {
		return err
	}
	st, err := s.opt.Control.Status(r.Context(), call)
	if err != nil {
		return err
	}
	v := statusView{Agent: st.Agent, Session: st.Session, Generation: max(st.Gen, 1), Entries: st.Entries, Running: st.Running, Waiting: st.Waiting, Queue: st.Queue.Mode,
		Health: st.Health, Reason: st.Reason, Uptime: int64(st.Uptime.Seconds()), Channels: append([]control.Channel{}, st.Channels...), Models: []modelView{}}
	for _, m := range st.Models {
		v.Models = append(v.Models,
			modelView{m.Name, m.Model, m.Offline, m.Down, m.Failures, string(m.LastKind), control.Moment(m.NextProbe)})
	}
	if !st.Config.Since.IsZero() {
		v.Config = &st.Config
	}
	reply(w, http.StatusOK, v)
	return nil
}

// statusView is a session and the gateway behind it.
type statusView struct {
	Agent      control.Agent     `json:"agent"`
	Session    string            `json:"session"`
	Generation int               `json:"generation"`
	Entries    int               `json:"entries"`
	Running    bool              `json:"running"`
	Waiting    int               `json:"waiting"`
	Queue      string            `json:"queue"`
	Health     string            `json:"health"`
	Reason     string            `json:"reason,omitempty"`
	Uptime     int64             `json:"uptime_seconds"`
	Models     []modelView       `json:"models"`
	Channels   []control.Channel `json:"channels"`
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

type probeRequest struct {
	Channel   string   `json:"channel"`
	Kind      string   `json:"kind,omitempty"`
	Peer      string   `json:"peer,omitempty"`
	Thread    string   `json:"thread,omitempty"`
	User      string   `json:"user,omitempty"`
	Roles     []string `json:"roles,omitempty"`
	Server    string   `json:"server,omitempty"`
	Team      string   `json:"team,omitempty"`
	Text      string   `json:"text,omitempty"`
	Mentioned bool     `json:"mentioned,omitempty"`
}

// explainRoute is a dry run: nothing is stored.
func (s *server) explainRoute(w http.ResponseWriter, r *http.Request) error {
	var q probeRequest
	if err := decode(w, r, &q); err != nil {
		return err
	}
	x, err := s.opt.Control.Probe(r.Context(), s.call(r), control.Probe{Channel: q.Channel, Kind: channels.PeerKind(q.Kind), Peer: q.Peer, Thread: q.Thread,
		User: q.User, Roles: q.Roles, Server: q.Server, Team: q.Team, Text: q.Text, Mentioned: q.Mentioned})
	if err == nil {
		reply(w, http.StatusOK, x)
	}
	return err
}
