package slacktest

import (
	"encoding/binary"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/websocket"
)

// maxSockets is how many an app may have open (https://docs.slack.dev/apis/events-api/using-socket-mode).
const maxSockets = 10

// connectionsOpen gives out an address for one socket.
func connectionsOpen(c *call) (reply, *failure) {
	ticket := c.s.id("ticket-")
	c.s.links[ticket] = true
	return reply{"url": "ws" + strings.TrimPrefix(c.s.URL(), "http") + "/link/?ticket=" + ticket + "&app_id=" + c.s.app.ID}, nil
}

// socket is one connection of the app. Its queue is guarded by the server's lock.
type socket struct {
	s     *Server
	n     int
	conn  *websocket.Conn
	queue []frame
	wake  chan struct{}
	gone  chan struct{} // closed when the connection is to end
}

// frame is a text to write.
type frame struct {
	text   []byte
	breaks bool // the connection breaks in the middle of it
	last   bool // the connection is closed behind it
}

func (s *Server) serveSocket(w http.ResponseWriter, r *http.Request) {
	ticket := r.URL.Query().Get("ticket")
	s.mu.Lock()
	known := s.links[ticket]
	delete(s.links, ticket)
	frozen := s.frozen
	s.mu.Unlock()
	if !known {
		http.Error(w, "invalid ticket", http.StatusForbidden)
		return
	}
	if frozen {
		s.faults.Hang(r)
	}
	up := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	conn, err := up.Upgrade(w, r, nil)
	if err != nil {
		return // it has answered
	}
	sock := s.attach(conn)
	if sock == nil {
		_ = conn.Close() // the server is closing
		return
	}
	s.work.Go(sock.write)
	sock.read()
	s.detach(sock)
}

// attach takes a connection in and says hello.
func (s *Server) attach(conn *websocket.Conn) *socket {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.Listening() {
		return nil
	}
	s.socketN++
	sock := &socket{s: s, n: s.socketN, conn: conn, wake: make(chan struct{}, 1), gone: make(chan struct{})}
	debug := reply{"host": "applink-1", "started": time.Now().UTC().Format(time.RFC3339), "build_number": 1, "approximate_connection_time": 18060}
	if len(s.sockets) >= maxSockets {
		sock.send(frame{text: mustJSON(reply{"type": "disconnect", "reason": "too_many_websockets", "debug_info": debug}), last: true})
		return sock
	}
	s.sockets = append(s.sockets, sock)
	sock.send(frame{text: mustJSON(reply{"type": "hello", "num_connections": len(s.sockets),
		"connection_info": reply{"app_id": s.app.ID}, "debug_info": debug})})
	if s.opts.HangUp {
		sock.send(frame{text: mustJSON(reply{"type": "disconnect", "reason": "refresh_requested", "debug_info": debug}), last: true})
	}
	s.watch.Changed()
	return sock
}

func (s *Server) detach(sock *socket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sock.end()
	s.sockets = slices.DeleteFunc(s.sockets, func(o *socket) bool { return o == sock })
	if !s.closed() {
		s.lostSocket(sock.n)
	}
	s.watch.Changed()
}

// end lets the writer go. The caller holds the lock.
func (k *socket) end() {
	select {
	case <-k.gone:
	default:
		close(k.gone)
	}
}

// anySocket chooses by chance, as Slack does. The caller holds the lock.
func (s *Server) anySocket() *socket {
	if len(s.sockets) == 0 {
		return nil
	}
	return s.sockets[s.rng.IntN(len(s.sockets))]
}

// send queues a frame. The caller holds the lock.
func (k *socket) send(f frame) {
	k.queue = append(k.queue, f)
	k.stir()
}

// stir wakes the writer.
func (k *socket) stir() {
	select {
	case k.wake <- struct{}{}:
	default: // it has a wake-up waiting
	}
}

func (k *socket) next() (f frame, ok bool) {
	k.s.mu.Lock()
	defer k.s.mu.Unlock()
	if len(k.queue) == 0 || k.s.frozen {
		return frame{}, false
	}
	f, k.queue = k.queue[0], k.queue[1:]
	return f, true
}

// write writes what is queued and pings, until the connection ends.
func (k *socket) write() {
	defer k.conn.Close()
	ping := time.NewTicker(k.s.opts.PingEvery)
	defer ping.Stop()
	for {
		select {
		case <-k.gone:
			return
		case <-ping.C:
			k.s.mu.Lock()
			frozen := k.s.frozen
			k.s.mu.Unlock()
			if !frozen && k.conn.WriteControl(websocket.PingMessage, []byte("Ping from applink-1"), time.Now().Add(5*time.Second)) != nil {
				return
			}
		case <-k.wake:
		}
		for f, ok := k.next(); ok; f, ok = k.next() {
			if !k.put(f) {
				return
			}
		}
	}
}

// put writes one frame; false: the connection has ended.
func (k *socket) put(f frame) bool {
	if f.breaks {
		_, _ = k.conn.NetConn().Write(halfFrame(f.text)) // it is cut anyhow
		return false
	}
	_ = k.conn.SetWriteDeadline(time.Now().Add(10 * time.Second)) // fails with the connection
	if k.conn.WriteMessage(websocket.TextMessage, f.text) != nil {
		return false
	}
	if f.last {
		_ = k.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(time.Second))
	}
	return !f.last
}

// halfFrame is a text frame (RFC 6455 §5.2) without its second half.
func halfFrame(text []byte) []byte {
	head := []byte{0x81, 127}
	head = binary.BigEndian.AppendUint64(head, uint64(len(text)))
	return append(head, text[:len(text)/2]...)
}

// read takes acknowledgements until the connection ends.
func (k *socket) read() {
	defer k.conn.Close()
	answer := k.conn.PingHandler()
	k.conn.SetPingHandler(func(data string) error {
		k.s.mu.Lock()
		frozen := k.s.frozen
		k.s.pings++
		k.s.watch.Changed()
		k.s.mu.Unlock()
		if frozen {
			return nil
		}
		return answer(data)
	})
	for {
		_, raw, err := k.conn.ReadMessage()
		if err != nil {
			return
		}
		var ack struct {
			EnvelopeID string          `json:"envelope_id"`
			Payload    json.RawMessage `json:"payload"`
		}
		k.s.mu.Lock()
		frozen := k.s.frozen
		k.s.mu.Unlock()
		if !frozen && json.Unmarshal(raw, &ack) == nil && ack.EnvelopeID != "" {
			k.s.acknowledge(ack.EnvelopeID, ack.Payload)
		}
	}
}

// CutSockets drops every socket without a goodbye.
func (s *Server) CutSockets() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.sockets {
		_ = k.conn.Close() // cutting is the purpose
		k.end()
	}
}

// Disconnect sends the disconnect frame to every socket: warning (the socket lives on for some seconds),
// refresh_requested or link_disabled (it is closed behind the frame).
func (s *Server) Disconnect(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.sockets {
		k.send(frame{text: mustJSON(reply{"type": "disconnect", "reason": reason, "debug_info": reply{"host": "applink-1"}}), last: reason != "warning"})
	}
}

// RawFrame writes a text to every socket as it is.
func (s *Server) RawFrame(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.sockets {
		k.send(frame{text: []byte(text)})
	}
}
