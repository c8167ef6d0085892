package snapshot

import (
	"time"

	"parley/configs"
	"parley/workspace"
)

// Domain is a kind of action that keeps an owner of its own, as configured, with how that owner is asked.
type Domain struct {
	Name     string
	People   []workspace.PersonID
	Roles    []workspace.Role
	Surfaces []string // http, cli, channel:NAME:PEER; empty: anywhere
	// RequesterMay says that who asked may approve.
	RequesterMay bool
	// Elsewhere says that its own system is asked, and no person here.
	Elsewhere bool
	Handler   string // internal, webhook, command, deny
	URL       string
	Secret    configs.Secret
	Command   []string
	TTL       time.Duration // how long a question of it stands
}

func domains(list []configs.Domain) map[string]Domain {
	all := map[string]Domain{}
	for _, d := range list {
		one := Domain{Name: d.Name, Surfaces: d.Owner.Surfaces, RequesterMay: d.RequesterMayDecide,
			Elsewhere: d.Handler == "webhook" || d.Handler == "command",
			Handler:   d.Handler, URL: d.URL, Secret: d.Secret, Command: d.Command, TTL: d.TTL}
		for _, p := range d.Owner.People {
			one.People = append(one.People, workspace.PersonID(p))
		}
		for _, r := range d.Owner.Roles {
			one.Roles = append(one.Roles, workspace.Role(r))
		}
		all[d.Name] = one
	}
	return all
}

// TTL is how long a question of a domain stands; empty: one that owners decide.
func (s *Snapshot) TTL(domain string) time.Duration {
	if d, ok := s.Domains[domain]; ok && domain != "" {
		return d.TTL
	}
	return s.Config.Approvals.Expire
}
