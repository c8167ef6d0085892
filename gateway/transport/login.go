package transport

import (
	"context"
	"encoding/base64"
	"errors"
	"sync"
	"time"

	"rsc.io/qr"

	"parley/channels"
	"parley/workspace"
)

// States of a Login.
const (
	LoginNone    = "none"    // nobody began one
	LoginWaiting = "waiting" // a code is on its way, or shown
	LoginLinked  = "linked"
	LoginFailed  = "failed"
)

// Login is an attempt to link a channel to an account of its network, as far as it has come.
type Login struct {
	Channel string `json:"channel"`
	State   string `json:"state"`             // none, waiting, linked or failed
	Step    int    `json:"step"`              // grows with every change
	QR      string `json:"qr,omitempty"`      // what the code to scan holds
	Image   string `json:"image,omitempty"`   // the same as a picture: a data URL of a PNG
	Code    string `json:"code,omitempty"`    // to type on the phone
	Note    string `json:"note,omitempty"`    // what to do, or what happened
	Expires string `json:"expires,omitempty"` // when the next code comes, RFC 3339
	Error   string `json:"error,omitempty"`   // why it failed
}

// Logins are the attempts to link channels, one at a time for each. An attempt does not end with those who watch it.
type Logins struct {
	channels *Channels
	base     context.Context
	mu       sync.Mutex
	list     map[string]*attempt
	wg       sync.WaitGroup
	shut     bool
}

// NewLogins links the given channels; attempts end with base.
func NewLogins(base context.Context, cs *Channels) *Logins {
	return &Logins{channels: cs, base: base, list: map[string]*attempt{}}
}

// attempt is one of them.
type attempt struct {
	cancel context.CancelFunc
	over   chan struct{} // closed at its end

	mu      sync.Mutex
	view    Login
	changed chan struct{} // closed and replaced at every step
}

func (a *attempt) look() (Login, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.view, a.changed
}

// step changes what is seen of the attempt.
func (a *attempt) step(change func(*Login)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(&a.view)
	a.view.Step++
	close(a.changed)
	a.changed = make(chan struct{})
}

// Stop ends all attempts and waits for them.
func (ls *Logins) Stop() {
	ls.mu.Lock()
	ls.shut = true
	for _, a := range ls.list {
		a.cancel()
	}
	ls.mu.Unlock()
	ls.wg.Wait()
}

func (ls *Logins) linker(name string) (*Channel, channels.Linker, error) {
	c := ls.channels.Named(name)
	if c == nil {
		return nil, nil, NoChannel(name)
	}
	linker, ok := channels.As[channels.Linker](c.Adapter)
	if !ok {
		return nil, nil, workspace.Say(workspace.ErrInvalid, "Channel %q needs no login: its account is in the configuration.", name)
	}
	return c, linker, nil
}

// NoChannel is the error for a name that no channel has.
func NoChannel(name string) error {
	return workspace.Say(workspace.ErrNotFound, "There is no channel %q.", name)
}

// Begin begins an attempt, or gives the one under way.
func (ls *Logins) Begin(name, phone string) (Login, error) {
	c, linker, err := ls.linker(name)
	if err != nil {
		return Login{}, err
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	step := 0
	if old := ls.list[name]; old != nil {
		view, _ := old.look()
		if view.State == LoginWaiting {
			return view, nil
		}
		step = view.Step
	}
	if ls.shut {
		return Login{}, workspace.Say(workspace.ErrInvalid, "The gateway is shutting down.")
	}
	ctx, cancel := context.WithCancel(ls.base)
	a := &attempt{cancel: cancel, over: make(chan struct{}), changed: make(chan struct{}), view: Login{Channel: name, State: LoginWaiting, Step: step + 1}}
	ls.list[name] = a
	ls.wg.Go(func() {
		defer close(a.over)
		defer cancel()
		ls.wg.Go(func() {
			select {
			case <-c.removed:
				cancel()
			case <-ctx.Done():
			}
		})
		a.end(linker.Login(ctx, channels.LoginHow{Phone: phone}, a.show), c)
	})
	view, _ := a.look()
	return view, nil
}

// show is the adapter's next step.
func (a *attempt) show(s channels.LoginStep) {
	a.step(func(v *Login) {
		v.QR, v.Code, v.Note, v.Image, v.Expires = s.QR, s.Code, s.Note, picture(s.QR), ""
		if !s.Expires.IsZero() {
			v.Expires = s.Expires.UTC().Format(time.RFC3339)
		}
	})
}

// picture is a code to scan as a data URL; empty: there is none.
func picture(text string) string {
	if text == "" {
		return ""
	}
	code, err := qr.Encode(text, qr.M)
	if err != nil {
		return "" // it is shown as text
	}
	code.Scale = 5
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(code.PNG())
}

func (a *attempt) end(err error, c *Channel) {
	a.step(func(v *Login) {
		*v = Login{Channel: v.Channel, State: LoginLinked, Step: v.Step, Note: v.Note}
		if err == nil {
			return
		}
		v.State, v.Note, v.Error = LoginFailed, "", err.Error()
		var e *channels.Error
		if errors.As(err, &e) {
			v.Error = e.Err.Error()
		}
		if errors.Is(err, context.Canceled) {
			v.Error = "it was cancelled"
		}
	})
	if err == nil {
		c.Log.Info("channel linked")
		c.Linked()
		return
	}
	c.Log.Warn("login ended without a link", "err", err)
}

// Next waits until the attempt is past a step, or ctx ends.
func (ls *Logins) Next(ctx context.Context, name string, after int) (Login, error) {
	if _, _, err := ls.linker(name); err != nil {
		return Login{}, err
	}
	for {
		a := ls.attempt(name)
		if a == nil {
			return Login{Channel: name, State: LoginNone}, nil
		}
		view, changed := a.look()
		if view.Step > after || view.State != LoginWaiting {
			return view, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return view, nil
		}
	}
}

func (ls *Logins) attempt(name string) *attempt {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.list[name]
}

// Cancel ends the attempt under way, and waits until it has ended: whoever begins the next must not get this one.
// Without one it does nothing.
func (ls *Logins) Cancel(ctx context.Context, name string) error {
	if _, _, err := ls.linker(name); err != nil {
		return err
	}
	a := ls.attempt(name)
	if a == nil {
		return nil
	}
	a.cancel()
	select {
	case <-a.over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Logout unlinks a channel. Its account may be linked to another channel then.
func (ls *Logins) Logout(ctx context.Context, name string) error {
	c, linker, err := ls.linker(name)
	if err != nil {
		return err
	}
	id := c.Account()
	if err := linker.Logout(ctx); err != nil {
		var e *channels.Error
		if errors.As(err, &e) {
			return workspace.Say(err, "%s cannot be logged out: %v.", name, e.Err)
		}
		return err
	}
	ls.channels.release(c, id)
	c.Log.Info("channel logged out")
	return nil
}
