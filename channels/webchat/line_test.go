package webchat

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"parley/channels"
	"parley/channels/channeltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// taking is an intake that takes everything.
type taking struct{ channels.Intake }

func (taking) Receive(context.Context, ...channels.Inbound) error { return nil }
func (taking) Report(channels.Status)                             {}

// flooding is a desk whose sessions never stop.
type flooding struct{ *fakeDesk }

func (flooding) Follow(ctx context.Context, _ Person, f Follow, put Put) error {
	if f.Key != "flood" {
		return errors.New("no such session")
	}
	for ctx.Err() == nil {
		if err := put(map[string]string{"type": "event", "text": strings.Repeat("x", 64<<10)}); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// open serves a channel and dials it.
func open(t *testing.T, o Options) (*Channel, *websocket.Conn) {
	t.Helper()
	c := New(o)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx, taking{}) }()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.Serve(w, r, Person{ID: "ana"}, func() error { return nil })
	}))
	tr := &http.Transport{DisableKeepAlives: true}
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		server.Close()
		tr.CloseIdleConnections()
	})
	late, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		ws, _, err := websocket.Dial(late, strings.Replace(server.URL, "http", "ws", 1), &websocket.DialOptions{HTTPClient: &http.Client{Transport: tr}})
		if err == nil {
			ws.SetReadLimit(-1)
			t.Cleanup(func() { _ = ws.CloseNow() }) // it may have ended
			return c, ws
		}
		if !channels.Sleep(late, time.Millisecond) { // Run has not begun
			t.Fatal(err)
		}
	}
}

// next reads frames until one has the type.
func next(t *testing.T, ws *websocket.Conn, kind string) (f map[string]any, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		_, data, err := ws.Read(ctx)
		if err != nil {
			return nil, err
		}
		f = nil
		if err := json.Unmarshal(data, &f); err != nil {
			t.Fatal(err)
		}
		if f["type"] == kind {
			return f, nil
		}
	}
}

// R07: what a page does not read is bounded; one that leaves no room is dropped, told if it reads again, and nobody waits
// for it.
func TestR07_PageThatDoesNotReadIsDroppedAndTold(t *testing.T) {
	t.Parallel()
	c, ws := open(t, Options{Desk: flooding{newFakeDesk()}, SlowAfter: 50 * time.Millisecond})
	if err := ws.Write(t.Context(), websocket.MessageText, []byte(`{"type":"follow","key":"flood"}`)); err != nil {
		t.Fatal(err)
	}
	noReaders(t, c) // it looks away for longer than it may
	_, err := next(t, ws, "slow")
	if err == nil {
		_, err = next(t, ws, "nothing more")
	}
	if code := websocket.CloseStatus(err); code != websocket.StatusTryAgainLater {
		t.Errorf("it ends with %d: %v", code, err)
	}
}

// A page that answers pings stays; one that has gone is noticed.
func TestPageThatIsGoneIsNoticed(t *testing.T) {
	t.Parallel()
	c, ws := open(t, Options{Desk: newFakeDesk(), PingEvery: 5 * time.Millisecond})
	if _, err := next(t, ws, "hello"); err != nil {
		t.Fatal(err)
	}
	go func() { // answers pings until the line is cut
		_, _ = next(t, ws, "nothing")
	}()
	if !channels.Sleep(t.Context(), 50*time.Millisecond) {
		t.Fatal("interrupted")
	}
	if n := len(c.readers(channels.Address{Account: "ana"})); n != 1 {
		t.Fatalf("a page that answers is dropped: %d", n)
	}
	_ = ws.CloseNow()
	noReaders(t, c)
}

// noReaders waits until no line of Ana's goes on.
func noReaders(t *testing.T, c *Channel) {
	t.Helper()
	late := time.NewTimer(20 * time.Second)
	defer late.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for len(c.readers(channels.Address{Account: "ana"})) > 0 {
		select {
		case <-tick.C:
		case <-late.C:
			t.Fatal("the line goes on")
		}
	}
}

// The caps of one line hold: too large a frame ends it, too many sessions are refused.
func TestR07_LineHasCaps(t *testing.T) {
	t.Parallel()
	_, ws := open(t, Options{Desk: newFakeDesk()})
	for i := range maxFollows + 1 {
		data, err := json.Marshal(frame{Type: "follow", Key: strings.Repeat("k", i+1)})
		if err == nil {
			err = ws.Write(t.Context(), websocket.MessageText, data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if f, err := next(t, ws, "unfollowed"); err != nil || len(f["key"].(string)) != maxFollows+1 {
		t.Fatalf("%v, %v", f, err)
	}
	if err := ws.Write(t.Context(), websocket.MessageText, make([]byte, maxFrame+1)); err != nil {
		t.Fatal(err)
	}
	_, err := next(t, ws, "nothing")
	if code := websocket.CloseStatus(err); code != websocket.StatusMessageTooBig {
		t.Errorf("it ends with %d: %v", code, err)
	}
}

// Whatever a page sends is journalled once, refused, or passed over; it never ends the line's work, and the same frame is
// the same event.
func FuzzFrame(f *testing.F) {
	for _, s := range []string{`{"type":"message","id":"1","text":"hello"}`, `{"type":"edit","id":"2","target":"1","text":"x"}`, `{"type":"press","id":"3","target":"p","text":"v"}`,
		`{"type":"message","id":"4","text":"/stop@other x","files":[{"ref":"f0"}],"at":1700000000000}`, `{"type":"follow","key":"k","after":-1}`, `{"type":"got","id":"x","problem":"busy","wait":1e308}`,
		`{`, `[]`, `null`, `{"type":5}`, `{"type":"message","id":"\u0000","text":"\ud800"}`, `{"type":"delete","id":"5","target":"1"}`, "\xff\xfe"} {
		f.Add([]byte(s))
	}
	desk := newFakeDesk()
	desk.upload(channeltest.File{Kind: "file", Name: "n", Data: []byte("x")})
	now := time.UnixMilli(1_700_000_000_000)
	c := New(Options{Desk: desk, Now: func() time.Time { return now }})
	f.Fuzz(func(t *testing.T, data []byte) {
		l := &line{c: c, who: Person{ID: "ana", Name: "Ana"}}
		fr, ok := parse(data)
		if !ok {
			fr = frame{Type: unreadable, Text: string(data[:min(len(data), maxRaw)])}
		}
		if fr.Type == "got" {
			if e := fr.refusal(); e.After < 0 || e.After > time.Hour {
				t.Fatalf("a page may hold posts for %v", e.After)
			}
		}
		in, err := l.inbound(fr)
		again, err2 := l.inbound(fr)
		if (err == nil) != (err2 == nil) {
			t.Fatalf("%v, then %v", err, err2)
		}
		if err != nil {
			return
		}
		a, _ := json.Marshal(in)
		b, _ := json.Marshal(again)
		if string(a) != string(b) {
			t.Fatalf("%s, then %s", a, b)
		}
		switch {
		case in.Key == "" || len(in.Key) > maxID || len(in.Text) > maxText || len(in.Data) > maxRaw || len(in.Attachments) > maxFiles:
			t.Fatalf("too much, or nothing to know it by: %+v", in)
		case in.From.User != "ana" || in.To.Account != "ana" || in.To.Network != Network || in.To.Kind != channels.DM:
			t.Fatalf("a page speaks for somebody else: %+v", in)
		case in.Kind != channels.KindUnparsed && in.ID == "":
			t.Fatalf("no id: %+v", in)
		case in.Time.After(now.Add(time.Minute)):
			t.Fatalf("written in the future: %v", in.Time)
		}
	})
}

// The gateway says that it is ready a moment before its channels run: a page that comes then waits, and is refused only when
// the channel does not begin, or has ended.
func TestAPageWaitsForTheChannelToBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		c := New(Options{})
		early := &line{who: Person{ID: "ana"}, ctx: ctx}
		if err := c.enter(early); !errors.Is(err, errStopped) {
			t.Fatalf("nothing began, and a page was let in: %v", err)
		}
		entered := make(chan error, 1)
		go func() { entered <- c.enter(early) }()
		synctest.Wait()
		select {
		case err := <-entered:
			t.Fatalf("a page did not wait: %v", err)
		default:
		}
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx, taking{}) }()
		if err := <-entered; err != nil {
			t.Errorf("a page that waited: %v", err)
		}
		c.leave(early)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		began := time.Now()
		if err := c.enter(&line{who: Person{ID: "ana"}, ctx: t.Context()}); !errors.Is(err, errStopped) || time.Since(began) > 0 {
			t.Errorf("after the end: %v after %s", err, time.Since(began))
		}
	})
}
