package storetest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/workspace"
)

// snapshot is every state that the database holds.
type snapshot struct {
	inputs map[string]workspace.InputState
	runs   map[string]workspace.RunState
	steps  map[string]workspace.StepState
	parts  map[string]workspace.PartState
}

// look compares the database with the last look: only drawn edges may lie between, and what must always hold holds.
func (w *world) look() {
	now := snapshot{states[workspace.InputState](w, `SELECT id, state FROM inputs`), states[workspace.RunState](w, `SELECT id, state FROM runs`),
		states[workspace.StepState](w, `SELECT run_id || '/' || n, state FROM steps`),
		states[workspace.PartState](w, `SELECT outbound_id || '/' || n, state FROM parts`)}
	edges(w, "input", workspace.Inputs, w.last.inputs, now.inputs)
	edges(w, "run", workspace.Runs, w.last.runs, now.runs)
	edges(w, "step", workspace.Steps, w.last.steps, now.steps)
	edges(w, "part", workspace.Parts, w.last.parts, now.parts)
	w.last = now
	for what, q := range map[string]string{
		"two live runs in a session":             `SELECT session_id FROM runs WHERE state IN ('running', 'waiting', 'paused') GROUP BY session_id HAVING COUNT(*) > 1`,
		"a gap in the transcript":                `SELECT session_id FROM entries GROUP BY session_id HAVING MAX(n) <> COUNT(*) OR MIN(n) <> 1`,
		"a number twice in a room":               `SELECT room_id FROM outbound GROUP BY room_id, n HAVING COUNT(*) > 1`,
		"a taken input without a live run":       `SELECT i.id FROM inputs i LEFT JOIN runs r ON r.id = i.run_id WHERE i.state = 'taken' AND (r.id IS NULL OR r.state NOT IN ('running', 'waiting', 'paused'))`,
		"a run outside of the session of inputs": `SELECT i.id FROM inputs i JOIN runs r ON r.id = i.run_id WHERE i.state = 'taken' AND i.session_id <> r.session_id`,
		"a part that is sent twice":              `SELECT outbound_id FROM parts WHERE state = 'sent' AND tries = 0`,
	} {
		if list := states[string](w, strings.Replace(q, "SELECT ", "SELECT 'x', ", 1)); len(list) > 0 {
			w.fatal("%s: %v\n%v", what, list, w.trace)
		}
	}
}

func states[S ~string](w *world, q string) map[string]S {
	rows, err := w.db.Query(q)
	w.must(q, err)
	defer rows.Close()
	out := map[string]S{}
	for rows.Next() {
		var id string
		var state S
		w.must(q, rows.Scan(&id, &state))
		out[id] = state
	}
	w.must(q, rows.Err())
	return out
}

func edges[S ~string](w *world, what string, table workspace.Table[S], before, now map[string]S) {
	for id, to := range now {
		if from := before[id]; from != to && !table.Can(from, to) {
			w.fatal("%s %s went from %q to %q, which is not drawn\n%v", what, id, from, to, w.trace)
		}
	}
	for id := range before {
		if _, ok := now[id]; !ok {
			w.fatal("%s %s is gone\n%v", what, id, w.trace)
		}
	}
}

// ended holds what must be true when everything was driven to its end.
func (w *world) ended() {
	for id, st := range w.last.inputs {
		if !workspace.Inputs.Final(st) && !(st == workspace.InputStale && w.deleted(id)) {
			w.fatal("input %s never ended: %s\n%v", id, st, w.trace)
		}
	}
	for id, st := range w.last.runs {
		if st.Live() {
			w.fatal("run %s never ended: %s\n%v", id, st, w.trace)
		}
	}
	for id, st := range w.last.parts {
		if st != workspace.PartSent && st != workspace.PartCancelled && st != workspace.PartDead {
			w.fatal("part %s never ended: %s\n%v", id, st, w.trace)
		}
	}
	const mute = `SELECT i.id, i.state FROM inputs i WHERE i.state IN ('answered', 'failed')
		AND NOT EXISTS (SELECT 1 FROM outbound o WHERE o.id = i.run_id OR o.key = 'input:' || i.id || ':reply')`
	if list := states[string](w, mute); len(list) > 0 {
		w.fatal("ended and nobody was told: %v\n%v", list, w.trace)
	}
	for token, n := range w.sent {
		at := strings.LastIndex(token, ".")
		if st := w.last.parts[token[:at]+"/"+token[at+1:]]; n > 0 && st != workspace.PartSent && st != workspace.PartCancelled && st != workspace.PartDead {
			w.fatal("%s was sent and is %s\n%v", token, st, w.trace)
		}
	}
	w.must("verify", w.s.Verify(w.t.Context()))
}

func (w *world) deleted(id string) bool {
	in, err := w.s.Input(workspace.InputID(id))
	return err == nil && in.Reason == "deleted"
}

func (w *world) live(steps int) {
	for range steps {
		if w.dice(12) == 0 {
			w.crash()
			w.trace = append(w.trace, "CRASH")
			continue
		}
		w.do()
	}
	w.settle()
	_ = w.db.Close() // read only
}

func TestR02_R01_TheLineAgainstAModel(t *testing.T) {
	t.Parallel()
	most := 25
	if os.Getenv("PARLEY_FULL") == "1" {
		most = 80
	}
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		rapid.Check(t, func(rt *rapid.T) {
			w := newWorld(t, SQLite(t), func(f string, a ...any) { rt.Fatalf(f, a...) }, func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "d") })
			w.live(rapid.IntRange(5, most).Draw(rt, "steps"))
			if err := w.s.Close(); err != nil {
				rt.Fatal(err)
			}
		})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		for seed := range uint64(6) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				w := newWorld(t, Postgres(t), func(f string, a ...any) { t.Helper(); t.Fatalf(f, a...) }, rand.New(rand.NewPCG(seed, 1)).IntN)
				w.live(2 * most)
			})
		}
	})
}
