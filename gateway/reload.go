package gateway

import (
	"errors"
	"strings"

	"parley/channels"
	"parley/configs"
	"parley/workspace"
)

// reload puts a changed configuration in force for what begins from now on. Running turns keep the one they have.
func (g *Gateway) reload(old, c *configs.Config) {
	if old == c {
		g.log.Info("configuration is as it was again", "path", c.Path)
		return
	}
	if need := configs.NeedsRestart(old, c); len(need) > 0 {
		g.log.Warn("some changes wait for a restart", "keys", strings.Join(need, ", "))
	}
	g.renew.Lock()
	defer g.renew.Unlock()
	r, err := g.newRoster(c, g.modelsOf(c))
	if err != nil {
		g.badReload(err)
		return
	}
	for _, id := range r.order {
		if _, err := r.agents[id].Files.Scaffold(); err != nil {
			g.badReload(err)
			return
		}
	}
	renew, err := g.renewals(c)
	if err != nil {
		g.badReload(err)
		return
	}
	row, err := configRow(workspace.AuditConfigReloaded, c)
	if err == nil {
		err = g.syncPeople(c, row)
	}
	if err != nil {
		g.badReload(err)
		return
	}
	g.hide()
	g.current.Store(r)
	r.models.Resize(c.Concurrency.PerModel)
	for _, conf := range c.Channels {
		if l := g.lines.byName(conf.Name); l != nil {
			l.setAccess(access(conf.Access))
		}
	}
	for l, r := range renew {
		g.lines.disown(l, l.account())
		l.renew(r)
	}
	g.people.forget()
	g.lookNow()
	g.warn(c)
	g.log.Info("configuration reloaded", "path", c.Path)
}

// badReload says why the configuration in force stays.
func (g *Gateway) badReload(err error) {
	g.log.Error("configuration stays as it was", "err", err)
	row := workspace.AuditRow{Kind: workspace.AuditConfigRefused, Via: "config", What: map[string]any{"error": err.Error()}}
	if err := g.store.Audit(row); err != nil {
		g.log.Error("audit row is not kept", "kind", row.Kind, "err", err)
	}
}

// syncPeople makes the configured people known, with rows of the audit log, and person local, the owner at this machine, if nobody owns it.
func (g *Gateway) syncPeople(c *configs.Config, audit ...workspace.AuditRow) error {
	var list []workspace.Person
	for _, p := range c.People {
		list = append(list, workspace.Person{ID: workspace.PersonID(p.ID), Role: workspace.Role(p.Role), Name: p.Name, TZ: p.TZ})
	}
	if id, _ := owner(c); id == localOwner {
		list = append(list, workspace.Person{ID: localOwner, Role: workspace.Owner, Name: "local"})
	}
	return g.store.SyncPeople(list, audit...)
}

const localOwner = "local"

// learnAccounts binds the configured people to a channel's users, once the network has told the account.
func (g *Gateway) learnAccounts(l *line) error {
	c := g.opt.Source.Current()
	var accounts []workspace.Account
	for _, p := range c.People {
		for _, a := range p.Accounts {
			if a.Channel == l.name {
				accounts = append(accounts, workspace.Account{User: channels.UserID(a.User), Person: workspace.PersonID(p.ID)})
			}
		}
	}
	if l.account() == "" {
		if len(accounts) == 0 {
			return nil
		}
		return errors.New("the network has not told the account yet")
	}
	defer g.people.forget()
	return g.store.SyncAccounts(l.network, l.account(), accounts)
}
