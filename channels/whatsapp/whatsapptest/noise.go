package whatsapptest

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"

	"go.mau.fi/libsignal/ecc"
	"go.mau.fi/whatsmeow/proto/waCert"
	"go.mau.fi/whatsmeow/socket"
	"go.mau.fi/whatsmeow/util/keys"
	"golang.org/x/crypto/curve25519"
	"golang.org/x/crypto/hkdf"
	"google.golang.org/protobuf/proto"
)

// Root is the public key that signs the certificates of every fake. A client must be told to trust it instead of the
// network's own: with whatsmeow by setting WACertPubKey once, before the first connection.
func Root() [32]byte { return *rootKey().Pub }

// rootKey is the same in every process, so that a daemon under test can be told of it on its command line.
func rootKey() *keys.KeyPair {
	return keys.NewKeyPairFromPrivateKey(sha256.Sum256([]byte("parley: root of the fake WhatsApp servers")))
}

// authority is the server's static key with the chain that proves it.
type authority struct {
	static *keys.KeyPair
	chain  []byte
}

const (
	intermediateSerial = 11
	leafSerial         = 12
)

func newAuthority() (*authority, error) {
	middle, static := keys.NewKeyPair(), keys.NewKeyPair()
	signed := func(by *keys.KeyPair, d *waCert.CertChain_NoiseCertificate_Details) (*waCert.CertChain_NoiseCertificate, error) {
		raw, err := proto.Marshal(d)
		if err != nil {
			return nil, err
		}
		sig := ecc.CalculateSignature(ecc.NewDjbECPrivateKey(*by.Priv), raw)
		return &waCert.CertChain_NoiseCertificate{Details: raw, Signature: sig[:]}, nil
	}
	// The root has the serial 0.
	inter, err := signed(rootKey(), &waCert.CertChain_NoiseCertificate_Details{
		Serial: proto.Uint32(intermediateSerial), IssuerSerial: proto.Uint32(0), Key: middle.Pub[:],
	})
	if err != nil {
		return nil, fmt.Errorf("sign the intermediate certificate: %w", err)
	}
	leaf, err := signed(middle, &waCert.CertChain_NoiseCertificate_Details{
		Serial: proto.Uint32(leafSerial), IssuerSerial: proto.Uint32(intermediateSerial), Key: static.Pub[:],
	})
	if err != nil {
		return nil, fmt.Errorf("sign the leaf certificate: %w", err)
	}
	chain, err := proto.Marshal(&waCert.CertChain{Intermediate: inter, Leaf: leaf})
	if err != nil {
		return nil, fmt.Errorf("write the certificate chain: %w", err)
	}
	return &authority{static: static, chain: chain}, nil
}

// symmetric is the symmetric state of a Noise handshake (noiseprotocol.org, section 5.2) with AES-GCM and SHA-256.
type symmetric struct {
	hash, salt []byte
	aead       cipher.AEAD
	n          uint32
}

func newSymmetric(prologue []byte) (*symmetric, error) {
	// The pattern's name is exactly 32 bytes and is the first hash as it is.
	s := &symmetric{hash: []byte(socket.NoiseStartPattern)}
	s.salt = s.hash
	var err error
	if s.aead, err = newGCM(s.hash); err != nil {
		return nil, err
	}
	s.mixHash(prologue)
	return s, nil
}

func newGCM(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("make the cipher: %w", err)
	}
	return cipher.NewGCM(block)
}

func (s *symmetric) mixHash(data []byte) {
	h := sha256.New()
	h.Write(s.hash)
	h.Write(data)
	s.hash = h.Sum(nil)
}

func (s *symmetric) split(input []byte) (first, second []byte, err error) {
	both := make([]byte, 64)
	if _, err := io.ReadFull(hkdf.New(sha256.New, input, s.salt, nil), both); err != nil {
		return nil, nil, fmt.Errorf("expand keys: %w", err)
	}
	return both[:32], both[32:], nil
}

// mixDH mixes the shared secret of our private and their public key into the key.
func (s *symmetric) mixDH(priv, pub *[32]byte) error {
	secret, err := curve25519.X25519(priv[:], pub[:])
	if err != nil {
		return fmt.Errorf("agree on a secret: %w", err)
	}
	salt, key, err := s.split(secret)
	if err != nil {
		return err
	}
	s.salt, s.n = salt, 0
	s.aead, err = newGCM(key)
	return err
}

func (s *symmetric) seal(plain []byte) []byte {
	out := s.aead.Seal(nil, nonce(s.n), plain, s.hash)
	s.n++
	s.mixHash(out)
	return out
}

func (s *symmetric) open(sealed []byte) ([]byte, error) {
	out, err := s.aead.Open(nil, nonce(s.n), sealed, s.hash)
	if err != nil {
		return nil, fmt.Errorf("open a part of the handshake: %w", err)
	}
	s.n++
	s.mixHash(sealed)
	return out, nil
}

// nonce is the counter in the last four of twelve bytes.
func nonce(n uint32) []byte {
	iv := make([]byte, 12)
	binary.BigEndian.PutUint32(iv[8:], n)
	return iv
}
