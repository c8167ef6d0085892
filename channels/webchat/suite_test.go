package webchat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/channels"
	"parley/channels/channeltest"
)

const secret = "cookie-canary-7f3a9c"

// The adapter passes the suite of every network; what the network is here are pages in browsers.
func TestSuite(t *testing.T) { channeltest.Run(t, harness{}) }

type harness struct{}

func (harness) Network() channels.Network { return Network }

func (harness) World(t channeltest.T) channeltest.World {
	w := &world{t: t, desk: newFakeDesk(), changed: make(chan struct{}), pages: map[channeltest.Who]*browser{}}
	w.http = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	w.ctx, w.cancel = context.WithCancel(t.Context())
	w.server = httptest.NewServer(http.HandlerFunc(w.serve))
	for _, who := range []channeltest.Who{channeltest.Ana, channeltest.Ben} {
		b := &browser{w: w, who: who, done: make(chan struct{}), stored: map[string]bool{}, typing: map[string]int{}}
		w.pages[who] = b
		go b.live(w.ctx) // Close waits for it
	}
	return w
}

func (w *world) serve(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	ch := w.ch
	w.serving++
	w.mu.Unlock()
	defer w.change(func() { w.serving-- })
	if ch == nil {
		http.Error(rw, "not yet", http.StatusServiceUnavailable)
		return
	}
	ch.Serve(rw, r, Person{ID: r.URL.Query().Get("who"), Role: "owner"}, func() error { return nil })
}

// change does something to the world and wakes who waits for it.
func (w *world) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
	close(w.changed)
	w.changed = make(chan struct{})
}

// Wait implements channeltest.World.
func (w *world) Wait(ctx context.Context, cond func() bool) error {
	for {
		w.mu.Lock()
		changed := w.changed
		w.mu.Unlock()
		if cond() {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// mayDial waits until there is somebody to dial.
func (w *world) mayDial(ctx context.Context) bool {
	return w.Wait(ctx, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return !w.down && !w.frozen && !w.stopped && w.ch != nil
	}) == nil
}

func (w *world) Open(d channels.Deps) (channels.Channel, error) {
	ch := New(Options{Desk: w.desk, Log: d.Log, Now: d.Clock.Now, AckWithin: time.Second})
	w.change(func() { w.ch, w.stopped = ch, false })
	return awaited{ch, w}, nil
}

// awaited asks whether anybody reads before it sends, as the core does.
type awaited struct {
	*Channel
	w *world
}

func (a awaited) Send(ctx context.Context, p channels.Post) (channels.MessageID, error) {
	if err := a.wait(ctx, p.To); err != nil {
		return "", err
	}
	return a.Channel.Send(ctx, p)
}

func (a awaited) ShowTyping(ctx context.Context, to channels.Address) error {
	if err := a.wait(ctx, to); err != nil {
		return err
	}
	return a.Channel.ShowTyping(ctx, to)
}

func (a awaited) wait(ctx context.Context, to channels.Address) error {
	a.w.mu.Lock()
	down := a.w.down
	a.w.mu.Unlock()
	if down { // the check wants to see what comes of that
		return nil
	}
	return a.Await(ctx, to)
}

func (w *world) Close() {
	w.cancel()
	w.server.CloseClientConnections()
	for _, b := range w.pages {
		<-b.done
	}
	w.server.Close()
}

func (w *world) Account() channels.AccountID { return "" }
func (w *world) Secrets() []string           { return []string{secret} }
func (w *world) Broken() string              { return "" }
func (w *world) Menu() []channels.MenuItem   { return nil }

func (w *world) Reaction(channeltest.Place, channels.MessageID) string { return "" }

func (w *world) User(who channeltest.Who) channels.UserID { return channels.UserID(who) }

// owner is whose conversation a place is; here each is one person's.
func owner(p channeltest.Place) channeltest.Who {
	if p == channeltest.OtherDM {
		return channeltest.Ben
	}
	return channeltest.Ana
}

func key(p channeltest.Place) string {
	return "agent:a:local:" + strings.ReplaceAll(string(p), " ", "-")
}

func (w *world) Address(p channeltest.Place) channels.Address {
	return channels.Address{Network: Network, Account: channels.AccountID(owner(p)), Kind: channels.DM, Peer: channels.PeerID(key(p))}
}

// Act implements channeltest.World.
func (w *world) Act(e channeltest.Event) (channels.MessageID, bool) {
	switch e.Do {
	case channeltest.Write, channeltest.Fence:
		return w.say(e, "message", e.Text), true
	case channeltest.EditIt:
		return w.say(e, "edit", e.Text), true
	case channeltest.DeleteIt:
		return w.say(e, "delete", ""), true
	case channeltest.PressOn:
		return w.say(e, "press", e.Text), true
	case channeltest.Command:
		if name, rest, _ := strings.Cut(e.Text, " "); e.Mention {
			e.Text = strings.TrimSpace(name + "@another " + rest)
		}
		return w.say(e, "message", e.Text), true
	case channeltest.Garbage:
		w.queue(owner(e.Place), outgoing{"", []byte(`{"type": "message", "id": `)})
		return "", true
	}
	return "", w.act(e)
}

// act is what happens to the network.
func (w *world) act(e channeltest.Event) bool {
	switch e.Do {
	case channeltest.Flood:
		w.change(func() { w.how, w.wait = "flood", e.After })
	case channeltest.Trouble:
		w.change(func() { w.how = "trouble" })
	case channeltest.Swallow:
		w.change(func() { w.how = "swallow" })
	case channeltest.BadAnswer:
		w.change(func() { w.how = "bad" })
	case channeltest.Block:
		w.desk.change(func() { w.desk.gone[key(e.Place)] = true })
	case channeltest.Revoke:
		w.desk.change(func() { w.desk.shut = true })
	case channeltest.Freeze:
		w.change(func() { w.frozen = true })
	case channeltest.Down:
		w.change(func() { w.down = true })
		w.cut()
	case channeltest.Up:
		w.change(func() { w.down = false })
	case channeltest.Cut:
		w.cut()
	default:
		return false
	}
	return true
}

// cut drops every connection and returns when the gateway has noticed.
func (w *world) cut() {
	w.mu.Lock()
	var all []*browser
	for _, b := range w.pages {
		if b.ws != nil {
			all = append(all, b)
		}
	}
	lines := make([]interface{ CloseNow() error }, 0, len(all))
	for _, b := range all {
		lines = append(lines, b.ws)
	}
	w.mu.Unlock()
	for _, ws := range lines {
		_ = ws.CloseNow() // it may have ended
	}
	if err := w.Wait(w.ctx, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return !w.down || w.serving == 0 || w.ch == nil
	}); err != nil {
		w.t.Errorf("the gateway does not notice that its pages are gone: %v", err)
	}
}

// say has a person's page say something until it is stored.
func (w *world) say(e channeltest.Event, kind, text string) channels.MessageID {
	who := e.Who
	if who == "" {
		who = owner(e.Place)
	}
	w.mu.Lock()
	w.ids++
	id := fmt.Sprint("c", w.ids)
	w.mu.Unlock()
	f := frame{Type: kind, ID: id, Session: key(e.Place), Text: text, Target: string(e.Target), At: time.Now().UnixMilli()}
	for _, file := range e.Files {
		f.Files = append(f.Files, fileRef{Ref: w.desk.upload(file)})
	}
	data, err := json.Marshal(f)
	if err != nil {
		panic(err)
	}
	w.queue(who, outgoing{id, data})
	return channels.MessageID(id)
}

func (w *world) queue(who channeltest.Who, o outgoing) {
	b := w.pages[who]
	b.saying.Lock()
	defer b.saying.Unlock()
	w.mu.Lock()
	b.pending = append(b.pending, o)
	ws := b.ws
	w.mu.Unlock()
	if ws != nil {
		b.write(w.ctx, ws, o.data)
	}
}

func (w *world) Sent(p channeltest.Place) []channeltest.Seen {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []channeltest.Seen
	for _, f := range w.pages[owner(p)].shown {
		if f.Session != key(p) {
			continue
		}
		s := channeltest.Seen{ID: channels.MessageID(f.ID), Text: f.Text, ReplyTo: channels.MessageID(f.ReplyTo), Actions: f.Actions}
		for _, file := range f.Files {
			s.Files = append(s.Files, channeltest.File{Name: file.Name, MIME: file.MIME, Data: w.desk.bytes(file.Ref)})
		}
		list = append(list, s)
	}
	return list
}

func (w *world) Typing(p channeltest.Place) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pages[owner(p)].typing[key(p)]
}

func (w *world) Acked(p channeltest.Place, id channels.MessageID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pages[owner(p)].stored[string(id)]
}

// fakeDesk is the gateway behind the line.
type fakeDesk struct {
	mu    sync.Mutex
	gone  map[string]bool
	shut  bool
	files map[string]channeltest.File
}

func newFakeDesk() *fakeDesk {
	return &fakeDesk{gone: map[string]bool{}, files: map[string]channeltest.File{}}
}

func (d *fakeDesk) change(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

func (d *fakeDesk) upload(f channeltest.File) (ref string) {
	d.change(func() {
		ref = fmt.Sprint("f", len(d.files))
		d.files[ref] = f
	})
	return ref
}

func (d *fakeDesk) bytes(ref string) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.files[ref].Data
}

func (d *fakeDesk) Follow(ctx context.Context, _ Person, _ Follow, _ Put) error {
	<-ctx.Done()
	return ctx.Err()
}

func (d *fakeDesk) Watch(ctx context.Context, _ Person, _ Put) error {
	<-ctx.Done()
	return ctx.Err()
}

func (d *fakeDesk) Place(_ Person, _, session string) (channels.PeerID, error) {
	if session == "" {
		session = key(channeltest.DM)
	}
	return channels.PeerID(session), nil
}

func (d *fakeDesk) Stored(Person, channels.MessageID) (Stored, error) {
	return Stored{InputID: "i", Session: "s"}, nil
}

func (d *fakeDesk) File(_ Person, ref string) (channels.Attachment, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f, ok := d.files[ref]
	if !ok {
		return channels.Attachment{}, errors.New("no such file")
	}
	return channels.Attachment{ID: ref, Kind: f.Kind, Name: f.Name, MIME: f.MIME, Size: int64(len(f.Data))}, nil
}

func (d *fakeDesk) Open(_ context.Context, a channels.Attachment) (io.ReadCloser, error) {
	d.mu.Lock()
	f, ok := d.files[a.ID]
	d.mu.Unlock()
	if !ok {
		return nil, os.ErrNotExist
	}
	data := f.Data
	if int64(len(data)) > a.Size {
		return nil, channels.ErrTooLarge
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

func (d *fakeDesk) Offer(_ Person, f channels.File) (string, error) {
	data, err := channeltest.Contents(context.Background(), f)
	if err != nil {
		return "", err
	}
	return d.upload(channeltest.File{Name: f.Name, MIME: f.MIME, Data: data}), nil
}

func (d *fakeDesk) Takes(to channels.Address) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.shut:
		return ErrShut
	case d.gone[string(to.Peer)]:
		return ErrGone
	}
	return nil
}

func (d *fakeDesk) Problem(err error) json.RawMessage {
	status := http.StatusServiceUnavailable
	if slices.ContainsFunc([]error{ErrUnreadable, ErrNoID, ErrEmpty, ErrTooLong, ErrTooMany}, func(e error) bool { return errors.Is(err, e) }) {
		status = http.StatusBadRequest
	}
	return json.RawMessage(fmt.Sprintf(`{"status":%d}`, status))
}
