// Package control is the kernel of the verbs: whatever a person can ask the gateway to do, from whatever surface — a slash
// command, HTTP, the command line. It is the only place that checks roles. The verbs of each noun stand in a package below it;
// control/all lists them. A verb takes who asks and how (Call) and returns a value; its surface parses before and renders after.
//
// A verb that came as a journalled command commits its effect, its input's end and its reply as one unit.
// It starts no goroutine.
package control

import (
	"context"
	"log/slog"
	"time"

	"parley/gateway/rights"
	"parley/workspace"
	"parley/workspace/store"
)

// Store is what the kernel uses of it.
type Store interface {
	RunCommand(c store.Command) (store.Did, error)
	AuditSoon(ctx context.Context, row workspace.AuditRow, within time.Duration) error
}

// Outbox is the way out. *delivery.Outbox is it.
type Outbox interface {
	// PushAll sends what a unit stored.
	PushAll(list []workspace.Outbound)
	// CutFor divides a reply into the parts that a room takes.
	CutFor(room workspace.RoomID, text string) []store.Span
}

// Options of a Kernel. All are needed but Log and Hide.
type Options struct {
	Store  Store
	Outbox Outbox
	Find   *Finder
	Verbs  []Any // the verbs that are values, of all nouns
	Now    func() time.Time
	Log    *slog.Logger        // nil: nobody reads it
	Hide   *workspace.Redactor // takes secrets out of replies; nil: none are known
}

// Kernel is what the verbs of all nouns have in common: it judges who may, commits what a command did with its reply, and
// finds what a word means. Safe for concurrent use.
type Kernel struct {
	Find *Finder
	Now  func() time.Time

	store  Store
	outbox Outbox
	log    *slog.Logger
	hide   *workspace.Redactor
	rows   map[string]rights.Row // of the verbs that are values
}

// New makes the kernel of some verbs.
func New(o Options) *Kernel {
	k := &Kernel{Find: o.Find, Now: o.Now, store: o.Store, outbox: o.Outbox, log: o.Log, hide: o.Hide, rows: map[string]rights.Row{}}
	if k.log == nil {
		k.log = slog.New(slog.DiscardHandler)
	}
	for _, v := range o.Verbs {
		name, row := v.Right()
		k.rows[name] = row
	}
	return k
}

// Commit stores a verb's changes, in their order, with the end and reply of its command, then hands the reply on.
func (k *Kernel) Commit(call Call, value func(store.Did) any, changes ...store.Change) (store.Did, error) {
	cmd := store.Command{Changes: changes}
	render := func(d store.Did) string { return k.hide.Redact(call.Render(value(d))) }
	if call.Input != nil {
		cmd.Input = *call.Input
		if call.FromRoom() && call.Render != nil {
			cmd.Reply = reply(call)
			cmd.Reply.OnUnknown = workspace.MarkUnknown
			cmd.Text = render
			cmd.Spans = func(text string) []store.Span { return k.outbox.CutFor(call.Room, text) }
			if call.File != "" {
				cmd.Spans = func(text string) []store.Span { return []store.Span{{To: len(text)}, {Blob: call.File}} }
			}
		}
		if call.Render != nil {
			cmd.Note = render
		}
	}
	did, err := k.store.RunCommand(cmd)
	if err != nil {
		return did, err
	}
	k.Push(did.Reply)
	return did, nil
}

// Push sends what a unit stored.
func (k *Kernel) Push(list []workspace.Outbound) { k.outbox.PushAll(list) }

// reply is what a command is answered with, yet without words.
func reply(call Call) *store.NewOutbound {
	return &store.NewOutbound{Key: workspace.InputKey(call.Input.ID, "reply"), InputID: call.Input.ID, RoomID: call.Room,
		Kind: workspace.OutReply, ReplyTo: call.replyTo()}
}

// Answer ends a command that changes nothing.
func (k *Kernel) Answer(call Call, value any) error {
	if call.Input == nil {
		return nil
	}
	_, err := k.Commit(call, func(store.Did) any { return value })
	return err
}

// Text answers a command with text that its surface made: /help, /commands.
func (k *Kernel) Text(_ context.Context, call Call, verb, text string) error {
	if err := k.Allow(call, verb); err != nil {
		return err
	}
	call.Render = func(any) string { return text }
	return k.Answer(call, text)
}

// Refuse ends a command that could not be done with one plain sentence. It is not an error unless it cannot be stored.
func (k *Kernel) Refuse(call Call, sentence string) error {
	if call.Input == nil {
		return nil
	}
	sentence = k.hide.Redact(sentence)
	cmd := store.Command{Input: *call.Input, Failed: true, Reason: sentence, Note: func(store.Did) string { return sentence }}
	if call.FromRoom() {
		cmd.Reply = reply(call)
		cmd.Reply.Text, cmd.Reply.Spans = sentence, []store.Span{{To: len(sentence)}}
	}
	did, err := k.store.RunCommand(cmd)
	if err == nil {
		k.Push(did.Reply)
	}
	return err
}

// AuditRow tells of an act of the caller.
func (k *Kernel) AuditRow(call Call, kind string, what map[string]any) workspace.AuditRow {
	return workspace.AuditRow{At: k.Now(), Kind: kind, Actor: call.Actor.Person, Via: call.Surface(), What: what}
}

// auditWithin is how long an act that is done waits for its row.
const auditWithin = 2 * time.Second

// AuditSoon stores the row of an act that is done, and says whether it is stored. One that is not stored yet is kept in memory
// until the store can be written; the log has it in case the process ends before that.
func (k *Kernel) AuditSoon(ctx context.Context, row workspace.AuditRow) bool {
	err := k.store.AuditSoon(ctx, row, auditWithin)
	if err != nil {
		k.log.Error("audit row is not stored yet", "kind", row.Kind, "actor", row.Actor, "via", row.Via, "what", row.What, "err", err)
	}
	return err == nil
}
