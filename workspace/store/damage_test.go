package store_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/workspace"
	"parley/workspace/store"
	"parley/workspace/storetest"
)

// TestR12_AFlippedBitIsNoticedOrHarmless flips single bits in pages of the journal: 60, or 1,000 with PARLEY_FULL=1.
func TestR12_AFlippedBitIsNoticedOrHarmless(t *testing.T) {
	t.Parallel()
	flips := 60
	if os.Getenv("PARLEY_FULL") == "1" {
		flips = 1000
	}
	name := filledDatabase(t)
	good, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	pages := journalPages(t, name)
	want := dump(t.Context(), name)
	dice := rand.New(rand.NewPCG(12, 12))
	bad := filepath.Join(t.TempDir(), "bad.db")
	noticed, harmless, missed := 0, 0, map[string]int{}
	for range flips {
		page := pages[dice.IntN(len(pages))]
		at, bit := int(page.n-1)*4096+dice.IntN(4096), byte(1)<<dice.IntN(8)
		flipped := slices.Clone(good)
		flipped[at] ^= bit
		if err := os.WriteFile(bad, flipped, 0o600); err != nil {
			t.Fatal(err)
		}
		switch err := store.VerifyFile(t.Context(), bad); {
		case err != nil:
			noticed++
		case dump(t.Context(), bad) == want:
			harmless++
		default:
			missed[page.table]++
			t.Logf("byte %d of page %d (%s), bit %08b: %q", at%4096, page.n, page.table, bit, flipped[max(0, at-30):at+30])
		}
	}
	t.Logf("%d flips: %d noticed, %d harmless, missed %v", flips, noticed, harmless, missed)
	if len(missed) > 0 {
		t.Errorf("changed what is stored, and nobody noticed: %v", missed)
	}
}

// filledDatabase is a closed database with every kind of row.
func filledDatabase(t *testing.T) string {
	p := storetest.SQLite(t)
	s := p.Open(t)
	for n := range 150 {
		c := storetest.NewChat(n % 20)
		got, err := s.Accept(c.Begun(s, fmt.Sprintf("m:%d", n), strings.Repeat("what is it? ", n%40)))
		if err != nil {
			t.Fatal(err)
		}
		run := got[0].Begun.Run
		call := workspace.Step{RunID: run.ID, N: 2, Kind: workspace.StepTool, CallID: "c", Tool: "exec", Effect: workspace.Outside, State: workspace.StepPlanned}
		model := workspace.Step{RunID: run.ID, N: 1, Kind: workspace.StepModel, State: workspace.StepDone,
			Body: workspace.StepBody{Content: []workspace.Content{{Kind: workspace.Text, Text: strings.Repeat("let me see ", n%20)}}}}
		if _, err := s.Step(store.StepUnit{Run: run, Steps: []workspace.Step{model, call}}); err != nil {
			t.Fatal(err)
		}
		f, err := s.Finish(storetest.Answer(run, strings.Repeat("it is so ", 1+n%50), got[0].Input))
		if err != nil {
			t.Fatal(err)
		}
		if n%7 > 0 {
			s.Receipt(store.Move{Part: f.Answer.Parts[0], To: workspace.PartSent, Remote: "99"})
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(p.Dir(), "parley.db")
}

type page struct {
	n     int64
	table string
}

// journalPages are the pages of the journal's tables and their indexes.
func journalPages(t *testing.T, name string) (list []page) {
	db, err := sql.Open("sqlite", "file:"+name+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query(`SELECT d.pageno, d.name FROM dbstat d JOIN sqlite_schema s ON s.name = d.name
		WHERE s.tbl_name IN ('inputs', 'runs', 'steps', 'entries', 'outbound', 'parts') ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var p page
		if err := rows.Scan(&p.n, &p.table); err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	if rows.Err() != nil || len(list) < 20 {
		t.Fatalf("%d pages, %v", len(list), rows.Err())
	}
	return list
}

// dump is a hash of the journal, or the error of reading it. What it leaves out is harmless: words for people (reason,
// error), a step's end, and counters that only pace (tries, next_at) or that a restart raises (epoch).
func dump(ctx context.Context, name string) string {
	return dumpOf(ctx, name,
		`SELECT seq, id, source, account, key, kind, target_key, room_id, person_id, role, sender, session_id, agent, partition, decision, binding, mode,
			state, run_id, deadline_at, received, sent, text, data, sum FROM inputs ORDER BY seq`,
		`SELECT id, session_id, parent_run, parent_call, task_id, requester, role, room_id, state, reason, error, model, usage, usd, started, ended,
			first_n, last_n FROM runs ORDER BY id`,
		`SELECT run_id, n, kind, call_id, tool, args_hash, effect, state, body, sum, started FROM steps ORDER BY run_id, n`,
		`SELECT * FROM entries ORDER BY session_id, n`,
		`SELECT * FROM outbound ORDER BY id`,
		`SELECT outbound_id, n, token, from_off, to_off, blob, state, remote_id FROM parts ORDER BY outbound_id, n`)
}

func dumpOf(ctx context.Context, name string, queries ...string) string {
	db, err := sql.Open("sqlite", "file:"+name+"?mode=ro")
	if err != nil {
		return err.Error()
	}
	defer db.Close()
	sum := sha256.New()
	for _, q := range queries {
		rows, err := db.QueryContext(ctx, q)
		if err != nil {
			return err.Error()
		}
		columns, err := rows.Columns()
		if err != nil {
			return err.Error()
		}
		values, ptrs := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			ptrs[i] = &values[i]
		}
		for rows.Next() {
			if err := rows.Scan(ptrs...); err != nil {
				return err.Error()
			}
			fmt.Fprintf(sum, "%#v\n", values)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return err.Error()
		}
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}
