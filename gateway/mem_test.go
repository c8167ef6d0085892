package gateway_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/channels"
	"parley/gateway"
)

const memAccount = "bot1"

// memNet is a network in memory, whose channel the gateway runs beside Telegram's: for what Telegram cannot show,
// such as a deleted message, and for answers that fail room by room.
type memNet struct {
	traits channels.Traits
	// fail judges a send before it happens; swallow one after it happened. nil: all is well.
	fail    func(channels.Post) error
	swallow func(channels.Post) error
	editing func(channels.Post) error
	find    func(channels.Post) (channels.MessageID, bool, bool, error)

	mu    sync.Mutex
	rooms map[string]func(channels.Post) error // fail, of one peer each
	in    channels.Intake
	up    chan struct{}
	grew  chan struct{}
	posts []memPost
	sent  int // calls of Send, whatever came of them
	next  int
	typed int
}

type memPost struct {
	ID      channels.MessageID
	To      channels.Address
	Text    string
	Edits   []string
	Token   string
	ReplyTo channels.MessageID
	Files   []channels.File
	Deleted bool
	At      time.Time
}

func newMem() *memNet {
	return &memNet{traits: channels.Traits{Dialect: channels.Markdown}, rooms: map[string]func(channels.Post) error{}, up: make(chan struct{}), grew: make(chan struct{})}
}

// memChannel is what one gateway sees of the network; a restarted one gets another.
type memChannel struct{ n *memNet }

// memFinder is a channel of a network that can be asked.
type memFinder struct{ memChannel }

func (n *memNet) factory() channels.Factory {
	return channels.Factory{Network: "mem", Options: func() any { return &struct{}{} },
		New: func(string, any, channels.Deps) (channels.Channel, error) {
			if n.find != nil {
				return memFinder{memChannel{n}}, nil
			}
			return memChannel{n}, nil
		}}
}

func (n *memNet) with(o *gateway.Options) { o.Channels = append(slices.Clone(o.Channels), n.factory()) }

func (c memChannel) Run(ctx context.Context, in channels.Intake) error {
	c.n.mu.Lock()
	c.n.in = in
	close(c.n.up)
	c.n.mu.Unlock()
	in.Report(channels.Status{State: channels.Ready})
	<-ctx.Done()
	c.n.mu.Lock()
	c.n.in, c.n.up = nil, make(chan struct{})
	c.n.mu.Unlock()
	return nil
}

func (c memChannel) Account() channels.AccountID { return memAccount }
func (c memChannel) Traits() channels.Traits     { return c.n.traits }

func (c memChannel) Send(_ context.Context, p channels.Post) (channels.MessageID, error) {
	n := c.n
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sent++
	defer n.tell()
	if n.fail != nil {
		if err := n.fail(p); err != nil {
			return "", err
		}
	}
	if judge := n.rooms[string(p.To.Peer)]; judge != nil {
		if err := judge(p); err != nil {
			return "", err
		}
	}
	n.next++
	id := channels.MessageID(strconv.Itoa(n.next))
	n.posts = append(n.posts, memPost{ID: id, To: p.To, Text: p.Text, Token: p.Token, ReplyTo: p.ReplyTo, Files: p.Files, At: time.Now()})
	if n.swallow != nil {
		if err := n.swallow(p); err != nil {
			return "", err
		}
	}
	return id, nil
}

func (c memChannel) Edit(_ context.Context, id channels.MessageID, p channels.Post) error {
	n := c.n
	n.mu.Lock()
	defer n.mu.Unlock()
	defer n.tell()
	if n.editing != nil {
		if err := n.editing(p); err != nil {
			return err
		}
	}
	for i := range n.posts {
		if m := &n.posts[i]; m.ID == id && !m.Deleted {
			m.Edits = append(m.Edits, m.Text)
			m.Text = p.Text
			return nil
		}
	}
	return &channels.Error{Class: channels.BadMessage, Err: fmt.Errorf("no message %s", id)}
}

func (c memChannel) Delete(_ context.Context, _ channels.Address, id channels.MessageID) error {
	c.n.remove(id)
	return nil
}

func (c memChannel) ShowTyping(context.Context, channels.Address) error {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	c.n.typed++
	return nil
}

func (c memFinder) Find(_ context.Context, p channels.Post, _ time.Time) (channels.MessageID, bool, bool, error) {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	return c.n.find(p)
}

// judges has a function judge what is sent to one peer, as fail does for all.
func (n *memNet) judges(peer string, f func(channels.Post) error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.rooms[peer] = f
}

func (n *memNet) remove(id channels.MessageID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	defer n.tell()
	for i := range n.posts {
		if n.posts[i].ID == id {
			n.posts[i].Deleted = true
		}
	}
}

// tell wakes who waits. The lock is held.
func (n *memNet) tell() {
	close(n.grew)
	n.grew = make(chan struct{})
}

// offer gives events to the gateway and returns after the commit.
func (n *memNet) offer(t *testing.T, list ...channels.Inbound) {
	t.Helper()
	if err := n.try(t, list...); err != nil {
		t.Fatal(err)
	}
}

func (n *memNet) try(t *testing.T, list ...channels.Inbound) error {
	t.Helper()
	n.mu.Lock()
	up := n.up
	n.mu.Unlock()
	receive(t, up, "the channel")
	n.mu.Lock()
	in := n.in
	n.mu.Unlock()
	return in.Receive(t.Context(), list...)
}

// until blocks until what was sent is as the condition wants it.
func (n *memNet) until(t *testing.T, what string, cond func([]memPost) bool) []memPost {
	t.Helper()
	limit := time.After(waitLimit)
	for {
		n.mu.Lock()
		posts, grew := slices.Clone(n.posts), n.grew
		n.mu.Unlock()
		posts = slices.DeleteFunc(posts, func(p memPost) bool { return p.Deleted })
		if cond(posts) {
			return posts
		}
		select {
		case <-grew:
		case <-limit:
			t.Fatalf("%s: never; have %q", what, memTexts(posts))
		}
	}
}

// wait blocks until a peer has n messages, and returns them.
func (n *memNet) wait(t *testing.T, peer string, count int) []memPost {
	t.Helper()
	n.until(t, fmt.Sprintf("%d messages of %s", count, peer), func(list []memPost) bool { return len(of(peer, list)) >= count })
	return n.have(peer)
}

func (n *memNet) have(peer string) []memPost {
	n.mu.Lock()
	defer n.mu.Unlock()
	return of(peer, slices.DeleteFunc(slices.Clone(n.posts), func(p memPost) bool { return p.Deleted }))
}

func of(peer string, list []memPost) (out []memPost) {
	for _, p := range list {
		if string(p.To.Peer) == peer {
			out = append(out, p)
		}
	}
	return out
}

func memTexts(list []memPost) (out []string) {
	for _, p := range list {
		out = append(out, p.Text)
	}
	return out
}

// dm is a direct message; its peer is its writer.
func dm(from, id, text string) channels.Inbound {
	return inbound(channels.DM, from, from, id, text)
}

func inbound(kind channels.PeerKind, peer, from, id, text string) channels.Inbound {
	return channels.Inbound{Key: "m:" + peer + ":" + id, Kind: channels.KindMessage, From: channels.Sender{User: channels.UserID(from), Name: from},
		To: channels.Address{Network: "mem", Account: memAccount, Kind: kind, Peer: channels.PeerID(peer)}, ID: channels.MessageID(id),
		Time: time.Now(), Text: text, Command: strings.HasPrefix(text, "/")}
}

// edited is an edit of a message; rev tells several apart.
func edited(in channels.Inbound, rev, text string) channels.Inbound {
	in.Kind, in.Target, in.Text = channels.KindEdit, in.ID, text
	in.Key = "e" + in.Key[1:] + ":" + rev
	return in
}

func deleted(in channels.Inbound) channels.Inbound {
	in.Kind, in.Target, in.Text = channels.KindDelete, in.ID, ""
	in.Key = "d" + in.Key[1:]
	return in
}

// beside adds the network to what a test sets up.
func (n *memNet) beside(s setup) setup {
	change := s.opt
	s.opt = func(o *gateway.Options) {
		n.with(o)
		if change != nil {
			change(o)
		}
	}
	access := s.access
	if access == "" {
		access = "{dm: open, groups: open, require_mention: true}"
	}
	s.mem, s.more = n, s.more+", {name: mem, type: mem, access: "+access+"}"
	return s
}

// peer is a person or a room of the network in memory, of the slot if there is one.
func (r *rig) peer(n int64) string { return strconv.FormatInt(r.id(n), 10) }

// wrote is a direct message there.
func (r *rig) wrote(from int64, id, text string) channels.Inbound {
	in := dm(r.peer(from), id, text)
	in.From.Name = "P" + r.peer(from)
	return in
}

// wroteIn is a message there that mentions the bot, in a group.
func (r *rig) wroteIn(group, from int64, id, text string) channels.Inbound {
	in := inbound(channels.Group, r.peer(group), r.peer(from), id, text)
	in.From.Name, in.Mentioned = "P"+r.peer(from), true
	return in
}

// sent waits until a person has n messages there, and returns their texts.
func (r *rig) sent(to int64, n int) []string {
	r.t.Helper()
	return memTexts(r.mem.wait(r.t, r.peer(to), n))
}
