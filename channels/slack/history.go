package slack

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"parley/channels"
)

const (
	pageSize     = 200
	pagesMost    = 20   // of one thread or room
	backfillMost = 100  // messages in one batch
	missedMost   = 2000 // of one room
	missedTries  = 5    // of one room, where Slack asks to wait
)

// page is one answer of conversations.history or conversations.replies.
type page struct {
	Messages []json.RawMessage `json:"messages"`
	More     bool              `json:"has_more"`
	Meta     struct {
		Next string `json:"next_cursor"`
	} `json:"response_metadata"`
}

// pages reads page after page until f says that it has enough; all says that the end was reached.
func (c *Channel) pages(ctx context.Context, method string, args url.Values, f func([]slackEvent) (enough bool)) (all bool, err error) {
	args.Set("limit", strconv.Itoa(pageSize))
	for range pagesMost {
		p, err := read[page](ctx, c, method, args)
		if err != nil {
			return false, err
		}
		var list []slackEvent
		for _, raw := range p.Messages {
			var ev slackEvent
			if json.Unmarshal(raw, &ev) == nil && ev.TS != "" { // one odd message hides no other
				ev.Channel = args.Get("channel")
				list = append(list, ev)
			}
		}
		if f(list) {
			return false, nil
		}
		if !p.More || p.Meta.Next == "" {
			return true, nil
		}
		args.Set("cursor", p.Meta.Next)
	}
	return false, nil
}

// History reads the root of a thread and its last n messages, our own among them, oldest first.
func (c *Channel) History(ctx context.Context, a channels.Address, n int) ([]channels.Inbound, error) {
	if c.self.Load() == nil || a.Thread == "" {
		return nil, nil
	}
	r := &receiver{c: c} // it only reads
	var root *slackEvent
	var last []slackEvent
	_, err := c.pages(ctx, "conversations.replies", url.Values{"channel": {string(a.Peer)}, "ts": {string(a.Thread)}}, func(list []slackEvent) bool {
		for _, ev := range list {
			switch {
			case ev.TS == string(a.Thread):
				root = &ev // on every page
			case ev.Subtype == "" || ev.Subtype == "file_share" || ev.Subtype == "thread_broadcast" || ev.Subtype == "bot_message":
				last = append(last, ev)
			}
		}
		last = last[max(0, len(last)-n):]
		return false
	})
	if err != nil {
		return nil, err
	}
	if root != nil && root.Subtype != "tombstone" {
		last = slices.Insert(last, 0, *root)
	}
	var out []channels.Inbound
	for _, ev := range last {
		in := r.plain(ctx, ev)
		in.To = a
		out = append(out, in)
	}
	return out, nil
}

// backfill reads what was missed while there was no connection, in rooms that the journal knows. What comes twice the
// journal knows by its key.
func (r *receiver) backfill(ctx context.Context) {
	newest, err := r.in.Newest(ctx)
	if err != nil {
		if ctx.Err() == nil {
			r.c.log.Warn("missed messages cannot be requested", "err", err)
		}
		return
	}
	rooms := slices.Collect(maps.Keys(newest))
	slices.SortFunc(rooms, func(a, b channels.PeerID) int { return strings.Compare(string(newest[b]), string(newest[a])) }) // where most goes on, first
	for _, peer := range rooms {
		id := newest[peer]
		if timeOf(string(id)).IsZero() {
			continue // nothing of a conversation that has a ts
		}
		for try := 0; ctx.Err() == nil; try++ {
			err := r.missed(ctx, string(peer), string(id))
			var e *channels.Error
			if errors.As(err, &e) && e.Class == channels.Retry && try < missedTries {
				channels.Sleep(ctx, max(e.After, r.c.pace.backoff(try)))
				continue
			}
			if err != nil && ctx.Err() == nil {
				r.c.log.Warn("missed messages of a room cannot be read", "peer", peer, "err", err)
			}
			break
		}
	}
}

// missed hands in what was written in one room after a message, oldest first. Replies are in no history: they are read of
// threads that began since. Those of older threads come only by Slack's own tries.
func (r *receiver) missed(ctx context.Context, channel, after string) error {
	var list []slackEvent
	keep := func(page []slackEvent) bool {
		for _, ev := range page {
			if strings.Compare(ev.TS, after) > 0 {
				list = append(list, ev)
			}
		}
		return len(list) >= missedMost
	}
	if _, err := r.c.pages(ctx, "conversations.history", url.Values{"channel": {channel}, "oldest": {after}}, keep); err != nil {
		return err
	}
	for _, root := range slices.Clone(list) {
		if root.LatestReply == "" {
			continue
		}
		_, err := r.c.pages(ctx, "conversations.replies", url.Values{"channel": {channel}, "ts": {root.TS}, "oldest": {root.TS}}, func(page []slackEvent) bool {
			return keep(slices.DeleteFunc(page, func(ev slackEvent) bool { return ev.TS == root.TS }))
		})
		if err != nil {
			return err
		}
	}
	slices.SortFunc(list, func(a, b slackEvent) int { return strings.Compare(a.TS, b.TS) })
	for part := range slices.Chunk(list, backfillMost) {
		var batch []channels.Inbound
		for _, ev := range part {
			if in, ok := r.messageEvent(ctx, ev); ok {
				batch = append(batch, in)
			}
		}
		if len(batch) == 0 {
			continue
		}
		if err := r.handIn(ctx, batch); err != nil {
			return err
		}
	}
	return nil
}
