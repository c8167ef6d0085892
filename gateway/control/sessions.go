package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"parley/agentloop"
	"parley/gateway/rights"
	"parley/gateway/spec"
	"parley/workspace"
	"parley/workspace/clip"
	"parley/workspace/store"
)

// NewLocal is a local session to be made.
type NewLocal struct {
	Agent workspace.AgentID `json:"agent,omitempty" help:"*id* of the agent; left out: the default agent"`
	Name  string            `json:"name,omitempty" help:"its title; left out: made of what is said first"`
}

// CreateSession makes a local session. A name that is taken gets a number.
var CreateSession = Verb[NewLocal, SessionItem]{
	Name: "session.create", Help: "Make a session of its own to talk in",
	Rights: rights.Row{Owner: rights.Direct, Member: rights.OwnDirect},
	HTTP:   "POST /v1/sessions", Status: http.StatusCreated, Group: "sessions", CLI: "session new [name]",
	Do: func(_ context.Context, c *Control, call Call, in NewLocal) (SessionItem, error) {
		ses, err := c.create(call, in)
		if err != nil {
			return SessionItem{}, err
		}
		return c.itemOf(ses)
	},
	Show: func(_ NewLocal, it SessionItem) spec.Shown {
		key := ShortKey(it.Key)
		return spec.Shown{Line: key + "\nTalk in it: parley chat --session " + key}
	},
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
	if key := call.idempotencyKey(); key != "" {
		origin = "create:" + string(call.Actor.Person) + ":" + key
	}
	for i := 1; ; i++ {
		local := base
		if i > 1 {
			local += "-" + strconv.Itoa(i)
		}
		key := rights.LocalKey(call.Actor, agent, local)
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
		if _, ok := c.agent(id); !ok {
			return "", workspace.Say(workspace.ErrNotFound, "There is no agent %q.", clip.Runes(string(id), 80))
		}
		return id, nil
	}
	for _, a := range c.agents() {
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

// RenameIn is a session with its new title; an empty one takes it away.
type RenameIn struct {
	BySession
	Name *string `json:"name" help:"its title; empty: made of what is said first"`
}

var RenameSession = Verb[RenameIn, SessionItem]{
	Name: "session.rename", Help: "Give a session a name; an empty one takes it away",
	Rights: rights.Row{Owner: rights.Yes, Member: rights.OwnDirect, Guest: rights.OwnDirect},
	HTTP:   "PATCH /v1/sessions/{key}", Group: "sessions", CLI: "session rename <key> <name>",
	Do: func(_ context.Context, c *Control, call Call, in RenameIn) (SessionItem, error) {
		ses, err := c.find(call, in.Session)
		if err != nil {
			return SessionItem{}, err
		}
		name := *in.Name
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
		c.Changed(ses.Key.String())
		return c.itemAgain(ses.ID)
	},
	Show: func(_ RenameIn, it SessionItem) spec.Shown {
		return spec.Shown{Line: ShortKey(it.Key) + " is called " + it.Name}
	},
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

// DeleteSession ends a session and hides it with all its generations. What runs in it is stopped. The record stays; who
// writes there again begins afresh.
var DeleteSession = Verb[BySession, struct{}]{
	Name: "session.delete", Help: "End a session and hide it; the record stays",
	Rights: rights.Row{Owner: rights.Direct, Member: rights.OwnDirect},
	HTTP:   "DELETE /v1/sessions/{key}", Status: http.StatusNoContent, Group: "sessions",
	CLI: "session delete|rm <key>", Confirm: "Delete session {key}?",
	Do: func(_ context.Context, c *Control, call Call, in BySession) (none struct{}, err error) {
		ses, err := c.find(call, in.Session)
		if err != nil {
			return none, err
		}
		if ses.Hidden {
			if it, err := c.itemOf(ses); err == nil && it.Sequence == 0 {
				return none, noSession(workspace.ErrNotFound, ses.Key)
			}
		}
		changes := []store.Change{stopWhole(call, ses), store.Delete{Key: ses.Key, Session: ses.ID}}
		did, err := c.Store.RunCommand(store.Command{Changes: changes})
		if errors.Is(err, workspace.ErrConflict) {
			return none, workspace.Say(err, "That session has just begun again. Look at it first.")
		}
		if err != nil {
			return none, err
		}
		c.ended(ses, did)
		c.Intake.RoomsChanged()
		return none, nil
	},
	Show: func(in BySession, _ struct{}) spec.Shown { return spec.Shown{Line: string(in.Session) + " is deleted"} },
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
	c.Changed(key)
}

// ForkIn says where a new generation leaves the old one.
type ForkIn struct {
	BySession
	Before int64               `json:"before" min:"1" help:"*number* of the first event that is not taken along"`
	From   workspace.SessionID `json:"session_id,omitempty" flag:"generation" help:"*id* of its generation; left out: the newest"`
}

// ForkSession begins a new generation with what stands before an event of the present one: to say something else there,
// or to be answered again. What runs is stopped. The old generation can still be read.
var ForkSession = Verb[ForkIn, SessionItem]{
	Name: "session.fork", Help: "Begin a new generation with what stands before an event",
	Rights: rights.Row{Owner: rights.Direct, Member: rights.OwnDirect},
	HTTP:   "POST /v1/sessions/{key}/fork", Status: http.StatusCreated, Group: "sessions", CLI: "session fork <key>",
	Do: func(_ context.Context, c *Control, call Call, in ForkIn) (SessionItem, error) {
		return c.fork(call, in)
	},
	Show: func(in ForkIn, it SessionItem) spec.Shown {
		const line = "%s goes on as generation %d, without line %d and what came after"
		return spec.Shown{Line: fmt.Sprintf(line, ShortKey(it.Key), it.Generation, in.Before)}
	},
}

func (c *Control) fork(call Call, in ForkIn) (SessionItem, error) {
	ses, err := c.find(call, in.Session)
	if err != nil {
		return SessionItem{}, err
	}
	origin := ""
	if key := call.idempotencyKey(); key != "" {
		origin = "fork:" + string(call.Actor.Person) + ":" + key
		switch made, err := c.Store.SessionByOrigin(origin); {
		case err == nil:
			return c.itemOf(made)
		case !errors.Is(err, workspace.ErrNotFound):
			return SessionItem{}, err
		}
	}
	fork, err := c.Store.Fork(ses.Key, cmp.Or(in.From, ses.ID), in.Before, origin)
	if errors.Is(err, workspace.ErrNotFound) {
		return SessionItem{}, workspace.Say(err, "This session has no event %d.", in.Before)
	}
	if err != nil {
		return SessionItem{}, err
	}
	fork.Session = ses.ID
	did, err := c.Store.RunCommand(store.Command{Changes: []store.Change{stopWhole(call, ses), *fork}})
	if errors.Is(err, workspace.ErrConflict) {
		return SessionItem{}, workspace.Say(err, "That session has just begun again. Look at it first.")
	}
	if err != nil {
		return SessionItem{}, err
	}
	if !did.Again {
		c.ended(ses, did)
	}
	return c.itemAgain(did.Session)
}

// ListGenerations lists those of a session; what was deleted is not among them.
var ListGenerations = Verb[BySession, spec.List[Generation]]{
	Name: "session.read", Help: "List the lives of a session, the newest first", Rights: readSession,
	HTTP: "GET /v1/sessions/{key}/generations", Group: "sessions", CLI: "session generations <key>",
	Do: func(_ context.Context, c *Control, call Call, in BySession) (spec.List[Generation], error) {
		out := spec.Whole[Generation](nil)
		ses, err := c.find(call, in.Session)
		if err != nil {
			return out, err
		}
		list, err := c.Store.Generations(ses.Key)
		if err != nil {
			return out, err
		}
		for _, g := range list {
			if g.Hidden && g.ID != ses.ID {
				continue
			}
			it, err := c.itemOf(g)
			if err != nil {
				return out, err
			}
			out.Items = append(out.Items, Generation{SessionID: it.SessionID, Generation: it.Generation, Created: it.Created,
				Ended: Moment(g.Ended), Sequence: it.Sequence, Preview: it.Preview, Usage: it.Usage,
				ForkedFrom: string(g.ForkedFrom), ForkedBefore: g.ForkedBefore})
		}
		return out, nil
	},
	Show: func(_ BySession, l spec.List[Generation]) spec.Shown {
		s := spec.Shown{Heads: []string{"GENERATION", "BEGAN", "ENDED", "LINES", "USED", "BEGINS"}}
		for _, g := range l.Items {
			s.Rows = append(s.Rows, []any{g.Generation, g.Created, g.Ended, g.Sequence, g.Usage, spec.Brief{Text: g.Preview, Columns: 40}})
		}
		return s
	},
}

// SessionOf finds one generation of a key, to be read; an empty id is the newest.
func (c *Control) SessionOf(_ context.Context, call Call, key SessionWord, id string) (workspace.Session, error) {
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
