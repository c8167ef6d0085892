package gateway_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/agentloop/llm/llmtest"
	"parley/channels"
	"parley/gateway"
)

// richNet is a network that can do what Telegram cannot: messages that only grow, marks in place of typing, the past of a
// thread, handles of commands.
type richNet struct {
	*memNet
	noStream bool // none may be opened
	past     []channels.Inbound
	grown    map[channels.MessageID]string
	closed   []channels.MessageID
	marks    []string
	asked    int
	opened   []channels.Post
	handled  []channels.Post
}

type richChannel struct {
	memChannel
	n *richNet
}

func newRich() *richNet {
	n := &richNet{memNet: newMem(), grown: map[channels.MessageID]string{}}
	n.traits = channels.Traits{Dialect: channels.Markdown, Handles: true, Ack: "eyes", EditEvery: time.Millisecond}
	return n
}

func (n *richNet) with(o *gateway.Options) {
	o.Channels = append(slices.Clone(o.Channels), channels.Factory{Network: "mem", Options: func() any { return &struct{}{} },
		New: func(string, any, channels.Deps) (channels.Channel, error) {
			return richChannel{memChannel{n.memNet}, n}, nil
		}})
}

func richRig(t *testing.T, n *richNet, s setup) *rig {
	t.Helper()
	s.opt = n.with
	s.more = ", {name: mem, type: mem, access: {dm: open, groups: open, require_mention: false}}"
	return newRig(t, s)
}

func (n *richNet) locked(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
	n.tell()
}

func (c richChannel) Send(ctx context.Context, p channels.Post) (channels.MessageID, error) {
	c.n.locked(func() { c.n.handled = append(c.n.handled, p) })
	return c.memChannel.Send(ctx, p)
}

func (c richChannel) Stream(ctx context.Context, p channels.Post) (channels.Stream, error) {
	if c.n.noStream {
		return nil, &channels.Error{Class: channels.BadMessage, Err: errors.New("not here")}
	}
	c.n.locked(func() { c.n.opened = append(c.n.opened, p) })
	id, err := c.memChannel.Send(ctx, p)
	return richStream{c.n, id}, err
}

type richStream struct {
	n  *richNet
	id channels.MessageID
}

func (s richStream) ID() channels.MessageID { return s.id }

func (s richStream) Append(_ context.Context, text string) error {
	s.n.locked(func() { s.n.grown[s.id] += text })
	return nil
}

func (s richStream) Close(context.Context, string) error {
	s.n.locked(func() { s.n.closed = append(s.n.closed, s.id) })
	return nil
}

func (c richChannel) React(_ context.Context, _ channels.Address, id channels.MessageID, emoji string) error {
	c.n.locked(func() { c.n.marks = append(c.n.marks, string(id)+" "+emoji) })
	return nil
}

func (c richChannel) History(_ context.Context, a channels.Address, most int) ([]channels.Inbound, error) {
	var list []channels.Inbound
	c.n.locked(func() {
		c.n.asked++
		list = c.n.past
	})
	if a.Thread == "" || most < 20 {
		return nil, errors.New("asked for what is not a thread")
	}
	return list, nil
}

// An answer on a network whose messages only grow: it is opened for who asked, grows by whole lines, is closed, and its
// final text is an edit.
func TestAnswerGrowsWhereMessagesCanOnlyGrow(t *testing.T) {
	t.Parallel()
	n := newRich()
	text := "one line\nand a **second** one\nand a third that is cut"
	r := richRig(t, n, setup{script: func(*llmtest.Request) llmtest.Reply {
		return llmtest.Reply{Pieces: []string{text, " never"}, HangAfter: 2}
	},
		extra: "\nreplies: {typing_after: 1ms, placeholder_after: 1ms}"})
	n.offer(t, dm("ana", "1", "tell me"))
	grown := func() (all string) {
		for _, s := range n.grown {
			all += s
		}
		return all
	}
	n.until(t, "the answer to grow", func([]memPost) bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return strings.Contains(grown(), "second")
	})
	n.locked(func() {
		if !strings.HasPrefix(text, grown()) {
			t.Errorf("it grew to %q", grown())
		}
		if p := n.opened[0]; p.For != "ana" || p.Text != "" {
			t.Errorf("it was opened as %+v", p)
		}
		if len(n.marks) == 0 || n.marks[0] != "1 eyes" {
			t.Errorf("the message is marked %q", n.marks)
		}
	})
	n.offer(t, dm("ana", "2", "/stop"))
	n.until(t, "the end", func(list []memPost) bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return len(n.closed) == 1 && slices.Contains(n.marks, "1 ") && strings.HasPrefix(list[0].Text, text) && strings.HasSuffix(list[0].Text, "(stopped)")
	})
	r.haltAtEnd()
}

// Where no stream may be opened, the answer is an ordinary message that is edited.
func TestAnswerIsEditedWhereNoStreamMayBeOpened(t *testing.T) {
	t.Parallel()
	n := newRich()
	n.noStream = true
	richRig(t, n, setup{script: func(*llmtest.Request) llmtest.Reply { return llmtest.HangMid("one line\nand another") }, extra: "\nreplies: {placeholder_after: 1ms}"}).haltAtEnd()
	n.offer(t, dm("ana", "1", "tell me"))
	n.until(t, "the answer to be edited", func(list []memPost) bool { return len(list) == 1 && strings.HasPrefix(list[0].Text, "one line") })
}

// A thread's first turn quotes how it began and what was said last; no later turn asks again, nor does /new.
func TestThreadIsSeededOnce(t *testing.T) {
	t.Parallel()
	n := newRich()
	in := func(id, text string) channels.Inbound {
		m := inbound(channels.Room, "team", "ana", id, text)
		m.To.Thread, m.Mentioned = "5", true
		return m
	}
	n.past = []channels.Inbound{in("5", "the root of it"), in("6", "what ben said"), in("7", "the question itself")}
	r := richRig(t, n, setup{extra: quiet + "\npeople: [{id: ana, role: owner, accounts: [{channel: mem, user: ana}]}]"})
	n.offer(t, in("7", "the question itself"))
	n.wait(t, "team", 1)
	first := r.llm.Bodies()[0]
	for text, times := range map[string]int{"the root of it": 1, "what ben said": 1, "the question itself": 1} {
		if got := strings.Count(first, text); got != times {
			t.Errorf("%q stands %d times in the prompt", text, got)
		}
	}
	n.offer(t, in("8", "another"))
	n.wait(t, "team", 2)
	n.offer(t, in("9", "/new"))
	n.wait(t, "team", 3)
	n.offer(t, in("10", "and now"))
	n.wait(t, "team", 4)
	n.locked(func() {
		if n.asked != 1 {
			t.Errorf("the network was asked %d times", n.asked)
		}
	})
}

// A native command is answered through its handle, privately in a room, and plainly when the handle has expired.
func TestCommandIsAnsweredThroughItsHandle(t *testing.T) {
	t.Parallel()
	n := newRich()
	richRig(t, n, setup{extra: quiet})
	ask := func(kind channels.PeerKind, id string, h channels.ReplyHandle) channels.Post {
		t.Helper()
		in := inbound(kind, "p"+id, "ana", id, "/whoami")
		in.Handle = h
		n.offer(t, in)
		n.wait(t, "p"+id, 1)
		var got channels.Post
		n.locked(func() { got = n.handled[len(n.handled)-1] })
		return got
	}
	soon, gone := time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	for i, c := range []struct {
		kind    channels.PeerKind
		handle  channels.ReplyHandle
		want    string
		private bool
	}{
		{channels.Room, channels.ReplyHandle{Secret: "https://x/a b", Expires: soon}, "https://x/a b", true},
		{channels.DM, channels.ReplyHandle{Secret: "s"}, "s", false},
		{channels.Room, channels.ReplyHandle{Secret: "s", Expires: gone}, "", false},
		{channels.Room, channels.ReplyHandle{}, "", false},
	} {
		if p := ask(c.kind, string(rune('a'+i)), c.handle); p.Handle.Secret != c.want || p.Private != c.private {
			t.Errorf("%d: through %q, private %v", i, p.Handle.Secret, p.Private)
		}
	}
}
