package control

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode"

	"parley/agentloop"
	"parley/gateway/rights"
	"parley/workspace"
	"parley/workspace/clip"
	"parley/workspace/store"
)

// NewLocal is a session to be made for a local person.
type NewLocal struct {
	Agent workspace.AgentID // empty: the default agent
	Name  string            // its title; empty: made of what is said first
	Key   string            // idempotency: the same key finds the session that it made
}

// CreateSession makes a local session. A name that is taken gets a number.
func (c *Control) CreateSession(_ context.Context, call Call, n NewLocal) (SessionItem, error) {
	if err := c.may(call, "session.create"); err != nil {
		return SessionItem{}, err
	}
	ses, err := c.create(call, n)
	if err != nil {
		return SessionItem{}, err
	}
	return c.itemOf(ses)
}

func (c *Control) create(call Call, n NewLocal) (workspace.Session, error) {
	name, err := title(n.Name)
	if err != nil && n.Name != "" {
		return workspace.Session{}, err
	}
	agent, err := c.agentOr(n.Agent)
	if err != nil {
		return workspace.Session{}, err
	}
	base := name
	if base == "" {
		base = "chat-" + workspace.Short(c.Store.IDs().New())
	}
	origin := ""
	if n.Key != "" {
		origin = "create:" + string(call.Actor.Person) + ":" + n.Key
	}
	for i := 1; ; i++ {
		local := base
		if i > 1 {
			local += "-" + strconv.Itoa(i)
		}
		key := workspace.Key{Agent: agent, Scope: workspace.ScopeLocal, Local: rights.LocalName(call.Actor, local)}
		did, err := c.Store.RunCommand(store.Command{Changes: []store.Change{store.Create{Key: key, Name: name, Origin: origin}}})
		if errors.Is(err, workspace.ErrConflict) && i < 100 {
			continue
		}
		if err != nil {
			return workspace.Session{}, err
		}
		return c.Store.Session(did.Session)
	}
}

func (c *Control) agentOr(id workspace.AgentID) (workspace.AgentID, error) {
	if id != "" {
		if _, ok := c.House.Agent(id); !ok {
			return "", workspace.Say(workspace.ErrNotFound, "There is no agent %q.", clip.Runes(string(id), 80))
		}
		return id, nil
	}
	for _, a := range c.House.Agents() {
		if a.Default {
			return a.ID, nil
		}
	}
	return "", workspace.Say(workspace.ErrInvalid, "There is no default agent: name one.")
}

// title is a session's name as it may be given.
func title(s string) (string, error) {
	s = strings.TrimSpace(s)
	switch {
	case s == "":
		return "", workspace.Say(workspace.ErrInvalid, "A session needs a name.")
	case len(s) > MaxSession:
		return "", workspace.Say(workspace.ErrInvalid, "A session's name has at most %d bytes.", MaxSession)
	case strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }):
		return "", workspace.Say(workspace.ErrInvalid, "A session's name is one line of text.")
	case strings.HasPrefix(s, "agent:"):
		return "", workspace.Say(workspace.ErrInvalid, "A session's name cannot begin with “agent:”: that is how keys begin.")
	}
	return s, nil
}

// RenameSession gives a session its title. An empty name takes it away.
func (c *Control) RenameSession(_ context.Context, call Call, key, name string) (SessionItem, error) {
	if err := c.may(call, "session.rename"); err != nil {
		return SessionItem{}, err
	}
	ses, err := c.find(call, key)
	if err != nil {
		return SessionItem{}, err
	}
	if name != "" {
		if name, err = title(name); err != nil {
			return SessionItem{}, err
		}
	}
	ses.Name = name
	it, err := c.itemOf(ses)
	if err != nil {
		return SessionItem{}, err
	}
	it.Given, it.Name = name, name
	if _, err := c.commit(call, func(store.Did) any { return Renamed{it} }, store.Rename{Session: ses.ID, Name: name}); err != nil {
		return SessionItem{}, err
	}
	c.House.Forget(key)
	return c.itemAgain(ses.ID)
}

// itemAgain is an item as it is stored now.
func (c *Control) itemAgain(id workspace.SessionID) (SessionItem, error) {
	ses, err := c.Store.Session(id)
	if err != nil {
		return SessionItem{}, err
	}
	return c.itemOf(ses)
}

// Renamed is a session with its new title.
type Renamed struct{ SessionItem }

// Deleted is what went with a session.
type Deleted struct {
	Stopped Stopped `json:"stopped"`
}

// DeleteSession ends a session and hides it with all its generations. What runs in it is stopped. The record stays; who
// writes there again begins afresh.
func (c *Control) DeleteSession(_ context.Context, call Call, key string) (Deleted, error) {
	if err := c.may(call, "session.delete"); err != nil {
		return Deleted{}, err
	}
	ses, err := c.find(call, key)
	if err != nil {
		return Deleted{}, err
	}
	if ses.Hidden {
		if it, err := c.itemOf(ses); err == nil && it.Sequence == 0 {
			return Deleted{}, workspace.Say(workspace.ErrNotFound, "There is no session %q.", clip.Runes(key, 200))
		}
	}
	changes := []store.Change{stopWhole(call, ses), store.Delete{Key: ses.Key, Session: ses.ID}}
	did, err := c.Store.RunCommand(store.Command{Changes: changes})
	if errors.Is(err, workspace.ErrConflict) {
		return Deleted{}, workspace.Say(err, "That session has just begun anew. Look again.")
	}
	if err != nil {
		return Deleted{}, err
	}
	c.ended(ses, did)
	c.Intake.RoomsChanged()
	return Deleted{Stopped: stoppedOf(did)}, nil
}

// stopWhole is a stop of everything in a session, by somebody who reaches it.
func stopWhole(call Call, ses workspace.Session) store.Stop {
	return store.Stop{Session: ses.ID, By: call.Actor.Person, Before: 1 << 62}
}

func stoppedOf(d store.Did) Stopped {
	return Stopped{Run: d.Stopped.Run, Queued: len(d.Stopped.Queued), Parts: int(d.Stopped.Parts)}
}

// ended tells the running gateway that a generation is over and what went with it.
func (c *Control) ended(ses workspace.Session, did store.Did) {
	key := ses.Key.String()
	c.Turns.Remove(key, did.Stopped.Queued...)
	if run := did.Stopped.Run; run != "" {
		c.Turns.Cancel(key, agentloop.ErrStopped, func(first workspace.Input) bool { // the turn may be another one by now
			return first.RunID == run || first.RunID == "" && first.SessionID == ses.ID
		})
	}
	c.House.Forget(key)
}

// Fork says where a new generation leaves the old one.
type Fork struct {
	Before  int64               // the first event that is not taken along
	Session workspace.SessionID // the generation that the caller sees; empty: the newest
	Key     string              // idempotency
}

// ForkSession begins a new generation with what stands before an event of the present one: to say something else there,
// or to be answered again. What runs is stopped. The old generation can still be read.
func (c *Control) ForkSession(_ context.Context, call Call, key string, f Fork) (SessionItem, error) {
	if err := c.may(call, "session.fork"); err != nil {
		return SessionItem{}, err
	}
	ses, err := c.find(call, key)
	if err != nil {
		return SessionItem{}, err
	}
	origin := ""
	if f.Key != "" {
		origin = "fork:" + string(call.Actor.Person) + ":" + f.Key
		switch made, err := c.Store.SessionByOrigin(origin); {
		case err == nil:
			return c.itemOf(made)
		case !errors.Is(err, workspace.ErrNotFound):
			return SessionItem{}, err
		}
	}
	from := ses.ID
	if f.Session != "" {
		from = f.Session
	}
	fork, err := c.Store.Fork(ses.Key, from, f.Before, origin)
	if errors.Is(err, workspace.ErrNotFound) {
		return SessionItem{}, workspace.Say(err, "This session has no event %d.", f.Before)
	}
	if err != nil {
		return SessionItem{}, err
	}
	fork.Session = ses.ID
	did, err := c.Store.RunCommand(store.Command{Changes: []store.Change{stopWhole(call, ses), *fork}})
	if errors.Is(err, workspace.ErrConflict) {
		return SessionItem{}, workspace.Say(err, "That session has just begun anew. Look again.")
	}
	if err != nil {
		return SessionItem{}, err
	}
	if !did.Again {
		c.ended(ses, did)
	}
	made, err := c.Store.Session(did.Session)
	if err != nil {
		return SessionItem{}, err
	}
	return c.itemOf(made)
}

// Generation is one life of a session.
type Generation struct {
	SessionID  string          `json:"session_id"`
	Generation int             `json:"generation"`
	Created    time.Time       `json:"created"`
	Ended      *time.Time      `json:"ended,omitempty"` // left out: the present one
	Sequence   int64           `json:"sequence"`        // of its newest event
	Preview    string          `json:"preview"`
	Usage      workspace.Usage `json:"usage"`
	// ForkedFrom is the generation that this one parted from, before its event ForkedBefore.
	ForkedFrom   string `json:"forked_from,omitempty"`
	ForkedBefore int64  `json:"forked_before,omitempty"`
}

// Generations lists those of a session, newest first; what was deleted is not among them.
func (c *Control) Generations(_ context.Context, call Call, key string) ([]Generation, error) {
	if err := c.may(call, "session.read"); err != nil {
		return nil, err
	}
	ses, err := c.find(call, key)
	if err != nil {
		return nil, err
	}
	list, err := c.Store.Generations(ses.Key)
	if err != nil {
		return nil, err
	}
	out := []Generation{}
	for _, g := range list {
		if g.Hidden && g.ID != ses.ID {
			continue
		}
		it, err := c.itemOf(g)
		if err != nil {
			return nil, err
		}
		view := Generation{SessionID: it.SessionID, Generation: it.Generation, Created: g.Created, Sequence: it.Sequence, Preview: it.Preview, Usage: it.Usage,
			ForkedFrom: string(g.ForkedFrom), ForkedBefore: g.ForkedBefore}
		if !g.Ended.IsZero() {
			view.Ended = &g.Ended
		}
		out = append(out, view)
	}
	return out, nil
}

// SessionOf finds one generation of a key, to be read; an empty id is the newest.
func (c *Control) SessionOf(_ context.Context, call Call, key, id string) (workspace.Session, error) {
	if err := c.may(call, "session.read"); err != nil {
		return workspace.Session{}, err
	}
	ses, err := c.find(call, key)
	if err != nil || id == "" || id == string(ses.ID) {
		return ses, err
	}
	old, err := c.Store.Session(workspace.SessionID(id))
	if errors.Is(err, workspace.ErrNotFound) || err == nil && old.Key != ses.Key {
		return workspace.Session{}, workspace.Say(workspace.ErrNotFound, "This session has no generation %q.", clip.Runes(id, 60))
	}
	return old, err
}
