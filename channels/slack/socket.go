package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	slackgo "github.com/slack-go/slack"

	"parley/channels"
)

const (
	helloWithin  = 15 * time.Second
	writeWithin  = 10 * time.Second
	maxFrame     = 4 << 20 // bytes
	batchMost    = 32      // envelopes in one commit
	framesWaited = 64
	coveredGap   = 30 * time.Second // Slack offers an event again after a minute (https://docs.slack.dev/apis/events-api/#retries)
)

// socket is one connection of Socket Mode (https://docs.slack.dev/apis/events-api/using-socket-mode).
type socket struct {
	conn   *websocket.Conn
	frames chan []byte
	failed error  // why frames was closed
	alive  func() // something was heard
	heard  chan struct{}

	mu sync.Mutex // of writes
}

// connection is one socket from its opening to its end.
func (r *receiver) connection(ctx context.Context) ending {
	s, hello, err := r.dial(ctx)
	if err != nil {
		return ending{kind: refused, err: err}
	}
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	began := r.c.clock.Now()
	work.Go(func() { s.read(ctx) })
	work.Go(func() { s.ping(ctx, r.c.pace.ping) })
	work.Go(func() { // a read has no context
		<-ctx.Done()
		_ = s.conn.Close()
	})
	if r.missing() {
		work.Go(func() { r.backfill(ctx) })
	}
	defer work.Wait()
	defer cancel()
	if n := hello.Connections; n > 1 {
		r.c.log.Warn("other connections share this app's events", "connections", n)
		r.ready(fmt.Sprintf("%d connections share this app's events, each gets a part", n), "Stop other programs that use this app token, unless they serve other workspaces of it.")
	} else {
		r.ready("", "")
	}
	end := r.serve(ctx, s)
	end.ready = true
	r.since, r.blind = r.c.clock.Now(), end.kind == silent
	end.up = r.since.Sub(began)
	return end
}

// missing says whether something may have been missed that Slack does not bring again by itself: at the start, after a line
// that was dead for a while, after a longer gap. To read every room at each of Slack's hourly refreshes would cost its limits.
func (r *receiver) missing() bool {
	return r.since.IsZero() || r.blind || r.c.clock.Now().Sub(r.since) > coveredGap
}

// greeting is the hello frame.
type greeting struct {
	Type        string `json:"type"`
	Connections int    `json:"num_connections"`
	Reason      string `json:"reason"` // of a disconnect
}

// dial opens a socket and waits for its hello.
func (r *receiver) dial(ctx context.Context) (*socket, greeting, error) {
	var hello greeting
	var address string
	err := r.c.do(ctx, "apps.connections.open", func(ctx context.Context, api *slackgo.Client) error {
		_, at, err := api.StartSocketModeContext(ctx)
		address = at
		return err
	})
	if err != nil {
		return nil, hello, err
	}
	if u, err := url.Parse(address); err != nil || u.Host == "" || u.Scheme != "wss" && (u.Scheme != "ws" || r.c.base.Scheme != "http") {
		return nil, hello, errors.New("apps.connections.open gave no address of a socket")
	}
	ctx, cancel := context.WithTimeout(ctx, helloWithin)
	defer cancel()
	d := websocket.Dialer{Proxy: http.ProxyFromEnvironment, HandshakeTimeout: helloWithin}
	conn, resp, err := d.DialContext(ctx, address, nil)
	if resp != nil && resp.Body != nil {
		_ = resp.Body.Close() // nothing is in it
	}
	if err != nil {
		return nil, hello, fmt.Errorf("connect the socket: %w", r.c.cleaned(err))
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	conn.SetReadLimit(maxFrame)
	_, raw, err := conn.ReadMessage()
	if err == nil {
		err = json.Unmarshal(raw, &hello)
	}
	switch {
	case err != nil:
		err = fmt.Errorf("no hello came on the socket: %w", err)
	case hello.Type == "disconnect":
		err = fmt.Errorf("the socket was refused: %s", hello.Reason)
	case hello.Type != "hello":
		err = fmt.Errorf("the socket began with %q", hello.Type)
	}
	if err != nil {
		_ = conn.Close() // it failed
		return nil, hello, err
	}
	s := &socket{conn: conn, frames: make(chan []byte, framesWaited), heard: make(chan struct{}, 1)}
	s.alive = func() {
		_ = conn.SetReadDeadline(time.Now().Add(r.c.pace.quiet)) // fails with the connection
		select {
		case s.heard <- struct{}{}:
		default: // it is noted
		}
	}
	s.alive()
	conn.SetPongHandler(func(string) error { s.alive(); return nil })
	conn.SetPingHandler(func(data string) error {
		s.alive()
		err := conn.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(writeWithin))
		if errors.Is(err, websocket.ErrCloseSent) {
			return nil
		}
		return err
	})
	return s, hello, nil
}

// read passes frames on until the connection ends. While the gateway cannot take any it stops reading.
func (s *socket) read(ctx context.Context) {
	defer close(s.frames)
	for {
		kind, raw, err := s.conn.ReadMessage()
		if err != nil {
			s.failed = err
			return
		}
		s.alive()
		if kind != websocket.TextMessage {
			continue
		}
		select {
		case s.frames <- raw:
			s.alive() // it may have waited for room, and nothing was read meanwhile
		case <-ctx.Done():
			s.failed = ctx.Err()
			return
		}
	}
}

// ping pings a server that has said nothing for a while: Slack pings by itself, a server in its place need not.
func (s *socket) ping(ctx context.Context, after time.Duration) {
	t := time.NewTimer(after)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.heard:
		case <-t.C:
			_ = s.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeWithin)) // reading tells when it is dead
		}
		t.Reset(after)
	}
}

// serve takes frames until the connection ends.
func (r *receiver) serve(ctx context.Context, s *socket) ending {
	for {
		var batch [][]byte
		select {
		case <-ctx.Done():
			return ending{kind: dropped, err: ctx.Err()}
		case raw, ok := <-s.frames:
			if !ok {
				return lost(s.failed)
			}
			batch = append(batch, raw)
		}
	more:
		for len(batch) < batchMost {
			select {
			case raw, ok := <-s.frames:
				if !ok {
					break more // what came before is still taken; the next turn finds the end
				}
				batch = append(batch, raw)
			default:
				break more
			}
		}
		if end, over := r.take(ctx, s, batch); over {
			return end
		}
	}
}

// lost says how a connection broke.
func lost(err error) ending {
	var late net.Error
	if errors.As(err, &late) && late.Timeout() {
		return ending{kind: silent, err: errors.New("slack's socket is silent: no ping came")}
	}
	if err == nil {
		err = errors.New("closed")
	}
	return ending{kind: dropped, err: fmt.Errorf("slack's socket was dropped: %w", err)}
}

// take journals a batch and then acknowledges it, envelope by envelope.
func (r *receiver) take(ctx context.Context, s *socket, raws [][]byte) (ending, bool) {
	var list []envelope
	for _, raw := range raws {
		e := readEnvelope(raw)
		switch e.Type {
		case "hello":
			continue
		case "disconnect":
			if end, over := r.goodbye(e); over {
				if end2, over2 := r.settle(ctx, s, list); over2 {
					return end2, true
				}
				return end, true
			}
			continue
		}
		list = append(list, e)
	}
	return r.settle(ctx, s, list)
}

// goodbye reads a disconnect frame. A warning comes some seconds before the end, which is then waited for.
func (r *receiver) goodbye(e envelope) (ending, bool) {
	switch e.Reason {
	case "warning":
		return ending{}, false
	case "link_disabled":
		return ending{kind: disabled, err: errors.New("slack's Socket Mode is switched off")}, true
	case "too_many_websockets":
		return ending{kind: crowded, err: errors.New("too many sockets are open for this app")}, true
	}
	return ending{kind: refreshed, err: errors.New("slack asked for a new connection")}, true
}

// settle hands what envelopes hold to whom it belongs, and acknowledges those that were taken.
func (r *receiver) settle(ctx context.Context, s *socket, list []envelope) (ending, bool) {
	for len(list) > 0 {
		whose, ok := r.owner(list[0].For)
		n := 1
		for n < len(list) && slices.Equal(list[n].For, list[0].For) {
			n++
		}
		if ok {
			var batch []channels.Inbound
			if whose != nil {
				batch = whose.convertAll(ctx, list[:n])
			}
			if len(batch) > 0 {
				if err := whose.handIn(ctx, batch); err != nil {
					return ending{kind: dropped, err: err}, true
				}
			}
			for _, e := range list[:n] {
				if err := s.ack(e.ID); err != nil {
					return ending{kind: unacked, err: fmt.Errorf("an acknowledgement cannot be written: %w", err)}, true
				}
			}
		}
		list = list[n:]
	}
	return ending{}, false
}

// owner finds for whom events are, by the first of the installations that they name and somebody here has. ok is false when
// that is not known yet: they are not acknowledged and come again. A workspace that no channel has is told of once, and its
// events are passed by.
func (r *receiver) owner(for_ []installation) (whose *receiver, ok bool) {
	self := r.c.self.Load()
	if len(for_) == 0 {
		return r, true
	}
	allSure := true
	for _, at := range for_ {
		if self != nil && self.has(at) {
			return r, true
		}
		whose, sure := r.c.apps.whose(r.c, at)
		if whose != nil {
			return whose, true
		}
		allSure = allSure && sure
	}
	if !allSure {
		return nil, false
	}
	team := for_[0].team
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.strange == nil {
		r.strange = map[string]bool{}
	}
	if !r.strange[team] && len(r.strange) < 1000 {
		r.strange[team] = true
		r.c.log.Warn("the app is installed in a workspace that no channel has; its events are passed by", "team", team)
	}
	return nil, true
}

// ack acknowledges an envelope.
func (s *socket) ack(id string) error {
	if id == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.conn.SetWriteDeadline(time.Now().Add(writeWithin)); err != nil {
		return err
	}
	return s.conn.WriteJSON(struct {
		ID string `json:"envelope_id"`
	}{id})
}
