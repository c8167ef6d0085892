package gateway

import (
	"context"
	"encoding/base64"
	"errors"
	"sync"
	"time"

	"rsc.io/qr"

	"parley/channels"
	"parley/gateway/control"
	"parley/workspace"
)

// logins are the attempts to link channels, one at a time for each. An attempt does not end with those who watch it.
type logins struct {
	mu   sync.Mutex
	list map[string]*login
	wg   sync.WaitGroup
	shut bool
}

// login is one attempt.
type login struct {
	cancel context.CancelFunc
	over   chan struct{} // closed at its end

	mu      sync.Mutex
	view    control.Login
	changed chan struct{} // closed and made anew at every step
}

func (l *login) look() (control.Login, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.view, l.changed
}

// step changes what is seen of the attempt.
func (l *login) step(change func(*control.Login)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.view)
	l.view.Step++
	close(l.changed)
	l.changed = make(chan struct{})
}

// stop ends all attempts and waits for them.
func (ls *logins) stop() {
	ls.mu.Lock()
	ls.shut = true
	for _, l := range ls.list {
		l.cancel()
	}
	ls.mu.Unlock()
	ls.wg.Wait()
}

func (h house) linker(name string) (*line, channels.Linker, error) {
	l := h.g.lines.byName(name)
	if l == nil {
		return nil, nil, workspace.Say(workspace.ErrNotFound, "There is no channel %q.", name)
	}
	linker, ok := channels.As[channels.Linker](l.channel)
	if !ok {
		return nil, nil, control.ErrNoLogin(name)
	}
	return l, linker, nil
}

// Login begins an attempt, or gives the one under way.
func (h house) Login(name, phone string) (control.Login, error) {
	line, linker, err := h.linker(name)
	if err != nil {
		return control.Login{}, err
	}
	ls := &h.g.logins
	ls.mu.Lock()
	defer ls.mu.Unlock()
	step := 0
	if old := ls.list[name]; old != nil {
		view, _ := old.look()
		if view.State == control.LoginWaiting {
			return view, nil
		}
		step = view.Step
	}
	if ls.shut {
		return control.Login{}, workspace.Say(workspace.ErrInvalid, "The gateway is shutting down.")
	}
	ctx, cancel := context.WithCancel(h.g.base)
	l := &login{cancel: cancel, over: make(chan struct{}), changed: make(chan struct{}), view: control.Login{Channel: name, State: control.LoginWaiting, Step: step + 1}}
	if ls.list == nil {
		ls.list = map[string]*login{}
	}
	ls.list[name] = l
	ls.wg.Go(func() {
		defer close(l.over)
		defer cancel()
		l.end(linker.Login(ctx, channels.LoginHow{Phone: phone}, l.show), line)
	})
	view, _ := l.look()
	return view, nil
}

// show is the adapter's next step.
func (l *login) show(s channels.LoginStep) {
	l.step(func(v *control.Login) {
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

func (l *login) end(err error, line *line) {
	l.step(func(v *control.Login) {
		*v = control.Login{Channel: v.Channel, State: control.LoginLinked, Step: v.Step, Note: v.Note}
		if err == nil {
			return
		}
		v.State, v.Note, v.Error = control.LoginFailed, "", err.Error()
		var e *channels.Error
		if errors.As(err, &e) {
			v.Error = e.Err.Error()
		}
		if errors.Is(err, context.Canceled) {
			v.Error = "it was cancelled"
		}
	})
	if err == nil {
		line.log.Info("the channel was linked")
		line.anew()
		return
	}
	line.log.Warn("a login ended without a link", "err", err)
}

// LoginStep waits until the attempt is past a step, or ctx ends.
func (h house) LoginStep(ctx context.Context, name string, after int) (control.Login, error) {
	if _, _, err := h.linker(name); err != nil {
		return control.Login{}, err
	}
	for {
		h.g.logins.mu.Lock()
		l := h.g.logins.list[name]
		h.g.logins.mu.Unlock()
		if l == nil {
			return control.Login{Channel: name, State: control.LoginNone}, nil
		}
		view, changed := l.look()
		if view.Step > after || view.State != control.LoginWaiting {
			return view, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return view, nil
		}
	}
}

// CancelLogin ends the attempt under way, and waits until it has ended: whoever begins the next must not get this one.
// Without one it does nothing.
func (h house) CancelLogin(ctx context.Context, name string) error {
	if _, _, err := h.linker(name); err != nil {
		return err
	}
	h.g.logins.mu.Lock()
	l := h.g.logins.list[name]
	h.g.logins.mu.Unlock()
	if l == nil {
		return nil
	}
	l.cancel()
	select {
	case <-l.over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Logout unlinks a channel. Its account may be linked to another channel then.
func (h house) Logout(ctx context.Context, name string) error {
	l, linker, err := h.linker(name)
	if err != nil {
		return err
	}
	account := l.account()
	if err := linker.Logout(ctx); err != nil {
		var e *channels.Error
		if errors.As(err, &e) {
			return workspace.Say(err, "%s cannot be logged out: %v.", name, e.Err)
		}
		return err
	}
	h.g.lines.disown(l, account)
	l.log.Info("the channel was logged out")
	return nil
}
