package whatsapp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.mau.fi/libsignal/state/record"
	wastore "go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
)

// A device's sessions are kept from ways in which whatsmeow and libsignal lose them. After any of them the other side could
// read nothing more ("Waiting for this message") until it has asked again, or it gives up.
//
// Sending and receiving both move a session's ratchet. whatsmeow reads the sessions of all devices, encrypts, and writes them
// back (encryptMessageForDevices of its send.go), while what arrives is decrypted beside it: what that moved would be
// overwritten. So what a send writes back must stand on what it read; else the send begins again, before anything has left.
//
// Somebody with whom there are several sessions, as after a question for a message, writes by any of them. libsignal tries
// them in turn, and each that cannot read the message is left moved by it (DecryptWithState of its SessionCipher.go), where
// other implementations try on a copy. So of a record that is written, only the session that is current may have moved.
//
// A session belongs to one device of a person. Where whatsmeow finds somebody's LID in the database, and not in the cache that
// a start leaves empty, it takes the device off the address (GetManyLIDsForPNs of its lidmap.go; a later version does not): the
// first message after a start went to linked devices by the phone's session. So the device is put back.

// errMoved says that a message arrived while another was encrypted for its writer.
var errMoved = errors.New("a session was moved by what arrived")

const movedMost = 8 // tries of one send

// signalSessions is a device's sessions with that check.
type signalSessions struct {
	wastore.SessionStore
	txn func(context.Context, func(context.Context) error) error // holds the file's one writer
}

// guard puts all of that between whatsmeow and a device's store.
func guard(dev *wastore.Device) {
	dev.Sessions = signalSessions{dev.Sessions, dev.EventBuffer.DoDecryptionTxn}
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

// readKey is the context's key of what a send has read: *map[string][]byte.
type readKey struct{}

func (r signalSessions) GetManySessions(ctx context.Context, addresses []string) (map[string][]byte, error) {
	got, err := r.SessionStore.GetManySessions(ctx, addresses)
	if read, ok := ctx.Value(readKey{}).(*map[string][]byte); ok && err == nil {
		*read = maps.Clone(got)
	}
	return got, err
}

func (r signalSessions) PutManySessions(ctx context.Context, sessions map[string][]byte) error {
	read, ok := ctx.Value(readKey{}).(*map[string][]byte)
	if !ok {
		return r.SessionStore.PutManySessions(ctx, sessions)
	}
	return r.txn(ctx, func(ctx context.Context) error {
		now, err := r.SessionStore.GetManySessions(ctx, slices.Collect(maps.Keys(sessions)))
		if err != nil {
			return fmt.Errorf("read the sessions again: %w", err)
		}
		for address := range sessions {
			if !bytes.Equal(now[address], (*read)[address]) {
				return errMoved
			}
		}
		return r.SessionStore.PutManySessions(ctx, sessions)
	})
}

func (r signalSessions) PutSession(ctx context.Context, address string, session []byte) error {
	before, err := r.SessionStore.GetSession(ctx, address)
	if err != nil {
		return err
	}
	if before != nil {
		if session, err = onlyCurrentMoved(before, session); err != nil {
			return fmt.Errorf("compare a session: %w", err)
		}
	}
	return r.SessionStore.PutSession(ctx, address, session)
}

// onlyCurrentMoved gives the archived sessions of a record back what they were.
func onlyCurrentMoved(before, after []byte) ([]byte, error) {
	pb := wastore.SignalProtobufSerializer
	old, err := record.NewSessionFromBytes(before, pb.Session, pb.State)
	if err != nil {
		return nil, err
	}
	moved, err := record.NewSessionFromBytes(after, pb.Session, pb.State)
	if err != nil {
		return nil, err
	}
	was := map[string]*record.StateStructure{} // by the key that a session begins with
	for _, s := range append(old.Structure().PreviousStates, old.Structure().SessionState) {
		was[string(s.SenderBaseKey)] = s
	}
	now := moved.Structure()
	seen := map[string]bool{string(now.SessionState.SenderBaseKey): true}
	var archived []*record.StateStructure
	for _, s := range now.PreviousStates {
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
	now.PreviousStates = archived
	kept, err := record.NewSessionFromStructure(now, pb.Session, pb.State)
	if err != nil {
		return nil, err
	}
	return kept.Serialize(), nil
}
