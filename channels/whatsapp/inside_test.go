package whatsapp

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.mau.fi/whatsmeow/proto/waAdv"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"parley/channels"
)

type now struct{}

func (now) Now() time.Time { return time.Now() }

// offline is a session of a stored device that was never connected.
func offline(t *testing.T) (*session, *keep) {
	t.Helper()
	c, err := New("wa", Options{}, channels.Deps{Log: slog.New(slog.DiscardHandler), Clock: now{}, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	v, err := c.keep.acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.keep.release)
	dev := v.container.NewDevice()
	me := types.NewJID("4915112340000", types.DefaultUserServer)
	me.Device = 3
	dev.ID, dev.LID = &me, types.NewJID("180000000000001", types.HiddenUserServer)
	dev.Account = &waAdv.ADVSignedDeviceIdentity{Details: []byte("d"), AccountSignature: make([]byte, 64), AccountSignatureKey: make([]byte, 32), DeviceSignature: make([]byte, 64)}
	if err := dev.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := c.newSession(v, dev, &watch{in: deafIntake{}})
	s.life, s.over = context.WithCancel(t.Context())
	t.Cleanup(s.over)
	return s, c.keep
}

// Who an address or a key names must not change when a number is learned later.
func TestPersonKeepsTheNameOfFirstSight(t *testing.T) {
	t.Parallel()
	s, _ := offline(t)
	lid, number := types.NewJID("190000000000033", types.HiddenUserServer), types.NewJID("4917633330003", types.DefaultUserServer)
	who := func(a, b types.JID) string {
		t.Helper()
		h, err := s.human(t.Context(), a, b)
		if err != nil {
			t.Fatal(err)
		}
		return h.user.String()
	}
	if got := who(lid, types.EmptyJID); got != lid.String() {
		t.Errorf("with the number unknown: %s", got)
	}
	for range 2 { // also for a process that begins again
		if got := who(lid, number); got != lid.String() {
			t.Errorf("after the number was learned: %s", got)
		}
		if got := who(number, lid); got != lid.String() {
			t.Errorf("by the number: %s", got)
		}
		s.v.lids = map[string]bool{}
		if err := s.v.prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	other, otherNumber := types.NewJID("190000000000044", types.HiddenUserServer), types.NewJID("4917644440004", types.DefaultUserServer)
	if got := who(other, otherNumber); got != otherNumber.String() {
		t.Errorf("with both known: %s", got)
	}
	device := otherNumber
	device.Device = 7
	if got := who(device, types.EmptyJID); got != otherNumber.String() {
		t.Errorf("from another device: %s", got)
	}
}

// What people's devices may ask for again outlives the process; it goes only to the chat that it was for, and not once it
// was deleted.
func TestSentMessagesAreKeptForThoseWhoAskAgain(t *testing.T) {
	t.Parallel()
	s, k := offline(t)
	chat, other := types.NewJID("4917633330003", types.DefaultUserServer), types.NewJID("4917644440004", types.DefaultUserServer)
	lid := types.NewJID("190000000000033", types.HiddenUserServer)
	if err := s.cli.Store.LIDs.PutLIDMapping(t.Context(), lid, chat); err != nil {
		t.Fatal(err)
	}
	if err := s.v.put(t.Context(), chat, "ID1", &waE2E.Message{Conversation: proto.String("hello")}, time.Now()); err != nil {
		t.Fatal(err)
	}
	for asker, want := range map[types.JID]bool{chat: true, lid: true, other: false} {
		if m := s.sentBefore(asker, asker, "ID1"); (m.GetConversation() == "hello") != want {
			t.Errorf("%s gets %v", asker, m)
		}
	}
	k.mu.Lock()
	v, err := reload(t, k)
	k.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	if m, _, err := v.get(t.Context(), "ID1"); err != nil || m.GetConversation() != "hello" {
		t.Errorf("after a restart: %v, %v", m, err)
	}
	if err := v.drop(t.Context(), "ID1"); err != nil {
		t.Fatal(err)
	}
	gone, err := v.dropped(t.Context(), "ID1")
	if m, _, _ := v.get(t.Context(), "ID1"); m != nil || !gone || err != nil {
		t.Errorf("after it was deleted: %v, %v, %v", m, gone, err)
	}
}

// reload closes the file and opens it again, as a new process does.
func reload(t *testing.T, k *keep) (*deviceStore, error) {
	t.Helper()
	if err := k.open.close(); err != nil {
		return nil, err
	}
	v, err := k.load(t.Context())
	if err == nil {
		k.open = v
	}
	return v, err
}

func TestReferencesAreSealed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SliceOfN(rapid.Byte(), 64, 64).Draw(t, "key")
		s, err := newSeal(key)
		if err != nil {
			t.Fatal(err)
		}
		r := ref{Path: "/" + rapid.String().Draw(t, "path"), Key: rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "media"), Size: rapid.Int64().Draw(t, "size"), Type: "WhatsApp Image Keys"}
		id, err := s.close(r)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := s.close(r)
		back, err := s.open(id)
		if err != nil || again != id || fmt.Sprintf("%+q", back.Path) != fmt.Sprintf("%+q", strings.ToValidUTF8(r.Path, "\uFFFD")) || !bytes.Equal(back.Key, r.Key) || back.Size != r.Size {
			t.Fatalf("%+v came back as %+v, %v; twice: %v", r, back, err, again == id)
		}
		at := rapid.IntRange(0, len(id)-2).Draw(t, "at") // the last letter has spare bits
		forged := id[:at] + string('A'+(id[at]+1)%26) + id[at+1:]
		if _, err := s.open(forged); err == nil && forged != id {
			t.Fatalf("a changed reference opens")
		}
	})
}

func TestLogShowsNoNumbersAndKeys(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	l := logger{log: slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	l.Warnf("message from %s failed with key %s", "4917611110001@s.whatsapp.net", "F+xhNQgWxYuKpv1TYdiHKSsaiV9Q8I9cFyfyTpPgOHc=")
	l.Sub("Recv").Debugf("<message from=4917611110001>")
	l.Debugf("%s", "4917611110001")
	if got := b.String(); strings.Contains(got, "4917611110001") || strings.Contains(got, "F+xhNQ") || !strings.Contains(got, "…001") {
		t.Errorf("logged %s", got)
	}
}

func TestOptionsAreCheckedByName(t *testing.T) {
	t.Parallel()
	o := Options{Version: "two", APIURL: "ftp://x", RootKey: "zz"}
	err := o.Validate()
	for _, name := range []string{"client_version", "api_url", "root_key"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v does not name %s", err, name)
		}
	}
	if err := (&Options{Version: "2.3000.1032642223"}).Validate(); err != nil {
		t.Error(err)
	}
	o = Options{RootKey: strings.Repeat("5a", 32)}
	if err := o.Validate(); err == nil || !strings.Contains(err.Error(), "root_key") {
		t.Errorf("another key for WhatsApp's own servers: %v", err)
	}
	if o.APIURL = "http://127.0.0.1:8081"; o.Validate() != nil {
		t.Error(o.Validate())
	}
	for id, fine := range map[string]bool{"4915123456789": true, "+4915123456789": true, "120363041234567890@g.us": true, "190000000000033@lid": true,
		"0151234567": false, "Ana": false, "4915123456789 ": false} {
		if got := (&Options{}).CheckID(id) == nil; got != fine {
			t.Errorf("%q is fine: %v", id, got)
		}
	}
	if _, err := New("../x", Options{}, channels.Deps{Log: slog.New(slog.DiscardHandler)}); err == nil {
		t.Error("a name that leads elsewhere is taken")
	}
}

func TestVersionAndNameAreToldPerChannel(t *testing.T) {
	t.Parallel()
	s, _ := offline(t)
	s.c.opt.Version = "2.3000.777"
	if err := s.c.chooseVersion(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.c.payload(s.cli.Store).GetUserAgent().GetAppVersion().GetTertiary(); got != 777 {
		t.Errorf("version %d", got)
	}
	if store.GetWAVersion().String() == "2.3000.777" {
		t.Error("the whole process tells it")
	}
	fresh := s.c.payload(s.v.container.NewDevice())
	if !strings.Contains(string(fresh.GetDevicePairingData().GetDeviceProps()), "Parley") {
		t.Error("the phone would list a device without our name")
	}
}
