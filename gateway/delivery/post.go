// Posts: how a part is rendered for its network. What is made here is the last that secrets are taken out of.

package delivery

import (
	"fmt"
	"runtime/debug"

	"parley/channels"
	"parley/channels/markup"
	"parley/gateway/transport"
	"parley/workspace"
)

// Placeholder is shown until an answer begins. It carries no answer text, so that an orphan is never a second answer.
const Placeholder = "…"

// Render writes a piece of Markdown in a network's dialect and as plain text, without secrets, whoever wrote it.
func (d *Outbox) Render(markdown string, span markup.Span, dialect channels.Dialect) (text, plain string) {
	text, plain = markup.Render(markdown, span, dialect)
	return d.Hide.Redact(text), d.Hide.Redact(plain)
}

// post renders a part for the network. What cannot be rendered will never be.
func (d *Outbox) post(ch *transport.Channel, r *room, o *workspace.Outbound, p *workspace.Part) (post channels.Post, err error) {
	defer func() {
		if p := recover(); p != nil {
			d.Log.Error("rendering panicked", "outbound", o.ID, "panic", p, "stack", string(debug.Stack()))
			err = &channels.Error{Class: channels.BadMessage, Err: fmt.Errorf("panic: %v", p)}
		}
	}()
	post = channels.Post{To: d.where(r), Token: p.Token}
	if p.N == 0 || ch.Traits.Branches {
		post.ReplyTo = o.ReplyTo
	}
	if post.Handle = d.handle(ch, o); post.Handle.Secret != "" {
		post.Private = post.To.Kind != channels.DM
	}
	if p.Blob != "" {
		file, err := d.document(o, p.Blob)
		if err != nil {
			return post, &channels.Error{Class: channels.BadMessage, Err: err}
		}
		post.Files = []channels.File{file}
		return post, nil
	}
	asks := asking(o)
	if o.State == workspace.OutOpen && !asks {
		post.Text, post.Plain = Placeholder, Placeholder
		return post, nil
	}
	post.Text, post.Plain = d.Render(o.Text, markup.Span{From: p.From, To: p.To}, ch.Traits.Dialect)
	if p.Doubt == workspace.DoubtMarked { // transport.New left room for it
		post.Text, post.Plain = transport.RepeatMark+post.Text, transport.RepeatMark+post.Plain
	}
	if asks && ch.Traits.Buttons && p.N == len(o.Parts)-1 && r.job.buttons != nil {
		post.Actions = r.job.buttons(o)
	}
	return post, nil
}

// asking says that a message is a question to people that has no answer yet.
func asking(o *workspace.Outbound) bool {
	return o.State == workspace.OutOpen && o.Kind == workspace.OutApproval
}

// handle is what the answer to one event goes through, on networks that give such and while it holds.
func (d *Outbox) handle(ch *transport.Channel, o *workspace.Outbound) channels.ReplyHandle {
	if o.InputID == "" {
		return channels.ReplyHandle{}
	}
	return d.handleOf(ch, o.InputID)
}

func (d *Outbox) handleOf(ch *transport.Channel, id workspace.InputID) (h channels.ReplyHandle) {
	if !ch.Traits.Handles {
		return h
	}
	packed, err := d.Store.InputHandle(id)
	if err != nil {
		d.Log.Warn("handle of an event cannot be read", "input", id, "err", err)
		return h
	}
	if h = channels.UnpackHandle(packed); h.Holds(d.Now()) {
		return h
	}
	return channels.ReplyHandle{}
}

// Private says whether the answer to an event goes to its sender alone.
func (d *Outbox) Private(in workspace.Input) bool {
	addr, err := d.Address(in.RoomID)
	if err != nil {
		return false
	}
	ch := d.Channels.Find(addr)
	return ch != nil && d.handleOf(ch, in.ID).Secret != ""
}
