package slack

import (
	"context"
	"sync"

	slackgo "github.com/slack-go/slack"

	"parley/channels"
)

const marksMost = 4096

// marks remembers which reactions we put, since Slack wants to be told what to take away.
type marks struct {
	mu  sync.Mutex
	put map[slackgo.ItemRef]string
}

func newMarks() *marks { return &marks{put: map[slackgo.ItemRef]string{}} }

// React puts a reaction on a message in place of the one before; the empty emoji takes it away. After a restart only the
// mark of work is known.
func (c *Channel) React(ctx context.Context, to channels.Address, id channels.MessageID, emoji string) error {
	item := slackgo.NewRefToMessage(string(to.Peer), string(id))
	c.marks.mu.Lock()
	old, known := c.marks.put[item]
	c.marks.mu.Unlock()
	if !known && emoji == "" {
		old = nameOf(c.Traits().Ack)
	}
	name := ""
	if emoji != "" {
		if name = nameOf(emoji); name == "" {
			return bad("Slack's name of the emoji %q is not known", emoji)
		}
		err := c.do(ctx, "reactions.add", func(ctx context.Context, api *slackgo.Client) error { return api.AddReactionContext(ctx, name, item) })
		if err != nil && !says(err, "already_reacted") {
			return err
		}
	}
	if old != "" && old != name {
		err := c.do(ctx, "reactions.remove", func(ctx context.Context, api *slackgo.Client) error { return api.RemoveReactionContext(ctx, old, item) })
		if err != nil && !says(err, "no_reaction", "message_not_found") {
			return err
		}
	}
	c.marks.mu.Lock()
	defer c.marks.mu.Unlock()
	if len(c.marks.put) >= marksMost {
		clear(c.marks.put)
	}
	if c.marks.put[item] = name; name == "" {
		delete(c.marks.put, item)
	}
	return nil
}
