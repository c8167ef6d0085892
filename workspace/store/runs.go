// Readers of runs.

package store

import (
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"parley/workspace"
)

const runColumns = `id, session_id, COALESCE(parent_run, ''), COALESCE(parent_call, ''), task_id, requester, role, room_id, state, reason,
	error, epoch, tries, stop_by, pause_by, model, usage, started, ended, deadline, trouble`

func scanRun(scan func(...any) error) (r workspace.Run, err error) {
	var usage, trouble string
	var started, ended, deadline int64
	err = scan(&r.ID, &r.SessionID, &r.ParentRun, &r.ParentCall, &r.TaskID, &r.Requester, &r.Role, &r.RoomID, &r.State, &r.Reason, &r.Error,
		&r.Epoch, &r.Tries, &r.StopBy, &r.PauseBy, &r.Model, &usage, &started, &ended, &deadline, &trouble)
	if err != nil {
		return r, err
	}
	r.Started, r.Ended, r.Deadline = fromMillis(started), fromMillis(ended), fromMillis(deadline)
	if trouble != "" {
		if err := decode(trouble, &r.Trouble); err != nil {
			return r, err
		}
	}
	return r, decode(usage, &r.Usage)
}

func (t *tx) run(id workspace.RunID) (r workspace.Run, err error) {
	err = t.Rows(`SELECT `+runColumns+` FROM runs WHERE id = ?`, []any{string(id)}, func(scan func(...any) error) error {
		r, err = scanRun(scan)
		return err
	})
	if err == nil && r.ID == "" {
		err = workspace.ErrNotFound
	}
	return r, err
}

func (s *Store) runs(where string, args ...any) ([]workspace.Run, error) {
	var out []workspace.Run
	err := s.db.Many(`SELECT `+runColumns+` FROM runs WHERE `+where, args, func(scan func(...any) error) error {
		r, err := scanRun(scan)
		out = append(out, r)
		return err
	})
	return out, err
}

// Run reads one run.
func (s *Store) Run(id workspace.RunID) (workspace.Run, error) {
	return first(s.runs(`id = ?`, string(id)))
}

// LiveRuns lists runs that hold their session.
func (s *Store) LiveRuns() ([]workspace.Run, error) {
	list, err := s.runs(liveRun) // an ORDER BY id would read all runs
	slices.SortFunc(list, func(a, b workspace.Run) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return list, err
}

// LiveRun is the run that holds a session.
func (s *Store) LiveRun(session workspace.SessionID) (workspace.Run, error) {
	return first(s.runs(`session_id = ? AND `+liveRun, string(session)))
}

// LastRun is the newest run of a session.
func (s *Store) LastRun(session workspace.SessionID) (workspace.Run, error) {
	return first(s.runs(`id = (SELECT run_id FROM entries WHERE session_id = ? AND run_id <> '' ORDER BY n DESC LIMIT 1)`, string(session)))
}

// RunRow is a run with whose it is.
type RunRow struct {
	workspace.Run
	Key workspace.Key // of its session
	Gen int
}

// runOwner names the session of a run; a column of its own each, since a join would read by the wrong side.
const runOwner = `, (SELECT key FROM sessions WHERE sessions.id = runs.session_id),
	(SELECT gen FROM sessions WHERE sessions.id = runs.session_id)`

func (s *Store) runRows(where string, args ...any) ([]RunRow, error) {
	var out []RunRow
	err := s.db.Many(`SELECT `+runColumns+runOwner+` FROM runs WHERE `+where, args, func(scan func(...any) error) error {
		var key string
		var gen int
		r, err := scanRun(func(dest ...any) error { return scan(append(dest, &key, &gen)...) })
		if err != nil {
			return err
		}
		row := RunRow{Run: r, Gen: gen}
		row.Key, err = parseKey(key)
		out = append(out, row)
		return err
	})
	return out, err
}

// afterAll comes behind every ULID: their first digit is at most 7.
const afterAll = "8"

// RunsBefore lists runs of everybody whose ids come before one, newest first; empty: from the newest on.
func (s *Store) RunsBefore(before workspace.RunID, limit int) ([]RunRow, error) {
	if before == "" {
		before = afterAll
	}
	return s.runRows(`id < ? ORDER BY id DESC LIMIT ?`, string(before), limit)
}

// LiveRunRows lists the runs that hold their session.
func (s *Store) LiveRunRows() ([]RunRow, error) { return s.runRows(liveRun) }

// FailingRuns lists the runs of a person, begun after a time, that a model fails, or has failed at their end.
func (s *Store) FailingRuns(requester workspace.PersonID, since time.Time) ([]RunRow, error) {
	return s.runRows(`trouble <> '' AND requester = ? AND started > ?`, string(requester), millis(since))
}

// SessionRunsBefore lists the runs of one generation that began before an entry, newest first, and the number of each
// run's first entry.
func (s *Store) SessionRunsBefore(session workspace.SessionID, n int64, limit int) (rows []RunRow, first []int64, err error) {
	var ids []string
	err = s.db.Many(`SELECT r.id, e.n FROM entries e JOIN runs r ON r.id = e.run_id AND r.first_n = e.n AND r.session_id = e.session_id
		WHERE e.session_id = ? AND e.n < ? ORDER BY e.n DESC LIMIT ?`, []any{string(session), n, limit}, func(scan func(...any) error) error {
		var id string
		var at int64
		err := scan(&id, &at)
		ids, first = append(ids, id), append(first, at)
		return err
	})
	for _, id := range ids {
		if err != nil {
			break
		}
		var one []RunRow
		if one, err = s.runRows(`id = ?`, id); err == nil && len(one) == 0 {
			err = workspace.ErrNotFound
		}
		rows = append(rows, one...)
	}
	return rows, first, err
}

// RunFirst is the number of a run's first entry.
func (s *Store) RunFirst(id workspace.RunID) (n int64, err error) {
	err = s.db.One(`SELECT first_n FROM runs WHERE id = ?`, []any{string(id)}, &n)
	return n, err
}

// Spent is what one run cost.
type Spent struct {
	ID      workspace.RunID
	Agent   workspace.AgentID
	Person  workspace.PersonID
	Model   string
	State   workspace.RunState
	Started time.Time
	Usage   workspace.Usage
}

// clockSlack is how far a run's id may lie from its start: ids are made by the same clock, a little earlier.
const clockSlack = time.Hour

// SpentBetween reads runs that started from one time on and before another, at most limit of those whose ids come after
// the given one, in the order of ids. more says that there may be others behind the last.
func (s *Store) SpentBetween(from, to time.Time, after workspace.RunID, limit int) (list []Spent,
	last workspace.RunID, more bool, err error) {
	low, high := idAt(from.Add(-clockSlack)), idAt(to.Add(clockSlack))
	if string(after) > low {
		low = string(after)
	}
	rows := 0
	err = s.db.Many(`SELECT id, requester, model, state, started, usage, (SELECT agent FROM sessions WHERE sessions.id = runs.session_id)
		FROM runs WHERE id > ? AND id < ? ORDER BY id LIMIT ?`, []any{low, high, limit}, func(scan func(...any) error) error {
		var sp Spent
		var started int64
		var usage string
		if err := scan(&sp.ID, &sp.Person, &sp.Model, &sp.State, &started, &usage, &sp.Agent); err != nil {
			return err
		}
		rows++
		last, sp.Started = sp.ID, fromMillis(started)
		if sp.Started.Before(from) || !sp.Started.Before(to) {
			return nil
		}
		list = append(list, sp)
		return decode(usage, &list[len(list)-1].Usage)
	})
	return list, last, rows == limit, err
}

// idAt comes before every id that was made at the time or later.
func idAt(t time.Time) string {
	var id ulid.ULID
	_ = id.SetTime(uint64(max(0, t.UnixMilli()))) // fails after the year 10889
	return id.String()
}
