package gateway

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"parley/configs"
	"parley/gateway/control"
	"parley/gateway/snapshot"
	"parley/gateway/transport"
	"parley/workspace"
)

// prepared is a configuration with all that it means, ready to be put in force.
type prepared struct {
	file     *configs.Config // as it was loaded
	next     snapshot.Prepared
	channels transport.Change
}

// reload is Source.Watch's prepare: it does all that can fail, and what it returns puts the configuration in force. Running
// turns keep the one that they began with.
func (g *Gateway) reload(old, file *configs.Config) (commit func(), err error) {
	if old == file {
		return func() {
			g.conf.took(nil, g.opt.Now())
			g.log.Info("configuration restored", "path", file.Path)
		}, nil
	}
	g.opt.Secrets.gather(file) // before anything can tell of it
	p, err := g.prepare(file)
	if err != nil {
		return nil, err
	}
	return func() {
		g.commit(p)
		if need := configs.NeedsRestart(old, file); len(need) > 0 {
			g.log.Warn("configuration changes wait for a restart", "keys", strings.Join(need, ", "))
		}
		g.warn(file)
		g.log.Info("configuration reloaded", "path", file.Path)
	}, nil
}

// prepare builds everything that a loaded configuration means. Nothing of it is in force before commit, except that the
// people are known: their unit is the last step that can fail.
func (g *Gateway) prepare(file *configs.Config) (_ *prepared, err error) {
	c := configs.Running(g.config(), file)
	if err := makeToken(c); err != nil {
		return nil, fmt.Errorf("make the gateway's token: %w", err)
	}
	next, err := g.snapshots.Prepare(c)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			next.Drop()
		}
	}()
	p := &prepared{file: file, next: next}
	if p.channels, err = g.channels.Prepare(c.Channels); err != nil {
		return nil, err
	}
	row, err := configRow(workspace.AuditConfigReloaded, file)
	if err != nil {
		return nil, err
	}
	return p, g.syncPeople(c, row)
}

// commit puts what was prepared in force. It cannot fail.
func (g *Gateway) commit(p *prepared) {
	p.next.Commit()
	g.conf.took(p.file, g.opt.Now())
	c := p.next.Config
	g.loadFolders(c)
	g.channels.Apply(p.channels)
	g.deliver.Wake()
	g.directory.ForgetPeople()
}

// badReload says why the configuration in force stays.
func (g *Gateway) badReload(err error) {
	err = g.opt.Secrets.hidden(err)
	g.conf.refused(err, g.opt.Now())
	g.log.Error("configuration refused, the former one stays in force", "err", err)
	row := workspace.AuditRow{Kind: workspace.AuditConfigRefused, Via: "config", What: map[string]any{"error": err.Error()}}
	if err := g.store.Audit(row); err != nil {
		g.log.Error("audit row is not kept", "kind", row.Kind, "err", err)
	}
}

// fileState is how the configuration in force and its file stand to one another.
type fileState struct {
	mu      sync.Mutex
	began   *configs.Config // that the process started with
	file    *configs.Config // that was taken last
	since   time.Time       // when it was
	problem string          // of what the file holds now; empty: it is in force
	at      time.Time       // of the problem
}

// took notes a configuration that came into force; nil: the one in force is in the file again.
func (f *fileState) took(file *configs.Config, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.problem, f.at = "", (time.Time{}); file == nil {
		return
	}
	if f.began == nil {
		f.began = file
	}
	f.file, f.since = file, now
}

func (f *fileState) refused(err error, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.problem, f.at = err.Error(), now
}

// view is what people are told of it.
func (f *fileState) view() (v control.ConfigFile) {
	f.mu.Lock()
	defer f.mu.Unlock()
	v = control.ConfigFile{Path: f.file.Path, Since: f.since, Problem: f.problem, Waits: configs.NeedsRestart(f.began, f.file)}
	if f.problem != "" {
		at := f.at
		v.ProblemAt = &at
	}
	return v
}

// syncPeople makes the configured people known, with rows of the audit log.
func (g *Gateway) syncPeople(c *configs.Config, audit ...workspace.AuditRow) error {
	return g.store.SyncPeople(snapshot.People(c), audit...)
}
