package gateway

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"parley/channels"
	"parley/channels/markup"
	"parley/gateway/delivery"
	"parley/gateway/transport"
	"parley/workspace"
	"parley/workspace/store"
)

// How people answer a question from a chat, by a button or by quoting it, and what becomes of the message that asked.

// buttonPrefix begins the value of a button that decides; the whole is well below the 64 bytes that networks take.
const buttonPrefix = "approval:"

func buttonValue(id workspace.ApprovalID, say string) string {
	return buttonPrefix + string(id) + ":" + say
}

// pressed is the command that a button's value stands for; empty: it is no button of ours.
func pressed(value string) string {
	rest, ok := strings.CutPrefix(value, buttonPrefix)
	id, say, both := strings.Cut(rest, ":")
	if !ok || !both || len(id) != 26 || strings.ContainsAny(rest, " \n\"'") {
		return ""
	}
	return "/approve " + id + " " + say
}

// pressedID is the question that such a command is about.
func pressedID(line string) workspace.ApprovalID {
	rest, _ := strings.CutPrefix(line, "/approve ")
	id, _, _ := strings.Cut(rest, " ")
	return workspace.ApprovalID(id)
}

// yesOrNo is what a quoted reply to a question says; empty: neither.
func yesOrNo(text string) string {
	switch strings.ToLower(strings.Trim(strings.TrimSpace(text), ".!")) {
	case "yes", "y", "ok", "once":
		return "once"
	case "no", "n", "deny":
		return "deny"
	}
	return ""
}

// answered is the text of a message that asked, once it is answered.
func (a *approvals) answered(ap workspace.Approval) string {
	return a.verdict(ap) + fmt.Sprintf("\nTool `%s`, approval %s.\n\n", codeLabel(ap.Tool), workspace.Short(ap.ID)) + fenced(ap.Body.Shown)
}

// verdict is who decided what, and how, in one line.
func (a *approvals) verdict(ap workspace.Approval) string {
	mark := map[workspace.ApprovalState]string{workspace.ApprovalApproved: "✅", workspace.ApprovalConsumed: "✅", workspace.ApprovalDenied: "❌",
		workspace.ApprovalExpired: "⌛", workspace.ApprovalCancelled: "➖"}[ap.State]
	return mark + " **" + a.g.control.Told(ap) + "**"
}

// closing cuts the text of an answered question into no more messages than had asked; where it needs more, only the
// verdict is shown.
func (a *approvals) closing(ap workspace.Approval, r workspace.AskedRoom, text string) []store.Span {
	was, err := a.store.OutboundByKey(ap.QuestionKey(r.Room))
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
	if addr, err := a.g.deliver.Address(r.Room); err == nil {
		if l := a.g.channels.Serving(addr); l != nil {
			traits = l.Traits
		}
	}
	spans := delivery.Cut(text, traits)
	if len(files) > 0 || !r.Whole || len(spans) > len(was.Parts) {
		first, _, _ := strings.Cut(text, "\n\n")
		spans = []store.Span{{To: len(first)}}
	}
	return append(files, spans...)
}

// stray closes a pressed message that asked about what is answered by now and that is none of those we know of: the network
// took it without saying so, and it was sent again, or given up. Its buttons would stay for good. Who presses it again has
// this tried again.
func (a *approvals) stray(in workspace.Input) {
	ap, err := a.store.Approval(pressedID(in.Text))
	if err != nil || ap.State == workspace.ApprovalPending {
		return
	}
	addr, err := a.g.deliver.Address(in.RoomID)
	if err != nil {
		return
	}
	id := in.Data.Target
	if id == "" || a.knows(ap, id) {
		return
	}
	l := a.g.channels.Find(addr)
	if l == nil {
		return
	}
	editor, ok := channels.As[channels.Editor](l.Adapter)
	if !ok {
		return
	}
	text := a.answered(ap)
	if len(delivery.Cut(text, l.Traits)) != 1 {
		text = a.verdict(ap)
	}
	post := channels.Post{To: addr}
	post.Text, post.Plain = a.g.deliver.Render(text, markup.Span{To: len(text)}, l.Traits.Dialect)
	a.begin(func(ctx context.Context) {
		if err := editor.Edit(ctx, id, post); err != nil && ctx.Err() == nil {
			a.log.Warn("a stray question keeps its buttons", "approval", ap.ID, "room", addr.String(), "err", err)
		}
	})
}

// knows says whether a message is one by which a question was asked.
func (a *approvals) knows(ap workspace.Approval, id channels.MessageID) bool {
	for _, r := range ap.Body.Rooms {
		o, err := a.store.OutboundByKey(ap.QuestionKey(r.Room))
		if err == nil && slices.ContainsFunc(o.Parts, func(p workspace.Part) bool { return p.RemoteID == id }) {
			return true
		}
	}
	return false
}

// quotedAnswer is the command that a yes or no stands for which answers a message of ours that asked; empty: it is none.
// In groups only buttons decide.
func (d *dispatch) quotedAnswer(l *transport.Channel, in channels.Inbound) string {
	say := yesOrNo(in.Text)
	if say == "" || in.Kind != channels.KindMessage || in.ReplyTo == "" || in.To.Kind != channels.DM || l.Traits.Local {
		return ""
	}
	room, err := d.store.RoomByAddress(in.To)
	if err != nil {
		return ""
	}
	list, err := d.store.QuestionsOf(room.ID)
	if err != nil {
		d.log.Error("questions of a room cannot be read", "room", room.ID, "err", err)
		return ""
	}
	for _, o := range list {
		for _, p := range o.Parts {
			if p.RemoteID != in.ReplyTo {
				continue
			}
			ap, err := d.store.ApprovalAskedBy(o)
			if err != nil || !ap.AnswerableIn(room.ID) {
				return ""
			}
			return "/approve " + string(ap.ID) + " " + say
		}
	}
	return ""
}
