package whatsapp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"go.mau.fi/whatsmeow"
	wastore "go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types/events"

	"parley/channels"
	"parley/workspace/lazy"
)

// A code is shown for a minute the first time, and for 20 seconds afterwards; the server gives six of them, and then ends
// the attempt (whatsmeow's qrchan.go).
const (
	firstCode = time.Minute
	nextCode  = 20 * time.Second
	phoneCode = 160 * time.Second // all of them: how long the server waits with a phone code
)

var (
	errBusy     = errors.New("a login, logout or test of this channel is under way")
	phoneFormat = lazy.Regexp(`^\+?[1-9][0-9]{6,14}$`)
	// separators are what people write between the digits of a number.
	separators = strings.NewReplacer(" ", "", "-", "", "(", "", ")", "", ".", "", "/", "")
)

// Login links a new device to the account of whoever scans the code, or types the phone code that is shown. It ends with
// the link, with ctx, or when the codes have run out after some three minutes. A running Run takes the device up by itself.
func (c *Channel) Login(ctx context.Context, how channels.LoginHow, show func(channels.LoginStep)) error {
	phone := separators.Replace(how.Phone)
	if phone != "" && !phoneFormat().MatchString(phone) {
		return bad("%q is not a phone number with its country code, such as +49 151 23456789", how.Phone)
	}
	if !c.linking.TryLock() {
		return &channels.Error{Class: channels.Retry, Err: errBusy}
	}
	defer c.linking.Unlock()
	v, err := c.keep.acquire(ctx)
	if err != nil {
		return err
	}
	defer c.keep.release()
	linked, err := v.device(ctx)
	if err != nil {
		return fmt.Errorf("read the linked device: %w", err)
	}
	if linked != nil && !c.expired(ctx, v, linked) {
		return bad("this channel is linked to %s already; log it out first", linked.ID.User)
	}
	if err := c.chooseVersion(ctx); err != nil {
		return err
	}
	dev := v.container.NewDevice()
	p := &pairing{c: c, show: show, phone: phone, events: make(chan any, 32)}
	if err := p.run(ctx, dev); err != nil {
		return err
	}
	if !p.free {
		if err := c.confirm(ctx, v); err != nil {
			return err
		}
	}
	p.show(channels.LoginStep{Note: "Linked to " + p.account + "."})
	c.touch()
	return nil
}

// confirm asks whether a link holds of which the server said nothing after the phone had agreed to it: the device's signature
// may have been lost.
func (c *Channel) confirm(ctx context.Context, v *deviceStore) error {
	dev, err := v.device(ctx)
	if err != nil || dev == nil {
		return fmt.Errorf("read the linked device: %w", err)
	}
	probe := c.newSession(v, dev, &watch{in: deafIntake{}})
	err = probe.try(ctx)
	probe.close()
	var gone *goneError
	switch {
	case err == nil:
		return v.meet(ctx, probe.id)
	case errors.As(err, &gone):
		if err := v.forget(context.WithoutCancel(ctx), probe.id); err != nil {
			c.log.Error("the keys of an unlinked device cannot be deleted", "err", err)
		}
		return &channels.Error{Class: channels.Retry, Err: errors.New("the link was not finished: the connection was lost before WhatsApp had this device's signature; begin again")}
	}
	c.touch() // a Run finds out
	return &channels.Error{Class: channels.Retry, Err: fmt.Errorf("the connection was lost before WhatsApp confirmed the link (%s); parley channel status %s tells whether it holds", mask(err.Error()), c.name)}
}

// expired says that a device that no Run uses is not linked any more, and deletes it.
func (c *Channel) expired(ctx context.Context, v *deviceStore, dev *wastore.Device) bool {
	if c.busyRunning() {
		return false
	}
	probe := c.newSession(v, dev, &watch{in: deafIntake{}})
	err := probe.try(ctx)
	probe.close()
	var gone *goneError
	if !errors.As(err, &gone) {
		return false
	}
	if err := v.forget(ctx, probe.id); err != nil {
		c.log.Error("the keys of an unlinked device cannot be deleted", "err", err)
		return false
	}
	return true
}

// pairing is one Login.
type pairing struct {
	c      *Channel
	cli    *whatsmeow.Client
	show   func(channels.LoginStep)
	phone  string
	events chan any
	free   bool // the server said that the device may connect as itself

	wire    *wire
	account string // that was linked
	refused refusals
}

func (p *pairing) run(ctx context.Context, dev *wastore.Device) error {
	var w *wire
	p.cli, w = p.c.newClient(dev, nil, p.refused.got)
	p.wire = w
	p.cli.AddEventHandler(func(evt any) {
		if _, fell := evt.(*events.Disconnected); fell {
			w.told()
		}
		select {
		case p.events <- evt:
		default: // nothing of a login comes by dozens
		}
	})
	life, over := context.WithCancel(context.WithoutCancel(ctx))
	defer over()
	stop := context.AfterFunc(ctx, w.end)
	defer stop()
	late := time.AfterFunc(handshakeWait, w.cut)
	err := p.cli.ConnectContext(life)
	late.Stop()
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var dial *net.OpError
		if errors.As(err, &dial) {
			return &channels.Error{Class: channels.Retry, Err: fmt.Errorf("WhatsApp cannot be reached (%s); check the network of this machine, then begin again", mask(dial.Error()))}
		}
		return classify("login", err)
	}
	defer w.sever(p.cli)
	return p.follow(ctx)
}

// follow shows codes until one was used.
func (p *pairing) follow(ctx context.Context) error {
	var codes []string
	next := time.NewTimer(readyWait) // for the first
	defer next.Stop()
	shown := 0
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-next.C:
			if len(codes) == 0 {
				return bad("nobody used the code in time; begin again")
			}
			codes = p.showCode(codes, shown, next)
			shown++
		case evt := <-p.events:
			if qr, ok := evt.(*events.QR); ok {
				if codes = qr.Codes; len(codes) == 0 {
					return &channels.Error{Class: channels.Retry, Err: errors.New("WhatsApp gave no code")}
				}
				if p.phone != "" {
					if err := p.showPhoneCode(ctx, next); err != nil {
						return err
					}
					codes = nil
					continue
				}
				codes = p.showCode(codes, shown, next)
				shown++
				continue
			}
			if done, err := p.heard(ctx, evt); done || err != nil {
				return err
			}
		}
	}
}

func (p *pairing) showCode(codes []string, shown int, next *time.Timer) []string {
	wait := nextCode
	if shown == 0 {
		wait = firstCode
	}
	next.Reset(wait)
	p.show(channels.LoginStep{QR: codes[0], Expires: p.c.clock.Now().Add(wait),
		Note: "In WhatsApp on the phone: Settings, Linked devices, Link a device. Then scan this code."})
	return codes[1:]
}

func (p *pairing) showPhoneCode(ctx context.Context, next *time.Timer) error {
	next.Reset(phoneCode)
	// The server takes a browser's name only.
	code, err := p.cli.PairPhone(ctx, p.phone, true, whatsmeow.PairClientChrome, "Chrome (Linux)")
	if errors.Is(err, whatsmeow.ErrIQBadRequest) || errors.Is(err, whatsmeow.ErrIQNotFound) {
		return bad("WhatsApp does not know the number %s; write it with its country code", p.phone)
	}
	if err != nil {
		return classify("ask for a phone code", err)
	}
	p.show(channels.LoginStep{Code: code, Expires: p.c.clock.Now().Add(phoneCode),
		Note: "In WhatsApp on the phone: Settings, Linked devices, Link a device, Link with phone number. Then type this code."})
	return nil
}

// heard judges an event that is not a code. done says that the device is linked.
func (p *pairing) heard(ctx context.Context, evt any) (done bool, err error) {
	switch e := evt.(type) {
	case *events.PairSuccess:
		p.account = e.ID.User
		p.settle(ctx)
		return true, ctx.Err()
	case *events.ManualLoginReconnect: // a quick server says so before the pairing is told
		p.free = true
	case *events.PairError:
		return false, &channels.Error{Class: channels.Retry, Err: errors.New("the phone's answer cannot be used: " + mask(e.Error.Error()))}
	case *events.QRScannedWithoutMultidevice:
		p.show(channels.LoginStep{Note: "The phone's WhatsApp is too old, or linking devices is not switched on in it."})
	case *events.ClientOutdated:
		return false, &channels.Error{Class: channels.Fatal, Err: errOutdated}
	case *events.Disconnected:
		if err := p.refused.take(); err != nil {
			return false, &channels.Error{Class: channels.Retry, Err: err}
		}
		return false, &channels.Error{Class: channels.Retry, Err: errors.New("WhatsApp ended the connection before a code was used; begin again")}
	case *events.ConnectFailure:
		return false, &channels.Error{Class: channels.Retry, Err: &refusedError{code: int(e.Reason), said: mask(e.Message)}}
	case *events.TemporaryBan:
		return false, &channels.Error{Class: channels.Retry, Err: fmt.Errorf("WhatsApp has banned this account for a time: %s", e.Code)}
	}
	return false, nil
}

// settle waits for the server to say that the device may connect as itself.
func (p *pairing) settle(ctx context.Context) {
	late := time.NewTimer(p.c.answerWait())
	defer late.Stop()
	look := time.NewTicker(p.c.pace.reason) // whatsmeow expects an end, and does not tell of it
	defer look.Stop()
	for down := false; !p.free; {
		select {
		case <-ctx.Done():
			return
		case <-late.C:
			return
		case <-look.C:
			if down {
				return
			}
			down = p.wire.down()
		case evt := <-p.events:
			switch evt.(type) {
			case *events.ManualLoginReconnect:
				p.free = true
			case *events.Disconnected:
				return
			}
		}
	}
}

// Logout takes the device off the account's list and deletes its keys. It needs a connection: without one the phone would
// go on listing the device, so that it is taken off there.
func (c *Channel) Logout(ctx context.Context) error {
	if !c.linking.TryLock() {
		return &channels.Error{Class: channels.Retry, Err: errBusy}
	}
	defer c.linking.Unlock()
	s, err := c.connected()
	if err != nil {
		return c.logoutAlone(ctx, err)
	}
	if !s.enter() {
		return c.logoutAlone(ctx, errLost)
	}
	err = func() error {
		defer s.busy.Done()
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		if err := s.cli.Logout(ctx); err != nil && !errors.Is(err, errKept) {
			return classify("logout", err)
		}
		return nil
	}()
	if err != nil {
		return err
	}
	s.refuse(&goneError{cause: "logged out here", ours: true})
	return nil
}

// logoutAlone says what is there to log out, or why it cannot be.
func (c *Channel) logoutAlone(ctx context.Context, why error) error {
	if c.keep.empty() {
		return bad("no WhatsApp account is linked")
	}
	v, err := c.keep.acquire(ctx)
	if err != nil {
		return err
	}
	defer c.keep.release()
	dev, err := v.device(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("read the linked device: %w", err)
	case dev == nil:
		return bad("no WhatsApp account is linked")
	}
	return &channels.Error{Class: channels.Retry, Err: fmt.Errorf("%w: wait until it is, or take the device off in WhatsApp on the phone (Settings, Linked devices)", why)}
}
