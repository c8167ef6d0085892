// Entries, the lines of a transcript.

package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"parley/workspace"
	"parley/workspace/store/engine"
)

// nextEntry reserves k numbers in a session and returns the first.
func (t *tx) nextEntry(id workspace.SessionID, k int) (int64, error) {
	c := &t.s.cache
	c.bound()
	n, ok := c.entryN[id]
	if !ok {
		if err := t.Row(`SELECT COALESCE(MAX(n), 0) FROM entries WHERE session_id = ?`, []any{string(id)}, &n); err != nil {
			return 0, err
		}
	}
	c.entryN[id] = n + int64(k)
	return n + 1, nil
}

// appendEntries numbers and stores transcript lines, in one statement where there are few.
func (t *tx) appendEntries(session workspace.SessionID, entries []workspace.Entry) ([]workspace.Entry, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	first, err := t.nextEntry(session, len(entries))
	if err != nil {
		return nil, err
	}
	out := make([]workspace.Entry, len(entries))
	args := make([]any, 0, 10*maxEntryRows)
	rows := 0
	flush := func() error {
		if rows == 0 {
			return nil
		}
		_, err := t.Exec(insertEntries(rows), args...)
		args, rows = args[:0], 0
		return err
	}
	for i, e := range entries {
		e.SessionID, e.N, e.At = session, first+int64(i), fromMillis(t.Now)
		out[i] = e
		body, err := json.Marshal(e.Body)
		if err != nil {
			return nil, err
		}
		text := engine.Clean(string(body))
		row := len(args)
		args = append(args, string(session), e.N, string(e.RunID), e.StepN, null(string(e.InputID)), string(e.Role), t.Now)
		args = append(args, text, engine.Sum(text), engine.Seal(args[row:]...))
		if rows++; rows == maxEntryRows {
			if err := flush(); err != nil {
				return nil, err
			}
		}
	}
	return out, flush()
}

// copyEntries stores lines of another transcript under their old numbers and times, which begin at 1 without a gap.
func (t *tx) copyEntries(session workspace.SessionID, lines []workspace.Entry) error {
	if len(lines) == 0 {
		return nil
	}
	if _, err := t.nextEntry(session, len(lines)); err != nil {
		return err
	}
	for chunk := range slices.Chunk(lines, maxEntryRows) {
		args := make([]any, 0, 10*maxEntryRows)
		for _, e := range chunk {
			body, err := json.Marshal(e.Body)
			if err != nil {
				return err
			}
			text := engine.Clean(string(body))
			row := len(args)
			args = append(args, string(session), e.N, string(e.RunID), e.StepN, nil, string(e.Role), millis(e.At))
			args = append(args, text, engine.Sum(text), engine.Seal(args[row:]...))
		}
		if _, err := t.Exec(insertEntries(len(chunk)), args...); err != nil {
			return err
		}
	}
	return nil
}

// maxEntryRows is how many transcript lines one statement stores.
const maxEntryRows = 4

const (
	entryColumns = `INSERT INTO entries (` + sealedEntry + `, body, sum, seal) VALUES `
	entryRow     = `(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
)

func insertEntries(rows int) string {
	switch rows {
	case 1:
		return entryColumns + entryRow
	case 2:
		return entryColumns + entryRow + `, ` + entryRow
	case 3:
		return entryColumns + entryRow + `, ` + entryRow + `, ` + entryRow
	}
	return entryColumns + entryRow + `, ` + entryRow + `, ` + entryRow + `, ` + entryRow
}

func entryRef(session workspace.SessionID, n int64) string {
	return "entry:" + string(session) + "/" + strconv.FormatInt(n, 10)
}

const entryRead = `e.session_id, e.n, e.run_id, e.step_n, COALESCE(e.input_id, ''), e.role, e.at, e.body, e.sum, COALESCE(i.text, ''),
	COALESCE(i.data, ''), COALESCE(i.sum, 0), COALESCE(i.sender, '') FROM entries e LEFT JOIN inputs i ON i.id = e.input_id`

func (s *Store) entries(q string, args ...any) ([]workspace.Entry, error) {
	var out []workspace.Entry
	err := s.db.Many(q, args, func(scan func(...any) error) error {
		var e workspace.Entry
		var body, text, data, sender string
		var at, check, inputCheck int64
		if err := scan(&e.SessionID, &e.N, &e.RunID, &e.StepN, &e.InputID, &e.Role, &at, &body, &check, &text, &data, &inputCheck,
			&sender); err != nil {
			return err
		}
		if engine.Sum(body) != check || e.InputID != "" && data != "" && engine.SumPair(text, data) != inputCheck {
			return fmt.Errorf("entry %d of session %s: %w", e.N, e.SessionID, ErrDamaged)
		}
		e.At = fromMillis(at)
		if err := decode(body, &e.Body); err != nil {
			return err
		}
		if e.InputID != "" {
			if e.Role == workspace.RoleUser {
				e.Body = UserBody(e.Body, workspace.Input{Text: text, Sender: sender})
			} else { // a command, with its reply in Content
				e.Body.Context = append(e.Body.Context, workspace.ContextLine{Name: sender, Text: text})
			}
		}
		out = append(out, e)
		return nil
	})
	return out, err
}

// Entries lists a session's transcript after n, oldest first, at most limit. A user's text is read from its input.
func (s *Store) Entries(session workspace.SessionID, after int64, limit int) ([]workspace.Entry, error) {
	return s.entries(`SELECT `+entryRead+` WHERE e.session_id = ? AND e.n > ? ORDER BY e.n LIMIT ?`, string(session), after, limit)
}

// EntriesBefore lists the newest entries of a session that stand before a line, oldest first, at most limit: for a
// reader who goes back.
func (s *Store) EntriesBefore(session workspace.SessionID, before int64, limit int) ([]workspace.Entry, error) {
	list, err := s.entries(`SELECT `+entryRead+` WHERE e.session_id = ? AND e.n < ? ORDER BY e.n DESC LIMIT ?`, string(session), before, limit)
	slices.Reverse(list)
	return list, err
}

// LastEntries lists the newest entries of a session, oldest first, at most limit.
func (s *Store) LastEntries(session workspace.SessionID, limit int) ([]workspace.Entry, error) {
	list, err := s.entries(`SELECT `+entryRead+` WHERE e.session_id = ? ORDER BY e.n DESC LIMIT ?`, string(session), limit)
	for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
		list[i], list[j] = list[j], list[i]
	}
	return list, err
}

// InputEntry reads the transcript's line of one input.
func (s *Store) InputEntry(id workspace.InputID) (workspace.Entry, error) {
	return first(s.entries(`SELECT `+entryRead+` WHERE e.input_id = ?`, string(id)))
}

// RunEntries lists the transcript's lines of one run, in order.
func (s *Store) RunEntries(session workspace.SessionID, run workspace.RunID) ([]workspace.Entry, error) {
	return s.entries(`SELECT `+entryRead+` WHERE e.session_id = ? AND e.run_id = ? AND e.n >= (SELECT first_n FROM runs WHERE id = ?)
		AND e.n <= (SELECT CASE WHEN last_n = 0 THEN 9000000000000000000 ELSE last_n END FROM runs WHERE id = ?) ORDER BY e.n`,
		string(session), string(run), string(run), string(run))
}

// UserBody is a user's entry with the text that its input holds.
func UserBody(b workspace.EntryBody, in workspace.Input) workspace.EntryBody {
	b.Name = in.Sender
	b.Content = append([]workspace.Content{{Kind: workspace.Text, Text: in.Text}}, b.Content...)
	return b
}
