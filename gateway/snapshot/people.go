package snapshot

import (
	"time"

	"parley/channels"
	"parley/configs"
	"parley/workspace"
)

// LocalOwner is the owner at this machine where the configuration does not name one owner.
const LocalOwner = "local"

// Owner is the person for whom the gateway's token speaks: the one configured owner, else person local.
func Owner(c *configs.Config) workspace.Actor {
	local := workspace.Actor{Person: LocalOwner, Role: workspace.Owner, Name: LocalOwner}
	who, n := local, 0
	for _, p := range c.People {
		if p.Role == string(workspace.Owner) {
			n++
			who = workspace.Actor{Person: workspace.PersonID(p.ID), Role: workspace.Owner, Name: p.Name}
		}
	}
	if n != 1 {
		return local
	}
	return who
}

// People are the configured people, and person local if nobody owns this machine.
func People(c *configs.Config) (list []workspace.Person) {
	for _, p := range c.People {
		list = append(list, workspace.Person{ID: workspace.PersonID(p.ID), Role: workspace.Role(p.Role), Name: p.Name, TZ: p.TZ})
	}
	if o := Owner(c); o.Person == LocalOwner {
		list = append(list, workspace.Person{ID: o.Person, Role: o.Role, Name: o.Name})
	}
	return list
}

// Accounts are the users of a channel that are configured people.
func Accounts(c *configs.Config, channel string) (list []workspace.Account) {
	for _, p := range c.People {
		for _, a := range p.Accounts {
			if a.Channel == channel {
				list = append(list, workspace.Account{User: channels.UserID(a.User), Person: workspace.PersonID(p.ID)})
			}
		}
	}
	return list
}

// zones are the time zones of people that name one.
func zones(c *configs.Config) map[workspace.PersonID]*time.Location {
	all := map[workspace.PersonID]*time.Location{}
	for _, p := range c.People {
		if zone, err := time.LoadLocation(p.TZ); err == nil && p.TZ != "" {
			all[workspace.PersonID(p.ID)] = zone
		}
	}
	return all
}
