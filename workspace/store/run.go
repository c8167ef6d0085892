package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/workspace"
	"parley/workspace/store/engine"
)

// Begin starts a run, or takes one up again after a crash.
type Begin struct {
	// Run needs ID, Requester, Role and Deadline; a resumed one also SessionID.
	Run     workspace.Run
	Entries []workspace.EntryBody // one per input: what the transcript holds besides the input's text
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

// MoveRun moves a run of ours between running and waiting (for an approval) or paused, and returns after the
// commit. A waiting or paused run of an earlier boot becomes ours when it goes on; that is no try.
func (s *Store) MoveRun(run workspace.RunID, from, to workspace.RunState) error {
	if !workspace.Runs.Can(from, to) || !from.Live() || !to.Live() {
		return fmt.Errorf("run %s to %s: %w", from, to, workspace.ErrConflict)
	}
	return s.do("move run", func(t *tx) error {
		return t.One("move run", `UPDATE runs SET state = ?, epoch = ?, `+movesDeadline(to)+` WHERE id = ? AND state = ? AND (epoch = ? OR state IN ('waiting', 'paused') AND epoch < ?)`,
			string(to), t.Epoch, t.Now, string(run), string(from), t.Epoch, t.Epoch)
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

// Take adds queued inputs to a running run: a restart with both, or steering without a step.
func (s *Store) Take(run workspace.Run, inputs []workspace.Input, bodies []workspace.EntryBody) (Stepped, error) {
	return s.Step(StepUnit{Run: run, Inputs: inputs, Bodies: bodies, Wait: true})
}

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
		WHERE run_id = ? AND n = ? AND state IN (`+from+`)`, string(st.State), string(body), engine.Sum(string(body)), millis(st.Ended), string(st.RunID), st.N)
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

// Finish ends a run.
type Finish struct {
	Run        workspace.Run
	State      workspace.RunState
	Reason     string
	Error      string
	Model      string
	Usage      workspace.Usage
	Inputs     []workspace.Input    // taken by the run
	InputState workspace.InputState // answered, silent, failed, stopped
	Steps      []workspace.Step
	Audit      []workspace.AuditRow
	Entries    []workspace.Entry // the answer, before turn.ended
	// Answer is the outbound of the run; nil for none. Its Ref is set to the entry of this index, -1: none.
	Answer      *NewOutbound
	AnswerEntry int
	// Asked says that the run has asked for approvals: what is open of them ends with it.
	Asked bool
	// IfStopped is stored instead of Answer when a stop had been recorded, or an interrupt ends the run: the last
	// words of a streamed answer.
	IfStopped *NewOutbound
}

// Finished is what a Finish stored.
type Finished struct {
	State     workspace.RunState   // user_stopped when a stop was recorded
	Cancelled []workspace.Approval // that were open until then
	Entries   []workspace.Entry
	Answer    *workspace.Outbound
	Cancel    []workspace.OutboundID // the streamed answer that will have no text: cancelled, what is shown of it must go
}

// Finish commits the end of a run with its answer, and returns after the commit. workspace.ErrConflict means that
// the run is not ours or has ended.
func (s *Store) Finish(f Finish) (Finished, error) {
	var out Finished
	err := s.do("finish", func(t *tx) (err error) {
		out, err = t.finish(f)
		return err
	})
	return out, err
}

// A run ends by a compare-and-set: completed and timeout come from running only. A recorded stop wins, from wherever
// it finds the run; that is the second, rare statement (RETURNING costs SQLite a table of its own).
const (
	setEnded  = `reason = ?, error = ?, model = ?, usage = ?, usd = ?, ended = ?, last_n = ?, end_seal = ?`
	finishRun = `UPDATE runs SET ` + setEnded + `, state = ? WHERE id = ? AND epoch = ? AND stop_by = ''
	AND state IN ('running', 'waiting', 'paused') AND (state = 'running' OR ? IN ('failed', 'user_stopped'))`
	finishStopped = `UPDATE runs SET ` + setEnded + `, state = 'user_stopped' WHERE id = ? AND epoch = ? AND stop_by <> ''
	AND state IN ('running', 'waiting', 'paused')`
)

func (t *tx) finish(f Finish) (out Finished, err error) {
	if !workspace.Runs.Can(workspace.RunRunning, f.State) || !workspace.Runs.Final(f.State) {
		return out, fmt.Errorf("finish as %q: %w", f.State, workspace.ErrConflict)
	}
	first, err := t.nextEntry(f.Run.SessionID, 0)
	if err != nil {
		return out, err
	}
	usage, err := json.Marshal(f.Usage)
	if err != nil {
		return out, err
	}
	entries := append([]workspace.Entry(nil), f.Entries...)
	if f.Asked {
		var events []workspace.Entry
		if out.Cancelled, events, err = t.cancelApprovals(f.Run.ID, f.State); err != nil {
			return out, err
		}
		entries = append(entries, events...)
	}
	ending := append(make([]any, 0, 12), f.Reason, f.Error, f.Model, string(usage), f.Usage.CostUSD, t.Now, first+int64(len(entries)))
	ending = append(ending, engine.Seal(ending...))
	n, err := t.Exec(finishRun, append(ending, string(f.State), string(f.Run.ID), t.Epoch, string(f.State))...)
	if err != nil {
		return out, fmt.Errorf("finish run %s: %w", f.Run.ID, err)
	}
	out.State = f.State
	if n == 0 {
		out.State = workspace.RunStopped
		if err := t.One("finish run "+string(f.Run.ID), finishStopped, append(ending, string(f.Run.ID), t.Epoch)...); err != nil {
			return out, err
		}
	}
	for _, st := range f.Steps {
		if err := t.putStep(st); err != nil {
			return out, err
		}
	}
	if err := t.audit(f.Audit...); err != nil {
		return out, err
	}
	if out.State == workspace.RunStopped && f.State != workspace.RunStopped {
		f.InputState, f.Answer, f.AnswerEntry, f.Reason = workspace.InputStopped, f.IfStopped, -1, "stopped"
	}
	ended := workspace.Entry{RunID: f.Run.ID, Role: workspace.RoleEvent, Body: workspace.EntryBody{Type: "turn.ended", Reason: endReason(out.State, f.Reason)}}
	if out.Entries, err = t.appendEntries(f.Run.SessionID, append(entries, ended)); err != nil {
		return out, err
	}
	if len(f.Inputs) > 0 && (!workspace.Inputs.Can(workspace.InputTaken, f.InputState) || f.InputState == workspace.InputQueued) {
		return out, fmt.Errorf("end taken inputs as %q: %w", f.InputState, workspace.ErrConflict)
	}
	for _, in := range f.Inputs {
		if err := t.One("end a taken input", `UPDATE inputs SET state = ? WHERE seq = ? AND run_id = ? AND state = 'taken'`,
			string(f.InputState), in.Seq, string(f.Run.ID)); err != nil {
			return out, err
		}
	}
	if f.Answer == nil {
		out.Cancel, err = t.cutStream(f.Run.ID)
		return out, err
	}
	answer := *f.Answer
	if f.AnswerEntry >= 0 && f.AnswerEntry < len(f.Entries) {
		e := out.Entries[f.AnswerEntry]
		answer.Ref = entryRef(e.SessionID, e.N)
	}
	o, err := t.outbound(answer)
	if err != nil {
		return out, err
	}
	out.Answer = &o
	return out, nil
}

// cutStream cancels the streamed answer of a run that ends without one. A live part of it stays to be removed.
func (t *tx) cutStream(run workspace.RunID) ([]workspace.OutboundID, error) {
	var id workspace.OutboundID
	err := t.Row(`UPDATE outbound SET state = 'cancelled' WHERE id = ? AND state = 'open' RETURNING id`, []any{string(outboundID("run:" + string(run) + ":answer"))}, &id)
	if errors.Is(err, workspace.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	_, err = t.Exec(`UPDATE parts SET state = 'cancelled' WHERE outbound_id = ? AND state IN ('ready', 'parked')`, string(id))
	return []workspace.OutboundID{id}, err
}

func endReason(s workspace.RunState, reason string) string {
	if reason == "" {
		return string(s)
	}
	return string(s) + ": " + reason
}

// interrupt ends the old run user_stopped(interrupted) and moves its unanswered inputs to the next.
func (t *tx) interrupt(f *Finish, next workspace.RunID) error {
	old := *f // the caller's stays as it is: the unit may be run again
	old.Inputs, old.Answer, old.AnswerEntry, old.State, old.Reason = nil, f.IfStopped, -1, workspace.RunStopped, "interrupted"
	if _, err := t.finish(old); err != nil {
		return err
	}
	for _, in := range f.Inputs {
		if err := t.One("move an input to the next run", `UPDATE inputs SET run_id = ? WHERE seq = ? AND run_id = ? AND state = 'taken'`,
			string(next), in.Seq, string(f.Run.ID)); err != nil {
			return err
		}
	}
	return nil
}

// Stop records a stop. It is committed before anything is cancelled.
type Stop struct {
	Session workspace.SessionID
	By      workspace.PersonID
	// Requester limits the stop to turns and queued inputs of one person; empty: whoever's (an owner).
	Requester workspace.PersonID
	Before    int64 // only runs that began with, and queued inputs with, a smaller seq; 0: any run, no queued input
}

// Stopped is what a Stop touched.
type Stopped struct {
	Run    workspace.RunID
	Below  []workspace.RunID // live helpers of it, at any depth: stopped too
	Queued []int64           // seqs of cancelled inputs
	Parts  int64             // unsent parts that were cancelled
}

// Stop commits a stop by itself; RunCommand does so with a reply.
func (s *Store) Stop(st Stop) (Stopped, error) {
	var out Stopped
	err := s.do("stop", func(t *tx) (err error) {
		out, err = t.stop(st)
		return err
	})
	return out, err
}

func (st Stop) apply(t *tx, did *Did) (err error) {
	did.Stopped, err = t.stop(st)
	return err
}

func (t *tx) stop(st Stop) (out Stopped, err error) {
	var id string
	runs := st.Before
	if runs == 0 {
		runs = 1 << 62
	}
	err = t.Row(`UPDATE runs SET stop_by = ? WHERE session_id = ? AND state IN ('running', 'waiting', 'paused') AND (? = '' OR requester = ?)
		AND COALESCE((SELECT MIN(i.seq) FROM inputs i WHERE i.session_id = runs.session_id AND i.`+openInput+` AND i.run_id = runs.id), 0) < ?
		RETURNING id`, []any{string(st.By), string(st.Session), string(st.Requester), string(st.Requester), runs}, &id)
	if err != nil && !errors.Is(err, workspace.ErrNotFound) {
		return out, err
	}
	out.Run = workspace.RunID(id)
	if out.Below, err = t.stopBelow(id, string(st.By)); err != nil {
		return out, err
	}
	err = t.Rows(`UPDATE inputs SET state = 'cancelled', reason = 'stopped' WHERE session_id = ? AND `+openInput+`
		AND state = 'queued' AND mode = 'turn' AND seq < ? AND (? = '' OR person_id = ?) RETURNING seq`,
		[]any{string(st.Session), st.Before, string(st.Requester), string(st.Requester)}, func(scan func(...any) error) error {
			var seq int64
			err := scan(&seq)
			out.Queued = append(out.Queued, seq)
			return err
		})
	if err != nil {
		return out, err
	}
	slices.Sort(out.Queued)
	out.Parts, err = t.Exec(`UPDATE parts SET state = 'cancelled' WHERE `+openPart+` AND state IN ('ready', 'parked')
		AND EXISTS (SELECT 1 FROM outbound o JOIN runs r ON r.id = o.run_id WHERE o.id = parts.outbound_id AND r.session_id = ?
		AND o.kind = 'answer' AND (? = '' OR r.requester = ?)
		AND r.started < COALESCE((SELECT received FROM inputs WHERE seq = ?), 9000000000000000000))`,
		string(st.Session), string(st.Requester), string(st.Requester), st.Before)
	return out, err
}

// stopBelow records the stop on every live helper below a run.
func (t *tx) stopBelow(run, by string) (below []workspace.RunID, err error) {
	if run == "" {
		return nil, nil
	}
	err = t.Rows(`WITH RECURSIVE below(id) AS (SELECT id FROM runs WHERE parent_run = ?
		UNION SELECT r.id FROM runs r JOIN below b ON r.parent_run = b.id)
		UPDATE runs SET stop_by = ? WHERE id IN (SELECT id FROM below) AND state IN ('running', 'waiting', 'paused') RETURNING id`,
		[]any{run, by}, func(scan func(...any) error) error {
			var id workspace.RunID
			err := scan(&id)
			below = append(below, id)
			return err
		})
	slices.Sort(below)
	return below, err
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
