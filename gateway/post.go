package gateway

import (
	"fmt"
	"runtime/debug"
	"strings"

	"parley/channels"
	"parley/channels/markup"
	"parley/gateway/transport"
	"parley/workspace"
)

// post renders a part for the network. What cannot be rendered will never be.
func (d *deliver) post(line *transport.Channel, r *room, o *workspace.Outbound, p *workspace.Part) (post channels.Post, err error) {
	defer func() {
		if p := recover(); p != nil {
			d.log.Error("rendering panicked", "outbound", o.ID, "panic", p, "stack", string(debug.Stack()))
			err = &channels.Error{Class: channels.BadMessage, Err: fmt.Errorf("panic: %v", p)}
		}
	}()
	post = channels.Post{To: d.where(r), Token: p.Token}
	if p.N == 0 || line.Traits.Branches {
		post.ReplyTo = o.ReplyTo
	}
	if post.Handle = d.handle(line, o); post.Handle.Secret != "" {
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
		post.Text, post.Plain = placeholder, placeholder
		return post, nil
	}
	post.Text, post.Plain = markup.Render(o.Text, markup.Span{From: p.From, To: p.To}, line.Traits.Dialect)
	post.Text, post.Plain = d.hide.Redact(post.Text), d.hide.Redact(post.Plain) // whoever made it: the last door out
	if p.Error == markedOnce {                                                  // newLine left room for it
		post.Text, post.Plain = transport.RepeatMark+post.Text, transport.RepeatMark+post.Plain
	}
	if asks && line.Traits.Buttons && p.N == len(o.Parts)-1 {
		post.Actions = d.buttons(o)
	}
	return post, nil
}

// asking says that a message is a question to people that has no answer yet.
func asking(o *workspace.Outbound) bool {
	return o.State == workspace.OutOpen && o.Kind == workspace.OutApproval
}

// handle is what the answer to one event goes through, on networks that give such and while it holds.
func (d *deliver) handle(l *transport.Channel, o *workspace.Outbound) channels.ReplyHandle {
	id, ok := strings.CutPrefix(o.Key, "input:")
	if !ok {
		return channels.ReplyHandle{}
	}
	id, _, _ = strings.Cut(id, ":")
	return d.handleOf(l, workspace.InputID(id))
}

func (d *deliver) handleOf(l *transport.Channel, id workspace.InputID) (h channels.ReplyHandle) {
	if !l.Traits.Handles {
		return h
	}
	packed, err := d.store.InputHandle(id)
	if err != nil {
		d.log.Warn("handle of an event cannot be read", "input", id, "err", err)
		return h
	}
	if h = channels.UnpackHandle(packed); h.Holds(d.now()) {
		return h
	}
	return channels.ReplyHandle{}
}

// private says whether the answer to an event goes to its sender alone.
func (d *deliver) private(in workspace.Input) bool {
	addr, err := d.Address(in.RoomID)
	if err != nil {
		return false
	}
	l := d.channels.Find(addr)
	return l != nil && d.handleOf(l, in.ID).Secret != ""
}
