package whatsapp

import (
	"context"
	"errors"
	"testing"

	"go.mau.fi/libsignal/ecc"
	"go.mau.fi/libsignal/keys/identity"
	"go.mau.fi/libsignal/keys/prekey"
	"go.mau.fi/libsignal/protocol"
	signal "go.mau.fi/libsignal/session"
	"go.mau.fi/libsignal/util/optional"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
)

// party is a device that writes to another by the Signal protocol.
type party struct {
	t    *testing.T
	dev  *store.Device
	peer *protocol.SignalAddress
}

func newParty(t *testing.T, user string) *party {
	t.Helper()
	s, _ := offline(t)
	dev, err := s.v.device(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &party{t: t, dev: dev, peer: types.NewJID(user, types.HiddenUserServer).SignalAddress()}
}

func (p *party) cipher() (*signal.Builder, *signal.Cipher) {
	b := signal.NewBuilderFromSignal(p.dev, p.peer, store.SignalProtobufSerializer)
	return b, signal.NewCipher(b, p.peer)
}

// begin starts another session with a party.
func (p *party) begin(with *party) {
	p.t.Helper()
	once, err := with.dev.PreKeys.GenOnePreKey(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	signed := with.dev.SignedPreKey
	b, _ := p.cipher()
	if err := b.ProcessBundle(p.t.Context(), prekey.NewBundle(with.dev.RegistrationID, 0, optional.NewOptionalUint32(once.KeyID), signed.KeyID,
		ecc.NewDjbECPublicKey(*once.Pub), ecc.NewDjbECPublicKey(*signed.Pub), *signed.Signature, identity.NewKey(ecc.NewDjbECPublicKey(*with.dev.IdentityKey.Pub)))); err != nil {
		p.t.Fatal(err)
	}
}

func (p *party) write(text string) protocol.CiphertextMessage {
	p.t.Helper()
	_, c := p.cipher()
	m, err := c.Encrypt(p.t.Context(), []byte(text))
	if err != nil {
		p.t.Fatal(err)
	}
	return m
}

func (p *party) read(m protocol.CiphertextMessage, want string) {
	p.t.Helper()
	_, c := p.cipher()
	pb := store.SignalProtobufSerializer
	var plain []byte
	err := p.dev.EventBuffer.DoDecryptionTxn(p.t.Context(), func(ctx context.Context) error {
		if m.Type() == protocol.PREKEY_TYPE {
			first, err := protocol.NewPreKeySignalMessageFromBytes(m.Serialize(), pb.PreKeySignalMessage, pb.SignalMessage)
			if err == nil {
				plain, err = c.DecryptMessage(ctx, first)
			}
			return err
		}
		next, err := protocol.NewSignalMessageFromBytes(m.Serialize(), pb.SignalMessage)
		if err == nil {
			plain, err = c.Decrypt(ctx, next)
		}
		return err
	})
	if err != nil || string(plain) != want {
		p.t.Fatalf("read %q, %v, want %q", plain, err, want)
	}
}

// meanwhile does something once, between the next read of a session and what is written upon it.
type meanwhile struct {
	store.SessionStore
	do func()
}

func (m *meanwhile) GetSession(ctx context.Context, address string) ([]byte, error) {
	got, err := m.SessionStore.GetSession(ctx, address)
	if do := m.do; do != nil {
		m.do = nil
		do()
	}
	return got, err
}

func (p *party) meanwhile(do func()) { p.dev.Sessions = &meanwhile{p.dev.Sessions, do} }

// A message by an older session must leave the newer one as it was, or nothing that comes by that is read any more.
func TestLateMessageLeavesTheNewSessionAlone(t *testing.T) {
	t.Parallel()
	ana, us := newParty(t, "180000000000001"), newParty(t, "190000000000011")
	ana.begin(us)
	us.read(ana.write("first"), "first")
	ana.read(us.write("answer"), "answer")
	late := ana.write("late")
	us.begin(ana) // she asked for a message again
	ana.read(us.write("by the new one"), "by the new one")
	us.read(late, "late")
	us.read(ana.write("by the new one, too"), "by the new one, too")
	ana.read(us.write("still"), "still")
	us.read(ana.write("and on"), "and on")
}

// What arrives while a message is encrypted moves the session on: the send begins again.
func TestSendStandsOnWhatItRead(t *testing.T) {
	t.Parallel()
	ana, us := newParty(t, "180000000000001"), newParty(t, "190000000000011")
	ana.begin(us)
	us.read(ana.write("first"), "first")
	to := us.peer.String()
	send := func(copies int, meanwhile func()) error {
		_, ctx, err := us.dev.WithCachedSessions(t.Context(), []string{to})
		if err != nil {
			t.Fatal(err)
		}
		_, c := us.cipher()
		var sent []protocol.CiphertextMessage
		for range copies {
			m, err := c.Encrypt(ctx, []byte("hello"))
			if err != nil {
				t.Fatal(err)
			}
			sent = append(sent, m)
		}
		meanwhile()
		if err := us.dev.PutCachedSessions(ctx); err != nil {
			return err
		}
		for _, m := range sent {
			ana.read(m, "hello")
		}
		return nil
	}
	if err := send(1, func() {}); err != nil {
		t.Error(err)
	}
	if err := send(1, func() { us.read(ana.write("meanwhile"), "meanwhile") }); !errors.Is(err, errMoved) {
		t.Errorf("a send over a session that was moved by what arrived: %v", err)
	}
	if err := send(1, func() { ana.read(us.write("again"), "again") }); !errors.Is(err, errMoved) {
		t.Errorf("a send over a session that was moved by what was sent again: %v", err)
	}
	if err := send(2, func() {}); err != nil {
		t.Errorf("to a device that is listed twice: %v", err)
	}
	us.read(ana.write("after it"), "after it")
}

// What a device asks for again is encrypted beside all that is sent and arrives: none of it is written over.
func TestMessageAskedForAgainStandsOnWhatItRead(t *testing.T) {
	t.Parallel()
	ana, us := newParty(t, "180000000000001"), newParty(t, "190000000000011")
	ana.begin(us)
	us.read(ana.write("first"), "first")
	ana.read(us.write("answer"), "answer")
	for name, do := range map[string]func(){
		"a message that was sent":     func() { ana.read(us.write("sent"), "sent") },
		"a message that arrived":      func() { us.read(ana.write("arrived"), "arrived") },
		"a session that was begun":    func() { us.begin(ana) },
		"one by which it was written": func() { us.begin(ana); ana.read(us.write("by the new one"), "by the new one") },
	} {
		us.meanwhile(do)
		_, c := us.cipher()
		if _, err := c.Encrypt(t.Context(), []byte("again")); !errors.Is(err, errMoved) {
			t.Errorf("encrypted over %s: %v", name, err)
		}
		ana.read(us.write("again"), "again")
		us.read(ana.write("after "+name), "after "+name)
	}
	us.meanwhile(func() { us.begin(ana); ana.read(us.write("by another's session"), "by another's session") })
	us.begin(ana)
	us.read(ana.write("by that, too"), "by that, too")
	ana.read(us.write("still"), "still")
	us.read(ana.write("and on"), "and on")
}

// An address keeps its device where the LID is read from the database, as it is once after each start.
func TestAddressKeepsItsDeviceAfterAStart(t *testing.T) {
	t.Parallel()
	s, k := offline(t)
	number, lid := types.NewJID("4917633330003", types.DefaultUserServer), types.NewJID("190000000000033", types.HiddenUserServer)
	if err := s.cli.Store.LIDs.PutLIDMapping(t.Context(), lid, number); err != nil {
		t.Fatal(err)
	}
	k.mu.Lock()
	v, err := reload(t, k)
	k.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	dev, err := v.device(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	linked := number
	linked.Device = 7
	for range 2 { // from the database, and from the cache
		got, err := dev.LIDs.GetManyLIDsForPNs(t.Context(), []types.JID{number, linked})
		if err != nil || len(got) != 2 {
			t.Fatalf("%v, %v", got, err)
		}
		for from, to := range got {
			if to.User != lid.User || to.Device != from.Device {
				t.Errorf("%s is %s", from, to)
			}
		}
	}
}
