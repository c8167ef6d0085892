package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"parley/workspace"
)

// Verify reads the whole database: SQLite's own full check, then the checksum of every payload row and every
// state. It returns ErrDamaged with the first that is wrong. It reads in short pieces and may run while the line
// does. What it finds marks the store as damaged.
func (s *Store) Verify(ctx context.Context) error { return s.seen(verify(ctx, s.read, s.d)) }

// VerifyFile is Verify of an SQLite database that no process has open, such as one in a backup.
func VerifyFile(ctx context.Context, name string) (err error) {
	d := sqlite{path: name}
	db, err := sql.Open("sqlite", d.dsn("ro", ""))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return verify(ctx, db, d)
}

func verify(ctx context.Context, db *sql.DB, d dialect) error {
	if _, lite := d.(sqlite); lite {
		if err := pragmaCheck(ctx, db, "integrity_check(1)"); err != nil {
			return damage(d, err)
		}
	}
	return damage(d, verifyPayloads(ctx, db, d))
}

// damage makes an error that the database itself calls damage ErrDamaged.
func damage(d dialect, err error) error {
	if err != nil && !errors.Is(err, ErrDamaged) && d.corrupt(err) {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

// verifyChunk rows are read at a time: a reader that stays holds up checkpoints.
const verifyChunk = 1000

// sealed is a table with what of its rows can be held against something.
type sealed struct {
	table   string
	columns string // sealed ones; the first keys of them are the key
	rest    string // what check is given
	keys    int
	check   func(rest []any) bool
}

func sealedTables() []sealed {
	return []sealed{
		{"inputs", sealedInput, "text, data, sum, state", 1, func(v []any) bool {
			return sumInput(text(v[0]), text(v[1])) == v[2] && known(workspace.Inputs, workspace.InputState(text(v[3])))
		}},
		{"entries", sealedEntry, "body, sum", 2, func(v []any) bool { return sum(text(v[0])) == v[1] }},
		{"steps", sealedStep, "body, sum, state", 2, func(v []any) bool {
			return sum(text(v[0])) == v[1] && known(workspace.Steps, workspace.StepState(text(v[2])))
		}},
		{"outbound", sealedOutbound, "body, sum, state", 1, func(v []any) bool {
			return sum(text(v[0])) == v[1] && slices.Contains([]workspace.OutboundState{workspace.OutOpen, workspace.OutFinal, workspace.OutCancelled},
				workspace.OutboundState(text(v[2])))
		}},
		{"parts", sealedPart, "state, remote_id, remote_sum", 2, func(v []any) bool {
			return known(workspace.Parts, workspace.PartState(text(v[0]))) && (sum(text(v[1])) == v[2] || text(v[1]) == "" && v[2] == int64(0))
		}},
		{"approvals", sealedApproval, "body, sum, state", 1, func(v []any) bool {
			return sum(text(v[0])) == v[1] && known(workspace.Approvals, workspace.ApprovalState(text(v[2])))
		}},
		{"runs", sealedRun, "state, end_seal, " + endedRun, 1, func(v []any) bool {
			state := workspace.RunState(text(v[0]))
			return known(workspace.Runs, state) && (!workspace.Runs.Final(state) || seal(v[2:]...) == v[1])
		}},
	}
}

func verifyPayloads(ctx context.Context, db *sql.DB, d dialect) error {
	for _, t := range sealedTables() {
		if err := t.verify(ctx, db, d); err != nil {
			return err
		}
	}
	if err := verifyAuditRows(ctx, db, d); err != nil {
		return err
	}
	for what, q := range map[string]string{ // what rows are held against that have no seal, and what must be there
		"the run of an input":      `SELECT id FROM inputs i WHERE run_id <> '' AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = i.run_id) LIMIT 1`,
		"the session of an input":  `SELECT id FROM inputs i WHERE session_id <> '' AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = i.session_id) LIMIT 1`,
		"the person of an account": `SELECT person_id FROM accounts a WHERE NOT EXISTS (SELECT 1 FROM people p WHERE p.id = a.person_id) LIMIT 1`,
		"who a person has become":  `SELECT id FROM people a WHERE joined <> '' AND NOT EXISTS (SELECT 1 FROM people p WHERE p.id = a.joined) LIMIT 1`,
		"the role of a person":     `SELECT id FROM people WHERE role NOT IN ('owner', 'member', 'guest', '') LIMIT 1`,
		"the role of an account":   `SELECT person_id FROM accounts WHERE most NOT IN ('owner', 'member', 'guest', '') LIMIT 1`,
		"the agent of a session":   `SELECT id FROM sessions WHERE key NOT LIKE 'agent:' || agent || ':%' LIMIT 1`,
		"the state of a pairing":   `SELECT id FROM pairings WHERE state NOT IN ('open', 'approved', 'denied') LIMIT 1`,
		"the text of an outbound":  `SELECT o.id FROM outbound o WHERE o.body_ref <> '' AND NOT EXISTS (SELECT 1 FROM entries e WHERE ` + entryOfRef + `) LIMIT 1`,
	} {
		var id string
		err := db.QueryRowContext(ctx, d.bind(q)).Scan(&id)
		switch {
		case err == nil:
			return fmt.Errorf("%s: %s is missing, or none that there is: %w", id, what, ErrDamaged)
		case !errors.Is(err, sql.ErrNoRows):
			return err
		}
	}
	return nil
}

// verifyAuditRows holds each row of the audit log against its own hash. Whether rows are missing is VerifyAudit's: a gap that
// an operator has accepted stays.
func verifyAuditRows(ctx context.Context, db *sql.DB, d dialect) error {
	from := []any{"", int64(0)}
	for {
		rows, err := piece(ctx, db, d.bind(`SELECT chain, n, prev, hash, body FROM audit WHERE (chain, n) > (?, ?) ORDER BY chain, n LIMIT `+strconv.Itoa(verifyChunk)), from)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if text(row[3]) != auditHash(text(row[2]), text(row[4])) {
				return fmt.Errorf("audit %v: %w", row[:2], ErrDamaged)
			}
			copy(from, row)
		}
		if len(rows) < verifyChunk {
			return nil
		}
	}
}

func (t sealed) verify(ctx context.Context, db *sql.DB, d dialect) error {
	columns := strings.Split(t.columns, ",")
	key := strings.Join(columns[:t.keys], ",")
	from := make([]any, t.keys)
	where := ""
	for {
		q := `SELECT ` + t.columns + `, seal, ` + t.rest + ` FROM ` + t.table + where + ` ORDER BY ` + key + ` LIMIT ` + strconv.Itoa(verifyChunk)
		rows, err := piece(ctx, db, d.bind(q), from[:strings.Count(where, "?")])
		if err != nil {
			return err
		}
		for _, row := range rows {
			if n := len(columns); seal(row[:n]...) != row[n] || !t.check(row[n+1:]) {
				return fmt.Errorf("%s %v: %w", t.table, row[:t.keys], ErrDamaged)
			}
			copy(from, row)
		}
		if len(rows) < verifyChunk {
			return nil
		}
		where = ` WHERE (` + key + `) > (?` + strings.Repeat(", ?", t.keys-1) + `)`
	}
}

// piece reads all rows of a query.
func piece(ctx context.Context, db *sql.DB, q string, args []any) (list [][]any, err error) {
	rows, err := db.QueryContext(ctx, q, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		row, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		list = append(list, row)
	}
	return list, rows.Err()
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
