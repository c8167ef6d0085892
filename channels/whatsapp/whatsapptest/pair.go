package whatsapptest

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"regexp"
	"strings"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waAdv"
	"go.mau.fi/whatsmeow/proto/waWa6"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/util/hkdfutil"
	"go.mau.fi/whatsmeow/util/keys"
	"golang.org/x/crypto/curve25519"
	"golang.org/x/crypto/pbkdf2"
	"google.golang.org/protobuf/proto"
)

// refsPerOffer is how many QR codes one connection may show before it is closed.
const refsPerOffer = 6

// pairing is a connection that waits to be linked. Under the server's lock.
type pairing struct {
	conn     *conn
	refs     []string
	identity [32]byte
	regID    uint32
	signed   *keys.PreKey
	device   uint16 // once chosen
	asked    string // id of the pair-success query

	codeRef   string
	wrapped   []byte // the companion's ephemeral key, under the code
	ephemeral *keys.KeyPair
	theirs    []byte
}

// drop forgets the offer.
func (p *pairing) drop(s *Server) {
	for _, r := range p.refs {
		delete(s.pairings, r)
	}
	delete(s.pairings, p.codeRef)
}

// offerPairing answers a client that has no account with the refs of its QR codes.
func (s *Server) offerPairing(c *conn, p *waWa6.ClientPayload) {
	d := p.GetDevicePairingData()
	id, err := key32(d.GetEIdent())
	pub, err2 := key32(d.GetESkeyVal())
	if err = errors.Join(err, err2); err != nil || len(d.GetERegid()) != 4 || len(d.GetESkeyID()) != 3 || len(d.GetESkeySig()) != 64 {
		s.complainLocked("a registration that is not whole: %v", err)
		c.push(waBinary.Node{Tag: "failure", Attrs: waBinary.Attrs{"reason": "400", "location": "cln"}})
		c.end()
		return
	}
	off := &pairing{conn: c, identity: *id, regID: binary.BigEndian.Uint32(d.GetERegid()), signed: &keys.PreKey{
		KeyPair: keys.KeyPair{Pub: pub}, KeyID: binary.BigEndian.Uint32(append([]byte{0}, d.GetESkeyID()...)), Signature: (*[64]byte)(d.GetESkeySig()),
	}}
	var refs []waBinary.Node
	for range refsPerOffer {
		ref := "2@" + randomText(64)
		off.refs = append(off.refs, ref)
		s.pairings[ref] = off
		refs = append(refs, waBinary.Node{Tag: "ref", Content: []byte(ref)})
	}
	c.pairing = off
	c.push(waBinary.Node{Tag: "iq", Attrs: waBinary.Attrs{"from": types.ServerJID, "type": "set", "id": newID(), "xmlns": "md"}, Content: []waBinary.Node{
		{Tag: "pair-device", Content: refs},
	}})
}

func randomText(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails (crypto/rand)
	return base64.StdEncoding.EncodeToString(b)
}

var errNoPairing = errors.New("no device waits with this code")

// Scan is a person who scans a QR code with the account's phone.
func (s *Server) Scan(code string) error {
	parts := strings.Split(code, ",")
	if len(parts) != 4 {
		return fmt.Errorf("a QR code of %d parts", len(parts))
	}
	var raw [3][]byte
	for i := range raw {
		var err error
		if raw[i], err = base64.StdEncoding.DecodeString(parts[i+1]); err != nil {
			return fmt.Errorf("a QR code whose part %d is no base64: %w", i+2, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pairings[parts[0]]
	if p == nil {
		return errNoPairing
	}
	if string(raw[0]) != string(p.conn.noise[:]) || string(raw[1]) != string(p.identity[:]) {
		return errors.New("the QR code has other keys than the connection")
	}
	return s.pairSuccess(p, raw[2])
}

// pairSuccess tells the client that it is linked. It answers with its own signature.
func (s *Server) pairSuccess(p *pairing, advSecret []byte) error {
	p.device, p.asked = s.nextDevice, newID()
	s.nextDevice++
	account, err := s.vouch(&p.identity, p.device)
	if err != nil {
		return err
	}
	details, err := proto.Marshal(account)
	if err != nil {
		return fmt.Errorf("write the device identity: %w", err)
	}
	h := hmac.New(sha256.New, advSecret)
	h.Write(details)
	container, err := proto.Marshal(&waAdv.ADVSignedDeviceIdentityHMAC{Details: details, HMAC: h.Sum(nil)})
	if err != nil {
		return fmt.Errorf("write the device identity: %w", err)
	}
	pn, lid := s.owner.PN(), s.owner.Hidden()
	pn.Device, lid.Device = p.device, p.device
	p.conn.push(waBinary.Node{Tag: "iq", Attrs: waBinary.Attrs{"from": types.ServerJID, "type": "set", "id": p.asked, "xmlns": "md"}, Content: []waBinary.Node{
		{Tag: "pair-success", Content: []waBinary.Node{
			{Tag: "device-identity", Content: container},
			{Tag: "device", Attrs: waBinary.Attrs{"jid": pn, "lid": lid}},
			{Tag: "platform", Attrs: waBinary.Attrs{"name": "android"}},
		}},
	}})
	s.watch.Changed()
	return nil
}

// takeResult is the client's answer to a query of Parley's: the last step of pairing.
func (s *Server) takeResult(c *conn, n *waBinary.Node, kind string) {
	p := c.pairing
	if p == nil || p.asked == "" || n.Attrs["id"] != p.asked {
		return
	}
	fault := s.faults.signature
	s.faults.signature = 0
	if fault == SignatureLost {
		p.drop(s)
		c.pairing = nil
		c.cancel()
		return
	}
	if kind == "error" {
		s.complainLocked("the client refused to be paired")
		c.end()
		return
	}
	var id waAdv.ADVSignedDeviceIdentity
	raw := contentOf(n, "pair-device-sign", "device-identity")
	if err := proto.Unmarshal(raw, &id); err != nil {
		s.complainLocked("the signed device identity: %v", err)
		c.end()
		return
	}
	id.AccountSignatureKey = s.primaryKey.Pub[:]
	whole, err := proto.Marshal(&id)
	if err == nil {
		err = verify(whole, s.primaryKey, p.identity)
	}
	if err != nil {
		s.complainLocked("the signed device identity: %v", err)
		c.end()
		return
	}
	s.companions[p.device] = &companion{device: p.device, noise: c.noise, identity: p.identity, regID: p.regID, signed: p.signed, fresh: true}
	p.drop(s)
	c.pairing = nil
	if fault == SignatureUntold {
		c.cancel()
		return
	}
	c.push(waBinary.Node{Tag: "stream:error", Attrs: waBinary.Attrs{"code": "515"}})
	c.end()
}

// ExpireCodes closes the connections that wait to be linked, as the network does after 160 seconds.
func (s *Server) ExpireCodes() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if c.pairing != nil {
			c.pairing.drop(s)
			c.cancel()
		}
	}
}

// deviceQuery is what a client asks of the multi-device service.
func (s *Server) deviceQuery(c *conn, child waBinary.Node) ([]waBinary.Node, *iqError) {
	switch child.Tag {
	case "remove-companion-device":
		return s.removeCompanion(c, child)
	case "link_code_companion_reg":
		if c.pairing == nil {
			return nil, &iqError{400, "bad-request"}
		}
		if child.Attrs["stage"] == "companion_finish" {
			return nil, s.codeFinish(c.pairing, &child)
		}
		return s.codeHello(c.pairing, &child)
	}
	return nil, nil
}

// removeCompanion is the client's own logout: it is answered and the line closed.
func (s *Server) removeCompanion(c *conn, child waBinary.Node) ([]waBinary.Node, *iqError) {
	j, _ := child.Attrs["jid"].(types.JID)
	if c.device == nil || j.Device != c.device.device {
		return nil, &iqError{403, "forbidden"}
	}
	delete(s.companions, j.Device)
	return []waBinary.Node{}, nil
}

// displayNames are those that the network takes from a client that asks for a code.
var displayNames = regexp.MustCompile(`^(Chrome|Edge|Firefox|IE|Opera|Safari) \((Linux|Windows|Mac OS|macOS|Android)\)$`)

// codeHello takes a client's request for a code.
func (s *Server) codeHello(p *pairing, n *waBinary.Node) ([]waBinary.Node, *iqError) {
	j, _ := n.Attrs["jid"].(types.JID)
	name := string(contentOf(n, "companion_platform_display"))
	wrapped := contentOf(n, "link_code_pairing_wrapped_companion_ephemeral_pub")
	if len(wrapped) != 80 || !displayNames.MatchString(name) {
		return nil, &iqError{400, "bad-request"}
	}
	if j.User != s.owner.Phone {
		return nil, &iqError{404, "item-not-found"} // there is no such account here
	}
	p.codeRef, p.wrapped = randomText(12), wrapped
	s.pairings[p.codeRef] = p
	return []waBinary.Node{{Tag: "link_code_companion_reg", Attrs: waBinary.Attrs{"stage": "companion_hello"}, Content: []waBinary.Node{
		{Tag: "link_code_pairing_ref", Content: []byte(p.codeRef)},
	}}}, nil
}

// codeKey is the key that the eight characters give.
func codeKey(code string, salt []byte) []byte {
	return pbkdf2.Key([]byte(code), salt, 2<<16, 32, sha256.New)
}

func ctr(key, iv, data []byte) ([]byte, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("make the cipher: %w", err)
	}
	out := make([]byte, len(data))
	cipher.NewCTR(block, iv).XORKeyStream(out, data)
	return out, nil
}

// EnterCode is a person who types the code that the client shows into the account's phone.
func (s *Server) EnterCode(code string) error {
	code = strings.ReplaceAll(code, "-", "")
	s.mu.Lock()
	var p *pairing
	for _, one := range s.pairings {
		if one.wrapped != nil {
			p = one
		}
	}
	s.mu.Unlock()
	if p == nil {
		return errNoPairing
	}
	// The key derivation is slow on purpose: not under the lock.
	theirs, err := ctr(codeKey(code, p.wrapped[:32]), p.wrapped[32:48], p.wrapped[48:])
	if err != nil {
		return err
	}
	eph := keys.NewKeyPair()
	salt := make([]byte, 48)
	_, _ = rand.Read(salt) // never fails (crypto/rand)
	own, err := ctr(codeKey(code, salt[:32]), salt[32:], eph.Pub[:])
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p.ephemeral, p.theirs = eph, theirs
	p.conn.push(waBinary.Node{Tag: "notification", Attrs: waBinary.Attrs{
		"from": types.ServerJID, "id": newID(), "type": "link_code_companion_reg", "t": s.now().Unix(),
	}, Content: []waBinary.Node{{Tag: "link_code_companion_reg", Attrs: waBinary.Attrs{"stage": "primary_hello"}, Content: []waBinary.Node{
		{Tag: "link_code_pairing_wrapped_primary_ephemeral_pub", Content: append(salt, own...)},
		{Tag: "primary_identity_pub", Content: s.primaryKey.Pub[:]},
		{Tag: "link_code_pairing_ref", Content: []byte(p.codeRef)},
	}}}})
	return nil
}

// codeFinish takes the client's key bundle. A wrong code shows here: the phone cannot open it.
func (s *Server) codeFinish(p *pairing, n *waBinary.Node) *iqError {
	secret, err := p.advSecret(s.primaryKey, contentOf(n, "link_code_pairing_wrapped_key_bundle"))
	if err != nil {
		s.complainLocked("pairing by code: %v", err)
		return &iqError{400, "bad-request"}
	}
	if err := s.pairSuccess(p, secret); err != nil {
		s.complainLocked("pairing by code: %v", err)
		return &iqError{500, "internal-server-error"}
	}
	return nil
}

func (p *pairing) advSecret(primary *keys.KeyPair, bundle []byte) ([]byte, error) {
	if p.ephemeral == nil || len(bundle) < 44 {
		return nil, errors.New("the bundle is out of turn or too short")
	}
	shared, err := curve25519.X25519(p.ephemeral.Priv[:], p.theirs)
	if err != nil {
		return nil, fmt.Errorf("agree on a secret: %w", err)
	}
	aead, err := newGCM(hkdfutil.SHA256(shared, bundle[:32], []byte("link_code_pairing_key_bundle_encryption_key"), 32))
	if err != nil {
		return nil, err
	}
	plain, err := aead.Open(nil, bundle[32:44], bundle[44:], nil)
	if err != nil {
		return nil, fmt.Errorf("open the key bundle: %w", err)
	}
	if len(plain) != 96 || string(plain[:32]) != string(p.identity[:]) || string(plain[32:64]) != string(primary.Pub[:]) {
		return nil, errors.New("the key bundle has other keys")
	}
	own, err := curve25519.X25519(primary.Priv[:], p.identity[:])
	if err != nil {
		return nil, fmt.Errorf("agree on a secret: %w", err)
	}
	input := append(append(append([]byte(nil), shared...), own...), plain[64:]...)
	return hkdfutil.SHA256(input, nil, []byte("adv_secret"), 32), nil
}
