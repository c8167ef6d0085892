package gateway

import (
	"crypto/sha256"
	"fmt"

	"parley/configs"
	"parley/tools/builtin"
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

// execRows tells of commands: that one began, how it ended, that one was refused or not begun. They are committed with
// the steps.
func (r *recorder) execRows(steps []workspace.Step) (rows []workspace.AuditRow) {
	for _, st := range steps {
		kind := ""
		switch {
		case st.Tool != builtin.ExecName:
		case st.State == workspace.StepStarted:
			kind = workspace.AuditExecStarted
		case st.State == workspace.StepRefused || st.State == workspace.StepCancelled:
			kind = workspace.AuditExecRefused
		case st.State == workspace.StepDone || st.State == workspace.StepFailed || st.State == workspace.StepUnknown:
			kind = workspace.AuditExecEnded
		}
		if kind == "" {
			continue
		}
		what := map[string]any{"run": string(r.run.ID), "call": st.CallID, "session": r.key.String(), "agent": string(r.key.Agent), "state": string(st.State)}
		if kind != workspace.AuditExecEnded {
			what["args"] = string(r.argsOf(st.CallID))
		}
		if st.Approval != "" {
			what["approval"] = string(st.Approval)
		}
		if st.Body.Reason != "" {
			what["reason"] = st.Body.Reason
		}
		rows = append(rows, workspace.AuditRow{Kind: kind, Actor: r.run.Requester, Via: "turn", What: what})
	}
	return rows
}

// argsOf are the arguments of a call as the model wrote them.
func (r *recorder) argsOf(call string) []byte {
	for _, st := range r.turn.Journal {
		for _, c := range st.Body.Content {
			if st.Kind == workspace.StepModel && c.Kind == workspace.ToolCall && c.CallID == call {
				return c.Args
			}
		}
	}
	return nil
}
