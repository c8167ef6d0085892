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

// Resumed is how many parked messages are answered now.
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

// Letter is an answer that lies: dead, in doubt, or set aside because of its age.
type Letter struct {
	ID      workspace.OutboundID   `json:"id"`
	Short   string                 `json:"short"`
	State   workspace.PartState    `json:"state"` // of its first part that lies
	Error   string                 `json:"error,omitempty"`
	Room    string                 `json:"room"` // network:account:kind:peer
	Title   string                 `json:"title,omitempty"`
	Kind    workspace.OutboundKind `json:"kind"`
	RunID   workspace.RunID        `json:"run_id,omitempty"`
	Text    string                 `json:"text"`
	Parts   int                    `json:"parts"` // all of it
	Sent    int                    `json:"sent"`  // of them
	Tries   int                    `json:"tries"` // of the part that lies
	Created time.Time              `json:"created"`
}

// lying are the states that Letters lists, the worst first.
func lying() []workspace.PartState {
	return []workspace.PartState{workspace.PartDead, workspace.PartUnknown, workspace.PartParked}
}

// LettersIn asks for a page of them.
type LettersIn struct {
	State workspace.PartState `query:"state" help:"only those in this *state*" enum:"dead,unknown,parked"`
	spec.Page
}

var ListLetters = Verb[LettersIn, spec.List[Letter]]{
	Name: "outbound.list", Help: "List answers that are dead, in doubt (unknown) or too late (parked), the newest first", Rights: rights.Owners,
	HTTP: "GET /v1/outbound", Group: "outbound", CLI: "outbound list",
	Do: func(_ context.Context, c *Control, _ Call, in LettersIn) (spec.List[Letter], error) {
		states := lying()
		if in.State != "" {
			states = []workspace.PartState{in.State}
		}
		found, err := c.Store.Letters(states, workspace.OutboundID(in.After), in.Limit+1)
		list := make([]Letter, 0, len(found))
		for _, o := range found {
			list = append(list, c.letter(o))
		}
		return spec.PageOf(list, in.Limit, func(l Letter) string { return string(l.ID) }), err
	},
	Show: func(_ LettersIn, l spec.List[Letter]) spec.Shown {
		s := spec.Shown{Heads: []string{"ID", "STATE", "ROOM", "MADE", "ANSWER", "WHY"}, Next: l.Next}
		for _, x := range l.Items {
			s.Rows = append(s.Rows, []any{x.Short, x.State, x.Room, x.Created, spec.Brief{Text: x.Text, Columns: 40}, x.Error})
		}
		return s
	},
}

func (c *Control) letter(o workspace.Outbound) Letter {
	l := Letter{ID: o.ID, Short: workspace.Short(o.ID), Kind: o.Kind, RunID: o.RunID, Text: o.Text, Parts: len(o.Parts), Created: o.Created}
	for _, p := range o.Parts {
		if p.State == workspace.PartSent {
			l.Sent++
		}
		if l.State == "" && slices.Contains(lying(), p.State) {
			l.State, l.Error, l.Tries = p.State, p.Why(), p.Tries
		}
	}
	if room, err := c.Store.Room(o.RoomID); err == nil {
		l.Room, l.Title = room.Address.String(), room.Title
	}
	return l
}

// RetryLetter sends from the part that lies on. What may have been sent says so.
var RetryLetter = Verb[ByID, Letter]{
	Name: "outbound.retry", Help: "Send an answer after all; one that may have been sent says so", Rights: rights.Owners,
	HTTP: "POST /v1/outbound/{id}/retry", Group: "outbound", CLI: "outbound retry <id>",
	Do: func(_ context.Context, c *Control, _ Call, in ByID) (Letter, error) {
		l, err := c.findLetter(in.ID)
		if err != nil {
			return Letter{}, err
		}
		o, err := c.Store.Retry(l.ID)
		if err != nil {
			return Letter{}, moved(err)
		}
		c.Outbox.PushAll([]workspace.Outbound{o})
		l.State, l.Error = workspace.PartReady, ""
		return l, nil
	},
	Show: func(_ ByID, l Letter) spec.Shown {
		return spec.Shown{Line: "answer " + l.Short + " to " + l.Room + " goes out now"}
	},
}

var DropLetter = Verb[ByID, Letter]{
	Name: "outbound.drop", Help: "End an answer for good", Rights: rights.Owners,
	HTTP: "POST /v1/outbound/{id}/drop", Group: "outbound", CLI: "outbound drop <id>",
	Do: func(_ context.Context, c *Control, call Call, in ByID) (Letter, error) {
		l, err := c.findLetter(in.ID)
		if err != nil {
			return Letter{}, err
		}
		if err := c.Store.Drop(l.ID, "dropped by "+string(call.Actor.Person)); err != nil {
			return Letter{}, moved(err)
		}
		l.State = workspace.PartCancelled
		return l, nil
	},
	Show: func(_ ByID, l Letter) spec.Shown {
		return spec.Shown{Line: "answer " + l.Short + " to " + l.Room + " is dropped"}
	},
}

func moved(err error) error {
	if errors.Is(err, workspace.ErrConflict) {
		return workspace.Say(err, "That answer was sent or dropped just now.")
	}
	return err
}

// lettersSought is how many of the newest a short id is looked for among.
const lettersSought = 1000

// findLetter finds by id, whole or short.
func (c *Control) findLetter(which string) (Letter, error) {
	found, err := c.Store.Letters(lying(), "", lettersSought)
	if err != nil {
		return Letter{}, err
	}
	var hits []workspace.Outbound
	for _, o := range found {
		switch {
		case strings.EqualFold(string(o.ID), which):
			return c.letter(o), nil
		case strings.EqualFold(workspace.Short(o.ID), which):
			hits = append(hits, o)
		}
	}
	switch len(hits) {
	case 0:
		return Letter{}, workspace.Say(workspace.ErrNotFound, "There is no answer %q that lies.", which)
	case 1:
		return c.letter(hits[0]), nil
	}
	return Letter{}, workspace.Say(workspace.ErrInvalid, "%d answers are called %q. Use the whole id.", len(hits), which)
}
