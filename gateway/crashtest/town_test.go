//go:build !race

package crashtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/agentloop/llm/llmtest"
)

// network is a fake network with people on it, in chats of their own: how they write, and what they see. A function that is
// nil is of something that the network does not have.
type network struct {
	channel string // its entry in the configuration
	chats   int

	write    func(chat int, text string)
	shown    func(chat int) []string // what the bot has said there and is done with
	wait     func(ctx context.Context, cond func() bool) error
	ready    func() bool     // the daemon is connected: what is written before, nobody hears
	pending  func() int      // what waits for its acknowledgement
	complain func() []string // what the daemon must not do

	trouble func()         // all the time, while the daemon is killed
	strike  func(n int)    // the n-th bad thing of a storm
	calm    func()         // ends both
	taken   func(n int)    // has the daemon killed when the network has taken n more messages and edits, and not said so; 0: never
	trace   func() tracing // how its acknowledgements are found in a trace
}

// town is people on one network who talk to a daemon. What they see is judged.
type town struct {
	*scene
	net network

	mu    sync.Mutex
	asked map[string]int // chats by what was asked there
	count []int          // messages by chat
}

// newTown settles the people, with a model that answers every marker; extra is further configuration.
func newTown(t *testing.T, make func(*town) network, extra string) *town {
	t.Helper()
	w := &town{scene: newScene(t), asked: map[string]int{}}
	w.prog = realProgram(t, w.config())
	w.net = make(w)
	w.count = append(w.count, slices.Repeat([]int{0}, w.net.chats)...)
	model := llmtest.Start(t, markers)
	w.write(model.URL, w.net.channel, extra)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(w.story())
		}
	})
	return w
}

// boot begins a life and returns when people are heard.
func (w *town) boot(env ...string) {
	w.t.Helper()
	w.start(env...)
	w.see("a connection", func() bool { return w.net.ready() || w.d.gone() })
	if w.d.gone() {
		w.t.Fatal("the daemon ended by itself")
	}
}

// see waits for something on the network.
func (w *town) see(what string, cond func() bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, 90*time.Second)
	defer cancel()
	if err := w.net.wait(ctx, cond); err != nil {
		w.t.Fatalf("no %s: %d of %d are answered: %v", what, len(w.answers()), w.said(), err)
	}
}

// says writes a new marker in a chat.
func (w *town) says(chat int) {
	w.mu.Lock()
	w.count[chat]++
	n := w.count[chat]
	k := markerOf(chat, n)
	w.asked[k] = chat
	w.mu.Unlock()
	text := k
	switch (chat + n) % 5 {
	case 0:
		text += " stream"
	case 1:
		text += " tools"
	}
	w.net.write(chat, text)
}

// everybody writes once, all at the same time.
func (w *town) everybody() {
	var writing sync.WaitGroup
	for chat := range w.net.chats {
		writing.Go(func() { w.says(chat) })
	}
	writing.Wait()
}

func (w *town) said() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.asked)
}

// answers are the chats in which each marker stands, as often as it stands there.
func (w *town) answers() map[string][]int {
	got := map[string][]int{}
	for chat := range w.net.chats {
		for _, text := range w.net.shown(chat) {
			for _, k := range marker.FindAllString(text, -1) {
				got[k] = append(got[k], chat)
			}
		}
	}
	return got
}

func (w *town) answered(n int) {
	w.t.Helper()
	w.see("answer", func() bool { return len(w.answers()) >= n })
}

// settle ends all trouble, waits for the last answers and acknowledgements, ends the daemon and judges what people saw.
func (w *town) settle(r row) {
	w.t.Helper()
	if w.net.calm != nil {
		w.net.calm()
	}
	w.answered(w.said())
	if w.net.pending != nil {
		w.see("end of what waits for an acknowledgement", func() bool { return w.net.pending() == 0 })
	}
	w.end()
	w.judge(r)
}

// judge wants every message answered once, to who wrote it, and nothing left half-said.
func (w *town) judge(r row) {
	w.t.Helper()
	lost, twice, elsewhere, unfinished := 0, 0, 0, 0
	got := w.answers()
	for k, chat := range w.asked {
		switch where := got[k]; {
		case len(where) == 0:
			lost++
			w.t.Errorf("%s is not answered", k)
		case slices.ContainsFunc(where, func(c int) bool { return c != chat }):
			elsewhere++
			w.t.Errorf("%s of chat %d is answered in %v", k, chat, where)
		case len(where) > 1:
			twice++
			w.t.Errorf("%s is answered %d times", k, len(where))
		}
	}
	for chat := range w.net.chats {
		for _, text := range w.net.shown(chat) {
			if text == "…" {
				unfinished++
			}
		}
	}
	doubts := w.log.Count(doubted)
	w.t.Logf("%d messages in %d chats: %d lost, %d twice, %d elsewhere, %d placeholders left, %d parts in doubt",
		len(w.asked), w.net.chats, lost, twice, elsewhere, unfinished, doubts)
	if lost+elsewhere+unfinished > 0 || twice > r.twice {
		w.t.Errorf("%d lost, %d twice, %d elsewhere, %d placeholders left", lost, twice, elsewhere, unfinished)
	}
	if r.doubt && doubts == 0 {
		w.t.Error("no part was in doubt after any kill: nothing is proven")
	}
	if w.net.complain != nil {
		for _, c := range w.net.complain() {
			w.t.Errorf("the network complains: %s", c)
		}
	}
}

// story is what became of what has no answer, for the reader of a failure.
func (w *town) story() string {
	got := w.answers()
	var open []string
	for k := range w.asked {
		if len(got[k]) == 0 {
			open = append(open, k)
		}
	}
	slices.Sort(open)
	var b strings.Builder
	fmt.Fprintf(&b, "no answer to %q", open)
	for chat := range w.net.chats {
		if slices.ContainsFunc(open, func(k string) bool { return w.asked[k] == chat }) {
			fmt.Fprintf(&b, "\nchat %d: %q", chat, w.net.shown(chat))
		}
	}
	fmt.Fprintf(&b, "\nruns %q\ninputs %q\nparts %q", w.rows(`SELECT id || ' ' || session_id || ' ' || state || ' ' || tries FROM runs WHERE state IN ('running', 'waiting', 'paused')`),
		w.rows(`SELECT session_id || ' ' || state || ' ' || run_id || ' ' || text FROM inputs WHERE state <> 'answered'`),
		w.rows(`SELECT o.id || ' ' || o.state || ' ' || p.state || ' ' || p.tries || ' ' || p.next_at || ' ' || p.error FROM parts p JOIN outbound o ON o.id = p.outbound_id WHERE p.state NOT IN ('sent', 'cancelled')`))
	return b.String()
}

// killed kills the daemon again and again, at any moment while it answers, starts, and takes up what was left; every other
// time, where the network tells, when that has taken a message and not said so.
func killed(t *testing.T, r row) {
	t.Parallel()
	kills, rng := killsWanted(t, r.few), dice(t)
	w := newTown(t, r.net, earlySigns)
	for n := 0; n < kills || r.doubt && w.log.Count(doubted) == 0 && n < 10*kills; n++ {
		if n > 0 {
			w.everybody() // nobody hears it yet
		}
		if w.net.trouble != nil {
			w.net.trouble()
		}
		w.boot()
		before := w.said()
		w.everybody()
		if n == 0 { // rooms that are known can be read back, where the network has that
			w.answered(w.said())
			before = w.said()
			w.everybody()
		}
		w.strikeDown(n, before, rng)
	}
	w.boot()
	w.everybody()
	w.settle(r)
}

// strikeDown ends the n-th life, before which so much was said. Every other life answers all that, since a turn that is
// interrupted three times in a row is given up.
func (w *town) strikeDown(n, before int, rng *rand.Rand) {
	w.t.Helper()
	switch {
	case n%2 == 1 && w.net.taken != nil:
		w.net.taken(1 + rng.IntN(2*w.net.chats)) // a placeholder, an edit of one, or an answer
		w.see("message that is taken", func() bool { return w.d.gone() || len(w.answers()) == w.said() })
		if w.net.taken(0); w.d.gone() {
			return
		}
	case n%2 == 1 && rng.IntN(2) == 0: // while it takes up what was left
	default:
		w.answered(before + rng.IntN(w.net.chats))
	}
	w.killWithin(100*time.Millisecond, rng)
}

// storm has everybody write while the network does all that it may do to a message, short of losing it: each is answered
// once, by a turn of its own.
func storm(t *testing.T, r row) {
	t.Parallel()
	w := newTown(t, r.net, "sessions: {queue: {mode: followup, cap: 100, debounce: 1ms}}\nreplies: {typing_after: 1m, first_sign: 1m, placeholder_after: 1m}")
	w.boot()
	rounds := r.few
	if full() {
		rounds *= 3
	}
	for n := range rounds {
		if n == 0 { // rooms that are known can be read back, where the network has that
			w.everybody()
			w.answered(w.net.chats)
			continue
		}
		wrote := make(chan struct{})
		go func() {
			w.everybody()
			close(wrote)
		}()
		w.net.strike(n)
		<-wrote
		w.answered((n + 1) * w.net.chats / 2)
	}
	w.settle(r)
	w.none("turns that are too many or too few", fmt.Sprintf(`SELECT COUNT(*) - %d FROM runs`, w.said()))
}
