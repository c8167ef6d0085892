// What rows are sealed with, and held against.

package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"parley/workspace"
	"parley/workspace/store/engine"
)

// Verify reads the whole database: SQLite's own full check, then the checksum of every payload row and every
// state. It returns ErrDamaged with the first that is wrong. It reads in short pieces and may run while the store
// does. What it finds marks the store as damaged.
func (s *Store) Verify(ctx context.Context) error { return s.db.Verify(ctx) }

// VerifyFile is Verify of an SQLite database that no process has open, such as one in a backup.
func VerifyFile(ctx context.Context, name string) error {
	return engine.VerifyFile(ctx, name, verifyRows)
}

func sealedTables() []engine.Sealed {
	return []engine.Sealed{
		{Table: "inputs", Columns: sealedInput, Rest: "text, data, sum, state", Keys: 1, Check: func(v []any) bool {
			return engine.SumPair(text(v[0]), text(v[1])) == v[2] && known(workspace.Inputs, workspace.InputState(text(v[3])))
		}},
		{Table: "entries", Columns: sealedEntry, Rest: "body, sum", Keys: 2, Check: func(v []any) bool { return engine.Sum(text(v[0])) == v[1] }},
		{Table: "steps", Columns: sealedStep, Rest: "body, sum, state", Keys: 2, Check: func(v []any) bool {
			return engine.Sum(text(v[0])) == v[1] && known(workspace.Steps, workspace.StepState(text(v[2])))
		}},
		{Table: "outbound", Columns: sealedOutbound, Rest: "body, sum, state", Keys: 1, Check: func(v []any) bool {
			states := []workspace.OutboundState{workspace.OutOpen, workspace.OutFinal, workspace.OutCancelled}
			return engine.Sum(text(v[0])) == v[1] && slices.Contains(states, workspace.OutboundState(text(v[2])))
		}},
		{Table: "parts", Columns: sealedPart, Rest: "state, remote_id, remote_sum", Keys: 2, Check: func(v []any) bool {
			return known(workspace.Parts, workspace.PartState(text(v[0]))) &&
				(engine.Sum(text(v[1])) == v[2] || text(v[1]) == "" && v[2] == int64(0))
		}},
		{Table: "approvals", Columns: sealedApproval, Rest: "body, sum, state", Keys: 1, Check: func(v []any) bool {
			return engine.Sum(text(v[0])) == v[1] && known(workspace.Approvals, workspace.ApprovalState(text(v[2])))
		}},
		{Table: "runs", Columns: sealedRun, Rest: "state, end_seal, " + endedRun, Keys: 1, Check: func(v []any) bool {
			state := workspace.RunState(text(v[0]))
			return known(workspace.Runs, state) && (!workspace.Runs.Final(state) || engine.Seal(v[2:]...) == v[1])
		}},
	}
}

// verifyRows reads what units have sealed.
func verifyRows(ctx context.Context, r *engine.Reader) error {
	for _, t := range sealedTables() {
		if err := t.Verify(ctx, r); err != nil {
			return err
		}
	}
	if err := verifyAuditRows(ctx, r); err != nil {
		return err
	}
	for what, q := range map[string]string{ // what rows are held against that have no seal, and what must be there
		"the run of an input": `SELECT id FROM inputs i WHERE run_id <> '' AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = i.run_id)`,
		"the session of an input": `SELECT id FROM inputs i WHERE session_id <> ''
			AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = i.session_id)`,
		"the person of an account": `SELECT person_id FROM accounts a WHERE NOT EXISTS (SELECT 1 FROM people p WHERE p.id = a.person_id)`,
		"who a person has become":  `SELECT id FROM people a WHERE joined <> '' AND NOT EXISTS (SELECT 1 FROM people p WHERE p.id = a.joined)`,
		"the role of a person":     `SELECT id FROM people WHERE role NOT IN ('owner', 'member', 'guest', '')`,
		"the role of an account":   `SELECT person_id FROM accounts WHERE most NOT IN ('owner', 'member', 'guest', '')`,
		"the agent of a session":   `SELECT id FROM sessions WHERE key NOT LIKE 'agent:' || agent || ':%'`,
		"the state of a pairing":   `SELECT id FROM pairings WHERE state NOT IN ('open', 'approved', 'denied')`,
		"the input of an outbound": `SELECT id FROM outbound WHERE input_id <> '' AND key NOT LIKE 'input:' || input_id || ':%'`,
		"the text of an outbound": `SELECT o.id FROM outbound o WHERE o.body_ref <> ''
			AND NOT EXISTS (SELECT 1 FROM entries e WHERE ` + entryOfRef + `)`,
	} {
		var id string
		err := r.Row(ctx, q+` LIMIT 1`, nil, &id)
		switch {
		case err == nil:
			return fmt.Errorf("%s: %s is missing, or none that there is: %w", id, what, ErrDamaged)
		case !errors.Is(err, workspace.ErrNotFound):
			return err
		}
	}
	return nil
}

// verifyAuditRows holds each row of the audit log against its own hash. Whether rows are missing is VerifyAudit's: a gap that
// an operator has accepted stays.
func verifyAuditRows(ctx context.Context, r *engine.Reader) error {
	from := []any{"", int64(0)}
	for {
		rows, err := r.Piece(ctx, auditPiece, from...)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if text(row[3]) != auditHash(text(row[2]), text(row[4])) {
				return fmt.Errorf("audit %v: %w", row[:2], ErrDamaged)
			}
			copy(from, row)
		}
		if len(rows) < engine.PieceRows {
			return nil
		}
	}
}

func text(v any) string {
	s, _ := v.(string) // anything else matches no sum
	return s
}

// known says whether a table of states draws an edge to s.
func known[S ~string](t workspace.Table[S], s S) bool {
	for from := range t {
		if s != "" && t.Can(from, s) {
			return true
		}
	}
	return false
}

// The columns that never change once a row is stored, in the order of its seal. SQLite does not notice a flipped bit
// inside a cell; sum covers a row's payload, the seal all else that is relied on. What changes on the way is
// held against what it may be: states against their tables, run and session ids against their rows. An UPDATE of a
// sealed column must write the seal again, or the daily check calls the database damaged (a test reads the SQL).
const (
	sealedInput = `seq, id, source, account, key, kind, target_key, room_id, person_id, role, sender, agent, partition, decision, binding,
		mode, deadline_at, received, sent`
	sealedRun   = `id, session_id, parent_run, parent_call, task_id, requester, role, room_id, started, first_n`
	endedRun    = `reason, error, model, usage, usd, ended, last_n` // set by a run's end: end_seal
	sealedStep  = `run_id, n, kind, call_id, tool, args_hash, effect, started`
	sealedEntry = `session_id, n, run_id, step_n, input_id, role, at`
	// kind and body_ref change until a stream ends
	sealedOutbound = `id, key, room_id, n, run_id, not_after, on_unknown, reply_to, created, kind, body_ref`
	sealedApproval = `id, run_id, call_id, session_id, session, agent, tool, hash, requester, role, room_id, domain, created, expires_at`
	sealedPart     = `outbound_id, n, token, from_off, to_off, blob`
)
