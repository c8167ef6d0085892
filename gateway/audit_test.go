package gateway_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"

	"parley/agentloop/llm/llmtest"
	"parley/workspace"
	"parley/workspace/store"
)

// auditRow is a row of the audit log.
type auditRow struct {
	Kind, Actor string
	What        struct{ State, Args, Reason, Run, Ended string }
}

// audited are all rows of the audit log, in order.
func (r *rig) audited() (rows []auditRow) {
	r.t.Helper()
	for _, body := range r.rows(`SELECT body FROM audit ORDER BY n`) {
		var row auditRow
		if err := json.Unmarshal([]byte(body), &row); err != nil {
			r.t.Fatalf("%s: %v", body, err)
		}
		rows = append(rows, row)
	}
	return rows
}

// Commands that ran and commands that were refused stand in the audit log, with who asked for them.
func commandsAreAudited(r *rig) {
	r.answers(llmtest.TurnOf(llmtest.Act("exec", "command", "echo sk-test-canary")))
	ana, bob := r.person(11), r.person(13)
	r.say(ana, 11, "do it")
	r.said(ana, "hello from inside")
	r.say(bob, 13, "do it")
	r.said(bob, "Refused: ")
	runs := r.rows(`SELECT id FROM runs`)
	own := slices.DeleteFunc(r.audited(), func(a auditRow) bool { return !slices.Contains(runs, a.What.Run) })
	var kinds []string
	for _, a := range own {
		kinds = append(kinds, a.Kind)
	}
	if want := []string{workspace.AuditExecStarted, workspace.AuditExecEnded, workspace.AuditExecRefused}; !slices.Equal(kinds, want) {
		r.t.Fatalf("rows %q, want %q", kinds, want)
	}
	if a := own[0]; a.Actor != r.owner() || a.What.Args != `{"command":"echo [secret]"}` {
		r.t.Errorf("start: %+v", a)
	}
	if a := own[1]; a.Actor != r.owner() || a.What.State != "done" || a.What.Ended == "" {
		r.t.Errorf("end: %+v", a)
	}
	if a := own[2]; a.Actor == r.owner() || a.Actor == "" || a.What.Reason != "built-in: exec:owner" {
		r.t.Errorf("refusal: %+v", a)
	}
}

// auditHolds wants the log to begin with the configuration, and its chain to hold in what a daemon leaves.
func auditHolds(t *testing.T, r *rig) {
	t.Helper()
	r.stop()
	rows := r.audited()
	if len(rows) == 0 || rows[0].Kind != workspace.AuditConfigLoaded {
		t.Errorf("the log begins with %+v", rows)
	}
	if got, err := store.VerifyAuditDir(t.Context(), filepath.Join(r.dir, "data"), nil); err != nil || got.Bad != nil || int(got.Rows) != len(rows) {
		t.Errorf("%+v %v of %d rows", got, err, len(rows))
	}
}
