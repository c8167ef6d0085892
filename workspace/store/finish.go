// How a run ends: with its inputs, its transcript and its answer.

package store

import (
	"encoding/json"
	"errors"
	"fmt"

	"parley/workspace"
	"parley/workspace/store/engine"
)

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
// the run is another process's or has ended.
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
	ended := workspace.Entry{RunID: f.Run.ID, Role: workspace.RoleEvent,
		Body: workspace.EntryBody{Type: "turn.ended", Reason: endReason(out.State, f.Reason)}}
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
	err := t.Row(`UPDATE outbound SET state = 'cancelled' WHERE id = ? AND state = 'open' RETURNING id`,
		[]any{string(outboundID(workspace.AnswerKey(run), run))}, &id)
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
