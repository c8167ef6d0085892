package store_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/workspace"
	"parley/workspace/store"
)

// auditDir is the data directory of a store that has ended, with five rows in its audit log.
func auditDir(t *testing.T, hide func(string) string) string {
	t.Helper()
	dir := t.TempDir()
	s, err := store.Open(t.Context(), store.Options{Dir: dir, BallastBytes: -1, Hide: hide})
	if err != nil {
		t.Fatal(err)
	}
	addRows(t, s, 5)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func addRows(t *testing.T, s *store.Store, n int) {
	t.Helper()
	for i := range n {
		if err := s.Audit(workspace.AuditRow{At: time.UnixMilli(int64(i)), Kind: workspace.AuditExecStarted, Actor: "ana", Via: "tg",
			What: map[string]any{"line": "echo sk-canary-1"}}); err != nil {
			t.Fatal(err)
		}
	}
}

// forge changes the database behind the gateway's back.
func forge(t *testing.T, dir string, queries ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "parley.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, q := range queries {
		if _, err := db.ExecContext(t.Context(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
}

func TestAuditNamesTheFirstBadRow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		forge []string
		bad   int64 // 0: all is well
	}{
		"untouched":          {nil, 0},
		"a text changed":     {[]string{`UPDATE audit SET body = replace(body, 'echo', 'ls') WHERE n = 3`, `UPDATE audit SET body = '' WHERE n = 5`}, 3},
		"a hash changed too": {[]string{`UPDATE audit SET body = '{}', hash = '0' WHERE n = 3`}, 3},
		"a row left out":     {[]string{`DELETE FROM audit WHERE n = 2`}, 3},
		"the first left out": {[]string{`DELETE FROM audit WHERE n = 1`}, 2},
		"left out and moved": {[]string{`DELETE FROM audit WHERE n = 2`, `UPDATE audit SET n = 2 WHERE n = 3`}, 2},
		"rows exchanged":     {[]string{`UPDATE audit SET n = 9 WHERE n = 2`, `UPDATE audit SET n = 2 WHERE n = 3`, `UPDATE audit SET n = 3 WHERE n = 9`}, 2},
		"the end cut off":    {[]string{`DELETE FROM audit WHERE n > 3`}, 5},
		"all cut off":        {[]string{`DELETE FROM audit`}, 5},
		"another chain":      {[]string{`UPDATE audit SET chain = 'other'`}, 1},
		"a row put in front": {[]string{`UPDATE audit SET n = n + 10`, `INSERT INTO audit (chain, n, prev, hash, body) SELECT chain, 1, '', 'x', '{}' FROM audit LIMIT 1`}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := auditDir(t, nil)
			forge(t, dir, c.forge...)
			r, err := store.VerifyAuditDir(t.Context(), dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			if (r.Bad != nil) != (c.bad > 0) || r.Bad != nil && r.Bad.N != c.bad {
				t.Errorf("%+v, want row %d", r.Bad, c.bad)
			}
		})
	}
}

// Rows that follow a cut keep the gap, although the head goes on.
func TestACutInTheAuditLogStaysVisible(t *testing.T) {
	t.Parallel()
	dir := auditDir(t, nil)
	forge(t, dir, `DELETE FROM audit WHERE n > 3`)
	var loss *store.Loss
	if _, err := store.Open(t.Context(), store.Options{Dir: dir, BallastBytes: -1}); !errors.As(err, &loss) || loss.AuditRows != 2 {
		t.Fatalf("a start on a log that was cut: %v", err)
	}
	s, err := store.Open(t.Context(), store.Options{Dir: dir, BallastBytes: -1, OnLoss: store.AcceptLoss})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	addRows(t, s, 2)
	r, err := s.VerifyAudit(t.Context(), nil)
	if err != nil || r.Bad == nil || r.Bad.N != 6 || !strings.Contains(r.Bad.Why, "follows row 3") {
		t.Errorf("%+v %v", r.Bad, err)
	}
}

// A head that was lost or torn keeps no gateway from starting: it is one witness less, and the log says so.
func TestAuditGoesOnWithoutItsHead(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"torn": "01J 00", "empty": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := auditDir(t, nil)
			if err := os.WriteFile(filepath.Join(dir, "audit.head"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if r, err := store.VerifyAuditDir(t.Context(), dir, nil); err != nil || r.Bad != nil || !r.Unwitnessed {
				t.Errorf("before the next row: %+v %v", r, err)
			}
			s, err := store.Open(t.Context(), store.Options{Dir: dir, BallastBytes: -1})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			addRows(t, s, 1)
			if rows, err := s.AuditAfter(5, 1); err != nil || len(rows) != 1 || !strings.Contains(string(rows[0].Body), workspace.AuditStoreUnwitnessed) {
				t.Errorf("the row that tells of it: %v %v", rows, err)
			}
			if r, err := s.VerifyAudit(t.Context(), nil); err != nil || r.Bad != nil || r.Rows != 7 || r.Unwitnessed {
				t.Errorf("%+v %v", r, err)
			}
		})
	}
}

func TestE52_AuditKeepsNoSecret(t *testing.T) {
	t.Parallel()
	hide := workspace.NewRedactor("sk-canary-1").Redact
	for name, c := range map[string]struct {
		hide func(string) string
		hits bool
	}{"hidden": {hide, false}, "broken: not hidden": {nil, true}} {
		data, err := os.ReadFile(filepath.Join(auditDir(t, c.hide), "parley.db"))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(data), "sk-canary-1"); got != c.hits {
			t.Errorf("%s: found %v", name, got)
		}
	}
}
