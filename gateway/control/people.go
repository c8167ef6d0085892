package control

import (
	"context"
	"strings"
	"time"

	"parley/gateway/rights"
	"parley/gateway/spec"
	"parley/workspace"
	"parley/workspace/clip"
	"parley/workspace/store"
)

// PersonItem is somebody who is known, with the accounts that speak for them.
type PersonItem struct {
	ID         string        `json:"id"`
	Name       string        `json:"name"`
	Role       string        `json:"role"`
	TZ         string        `json:"tz,omitempty"`
	Configured bool          `json:"configured"` // named in the configuration, which rules
	Created    *time.Time    `json:"created,omitempty"`
	Accounts   []AccountItem `json:"accounts"`
}

// AccountItem is a network user that speaks for a person.
type AccountItem struct {
	Network    string `json:"network"`
	Account    string `json:"account"` // the bot's own id there
	User       string `json:"user"`
	Name       string `json:"name,omitempty"` // as they call themselves: a label
	Configured bool   `json:"configured"`
}

func personItem(h store.Human) PersonItem {
	v := PersonItem{ID: string(h.ID), Name: h.Name, Role: string(h.Role), TZ: h.TZ, Configured: h.Configured, Created: Moment(h.Created), Accounts: []AccountItem{}}
	for _, a := range h.Accounts {
		v.Accounts = append(v.Accounts, AccountItem{string(a.Network), string(a.Account.Account), string(a.User), a.Name, a.Configured})
	}
	return v
}

var ListPeople = Verb[spec.Page, spec.List[PersonItem]]{
	Name: "people", Help: "List those who are known", Rights: rights.Owners,
	HTTP: "GET /v1/people", Group: "people", CLI: "people list",
	Do: func(_ context.Context, c *Control, _ Call, in spec.Page) (spec.List[PersonItem], error) {
		found, err := c.Store.Humans(workspace.PersonID(in.After), in.Limit+1)
		list := make([]PersonItem, 0, len(found))
		for _, h := range found {
			list = append(list, personItem(h))
		}
		return spec.PageOf(list, in.Limit, func(v PersonItem) string { return v.ID }), err
	},
	Show: func(_ spec.Page, l spec.List[PersonItem]) spec.Shown {
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

// ByID names one thing of a kind.
type ByID struct {
	ID string `path:"id"`
}

var ShowPerson = Verb[ByID, PersonItem]{
	Name: "people", Help: "Show one of them", Rights: rights.Owners,
	HTTP: "GET /v1/people/{id}", Group: "people", CLI: "people show <id>",
	Do: func(_ context.Context, c *Control, _ Call, in ByID) (PersonItem, error) {
		h, err := c.Store.Human(workspace.PersonID(in.ID))
		if err != nil {
			return PersonItem{}, workspace.Say(err, "There is nobody with the id %q.", clip.Runes(in.ID, 80))
		}
		return personItem(h), nil
	},
	Show: func(_ ByID, p PersonItem) spec.Shown {
		s := spec.Shown{Rows: [][]any{{"id", p.ID}, {"name", p.Name}, {"role", p.Role}, {"zone", p.TZ}}}
		for _, a := range p.Accounts {
			s.Rows = append(s.Rows, []any{"account", strings.TrimSpace(a.Network + " user " + a.User + " " + a.Name)})
		}
		return s
	},
}
