// Package outbound is the verbs about answers that did not arrive: all of them listed, sent after all or dropped.
package outbound

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"parley/gateway/control"
	"parley/gateway/rights"
	"parley/gateway/spec"
	"parley/workspace"
)

// Outbound does the verbs about answers that did not arrive. All fields are needed.
type Outbound struct {
	*control.Kernel
	Store Store
}

// Store is what these verbs use of it.
type Store interface {
	OutboundIn(states []workspace.PartState, after workspace.OutboundID, limit int) ([]workspace.Outbound, error)
	Room(id workspace.RoomID) (workspace.Room, error)
	Retry(id workspace.OutboundID) (workspace.Outbound, error)
	Drop(id workspace.OutboundID, why string) error
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

// states are those that List lists, the worst first.
func states() []workspace.PartState {
	return []workspace.PartState{workspace.PartDead, workspace.PartUnknown, workspace.PartParked}
}

// ListIn asks for a page of them.
type ListIn struct {
	State workspace.PartState `query:"state" help:"only those in this *state*" enum:"dead,unknown,parked"`
	spec.Page
}

var List = control.Verb[*Outbound, ListIn, spec.List[Undelivered]]{
	Name: "outbound.list", Rights: rights.Owners,
	Help: "List answers that are dead, in doubt (unknown) or too late (parked), the newest first",
	HTTP: "GET /v1/outbound", Group: "outbound", CLI: "outbound list",
	Do: func(_ context.Context, c *Outbound, _ control.Call, in ListIn) (spec.List[Undelivered], error) {
		wanted := states()
		if in.State != "" {
			wanted = []workspace.PartState{in.State}
		}
		found, err := c.Store.OutboundIn(wanted, workspace.OutboundID(in.After), in.Limit+1)
		list := make([]Undelivered, 0, len(found))
		for _, o := range found {
			list = append(list, c.view(o))
		}
		return spec.PageOf(list, in.Limit, func(l Undelivered) string { return string(l.ID) }), err
	},
	Show: func(_ ListIn, l spec.List[Undelivered]) spec.Shown {
		s := spec.Shown{Heads: []string{"ID", "STATE", "ROOM", "MADE", "ANSWER", "WHY"}, Next: l.Next}
		for _, x := range l.Items {
			s.Rows = append(s.Rows, []any{x.Short, x.State, x.Room, x.Created, spec.Brief{Text: x.Text, Columns: 40}, x.Error})
		}
		return s
	},
}

func (c *Outbound) view(o workspace.Outbound) Undelivered {
	l := Undelivered{ID: o.ID, Short: workspace.Short(o.ID), Kind: o.Kind, RunID: o.RunID, Text: o.Text,
		Parts: len(o.Parts), Created: o.Created}
	for _, p := range o.Parts {
		if p.State == workspace.PartSent {
			l.Sent++
		}
		if l.State == "" && slices.Contains(states(), p.State) {
			l.State, l.Error, l.Tries = p.State, p.Why(), p.Tries
		}
	}
	if room, err := c.Store.Room(o.RoomID); err == nil {
		l.Room, l.Title = room.Address.String(), room.Title
	}
	return l
}

// Retry sends from the undelivered part on. What may have been sent says so.
var Retry = control.Verb[*Outbound, control.ByID, Undelivered]{
	Name: "outbound.retry", Help: "Send an answer after all; one that may have been sent says so", Rights: rights.Owners,
	HTTP: "POST /v1/outbound/{id}/retry", Group: "outbound", CLI: "outbound retry <id>",
	Do: func(_ context.Context, c *Outbound, _ control.Call, in control.ByID) (Undelivered, error) {
		l, err := c.find(in.ID)
		if err != nil {
			return Undelivered{}, err
		}
		o, err := c.Store.Retry(l.ID)
		if err != nil {
			return Undelivered{}, moved(err)
		}
		c.Push([]workspace.Outbound{o})
		l.State, l.Error = workspace.PartReady, ""
		return l, nil
	},
	Show: func(_ control.ByID, l Undelivered) spec.Shown {
		return spec.Shown{Line: "answer " + l.Short + " to " + l.Room + " goes out now"}
	},
}

var Drop = control.Verb[*Outbound, control.ByID, Undelivered]{
	Name: "outbound.drop", Help: "End an answer for good", Rights: rights.Owners,
	HTTP: "POST /v1/outbound/{id}/drop", Group: "outbound", CLI: "outbound drop <id>",
	Do: func(_ context.Context, c *Outbound, call control.Call, in control.ByID) (Undelivered, error) {
		l, err := c.find(in.ID)
		if err != nil {
			return Undelivered{}, err
		}
		if err := c.Store.Drop(l.ID, "dropped by "+string(call.Actor.Person)); err != nil {
			return Undelivered{}, moved(err)
		}
		l.State = workspace.PartCancelled
		return l, nil
	},
	Show: func(_ control.ByID, l Undelivered) spec.Shown {
		return spec.Shown{Line: "answer " + l.Short + " to " + l.Room + " is dropped"}
	},
}

func moved(err error) error {
	if errors.Is(err, workspace.ErrConflict) {
		return workspace.Say(err, "That answer was sent or dropped just now.")
	}
	return err
}

// sought is how many of the newest a short id is looked for among.
const sought = 1000

// find finds by id, whole or short.
func (c *Outbound) find(which string) (Undelivered, error) {
	found, err := c.Store.OutboundIn(states(), "", sought)
	if err != nil {
		return Undelivered{}, err
	}
	var hits []workspace.Outbound
	for _, o := range found {
		switch {
		case strings.EqualFold(string(o.ID), which):
			return c.view(o), nil
		case strings.EqualFold(workspace.Short(o.ID), which):
			hits = append(hits, o)
		}
	}
	switch len(hits) {
	case 0:
		return Undelivered{}, workspace.Say(workspace.ErrNotFound, "There is no undelivered answer %q.", which)
	case 1:
		return c.view(hits[0]), nil
	}
	return Undelivered{}, workspace.Say(workspace.ErrInvalid, "%d answers are called %q. Use the whole id.", len(hits), which)
}
