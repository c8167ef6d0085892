package whatsapptest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"go.mau.fi/libsignal/ecc"
	"go.mau.fi/libsignal/groups"
	group "go.mau.fi/libsignal/groups/state/record"
	"go.mau.fi/libsignal/keys/identity"
	"go.mau.fi/libsignal/keys/prekey"
	"go.mau.fi/libsignal/protocol"
	"go.mau.fi/libsignal/session"
	"go.mau.fi/libsignal/signalerror"
	"go.mau.fi/libsignal/state/record"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/util/keys"
)

// signalStore is what one simulated device knows of the Signal protocol. It satisfies libsignal's store.SignalProtocol.
// Under the server's lock.
type signalStore struct {
	identity *keys.KeyPair
	regID    uint32
	signed   *keys.PreKey
	nextKey  uint32

	sessions   map[string][]byte
	identities map[string][32]byte
	preKeys    map[uint32]*keys.PreKey
	senderKeys map[string][]byte
}

func newSignalStore(id *keys.KeyPair) *signalStore {
	return &signalStore{
		identity: id, signed: id.CreateSignedPreKey(1), regID: 1 + rand.Uint32N(16380), nextKey: 1,
		sessions: map[string][]byte{}, identities: map[string][32]byte{}, preKeys: map[uint32]*keys.PreKey{}, senderKeys: map[string][]byte{},
	}
}

var errNotKept = errors.New("the fake does not keep that")

func (v *signalStore) GetIdentityKeyPair() *identity.KeyPair {
	return identity.NewKeyPair(identity.NewKey(ecc.NewDjbECPublicKey(*v.identity.Pub)), ecc.NewDjbECPrivateKey(*v.identity.Priv))
}

func (v *signalStore) GetLocalRegistrationID() uint32 { return v.regID }

func (v *signalStore) SaveIdentity(_ context.Context, a *protocol.SignalAddress, k *identity.Key) error {
	v.identities[a.String()] = k.PublicKey().PublicKey()
	return nil
}

func (v *signalStore) IsTrustedIdentity(_ context.Context, a *protocol.SignalAddress, k *identity.Key) (bool, error) {
	known, ok := v.identities[a.String()]
	return !ok || known == k.PublicKey().PublicKey(), nil
}

func (v *signalStore) LoadPreKey(_ context.Context, id uint32) (*record.PreKey, error) {
	k := v.preKeys[id]
	if k == nil {
		return nil, nil
	}
	return record.NewPreKey(k.KeyID, ecc.NewECKeyPair(ecc.NewDjbECPublicKey(*k.Pub), ecc.NewDjbECPrivateKey(*k.Priv)), nil), nil
}

func (v *signalStore) RemovePreKey(_ context.Context, id uint32) error {
	delete(v.preKeys, id)
	return nil
}

func (v *signalStore) ContainsPreKey(_ context.Context, id uint32) (bool, error) {
	return v.preKeys[id] != nil, nil
}

func (v *signalStore) StorePreKey(context.Context, uint32, *record.PreKey) error { return errNotKept }

func (v *signalStore) LoadSession(_ context.Context, a *protocol.SignalAddress) (*record.Session, error) {
	pb := store.SignalProtobufSerializer
	raw := v.sessions[a.String()]
	if raw == nil {
		return record.NewSession(pb.Session, pb.State), nil
	}
	return record.NewSessionFromBytes(raw, pb.Session, pb.State)
}

func (v *signalStore) StoreSession(_ context.Context, a *protocol.SignalAddress, r *record.Session) error {
	v.sessions[a.String()] = r.Serialize()
	return nil
}

func (v *signalStore) ContainsSession(_ context.Context, a *protocol.SignalAddress) (bool, error) {
	return v.sessions[a.String()] != nil, nil
}

func (v *signalStore) DeleteSession(_ context.Context, a *protocol.SignalAddress) error {
	delete(v.sessions, a.String())
	return nil
}

func (v *signalStore) GetSubDeviceSessions(context.Context, string) ([]uint32, error) {
	return nil, errNotKept
}
func (v *signalStore) DeleteAllSessions(context.Context) error { return errNotKept }

func (v *signalStore) LoadSignedPreKey(_ context.Context, id uint32) (*record.SignedPreKey, error) {
	if id != v.signed.KeyID {
		return nil, nil
	}
	pair := ecc.NewECKeyPair(ecc.NewDjbECPublicKey(*v.signed.Pub), ecc.NewDjbECPrivateKey(*v.signed.Priv))
	return record.NewSignedPreKey(id, 0, pair, *v.signed.Signature, nil), nil
}

func (v *signalStore) LoadSignedPreKeys(context.Context) ([]*record.SignedPreKey, error) {
	return nil, errNotKept
}
func (v *signalStore) StoreSignedPreKey(context.Context, uint32, *record.SignedPreKey) error {
	return errNotKept
}
func (v *signalStore) ContainsSignedPreKey(_ context.Context, id uint32) (bool, error) {
	return id == v.signed.KeyID, nil
}
func (v *signalStore) RemoveSignedPreKey(context.Context, uint32) error { return errNotKept }

func (v *signalStore) StoreSenderKey(_ context.Context, n *protocol.SenderKeyName, r *group.SenderKey) error {
	v.senderKeys[n.GroupID()+" "+n.Sender().String()] = r.Serialize()
	return nil
}

func (v *signalStore) LoadSenderKey(_ context.Context, n *protocol.SenderKeyName) (*group.SenderKey, error) {
	pb := store.SignalProtobufSerializer
	raw := v.senderKeys[n.GroupID()+" "+n.Sender().String()]
	if raw == nil {
		return group.NewSenderKey(pb.SenderKeyRecord, pb.SenderKeyState), nil
	}
	return group.NewSenderKeyFromBytes(raw, pb.SenderKeyRecord, pb.SenderKeyState)
}

// oneTimeKey makes a prekey when somebody asks for it: a stock of them would cost most of a test's time.
func (v *signalStore) oneTimeKey() *keys.PreKey {
	k := keys.NewPreKey(v.nextKey)
	v.nextKey++
	v.preKeys[k.KeyID] = k
	return k
}

func (v *signalStore) cipher(to *protocol.SignalAddress) (*session.Builder, *session.Cipher) {
	b := session.NewBuilderFromSignal(v, to, store.SignalProtobufSerializer)
	return b, session.NewCipher(b, to)
}

// seal encrypts for one device; bundle is used when there is no session yet, or always when fresh.
func (v *signalStore) seal(to *protocol.SignalAddress, plain []byte, fresh bool, bundle func() (*prekey.Bundle, error)) (kind string, sealed []byte, err error) {
	ctx := context.Background()
	b, c := v.cipher(to)
	if fresh || v.sessions[to.String()] == nil {
		keys, err := bundle()
		if err != nil {
			return "", nil, err
		}
		delete(v.identities, to.String()) // a phone accepts a new identity and shows a notice
		if err := b.ProcessBundle(ctx, keys); err != nil {
			return "", nil, fmt.Errorf("start a session with %s: %w", to, err)
		}
	}
	m, err := c.Encrypt(ctx, pad(plain))
	if err != nil {
		return "", nil, fmt.Errorf("encrypt for %s: %w", to, err)
	}
	if m.Type() == protocol.PREKEY_TYPE {
		return "pkmsg", m.Serialize(), nil
	}
	return "msg", m.Serialize(), nil
}

// open decrypts what one device sent.
func (v *signalStore) open(from *protocol.SignalAddress, kind string, sealed []byte) ([]byte, error) {
	ctx := context.Background()
	pb := store.SignalProtobufSerializer
	_, c := v.cipher(from)
	var plain []byte
	if kind == "pkmsg" {
		m, err := protocol.NewPreKeySignalMessageFromBytes(sealed, pb.PreKeySignalMessage, pb.SignalMessage)
		if err != nil {
			return nil, fmt.Errorf("read a prekey message: %w", err)
		}
		if known, ok := v.identities[from.String()]; ok && known != m.IdentityKey().PublicKey().PublicKey() {
			delete(v.identities, from.String()) // it was linked again
		}
		plain, err = v.tryEach(from, func() ([]byte, error) { return c.DecryptMessage(ctx, m) })
		if err != nil {
			return nil, fmt.Errorf("decrypt a prekey message: %w", err)
		}
	} else {
		m, err := protocol.NewSignalMessageFromBytes(sealed, pb.SignalMessage)
		if err != nil {
			return nil, fmt.Errorf("read a message: %w", err)
		}
		plain, err = v.tryEach(from, func() ([]byte, error) { return c.Decrypt(ctx, m) })
		if err != nil {
			return nil, fmt.Errorf("decrypt a message: %w", err)
		}
	}
	return unpad(plain)
}

// tryEach decrypts with one session after the other, each alone, as phones do: libsignal for Go leaves those moved that
// cannot read a message.
func (v *signalStore) tryEach(from *protocol.SignalAddress, open func() ([]byte, error)) ([]byte, error) {
	pb, address := store.SignalProtobufSerializer, from.String()
	raw := v.sessions[address]
	if raw == nil {
		return open()
	}
	all, err := record.NewSessionFromBytes(raw, pb.Session, pb.State)
	if err != nil {
		return nil, fmt.Errorf("read the sessions: %w", err)
	}
	states := append([]*record.StateStructure{all.Structure().SessionState}, all.Structure().PreviousStates...)
	var first error
	for i, s := range states {
		alone, err := record.NewSessionFromStructure(&record.SessionStructure{SessionState: s}, pb.Session, pb.State)
		if err != nil {
			return nil, fmt.Errorf("take a session apart: %w", err)
		}
		v.sessions[address] = alone.Serialize()
		plain, err := open()
		if err != nil {
			if first == nil || errors.Is(err, signalerror.ErrOldCounter) {
				first = err
			}
			continue
		}
		got, err := record.NewSessionFromBytes(v.sessions[address], pb.Session, pb.State)
		if err != nil {
			return nil, fmt.Errorf("read the session: %w", err)
		}
		whole := got.Structure()
		for j, other := range states {
			if j != i {
				whole.PreviousStates = append(whole.PreviousStates, other)
			}
		}
		kept, err := record.NewSessionFromStructure(whole, pb.Session, pb.State)
		if err != nil {
			return nil, fmt.Errorf("put the sessions together: %w", err)
		}
		v.sessions[address] = kept.Serialize()
		return plain, nil
	}
	v.sessions[address] = raw
	return nil, first
}

func (v *signalStore) groupCipher(chat string, sender *protocol.SignalAddress) (*groups.SessionBuilder, *protocol.SenderKeyName, *groups.GroupCipher) {
	b := groups.NewGroupSessionBuilder(v, store.SignalProtobufSerializer)
	name := protocol.NewSenderKeyName(chat, sender)
	return b, name, groups.NewGroupCipher(b, name, v)
}

// distribution is the message by which others learn this device's sender key of a group.
func (v *signalStore) distribution(chat string, own *protocol.SignalAddress) ([]byte, error) {
	b, name, _ := v.groupCipher(chat, own)
	m, err := b.Create(context.Background(), name)
	if err != nil {
		return nil, fmt.Errorf("make a sender key: %w", err)
	}
	return m.Serialize(), nil
}

func (v *signalStore) sealGroup(chat string, own *protocol.SignalAddress, plain []byte) ([]byte, error) {
	_, _, c := v.groupCipher(chat, own)
	m, err := c.Encrypt(context.Background(), pad(plain))
	if err != nil {
		return nil, fmt.Errorf("encrypt for %s: %w", chat, err)
	}
	return m.SignedSerialize(), nil
}

func (v *signalStore) openGroup(chat string, sender *protocol.SignalAddress, sealed []byte) ([]byte, error) {
	_, _, c := v.groupCipher(chat, sender)
	m, err := protocol.NewSenderKeyMessageFromBytes(sealed, store.SignalProtobufSerializer.SenderKeyMessage)
	if err != nil {
		return nil, fmt.Errorf("read a group message: %w", err)
	}
	plain, err := c.Decrypt(context.Background(), m)
	if err != nil {
		return nil, fmt.Errorf("decrypt a group message: %w", err)
	}
	return unpad(plain)
}

func (v *signalStore) learn(chat string, sender *protocol.SignalAddress, distribution []byte) error {
	b, name, _ := v.groupCipher(chat, sender)
	m, err := protocol.NewSenderKeyDistributionMessageFromBytes(distribution, store.SignalProtobufSerializer.SenderKeyDistributionMessage)
	if err != nil {
		return fmt.Errorf("read a sender key: %w", err)
	}
	if err := b.Process(context.Background(), name, m); err != nil {
		return fmt.Errorf("take a sender key: %w", err)
	}
	return nil
}

// pad adds 1 to 15 bytes, each telling how many.
func pad(plain []byte) []byte {
	n := 1 + rand.IntN(15)
	return append(bytes.Clone(plain), bytes.Repeat([]byte{byte(n)}, n)...)
}

func unpad(plain []byte) ([]byte, error) {
	if len(plain) == 0 {
		return nil, errors.New("an empty plaintext")
	}
	n := int(plain[len(plain)-1])
	if n == 0 || n > len(plain) || !bytes.HasSuffix(plain, bytes.Repeat([]byte{byte(n)}, n)) {
		return nil, errors.New("a wrong padding")
	}
	return plain[:len(plain)-n], nil
}
