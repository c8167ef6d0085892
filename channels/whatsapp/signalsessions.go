package whatsapp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"go.mau.fi/libsignal/state/record"
	wastore "go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
)

// A device's sessions are kept from ways in which whatsmeow and libsignal lose them. After any of them the other side could
// read nothing more ("Waiting for this message") until it has asked again, or it gives up.
//
// Sending and receiving both move a session's ratchet. whatsmeow reads a session, encrypts, and writes it back, for all devices
// of a send at once (encryptMessageForDevices of its send.go), and for one that asked for a message again beside all sends
// (handleRetryReceipt of retry.go); what arrives is decrypted beside both. Whatever moved the session in between would be
// overwritten. So what was encrypted must have moved the stored session by one message, or have begun a new one; else it begins
// again, before anything has left.
//
// Somebody with whom there are several sessions, as after a question for a message, writes by any of them. libsignal tries
// them in turn, and each that cannot read the message is left moved by it (DecryptWithState of its SessionCipher.go), where
// other implementations try on a copy. So of a record that is written, only the session that is current may have moved.
//
// A session belongs to one device of a person. Where whatsmeow finds somebody's LID in the database, and not in the cache that
// a start leaves empty, it takes the device off the address (GetManyLIDsForPNs of its lidmap.go; a later version does not): the
// first message after a start went to linked devices by the phone's session. So the device is put back.

// errMoved says that a session was moved while a message was encrypted by it.
var errMoved = errors.New("a session was moved meanwhile")

const (
	movedMost    = 8  // tries of one send
	archivedMost = 40 // sessions that libsignal keeps of a record beside the current one
)

// signalSessions is a device's sessions with that check.
type signalSessions struct {
	wastore.SessionStore
	txn func(context.Context, func(context.Context) error) error // holds the file's one writer
}

// guard puts all of that between whatsmeow and a device's store.
func guard(dev *wastore.Device) {
	dev.Sessions = signalSessions{dev.Sessions, dev.EventBuffer.DoDecryptionTxn}
	dev.EventBuffer = decryptions{dev.EventBuffer}
	dev.LIDs = deviceLIDs{dev.LIDs}
}

// deviceLIDs keeps the device's number in an address that is translated.
type deviceLIDs struct{ wastore.LIDStore }

func (l deviceLIDs) GetManyLIDsForPNs(ctx context.Context, numbers []types.JID) (map[types.JID]types.JID, error) {
	got, err := l.LIDStore.GetManyLIDsForPNs(ctx, numbers)
	for number, lid := range got {
		lid.Device = number.Device
		got[number] = lid
	}
	return got, err
}

// decryptions marks what is written while a message is decrypted: no other write comes between its read and its write.
type decryptions struct{ wastore.EventBuffer }

// decryptKey is the context's key of that mark.
type decryptKey struct{}

func (d decryptions) DoDecryptionTxn(ctx context.Context, decrypt func(context.Context) error) error {
	return d.EventBuffer.DoDecryptionTxn(ctx, func(ctx context.Context) error {
		return decrypt(context.WithValue(ctx, decryptKey{}, true))
	})
}

func (r signalSessions) PutManySessions(ctx context.Context, sessions map[string][]byte) error {
	return r.txn(ctx, func(ctx context.Context) (err error) {
		for address := range sessions {
			err = errors.Join(err, r.PutSession(ctx, address, sessions[address]))
		}
		return err
	})
}

func (r signalSessions) PutSession(ctx context.Context, address string, session []byte) error {
	return r.txn(ctx, func(ctx context.Context) error {
		before, err := r.SessionStore.GetSession(ctx, address)
		if before != nil {
			session, err = onlyCurrentMoved(before, session, ctx.Value(decryptKey{}) == nil)
		}
		if err != nil {
			return fmt.Errorf("compare a session: %w", err)
		}
		return r.SessionStore.PutSession(ctx, address, session)
	})
}

// onlyCurrentMoved gives the archived sessions of a record back what they were, and those that its writer did not know.
// encrypted says that it was for a message that is to be sent.
func onlyCurrentMoved(before, after []byte, encrypted bool) ([]byte, error) {
	pb := wastore.SignalProtobufSerializer
	old, err := record.NewSessionFromBytes(before, pb.Session, pb.State)
	if err != nil {
		return nil, err
	}
	moved, err := record.NewSessionFromBytes(after, pb.Session, pb.State)
	if err != nil {
		return nil, err
	}
	known := append([]*record.StateStructure{old.Structure().SessionState}, old.Structure().PreviousStates...)
	was := map[string]*record.StateStructure{} // by the key that a session begins with
	for _, s := range slices.Backward(known) {
		was[string(s.SenderBaseKey)] = s
	}
	now := moved.Structure()
	current := string(now.SessionState.SenderBaseKey)
	if encrypted && !movedByOne(old.SessionState(), moved.SessionState(), was[current] == nil) {
		return nil, errMoved
	}
	seen := map[string]bool{current: true}
	var archived []*record.StateStructure
	for _, s := range append(now.PreviousStates, known...) {
		key := string(s.SenderBaseKey)
		if seen[key] {
			continue // one that was promoted is left among the archived
		}
		seen[key] = true
		if same, ok := was[key]; ok {
			s = same
		}
		archived = append(archived, s)
	}
	now.PreviousStates = archived[:min(len(archived), archivedMost)]
	kept, err := record.NewSessionFromStructure(now, pb.Session, pb.State)
	if err != nil {
		return nil, err
	}
	return kept.Serialize(), nil
}

// movedByOne says that a session is what another becomes by encrypting one message, or is as new as that. It moves the other.
func movedByOne(from, to *record.State, begun bool) bool {
	if begun {
		return to.SenderChainKey().Index() <= 1
	}
	for range 2 { // an account that writes to itself has each of its devices listed twice (sendDM of send.go)
		from.SetSenderChainKey(from.SenderChainKey().NextKey())
		if bytes.Equal(from.Serialize(), to.Serialize()) {
			return true
		}
	}
	return false
}
