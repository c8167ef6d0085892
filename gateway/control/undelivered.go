// Answers that did not arrive: late ones resumed by their room, all of them listed, sent after all or dropped.

package control

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"parley/gateway/intake"
	"parley/gateway/rights"
	"parley/gateway/spec"
	"parley/workspace"
	"parley/workspace/store"
)

// Resumed is how many stale messages are answered now.
type Resumed struct {
	Messages int `json:"messages"`
	Answers  int `json:"answers"` // late ones, sent now
}

// Resume takes up what was set aside in the room after an outage: messages are queued again, late answers sent. Others
// than owners resume their own.
func (c *Control) Resume(_ context.Context, call Call) (Resumed, error) {
	if err := c.may(call, "resume"); err != nil {
		return Resumed{}, err
	}
	if call.Room == "" {
		return Resumed{}, c.answer(call, Resumed{})
	}
	stale, err := c.Store.StaleInputs(call.Room)
	if err != nil {
		return Resumed{}, err
	}
	var changes []store.Change
	var again []workspace.Input
	for _, in := range stale {
		if owner(call) || in.Person == call.Actor.Person {
			changes = append(changes, store.Ending{Seq: in.Seq, From: workspace.InputStale, To: workspace.InputQueued, Reason: intake.ResumedReason})
			in.State = workspace.InputQueued
			again = append(again, in)
		}
	}
	late, err := c.lateAnswers(call)
	if err != nil {
		return Resumed{}, err
	}
	value := func(d store.Did) Resumed { return Resumed{Messages: len(again), Answers: len(d.Late)} }
	did, err := c.commit(call, func(d store.Did) any { return value(d) }, append(changes, late)...)
	if err != nil {
		return Resumed{}, err
	}
	c.Outbox.PushAll(did.Late)
	c.Turns.Offer(again...)
	return value(did), nil
}

// lateAnswers of the room that the caller may have: owners all, others those to their own questions.
func (c *Control) lateAnswers(call Call) (ids store.Unpark, err error) {
	parked, err := c.Store.Parked(call.Room)
	if err != nil {
		return nil, err
	}
	for _, o := range parked {
		mine := owner(call)
		if !mine && o.RunID != "" {
			run, err := c.Store.Run(o.RunID)
			if err != nil {
				return nil, err
			}
			mine = run.Requester == call.Actor.Person
		}
		if mine {
			ids = append(ids, o.ID)
		}
	}
	return ids, nil
}

// Undelivered is an answer that did not arrive: a dead letter, in doubt, or set aside because of its age.
type Undelivered struct {
	ID      workspace.OutboundID   `json:"id"`
	Short   string                 `json:"short"`
	State   workspace.PartState    `json:"state"` // of its first undelivered part
	Error   string                 `json:"error,omitempty"`
	Room    string                 `json:"room"` // network:account:kind:peer
	Title   string                 `json:"title,omitempty"`
	Kind    workspace.OutboundKind `json:"kind"`
	RunID   workspace.RunID        `json:"run_id,omitempty"`
	Text    string                 `json:"text"`
	Parts   int                    `json:"parts"` // all of it
	Sent    int                    `json:"sent"`  // of them
	Tries   int                    `json:"tries"` // of the undelivered part
	Created time.Time              `json:"created"`
}

// undeliveredStates are those that ListUndelivered lists, the worst first.
func undeliveredStates() []workspace.PartState {
	return []workspace.PartState{workspace.PartDead, workspace.PartUnknown, workspace.PartParked}
}

// UndeliveredIn asks for a page of them.
type UndeliveredIn struct {
	State workspace.PartState `query:"state" help:"only those in this *state*" enum:"dead,unknown,parked"`
	spec.Page
}

var ListUndelivered = Verb[UndeliveredIn, spec.List[Undelivered]]{
	Name: "outbound.list", Help: "List answers that are dead, in doubt (unknown) or too late (parked), the newest first", Rights: rights.Owners,
	HTTP: "GET /v1/outbound", Group: "outbound", CLI: "outbound list",
	Do: func(_ context.Context, c *Control, _ Call, in UndeliveredIn) (spec.List[Undelivered], error) {
		states := undeliveredStates()
		if in.State != "" {
			states = []workspace.PartState{in.State}
		}
		found, err := c.Store.OutboundIn(states, workspace.OutboundID(in.After), in.Limit+1)
		list := make([]Undelivered, 0, len(found))
		for _, o := range found {
			list = append(list, c.undelivered(o))
		}
		return spec.PageOf(list, in.Limit, func(l Undelivered) string { return string(l.ID) }), err
	},
	Show: func(_ UndeliveredIn, l spec.List[Undelivered]) spec.Shown {
		s := spec.Shown{Heads: []string{"ID", "STATE", "ROOM", "MADE", "ANSWER", "WHY"}, Next: l.Next}
		for _, x := range l.Items {
			s.Rows = append(s.Rows, []any{x.Short, x.State, x.Room, x.Created, spec.Brief{Text: x.Text, Columns: 40}, x.Error})
		}
		return s
	},
}

func (c *Control) undelivered(o workspace.Outbound) Undelivered {
	l := Undelivered{ID: o.ID, Short: workspace.Short(o.ID), Kind: o.Kind, RunID: o.RunID, Text: o.Text, Parts: len(o.Parts), Created: o.Created}
	for _, p := range o.Parts {
		if p.State == workspace.PartSent {
			l.Sent++
		}
		if l.State == "" && slices.Contains(undeliveredStates(), p.State) {
			l.State, l.Error, l.Tries = p.State, p.Why(), p.Tries
		}
	}
	if room, err := c.Store.Room(o.RoomID); err == nil {
		l.Room, l.Title = room.Address.String(), room.Title
	}
	return l
}

// RetryUndelivered sends from the undelivered part on. What may have been sent says so.
var RetryUndelivered = Verb[ByID, Undelivered]{
	Name: "outbound.retry", Help: "Send an answer after all; one that may have been sent says so", Rights: rights.Owners,
	HTTP: "POST /v1/outbound/{id}/retry", Group: "outbound", CLI: "outbound retry <id>",
	Do: func(_ context.Context, c *Control, _ Call, in ByID) (Undelivered, error) {
		l, err := c.findUndelivered(in.ID)
		if err != nil {
			return Undelivered{}, err
		}
		o, err := c.Store.Retry(l.ID)
		if err != nil {
			return Undelivered{}, moved(err)
		}
		c.Outbox.PushAll([]workspace.Outbound{o})
		l.State, l.Error = workspace.PartReady, ""
		return l, nil
	},
	Show: func(_ ByID, l Undelivered) spec.Shown {
		return spec.Shown{Line: "answer " + l.Short + " to " + l.Room + " goes out now"}
	},
}

var DropUndelivered = Verb[ByID, Undelivered]{
	Name: "outbound.drop", Help: "End an answer for good", Rights: rights.Owners,
	HTTP: "POST /v1/outbound/{id}/drop", Group: "outbound", CLI: "outbound drop <id>",
	Do: func(_ context.Context, c *Control, call Call, in ByID) (Undelivered, error) {
		l, err := c.findUndelivered(in.ID)
		if err != nil {
			return Undelivered{}, err
		}
		if err := c.Store.Drop(l.ID, "dropped by "+string(call.Actor.Person)); err != nil {
			return Undelivered{}, moved(err)
		}
		l.State = workspace.PartCancelled
		return l, nil
	},
	Show: func(_ ByID, l Undelivered) spec.Shown {
		return spec.Shown{Line: "answer " + l.Short + " to " + l.Room + " is dropped"}
	},
}

func moved(err error) error {
	if errors.Is(err, workspace.ErrConflict) {
		return workspace.Say(err, "That answer was sent or dropped just now.")
	}
	return err
}

// undeliveredSought is how many of the newest a short id is looked for among.
const undeliveredSought = 1000

// findUndelivered finds by id, whole or short.
func (c *Control) findUndelivered(which string) (Undelivered, error) {
	found, err := c.Store.OutboundIn(undeliveredStates(), "", undeliveredSought)
	if err != nil {
		return Undelivered{}, err
	}
	var hits []workspace.Outbound
	for _, o := range found {
		switch {
		case strings.EqualFold(string(o.ID), which):
			return c.undelivered(o), nil
		case strings.EqualFold(workspace.Short(o.ID), which):
			hits = append(hits, o)
		}
	}
	switch len(hits) {
	case 0:
		return Undelivered{}, workspace.Say(workspace.ErrNotFound, "There is no undelivered answer %q.", which)
	case 1:
		return c.undelivered(hits[0]), nil
	}
	return Undelivered{}, workspace.Say(workspace.ErrInvalid, "%d answers are called %q. Use the whole id.", len(hits), which)
}
