// Steps, the journal of a run.

package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"parley/workspace"
	"parley/workspace/store/engine"
)

// StepUnit is one boundary of a run.
type StepUnit struct {
	Run     workspace.Run
	Steps   []workspace.Step
	Entries []workspace.Entry // transcript lines of these steps
	Inputs  []workspace.Input // steered in
	Bodies  []workspace.EntryBody
	Usage   *workspace.Usage // of the run so far
	Wait    bool             // return after the commit
	// Outbound is what these steps send; it needs Wait. Its keys make it happen once.
	Outbound []NewOutbound
	Audit    []workspace.AuditRow
	Then     func() // called from the writer after the commit; must not block; nil: nothing
}

// Stepped is what a StepUnit stored.
type Stepped struct {
	Entries []workspace.Entry // all that were appended, numbered
	StopBy  workspace.PersonID
	Gone    []workspace.Input    // of Inputs: ended before the run could take them, by a stop or a delete
	Sent    []workspace.Outbound // of Outbound, those that are new
	// Held says that a stop had been recorded before an approved call could be started: nothing was stored.
	Held bool
}

// Step journals steps. Without Wait it returns at once and Stepped is empty.
func (s *Store) Step(u StepUnit) (Stepped, error) {
	var out Stepped
	run := func(t *tx) (err error) {
		out = Stepped{}
		out, err = t.step(u)
		return err
	}
	if !u.Wait {
		s.db.PostThen("step", unit(run), u.Then)
		return Stepped{}, nil
	}
	err := s.do("step", run)
	if err == nil && u.Then != nil {
		u.Then()
	}
	return out, err
}

// Take adds queued inputs to a running run: a restart with both, or steering without a step.
func (s *Store) Take(run workspace.Run, inputs []workspace.Input, bodies []workspace.EntryBody) (Stepped, error) {
	return s.Step(StepUnit{Run: run, Inputs: inputs, Bodies: bodies, Wait: true})
}

func (t *tx) step(u StepUnit) (out Stepped, err error) {
	var stopBy string
	if err := t.Row(`SELECT stop_by FROM runs WHERE id = ? AND epoch = ? AND state IN ('running', 'waiting')`,
		[]any{string(u.Run.ID), t.Epoch}, &stopBy); err != nil {
		return out, fmt.Errorf("step of run %s: %w", u.Run.ID, orConflict(err))
	}
	out.StopBy = workspace.PersonID(stopBy)
	for _, st := range u.Steps {
		if st.Approval != "" && stopBy != "" {
			return Stepped{StopBy: out.StopBy, Held: true, Gone: u.Inputs}, nil
		}
	}
	for _, st := range u.Steps {
		if st.Approval != "" {
			if err := t.consume(st); err != nil {
				return out, err
			}
		}
		if err := t.putStep(st); err != nil {
			return out, err
		}
	}
	inputs, bodies, err := t.steer(&u, &out)
	if err != nil {
		return out, err
	}
	if u.Usage != nil {
		if err := t.usage(u.Run.ID, *u.Usage); err != nil {
			return out, err
		}
	}
	entries := append(append([]workspace.Entry(nil), u.Entries...), userEntries(u.Run.ID, inputs, bodies)...)
	if out.Entries, err = t.appendEntries(u.Run.SessionID, entries); err != nil {
		return out, err
	}
	if err := t.audit(u.Audit...); err != nil {
		return out, err
	}
	return out, t.outbounds(u.Outbound, &out.Sent)
}

// steer takes a boundary's inputs into the run. One that was stopped or deleted before is left out: its end came first,
// and is no reason for the turn to fail.
func (t *tx) steer(u *StepUnit, out *Stepped) (inputs []workspace.Input, bodies []workspace.EntryBody, err error) {
	for i, in := range u.Inputs {
		err := t.take(in, u.Run.ID)
		if errors.Is(err, workspace.ErrConflict) {
			out.Gone = append(out.Gone, in)
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		inputs = append(inputs, in)
		var body workspace.EntryBody
		if i < len(u.Bodies) {
			body = u.Bodies[i]
		}
		bodies = append(bodies, body)
	}
	return inputs, bodies, nil
}

func (t *tx) usage(run workspace.RunID, u workspace.Usage) error {
	body, err := json.Marshal(u)
	if err != nil {
		return err
	}
	_, err = t.Exec(`UPDATE runs SET usage = ?, usd = ? WHERE id = ?`, string(body), u.CostUSD, string(run))
	return err
}

// putStep inserts a step, or moves it along its table.
func (t *tx) putStep(st workspace.Step) error {
	body, err := json.Marshal(st.Body)
	if err != nil {
		return err
	}
	if born := workspace.StepPlanned; st.State == born || st.Kind == workspace.StepModel && st.State == workspace.StepDone {
		args := []any{string(st.RunID), st.N, string(st.Kind), null(st.CallID), st.Tool, st.ArgsHash, string(st.Effect), t.Now}
		n, err := t.Exec(`INSERT INTO steps (`+sealedStep+`, state, body, sum, ended, seal)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			append(args, string(st.State), string(body), engine.Sum(string(body)), millis(st.Ended), engine.Seal(args...))...)
		if err != nil {
			return fmt.Errorf("insert step: %w", err)
		}
		if n == 1 {
			return nil
		}
	}
	from := froms(workspace.Steps, st.State)
	if len(from) == 0 {
		return fmt.Errorf("step %d again %s: %w", st.N, st.State, workspace.ErrConflict)
	}
	return t.One("move step", `UPDATE steps SET state = ?, body = ?, sum = ?, ended = ?
		WHERE run_id = ? AND n = ? AND state IN (`+from+`)`, string(st.State), string(body), engine.Sum(string(body)), millis(st.Ended),
		string(st.RunID), st.N)
}

// froms lists the states that may come before s, quoted for SQL.
func froms[S ~string](t workspace.Table[S], s S) string {
	var list []string
	for from := range t {
		if from != "" && t.Can(from, s) {
			list = append(list, "'"+string(from)+"'")
		}
	}
	slices.Sort(list) // the order of a map is random, the text of a statement must not be
	return strings.Join(list, ", ")
}

// Steps lists a run's journal in order.
func (s *Store) Steps(run workspace.RunID) ([]workspace.Step, error) {
	var out []workspace.Step
	err := s.db.Many(`SELECT run_id, n, kind, COALESCE(call_id, ''), tool, args_hash, effect, state, body, sum, started, ended FROM steps
		WHERE run_id = ? ORDER BY n`, []any{string(run)}, func(scan func(...any) error) error {
		var st workspace.Step
		var body string
		var check, started, ended int64
		if err := scan(&st.RunID, &st.N, &st.Kind, &st.CallID, &st.Tool, &st.ArgsHash, &st.Effect, &st.State, &body, &check, &started,
			&ended); err != nil {
			return err
		}
		if engine.Sum(body) != check {
			return fmt.Errorf("step %d of run %s: %w", st.N, st.RunID, ErrDamaged)
		}
		st.Started, st.Ended = fromMillis(started), fromMillis(ended)
		out = append(out, st)
		return decode(body, &out[len(out)-1].Body)
	})
	return out, err
}
