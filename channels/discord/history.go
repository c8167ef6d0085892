package discord

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"parley/channels"
)

// History is the message from which a thread was started, or the first one in it, and the last n, oldest first.
func (c *Channel) History(ctx context.Context, a channels.Address, n int) ([]channels.Inbound, error) {
	id, err := place(a)
	if err != nil {
		return nil, err
	}
	self, err := c.known(ctx)
	if err != nil {
		return nil, err
	}
	root, err := c.root(ctx, a, id)
	if err != nil {
		return nil, err
	}
	var page []json.RawMessage
	if err := c.rest.get(ctx, "read a thread", fmt.Sprintf("channels/%s/messages?limit=%d", id, min(max(n, 1), pageSize)), &page); err != nil {
		return nil, err
	}
	slices.Reverse(page)
	list := []*message{}
	if root != nil {
		list = append(list, root)
	}
	for _, raw := range page {
		if m, err := decode[message](raw); err == nil && (root == nil || m.ID != root.ID) {
			list = append(list, m)
		}
	}
	// A reader of its own: it journals nothing, and knows only who we are.
	r := &receiver{c: c, self: self}
	var all []channels.Inbound
	for _, m := range list {
		if m.Author == nil || m.Type != typeDefault && m.Type != typeReply {
			continue
		}
		text, mentioned := r.text(m)
		key := channels.MessageKey(a, channels.MessageID(m.ID))
		if m.ID == string(a.Thread) { // the thread grew from it
			key = a.RootKey()
		}
		all = append(all, channels.Inbound{Key: key, Kind: channels.KindMessage, From: sender(m.Author, nil), To: a,
			ID: channels.MessageID(m.ID), Time: when(m.Time, m.ID), Text: text, Mentioned: mentioned, Attachments: m.attachments(), Server: m.Guild})
	}
	return all, nil
}

// root is how a thread began. A thread has the id of the message that it was started from.
func (c *Channel) root(ctx context.Context, a channels.Address, thread string) (*message, error) {
	if a.Thread != "" {
		var m message
		err := c.rest.get(ctx, "look at a thread's beginning", "channels/"+string(a.Peer)+"/messages/"+thread, &m)
		if err == nil {
			return &m, nil
		}
		switch channels.ClassOf(err) {
		case channels.BadMessage, channels.PeerGone: // started from nothing, or in a forum
		case channels.Retry, channels.Fatal, channels.Unknown:
			return nil, err
		}
	}
	var page []json.RawMessage
	if err := c.rest.get(ctx, "look at a thread's beginning", "channels/"+thread+"/messages?limit=1&after="+at(born(thread).Add(-1)), &page); err != nil || len(page) == 0 {
		return nil, err
	}
	m, err := decode[message](page[0])
	if err != nil {
		return nil, nil //nolint:nilerr // it is shown to nobody; the rest of the thread is
	}
	if m.Type == typeStarter && m.Referenced != nil {
		m = m.Referenced
	}
	return m, nil
}
