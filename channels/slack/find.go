package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"parley/channels"
)

// clocksApart is how much the clocks of Slack and of this machine may differ.
const clocksApart = 2 * time.Minute

// Find looks for a post by the token in its metadata; a file, which carries none, by its name. sure says that all that was
// written since, which may be the zero time, was looked at. Answers through a response_url are in no history.
func (c *Channel) Find(ctx context.Context, p channels.Post, since time.Time) (id channels.MessageID, found, sure bool, err error) {
	self := c.self.Load()
	if self == nil {
		return "", false, false, &channels.Error{Class: channels.Retry, Err: errors.New("slack is not connected yet")}
	}
	if p.Handle.Secret != "" {
		return "", false, false, nil
	}
	look := func(list []slackEvent) bool {
		for _, ev := range list {
			if (ev.User == self.user || ev.BotID != "" && ev.BotID == self.bot) && same(p, ev) {
				id, found = channels.MessageID(ev.TS), true
			}
		}
		return found
	}
	args := url.Values{"channel": {string(p.To.Peer)}, "include_all_metadata": {"true"}}
	if !since.IsZero() {
		args.Set("oldest", tsOf(since.Add(-clocksApart)))
	}
	thread := threadOf(p)
	if thread != "" {
		args.Set("ts", thread)
		sure, err = c.pages(ctx, "conversations.replies", args, look)
		if says(err, "thread_not_found", "message_not_found") {
			sure, err = true, nil
		}
	}
	if thread == "" || err == nil && !found && p.To.Thread == "" { // it may have gone into the room, if its thread was gone
		args.Del("ts")
		args.Del("cursor")
		sure, err = c.pages(ctx, "conversations.history", args, look)
	}
	return id, found, sure && !found, err
}

// same says whether a message of Parley's is the post.
func same(p channels.Post, ev slackEvent) bool {
	if len(p.Files) > 0 {
		return len(ev.Files) == 1 && ev.Files[0].Name == p.Files[0].Name && (p.Files[0].Size == 0 || ev.Files[0].Size == p.Files[0].Size)
	}
	if ev.Metadata == nil || ev.Metadata.Type != metaType {
		return false
	}
	var said map[string]any
	return json.Unmarshal(ev.Metadata.Payload, &said) == nil && said[metaToken] == p.Token
}

func tsOf(t time.Time) string { return fmt.Sprintf("%d.%06d", t.Unix(), t.Nanosecond()/1000) }
