package slack

import (
	"context"
	"strings"
	"sync"
	"unicode/utf16"

	slackgo "github.com/slack-go/slack"

	"parley/channels"
)

// Stream opens a message that grows: Slack's own stream where it may be used, which is in a thread, and outside of direct
// messages for a person who is named; else an ordinary message that is edited
// (https://docs.slack.dev/reference/methods/chat.startStream).
func (c *Channel) Stream(ctx context.Context, p channels.Post) (channels.Stream, error) {
	thread, self := threadOf(p), c.self.Load()
	if thread == "" || self == nil || p.To.Kind != channels.DM && p.For == "" {
		return c.edited(ctx, p)
	}
	options := []slackgo.MsgOption{slackgo.MsgOptionTS(thread)}
	if p.Text != "" {
		options = append(options, slackgo.MsgOptionMarkdownText(p.Text))
	}
	if p.For != "" {
		options = append(options, slackgo.MsgOptionRecipientUserID(string(p.For)), slackgo.MsgOptionRecipientTeamID(self.team))
	}
	var id channels.MessageID
	err := c.do(ctx, "chat.startStream", func(ctx context.Context, api *slackgo.Client) error {
		_, ts, err := api.StartStreamContext(ctx, string(p.To.Peer), options...)
		id = channels.MessageID(ts)
		return err
	})
	switch {
	case err == nil:
		return &native{c: c, p: p, id: id}, nil
	case channels.ClassOf(err) == channels.BadMessage, channels.ClassOf(err) == channels.PeerGone: // not here, or not for them
		return c.edited(ctx, p)
	}
	return nil, err
}

// native is Slack's own stream.
type native struct {
	c  *Channel
	p  channels.Post
	id channels.MessageID
}

func (n *native) ID() channels.MessageID { return n.id }

// Append adds text. Slack's limit is of one append, not of the whole.
func (n *native) Append(ctx context.Context, text string) error {
	if text == "" {
		return nil
	}
	return n.c.do(ctx, "chat.appendStream", func(ctx context.Context, api *slackgo.Client) error {
		_, _, err := api.AppendStreamContext(ctx, string(n.p.To.Peer), string(n.id), slackgo.MsgOptionMarkdownText(text))
		return err
	})
}

// Close ends the stream with the rest. One that Slack has ended already is ended.
func (n *native) Close(ctx context.Context, rest string) error {
	var with []slackgo.MsgOption
	if n.p.Token != "" {
		with = append(with, stamped(n.p.Token))
	}
	return n.c.stopStream(ctx, n.p.To.Peer, n.id, rest, with...)
}

func (c *Channel) stopStream(ctx context.Context, peer channels.PeerID, id channels.MessageID, rest string, with ...slackgo.MsgOption) error {
	if rest != "" {
		with = append(with, slackgo.MsgOptionMarkdownText(rest))
	}
	err := c.do(ctx, "chat.stopStream", func(ctx context.Context, api *slackgo.Client) error {
		_, _, err := api.StopStreamContext(ctx, string(peer), string(id), with...)
		return err
	})
	if says(err, "message_not_in_streaming_state") {
		return nil
	}
	return err
}

// edited opens an ordinary message in place of a stream.
func (c *Channel) edited(ctx context.Context, p channels.Post) (channels.Stream, error) {
	first := p
	if first.Text == "" {
		first.Text, first.Plain = "…", "…"
	}
	id, err := c.Send(ctx, first)
	if err != nil {
		return nil, err
	}
	s := &growing{c: c, p: p, id: id}
	s.text.WriteString(p.Text)
	return s, nil
}

// growing is a message that grows by edits.
type growing struct {
	c  *Channel
	p  channels.Post
	id channels.MessageID

	mu   sync.Mutex
	text strings.Builder
}

func (g *growing) ID() channels.MessageID { return g.id }

// Append edits the message to what it is now.
func (g *growing) Append(ctx context.Context, text string) error {
	if text == "" {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	next := g.p
	next.Text = g.text.String() + text
	next.Plain = next.Text
	if len(utf16.Encode([]rune(next.Text))) > maxText {
		return bad("the stream is longer than a message may be")
	}
	if err := g.c.Edit(ctx, g.id, next); err != nil {
		return err
	}
	g.text.WriteString(text)
	return nil
}

// Close adds the rest.
func (g *growing) Close(ctx context.Context, rest string) error { return g.Append(ctx, rest) }
