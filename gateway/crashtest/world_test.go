//go:build !race

package crashtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/channels/telegram/telegramtest"
)

// chatsAtOnce is how many people talk at the same time.
const chatsAtOnce = 20

// world is people on Telegram who talk to a daemon that is killed at a named point of its work. What they see is judged, not
// what the daemon says.
type world struct {
	*scene
	wire *wire

	mu      sync.Mutex
	gen     int // counts the daemon's lives, from 1
	armed   string
	left    int // passages until the armed point kills
	kills   []kill
	born    map[messageID]int // in which life a message was sent
	seen    map[string]bool   // markers that were answered
	excused map[int]int       // how many of a chat's messages a notice has ended without an answer, at least
	fresh   map[int]int       // replies to /new

	answered atomic.Int64
	talking  sync.WaitGroup
	enough   chan struct{} // closed when nobody begins to write any more
	sent     [chatsAtOnce + 1]chatLog
}

type messageID struct{ chat, id int64 }

// chatLog is what one person wrote.
type chatLog struct {
	asked   []string         // markers, in order
	news    int              // /new
	updates map[int64]string // all messages by their update, with their markers
}

// kill is one death and what came after it.
type kill struct {
	point   string
	at      time.Time
	ready   time.Duration // process start to the first poll
	next    time.Duration // death to the next answer
	pending bool
}

// Visible ends without an answer.
const (
	givenUp     = "interrupted each time"
	undelivered = "could not deliver it here"
)

func newWorld(t *testing.T, opt telegramtest.Options) *world {
	t.Helper()
	w := &world{scene: newScene(t), born: map[messageID]int{}, seen: map[string]bool{}, excused: map[int]int{}, fresh: map[int]int{}, enough: make(chan struct{})}
	opt.NoLimits = true
	opt.OnSent, opt.OnEdited = w.sees, w.sees
	w.wire = newWire(t, opt)
	w.wire.pass = w.pass
	w.wake = func() { w.wire.tg.Raw("poll", "{}") } // those who wait for the network look again: no bot asked for this update, so none gets it
	w.write(w.wire.model.URL+"/v1", fmt.Sprintf(`{name: tg, type: telegram, token: "%s", api_url: "%s", access: {dm: open}}`, w.wire.tg.Token(), w.wire.net.URL), earlySigns)
	return w
}

// earlySigns have a streamed answer begin as a placeholder that grows.
const earlySigns = "replies: {typing_after: 20ms, placeholder_after: 50ms}"

// pass is the wire's: it kills at the armed point, and times what comes after a death.
func (w *world) pass(point string) (died bool) {
	w.mu.Lock()
	if point == "getUpdates arrived" && w.d != nil && len(w.kills) > 0 {
		if k := &w.kills[len(w.kills)-1]; k.ready == 0 {
			k.ready = time.Since(w.d.began)
		}
	}
	if point != w.armed || w.d == nil {
		w.mu.Unlock()
		return false
	}
	if w.left--; w.left > 0 {
		w.mu.Unlock()
		return false
	}
	w.armed = ""
	d := w.d
	w.mu.Unlock()
	d.kill()
	return true
}

// sees is told of every message and edit that reaches a person.
func (w *world) sees(m telegramtest.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.born[messageID{m.Chat, m.ID}]; !known {
		w.born[messageID{m.Chat, m.ID}] = w.gen
	}
	chat := int(m.Chat)
	found := marker.FindAllString(m.Text, -1)
	switch {
	case strings.Contains(m.Text, "fresh session"):
		w.fresh[chat]++
	case len(found) == 0 && (strings.Contains(m.Text, givenUp) || strings.Contains(m.Text, undelivered)):
		w.excused[chat] = len(w.sent[chat].asked) // what waits behind it is judged at the end
	case len(found) == 0:
		return
	}
	for _, k := range found {
		if !w.seen[k] {
			w.answered.Add(1)
		}
		w.seen[k] = true
	}
	if n := len(w.kills); n > 0 && w.kills[n-1].pending {
		w.kills[n-1].pending = false
		w.kills[n-1].next = time.Since(w.kills[n-1].at)
	}
}

// people has everybody write until enough is closed. Nobody has more than two messages without an answer.
func (w *world) people() {
	for c := 1; c <= chatsAtOnce; c++ {
		w.wire.tg.AddPrivate(telegramtest.User{ID: int64(c), First: fmt.Sprintf("P%d", c)})
		w.sent[c].updates = map[int64]string{}
		w.talking.Go(func() { w.talk(c) })
	}
}

func (w *world) talk(c int) {
	l := &w.sent[c]
	for n := 1; w.await(c, 1); n++ {
		text := markerOf(c, n)
		switch (c + n) % 10 {
		case 0:
			text += " stream"
		case 1, 2:
			text += " tools"
		case 3:
			text = "/" + text
		case 4:
			if n%20 == 14 {
				text = "/new"
			}
		}
		update, _ := w.wire.tg.Inject(telegramtest.In{Chat: int64(c), From: telegramtest.User{ID: int64(c), First: fmt.Sprintf("P%d", c)}, Text: text})
		w.mu.Lock()
		l.updates[update] = markerOf(c, n)
		if text == "/new" {
			l.news++
		} else {
			l.asked = append(l.asked, markerOf(c, n))
		}
		w.mu.Unlock()
	}
	w.await(c, 0)
}

// await blocks until no more than open messages of the chat wait for an answer. It is false when nobody is to write on.
func (w *world) await(c, open int) bool {
	last := false
	err := w.wire.tg.WaitFor(w.ctx, func(telegramtest.View) bool {
		select {
		case <-w.enough:
			last = true
		default:
		}
		limit := open
		if last {
			limit = 0
		}
		return w.open(c) <= limit
	})
	return err == nil && !last
}

func (w *world) open(c int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := &w.sent[c]
	n := max(0, l.news-w.fresh[c])
	for _, k := range l.asked[max(w.excused[c], len(l.asked)-50):] {
		if !w.seen[k] {
			n++
		}
	}
	return n
}

// arm has the present life killed at the nth passage of a point of the wire.
func (w *world) arm(point string, nth int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed, w.left = point, nth
}

// boot begins a life that is killed at the nth passage of the point, if one is given.
func (w *world) boot(point string, nth int, env ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed, w.left = "", nth
	if slices.Contains(wirePoints(), point) {
		w.armed = point
	} else if point != "" {
		env = append(env, fmt.Sprintf("%s=%s#%d", childPoint, point, nth))
	}
	w.gen++
	w.start(env...)
}

// died notes a death.
func (w *world) died(point string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kills = append(w.kills, kill{point: point, at: time.Now(), pending: true})
}

// progress waits until n more answers were seen, or the daemon is gone. It fails the test when nothing moves.
func (w *world) progress(n int64) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, 60*time.Second)
	defer cancel()
	target := w.answered.Load() + n
	if err := w.wire.tg.WaitFor(ctx, func(telegramtest.View) bool { return w.answered.Load() >= target || w.d.gone() }); err != nil {
		w.t.Fatalf("no progress for a minute: %d answers, %s", w.answered.Load(), w.waiting())
	}
}

// settle waits until everybody has an answer, ends the daemon as an operator would, and returns how long that took.
func (w *world) settle() time.Duration {
	w.t.Helper()
	close(w.enough)
	w.wake()
	done := make(chan struct{})
	go func() {
		w.talking.Wait()
		close(done)
	}()
	stuck := time.NewTimer(90 * time.Second)
	defer stuck.Stop()
	select {
	case <-done:
	case <-stuck.C:
		w.t.Fatalf("somebody has no answer: %s", w.waiting())
	}
	return w.end()
}

func (w *world) waiting() string {
	var b strings.Builder
	for c := 1; c <= chatsAtOnce; c++ {
		if n := w.open(c); n > 0 {
			fmt.Fprintf(&b, "chat %d: %d open; ", c, n)
			w.mu.Lock()
			for _, k := range w.sent[c].asked {
				if !w.seen[k] {
					b.WriteString(k + " ")
				}
			}
			w.mu.Unlock()
		}
	}
	return b.String()
}
