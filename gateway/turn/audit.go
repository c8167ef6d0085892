// What the audit log has of a turn.

package turn

import (
	"strings"

	"parley/tools/builtin"
	"parley/workspace"
)

// commandRows tells of commands: that one began, how it ended, that one was refused or not begun, and of files that a tool
// removed. They are committed with the steps.
func commandRows(run workspace.Run, key workspace.Key, journal, steps []workspace.Step) (rows []workspace.AuditRow) {
	for _, st := range steps {
		kind := ""
		switch {
		case st.Tool == builtin.RemoveName && (st.State == workspace.StepDone || st.State == workspace.StepUnknown):
			kind = workspace.AuditFilesRemoved
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
		what := map[string]any{"run": string(run.ID), "call": st.CallID, "session": key.String(), "agent": string(key.Agent),
			"state": string(st.State)}
		if kind != workspace.AuditExecEnded {
			what["args"] = string(argsOf(journal, st.CallID))
		}
		if st.Approval != "" {
			what["approval"] = string(st.Approval)
		}
		if st.Body.Reason != "" {
			what["reason"] = st.Body.Reason
		}
		if kind == workspace.AuditExecEnded && len(st.Body.Content) > 0 { // the result's last line tells it
			text := strings.TrimSpace(st.Body.Content[0].Text)
			what["ended"] = workspace.Line(strings.Trim(text[strings.LastIndexByte(text, '\n')+1:], "()"), 200)
		}
		rows = append(rows, workspace.AuditRow{Kind: kind, Actor: run.Requester, Via: "turn", What: what})
	}
	return rows
}
