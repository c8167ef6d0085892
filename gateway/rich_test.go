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
	plain   channels.PeerID // who is shown no stream
	past    []channels.Inbound
	grown   map[channels.MessageID]string
	closed  []channels.MessageID
	marks   []string
	asked   int
	opened  []channels.Post
	handled []channels.Post
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
	if p.To.Peer == c.n.plain {
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

// What a network brings that can do more than Telegram, on one daemon; the last two leave a turn running.
func TestRichNetwork(t *testing.T) {
	t.Parallel()
	n := newRich()
	n.plain = "ben"
	r := newRig(t, setup{opt: n.with, more: ", {name: mem, type: mem, access: {dm: open, groups: open, require_mention: false}}",
		extra: "people: [{id: ana, role: owner, accounts: [{channel: mem, user: ana}]}]\nreplies: {typing_after: 1ms, placeholder_after: 1ms}",
		script: func(q *llmtest.Request) llmtest.Reply {
			switch text := q.LastUser(); {
			case strings.Contains(text, "tell me"):
				return llmtest.Reply{Pieces: []string{growing, " never"}, HangAfter: 2}
			case strings.Contains(text, "tell him"):
				return llmtest.HangMid("one line\nand another")
			}
			return llmtest.Echo(q)
		}})
	r.haltAtEnd()
	for _, part := range []struct {
		name string
		test func(*rig, *richNet)
	}{
		{"a thread is seeded once", threadIsSeededOnce},
		{"a command is answered through its handle", commandThroughItsHandle},
		{"an answer grows where messages can only grow", answerOnlyGrows},
		{"an answer is edited where no stream may be opened", answerIsEdited},
	} {
		t.Run(part.name, func(t *testing.T) {
			in := *r
			in.t = t
			part.test(&in, n)
		})
	}
}

// growing is an answer whose last line is cut.
const growing = "one line\nand a **second** one\nand a third that is cut"

// An answer on a network whose messages only grow: it is opened for who asked, grows by whole lines, is closed, and its
// final text is an edit.
func answerOnlyGrows(r *rig, n *richNet) {
	n.offer(r.t, dm("gina", "g1", "tell me"))
	var opened channels.MessageID
	n.until(r.t, "the answer to grow", func(list []memPost) bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		if of := of("gina", list); len(of) == 1 {
			opened = of[0].ID
		}
		return strings.Contains(n.grown[opened], "second")
	})
	n.locked(func() {
		if !strings.HasPrefix(growing, n.grown[opened]) {
			r.t.Errorf("it grew to %q", n.grown[opened])
		}
		if p := n.opened[len(n.opened)-1]; p.For != "gina" || p.Text != "" {
			r.t.Errorf("it was opened as %+v", p)
		}
		if !slices.Contains(n.marks, "g1 eyes") {
			r.t.Errorf("the messages are marked %q", n.marks)
		}
	})
	n.offer(r.t, dm("gina", "g2", "/stop"))
	n.until(r.t, "the end", func(list []memPost) bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		text := of("gina", list)[0].Text
		return slices.Contains(n.closed, opened) && slices.Contains(n.marks, "g1 ") && strings.HasPrefix(text, growing) && strings.HasSuffix(text, "(stopped)")
	})
	n.locked(func() {
		if once := slices.Index(n.closed, opened); slices.Contains(n.closed[once+1:], opened) {
			r.t.Error("it was closed twice")
		}
	})
}

// Where no stream may be opened, the answer is an ordinary message that is edited.
func answerIsEdited(r *rig, n *richNet) {
	n.offer(r.t, dm("ben", "b1", "tell him"))
	n.until(r.t, "the answer to be edited", func(list []memPost) bool {
		got := of("ben", list)
		return len(got) == 1 && strings.HasPrefix(got[0].Text, "one line")
	})
}

// A thread's first turn quotes how it began and what was said last; no later turn asks again, nor does /new.
func threadIsSeededOnce(r *rig, n *richNet) {
	in := func(id, text string) channels.Inbound {
		m := inbound(channels.Room, "team", "ana", id, text)
		m.To.Thread, m.Mentioned = "5", true
		return m
	}
	n.locked(func() {
		n.past = []channels.Inbound{in("5", "the root of it"), in("6", "what ben said"), in("7", "the question itself")}
	})
	for i, say := range []channels.Inbound{in("7", "the question itself"), in("8", "another"), in("9", "/new"), in("10", "and now")} {
		n.offer(r.t, say)
		n.until(r.t, "the answer to "+say.Text, func(list []memPost) bool {
			got := of("team", list)
			return len(got) == i+1 && (strings.HasPrefix(got[i].Text, "echo: ") || strings.Contains(got[i].Text, "fresh session"))
		})
	}
	first := r.llm.Bodies()[0]
	for text, times := range map[string]int{"the root of it": 1, "what ben said": 1, "the question itself": 1} {
		if got := strings.Count(first, text); got != times {
			r.t.Errorf("%q stands %d times in the prompt", text, got)
		}
	}
	n.locked(func() {
		if n.asked != 1 {
			r.t.Errorf("the network was asked %d times", n.asked)
		}
	})
}

// A native command is answered through its handle, privately in a room, and plainly when the handle has expired.
func commandThroughItsHandle(r *rig, n *richNet) {
	ask := func(kind channels.PeerKind, id string, h channels.ReplyHandle) channels.Post {
		r.t.Helper()
		in := inbound(kind, "p"+id, "ana", id, "/whoami")
		in.Handle = h
		n.offer(r.t, in)
		n.wait(r.t, "p"+id, 1)
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
			r.t.Errorf("%d: through %q, private %v", i, p.Handle.Secret, p.Private)
		}
	}
}
