package api

import (
	"net/http"

	"parley/gateway/api/wire"
	"parley/gateway/control"
	"parley/gateway/spec"
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
