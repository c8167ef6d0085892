package whatsapptest

import (
	"context"
	"maps"
	"slices"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/types"
)

// faults are what a test makes the network do. Under the server's lock.
type faults struct {
	refuse       []int
	lose         string
	swallow      int
	garble       int
	peer         []PeerFault
	signature    SignatureFault
	peerSeen     map[string]bool
	loseReceipts int
	lost         int
	noReceipts   bool
	deaf         bool
	held         bool
	frozen       chan struct{}
	failure      waBinary.Attrs
	blind        map[string]int // how often a person's devices cannot read what comes
	broken       map[string]int // how often more a message comes corrupt
	retried      map[string]int
	taken        int
	logins       int
}

func (f *faults) corrupt(id string, times int) {
	if f.broken == nil {
		f.broken = map[string]int{}
	}
	f.broken[id] = times
}

func (f *faults) corrupted(id string) bool {
	if f.broken[id] <= 0 {
		return false
	}
	f.broken[id]--
	return true
}

func (s *Server) set(f func(*faults)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.faults)
	s.watch.Changed()
}

// RefuseNext has the next messages acknowledged with these errors; nobody sees them.
func (s *Server) RefuseNext(codes ...int) {
	s.set(func(f *faults) { f.refuse = append(f.refuse, codes...) })
}

// LoseNext has the next stanza with a message's id vanish on its way: nobody sees it, and no acknowledgement comes.
func (s *Server) LoseNext(id string) { s.set(func(f *faults) { f.lose = id }) }

// LostNext says whether it has vanished (LoseNext).
func (s *Server) LostNext() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults.lose == ""
}

// SwallowNext has the next n messages delivered and never acknowledged.
func (s *Server) SwallowNext(n int) { s.set(func(f *faults) { f.swallow += n }) }

// ToSwallow counts the messages that are still to go without an acknowledgement (SwallowNext).
func (s *Server) ToSwallow() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults.swallow
}

// SignatureFault is what becomes of the last step of linking: the device's signature.
type SignatureFault int

// It is lost with the connection, or taken and the connection cut before the client is told.
const (
	SignatureLost SignatureFault = iota + 1
	SignatureUntold
)

// FailSignature has the next linking go wrong at its last step.
func (s *Server) FailSignature(f SignatureFault) { s.set(func(fs *faults) { fs.signature = f }) }

// PeerFault is what goes wrong with a message to the account's own phone, such as the question for a message that could not
// be read.
type PeerFault int

// Both are taken, and the first is never acknowledged on a line that stays up; the second is not since the line is cut.
const (
	PeerNoAck PeerFault = iota
	PeerCut
)

// FailPeer has the next messages to the account's own phone go wrong, one after the other. The client sends one whose line
// was cut again.
func (s *Server) FailPeer(list ...PeerFault) {
	s.set(func(f *faults) { f.peer = append(f.peer, list...) })
}

// PeerFaults counts what is still to go wrong by FailPeer.
func (s *Server) PeerFaults() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.faults.peer)
}

// GarbleNext has the next n messages delivered and answered by something that is no stanza.
func (s *Server) GarbleNext(n int) { s.set(func(f *faults) { f.garble += n }) }

// LoseReceipts has the next n receipts for messages lost, so that what they were for is offered again.
func (s *Server) LoseReceipts(n int) { s.set(func(f *faults) { f.loseReceipts += n }) }

// KeepReceipts ends what LoseReceipts began.
func (s *Server) KeepReceipts() { s.set(func(f *faults) { f.loseReceipts = 0 }) }

// NoReceipts has people's devices give no delivery receipts.
func (s *Server) NoReceipts() { s.set(func(f *faults) { f.noReceipts = true }) }

// Deaf has keepalives go unanswered (or answered again), while all else works: a half-open line.
func (s *Server) Deaf(on bool) { s.set(func(f *faults) { f.deaf = on }) }

// Blind has a person's devices fail to read the next n parts that come: they ask for them again.
func (s *Server) Blind(phone string, n int) {
	s.set(func(f *faults) {
		if f.blind == nil {
			f.blind = map[string]int{}
		}
		f.blind[phone] = n
	})
}

// Freeze takes everything and answers nothing, until Thaw or Close: websockets stay open, new ones are not upgraded.
func (s *Server) Freeze() {
	s.set(func(f *faults) {
		if f.frozen == nil {
			f.frozen = make(chan struct{})
		}
	})
}

// Thaw ends a freeze. What was sent meanwhile is lost.
func (s *Server) Thaw() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.faults.frozen != nil {
		close(s.faults.frozen)
		s.faults.frozen = nil
	}
	for c := range s.conns {
		c.stir()
	}
}

func (s *Server) thawed(ctx context.Context) bool {
	s.mu.Lock()
	frozen := s.faults.frozen
	s.mu.Unlock()
	if frozen == nil {
		return true
	}
	select {
	case <-frozen:
		return true
	case <-ctx.Done():
	case <-s.Done():
	}
	return false
}

// Hold keeps back what people do until Release.
func (s *Server) Hold() { s.set(func(f *faults) { f.held = true }) }

// Release sends what was held back, in the order that the permutation gives; nil: as it came. It gives how many they are.
func (s *Server) Release(order func(n int) []int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.held = false
	count := 0
	for _, d := range s.companions {
		var fresh []*stanza
		for _, st := range d.pending {
			if st.sent == 0 {
				fresh = append(fresh, st)
			}
		}
		count += len(fresh)
		places := counting(len(fresh))
		if order != nil {
			places = order(len(fresh))
		}
		for _, i := range places {
			if d.conn != nil && d.active {
				s.transmit(d.conn, fresh[i], -1)
			}
		}
	}
	s.watch.Changed()
	return count
}

func counting(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// Redeliver sends everything that waits for its receipt once more on the same connection.
func (s *Server) Redeliver() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.companions {
		if d.conn == nil || !d.active {
			continue
		}
		for _, st := range slices.Clone(d.pending) {
			s.transmit(d.conn, st, -1)
		}
	}
}

// Taken counts the messages of the client that the network took.
func (s *Server) Taken() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults.taken
}

// Logins counts the connections that reached login.
func (s *Server) Logins() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults.logins
}

// LogOut unlinks the client's devices, as the person does on the phone: the connection ends with the news, and the next one is
// refused.
func (s *Server) LogOut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.companions {
		if c := d.conn; c != nil {
			c.push(waBinary.Node{Tag: "stream:error", Attrs: waBinary.Attrs{"code": "401"}, Content: []waBinary.Node{{
				Tag: "conflict", Attrs: waBinary.Attrs{"type": "device_removed"},
			}}})
			c.end()
			s.detach(c)
		}
	}
	s.companions = map[uint16]*companion{}
	s.watch.Changed()
}

// Failure is why a login is refused: the reason (401 logged out, 402 banned for a while, 403 the phone is gone or banned, 405
// client outdated, 406 banned, 409 bad user agent, 500, 503) and what goes with it (of 402: code and expire, in seconds).
type Failure struct {
	Reason       string
	Code, Expire string
}

// FailLogin refuses every login from now on; the zero Failure ends it. Connections that stand are not touched.
func (s *Server) FailLogin(f Failure) {
	s.set(func(fs *faults) {
		fs.failure = nil
		if f.Reason == "" {
			return
		}
		fs.failure = waBinary.Attrs{"reason": f.Reason, "location": "cln"}
		for k, v := range map[string]string{"code": f.Code, "expire": f.Expire} {
			if v != "" {
				fs.failure[k] = v
			}
		}
	})
}

// Replace tells the connection that another one with the same keys has taken its place, and closes it.
func (s *Server) Replace() {
	s.streamError(waBinary.Node{Tag: "stream:error", Content: []waBinary.Node{{Tag: "conflict", Attrs: waBinary.Attrs{"type": "replaced"}}}})
}

// StreamError ends the connection with a code: 503 the server restarts, 515 connect again…
func (s *Server) StreamError(code string) {
	s.streamError(waBinary.Node{Tag: "stream:error", Attrs: waBinary.Attrs{"code": code}})
}

func (s *Server) streamError(n waBinary.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range maps.Clone(s.conns) {
		if c.device != nil {
			c.push(n)
			c.end()
			s.detach(c)
		}
	}
	s.watch.Changed()
}

// Notify sends the client's devices any stanza, which waits for its acknowledgement if it is of a kind that does.
func (s *Server) Notify(n waBinary.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.companions {
		s.enqueue(d, n)
	}
}

// Garbage sends a message of a person in which nothing can be read: its ciphertext decrypts, its content is of no known kind.
func (s *Server) Garbage(phone string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.mustKnow(phone).devices[0]
	id := newID()
	for _, d := range s.companions {
		kind, sealed, err := p.signalStore.seal(d.address(s.owner, false).SignalAddress(), []byte{0xff, 0xff, 0x01, 0x02}, false, d.bundle)
		if err != nil {
			panic("whatsapptest: " + err.Error())
		}
		a := waBinary.Attrs{"id": id, "t": s.now().Unix(), "type": "text", "notify": p.owner.Name}
		a["from"], a["sender_pn"] = p.address(false), types.JID(p.owner.PN())
		s.enqueue(d, waBinary.Node{Tag: "message", Attrs: a, Content: []waBinary.Node{{Tag: "enc", Attrs: waBinary.Attrs{"v": "2", "type": kind}, Content: sealed}}})
	}
	return id
}
