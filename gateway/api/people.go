package api

import (
	"net/http"
	"time"

	"parley/gateway/control"
	"parley/workspace"
)

// personItem is somebody who is known.
type personItem struct {
	ID         string        `json:"id"`
	Name       string        `json:"name"`
	Role       string        `json:"role"`
	TZ         string        `json:"tz,omitempty"`
	Configured bool          `json:"configured"` // named in the configuration, which rules
	Created    *time.Time    `json:"created,omitempty"`
	Accounts   []accountItem `json:"accounts"`
}

// accountItem is a network user that speaks for a person.
type accountItem struct {
	Network    string `json:"network"`
	Account    string `json:"account"` // the bot's own id there
	User       string `json:"user"`
	Name       string `json:"name,omitempty"` // as they call themselves: a label
	Configured bool   `json:"configured"`
}

func personOf(h control.Human) personItem {
	v := personItem{ID: string(h.ID), Name: h.Name, Role: string(h.Role), TZ: h.TZ, Configured: h.Configured, Created: moment(h.Created), Accounts: []accountItem{}}
	for _, a := range h.Accounts {
		v.Accounts = append(v.Accounts, accountItem{string(a.Network), string(a.Account.Account), string(a.User), a.Name, a.Configured})
	}
	return v
}

func (s *server) listPeople(w http.ResponseWriter, r *http.Request) error {
	p, err := pageOf(r)
	if err != nil {
		return err
	}
	found, err := s.opt.Control.People(r.Context(), s.call(r), workspace.PersonID(p.after), p.limit+1)
	if err != nil {
		return err
	}
	var views []personItem
	for _, h := range found {
		views = append(views, personOf(h))
	}
	reply(w, http.StatusOK, listOf(views, p.limit, func(v personItem) string { return v.ID }))
	return nil
}

func (s *server) getPerson(w http.ResponseWriter, r *http.Request) error {
	h, err := s.opt.Control.Person(r.Context(), s.call(r), r.PathValue("id"))
	if err == nil {
		reply(w, http.StatusOK, personOf(h))
	}
	return err
}
