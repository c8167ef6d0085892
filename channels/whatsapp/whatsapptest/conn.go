package whatsapptest

import (
	"bytes"
	"context"
	"crypto/cipher"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/coder/websocket"
	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waWa6"
	"go.mau.fi/whatsmeow/socket"
	"go.mau.fi/whatsmeow/util/keys"
	"google.golang.org/protobuf/proto"
)

// conn is one client's websocket. What is sent is queued under the server's lock and written by the conn's own goroutine,
// so that a client that does not read holds up nobody.
type conn struct {
	s      *Server
	ws     *websocket.Conn
	cancel context.CancelFunc

	read, write   cipher.AEAD
	readN, writeN uint32
	frames        [][]byte // received, complete
	partial       []byte

	// Under the server's lock.
	out     [][]byte // plain frames
	wake    chan struct{}
	ending  bool // close when out is empty
	device  *companion
	pairing *pairing
	noise   [32]byte // the client's static key
}

var (
	errBadFrame = errors.New("bad frame")
	errGone     = errors.New("read the websocket")
)

// serveChat is GET /ws/chat.
func (s *Server) serveChat(w http.ResponseWriter, r *http.Request) {
	if o := r.Header.Get("Origin"); o != socket.Origin {
		s.complain("a websocket with the origin %q", o)
		http.Error(w, "wrong origin", http.StatusForbidden)
		return
	}
	// The origin was checked above: it never equals the fake's own host.
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return // the library has answered
	}
	defer ws.CloseNow()
	ws.SetReadLimit(socket.FrameMaxSize + 16)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	c := &conn{s: s, ws: ws, cancel: cancel, wake: make(chan struct{}, 1)}
	if !s.join(c) {
		return
	}
	defer s.part(c)
	payload, err := c.handshake(ctx)
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, errGone) { // a process that is killed in it says nothing more
			s.complain("handshake: %v", err)
		}
		return
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		c.writeLoop(ctx)
	}()
	s.login(c, payload)
	c.readLoop(ctx)
	cancel()
	<-written
}

func (c *conn) handshake(ctx context.Context) (*waWa6.ClientPayload, error) {
	first, err := c.receive(ctx)
	if err != nil {
		return nil, err
	}
	rest, ok := bytes.CutPrefix(first, socket.WAConnHeader)
	if !ok {
		return nil, fmt.Errorf("%w: no connection header", errBadFrame)
	}
	if err := c.feed(rest); err != nil {
		return nil, err
	}
	st, err := newSymmetric(socket.WAConnHeader)
	if err != nil {
		return nil, err
	}
	hello, err := c.handshakeMessage(ctx)
	if err != nil {
		return nil, err
	}
	theirs, err := key32(hello.GetClientHello().GetEphemeral())
	if err != nil {
		return nil, fmt.Errorf("client hello: %w", err)
	}
	eph := keys.NewKeyPair()
	st.mixHash(theirs[:])
	st.mixHash(eph.Pub[:])
	if err := st.mixDH(eph.Priv, theirs); err != nil {
		return nil, err
	}
	static := st.seal(c.s.auth.static.Pub[:])
	if err := st.mixDH(c.s.auth.static.Priv, theirs); err != nil {
		return nil, err
	}
	answer, err := proto.Marshal(&waWa6.HandshakeMessage{ServerHello: &waWa6.HandshakeMessage_ServerHello{
		Ephemeral: eph.Pub[:], Static: static, Payload: st.seal(c.s.auth.chain),
	}})
	if err != nil {
		return nil, fmt.Errorf("write the server hello: %w", err)
	}
	if err := c.ws.Write(ctx, websocket.MessageBinary, framed(answer)); err != nil {
		return nil, fmt.Errorf("send the server hello: %w", err)
	}
	return c.finish(ctx, st, eph)
}

// finish reads the client's last handshake message and derives the keys of the connection.
func (c *conn) finish(ctx context.Context, st *symmetric, eph *keys.KeyPair) (*waWa6.ClientPayload, error) {
	last, err := c.handshakeMessage(ctx)
	if err != nil {
		return nil, err
	}
	raw, err := st.open(last.GetClientFinish().GetStatic())
	if err != nil {
		return nil, fmt.Errorf("client's static key: %w", err)
	}
	static, err := key32(raw)
	if err != nil {
		return nil, fmt.Errorf("client's static key: %w", err)
	}
	if err := st.mixDH(eph.Priv, static); err != nil {
		return nil, err
	}
	raw, err = st.open(last.GetClientFinish().GetPayload())
	if err != nil {
		return nil, fmt.Errorf("client's payload: %w", err)
	}
	var payload waWa6.ClientPayload
	if err := proto.Unmarshal(raw, &payload); err != nil {
		return nil, fmt.Errorf("client's payload: %w", err)
	}
	c.noise = *static
	// The client writes with the first key and reads with the second; we the other way round.
	in, out, err := st.split(nil)
	if err != nil {
		return nil, err
	}
	if c.read, err = newGCM(in); err != nil {
		return nil, err
	}
	c.write, err = newGCM(out)
	return &payload, err
}

func (c *conn) handshakeMessage(ctx context.Context) (*waWa6.HandshakeMessage, error) {
	frame, err := c.next(ctx)
	if err != nil {
		return nil, err
	}
	var m waWa6.HandshakeMessage
	if err := proto.Unmarshal(frame, &m); err != nil {
		return nil, fmt.Errorf("read a handshake message: %w", err)
	}
	return &m, nil
}

func key32(b []byte) (*[32]byte, error) {
	if len(b) != 32 {
		return nil, fmt.Errorf("a key of %d bytes", len(b))
	}
	return (*[32]byte)(b), nil
}

func (c *conn) receive(ctx context.Context) ([]byte, error) {
	kind, data, err := c.ws.Read(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errGone, err)
	}
	if kind != websocket.MessageBinary {
		return nil, fmt.Errorf("%w: a text message", errBadFrame)
	}
	return data, nil
}

// feed takes bytes of the stream and cuts frames off: three bytes of length, big-endian, then the frame. Frames need not
// agree with websocket messages.
func (c *conn) feed(data []byte) error {
	c.partial = append(c.partial, data...)
	for len(c.partial) >= socket.FrameLengthSize {
		n := int(c.partial[0])<<16 | int(c.partial[1])<<8 | int(c.partial[2])
		if n == 0 {
			return fmt.Errorf("%w: it is empty", errBadFrame)
		}
		if len(c.partial) < socket.FrameLengthSize+n {
			break
		}
		c.frames = append(c.frames, bytes.Clone(c.partial[socket.FrameLengthSize:socket.FrameLengthSize+n]))
		c.partial = c.partial[socket.FrameLengthSize+n:]
	}
	return nil
}

func (c *conn) next(ctx context.Context) ([]byte, error) {
	for len(c.frames) == 0 {
		data, err := c.receive(ctx)
		if err != nil {
			return nil, err
		}
		if err := c.feed(data); err != nil {
			return nil, err
		}
	}
	f := c.frames[0]
	c.frames = c.frames[1:]
	return f, nil
}

func framed(data []byte) []byte {
	n := len(data)
	return append([]byte{byte(n >> 16), byte(n >> 8), byte(n)}, data...)
}

func (c *conn) readLoop(ctx context.Context) {
	for {
		frame, err := c.next(ctx)
		if err != nil {
			if errors.Is(err, errBadFrame) {
				c.s.complain("%v", err)
			}
			return
		}
		plain, err := c.read.Open(nil, nonce(c.readN), frame, nil)
		c.readN++
		if err != nil {
			c.s.complain("a frame that does not decrypt")
			return
		}
		node, err := decode(plain)
		if err != nil {
			c.s.complain("a stanza that cannot be read: %v", err)
			return
		}
		c.s.receive(c, node)
	}
}

func decode(plain []byte) (*waBinary.Node, error) {
	if len(plain) == 0 {
		return nil, errBadFrame
	}
	raw, err := waBinary.Unpack(plain)
	if err != nil {
		return nil, err
	}
	return waBinary.Unmarshal(raw)
}

func (c *conn) writeLoop(ctx context.Context) {
	for {
		frames, ending := c.s.outgoing(c)
		for _, plain := range frames {
			sealed := c.write.Seal(nil, nonce(c.writeN), plain, nil)
			c.writeN++
			if err := c.ws.Write(ctx, websocket.MessageBinary, framed(sealed)); err != nil {
				c.cancel()
				return
			}
		}
		if ending {
			c.farewell(ctx)
			return
		}
		if len(frames) > 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		}
	}
}

// closeGrace is how long the server leaves a connection to the client after the last stanza. A client that reads a stream error
// while the line is being closed may lose it.
const closeGrace = 2 * time.Second

func (c *conn) farewell(ctx context.Context) {
	late := time.NewTimer(closeGrace)
	defer late.Stop()
	select {
	case <-ctx.Done():
	case <-late.C:
		c.cancel()
	}
}

// push queues a stanza. The caller holds the server's lock.
func (c *conn) push(n waBinary.Node) {
	if c.ending {
		return
	}
	raw, err := waBinary.Marshal(n)
	if err != nil {
		c.s.complainLocked("write <%s>: %v", n.Tag, err)
		return
	}
	c.pushRaw(raw)
}

func (c *conn) pushRaw(raw []byte) {
	c.out = append(c.out, raw)
	c.stir()
}

// end closes the connection once everything queued is written. The caller holds the server's lock.
func (c *conn) end() {
	c.ending = true
	c.stir()
}

func (c *conn) stir() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}
