// How a message is journalled: one commit with all that it begins.

package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"parley/channels"
	"parley/workspace"
	"parley/workspace/store/engine"
)

// Arrival is one input with all that its commit holds.
type Arrival struct {
	// Input comes without Seq, RoomID, SessionID and Partition: the unit fills them.
	Input workspace.Input
	Room  channels.Address // zero: an input without a room
	Title string
	Key   workspace.Key // zero: an input without a session (refused)
	// Guest makes the sender's person and account in the same commit, when they are not known yet. When they are
	// by now, the stored input (and the run's requester) is theirs.
	Guest *workspace.Account
	// Begin starts this run on the input in the same commit. Where the session has a live run after all, the
	// input stays queued and Begun is nil.
	Begin   *Begin
	Replies []NewOutbound // RoomID empty: the input's room
	Pairing *workspace.Pairing
	Handle  string
	// Backfill says that after a gap its network is asked for what came behind this message (Newest).
	Backfill bool
	// Steered is the text of an edit or delete whose message a turn has taken: what that turn is told.
	Steered string
}

// Accepted is what became of an Arrival.
type Accepted struct {
	Input workspace.Input // as stored; of a duplicate: the first one
	// Duplicate says that the key had been journalled before: nothing was done.
	Duplicate bool
	Begun     *Begun
	Replies   []workspace.Outbound
	Amended   *Amended // of an edit or delete
}

// Amended says what an edit or delete did to its target.
type Amended struct {
	Target workspace.Input
	Was    workspace.InputState
}

// Accept journals a batch in one commit. It returns channels.ErrUnwritable when nothing can be written.
func (s *Store) Accept(batch ...Arrival) ([]Accepted, error) {
	var out []Accepted
	err := s.db.Offer("accept", unit(func(t *tx) error {
		out = make([]Accepted, len(batch))
		for i := range batch {
			if err := t.accept(&batch[i], &out[i]); err != nil {
				return err
			}
		}
		return nil
	}))
	if err != nil {
		return nil, err
	}
	return out, nil
}

// apply journals an input that is to be answered next.
func (a Arrival) apply(t *tx, did *Did) error {
	var asked Accepted
	if err := t.accept(&a, &asked); err != nil {
		return err
	}
	if !asked.Duplicate {
		did.Asked = &asked.Input
	}
	return nil
}

func (t *tx) accept(a *Arrival, out *Accepted) (err error) {
	in := a.Input
	if amends := in.Kind == channels.KindEdit || in.Kind == channels.KindDelete; amends && in.TargetKey != "" {
		// a second copy must not amend again what has changed since
		out.Input, err = t.inputByKey(in.Source, in.Account, in.Key)
		if !errors.Is(err, workspace.ErrNotFound) {
			out.Duplicate = true
			return err
		}
	}
	if err := t.place(a, &in); err != nil {
		return err
	}
	if in.State == workspace.InputQueued || in.State == workspace.InputContext {
		if err := t.amend(&in, a.Steered, out); err != nil {
			return err
		}
	}
	begins := a.Begin != nil && in.State == workspace.InputQueued
	if begins {
		in.State, in.RunID = workspace.InputTaken, a.Begin.Run.ID
	}
	t.s.cache.seq++
	in.Seq, in.Received = t.s.cache.seq, fromMillis(t.Now)
	stored, err := t.insertInput(&in, a.Handle, a.Backfill)
	if err != nil {
		return err
	}
	if !stored {
		out.Duplicate, out.Amended = true, nil
		out.Input, err = t.inputByKey(in.Source, in.Account, in.Key)
		return err
	}
	if begins {
		if err := t.beginOn(a.Begin, a.Guest != nil, &in, out); err != nil {
			return err
		}
	}
	out.Input = in
	t.Count.Seq = in.Seq
	if a.Pairing != nil {
		if err := t.putPairing(*a.Pairing, in.RoomID); err != nil {
			return err
		}
	}
	for _, r := range a.Replies {
		if r.RoomID == "" {
			r.RoomID = in.RoomID
		}
		o, err := t.outbound(r)
		if err != nil {
			return err
		}
		out.Replies = append(out.Replies, o)
	}
	return nil
}

// place finds or makes the room, session and person of an arrival.
func (t *tx) place(a *Arrival, in *workspace.Input) (err error) {
	if a.Room != (channels.Address{}) {
		if in.RoomID, err = t.room(a.Room, a.Title); err != nil {
			return err
		}
	}
	if !a.Key.IsZero() {
		ses, err := t.session(a.Key)
		if err != nil {
			return err
		}
		in.SessionID, in.Partition = ses.id, a.Key.Partition()
	}
	if a.Guest != nil {
		in.Person, err = t.guest(a.Guest)
	}
	return err
}

// beginOn starts the run of an arrival that was stored as taken; with a live run in the way the input waits.
func (t *tx) beginOn(b *Begin, guest bool, in *workspace.Input, out *Accepted) (err error) {
	begin := *b
	if guest {
		begin.Run.Requester = in.Person
	}
	out.Begun, err = t.begin(&begin, in.SessionID, in.RoomID, []workspace.Input{*in})
	if !errors.Is(err, errLiveRun) {
		return err
	}
	in.State, in.RunID = workspace.InputQueued, ""
	return t.One("queue an input", `UPDATE inputs SET state = 'queued', run_id = '' WHERE seq = ? AND state = 'taken'`, in.Seq)
}

const insertInput = `INSERT INTO inputs (` + sealedInput + `, session_id, state, reason, run_id, handle, backfill, text, data, sum, seal)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
	ON CONFLICT (source, account, key) DO NOTHING`

func (t *tx) insertInput(in *workspace.Input, handle string, backfill bool) (stored bool, err error) {
	if !workspace.Inputs.Can("", in.State) {
		return false, fmt.Errorf("input born %q: %w", in.State, workspace.ErrConflict)
	}
	decision, err := json.Marshal(in.Decision)
	if err != nil {
		return false, err
	}
	binding, err := json.Marshal(in.Binding)
	if err != nil {
		return false, err
	}
	data, err := json.Marshal(in.Data)
	if err != nil {
		return false, err
	}
	text := engine.Clean(in.Text)
	args := make([]any, 0, 29)
	args = append(args, in.Seq, string(in.ID), in.Source, in.Account, in.Key, string(in.Kind), in.TargetKey, string(in.RoomID),
		string(in.Person), string(in.Role), in.Sender, string(in.Agent), in.Partition, string(decision), string(binding),
		string(in.Mode), millis(in.Deadline), t.Now, millis(in.Sent))
	check := engine.Seal(args...)
	n, err := t.Exec(insertInput, append(args, string(in.SessionID), string(in.State), in.Reason, string(in.RunID), handle, bit(backfill),
		text, string(data), engine.SumPair(text, string(data)), check)...)
	return n == 1, err
}

// amend applies an edit or delete to its target: what is queued is replaced or cancelled, what is running is
// steered, what was answered is noted. It decides the amending input's own state.
func (t *tx) amend(in *workspace.Input, steered string, out *Accepted) error {
	deleted := in.Kind == channels.KindDelete
	if in.TargetKey == "" || !deleted && in.Kind != channels.KindEdit {
		return nil
	}
	target, err := t.inputByKey(in.Source, in.Account, in.TargetKey)
	if errors.Is(err, workspace.ErrNotFound) && in.State == workspace.InputContext {
		return nil // of a message from before our time: the new text is what was said
	}
	if errors.Is(err, workspace.ErrNotFound) {
		in.State, in.Reason = workspace.InputNoted, "its message is not known here"
		return nil
	}
	if err != nil {
		return err
	}
	if target.Person != in.Person || target.RoomID != in.RoomID {
		in.State, in.Reason = workspace.InputNoted, "it is not by the writer of its message"
		return nil
	}
	out.Amended = &Amended{Target: target, Was: target.State}
	switch {
	case target.State == workspace.InputContext && deleted: // what was taken back is quoted no more
		in.State = workspace.InputNoted
		return t.replaceText(target, "", "deleted")
	case target.State == workspace.InputContext && in.State == workspace.InputContext:
		in.State = workspace.InputNoted
		return t.replaceText(target, in.Text, target.Reason)
	case target.State == workspace.InputQueued && deleted:
		in.State = workspace.InputNoted
		return t.One("cancel a deleted input", `UPDATE inputs SET state = 'cancelled', reason = 'deleted' WHERE seq = ? AND state = 'queued'`,
			target.Seq)
	case target.State == workspace.InputStale && deleted: // parked: nothing to cancel, but it must not come back
		in.State = workspace.InputNoted
		return t.replaceText(target, "", "deleted")
	case target.State == workspace.InputQueued || target.State == workspace.InputStale:
		in.State = workspace.InputNoted
		if now := in.Data.Attachments; len(now) > 0 && !slices.Equal(now, target.Data.Attachments) { // the file was replaced as well
			target.Data.Attachments, target.Data.Heard = in.Data.Attachments, nil
		}
		return t.replaceText(target, in.Text, target.Reason)
	case target.State == workspace.InputTaken:
		in.State = workspace.InputQueued // told at the next boundary
		if steered != "" {
			in.Text = steered
		}
	case target.State == workspace.InputContext && target.Reason == "" && !deleted && in.Mode == workspace.ModeTurn && in.Decision.Allow:
		// an edit that adds the mention counts as a new message, once; it stays queued
		return t.One("note an edit", `UPDATE inputs SET reason = 'asked by an edit' WHERE seq = ? AND state = 'context'`, target.Seq)
	default:
		in.State = workspace.InputNoted
	}
	return nil
}

func (t *tx) replaceText(in workspace.Input, text, reason string) error {
	data, err := json.Marshal(in.Data)
	if err != nil {
		return err
	}
	text = engine.Clean(text)
	return t.One("replace an edited input", `UPDATE inputs SET text = ?, data = ?, sum = ?, reason = ? WHERE seq = ?
		AND state IN ('queued', 'stale', 'context')`, text, string(data), engine.SumPair(text, string(data)), reason, in.Seq)
}
