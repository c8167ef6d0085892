package whatsapptest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"go.mau.fi/libsignal/ecc"
	"go.mau.fi/libsignal/keys/identity"
	"go.mau.fi/libsignal/keys/prekey"
	"go.mau.fi/libsignal/protocol"
	"go.mau.fi/libsignal/util/optional"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/util/keys"
)

// Person is somebody with WhatsApp on a phone. One person has two addresses: the phone number and a hidden id (LID).
type Person struct {
	Phone   string // international, digits only
	LID     string // digits only
	Name    string // as the person calls themselves
	Devices int    // linked devices beside the phone
	ByPhone bool   // the person's direct messages come from the phone number; else from the LID
}

// PN and Hidden are the person's two addresses.
func (p Person) PN() types.JID     { return types.NewJID(p.Phone, types.DefaultUserServer) }
func (p Person) Hidden() types.JID { return types.NewJID(p.LID, types.HiddenUserServer) }

// Group is a group chat.
type Group struct {
	ID      string   // digits
	Subject string   // its name
	Members []string // phone numbers; the account is a member unless Without is set
	Without bool     // the account is not a member
	ByPhone bool     // members are addressed by phone number, as in old groups; else by LID
}

// JID is the group's address.
func (g Group) JID() types.JID { return types.NewJID(g.ID, types.GroupServer) }

type person struct {
	Person
	devices []*peer
	gone    bool // has no account any more
	blocks  bool // blocked the client's account, which is not told of it
	shown   map[types.JID][]*Shown
}

// peer is one device of a person.
type peer struct {
	owner       *person
	device      uint16
	signalStore *signalStore
	shared      map[string]bool // group and companion that have this device's sender key
}

type room struct {
	Group
	members map[string]bool // phones
}

// primaryKey is the identity of an account's phone. It follows from the number, so that a linked store that one fake made
// is known to another (Server.Adopt).
func primaryKey(p Person) *keys.KeyPair {
	return keys.NewKeyPairFromPrivateKey(sha256.Sum256([]byte("parley: phone of " + p.Phone)))
}

// AddPerson adds somebody who can write to the account.
func (s *Server) AddPerson(p Person) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addPerson(p)
}

func (s *Server) addPerson(p Person) *person {
	who := &person{Person: p, shown: map[types.JID][]*Shown{}}
	for n := range 1 + p.Devices {
		id := keys.NewKeyPair()
		if n == 0 {
			id = primaryKey(p)
		}
		who.devices = append(who.devices, &peer{owner: who, device: uint16(n), signalStore: newSignalStore(id), shared: map[string]bool{}})
	}
	s.people[p.Phone], s.people["lid:"+p.LID] = who, who
	return who
}

// ComesBy has a person's direct messages come from the phone number or from the LID from now on, as WhatsApp changes it.
func (s *Server) ComesBy(phone string, number bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mustKnow(phone).ByPhone = number
}

// AddGroup makes a group. Its members must be known.
func (s *Server) AddGroup(g Group) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &room{Group: g, members: map[string]bool{}}
	for _, m := range g.Members {
		if s.people[m] == nil {
			panic("whatsapptest: a group with an unknown member " + m)
		}
		r.members[m] = true
	}
	r.members[s.owner.Phone] = !g.Without
	s.groups[g.JID()] = r
}

// Account is the account that the client is linked to.
func (s *Server) Account() Person { return s.opts.Account }

// Leave takes the client's account out of a group, as when somebody removed it.
func (s *Server) Leave(group types.JID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.groups[group]; r != nil {
		r.members[s.owner.Phone] = false
	}
	s.watch.Changed()
}

// Unregister ends a person's account: the network knows the number no more.
func (s *Server) Unregister(phone string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mustKnow(phone).gone = true
	s.watch.Changed()
}

// Block has a person block the account. The network tells the blocked one nothing: messages are acknowledged and never
// delivered.
func (s *Server) Block(phone string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mustKnow(phone).blocks = true
}

// Reinstall gives a person's phone a new identity, as after a new installation.
func (s *Server) Reinstall(phone string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.mustKnow(phone).devices[0]
	p.signalStore, p.shared = newSignalStore(keys.NewKeyPair()), map[string]bool{}
}

func (s *Server) mustKnow(phone string) *person {
	p := s.people[phone]
	if p == nil {
		panic("whatsapptest: an unknown person " + phone)
	}
	return p
}

// find looks a user address up, whichever of the two it is. Nil: nobody has it.
func (s *Server) find(j types.JID) *person {
	switch j.Server {
	case types.DefaultUserServer, types.LegacyUserServer:
		return s.people[j.User]
	case types.HiddenUserServer:
		return s.people["lid:"+j.User]
	}
	return nil
}

// peerOf is the simulated device that has the address. Nil: there is none, or it is a companion.
func (s *Server) peerOf(j types.JID) *peer {
	p := s.find(j)
	if p == nil || p.gone {
		return nil
	}
	for _, d := range p.devices {
		if d.device == j.Device {
			return d
		}
	}
	return nil
}

// address is the device's own in one of the two forms.
func (p *peer) address(byPhone bool) types.JID {
	j := p.owner.Hidden()
	if byPhone {
		j = p.owner.PN()
	}
	j.Device = p.device
	return j
}

// signal is the device's address in the Signal protocol. It is the LID throughout.
func (p *peer) signal() *protocol.SignalAddress { return p.address(false).SignalAddress() }

// bundle is what another device needs to write to this one first.
func (p *peer) bundle() (regID uint32, id [32]byte, signed, once *keys.PreKey) {
	return p.signalStore.regID, *p.signalStore.identity.Pub, p.signalStore.signed, p.signalStore.oneTimeKey()
}

// companion is a device that a client linked: the one under test.
type companion struct {
	device   uint16
	noise    [32]byte
	identity [32]byte
	regID    uint32
	signed   *keys.PreKey // without the private half
	once     []*keys.PreKey

	conn      *conn
	active    bool // it asked for what waits
	available bool // it shows itself online
	fresh     bool // linked just now: the phone has not sent what a new device gets
	pending   []*stanza
}

func (c *companion) address(owner *person, byPhone bool) types.JID {
	j := owner.Hidden()
	if byPhone {
		j = owner.PN()
	}
	j.Device = c.device
	return j
}

// bundle hands out one of the client's prekeys, or none when they are used up.
func (c *companion) bundle() (*prekey.Bundle, error) {
	if c.signed == nil {
		return nil, fmt.Errorf("device %d has uploaded no keys", c.device)
	}
	id := identity.NewKey(ecc.NewDjbECPublicKey(c.identity))
	signedPub := ecc.NewDjbECPublicKey(*c.signed.Pub)
	if len(c.once) == 0 {
		return prekey.NewBundle(c.regID, uint32(c.device), optional.NewEmptyUint32(), c.signed.KeyID, nil, signedPub, *c.signed.Signature, id), nil
	}
	k := c.once[0]
	c.once = c.once[1:]
	return prekey.NewBundle(c.regID, uint32(c.device), optional.NewOptionalUint32(k.KeyID), c.signed.KeyID,
		ecc.NewDjbECPublicKey(*k.Pub), signedPub, *c.signed.Signature, id), nil
}

// newID is a message id as phones make them.
func newID() string {
	b := make([]byte, 9)
	_, _ = rand.Read(b) // never fails (crypto/rand)
	return "3A" + strings.ToUpper(hex.EncodeToString(b))
}
