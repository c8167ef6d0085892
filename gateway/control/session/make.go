package session

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"parley/agentloop"
	"parley/gateway/control"
	"parley/gateway/rights"
	"parley/gateway/spec"
	"parley/workspace"
	"parley/workspace/store"
)

// MaxName is how long a session's name may be, in bytes.
const MaxName = 64

// CreateIn is a local session to be made.
type CreateIn struct {
	Agent workspace.AgentID `json:"agent,omitempty" help:"*id* of the agent; left out: the default agent"`
	Name  string            `json:"name,omitempty" help:"its title; left out: made of what is said first"`
}

// Create makes a local session. A name that is taken gets a number.
var Create = control.Verb[*Sessions, CreateIn, Item]{
	Name: "session.create", Help: "Make a session of its own to talk in",
	Rights: rights.Row{Owner: rights.Direct, Member: rights.OwnDirect},
	HTTP:   "POST /v1/sessions", Status: http.StatusCreated, Group: "sessions", CLI: "session new [name]",
	Do: func(_ context.Context, c *Sessions, call control.Call, in CreateIn) (Item, error) {
		ses, err := c.create(call, in)
		if err != nil {
			return Item{}, err
		}
		return c.itemOf(call, ses)
	},
	Show: func(_ CreateIn, it Item) spec.Shown {
		key := control.ShortKey(it.Key)
		return spec.Shown{Line: key + "\nTalk in it: parley chat --session " + key}
	},
}

func (c *Sessions) create(call control.Call, n CreateIn) (workspace.Session, error) {
	name, err := title(n.Name)
	if err != nil && n.Name != "" {
		return workspace.Session{}, err
	}
	agent, err := c.Find.AgentOr(n.Agent)
	if err != nil {
		return workspace.Session{}, err
	}
	base := name
	if base == "" {
		base = "chat-" + workspace.Short(c.Store.IDs().New())
	}
	origin := ""
	if key := call.IdempotencyKey(); key != "" {
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

// title is a session's name as it may be given.
func title(s string) (string, error) {
	s = strings.TrimSpace(s)
	switch {
	case s == "":
		return "", workspace.Say(workspace.ErrInvalid, "A session needs a name.")
	case len(s) > MaxName:
		return "", workspace.Say(workspace.ErrInvalid, "A session's name has at most %d bytes.", MaxName)
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

var Rename = control.Verb[*Sessions, RenameIn, Item]{
	Name: "session.rename", Help: "Give a session a name; an empty one takes it away",
	Rights: rights.Row{Owner: rights.Yes, Member: rights.OwnDirect, Guest: rights.OwnDirect},
	HTTP:   "PATCH /v1/sessions/{key}", Group: "sessions", CLI: "session rename <key> <name>",
	Chat: "session rename <name>",
	Do: func(_ context.Context, c *Sessions, call control.Call, in RenameIn) (Item, error) {
		ses, err := c.Find.Session(call, in.Session)
		if err != nil {
			return Item{}, err
		}
		name := *in.Name
		if name != "" {
			if name, err = title(name); err != nil {
				return Item{}, err
			}
		}
		ses.Name = name
		it, err := c.itemOf(call, ses)
		if err != nil {
			return Item{}, err
		}
		it.Given, it.Name = name, name
		if _, err := c.Commit(call, func(store.Did) any { return it }, store.Rename{Session: ses.ID, Name: name}); err != nil {
			return Item{}, err
		}
		c.Changed(ses.Key.String())
		return c.itemAgain(call, ses.ID)
	},
	Show: func(_ RenameIn, it Item) spec.Shown {
		return spec.Shown{Line: control.ShortKey(it.Key) + " is called " + it.Name}
	},
	Say: func(it Item) string { return fmt.Sprintf("This session is now called **%s**.", it.Name) },
}

// Delete ends a session and hides it with all its generations. What runs in it is stopped. The record stays; who
// writes there again begins afresh.
var Delete = control.Verb[*Sessions, BySession, struct{}]{
	Name: "session.delete", Help: "End a session and hide it; the record stays",
	Rights: rights.Row{Owner: rights.Direct, Member: rights.OwnDirect},
	HTTP:   "DELETE /v1/sessions/{key}", Status: http.StatusNoContent, Group: "sessions",
	CLI: "session delete|rm <key>", Confirm: "Delete session {key}?",
	Do: func(_ context.Context, c *Sessions, call control.Call, in BySession) (none struct{}, err error) {
		ses, err := c.Find.Session(call, in.Session)
		if err != nil {
			return none, err
		}
		if ses.Hidden {
			if it, err := c.itemOf(call, ses); err == nil && it.Sequence == 0 {
				return none, control.NoSession(workspace.ErrNotFound, ses.Key)
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
		c.Moved()
		return none, nil
	},
	Show: func(in BySession, _ struct{}) spec.Shown { return spec.Shown{Line: string(in.Session) + " is deleted"} },
}

// stopWhole is a stop of everything in a session, by somebody who reaches it.
func stopWhole(call control.Call, ses workspace.Session) store.Stop {
	return store.Stop{Session: ses.ID, By: call.Actor.Person, Before: 1 << 62}
}

// ended tells the running gateway that a generation is over and what went with it.
func (c *Sessions) ended(ses workspace.Session, did store.Did) {
	key := ses.Key.String()
	c.Lanes.Remove(key, did.Stopped.Queued...)
	if run := did.Stopped.Run; run != "" {
		c.Lanes.Cancel(key, agentloop.ErrStopped, func(first workspace.Input) bool { // the turn may be another one by now
			return first.RunID == run || first.RunID == "" && first.SessionID == ses.ID
		})
	}
	c.Changed(key)
}
