package benchtest

import (
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/agentloop/llm/llmtest"
	"parley/channels/telegram/telegramtest"
)

// lostAfter is when a chat gives an answer up and writes again.
const lostAfter = 15 * time.Second

// world is a fake Telegram and a scripted model, for one process.
type world struct {
	tg       *telegramtest.Server
	llm      *httptest.Server
	script   *llmtest.Server
	polled   chan time.Time // the first getUpdates
	chats    []*chat
	byID     map[int64]*chat
	lost     atomic.Int64
	channels string                 // further items of the configuration's channels
	sent     atomic.Pointer[func()] // called at every complete answer
}

// chat is one person who writes again when the answer has come.
type chat struct {
	user   telegramtest.User
	mu     sync.Mutex
	expect string // the answer that is waited for
	came   chan time.Time
	took   []time.Duration // of the answers inside the window
}

// newWorld has n chats and a model that takes latency for an answer.
func newWorld(n int, latency time.Duration) *world {
	w := &world{polled: make(chan time.Time, 1), byID: map[int64]*chat{}}
	w.script = llmtest.New(func(r *llmtest.Request) llmtest.Reply {
		if reply, breaks := breaks(r.LastUser()); breaks {
			return reply
		}
		return llmtest.Reply{Text: "echo: " + r.LastUser(), Latency: latency}
	})
	w.llm = httptest.NewServer(w.script)
	for i := range n {
		c := &chat{user: telegramtest.User{ID: int64(1000 + i), First: fmt.Sprint("P", i)}, came: make(chan time.Time, 1)}
		w.chats, w.byID[c.user.ID] = append(w.chats, c), c
	}
	w.tg = telegramtest.New(telegramtest.Options{NoLimits: true, Keep: 4, OnSent: w.seen, OnEdited: w.seen})
	for _, c := range w.chats {
		w.tg.AddPrivate(c.user)
	}
	return w
}

func (w *world) close() {
	w.script.Close()
	w.llm.Close()
	w.tg.Close()
}

func (w *world) llmURL() string { return w.llm.URL + "/v1" }

// watchPolls tells polled of the first getUpdates from now on.
func (w *world) watchPolls(ctx context.Context) {
	before := w.tg.View().Calls("getUpdates")
	go func() {
		if w.tg.WaitFor(ctx, func(v telegramtest.View) bool { return v.Calls("getUpdates") > before }) == nil {
			w.polled <- time.Now()
		}
	}()
}

// seen takes every message that the bot sent or edited. What is not the whole answer, such as a placeholder, is left alone.
func (w *world) seen(m telegramtest.Message) {
	c := w.byID[m.Chat]
	c.mu.Lock()
	whole := c.expect != "" && strings.HasSuffix(m.Text, c.expect)
	if whole {
		c.expect = ""
		c.came <- time.Now()
	}
	c.mu.Unlock()
	if f := w.sent.Load(); whole && f != nil {
		(*f)()
	}
}

// say writes and returns when the answer has come, with the time it took; false: it was lost, or ctx ended.
func (w *world) say(ctx context.Context, c *chat, text string) (time.Duration, bool) {
	c.mu.Lock()
	c.expect = "echo: " + text
	c.mu.Unlock()
	began := time.Now()
	w.write(c, text)
	lost := time.NewTimer(lostAfter)
	defer lost.Stop()
	select {
	case at := <-c.came:
		return at.Sub(began), true
	case <-lost.C:
		w.lost.Add(1)
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expect = ""
	select {
	case <-c.came: // it came at the very moment
	default:
	}
	return 0, false
}

func (w *world) write(c *chat, text string) {
	w.tg.Message(telegramtest.In{Chat: c.user.ID, From: c.user, Text: text})
}

// load is what a closed loop of all chats came to.
type load struct {
	rate          float64 // answers a second
	p50, p95, p99 float64 // ms
	cpu           float64 // ms of the process's CPU per answer
	disk          float64 // KiB per answer
	calls         float64 // write calls per answer
	peak          float64 // MiB
	lost          int64
}

// drive lets every chat write for warm and then for window, and measures the window.
func drive(b *testing.B, w *world, p *process, warm, window time.Duration) load {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var open atomic.Bool
	var wg sync.WaitGroup
	for _, c := range w.chats {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				took, ok := w.say(ctx, c, fmt.Sprint("ping ", n))
				if ok && open.Load() {
					c.took = append(c.took, took)
				}
			}
		})
	}
	pause(b, warm)
	before, began := p.used(), time.Now()
	open.Store(true)
	pause(b, window)
	open.Store(false)
	after, elapsed := p.used(), time.Since(began)
	cancel()
	wg.Wait()
	var all []time.Duration
	for _, c := range w.chats {
		all = append(all, c.took...)
	}
	if len(all) == 0 {
		b.Fatalf("no answer in %s; the log ends: %s", window, p.tail())
	}
	slices.Sort(all)
	n := float64(len(all))
	return load{
		rate: n / elapsed.Seconds(), p50: millis(quantile(all, 0.5)), p95: millis(quantile(all, 0.95)), p99: millis(quantile(all, 0.99)), cpu: millis(after.cpu-before.cpu) / n,
		disk: (after.disk - before.disk) / n / 1024, calls: (after.calls - before.calls) / n, peak: after.peak, lost: w.lost.Load(),
	}
}

// pause waits for d.
func pause(b *testing.B, d time.Duration) {
	b.Helper()
	select {
	case <-time.After(d):
	case <-b.Context().Done():
		b.Fatal(b.Context().Err())
	}
}

func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
