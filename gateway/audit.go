package gateway

import (
	"crypto/sha256"
	"fmt"

	"parley/configs"
	"parley/workspace"
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
