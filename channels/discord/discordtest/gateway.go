package discordtest

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// Opcodes and close codes, https://discord.com/developers/docs/topics/opcodes-and-status-codes#gateway.
const (
	opDispatch  = 0
	opHeartbeat = 1
	opIdentify  = 2
	opPresence  = 3
	opVoice     = 4
	opResume    = 6
	opReconnect = 7
	opMembers   = 8
	opInvalid   = 9
	opHello     = 10
	opAck       = 11

	closeUnknown    = 4000
	closeOpcode     = 4001
	closeDecode     = 4002
	closeNotAuth    = 4003
	closeAuth       = 4004
	closeTwice      = 4005
	closeSeq        = 4007
	closeRate       = 4008
	closeTimeout    = 4009
	closeShard      = 4010
	closeVersion    = 4012
	closeIntents    = 4013
	closeDisallowed = 4014

	sendsPerMinute = 120
	identifyEvery  = 5 * time.Second
	bigFrame       = 1024 // bytes from which a payload is compressed when the client asked for it
)

// GatewayFault spoils the gateway until it is changed again.
type GatewayFault struct {
	NoHello bool // the connection is taken and nothing said
	NoAck   bool // heartbeats are not acknowledged
	Frozen  bool // nothing is sent or read
	Refuse  int  // the HTTP status of every handshake; 0: none
	// Repeat is the chance of an event to be dispatched a second time, with another sequence number.
	Repeat float64
	// Reorder is the chance of an event to come after the next one.
	Reorder float64
	// HalfFrame drops the connection in the middle of so many coming events, which RESUME gives again.
	HalfFrame int
	// Lost makes every session end with its connection: op 9 answers RESUME, and only REST knows what was missed.
	Lost bool
	// NoReady takes Identify and never answers with READY.
	NoReady bool
	// NoGuilds keeps the servers back that come behind READY, as while they are away; SendGuilds gives them.
	NoGuilds bool
	// CloseResume is the code with which every RESUME is closed, instead of op 9; 0: none.
	CloseResume int
}

// gate is the gateway's state. Server.mu guards it.
type gate struct {
	sessions   map[string]*session
	conns      map[*conn]bool
	fault      GatewayFault
	starts     int
	identified time.Time // the last one, of the one bucket
	held       *event
	resumed    int
	identifies int
	resumePath int // connections to resume_gateway_url
}

// session outlives its connection until it is closed with 1000 or 1001.
type session struct {
	id      string
	intents int
	log     [][]byte // every dispatch, by sequence number - 1
	conn    *conn
}

// event is something to dispatch; data gets the intents of the session, since they change what is in it.
type event struct {
	name           string
	guild, channel string
	intents        int
	data           func(intents int) any
}

// conn is one websocket. mu is of the writes; the rest is guarded by Server.mu.
type conn struct {
	s        *Server
	ws       *websocket.Conn
	stream   bool // zlib-stream
	compress bool // of Identify
	session  *session
	next     int      // index in the session's log
	out      [][]byte // to be sent before the next dispatch
	wake     chan struct{}
	gone     chan struct{}
	once     sync.Once
	heard    chan struct{}
	sends    []time.Time

	mu  sync.Mutex
	zip *zlib.Writer
	buf bytes.Buffer
}

func getGateway(c *call) (any, *apiError) { return obj{"url": c.s.wsURL("gateway")}, nil }

func (s *Server) wsURL(path string) string { return "ws://" + s.Addr() + "/" + path }

func getGatewayBot(c *call) (any, *apiError) {
	return obj{"url": c.s.wsURL("gateway"), "shards": 1, "session_start_limit": obj{"total": 1000, "remaining": max(0, c.s.gate.starts),
		"reset_after": 14400000, "max_concurrency": 1}}, nil
}

// Gateway changes the faults of the gateway.
func (s *Server) Gateway(change func(*GatewayFault)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.gate.fault)
	s.watch.Changed()
	s.wakeAll()
}

// serveGateway is one connection from handshake to end.
func (s *Server) serveGateway(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	f := s.gate.fault
	if r.URL.Path == "/resume" || r.URL.Path == "/resume/" {
		s.gate.resumePath++
	}
	s.mu.Unlock()
	if f.Refuse != 0 {
		w.WriteHeader(f.Refuse)
		return
	}
	up := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	ws, err := up.Upgrade(w, r, nil)
	if err != nil {
		return // Upgrade has answered
	}
	ws.SetReadLimit(4096) // https://discord.com/developers/docs/events/gateway#sending-events
	c := &conn{s: s, ws: ws, stream: r.URL.Query().Get("compress") == "zlib-stream", wake: make(chan struct{}, 1), gone: make(chan struct{}), heard: make(chan struct{}, 1)}
	if c.stream {
		c.zip = zlib.NewWriter(&c.buf)
	}
	s.mu.Lock()
	s.gate.conns[c] = true
	s.watch.Changed()
	s.mu.Unlock()
	var end sync.WaitGroup
	end.Go(c.write)
	if s.Listening() { // else Down has been by while we shook hands
		c.run(r.URL.Query())
	}
	c.drop()
	end.Wait()
	s.mu.Lock()
	delete(s.gate.conns, c)
	if c.session != nil && c.session.conn == c {
		c.session.conn = nil
		if s.gate.fault.Lost {
			delete(s.gate.sessions, c.session.id)
		}
	}
	s.watch.Changed()
	s.mu.Unlock()
}

// run says Hello and reads until the connection ends.
func (c *conn) run(q url.Values) {
	if v := q.Get("v"); v != "9" && v != "10" || q.Get("encoding") != "json" && q.Get("encoding") != "" {
		c.close(closeVersion, "Invalid API version.")
		return
	}
	if !c.faults().NoHello {
		c.send(obj{"op": opHello, "d": obj{"heartbeat_interval": c.s.opts.Heartbeat.Milliseconds(), "_trace": []string{"fake"}}})
	}
	for {
		_, raw, err := c.ws.ReadMessage()
		if err != nil {
			c.left(err)
			return
		}
		if !c.thaw() {
			return
		}
		var m struct {
			Op *int            `json:"op"`
			D  json.RawMessage `json:"d"`
		}
		if json.Unmarshal(raw, &m) != nil || m.Op == nil {
			c.close(closeDecode, "Error while decoding payload.")
			return
		}
		if code, why := c.take(*m.Op, m.D); code != 0 {
			c.close(code, why)
			return
		}
	}
}

// left ends the session when the client says goodbye with 1000 or 1001; any other end can be resumed.
func (c *conn) left(err error) {
	if !websocket.IsCloseError(err, websocket.CloseNormalClosure, websocket.CloseGoingAway) {
		return
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if c.session != nil && c.session.conn == c {
		delete(c.s.gate.sessions, c.session.id)
	}
}

func (c *conn) faults() GatewayFault {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return c.s.gate.fault
}

// thaw waits while the gateway is frozen; false: the connection ended meanwhile.
func (c *conn) thaw() bool {
	for {
		changed := c.s.watch.Next()
		if !c.faults().Frozen {
			return true
		}
		select {
		case <-changed:
		case <-c.gone:
			return false
		case <-c.s.Done():
			return false
		}
	}
}

// take handles one payload of the client; a code says how to close.
func (c *conn) take(op int, d json.RawMessage) (int, string) {
	if !c.s.opts.NoLimits && c.tooMany() {
		return closeRate, "Rate limited."
	}
	c.s.mu.Lock()
	known := c.session != nil
	fault := c.s.gate.fault
	c.s.mu.Unlock()
	switch op {
	case opHeartbeat:
		select {
		case c.heard <- struct{}{}:
		default: // one is noted
		}
		if !fault.NoAck {
			c.send(obj{"op": opAck})
		}
		return 0, ""
	case opIdentify:
		if known {
			return closeTwice, "Already authenticated."
		}
		return c.identify(d)
	case opResume:
		if known {
			return closeTwice, "Already authenticated."
		}
		return c.resume(d)
	case opPresence, opVoice, opMembers:
		if !known {
			return closeNotAuth, "Not authenticated."
		}
		return 0, ""
	}
	if !known {
		return closeNotAuth, "Not authenticated."
	}
	return closeOpcode, "Unknown opcode."
}

func (c *conn) tooMany() bool {
	now := c.s.opts.Now()
	for len(c.sends) > 0 && now.Sub(c.sends[0]) > time.Minute {
		c.sends = c.sends[1:]
	}
	c.sends = append(c.sends, now)
	return len(c.sends) > sendsPerMinute
}

func (c *conn) identify(d json.RawMessage) (int, string) {
	var p struct {
		Token      string          `json:"token"`
		Intents    *int            `json:"intents"`
		Compress   bool            `json:"compress"`
		Properties json.RawMessage `json:"properties"`
		Shard      *[2]int         `json:"shard"`
	}
	if json.Unmarshal(d, &p) != nil || len(p.Properties) == 0 {
		return closeDecode, "Error while decoding payload."
	}
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gate.identifies++
	s.watch.Changed()
	now := s.opts.Now()
	switch {
	case !s.knows(p.Token):
		return closeAuth, "Authentication failed."
	case p.Shard != nil && (p.Shard[1] < 1 || p.Shard[0] < 0 || p.Shard[0] >= p.Shard[1]):
		return closeShard, "Invalid shard."
	case p.Intents == nil || *p.Intents < 0 || *p.Intents > allIntents:
		return closeIntents, "Invalid intent(s)."
	case s.opts.NoContent && *p.Intents&IntentMessageContent != 0, s.opts.NoMembers && *p.Intents&(IntentMembers|intentPresences) != 0:
		return closeDisallowed, "Disallowed intent(s)."
	}
	if !s.opts.NoLimits {
		if now.Sub(s.gate.identified) < identifyEvery {
			c.queue(obj{"op": opInvalid, "d": false})
			return 0, ""
		}
		s.gate.identified = now
		if s.gate.starts--; s.gate.starts < 0 {
			s.revoked = true // Discord takes the token away and writes to its owner
			return closeAuth, "Authentication failed."
		}
	}
	if s.gate.fault.NoReady {
		return 0, ""
	}
	c.compress = p.Compress
	ses := &session{id: "fake" + s.id(), intents: *p.Intents, conn: c}
	s.gate.sessions[ses.id] = ses
	c.session, c.next = ses, 0
	guilds := []obj{}
	for _, g := range s.sortedGuilds() {
		guilds = append(guilds, obj{"id": g.ID, "unavailable": true})
	}
	ses.add("READY", obj{"v": 10, "user": s.opts.Bot.json(), "guilds": guilds, "session_id": ses.id, "resume_gateway_url": s.wsURL("resume"), "shard": []int{0, 1},
		"application": obj{"id": s.opts.App, "flags": s.appJSON()["flags"]}, "session_type": "normal", "private_channels": []obj{}, "_trace": []string{}})
	if ses.intents&IntentGuilds != 0 && !s.gate.fault.NoGuilds {
		for _, g := range s.sortedGuilds() {
			ses.add("GUILD_CREATE", s.guildJSON(g, true))
		}
	}
	c.poke()
	return 0, ""
}

// knows takes a token with or without "Bot ", as the gateway does. The caller holds s.mu.
func (s *Server) knows(token string) bool {
	return !s.revoked && (token == s.opts.Token || token == "Bot "+s.opts.Token)
}

func (c *conn) resume(d json.RawMessage) (int, string) {
	var p struct {
		Token   string `json:"token"`
		Session string `json:"session_id"`
		Seq     int    `json:"seq"`
	}
	if json.Unmarshal(d, &p) != nil {
		return closeDecode, "Error while decoding payload."
	}
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch.Changed()
	if !s.knows(p.Token) {
		return closeAuth, "Authentication failed."
	}
	if code := s.gate.fault.CloseResume; code != 0 {
		return code, ""
	}
	ses := s.gate.sessions[p.Session]
	if ses == nil {
		c.queue(obj{"op": opInvalid, "d": false})
		return 0, ""
	}
	if p.Seq < 0 || p.Seq > len(ses.log) {
		delete(s.gate.sessions, ses.id)
		return closeSeq, "Invalid seq."
	}
	if old := ses.conn; old != nil && old != c {
		old.once.Do(func() { close(old.gone); _ = old.ws.Close() }) // the newer connection has the session
	}
	s.gate.resumed++
	ses.conn, c.session, c.next = c, ses, p.Seq
	ses.add("RESUMED", obj{"_trace": []string{}})
	c.poke()
	return 0, ""
}

// add puts a dispatch into the session's log. The caller holds Server.mu.
func (ses *session) add(name string, d any) {
	raw, err := json.Marshal(obj{"op": opDispatch, "s": len(ses.log) + 1, "t": name, "d": d})
	if err != nil {
		panic(err) // of values that are made here
	}
	ses.log = append(ses.log, raw)
}

// dispatch gives an event to every session that asked for it. The caller holds s.mu.
func (s *Server) dispatch(e event) {
	f := s.gate.fault
	if s.gate.held == nil && f.Reorder > 0 && s.rng.Float64() < f.Reorder {
		s.gate.held = &e
		return
	}
	s.deliver(e)
	if f.Repeat > 0 && s.rng.Float64() < f.Repeat {
		s.deliver(e)
	}
	if held := s.gate.held; held != nil {
		s.gate.held = nil
		s.deliver(*held)
	}
}

func (s *Server) deliver(e event) {
	if ch := s.channels[e.channel]; ch != nil && ch.denied.See {
		return
	}
	for _, ses := range s.gate.sessions {
		if e.intents != 0 && ses.intents&e.intents == 0 {
			continue
		}
		ses.add(e.name, e.data(ses.intents))
		if ses.conn != nil {
			ses.conn.poke()
		}
	}
}

func (s *Server) wakeAll() {
	for c := range s.gate.conns {
		c.poke()
	}
}

func (c *conn) poke() {
	select {
	case c.wake <- struct{}{}:
	default: // it is awake already
	}
}

// queue has the writer send a payload that is no dispatch. The caller holds Server.mu.
func (c *conn) queue(o obj) {
	raw, err := json.Marshal(o)
	if err != nil {
		panic(err) // of values that are made here
	}
	c.out = append(c.out, raw)
	c.poke()
}

// write sends what the session's log has, and ends the connection when no heartbeat comes.
func (c *conn) write() {
	beat := time.NewTimer(c.s.opts.Heartbeat * 3 / 2)
	defer beat.Stop()
	for {
		select {
		case <-c.gone:
			return
		case <-c.heard:
			beat.Reset(c.s.opts.Heartbeat * 3 / 2)
		case <-beat.C:
			if c.faults().Frozen {
				continue
			}
			c.close(closeTimeout, "Session timed out.")
			return
		case <-c.wake:
			c.flush()
		}
	}
}

// flush writes every dispatch that the connection has not had.
func (c *conn) flush() {
	for {
		c.s.mu.Lock()
		if len(c.out) > 0 && !c.s.gate.fault.Frozen {
			raw := c.out[0]
			c.out = c.out[1:]
			c.s.mu.Unlock()
			c.frame(raw)
			continue
		}
		if c.session == nil || c.next >= len(c.session.log) || c.s.gate.fault.Frozen {
			c.s.mu.Unlock()
			return
		}
		raw := c.session.log[c.next]
		c.next++
		half := c.s.gate.fault.HalfFrame > 0 && !bytes.Contains(raw[:min(80, len(raw))], []byte(`"op":0,"s":1,`))
		if half {
			c.s.gate.fault.HalfFrame--
		}
		c.s.watch.Changed()
		c.s.mu.Unlock()
		if half {
			c.half(raw)
			return
		}
		c.frame(raw)
	}
}

func (c *conn) send(o obj) {
	if c.faults().Frozen {
		return
	}
	raw, err := json.Marshal(o)
	if err != nil {
		panic(err) // of values that are made here
	}
	c.frame(raw)
}

// frame writes one payload: as text, in the connection's one zlib stream, or compressed by itself.
func (c *conn) frame(raw []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.ws.SetWriteDeadline(time.Now().Add(10 * time.Second)) // a client that does not read loses its connection below
	kind := websocket.TextMessage
	switch {
	case c.stream:
		c.buf.Reset()
		_, _ = c.zip.Write(raw) // into memory
		_ = c.zip.Flush()
		raw, kind = c.buf.Bytes(), websocket.BinaryMessage
	case c.compress && len(raw) >= bigFrame:
		var b bytes.Buffer
		z := zlib.NewWriter(&b)
		_, _ = z.Write(raw) // into memory
		_ = z.Close()
		raw, kind = b.Bytes(), websocket.BinaryMessage
	}
	if err := c.ws.WriteMessage(kind, raw); err != nil {
		c.drop()
	}
}

// half writes the beginning of a text frame and drops the connection (RFC 6455, section 5.2: the header says the length).
func (c *conn) half(raw []byte) {
	c.mu.Lock()
	header := []byte{0x81}
	switch n := len(raw); {
	case n < 126:
		header = append(header, byte(n))
	case n < 1<<16:
		header = binary.BigEndian.AppendUint16(append(header, 126), uint16(n))
	default:
		header = binary.BigEndian.AppendUint64(append(header, 127), uint64(n))
	}
	_, _ = c.ws.NetConn().Write(append(header, raw[:len(raw)/2]...)) // cut anyhow
	c.mu.Unlock()
	c.drop()
}

// drop ends the connection without a goodbye.
func (c *conn) drop() {
	c.once.Do(func() {
		close(c.gone)
		_ = c.ws.Close() // ending is the purpose
	})
}

// close says goodbye with a code.
func (c *conn) close(code int, why string) {
	c.mu.Lock()
	_ = c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, why), time.Now().Add(time.Second)) // it ends anyhow
	c.mu.Unlock()
	switch code {
	case closeAuth, closeSeq, closeTimeout, closeShard, closeVersion, closeIntents, closeDisallowed:
		c.s.mu.Lock()
		if c.session != nil {
			delete(c.s.gate.sessions, c.session.id)
		}
		c.s.mu.Unlock()
	}
	c.drop()
}
