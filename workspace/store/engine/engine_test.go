package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"

	"go.uber.org/goleak"

	"parley/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const tables = `-- +goose Up
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE commits (id INTEGER PRIMARY KEY, line TEXT NOT NULL, n INTEGER NOT NULL, seq INTEGER NOT NULL, answer INTEGER NOT NULL);
INSERT INTO commits (id, line, n, seq, answer) VALUES (1, '', 0, 0, 0);

-- +goose Down
DROP TABLE commits; DROP TABLE settings;
`

// open waits for the watcher's note of its first look, which would else come in between.
func open(t *testing.T, dir string, hooks Hooks) *DB {
	t.Helper()
	looked := make(chan struct{})
	if _, err := os.Stat(filepath.Join(dir, DatabaseFile)); err == nil {
		looked = nil // it looks a day after the first time
	}
	point := func(name string) {
		if name == "committed checked" {
			close(looked)
		}
	}
	files := fstest.MapFS{"0001_tables.sql": {Data: []byte(tables)}}
	db, err := Open(t.Context(), Options{Dir: dir, Migrations: files, BallastBytes: -1, Hooks: hooks, Point: point})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	if looked != nil {
		<-looked
	}
	return db
}

func nothing(*Tx) error { return nil }

func TestAFailureHarmsNoNeighbour(t *testing.T) {
	t.Parallel()
	db := open(t, t.TempDir(), Hooks{})
	before := db.Counts()
	gate := make(chan struct{})
	db.Post("gate", Func(func(*Tx) error { <-gate; return nil }))
	runs := make([]int, 7)
	fail := map[int]error{2: workspace.ErrConflict, 5: workspace.ErrNotFound}
	jobs := make([]*job, len(runs))
	for i := range jobs { // one batch, as the writer waits at the gate
		jobs[i] = &job{name: "one of many", done: make(chan error, 1), unit: Func(func(t *Tx) error {
			runs[i]++
			return errors.Join(t.Set(string(rune('a'+i)), "ran"), fail[i])
		})}
		db.queue <- jobs[i]
	}
	close(gate)
	for i, j := range jobs {
		if err := <-j.done; !errors.Is(err, fail[i]) {
			t.Errorf("unit %d: %v", i, err)
		}
		want := "ran"
		if fail[i] != nil {
			want = ""
		}
		if v, err := db.Setting(string(rune('a' + i))); v != want || err != nil {
			t.Errorf("unit %d ran to %q, %v", i, v, err)
		}
	}
	if got := db.Counts(); got.Commits-before.Commits > 4 {
		t.Errorf("%d commits for two failures: the gate's, and one for what is before each failure and behind the last",
			got.Commits-before.Commits)
	}
	if runs[2] != 1 || runs[0] != 2 || runs[6] < 1 {
		t.Errorf("runs: %v", runs)
	}
}

func TestHooksFollowEachTransaction(t *testing.T) {
	t.Parallel()
	var told []string
	hooks := Hooks{
		Begin:     func(tx *Tx) any { told = append(told, "begin"); return &told },
		Committed: func() { told = append(told, "committed") },
		Reset:     func() { told = append(told, "reset") },
	}
	db := open(t, t.TempDir(), hooks)
	if err := db.Do("begin again", Func(func(tx *Tx) error { told = []string{"begin"}; return nil })); err != nil {
		t.Fatal(err)
	}
	refused := db.Do("refused", Func(func(tx *Tx) error {
		if tx.Owner != any(&told) {
			t.Errorf("owner: %v", tx.Owner)
		}
		return workspace.ErrConflict
	}))
	if !errors.Is(refused, workspace.ErrConflict) {
		t.Errorf("refused: %v", refused)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	want := []string{"begin", "committed", "begin", "reset", "begin", "committed"} // the last marks the end
	if !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
}

func TestWhatIsNotedIsReadOnceAtTheNextStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := open(t, dir, Hooks{})
	db.PostNoted("noted", "one\ntwo\n", Func(nothing))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]string{{"one", "two"}, nil} {
		var got []string
		again := open(t, dir, Hooks{Boot: func(_ context.Context, b *Boot) error {
			return b.Notes(func(line string) error { got = append(got, line); return nil })
		}})
		if !slices.Equal(got, want) {
			t.Errorf("read %q, want %q", got, want)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
