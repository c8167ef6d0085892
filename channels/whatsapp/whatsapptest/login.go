package whatsapptest

import (
	"context"
	"fmt"
	"time"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waAdv"
	"go.mau.fi/whatsmeow/proto/waWa6"
	"go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/util/keys"
)

// Linked is what the network knows of a linked device.
type Linked struct {
	Device   uint16
	Noise    [32]byte
	Identity [32]byte
	RegID    uint32
	Signed   *keys.PreKey
	Once     []*keys.PreKey
}

// Link makes the new device of a client's store a linked one, as if it had been paired, with n of its one-time keys (at
// least 6, else the client uploads 812 at its first connection) already uploaded. The store must have been made by
// sqlstore's NewDevice and is saved.
func (s *Server) Link(ctx context.Context, d *store.Device, n int) (Linked, error) {
	s.mu.Lock()
	device := s.nextDevice
	s.nextDevice++
	account, err := s.vouch(d.IdentityKey.Pub, device)
	s.mu.Unlock()
	if err != nil {
		return Linked{}, err
	}
	sign(account, d.IdentityKey)
	pn, lid := s.owner.PN(), s.owner.Hidden()
	pn.Device, lid.Device = device, device
	d.ID, d.LID, d.Account, d.PushName, d.Platform = &pn, lid, account, s.opts.Account.Name, "android"
	if err := d.Save(ctx); err != nil {
		return Linked{}, fmt.Errorf("save the linked device: %w", err)
	}
	if err := d.Identities.PutIdentity(ctx, s.owner.Hidden().SignalAddress().String(), *s.primaryKey.Pub); err != nil {
		return Linked{}, fmt.Errorf("store the phone's identity: %w", err)
	}
	once, err := d.PreKeys.GetOrGenPreKeys(ctx, uint32(n))
	if err != nil {
		return Linked{}, fmt.Errorf("make prekeys: %w", err)
	}
	if err := d.PreKeys.MarkPreKeysAsUploaded(ctx, once[len(once)-1].KeyID); err != nil {
		return Linked{}, fmt.Errorf("mark the prekeys: %w", err)
	}
	l := Linked{
		Device: device, Noise: *d.NoiseKey.Pub, Identity: *d.IdentityKey.Pub, RegID: d.RegistrationID, Signed: public(d.SignedPreKey),
	}
	for _, k := range once {
		l.Once = append(l.Once, public(k))
	}
	s.Adopt(l)
	return l, nil
}

func public(k *keys.PreKey) *keys.PreKey {
	return &keys.PreKey{KeyPair: keys.KeyPair{Pub: k.Pub}, KeyID: k.KeyID, Signature: k.Signature}
}

// Adopt lets this fake know a device that another one linked to the same account: a test links a store once and gives
// each fake a copy of its file.
func (s *Server) Adopt(l Linked) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.companions[l.Device] = &companion{
		device: l.Device, noise: l.Noise, identity: l.Identity, regID: l.RegID, signed: l.Signed, once: append([]*keys.PreKey(nil), l.Once...),
	}
	s.nextDevice = max(s.nextDevice, l.Device+1)
}

// login answers the client's first payload: success, a failure, or an offer to be linked.
func (s *Server) login(c *conn, p *waWa6.ClientPayload) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.watch.Changed()
	s.faults.logins++
	if f := s.faults.failure; f != nil {
		c.push(waBinary.Node{Tag: "failure", Attrs: f})
		c.end()
		return
	}
	if p.Username == nil {
		s.offerPairing(c, p)
		return
	}
	d := s.companions[uint16(p.GetDevice())]
	if d == nil || fmt.Sprint(p.GetUsername()) != s.owner.Phone || d.noise != c.noise {
		c.push(waBinary.Node{Tag: "failure", Attrs: waBinary.Attrs{"reason": "401", "location": "cln"}})
		c.end()
		return
	}
	if d.conn != nil {
		old := d.conn
		old.push(waBinary.Node{Tag: "stream:error", Content: []waBinary.Node{{Tag: "conflict", Attrs: waBinary.Attrs{"type": "replaced"}}}})
		old.end()
		s.detach(old)
	}
	c.device, d.conn, d.active = d, c, false
	c.push(waBinary.Node{Tag: "success", Attrs: waBinary.Attrs{
		"t": s.now().Unix(), "props": "27", "location": "cln", "lid": d.address(s.owner, false), "display_name": s.owner.Name,
	}})
}

// detach parts a device from a connection that is being closed, so that nothing more is sent on it.
func (s *Server) detach(c *conn) {
	if d := c.device; d != nil && d.conn == c {
		d.conn, d.active, d.available = nil, false, false
	}
	c.device = nil
}

// activate sends what waited, once the client has asked for it.
func (s *Server) activate(c *conn) {
	d := c.device
	if d == nil || d.active {
		return
	}
	if d.fresh {
		d.fresh = false
		s.greet(d, nil)
	}
	d.active = true
	s.expire()
	var messages, receipts, notes int
	for _, st := range d.pending {
		switch st.node.Tag {
		case "message":
			messages++
		case "receipt":
			receipts++
		default:
			notes++
		}
	}
	count := len(d.pending)
	c.push(waBinary.Node{Tag: "ib", Attrs: waBinary.Attrs{"from": types.ServerJID}, Content: []waBinary.Node{{
		Tag: "offline_preview", Attrs: waBinary.Attrs{"count": count, "message": messages, "receipt": receipts, "notification": notes, "appdata": 0},
	}}})
	if !s.faults.held {
		for i, st := range d.pending {
			s.transmit(c, st, i)
		}
	}
	c.push(waBinary.Node{Tag: "ib", Attrs: waBinary.Attrs{"from": types.ServerJID}, Content: []waBinary.Node{{
		Tag: "offline", Attrs: waBinary.Attrs{"count": count},
	}}})
}

// keepDays is how long the network keeps what a device has not taken.
const keepDays = 14 * 24 * time.Hour

// expire drops what has waited too long. Under the lock.
func (s *Server) expire() {
	for _, d := range s.companions {
		var keep []*stanza
		for _, st := range d.pending {
			if s.now().Sub(st.at) < keepDays {
				keep = append(keep, st)
			}
		}
		d.pending = keep
	}
}

// vouch is the phone's signature under a new device's identity (ADV, "account device verification").
func (s *Server) vouch(device *[32]byte, index uint16) (*waAdv.ADVSignedDeviceIdentity, error) {
	return vouch(s.primaryKey, device, uint32(index), s.now())
}
