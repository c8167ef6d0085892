package api_test

import (
	"database/sql"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// put writes a file into the work folder of the owner's own sessions.
func (r *rig) put(name, text string) string {
	r.t.Helper()
	name = filepath.Join(r.dir, "data", "agents", "assistant", "work", "owner-local", name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
		r.t.Fatal(err)
	}
	return name
}

// E65: over HTTP the owner sees and clears a work folder, below the floor of free space, with the store writable or not; what is
// outside, and owners' folders, are out of reach.
func filesBelowTheFloor(t *testing.T, r *rig, kept string) {
	files := "/v1/sessions/" + url.PathEscape(r.key()) + "/files"
	r.ask("GET", files, "", nil).wantProblem(t, 404, "not_found")
	r.post(`"text":"good day","wait":20`, nil)
	if v := r.ask("GET", files, "", nil).fields(t); v["files"] != 0.0 {
		t.Errorf("before anything worked there: %v", v)
	}
	large := r.put("old/large.bin", strings.Repeat("x", 200<<10))
	v := r.ask("GET", files, "", nil).fields(t)
	if v["files"] != 2.0 || v["disk_low"] != true || v["shared"] != true || v["mounted"].([]any)[0] != "proj" || v["items"].([]any)[0].(map[string]any)["path"] != "old" {
		t.Errorf("it holds %v", v)
	}
	for path, problem := range map[string]string{"proj/kept.txt": "denied", "../../x": "invalid", "old": "invalid", "none": "not_found", "": "invalid", "old&folder=yes": "invalid", "old&path=x": "invalid"} {
		status := map[string]int{"denied": 403, "invalid": 400, "not_found": 404}[problem]
		r.ask("DELETE", files+"?path="+path, "", nil).wantProblem(t, status, problem)
	}
	r.ask("DELETE", files+"?path=old", "", func(q *http.Request) { q.Header.Del("Authorization") }).wantProblem(t, 401, "unauthorized")
	if got := r.ask("DELETE", files+"?path=old/large.bin", "", keyed("first")).fields(t); got["removed"] != 1.0 || got["audited"] != true {
		t.Errorf("removed: %v", got)
	}
	if again := r.ask("DELETE", files+"?path=old/large.bin", "", keyed("first")); again.Header.Get("Idempotency-Replayed") != "true" || again.fields(t)["removed"] != 1.0 {
		t.Errorf("again: %s", again.body)
	}
	if _, err := os.Lstat(large); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is there: %v", err)
	}
	unlock := r.lockStore()
	if got := r.ask("DELETE", files+"?path=old&folder=true", "", keyed("second")).fields(t); got["removed"] != 1.0 || got["audited"] != false {
		t.Errorf("while the store takes nothing: %v", got)
	}
	unlock()
	rows := waitFor(t, 2, func() []any {
		return r.ask("GET", "/v1/audit?kind=files.removed", "", nil).fields(t)["items"].([]any)
	})
	if row := rows[0].(map[string]any); row["actor"] != "local" || row["what"].(map[string]any)["path"] != "old" {
		t.Errorf("audited: %v", row)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
}

// lockStore keeps the store from writing until it is unlocked.
func (r *rig) lockStore() (unlock func()) {
	r.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(r.dir, "data", "parley.db")+"?_pragma=busy_timeout(10000)")
	if err != nil {
		r.t.Fatal(err)
	}
	conn, err := db.Conn(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := conn.ExecContext(r.t.Context(), "BEGIN IMMEDIATE"); err != nil {
		r.t.Fatal(err)
	}
	return func() {
		if _, err := conn.ExecContext(r.t.Context(), "ROLLBACK"); err != nil {
			r.t.Error(err)
		}
		if err := errors.Join(conn.Close(), db.Close()); err != nil {
			r.t.Error(err)
		}
	}
}
