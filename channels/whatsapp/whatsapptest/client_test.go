package whatsapptest_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/store/sqlstore"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
	waLog "go.mau.fi/whatsmeow/util/log"
	"google.golang.org/protobuf/proto"
	_ "modernc.org/sqlite"

	"parley/channels/whatsapp/whatsapptest"
)

func TestMain(m *testing.M) {
	whatsmeow.WACertPubKey = whatsapptest.Root()
	whatsapptest.Quiet()
	os.Exit(m.Run())
}

const (
	ana   = "4917611110001"
	ben   = "4917622220002"
	group = "120363000000000001"
)

// rig is whatsmeow itself against the fake.
type rig struct {
	t    *testing.T
	s    *whatsapptest.Server
	path string
	cli  *whatsmeow.Client
	box  *sqlstore.Container

	mu     sync.Mutex
	events []any
	stir   chan struct{}
	fail   func(any) bool // handler fails
}

func newRig(t *testing.T, linked bool) *rig {
	t.Helper()
	s := whatsapptest.Start(t, whatsapptest.Options{})
	s.AddPerson(whatsapptest.Person{Phone: ana, LID: "190000000000011", Name: "Ana", Devices: 1})
	s.AddPerson(whatsapptest.Person{Phone: ben, LID: "190000000000022", Name: "Ben", ByPhone: true})
	s.AddGroup(whatsapptest.Group{ID: group, Subject: "Friends", Members: []string{ana, ben}})
	r := &rig{t: t, s: s, path: filepath.Join(t.TempDir(), "wa.db"), stir: make(chan struct{}, 1)}
	r.open()
	if linked {
		d := r.box.NewDevice()
		if _, err := s.Link(t.Context(), d, 12); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		r.settled()
		r.stop()
		if t.Failed() {
			t.Logf("complaints: %q", s.Complaints())
		}
	})
	return r
}

func (r *rig) open() {
	r.t.Helper()
	db, err := sql.Open("sqlite", "file:"+r.path+"?_pragma=foreign_keys(1)&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(0)&_txlock=immediate")
	if err != nil {
		r.t.Fatal(err)
	}
	r.box = sqlstore.NewWithDB(db, "sqlite", waLog.Noop)
	if err := r.box.Upgrade(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

// start makes a client of the stored device, as a new process does, and connects it.
func (r *rig) start() {
	r.t.Helper()
	d, err := r.box.GetFirstDevice(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	r.cli = whatsmeow.NewClient(d, logger())
	r.cli.SynchronousAck, r.cli.EnableDecryptedEventBuffer = true, true
	h := r.s.Client()
	r.cli.SetWebsocketHTTPClient(h)
	r.cli.SetPreLoginHTTPClient(h)
	r.cli.SetMediaHTTPClient(h)
	r.cli.AddEventHandlerWithSuccessStatus(r.handle)
}

func logger() waLog.Logger {
	if os.Getenv("WALOG") != "" {
		return waLog.Stdout("wa", "DEBUG", false)
	}
	return waLog.Noop
}

func (r *rig) connect() {
	r.t.Helper()
	r.start()
	if err := r.cli.Connect(); err != nil {
		r.t.Fatal(err)
	}
	wait(r, "connected", func(*events.Connected) bool { return true })
}

// settled gives the client a moment to acknowledge all that it got: whatsmeow's Disconnect beside a send is a race of its own.
func (r *rig) settled() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = r.s.Wait(ctx, func() bool { return r.s.Connected() == 0 || len(r.s.Waiting()) == 0 }) // what is left was left on purpose
}

// failing has the handler fail for these events.
func (r *rig) failing(f func(any) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail = f
}

func (r *rig) stop() {
	if r.cli != nil {
		r.cli.Disconnect()
		r.cli = nil
	}
}

func (r *rig) handle(e any) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail != nil && r.fail(e) {
		return false
	}
	r.events = append(r.events, e)
	select {
	case r.stir <- struct{}{}:
	default:
	}
	return true
}

// wait waits for an event of the type that matches, and forgets it.
func wait[E any](r *rig, what string, match func(E) bool) E {
	r.t.Helper()
	late := time.NewTimer(20 * time.Second)
	defer late.Stop()
	for {
		r.mu.Lock()
		for i, e := range r.events {
			if one, ok := e.(E); ok && match(one) {
				r.events = append(r.events[:i], r.events[i+1:]...)
				r.mu.Unlock()
				return one
			}
		}
		r.mu.Unlock()
		select {
		case <-r.stir:
		case <-late.C:
			r.mu.Lock()
			defer r.mu.Unlock()
			var seen []string
			for _, e := range r.events {
				seen = append(seen, fmt.Sprintf("%T", e))
			}
			r.t.Fatalf("waited for %s; there was %v; complaints %q", what, seen, r.s.Complaints())
		}
	}
}

func text(m *waE2E.Message) string {
	if m.GetConversation() != "" {
		return m.GetConversation()
	}
	return m.GetExtendedTextMessage().GetText()
}

// message waits for a message with the text.
func (r *rig) message(want string) *events.Message {
	r.t.Helper()
	return wait(r, "the message "+want, func(m *events.Message) bool { return text(m.Message) == want })
}

func (r *rig) sees(what string, cond func() bool) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 20*time.Second)
	defer cancel()
	if err := r.s.Wait(ctx, cond); err != nil {
		r.t.Fatalf("waited for %s: %v; complaints %q", what, err, r.s.Complaints())
	}
}

func (r *rig) clean() {
	r.t.Helper()
	if c := r.s.Complaints(); len(c) > 0 {
		r.t.Errorf("the fake complains: %q", c)
	}
}

func pn(phone string) types.JID { return types.NewJID(phone, types.DefaultUserServer) }

func groupJID() types.JID { return types.NewJID(group, types.GroupServer) }

func (r *rig) send(to types.JID, s string) string {
	r.t.Helper()
	resp, err := r.cli.SendMessage(r.t.Context(), to, &waE2E.Message{Conversation: proto.String(s)})
	if err != nil {
		r.t.Fatalf("send: %v; complaints %q", err, r.s.Complaints())
	}
	return resp.ID
}
