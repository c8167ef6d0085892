package delivery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/channels"
	"parley/configs"
	"parley/gateway/transport"
	"parley/workspace"
	"parley/workspace/blob"
	"parley/workspace/store"
)

// world is an outbox between a store and a network in memory, in a bubble of its own time.
type world struct {
	*Outbox
	t     *testing.T
	db    *memStore
	net   *memNet
	ch    *transport.Channel
	after time.Duration // of stale messages and answers
}

// inBubble runs a test over a world whose network is made by change.
func inBubble(t *testing.T, change func(*memNet), test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		net := &memNet{traits: channels.Traits{Dialect: channels.Plain}}
		if change != nil {
			change(net)
		}
		w := &world{t: t, db: newMemStore(), net: net}
		w.restart()
		t.Cleanup(func() { w.end(time.Second) })
		test(t, w)
	})
}

// restart begins a process over what the one before has stored.
func (w *world) restart() {
	log := slog.New(slog.NewTextHandler(w.t.Output(), nil))
	w.db.epoch++
	w.ch = transport.New(configs.Channel{Name: "net", Type: "mem"}, w.net.channel(), log, time.Now)
	list := &transport.Channels{}
	list.Add(w.ch)
	stale := NewStale(StaleOptions{Store: w.db, After: func() time.Duration { return w.after }, Now: time.Now, Log: log})
	w.Outbox = New(context.WithoutCancel(w.t.Context()), Options{Store: w.db, Channels: list, Moves: transport.NewMoves(nil),
		Blobs: blobs{}, Hide: &workspace.Redactor{},
		Now: time.Now, Log: log}, stale)
	w.ch.Report(channels.Status{State: channels.Ready})
}

// end is a shutdown.
func (w *world) end(flush time.Duration) {
	w.stale.Stop()
	w.Drain(w.t.Context(), flush)
}

// crash ends the process without a shutdown: what it was doing is not recorded any more.
func (w *world) crash() {
	w.db.deaf.Store(w.db.epoch)
	w.end(0)
}

// answer stores an answer of some parts and queues it.
func (w *world) answer(key string, texts ...string) *Job {
	return w.say(answerTo("ana", key, texts...))
}

func (w *world) say(n store.NewOutbound) *Job {
	w.t.Helper()
	out, err := w.db.Outbound(n)
	if err != nil || len(out) != 1 {
		w.t.Fatalf("store %s: %v, %v", n.Key, out, err)
	}
	return w.Push(out[0], false, nil)
}

func answerTo(room workspace.RoomID, key string, texts ...string) store.NewOutbound {
	n := store.NewOutbound{Key: key, RoomID: room, RunID: "run", Kind: workspace.OutAnswer, OnUnknown: workspace.MarkUnknown}
	for _, s := range texts {
		n.Spans = append(n.Spans, store.Span{From: len(n.Text), To: len(n.Text) + len(s)})
		n.Text += s
	}
	return n
}

// after lets time pass, as far as anything waits for it, and says what was sent meanwhile.
func (w *world) wait(d time.Duration) []string {
	<-time.After(d)
	synctest.Wait()
	return w.net.taken()
}

func (w *world) want(what string, got []string, want ...string) {
	w.t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		w.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// states are the parts of an answer as "state tries".
func (w *world) states(key string) (list []string) {
	o, err := w.db.OutboundByKey(key)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, p := range o.Parts {
		list = append(list, fmt.Sprint(p.State, " ", p.Tries))
	}
	return list
}

// memNet is a network in memory. A function that is nil lets all pass.
type memNet struct {
	traits channels.Traits
	send   func(channels.Post) error // before a send: it did not arrive
	lose   func(channels.Post) error // after it: it did, and nobody said so
	edit   func(channels.Post) error
	find   func(channels.Post) (channels.MessageID, bool, bool, error)
	edits  bool // messages can be edited and deleted

	mu    sync.Mutex
	posts []string
	n     int
	known map[string]channels.MessageID // of an idempotent network, by their tokens
}

func (n *memNet) taken() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := n.posts
	n.posts = nil
	return list
}

func (n *memNet) log(s string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.posts = append(n.posts, s)
}

func (n *memNet) channel() channels.Channel {
	switch ch := (memChannel{n}); {
	case n.find != nil:
		return finderChannel{ch}
	case n.edits:
		return editorChannel{ch}
	default:
		return ch
	}
}

type (
	memChannel    struct{ n *memNet }
	finderChannel struct{ memChannel }
	editorChannel struct{ memChannel }
)

func (memChannel) Run(ctx context.Context, _ channels.Intake) error {
	<-ctx.Done()
	return nil
}

func (c memChannel) Traits() channels.Traits { return c.n.traits }

func (c memChannel) Send(_ context.Context, p channels.Post) (channels.MessageID, error) {
	if c.n.send != nil {
		if err := c.n.send(p); err != nil {
			return "", err
		}
	}
	if id, ok := c.n.sent(p.Token); ok {
		return id, nil
	}
	text := p.Plain
	for _, row := range p.Actions {
		for _, a := range row {
			text += " [" + a.Label + "]"
		}
	}
	id := c.n.arrived(p.Token, text)
	if c.n.lose != nil {
		if err := c.n.lose(p); err != nil {
			return "", err
		}
	}
	return id, nil
}

// sent is the message that an idempotent network has of a token: it keeps the text of the first.
func (n *memNet) sent(token string) (id channels.MessageID, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	id, ok = n.known[token]
	return id, ok && n.traits.Idempotent
}

// byToken finds what arrived, as a network does that keeps tokens.
func (n *memNet) byToken(p channels.Post) (id channels.MessageID, found, sure bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	id, found = n.known[p.Token]
	return id, found, true, nil
}

func (n *memNet) arrived(token, text string) channels.MessageID {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.n++
	id := channels.MessageID(fmt.Sprint(n.n))
	if n.known == nil {
		n.known = map[string]channels.MessageID{}
	}
	n.known[token], n.posts = id, append(n.posts, text)
	return id
}

func (c finderChannel) Find(_ context.Context, p channels.Post, _ time.Time) (channels.MessageID, bool, bool, error) {
	return c.n.find(p)
}

func (c editorChannel) Edit(_ context.Context, id channels.MessageID, p channels.Post) error {
	if c.n.edit != nil {
		if err := c.n.edit(p); err != nil {
			return err
		}
	}
	c.n.log(string(id) + " is now " + p.Plain)
	return nil
}

func (c editorChannel) Delete(_ context.Context, _ channels.Address, id channels.MessageID) error {
	c.n.log(string(id) + " is gone")
	return nil
}

// blobs take every file, or fail, and have none.
type blobs struct{ full error }

func (b blobs) Put(data []byte) (string, error) { return fmt.Sprint("ref of ", len(data)), b.full }
func (blobs) Open(string) (*blob.File, error)   { return nil, errors.New("no files here") }

// first fails as many first sends with an error, and lets the others pass.
func first(times int, err error) func(channels.Post) error {
	var mu sync.Mutex
	return func(channels.Post) error {
		mu.Lock()
		defer mu.Unlock()
		if times--; times >= 0 {
			return err
		}
		return nil
	}
}

var (
	errCut  = &channels.Error{Class: channels.Unknown, Err: errors.New("cut")}
	errGone = &channels.Error{Class: channels.BadMessage, Err: errors.New("no such words here")}
)

func flood(after time.Duration) error {
	return &channels.Error{Class: channels.Retry, After: after, Err: errors.New("flood")}
}
