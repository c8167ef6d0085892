package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"parley/gateway/control"
	"parley/gateway/rights"
	"parley/gateway/spec"
	"parley/workspace"
	"parley/workspace/store"
)

// ForkIn says where a new generation leaves the old one.
type ForkIn struct {
	BySession
	Before int64               `json:"before" min:"1" help:"*number* of the first event that is not taken along"`
	From   workspace.SessionID `json:"session_id,omitempty" flag:"generation" help:"*id* of its generation; left out: the newest"`
}

// Fork begins a new generation with what stands before an event of the present one: to say something else there,
// or to be answered again. What runs is stopped. The old generation can still be read.
var Fork = control.Verb[*Sessions, ForkIn, Item]{
	Name: "session.fork", Help: "Begin a new generation with what stands before an event",
	Rights: rights.Row{Owner: rights.Direct, Member: rights.OwnDirect},
	HTTP:   "POST /v1/sessions/{key}/fork", Status: http.StatusCreated, Group: "sessions", CLI: "session fork <key>",
	Do: func(_ context.Context, c *Sessions, call control.Call, in ForkIn) (Item, error) {
		return c.fork(call, in)
	},
	Show: func(in ForkIn, it Item) spec.Shown {
		const line = "%s goes on as generation %d, without line %d and what came after"
		return spec.Shown{Line: fmt.Sprintf(line, control.ShortKey(it.Key), it.Generation, in.Before)}
	},
}

func (c *Sessions) fork(call control.Call, in ForkIn) (Item, error) {
	ses, err := c.Find.Session(call, in.Session)
	if err != nil {
		return Item{}, err
	}
	origin := ""
	if key := call.IdempotencyKey(); key != "" {
		origin = "fork:" + string(call.Actor.Person) + ":" + key
		switch made, err := c.Store.SessionByOrigin(origin); {
		case err == nil:
			return c.itemOf(call, made)
		case !errors.Is(err, workspace.ErrNotFound):
			return Item{}, err
		}
	}
	fork, err := c.Store.Fork(ses.Key, cmp.Or(in.From, ses.ID), in.Before, origin)
	if errors.Is(err, workspace.ErrNotFound) {
		return Item{}, workspace.Say(err, "This session has no event %d.", in.Before)
	}
	if err != nil {
		return Item{}, err
	}
	fork.Session = ses.ID
	did, err := c.Store.RunCommand(store.Command{Changes: []store.Change{stopWhole(call, ses), *fork}})
	if errors.Is(err, workspace.ErrConflict) {
		return Item{}, workspace.Say(err, "That session has just begun again. Look at it first.")
	}
	if err != nil {
		return Item{}, err
	}
	if !did.Again {
		c.ended(ses, did)
	}
	return c.itemAgain(call, did.Session)
}

// ListGenerations lists those of a session; what was deleted is not among them.
var ListGenerations = control.Verb[*Sessions, BySession, spec.List[Generation]]{
	Name: "session.read", Help: "List the lives of a session, the newest first", Rights: readSession,
	HTTP: "GET /v1/sessions/{key}/generations", Group: "sessions", CLI: "session generations <key>",
	Do: func(_ context.Context, c *Sessions, call control.Call, in BySession) (spec.List[Generation], error) {
		out := spec.Whole[Generation](nil)
		ses, err := c.Find.Session(call, in.Session)
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
			it, err := c.itemOf(call, g)
			if err != nil {
				return out, err
			}
			out.Items = append(out.Items, Generation{SessionID: it.SessionID, Generation: it.Generation, Created: it.Created,
				Ended: control.Moment(g.Ended), Sequence: it.Sequence, Preview: it.Preview, Usage: it.Usage,
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
