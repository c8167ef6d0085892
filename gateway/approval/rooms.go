// Rooms: the messages that ask, and what becomes of them when the answer is there.

package approval

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"parley/channels"
	"parley/channels/markup"
	"parley/gateway/delivery"
	"parley/gateway/transport"
	"parley/workspace"
	"parley/workspace/store"
)

// RoomStore is the units and readers of the store that Rooms needs. *store.Store has them.
type RoomStore interface {
	Outbound(list ...store.NewOutbound) ([]workspace.Outbound, error)

	OutboundByKey(key string) (workspace.Outbound, error)
	OpenQuestions() ([]workspace.Outbound, error)
	QuestionsOf(workspace.RoomID) ([]workspace.Outbound, error)
	ApprovalAskedBy(workspace.Outbound) (workspace.Approval, error)
	DirectRoom(person workspace.PersonID, but ...channels.Network) (workspace.RoomID, error)
	RoomByAddress(channels.Address) (workspace.Room, error)
}

// RoomOptions of Rooms; all of them are needed.
type RoomOptions struct {
	Store    RoomStore
	Rule     *Rule
	Outbox   *delivery.Outbox
	Channels *transport.Channels
	KeepFile func([]byte) (ref string, err error)
	Log      *slog.Logger
}

// Rooms asks rooms, and tells them the answer. Safe for concurrent use.
type Rooms struct {
	opt  RoomOptions
	mu   sync.Mutex
	jobs map[workspace.OutboundID]*delivery.Job // of messages that ask
}

// NewRooms makes one that has asked nobody yet.
func NewRooms(o RoomOptions) *Rooms {
	return &Rooms{opt: o, jobs: map[workspace.OutboundID]*delivery.Job{}}
}

// push sends messages that ask, each by one job: a second one would send it twice, or believe it cancelled, and its
// buttons would stay when it is answered.
func (r *Rooms) push(list []workspace.Outbound) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range list {
		if o.State != workspace.OutOpen {
			r.opt.Outbox.Push(o, false, nil)
		} else if r.jobs[o.ID] == nil {
			r.jobs[o.ID] = r.opt.Outbox.Ask(o, r.actions)
		}
	}
}

// reopen reads the messages that ask and were not told the answer, and sends what was not sent of them.
func (r *Rooms) reopen() ([]workspace.Outbound, error) {
	list, err := r.opt.Store.OpenQuestions()
	if err == nil {
		r.push(list)
	}
	return list, err
}

// close tells the rooms that were asked how it was answered. It can be done again.
func (r *Rooms) close(ap workspace.Approval) {
	for _, asked := range ap.Body.Rooms {
		text := r.answered(ap)
		o, err := r.opt.Store.Outbound(store.NewOutbound{Key: ap.QuestionKey(asked.Room), RoomID: asked.Room, RunID: ap.RunID,
			Kind: workspace.OutApproval, Text: text, Spans: r.closing(ap, asked, text), OnUnknown: workspace.DropUnknown})
		if err != nil {
			r.opt.Log.Error("answer not shown in the room that was asked", "approval", ap.ID, "room", asked.Room, "err", err)
			continue
		}
		r.mu.Lock()
		for _, one := range o {
			r.opt.Outbox.Push(one, false, r.jobs[one.ID])
			delete(r.jobs, one.ID)
		}
		r.mu.Unlock()
	}
}

// sweep closes messages that ask about what is answered, where a crash or a full disk came between.
func (r *Rooms) sweep(list []workspace.Outbound) {
	for _, o := range list {
		ap, err := r.opt.Store.ApprovalAskedBy(o)
		if err != nil {
			r.opt.Log.Error("question without an approval", "outbound", o.ID, "err", err)
			continue
		}
		if ap.State != workspace.ApprovalPending {
			r.close(ap)
		}
	}
}

// answered is the text of a message that asked, once it is answered.
func (r *Rooms) answered(ap workspace.Approval) string {
	return r.verdict(ap) + fmt.Sprintf("\nTool `%s`, approval %s.\n\n", codeLabel(ap.Tool), workspace.Short(ap.ID)) + fenced(ap.Body.Shown)
}

// verdict is who decided what, and how, in one line.
func (r *Rooms) verdict(ap workspace.Approval) string {
	mark := map[workspace.ApprovalState]string{workspace.ApprovalApproved: "✅", workspace.ApprovalConsumed: "✅",
		workspace.ApprovalDenied: "❌", workspace.ApprovalExpired: "⌛", workspace.ApprovalCancelled: "➖"}[ap.State]
	return mark + " **" + r.opt.Rule.Told(ap) + "**"
}

// closing cuts the text of an answered question into no more messages than had asked; where it needs more, only the
// verdict is shown.
func (r *Rooms) closing(ap workspace.Approval, asked workspace.AskedRoom, text string) []store.Span {
	was, err := r.opt.Store.OutboundByKey(ap.QuestionKey(asked.Room))
	if err != nil {
		return []store.Span{{To: len(text)}}
	}
	var files []store.Span
	for _, p := range was.Parts {
		if p.Blob != "" {
			files = append(files, store.Span{Blob: p.Blob})
		}
	}
	var traits channels.Traits
	if addr, err := r.opt.Outbox.Address(asked.Room); err == nil {
		if l := r.opt.Channels.Serving(addr); l != nil {
			traits = l.Traits
		}
	}
	spans := delivery.Cut(text, traits)
	if len(files) > 0 || !asked.Whole || len(spans) > len(was.Parts) {
		first, _, _ := strings.Cut(text, "\n\n")
		spans = []store.Span{{To: len(first)}}
	}
	return append(files, spans...)
}

// orphan is the edit that closes a message about a decided approval which is none of those that are known to have asked; nil:
// there is nothing to close.
func (r *Rooms) orphan(ap workspace.Approval, room workspace.RoomID, id channels.MessageID) func(context.Context) {
	addr, err := r.opt.Outbox.Address(room)
	if err != nil || id == "" || r.knows(ap, id) {
		return nil
	}
	ch := r.opt.Channels.Find(addr)
	if ch == nil {
		return nil
	}
	editor, ok := channels.As[channels.Editor](ch.Adapter)
	if !ok {
		return nil
	}
	text := r.answered(ap)
	if len(delivery.Cut(text, ch.Traits)) != 1 {
		text = r.verdict(ap)
	}
	post := channels.Post{To: addr}
	post.Text, post.Plain = r.opt.Outbox.Render(text, markup.Span{To: len(text)}, ch.Traits.Dialect)
	return func(ctx context.Context) {
		if err := editor.Edit(ctx, id, post); err != nil && ctx.Err() == nil {
			r.opt.Log.Warn("buttons of an orphaned question not removed", "approval", ap.ID, "room", addr.String(), "err", err)
		}
	}
}

// knows says whether a message is one by which a question was asked.
func (r *Rooms) knows(ap workspace.Approval, id channels.MessageID) bool {
	for _, asked := range ap.Body.Rooms {
		o, err := r.opt.Store.OutboundByKey(ap.QuestionKey(asked.Room))
		if err == nil && slices.ContainsFunc(o.Parts, func(p workspace.Part) bool { return p.RemoteID == id }) {
			return true
		}
	}
	return false
}
