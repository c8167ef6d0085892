package whatsapp

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"go.mau.fi/whatsmeow"
)

// seal makes references to files: sealed with a key of the channel's own file, so that the keys which decrypt a file are
// in no journal, nobody can make a reference, and no row has to be kept for one. The same file has the same reference.
type seal struct {
	aead  cipher.AEAD
	nonce []byte // key of the nonces
}

// newSeal wants 64 bytes: 32 for the cipher, 32 for its nonces.
func newSeal(key []byte) (*seal, error) {
	if len(key) != 64 {
		return nil, errors.New("the key of references is damaged")
	}
	block, err := aes.NewCipher(key[:32])
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	return &seal{aead: aead, nonce: key[32:]}, nil
}

// ref is where a file is and how it is decrypted: what whatsmeow.DownloadableMessage asks for.
type ref struct {
	Path  string `json:"p"`
	Key   []byte `json:"k"`
	Plain []byte `json:"h"` // SHA-256 of the file
	Enc   []byte `json:"e"` // … and of what is downloaded
	Type  string `json:"t"` // whatsmeow.MediaType
	Size  int64  `json:"s,omitempty"`
}

var (
	_ whatsmeow.DownloadableMessage = (*ref)(nil)
	_ whatsmeow.MediaTypeable       = (*ref)(nil)
)

func (r *ref) GetDirectPath() string             { return r.Path }
func (r *ref) GetMediaKey() []byte               { return r.Key }
func (r *ref) GetFileSHA256() []byte             { return r.Plain }
func (r *ref) GetFileEncSHA256() []byte          { return r.Enc }
func (r *ref) GetMediaType() whatsmeow.MediaType { return whatsmeow.MediaType(r.Type) }

// close turns a reference into an id.
func (s *seal) close(r ref) (string, error) {
	plain, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("encode a reference: %w", err)
	}
	mac := hmac.New(sha256.New, s.nonce)
	mac.Write(plain)
	nonce := mac.Sum(nil)[:s.aead.NonceSize()]
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nonce, nonce, plain, nil)), nil
}

// open reads an id that close has made.
func (s *seal) open(id string) (*ref, error) {
	raw, err := base64.RawURLEncoding.DecodeString(id)
	if err != nil || len(raw) < s.aead.NonceSize() {
		return nil, errors.New("no reference of this channel")
	}
	n := s.aead.NonceSize()
	plain, err := s.aead.Open(nil, raw[:n], raw[n:], nil)
	if err != nil {
		return nil, errors.New("no reference of this channel")
	}
	r := &ref{}
	if err := json.Unmarshal(plain, r); err != nil {
		return nil, fmt.Errorf("decode a reference: %w", err)
	}
	return r, nil
}
