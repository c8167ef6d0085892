package whatsapp

import (
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waCompanionReg"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/proto/waWa6"
	wastore "go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
	"google.golang.org/protobuf/proto"

	"parley/channels"
)

const newest = "newest" // of Options.Version

// handshakeWait is how long a server may take to answer the dial and the handshake.
const handshakeWait = 15 * time.Second

// session is a device with its client, over any number of connections. What is copied of the device here is read without
// it: whatsmeow changes it from goroutines of its own.
type session struct {
	c    *Channel
	v    *deviceStore
	w    *watch
	cli  *whatsmeow.Client
	wire *wire
	id   types.JID // with the device's number
	me   types.JID // the account's number
	lid  types.JID // its other address; empty until the first connection
	seen *seen
	owed *owed

	refused refusals
	signals chan any
	life    context.Context // of the connections; ends after everything of the session
	over    context.CancelFunc

	mu      sync.Mutex
	up      bool
	why     error         // why sends are refused for good
	dead    chan struct{} // closed when why is set
	closing bool
	busy    sync.WaitGroup // handlers at work
	reports sync.Mutex     // of w
	present time.Time      // when people were last told that we are here
}

func (c *Channel) newSession(v *deviceStore, dev *wastore.Device, w *watch) *session {
	s := &session{c: c, v: v, w: w, id: *dev.ID, me: plain(*dev.ID), lid: plain(dev.LID), seen: newSeen(), dead: make(chan struct{}), signals: make(chan any, 32)}
	s.owed = newOwed(c.answerWait)
	s.owed.over, s.owed.good = s.unanswered, func() { s.signal(heard{}) }
	s.cli, s.wire = c.newClient(dev, s.owed.asked, func(stanza string) {
		s.owed.got(stanza)
		s.refused.got(stanza)
		if err := s.refused.take(); err != nil {
			s.signal(err)
		}
	})
	s.cli.GetMessageForRetry = s.sentBefore
	s.cli.AddEventHandlerWithSuccessStatus(s.handle)
	return s
}

// newClient makes whatsmeow's client as this adapter uses it. sent and got are told each stanza.
func (c *Channel) newClient(dev *wastore.Device, sent, got func(stanza string)) (*whatsmeow.Client, *wire) {
	w := newWire(c.http, c.base)
	cli := whatsmeow.NewClient(dev, logger{c.log, sent, got})
	h := &http.Client{Transport: w}
	cli.SetWebsocketHTTPClient(h)
	cli.SetPreLoginHTTPClient(h)
	cli.SetMediaHTTPClient(h)
	// A receipt goes out after the handlers, and what they did not take can be read again (message.go of whatsmeow).
	cli.SynchronousAck = true
	cli.EnableDecryptedEventBuffer = true
	cli.EnableAutoReconnect = false // its delays have no ceiling, and it reads what others write
	cli.DisableLoginAutoReconnect = true
	cli.ManualHistorySyncDownload = true // history is never answered; it would be held in memory whole
	cli.AutomaticMessageRerequestFromPhone = true
	cli.GetClientPayload = func() *waWa6.ClientPayload { return c.payload(dev) }
	return cli, w
}

// payload is what the client says of itself. whatsmeow has the name and version as variables of the process.
func (c *Channel) payload(dev *wastore.Device) *waWa6.ClientPayload {
	p := dev.GetClientPayload()
	c.mu.Lock()
	version := c.version
	c.mu.Unlock()
	if !version.IsZero() {
		p.UserAgent.AppVersion = version.ProtoAppVersion()
	}
	reg := p.DevicePairingData
	if reg == nil {
		return p
	}
	if !version.IsZero() {
		sum := md5.Sum([]byte(version.String())) //nolint:gosec // WhatsApp's own, see whatsmeow's store/clientpayload.go
		reg.BuildHash = sum[:]
	}
	var props waCompanionReg.DeviceProps
	if proto.Unmarshal(reg.DeviceProps, &props) != nil {
		return p
	}
	props.Os = proto.String("Parley")
	if c.opt.DeviceName != "" {
		props.Os = proto.String(c.opt.DeviceName)
	}
	props.PlatformType = waCompanionReg.DeviceProps_CHROME.Enum()
	if raw, err := proto.Marshal(&props); err == nil {
		reg.DeviceProps = raw
	}
	return p
}

// chooseVersion sets what Options.Version asks for.
func (c *Channel) chooseVersion(ctx context.Context) error {
	var v wastore.WAVersionContainer
	switch c.opt.Version {
	case "":
		return nil
	case newest:
		c.mu.Lock()
		known := !c.version.IsZero()
		c.mu.Unlock()
		if known {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
		defer cancel()
		got, err := whatsmeow.GetLatestVersion(ctx, &http.Client{Transport: newWire(c.http, c.base)})
		if err != nil {
			c.log.Warn("whatsapp's newest version is not known", "err", mask(err.Error()))
			return nil // the built-in one may do
		}
		v = *got
	default:
		var err error
		if v, err = wastore.ParseVersion(c.opt.Version); err != nil {
			return fmt.Errorf("client_version: %w", err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version = v
	return nil
}

// askVersionAgain forgets the version that was refused, where the newest is wanted.
func (c *Channel) askVersionAgain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.opt.Version == newest {
		c.version = wastore.WAVersionContainer{}
	}
}

// report tells a state; handlers do, too.
func (s *session) report(st channels.Status) {
	s.reports.Lock()
	defer s.reports.Unlock()
	s.w.report(st)
}

// signal tells the loop. It never blocks: with 32 waiting, the line is ending anyway.
func (s *session) signal(v any) {
	select {
	case s.signals <- v:
	default:
	}
}

// connect dials and shakes hands. What it starts lives on until the line ends.
func (s *session) connect(ctx context.Context) error {
	if err := s.c.chooseVersion(ctx); err != nil {
		return &channels.Error{Class: channels.Fatal, Err: err}
	}
	if s.life == nil {
		s.life, s.over = context.WithCancel(context.WithoutCancel(ctx))
	}
	s.drain()
	stop := context.AfterFunc(ctx, s.wire.end)
	defer stop()
	late := time.AfterFunc(handshakeWait, s.wire.cut)
	defer late.Stop()
	return s.cli.ConnectContext(s.life)
}

// drain forgets what the line before still said, but for what is final.
func (s *session) drain() {
	var kept []any
	for {
		select {
		case sig := <-s.signals:
			if _, is := sig.(error); is {
				kept = append(kept, sig)
			}
			continue
		default:
		}
		break
	}
	for _, sig := range kept {
		s.signal(sig)
	}
}

// arrived is after every login: the server knows the device and sends what waited.
func (s *session) arrived(ctx context.Context) {
	lid := plain(s.cli.Store.GetLID())
	s.mu.Lock()
	s.up, s.present = true, time.Time{}
	s.lid = lid
	s.mu.Unlock()
	if err := s.v.meet(ctx, s.id); err != nil {
		s.c.log.Warn("device link cannot be stored", "err", err)
	}
	s.owed.connected()
	if s.owed.doubted() > 0 {
		s.doubt()
		return
	}
	s.report(channels.Status{State: channels.Ready})
}

// hangUp ends the line and waits until whatsmeow knows.
func (s *session) hangUp() {
	s.mu.Lock()
	s.up = false
	s.mu.Unlock()
	s.owed.disconnected()
	s.wire.sever(s.cli)
}

// close ends everything of the session and waits for the handlers.
func (s *session) close() {
	s.mu.Lock()
	s.closing, s.up = true, false
	s.mu.Unlock()
	s.owed.close()
	s.wire.sever(s.cli)
	s.wire.end()
	if s.over != nil {
		s.over()
	}
	s.busy.Wait()
}

// enter lets a handler work, unless the session is closing.
func (s *session) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return false
	}
	s.busy.Add(1)
	return true
}

// sendable is why nothing can be sent now.
func (s *session) sendable() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.why != nil:
		return &channels.Error{Class: channels.Fatal, Err: s.why}
	case !s.up || s.closing:
		return &channels.Error{Class: channels.Retry, Err: errors.New("whatsapp is not connected")}
	}
	return nil
}

// own is the account's two addresses.
func (s *session) own() (number, lid types.JID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.me, s.lid
}

// isMe says whether an address is the account's.
func (s *session) isMe(j types.JID) bool {
	number, lid := s.own()
	j = plain(j)
	return j == number || (!lid.IsEmpty() && j == lid)
}

// handle is whatsmeow's event handler. false leaves a message unacknowledged. A panic must not reach whatsmeow, which
// would take it for success.
func (s *session) handle(evt any) (taken bool) {
	if _, fell := evt.(*events.Disconnected); fell {
		s.wire.told()
	}
	if !s.enter() {
		return false
	}
	defer s.busy.Done()
	defer func() {
		if p := recover(); p != nil {
			s.c.log.Error("panic while an event was handled", "event", fmt.Sprintf("%T", evt), "err", mask(fmt.Sprint(p)), "stack", string(debug.Stack()))
			taken = false
		}
	}()
	switch e := evt.(type) {
	case *events.Message:
		return s.message(e)
	case *events.Receipt:
		return s.receipt(e)
	}
	s.control(evt)
	return true
}

// control turns what whatsmeow says of the connection into signals.
func (s *session) control(evt any) {
	switch e := evt.(type) {
	case *events.Connected:
		s.signal(ready{})
	case *events.Disconnected:
		s.mu.Lock()
		s.up = false
		s.mu.Unlock()
		s.owed.disconnected()
		s.signal(lost{})
	case *events.KeepAliveTimeout:
		s.signal(silent{e.ErrorCount})
	case *events.KeepAliveRestored:
		s.signal(heard{})
	case *events.ManualLoginReconnect:
		s.signal(error(errLost))
	case *events.LoggedOut:
		cause := loggedOut(e)
		if !s.v.hasMet(s.id) {
			cause = "the link was not finished: WhatsApp does not know this device"
		}
		s.refuse(&goneError{cause: cause})
	case *events.StreamReplaced:
		s.refuse(errReplaced)
	case *events.TemporaryBan:
		b := &bannedError{why: e.Code.String()}
		if e.Expire > 0 {
			b.until = s.c.clock.Now().Add(e.Expire)
		}
		s.signal(error(b))
	case *events.ClientOutdated:
		s.signal(errOutdated)
	case *events.ConnectFailure:
		s.signal(error(&refusedError{code: int(e.Reason), said: mask(e.Message)}))
	case *events.StreamError:
		s.signal(fmt.Errorf("WhatsApp ended the connection with code %q", mask(e.Code)))
	}
}

// refuse makes every later send fail for good, and tells the loop.
func (s *session) refuse(err error) {
	s.mu.Lock()
	s.up = false
	if s.why == nil {
		s.why = err
		close(s.dead)
	}
	s.mu.Unlock()
	s.signal(err)
}

// reason waits a moment for what ended a line that just ended: the server says it first, whatsmeow tells it from another
// goroutine. nil: it says nothing.
func (s *session) reason() error {
	soon := time.NewTimer(s.c.pace.reason)
	defer soon.Stop()
	select {
	case <-s.dead:
	case <-soon.C:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.why
}

func loggedOut(e *events.LoggedOut) string {
	switch e.Reason {
	case events.ConnectFailureMainDeviceGone:
		return "WhatsApp ended the link: the phone was changed, logged out or banned"
	case events.ConnectFailureUnknownLogout:
		return "WhatsApp ended the link: the account may be banned"
	}
	return "this device was logged out on the phone, or for not having been used for long"
}

// sentBefore finds what a person's device asks for again. It is called with the chat as the asker's device names it.
func (s *session) sentBefore(_, to types.JID, id types.MessageID) *waE2E.Message {
	if !s.enter() {
		return nil
	}
	defer s.busy.Done()
	ctx, cancel := context.WithTimeout(s.life, 10*time.Second)
	defer cancel()
	m, chat, err := s.v.get(ctx, id)
	if err != nil {
		s.c.log.Warn("sent messages cannot be read", "err", err)
	}
	if m == nil || !s.sameChat(ctx, chat, to) {
		return nil // whoever asks for what went to others gets nothing
	}
	return m
}

// sameChat says whether two addresses are one conversation.
func (s *session) sameChat(ctx context.Context, kept string, to types.JID) bool {
	to = plain(to)
	if kept == to.String() {
		return true
	}
	alt, err := s.cli.Store.GetAltJID(ctx, to)
	return err == nil && !alt.IsEmpty() && kept == plain(alt).String()
}
