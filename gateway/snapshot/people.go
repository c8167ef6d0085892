package snapshot

import (
	"time"

	"parley/channels"
	"parley/configs"
	"parley/workspace"
)

// Owner is the person for whom the gateway's token speaks, as far as the configuration says: the first owner that it names, else
// person local, who may have become somebody else since (store.Store.SyncPeople).
func Owner(c *configs.Config) workspace.Actor {
	for _, p := range c.People {
		if p.Role == string(workspace.Owner) {
			return workspace.Actor{Person: workspace.PersonID(p.ID), Role: workspace.Owner, Name: p.Name}
		}
	}
	return workspace.Actor{Person: workspace.LocalOwner, Role: workspace.Owner, Name: workspace.LocalOwner}
}

// OwnerNow is for whom it speaks, by whom local is now.
func OwnerNow(c *configs.Config, local workspace.Actor) workspace.Actor {
	if local.Role == workspace.Owner {
		return local
	}
	return Owner(c) // it names a person local, who is no owner
}

// People are the configured people, in the order of the file.
func People(c *configs.Config) (list []workspace.Person) {
	for _, p := range c.People {
		list = append(list, workspace.Person{ID: workspace.PersonID(p.ID), Role: workspace.Role(p.Role), Name: p.Name, TZ: p.TZ})
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
