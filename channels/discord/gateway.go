package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"parley/channels"
)

// Opcodes, https://discord.com/developers/docs/topics/opcodes-and-status-codes#gateway-gateway-opcodes.
const (
	opDispatch  = 0
	opHeartbeat = 1
	opIdentify  = 2
	opResume    = 6
	opReconnect = 7
	opInvalid   = 9
	opHello     = 10
	opAck       = 11
)

const (
	gatewayVersion = "10"
	dialWithin     = 20 * time.Second
	writeWithin    = 10 * time.Second
	maxEvent       = 64 << 20 // bytes of one event: a large server
	goodbye        = 1000     // ends the session
	comeBack       = 4000     // leaves it open to RESUME
)

// payload is one frame of the gateway.
type payload struct {
	Op   int             `json:"op"`
	Data json.RawMessage `json:"d"`
	Seq  *int64          `json:"s"`
	Type string          `json:"t"`
}

// session is what outlives a connection.
type session struct {
	id, url    string
	seq        atomic.Int64 // of the newest event that waits in our queue
	identified time.Time
	refused    int // tries to resume it in a row that led to nothing
}

func (s *session) forget() {
	s.id, s.url, s.refused = "", "", 0
	s.seq.Store(0)
}

// resumeTries is how often a session is tried: a server may close the connection each time instead of refusing it.
const resumeTries = 4

// tried notes how a connection ended: whether the session can be resumed with the next. gone says that this was the end of a
// session, and that another must be begun.
func (s *session) tried(e end) (gone bool) {
	switch {
	case e.up > 0:
		s.refused = 0
	case e.resuming && e.kind != endReconnect:
		s.refused++
	}
	lost := e.kind == endInvalid && !e.resumable ||
		e.kind == endClosed && (e.code == 4006 || e.code == 4007 || e.code == 4009) // "invalid", in older documents; sequence; timed out
	if had := s.id != ""; had && (lost || s.refused >= resumeTries) {
		s.forget()
		return true
	}
	return false
}

// startLimit is session_start_limit of GET /gateway/bot: how many sessions may be begun
// (https://discord.com/developers/docs/events/gateway#session-start-limit-object). Who begins one too many loses the token.
type startLimit struct {
	Total     int     `json:"total"` // 0: not told
	Remaining int     `json:"remaining"`
	After     float64 `json:"reset_after"` // ms
}

// wait is how long another session must wait for, when the last was begun since ago. While there are enough left it need not;
// the last tenth is spread over the time that is left, so that nothing that goes wrong again and again uses them up. A
// session that held for so long goes on at once.
func (l startLimit) wait(since time.Duration) time.Duration {
	reset := time.Duration(l.After * float64(time.Millisecond))
	switch {
	case l.Total <= 0:
		return 0
	case l.Remaining < 1:
		return max(reset, time.Minute)
	case l.Remaining > l.Total/10:
		return 0
	}
	return max(0, reset/time.Duration(l.Remaining)-since)
}

// endKind says why a connection ended.
type endKind string

const (
	endStopped    endKind = "stopped"            // our context
	endUnreached  endKind = "not reached"        // no address, no handshake
	endNoHello    endKind = "no hello"           // a server that takes the connection and says nothing
	endNoReady    endKind = "no ready"           // … and nothing to Identify
	endZombie     endKind = "no heartbeat ack"   // half dead
	endDropped    endKind = "dropped"            // without a goodbye
	endClosed     endKind = "closed"             // with a code
	endReconnect  endKind = "asked to reconnect" // op 7
	endInvalid    endKind = "session refused"    // op 9
	endNoSessions endKind = "no sessions left"   // today's are used up, or must last
)

// end is how a connection ended.
type end struct {
	kind      endKind
	code      int           // of endClosed
	resumable bool          // of endInvalid
	resuming  bool          // it was to go on with a session
	up        time.Duration // how long it had been ready; 0: never
	after     time.Duration
	left      int // of endNoSessions
	err       error
}

func (e end) Error() string {
	text := "discord gateway: " + string(e.kind)
	if e.code != 0 {
		text += fmt.Sprintf(" with code %d", e.code)
	}
	if e.err != nil {
		text += ": " + e.err.Error()
	}
	return text
}

// line is one connection.
type line struct {
	r      *receiver
	conn   *websocket.Conn
	writes sync.Mutex
	in     chan payload // everything but events
	up     chan struct{}
	gone   chan struct{}
	err    error // why reading ended, once gone is closed
}

// connect makes one connection and lives with it to its end.
func (r *receiver) connect(ctx context.Context) end {
	addr, e := r.where(ctx)
	if addr == "" {
		return e
	}
	dial, cancel := context.WithTimeout(ctx, dialWithin)
	d := websocket.Dialer{Proxy: http.ProxyFromEnvironment, HandshakeTimeout: dialWithin}
	conn, resp, err := d.DialContext(dial, addr, nil)
	cancel()
	if resp != nil && resp.Body != nil {
		_ = resp.Body.Close() // of a refused handshake: read as far as it matters
	}
	if err != nil {
		r.session.url = "" // perhaps it is that server alone
		return end{kind: endUnreached, err: plain(err)}
	}
	conn.SetReadLimit(maxEvent)
	l := &line{r: r, conn: conn, in: make(chan payload, 16), up: make(chan struct{}), gone: make(chan struct{})}
	ctx, stop := context.WithCancel(ctx)
	var reader sync.WaitGroup
	reader.Go(func() { l.read(ctx) })
	e = l.live(ctx)
	stop()
	_ = conn.Close() // it has ended one way or the other
	reader.Wait()
	return e
}

// where is the address to connect to: of the session if there is one, else the one that REST gives.
func (r *receiver) where(ctx context.Context) (string, end) {
	base := r.session.url
	if base == "" {
		var bot struct {
			URL   string     `json:"url"`
			Start startLimit `json:"session_start_limit"`
		}
		err := r.c.rest.get(ctx, "ask for the gateway", "gateway/bot", &bot)
		if said := refusalOf(err); said != nil && said.status == http.StatusNotFound { // a proxy that has the plain call only
			err = r.c.rest.get(ctx, "ask for the gateway", "gateway", &bot)
		}
		if err != nil {
			var ce *channels.Error
			if errors.As(err, &ce) {
				return "", end{kind: endUnreached, after: ce.After, err: err}
			}
			return "", end{kind: endUnreached, err: err}
		}
		if r.session.id == "" {
			if wait := bot.Start.wait(r.c.clock.Now().Sub(r.session.identified)); wait > 0 {
				return "", end{kind: endNoSessions, after: wait, left: max(0, bot.Start.Remaining)}
			}
		}
		base = bot.URL
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "ws" && u.Scheme != "wss" {
		r.session.url = ""
		return "", end{kind: endUnreached, err: errors.New("the gateway's address is none")}
	}
	q := u.Query()
	q.Set("v", gatewayVersion)
	q.Set("encoding", "json")
	u.RawQuery = q.Encode()
	if u.Path == "" {
		u.Path = "/"
	}
	return u.String(), end{}
}

// read puts events into the queue, in order, and everything else into the line. It waits where the queue is full: then the
// connection turns out dead, and what was not read comes again with RESUME.
func (l *line) read(ctx context.Context) {
	defer close(l.gone)
	for {
		_, raw, err := l.conn.ReadMessage()
		if err != nil {
			l.err = err
			return
		}
		var p payload
		if err := json.Unmarshal(raw, &p); err != nil {
			l.r.c.log.Warn("a frame of the gateway cannot be read", "err", err)
			continue
		}
		if p.Op != opDispatch {
			select {
			case l.in <- p:
			case <-ctx.Done():
				return
			}
			continue
		}
		if !l.dispatch(ctx, p) {
			return
		}
	}
}

func (l *line) dispatch(ctx context.Context, p payload) bool {
	s := l.r.session
	began := p.Type == "READY" || p.Type == "RESUMED"
	if p.Type == "READY" {
		if hello, err := decode[ready](p.Data); err == nil {
			s.id, s.url = hello.Session, hello.Resume
		}
	}
	if !l.r.queue.push(ctx, p) {
		return false
	}
	if p.Seq != nil {
		s.seq.Store(*p.Seq)
	}
	if began {
		select {
		case <-l.up: // RESUMED can come but once; a server that says it twice is let be
		default:
			close(l.up)
		}
	}
	return true
}

// live is a connection from Hello to its end.
func (l *line) live(ctx context.Context) end {
	every, e := l.hello(ctx)
	if every == 0 {
		return e
	}
	resuming := l.r.session.id != ""
	if err := l.introduce(); err != nil {
		return end{kind: endDropped, err: plain(err)}
	}
	late := time.NewTimer(l.r.c.pace.ready)
	defer late.Stop()
	// The first beat comes somewhere within the interval, so that many bots do not beat as one.
	beat := time.NewTimer(time.Duration(rand.Float64() * float64(every)))
	defer beat.Stop()
	acked, up := true, l.up
	var began time.Time
	finish := func(e end) end {
		e.resuming = resuming
		select {
		case <-l.up: // perhaps it ended in the same moment
			if began.IsZero() {
				began = l.r.c.clock.Now()
			}
			e.up = max(l.r.c.clock.Now().Sub(began), 1)
		default:
		}
		return e
	}
	for {
		select {
		case <-ctx.Done():
			l.leave()
			return finish(end{kind: endStopped})
		case <-up:
			began, up = l.r.c.clock.Now(), nil
			late.Stop()
		case <-late.C:
			l.close(comeBack)
			return finish(end{kind: endNoReady})
		case <-l.gone:
			return finish(l.ended(ctx))
		case <-beat.C:
			if !acked {
				l.close(comeBack)
				return finish(end{kind: endZombie})
			}
			if err := l.beat(); err != nil {
				return finish(end{kind: endDropped, err: plain(err)})
			}
			acked = false
			beat.Reset(every)
		case p := <-l.in:
			switch p.Op {
			case opAck:
				acked = true
			case opHeartbeat:
				if err := l.beat(); err != nil {
					return finish(end{kind: endDropped, err: plain(err)})
				}
			case opReconnect:
				l.close(comeBack)
				return finish(end{kind: endReconnect})
			case opInvalid:
				l.close(comeBack)
				return finish(end{kind: endInvalid, resumable: string(p.Data) == "true"})
			}
		}
	}
}

// hello waits for the first word; 0: there was none, and e says why.
func (l *line) hello(ctx context.Context) (every time.Duration, e end) {
	t := time.NewTimer(l.r.c.pace.hello)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return 0, end{kind: endStopped}
	case <-t.C:
		return 0, end{kind: endNoHello}
	case <-l.gone:
		return 0, l.ended(ctx)
	case p := <-l.in:
		var hello struct {
			Every float64 `json:"heartbeat_interval"` // ms
		}
		if p.Op != opHello || json.Unmarshal(p.Data, &hello) != nil || hello.Every < 1 {
			return 0, end{kind: endNoHello, err: fmt.Errorf("op %d came first", p.Op)}
		}
		return time.Duration(hello.Every * float64(time.Millisecond)), end{}
	}
}

// introduce resumes the session, or begins one.
func (l *line) introduce() error {
	s, token := l.r.session, l.r.c.rest.token.Reveal()
	if s.id != "" {
		return l.write(opResume, map[string]any{"token": token, "session_id": s.id, "seq": s.seq.Load()})
	}
	s.identified = l.r.c.clock.Now()
	return l.write(opIdentify, map[string]any{
		"token": token, "intents": l.r.self.intents(), "large_threshold": 50,
		"properties": map[string]string{"os": runtime.GOOS, "browser": "parley", "device": "parley"},
	})
}

func (l *line) beat() error {
	var seq any
	if n := l.r.session.seq.Load(); n > 0 {
		seq = n
	}
	return l.write(opHeartbeat, seq)
}

func (l *line) write(op int, data any) error {
	l.writes.Lock()
	defer l.writes.Unlock()
	_ = l.conn.SetWriteDeadline(time.Now().Add(writeWithin)) // the write tells
	return l.conn.WriteJSON(map[string]any{"op": op, "d": data})
}

// leave is the end of Run. A session that is kept stays open for the next process, for as long as Discord keeps it; the bot
// seems to be online for so long.
func (l *line) leave() {
	if l.r.keeper != nil {
		l.close(comeBack)
		return
	}
	l.close(goodbye)
}

// close says goodbye; that it was heard is not waited for.
func (l *line) close(code int) {
	_ = l.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, ""), time.Now().Add(time.Second)) // it ends anyhow
}

// ended is why reading stopped.
func (l *line) ended(ctx context.Context) end {
	if ctx.Err() != nil {
		return end{kind: endStopped}
	}
	var closed *websocket.CloseError
	if errors.As(l.err, &closed) && closed.Code != websocket.CloseAbnormalClosure {
		return end{kind: endClosed, code: closed.Code, err: errors.New(strings.TrimSpace(closed.Text))}
	}
	return end{kind: endDropped, err: plain(l.err)}
}

// plain is an error without the address in it.
func plain(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
