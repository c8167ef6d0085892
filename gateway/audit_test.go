package gateway_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"

	"parley/workspace"
	"parley/workspace/store"
)

// Commands that ran and commands that were refused stand in the audit log, with who asked for them; its chain holds.
func TestAuditTellsOfCommands(t *testing.T) {
	t.Parallel()
	w := newObedientWorld(t, noAsking)
	owner, guest := victory{trialWorld: w, chat: w.person(7)}, victory{trialWorld: w, chat: w.person(8)}
	owner.ask(7, plainly(7, ""), `CALL exec {"command":"make `+stolenKey+`"}`)
	guest.ask(8, plainly(8, ""), `CALL exec {"command":"make it"}`)
	type row struct {
		Kind, Actor string
		What        struct{ State, Args, Reason, Run, Ended string }
	}
	var rows []row
	for _, body := range w.rows(`SELECT body FROM audit ORDER BY n`) {
		var r row
		if err := json.Unmarshal([]byte(body), &r); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		rows = append(rows, r)
	}
	var kinds []string
	for _, r := range rows {
		kinds = append(kinds, r.Kind)
	}
	if want := []string{workspace.AuditConfigLoaded, workspace.AuditExecStarted, workspace.AuditExecEnded, workspace.AuditExecRefused}; !slices.Equal(kinds, want) {
		t.Fatalf("rows %q, want %q", kinds, want)
	}
	if r := rows[1]; r.Actor != "ana" || r.What.Args != `{"command":"make [secret]"}` || r.What.Run == "" {
		t.Errorf("start: %+v", r)
	}
	if r := rows[2]; r.Actor != "ana" || r.What.State != "done" || r.What.Ended == "" {
		t.Errorf("end: %+v", r)
	}
	if r := rows[3]; r.Actor == "ana" || r.Actor == "" || r.What.Reason != "built-in: exec:owner" {
		t.Errorf("refusal: %+v", r)
	}
	w.stop()
	if r, err := store.VerifyAuditDir(t.Context(), filepath.Join(w.dir, "data"), nil); err != nil || r.Bad != nil || r.Rows != 4 {
		t.Errorf("%+v %v", r, err)
	}
}
