// Runs: how one begins, is taken up again, waits and pauses.

package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"parley/workspace"
	"parley/workspace/store/engine"
)

// Begin starts a run, or takes one up again after a crash.
type Begin struct {
	// Run needs ID, Requester, Role and Deadline; a resumed one also SessionID.
	Run     workspace.Run
	Entries []workspace.EntryBody // one per input: what the transcript holds beside the input's text
}

// Begun is a started run.
type Begun struct {
	Run     workspace.Run
	Entries []workspace.Entry // of its inputs, numbered
}

// Begin takes queued inputs into a new run of the key's newest generation, and returns after the commit. With
// interrupted it ends that run as user_stopped(interrupted) in the same commit, and those of inputs that the old run
// had taken go to the new one. workspace.ErrConflict means that an input was taken, or that the session has another
// live run.
func (s *Store) Begin(b Begin, key workspace.Key, room workspace.RoomID, inputs []workspace.Input, interrupted *Finish) (Begun, error) {
	var out *Begun
	err := s.do("begin", func(t *tx) (err error) {
		if interrupted != nil {
			if err := t.interrupt(interrupted, b.Run.ID); err != nil {
				return err
			}
		}
		fresh := Begin{Run: b.Run}
		var taken []workspace.Input
		for i, in := range inputs {
			if interrupted != nil && holds(interrupted.Inputs, in.Seq) {
				continue // moved by the interrupt, and in the transcript already
			}
			if err := t.take(in, b.Run.ID); err != nil {
				return err
			}
			taken = append(taken, in)
			if i < len(b.Entries) {
				fresh.Entries = append(fresh.Entries, b.Entries[i])
			}
		}
		ses, err := t.session(key)
		if err != nil {
			return err
		}
		out, err = t.begin(&fresh, ses.id, room, taken)
		return err
	})
	if err != nil {
		return Begun{}, err
	}
	return *out, nil
}

func holds(list []workspace.Input, seq int64) bool {
	return slices.ContainsFunc(list, func(in workspace.Input) bool { return in.Seq == seq })
}

func (t *tx) take(in workspace.Input, run workspace.RunID) error {
	return t.One("take an input", `UPDATE inputs SET state = 'taken', run_id = ? WHERE seq = ? AND state = 'queued'`, string(run), in.Seq)
}

// errLiveRun says that the session is held by another run.
var errLiveRun = fmt.Errorf("the session has a live run: %w", workspace.ErrConflict)

// insertRun does nothing where one_live_run or a child's key is taken: an error would end PostgreSQL's transaction.
const insertRun = `INSERT INTO runs (` + sealedRun + `, state, epoch, tries, model, deadline, seal)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'running', ?, 1, ?, ?, ?) ON CONFLICT DO NOTHING`

func (t *tx) begin(b *Begin, session workspace.SessionID, room workspace.RoomID, inputs []workspace.Input) (*Begun, error) {
	run := b.Run
	run.SessionID, run.RoomID, run.State, run.Epoch, run.Tries = session, room, workspace.RunRunning, t.Epoch, 1
	run.Started = fromMillis(t.Now)
	first, err := t.nextEntry(session, 0)
	if err != nil {
		return nil, err
	}
	args := []any{string(run.ID), string(session), null(string(run.ParentRun)), null(run.ParentCall), run.TaskID,
		string(run.Requester), string(run.Role), string(room), t.Now, first}
	n, err := t.Exec(insertRun, append(args, run.Epoch, run.Model, millis(run.Deadline), engine.Seal(args...))...)
	if err != nil {
		return nil, fmt.Errorf("insert run: %w", err)
	}
	if n == 0 {
		return nil, fmt.Errorf("begin run %s: %w", run.ID, errLiveRun)
	}
	out := &Begun{Run: run}
	entries := make([]workspace.Entry, 0, len(inputs)+1)
	entries = append(entries, workspace.Entry{RunID: run.ID, Role: workspace.RoleEvent, Body: workspace.EntryBody{Type: "turn.started"}})
	entries = append(entries, userEntries(run.ID, inputs, b.Entries)...)
	if out.Entries, err = t.appendEntries(session, entries); err != nil {
		return nil, err
	}
	return out, nil
}

// userEntries are the transcript's lines of inputs; their text stays in the input.
func userEntries(run workspace.RunID, inputs []workspace.Input, bodies []workspace.EntryBody) []workspace.Entry {
	var out []workspace.Entry
	for i, in := range inputs {
		e := workspace.Entry{RunID: run, InputID: in.ID, Role: workspace.RoleUser}
		if i < len(bodies) {
			e.Body = bodies[i]
		}
		out = append(out, e)
	}
	return out
}

// Resume takes a run of an earlier boot that was at work: the same run id, one try more, running. One that waits or
// pauses was not, and goes on by MoveRun.
func (s *Store) Resume(run workspace.RunID) (workspace.Run, error) {
	var out workspace.Run
	err := s.do("resume", func(t *tx) (err error) {
		if err = t.One("resume", `UPDATE runs SET epoch = ?, tries = tries + 1, state = 'running', `+waitEnds+`
			WHERE id = ? AND epoch < ? AND state IN ('running', 'waiting')`, t.Epoch, t.Now, string(run), t.Epoch); err != nil {
			return err
		}
		out, err = t.run(run)
		return err
	})
	return out, err
}

// MoveRun moves a run of this process between running and waiting (for an approval) or paused, and returns after the
// commit. A waiting or paused run of an earlier boot becomes this one's when it goes on; that is not a try.
func (s *Store) MoveRun(run workspace.RunID, from, to workspace.RunState) error {
	if !workspace.Runs.Can(from, to) || !from.Live() || !to.Live() {
		return fmt.Errorf("run %s to %s: %w", from, to, workspace.ErrConflict)
	}
	return s.do("move run", func(t *tx) error {
		return t.One("move run", `UPDATE runs SET state = ?, epoch = ?, `+movesDeadline(to)+` WHERE id = ? AND state = ?
			AND (epoch = ? OR state IN ('waiting', 'paused') AND epoch < ?)`, string(to), t.Epoch, t.Now, string(run), string(from), t.Epoch,
			t.Epoch)
	})
}

// A run's deadline does not run while it waits for people: who begins the wait notes when, and who ends it moves the
// deadline by as much. Each takes one argument, the time.
const (
	waitBegins = `held = CASE WHEN held = 0 THEN ? ELSE held END` // from waiting to paused it is one wait
	waitEnds   = `deadline = deadline + CASE WHEN held > 0 AND deadline > 0 THEN ? - held ELSE 0 END, held = 0`
)

func movesDeadline(to workspace.RunState) string {
	if to == workspace.RunRunning {
		return waitEnds
	}
	return waitBegins
}

// MoveDeadline gives a run another deadline. It does not wait.
func (s *Store) MoveDeadline(run workspace.RunID, to time.Time) {
	s.post("deadline", func(t *tx) error {
		_, err := t.Exec(`UPDATE runs SET deadline = ? WHERE id = ? AND epoch = ?`, millis(to), string(run), t.Epoch)
		return err
	})
}

// Trouble notes what the model of a run fails with; nil: it has answered since. It does not wait.
func (s *Store) Trouble(run workspace.RunID, trouble *workspace.Trouble, then func()) {
	s.db.PostThen("trouble", unit(func(t *tx) error {
		var body []byte
		if trouble != nil {
			var err error
			if body, err = json.Marshal(trouble); err != nil {
				return err
			}
		}
		_, err := t.Exec(`UPDATE runs SET trouble = ? WHERE id = ? AND epoch = ?`, string(body), string(run), t.Epoch)
		return err
	}), then)
}

// Pause records that a run is to pause at its next step, or go on, by whom and by what way. It returns after the
// commit. workspace.ErrConflict means that the run has ended, or stands so already.
func (s *Store) Pause(run workspace.RunID, on bool, by workspace.PersonID, via string) error {
	row := workspace.AuditRow{Kind: workspace.AuditRunPaused, Actor: by, Via: via, What: map[string]any{"run": string(run)}}
	set := by
	if !on {
		row.Kind, set = workspace.AuditRunResumed, ""
	}
	return s.do("pause", func(t *tx) error {
		if err := t.One("pause", `UPDATE runs SET pause_by = ? WHERE id = ? AND `+liveRun+` AND stop_by = '' AND (pause_by = '') = (? <> '')`,
			string(set), string(run), string(set)); err != nil {
			return err
		}
		return t.audit(row)
	})
}

// Hold moves a run between running and paused with the line in the transcript that tells of it.
func (s *Store) Hold(run workspace.Run, from, to workspace.RunState, by workspace.PersonID) error {
	kind := workspace.EventPaused
	if to == workspace.RunRunning {
		kind = workspace.EventResumed
	}
	return s.do("hold", func(t *tx) error {
		if err := t.One("hold", `UPDATE runs SET state = ?, epoch = ?, `+movesDeadline(to)+` WHERE id = ? AND state = ?
			AND (epoch = ? OR state IN ('waiting', 'paused') AND epoch < ?)`, string(to), t.Epoch, t.Now, string(run.ID), string(from), t.Epoch,
			t.Epoch); err != nil {
			return err
		}
		_, err := t.appendEntries(run.SessionID, []workspace.Entry{{RunID: run.ID, Role: workspace.RoleEvent,
			Body: workspace.EntryBody{Type: kind, Reason: string(by)}}})
		return err
	})
}
