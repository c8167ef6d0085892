// The commit of a batch, and who is told of it.

package intake

import (
	"context"
	"errors"

	"parley/channels"
	"parley/gateway/transcript"
	"parley/workspace"
	"parley/workspace/clip"
	"parley/workspace/store"
)

// ResumedReason marks an input that a person asked to have answered, however old it is.
const ResumedReason = "resumed"

// reserve holds the lanes of the batch's first messages in idle sessions: their commit begins the turn as well. What
// must first wait for something before it in this very batch (a command, an album, what others said) is queued.
func (r *Receiver) reserve(list []*arrival) {
	behind := map[string]bool{}
	for _, a := range list {
		begins := a.mayBegin && !behind[a.key]
		if a.Input.State == workspace.InputContext || a.Input.State == workspace.InputQueued {
			behind[a.key] = true
		}
		if !begins || !r.Lanes.Reserve(a.key, a.Input.Person) {
			continue
		}
		a.reserved = true
		run := workspace.Run{ID: workspace.RunID(r.Store.IDs().New()), Requester: a.Input.Person, Role: a.Input.Role,
			Deadline: r.Now().Add(r.Snapshot().TurnTimeout)}
		a.Begin = &store.Begin{Run: run, Entries: transcript.Bodies(r.overheard(a), []workspace.Input{a.Input}, nil)}
	}
}

// overheard is what others said in the session since its last turn; the turn that begins quotes it.
func (r *Receiver) overheard(a *arrival) []workspace.ContextLine {
	if a.Key.Kind == "" || a.Key.Kind == channels.DM {
		return nil
	}
	lines, last, err := r.Transcripts.Said(a.Key)
	if err != nil {
		r.Log.Error("overheard messages not read", "session", a.key, "err", err)
	}
	a.heard = last
	return lines
}

// accept commits the batch, then tells lanes, rooms and memory what is stored.
func (r *Receiver) accept(ctx context.Context, list []*arrival) error {
	if len(list) == 0 {
		return nil
	}
	batch := make([]store.Arrival, len(list))
	for i, a := range list {
		batch[i] = a.Arrival
	}
	got, err := r.Store.Accept(batch...)
	if errors.Is(err, workspace.ErrConflict) && r.release(list) { // a session was not idle after all: all of them queue
		for i := range batch {
			batch[i].Begin = nil
		}
		got, err = r.Store.Accept(batch...)
	}
	if err != nil {
		r.release(list)
		return r.apart(ctx, list, err)
	}
	for i, a := range list {
		a.got = got[i]
		r.stored(ctx, a, got[i])
	}
	return nil
}

// apart accepts a batch that failed one by one: an input that the store will never take is noted without its text, so
// that it does not hold up the others.
func (r *Receiver) apart(ctx context.Context, list []*arrival, err error) error {
	for _, passing := range []error{channels.ErrUnwritable, channels.ErrBusy, store.ErrClosed, store.ErrDamaged} {
		if errors.Is(err, passing) {
			return err
		}
	}
	if len(list) == 1 {
		a := list[0]
		if a.Input.State == workspace.InputNoted || a.channel.Adapter == nil { // a program is told so
			return err
		}
		r.Log.Error("input is not stored as it is", "key", a.in.Key, "err", err)
		why := "it could not be stored: " + r.Hide.Redact(clip.Runes(err.Error(), 300))
		return r.accept(ctx, []*arrival{r.noted(a.channel, a.in, why)})
	}
	for _, a := range list {
		a.Begin = nil
		if err := r.accept(ctx, []*arrival{a}); err != nil {
			return err
		}
	}
	return nil
}

// release gives back the lanes that were held for the batch.
func (r *Receiver) release(list []*arrival) (any bool) {
	for _, a := range list {
		if a.reserved {
			a.reserved, any = false, true
			r.Lanes.Release(a.key)
		}
	}
	return any
}

// stored acts on one committed input.
func (r *Receiver) stored(ctx context.Context, a *arrival, got store.Accepted) {
	if a.reserved && got.Begun == nil { // it came twice, or another run of the session lives after all
		r.Lanes.Release(a.key)
	}
	if got.Duplicate {
		r.duplicates.Add(1)
		return
	}
	r.accepted.Add(1)
	in := got.Input
	if in.RoomID != "" {
		r.Outbox.Know(in.RoomID, a.Room)
	}
	if a.Guest != nil && a.Guest.Person == in.Person { // else an earlier message of the batch made them known
		guest := account{a.Guest.Network, a.Guest.Account, a.Guest.User}
		r.Directory.people.learn(guest, workspace.Person{ID: a.Guest.Person, Role: workspace.Guest}, a.age)
	}
	r.Outbox.PushAll(got.Replies)
	if a.Pairing != nil {
		r.Feed.Needs()
	}
	switch {
	case got.Begun != nil:
		if a.heard > 0 {
			r.Transcripts.Heard(a.key, a.heard) // they went into the entry
		}
		r.Lanes.Start(a.key, got.Begun, in)
	case got.Amended != nil:
		r.amended(in, got.Amended)
	case in.State == workspace.InputContext:
		r.Transcripts.Note(a.key, in.Seq, workspace.ContextLine{Name: in.Sender, Text: in.Text})
	case in.State != workspace.InputQueued:
	case a.stale:
		r.Stale.SetAside(in)
	case in.Mode == workspace.ModeCommand && r.command(context.WithoutCancel(ctx), in):
	default:
		r.Lanes.Offer(a.key, in)
	}
}

// command does a command that is not its lane's to do, or starts it.
func (r *Receiver) command(ctx context.Context, in workspace.Input) bool {
	if r.Commands.BeforeRouting(in) {
		r.Commands.Run(ctx, in)
		return true
	}
	return r.Commands.Start(ctx, in)
}

// Offer hands a queued input of the journal to where it is worked on: one of an earlier process, one of which the wake-up was
// lost, one that a person asked to have answered after all.
func (r *Receiver) Offer(ctx context.Context, in workspace.Input) {
	switch {
	case r.Stale.Has(in.Seq):
	case in.Mode == workspace.ModeTurn && in.Reason != ResumedReason && in.Received.Before(r.Began) && r.Stale.Old(in.Sent, nil):
		r.Stale.SetAside(in)
	case in.TargetKey != "" && in.Kind != channels.KindMessage && r.taken(in):
		r.Lanes.Steer(in.Binding.Key, in)
	case in.Mode == workspace.ModeCommand && r.command(ctx, in):
	case in.Reason == ResumedReason:
		r.Lanes.Again(in.Binding.Key, in)
	default:
		r.Lanes.Offer(in.Binding.Key, in)
	}
}

// taken says whether a run took the message that an edit is about: such an edit is steered in, or comes too late.
func (r *Receiver) taken(in workspace.Input) bool {
	target, err := r.Store.InputByKey(in.Source, in.Account, in.TargetKey)
	return err == nil && target.RunID != ""
}
