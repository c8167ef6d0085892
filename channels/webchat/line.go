package webchat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/coder/websocket"
)

const (
	maxFrame    = 512 << 10 // bytes of one frame of a page
	queued      = 64        // frames that may wait for a page
	inbox       = 8         // frames of a page that may wait to be done
	writeWithin = 10 * time.Second
	pongWithin  = 10 * time.Second
	lastWords   = time.Second            // for the frame that says why
	goodbye     = 500 * time.Millisecond // for the other half of the close
)

// Why a line ended.
var (
	errClosing = errors.New("the gateway is stopping")
	errSlow    = errors.New("the page reads too slowly")
	errLeft    = errors.New("the page is gone")
	errOut     = errors.New("signed out")
)

// line is one connected page.
type line struct {
	c     *Channel
	who   Person
	still func() error // whether what let it in still holds
	ws    *websocket.Conn
	ctx   context.Context // ends when the line does, before the connection
	end   context.CancelCauseFunc
	out   chan []byte
	todo  chan frame
	open  bool // its page is there; guarded by the channel's lock
	wg    sync.WaitGroup

	mu      sync.Mutex
	follows map[string]context.CancelFunc
	asked   map[string]chan<- frame // posts that the page has not answered
}

// Serve is the live line of one page until it leaves. Host, Origin and who it is were judged before; still says whether
// they would be now.
func (c *Channel) Serve(w http.ResponseWriter, r *http.Request, who Person, still func() error) {
	l := &line{c: c, who: who, still: still, out: make(chan []byte, queued), todo: make(chan frame, inbox), follows: map[string]context.CancelFunc{},
		asked: map[string]chan<- frame{}}
	l.ctx, l.end = context.WithCancelCause(r.Context())
	defer l.end(nil)
	if err := c.enter(l); err != nil {
		w.Header().Set("Retry-After", "2")
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = fmt.Fprintf(w, `{"type":"urn:parley:error:busy","title":"Service Unavailable","status":503,"detail":%q}`+"\n", sentence(err)) // it may have left
		return
	}
	defer c.leave(l)
	ws, err := websocket.Accept(w, r, nil) // it has answered; a foreign Origin ends here a second time
	if err != nil {
		c.opt.Log.Debug("live connection refused", "err", err)
		return
	}
	ws.SetReadLimit(maxFrame)
	l.ws = ws
	l.run(r.Context())
}

func sentence(err error) string {
	if errors.Is(err, errFull) {
		return "Too many pages are open. Close some."
	}
	return "The gateway is starting or stopping. Try again."
}

// run speaks with the page. life ends the connection itself; it outlives l.ctx by the last words.
func (l *line) run(life context.Context) {
	life, cut := context.WithCancel(life)
	defer cut()
	l.wg.Go(func() { l.write(life) })
	l.wg.Go(func() { l.read(life) })
	l.wg.Go(func() { l.work() })
	l.wg.Go(func() { l.beat(life) })
	l.greet()
	<-l.ctx.Done()
	code, reason := websocket.StatusNormalClosure, ""
	switch cause := context.Cause(l.ctx); {
	case errors.Is(cause, errClosing):
		l.last(life, lastFrame{"closing", "The gateway is stopping. Come back in a moment."})
		code, reason = websocket.StatusGoingAway, "closing"
	case errors.Is(cause, errSlow):
		l.last(life, lastFrame{"slow", "You read too slowly and were dropped. Come back."})
		code, reason = websocket.StatusTryAgainLater, "slow"
	case errors.Is(cause, errOut):
		code, reason = 4401, "signed out"
	}
	said := make(chan struct{})
	go func() { // Close waits for the other half; a cut connection ends it
		defer close(said)
		_ = l.ws.Close(code, reason) // it may be gone
	}()
	enough := time.NewTimer(goodbye)
	defer enough.Stop()
	select {
	case <-said:
	case <-enough.C:
	}
	cut()
	<-said
	l.forsake()
	_ = l.ws.CloseNow() // twice is fine
	l.wg.Wait()
}

// greet is what every page hears first.
func (l *line) greet() {
	if err := l.put(helloFrame{"hello", l.c.opt.Boot, l.c.opt.Version, l.who}); err != nil {
		return
	}
	l.c.opened(l)
	for _, p := range l.c.kept(l.who.ID) {
		if err := l.put(p); err != nil {
			return
		}
	}
	l.wg.Go(func() {
		defer l.guard("watch")
		if err := l.c.opt.Desk.Watch(l.ctx, l.who, l.put); err != nil && l.ctx.Err() == nil {
			l.c.opt.Log.Debug("watch ended", "person", l.who.ID, "err", err)
		}
	})
}

// put queues a frame. A page that leaves no room for long is dropped.
func (l *line) put(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("marshal frame: %w", err)
	}
	if l.c.opt.Hide != nil {
		data = l.c.opt.Hide(data)
	}
	if l.ctx.Err() != nil {
		return context.Cause(l.ctx)
	}
	select {
	case l.out <- data:
		return nil
	default:
	}
	late := time.NewTimer(l.c.opt.SlowAfter)
	defer late.Stop()
	select {
	case l.out <- data:
		return nil
	case <-l.ctx.Done():
		return context.Cause(l.ctx)
	case <-late.C:
		l.end(errSlow)
		return errSlow
	}
}

func (l *line) write(life context.Context) {
	for {
		select {
		case <-l.ctx.Done():
			return
		case data := <-l.out:
			if err := l.send(life, data, writeWithin); err != nil {
				l.end(errLeft)
				return
			}
		}
	}
}

func (l *line) send(life context.Context, data []byte, within time.Duration) error {
	ctx, cancel := context.WithTimeout(life, within)
	defer cancel()
	return l.ws.Write(ctx, websocket.MessageText, data)
}

// last says why the line ends, if it can be said.
func (l *line) last(life context.Context, f lastFrame) {
	data, err := json.Marshal(f)
	if err == nil {
		err = l.send(life, data, lastWords)
	}
	if err != nil {
		l.c.opt.Log.Debug("closing message not sent", "err", err)
	}
}

// read takes what the page says. Answers to posts are passed on at once; the rest is done in order by work, so that a
// slow journal does not keep the line from noticing that the page lives.
func (l *line) read(life context.Context) {
	for {
		kind, data, err := l.ws.Read(life)
		if err != nil {
			l.end(errLeft)
			return
		}
		f, ok := parse(data)
		if kind != websocket.MessageText || !ok {
			f = frame{Type: unreadable, Text: string(data[:min(len(data), maxRaw)])}
		}
		if f.Type == "got" {
			l.got(f)
			continue
		}
		select {
		case l.todo <- f:
		case <-l.ctx.Done():
			return
		}
	}
}

// parse reads a frame of a page.
func parse(data []byte) (f frame, ok bool) {
	err := json.Unmarshal(data, &f)
	return f, err == nil && f.Type != ""
}

// work does what the page says, in order.
func (l *line) work() {
	for {
		select {
		case <-l.ctx.Done():
			return
		case f := <-l.todo:
			if err := l.still(); err != nil {
				l.end(errOut)
				return
			}
			l.do(f)
		}
	}
}

func (l *line) do(f frame) {
	defer l.guard(f.Type)
	switch f.Type {
	case "follow":
		l.follow(f)
	case "unfollow":
		l.unfollow(f.Key)
	default:
		l.said(f)
	}
}

// guard, deferred, keeps a panic to the line that it happened on.
func (l *line) guard(what string) {
	if p := recover(); p != nil {
		l.c.opt.Log.Error("live line panicked", "in", what, "panic", p, "stack", string(debug.Stack()))
		l.end(errLeft)
	}
}

// beat notices a page that has gone without a word, and one that may not stay.
func (l *line) beat(life context.Context) {
	tick := time.NewTicker(l.c.opt.PingEvery)
	defer tick.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-tick.C:
		}
		if err := l.still(); err != nil {
			l.end(errOut)
			return
		}
		ctx, cancel := context.WithTimeout(life, pongWithin) // a cancelled one cuts the connection
		err := l.ws.Ping(ctx)
		cancel()
		if err != nil {
			l.end(errLeft)
			return
		}
	}
}

// follow begins to send the events of a session; once more begins again.
func (l *line) follow(f frame) {
	l.unfollow(f.Key)
	l.mu.Lock()
	full := len(l.follows) >= maxFollows
	ctx, cancel := context.WithCancel(l.ctx)
	if !full {
		l.follows[f.Key] = cancel
	}
	l.mu.Unlock()
	if full {
		cancel()
		_ = l.put(unfollowedFrame{"unfollowed", f.Key, l.c.opt.Desk.Problem(errFollows)}) // the line has ended: nobody to tell
		return
	}
	l.wg.Go(func() {
		defer l.guard("follow")
		defer cancel()
		err := l.c.opt.Desk.Follow(ctx, l.who, Follow{Key: f.Key, Was: f.SessionID, After: f.After}, l.put)
		if err != nil && ctx.Err() == nil {
			_ = l.put(unfollowedFrame{"unfollowed", f.Key, l.c.opt.Desk.Problem(err)}) // as above
		}
	})
}

var errFollows = errors.New("too many sessions are followed")

func (l *line) unfollow(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if cancel := l.follows[key]; cancel != nil {
		cancel()
		delete(l.follows, key)
	}
}
