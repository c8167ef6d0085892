package gateway

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"parley/configs"
	"parley/tools/sandbox/egress"
	"parley/workspace"
	"parley/workspace/folder"
	"parley/workspace/store"
)

// auditedConfig is the setting with the hash of the configuration that the audit log told of last.
const auditedConfig = "audit_config"

// configRow tells that a configuration is in force. Its hash is of what `parley config show` prints.
func configRow(kind string, c *configs.Config) (workspace.AuditRow, error) {
	text, err := c.Show()
	if err != nil {
		return workspace.AuditRow{}, err
	}
	return workspace.AuditRow{Kind: kind, Via: "config", What: map[string]any{"path": c.Path, "sha256": fmt.Sprintf("%x", sha256.Sum256(text))}}, nil
}

// auditStart makes the configured people known; where the configuration is another than at the last start, it says so.
func (g *Gateway) auditStart(c *configs.Config) error {
	row, err := configRow(workspace.AuditConfigLoaded, c)
	if err != nil {
		return err
	}
	hash := row.What["sha256"].(string) // is made above
	was, err := g.store.Setting(auditedConfig)
	if err != nil {
		return err
	}
	if was == hash {
		return g.syncPeople(c)
	}
	if err := g.syncPeople(c, row); err != nil {
		return err
	}
	return g.store.SetSetting(auditedConfig, hash) // a start that ends before it tells once more
}

// A hostile command could fill the log with what it was refused: so many rows at once, then one every so often.
const (
	egressRows  = 20
	egressEvery = 10 * time.Second
)

// auditEgress tells of refused hosts. It waits for a commit: the command that is refused may.
func (g *Gateway) auditEgress() func(egress.Refusal) {
	pace := rate.NewLimiter(rate.Every(egressEvery), egressRows)
	var left atomic.Int64 // refusals without a row since the last
	return func(r egress.Refusal) {
		if !pace.Allow() {
			left.Add(1)
			return
		}
		row := workspace.AuditRow{Kind: workspace.AuditEgressRefused, Via: "sandbox", What: map[string]any{"host": r.Host, "port": int(r.Port), "reason": r.Reason, "left_out": left.Swap(0)}}
		if err := g.store.Audit(row); err != nil && !errors.Is(err, store.ErrClosed) {
			g.log.Error("audit row is not kept", "kind", row.Kind, "err", err)
		}
	}
}

// auditFolder tells of control paths in owners' folders: a write that was refused, what a command made, what an owner accepts.
func (g *Gateway) auditFolder() func(folder.Notice) {
	pace := rate.NewLimiter(rate.Every(egressEvery), egressRows)
	var left atomic.Int64
	return func(n folder.Notice) {
		if n.Kind == "accepted" { // the verb tells who
			return
		}
		if !pace.Allow() {
			left.Add(1)
			return
		}
		row := workspace.AuditRow{Kind: workspace.AuditControlRefused, Via: "tool", What: map[string]any{"folder": n.Dir, "path": n.Path, "left_out": left.Swap(0)}}
		if n.Kind == "held" {
			row.Kind, row.Via, row.What["now"] = workspace.AuditControlHeld, "sandbox", n.Now
		}
		if err := g.store.Audit(row); err != nil && !errors.Is(err, store.ErrClosed) {
			g.log.Error("audit row is not kept", "kind", row.Kind, "err", err)
		}
	}
}
