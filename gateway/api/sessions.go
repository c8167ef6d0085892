package api

import (
	"net/http"
	"strconv"
	"time"

	"parley/gateway/control"
	"parley/workspace"
)

// sessionView is a session as lists show it: the newest generation of its key.
type sessionView struct {
	Key         string        `json:"key"`
	SessionID   string        `json:"session_id"` // of the generation
	Generation  int           `json:"generation"`
	Generations int           `json:"generations"`
	Agent       string        `json:"agent"`
	Name        string        `json:"name"`              // the title to show
	Given       string        `json:"given,omitempty"`   // that a person gave it
	Local       bool          `json:"local"`             // of WebChat, the terminal or the API
	Channel     string        `json:"channel,omitempty"` // configured name
	Network     string        `json:"network,omitempty"`
	Kind        string        `json:"kind,omitempty"` // dm, group, room
	Peer        string        `json:"peer,omitempty"`
	Thread      string        `json:"thread,omitempty"`
	Person      string        `json:"person,omitempty"` // whose it is; left out: several people's, or nobody known
	Sequence    int64         `json:"sequence"`         // of its newest event
	Preview     string        `json:"preview"`
	Created     time.Time     `json:"created"`
	Updated     time.Time     `json:"updated"`
	Running     bool          `json:"running"`
	Waiting     int           `json:"waiting"` // messages behind the running turn
	Usage       control.Usage `json:"usage"`
}

func sessionViewOf(it control.SessionItem) sessionView {
	return sessionView{Key: it.Key, SessionID: it.SessionID, Generation: it.Generation, Generations: it.Generations, Agent: it.Agent, Name: it.Name, Given: it.Given,
		Local: it.Local, Channel: it.Channel, Network: it.Network, Kind: it.Kind, Peer: it.Peer, Thread: it.Thread, Person: string(it.Person), Sequence: it.Sequence,
		Preview: it.Preview, Created: it.Created.UTC(), Updated: it.Updated.UTC(), Running: it.Running, Waiting: it.Waiting, Usage: control.UsageOf(it.Usage)}
}

func (s *server) listSessions(w http.ResponseWriter, r *http.Request) error {
	p, err := pageOf(r)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	got, err := s.opt.Control.ListSessions(r.Context(), s.call(r), control.SessionQuery{Agent: workspace.AgentID(q.Get("agent")), Text: q.Get("q"), Limit: p.limit, After: p.after})
	if err != nil {
		return err
	}
	l := control.List[sessionView]{Items: []sessionView{}}
	for _, it := range got.Items {
		l.Items = append(l.Items, sessionViewOf(it))
	}
	if got.Next != "" {
		l.Next = &got.Next
	}
	reply(w, http.StatusOK, l)
	return nil
}

// session replies with one that a verb has found or made.
func session(w http.ResponseWriter, status int) func(control.SessionItem, error) error {
	return func(it control.SessionItem, err error) error {
		if err == nil {
			reply(w, status, sessionViewOf(it))
		}
		return err
	}
}

func (s *server) getSession(w http.ResponseWriter, r *http.Request) error {
	return session(w, http.StatusOK)(s.opt.Control.Item(r.Context(), s.call(r), r.PathValue("key")))
}

// newSession is a session to be made.
type newSession struct {
	Agent string `json:"agent,omitempty"` // left out: the default agent
	Name  string `json:"name,omitempty"`  // its title; left out: made of what is said first
}

func (s *server) createSession(w http.ResponseWriter, r *http.Request) error {
	var req newSession
	if err := decode(w, r, &req); err != nil {
		return err
	}
	return session(w, http.StatusCreated)(s.opt.Control.CreateSession(r.Context(), s.call(r),
		control.NewLocal{Agent: workspace.AgentID(req.Agent), Name: req.Name, Key: r.Header.Get("Idempotency-Key")}))
}

// sessionChange is what of a session can be changed.
type sessionChange struct {
	Name *string `json:"name,omitempty"` // its title; empty: made of what is said first
}

func (s *server) renameSession(w http.ResponseWriter, r *http.Request) error {
	var req sessionChange
	if err := decode(w, r, &req); err != nil {
		return err
	}
	if req.Name == nil {
		return fault(http.StatusBadRequest, "invalid", "Say what to change: name.")
	}
	return session(w, http.StatusOK)(s.opt.Control.RenameSession(r.Context(), s.call(r), r.PathValue("key"), *req.Name))
}

func (s *server) deleteSession(w http.ResponseWriter, r *http.Request) error {
	if err := decode(w, r, &struct{}{}); err != nil {
		return err
	}
	if _, err := s.opt.Control.DeleteSession(r.Context(), s.call(r), r.PathValue("key")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// forkRequest says where a new generation leaves the old one.
type forkRequest struct {
	Before    int64  `json:"before"`               // number of the first event that is not taken along
	SessionID string `json:"session_id,omitempty"` // the generation that it counts in; left out: the newest
}

func (s *server) forkSession(w http.ResponseWriter, r *http.Request) error {
	var req forkRequest
	if err := decode(w, r, &req); err != nil {
		return err
	}
	if req.Before < 1 {
		return fault(http.StatusBadRequest, "invalid", "before is the number of an event, from 1.")
	}
	return session(w, http.StatusCreated)(s.opt.Control.ForkSession(r.Context(), s.call(r), r.PathValue("key"),
		control.Fork{Before: req.Before, Session: workspace.SessionID(req.SessionID), Key: r.Header.Get("Idempotency-Key")}))
}

// generationView is one life of a session.
type generationView struct {
	SessionID  string        `json:"session_id"`
	Generation int           `json:"generation"`
	Created    time.Time     `json:"created"`
	Ended      *time.Time    `json:"ended,omitempty"` // left out: the present one
	Sequence   int64         `json:"sequence"`        // of its newest event
	Preview    string        `json:"preview"`
	Usage      control.Usage `json:"usage"`
	// ForkedFrom is the generation that this one parted from, before its event ForkedBefore; left out: it began with nothing.
	ForkedFrom   string `json:"forked_from,omitempty"`
	ForkedBefore int64  `json:"forked_before,omitempty"`
}

func (s *server) listGenerations(w http.ResponseWriter, r *http.Request) error {
	found, err := s.opt.Control.Generations(r.Context(), s.call(r), r.PathValue("key"))
	if err != nil {
		return err
	}
	var views []generationView
	for _, g := range found {
		v := generationView{SessionID: g.SessionID, Generation: g.Generation, Created: g.Created.UTC(), Sequence: g.Sequence, Preview: g.Preview, Usage: control.UsageOf(g.Usage),
			ForkedFrom: g.ForkedFrom, ForkedBefore: g.ForkedBefore}
		if g.Ended != nil {
			v.Ended = control.Moment(*g.Ended)
		}
		views = append(views, v)
	}
	return whole[generationView](w)(views, nil)
}

// sessionEntries lists the transcript of a generation, the newest unless ?session_id= names one, as the events that a
// stream sends.
func (s *server) sessionEntries(w http.ResponseWriter, r *http.Request) error {
	p, err := pageOf(r)
	if err != nil {
		return err
	}
	before, err := number(r, "before")
	if err != nil {
		return err
	}
	after, err := number(r, "after")
	if err != nil {
		return err
	}
	ses, err := s.opt.Control.SessionOf(r.Context(), s.call(r), r.PathValue("key"), r.URL.Query().Get("session_id"))
	if err != nil {
		return err
	}
	if r.URL.Query().Has("before") {
		return s.entriesBefore(w, ses, before, p.limit)
	}
	entries, err := s.opt.Control.EntriesOf(ses, after, p.limit+1)
	if err != nil {
		return err
	}
	var events []event
	for _, e := range entries {
		events = append(events, stored(e))
	}
	reply(w, http.StatusOK, control.PageOf(events, p.limit, func(e event) string { return strconv.FormatInt(e.Sequence, 10) }))
	return nil
}
