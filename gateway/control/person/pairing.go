package person

import (
	"context"
	"errors"
	"strings"
	"time"

	"parley/gateway/control"
	"parley/gateway/rights"
	"parley/gateway/spec"
	"parley/routes"
	"parley/workspace"
	"parley/workspace/store"
)

const pairingsShown = 200

// Pairing is a stranger's request. The code is known to the stranger only.
type Pairing struct {
	ID        string     `json:"id"`
	Short     string     `json:"short"`
	Channel   string     `json:"channel"`
	Network   string     `json:"type"`
	User      string     `json:"user"`
	Name      string     `json:"name,omitempty"` // as they call themselves: a label
	AskedBy   string     `json:"asked_by"`       // the network, its id of the sender and, in quotes, the name: what to show
	State     string     `json:"state"`
	Requested time.Time  `json:"requested"`
	Decided   *time.Time `json:"decided,omitempty"`
	DecidedBy string     `json:"decided_by,omitempty"`
	Person    string     `json:"person,omitempty"` // whom an approval made
	Role      string     `json:"role,omitempty"`
}

func pairingItem(p workspace.Pairing) Pairing {
	return Pairing{ID: p.ID, Short: workspace.Short(p.ID), Channel: p.Channel, Network: string(p.Network),
		User: string(p.User), Name: p.Name, AskedBy: workspace.Stranger(string(p.Network), string(p.User), p.Name), State: string(p.State),
		Requested: p.Requested.UTC(), Decided: control.Moment(p.Decided), DecidedBy: string(p.DecidedBy)}
}

var ListPairings = control.Verb[*People, struct{}, spec.List[Pairing]]{
	Name: "pairing.list", Help: "List the newest requests of strangers", Rights: rights.Owners,
	HTTP: "GET /v1/pairings", Group: "people", CLI: "pairing list",
	Do: func(_ context.Context, c *People, _ control.Call, _ struct{}) (spec.List[Pairing], error) {
		found, err := c.Store.Pairings(pairingsShown)
		list := make([]Pairing, 0, len(found))
		for _, p := range found {
			list = append(list, pairingItem(p))
		}
		return spec.Whole(list), err
	},
	Show: func(_ struct{}, l spec.List[Pairing]) spec.Shown {
		s := spec.Shown{Heads: []string{"ID", "CHANNEL", "ASKED BY", "STATE", "ASKED"}}
		for _, p := range l.Items {
			s.Rows = append(s.Rows, []any{p.Short, p.Channel, p.AskedBy, p.State, p.Requested})
		}
		return s
	},
}

// Waiting is how many requests of strangers wait for a decision of the caller; none, when it is not theirs to decide.
func (c *People) Waiting(call control.Call) (n int, err error) {
	if !c.May(call, "pairing.list") {
		return 0, nil
	}
	list, err := c.Store.Pairings(pairingsShown)
	for _, p := range list {
		if routes.PairingOpen(p, c.Now()) {
			n++
		}
	}
	return n, err
}

// ApproveIn names a stranger's request and what the stranger becomes.
type ApproveIn struct {
	ID string         `path:"id" help:"the code that the sender was given, or the request's id, whole or short"`
	As workspace.Role `json:"as,omitempty" help:"the person's *role*" enum:"guest,member,owner" default:"guest"`
}

var ApprovePairing = control.Verb[*People, ApproveIn, Pairing]{
	Name: "pairing.approve", Help: "Let the sender of a code, or of a request's id, speak", Rights: rights.Owners,
	HTTP: "POST /v1/pairings/{id}/approve", Group: "people", CLI: "pairing approve <id>",
	Do: func(_ context.Context, c *People, call control.Call, in ApproveIn) (Pairing, error) {
		if in.As == workspace.Owner {
			if err := control.RefuseBorrowed(call, control.PairingOwner); err != nil {
				return Pairing{}, err
			}
		}
		p, err := c.foundPairing(call, in.ID)
		if err != nil {
			return Pairing{}, err
		}
		const welcome = "You are approved. Write to me as you like; /help says what I can do."
		acc, err := c.decide(call, p, in.As, &store.NewOutbound{Key: "send:pairing:" + p.ID, Kind: workspace.OutMessage, Text: welcome,
			Spans: []store.Span{{To: len(welcome)}}})
		v := pairingItem(p)
		v.Person, v.Role = string(acc.Person), string(in.As)
		return v, err
	},
	Show: func(_ ApproveIn, p Pairing) spec.Shown {
		return spec.Shown{Line: p.AskedBy + " may speak on " + p.Channel + " as " + p.Role}
	},
}

// foundPairing is the request that somebody approves, by its code or id. A wrong code is a try, and kept.
func (c *People) foundPairing(call control.Call, which string) (workspace.Pairing, error) {
	list, err := c.Store.Pairings(pairingsShown)
	if err != nil {
		return workspace.Pairing{}, err
	}
	if found, ok := byID(list, which); ok {
		return routes.DecidePairing(found, workspace.PairingApproved, call.Actor.Person, c.Now())
	}
	p, changed, err := routes.RedeemCode(list, which, call.Actor.Person, c.Now())
	if err != nil && len(changed) > 0 {
		err = errors.Join(err, c.Store.PutPairings(changed...))
	}
	return p, err
}

var DenyPairing = control.Verb[*People, control.ByID, Pairing]{
	Name: "pairing.deny", Help: "End a request; its sender hears nothing", Rights: rights.Owners,
	HTTP: "POST /v1/pairings/{id}/deny", Group: "people", CLI: "pairing deny <id>",
	Do: func(_ context.Context, c *People, call control.Call, in control.ByID) (Pairing, error) {
		list, err := c.Store.Pairings(pairingsShown)
		if err != nil {
			return Pairing{}, err
		}
		found, ok := byID(list, in.ID)
		if !ok {
			return Pairing{}, workspace.Say(workspace.ErrNotFound, "There is no request %q.", in.ID)
		}
		p, err := routes.DecidePairing(found, workspace.PairingDenied, call.Actor.Person, c.Now())
		if err == nil {
			_, err = c.decide(call, p, workspace.Nobody, nil)
		}
		return pairingItem(p), err
	},
	Show: func(_ control.ByID, p Pairing) spec.Shown { return spec.Shown{Line: p.AskedBy + " is denied"} },
}

func (c *People) decide(call control.Call, p workspace.Pairing, as workspace.Role, notice *store.NewOutbound) (workspace.Account, error) {
	what := map[string]any{"request": p.ID, "state": string(p.State), "role": string(as), "channel": p.Channel,
		"network": string(p.Network), "account": string(p.Account), "user": string(p.User), "name": p.Name}
	acc, out, err := c.Store.DecidePairing(p, as, notice, c.AuditRow(call, workspace.AuditPairingDecided, what))
	if errors.Is(err, workspace.ErrConflict) {
		return acc, workspace.Say(err, "Somebody else decided this request just now.")
	}
	if err != nil {
		return acc, err
	}
	c.Changed()
	c.Push(out)
	return acc, nil
}

func byID(list []workspace.Pairing, which string) (workspace.Pairing, bool) {
	for _, p := range list {
		if strings.EqualFold(p.ID, which) || strings.EqualFold(workspace.Short(p.ID), which) {
			return p, true
		}
	}
	return workspace.Pairing{}, false
}
