// Package person is the verbs about people: who is known, which strangers ask to be, who joins two accounts, and who calls.
package person

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"parley/gateway/control"
	"parley/gateway/rights"
	"parley/gateway/spec"
	"parley/workspace"
	"parley/workspace/clip"
	"parley/workspace/store"
)

// People does the verbs about people. All fields are needed.
type People struct {
	*control.Kernel
	Store   Store
	Version string // of the gateway
	Changed func() // drops what is remembered of who is who
}

// Store is what these verbs use of it.
type Store interface {
	Humans(after workspace.PersonID, limit int) ([]store.Human, error)
	Human(id workspace.PersonID) (store.Human, error)
	Pairings(limit int) ([]workspace.Pairing, error)
	PutPairings(list ...workspace.Pairing) error
	DecidePairing(p workspace.Pairing, role workspace.Role, notice *store.NewOutbound,
		rows ...workspace.AuditRow) (workspace.Account, []workspace.Outbound, error)
	Epoch() int64
}

// Item is somebody who is known, with the accounts that speak for them.
type Item struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	Role       string     `json:"role"`
	TZ         string     `json:"tz,omitempty"`
	Configured bool       `json:"configured"` // named in the configuration, which rules
	Created    *time.Time `json:"created,omitempty"`
	Accounts   []Account  `json:"accounts"`
}

// Account is a network user that speaks for a person.
type Account struct {
	Network    string `json:"network"`
	Account    string `json:"account"` // the bot's own id there
	User       string `json:"user"`
	Name       string `json:"name,omitempty"` // as they call themselves: a label
	Configured bool   `json:"configured"`
}

func itemOf(h store.Human) Item {
	v := Item{ID: string(h.ID), Name: h.Name, Role: string(h.Role), TZ: h.TZ, Configured: h.Configured,
		Created: control.Moment(h.Created), Accounts: []Account{}}
	for _, a := range h.Accounts {
		v.Accounts = append(v.Accounts, Account{string(a.Network), string(a.Account.Account), string(a.User), a.Name, a.Configured})
	}
	return v
}

var List = control.Verb[*People, spec.Page, spec.List[Item]]{
	Name: "people", Help: "List those who are known", Rights: rights.Owners,
	HTTP: "GET /v1/people", Group: "people", CLI: "people list",
	Do: func(_ context.Context, c *People, _ control.Call, in spec.Page) (spec.List[Item], error) {
		found, err := c.Store.Humans(workspace.PersonID(in.After), in.Limit+1)
		list := make([]Item, 0, len(found))
		for _, h := range found {
			list = append(list, itemOf(h))
		}
		return spec.PageOf(list, in.Limit, func(v Item) string { return v.ID }), err
	},
	Show: func(_ spec.Page, l spec.List[Item]) spec.Shown {
		s := spec.Shown{Heads: []string{"ID", "NAME", "ROLE", "ZONE", "ACCOUNTS"}, Next: l.Next}
		for _, p := range l.Items {
			var accounts []string
			for _, a := range p.Accounts {
				accounts = append(accounts, a.Network+":"+a.User)
			}
			s.Rows = append(s.Rows, []any{p.ID, p.Name, p.Role, p.TZ, strings.Join(accounts, " ")})
		}
		return s
	},
}

var Show = control.Verb[*People, control.ByID, Item]{
	Name: "people", Help: "Show one of them", Rights: rights.Owners,
	HTTP: "GET /v1/people/{id}", Group: "people", CLI: "people show <id>",
	Do: func(_ context.Context, c *People, _ control.Call, in control.ByID) (Item, error) {
		h, err := c.Store.Human(workspace.PersonID(in.ID))
		if err != nil {
			return Item{}, workspace.Say(err, "There is nobody with the id %q.", clip.Runes(in.ID, 80))
		}
		return itemOf(h), nil
	},
	Show: func(_ control.ByID, p Item) spec.Shown {
		s := spec.Shown{Rows: [][]any{{"id", p.ID}, {"name", p.Name}, {"role", p.Role}, {"zone", p.TZ}}}
		for _, a := range p.Accounts {
			s.Rows = append(s.Rows, []any{"account", strings.TrimSpace(a.Network + " user " + a.User + " " + a.Name)})
		}
		return s
	},
}

// Who is what the gateway knows of the one who asks.
type Who struct {
	workspace.Actor
	User    string // the network's id
	Network string
	Session string
	Agent   control.Agent
}

// WhoAmI tells people who they are here.
var WhoAmI = control.Verb[*People, struct{}, Who]{
	Name: "whoami", Help: "Show who somebody is taken for",
	Rights: rights.Row{Owner: rights.Yes, Member: rights.Own, Guest: rights.Own},
	Chat:   "whoami",
	Do: func(_ context.Context, c *People, call control.Call, _ struct{}) (Who, error) {
		w := Who{Actor: call.Actor, Session: call.Session.String()}
		w.Agent, _ = c.Find.Agent(call.Session.Agent)
		if call.Input != nil {
			w.User, w.Network = string(call.Input.Data.User), call.Input.Source
		}
		return w, c.Answer(call, w)
	},
	Say: func(w Who) string {
		s := fmt.Sprintf("You are `%s` (%s), role **%s**.", w.Person, cmp.Or(w.Name, "no name"), w.Role)
		if w.User != "" {
			s += fmt.Sprintf("\n- on %s you are user `%s`", w.Network, w.User)
		}
		return s + fmt.Sprintf("\n- this session is `%s`, answered by %s", w.Session, w.Agent.Name)
	},
}

// Caller is who asks.
type Caller struct {
	ID   string `json:"id"`
	Role string `json:"role"`
	Name string `json:"name"`
}

// Hello tells a page that begins who asks, and what answers.
type Hello struct {
	Person  Caller          `json:"person"`
	Version string          `json:"version"`
	Boot    int64           `json:"boot"` // counts the starts of this gateway
	Agents  []control.Agent `json:"agents"`
}

// Me tells programs who they are.
var Me = control.Verb[*People, struct{}, Hello]{
	Name: "me", Help: "Say who asks", Rights: rights.Row{Owner: rights.Direct, Member: rights.OwnDirect},
	HTTP: "GET /v1/me", Group: "page",
	Do: func(_ context.Context, c *People, call control.Call, _ struct{}) (Hello, error) {
		who := Caller{string(call.Actor.Person), string(call.Actor.Role), call.Actor.Name}
		return Hello{who, c.Version, c.Store.Epoch(), append([]control.Agent{}, c.Find.Agents()...)}, nil
	},
}
