package whatsapptest

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	waBinary "go.mau.fi/whatsmeow/binary"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/util/hkdfutil"
	"google.golang.org/protobuf/proto"
)

// File is an attachment, decrypted.
type File struct {
	Kind string // image, video, audio, voice, file, sticker
	Name string // of Kind file
	MIME string
	Data []byte
}

const (
	mediaPrefix = "/v/"
	mediaHost   = "mmg.whatsapp.net"
	mediaAuth   = "fake-media-auth"
	macLength   = 10
	// maxUpload is the network's limit for documents.
	maxUpload = 2 << 30
)

// media is the network's store of encrypted files. Under the server's lock.
type media struct {
	files    map[string][]byte // by path
	status   []int             // answers to the next downloads
	uploads  []int             // … and uploads
	fetched  int
	uploaded int
}

func (s *Server) mediaConn() []waBinary.Node {
	return []waBinary.Node{{Tag: "media_conn", Attrs: waBinary.Attrs{
		"auth": mediaAuth, "ttl": 300, "auth_ttl": 21600, "max_buckets": 12,
	}, Content: []waBinary.Node{{Tag: "host", Attrs: waBinary.Attrs{"hostname": mediaHost}}}}}
}

// FailDownloads answers the next downloads with these HTTP codes (404 and 410: the file is gone from the network).
func (s *Server) FailDownloads(codes ...int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.media.status = append(s.media.status, codes...)
}

// FailUploads answers the next uploads with these HTTP codes.
func (s *Server) FailUploads(codes ...int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.media.uploads = append(s.media.uploads, codes...)
}

// Downloads counts the downloads of files by the client.
func (s *Server) Downloads() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.media.fetched
}

func (s *Server) put(data []byte) (path string) {
	if s.media.files == nil {
		s.media.files = map[string][]byte{}
	}
	b := make([]byte, 12)
	_, _ = rand.Read(b) // never fails (crypto/rand)
	path = mediaPrefix + "t62.7118-24/" + base64.RawURLEncoding.EncodeToString(b) + "_n.enc"
	s.media.files[path] = data
	return path
}

func pop(list *[]int) int {
	if len(*list) == 0 {
		return 0
	}
	code := (*list)[0]
	*list = (*list)[1:]
	return code
}

// serveUpload is POST /mms/<kind>/<token>?auth=…&token=…; the token is the hash of what is uploaded.
func (s *Server) serveUpload(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxUpload))
	if err != nil {
		http.Error(w, "too large", http.StatusRequestEntityTooLarge)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.watch.Changed()
	if code := pop(&s.media.uploads); code != 0 {
		w.WriteHeader(code)
		return
	}
	sum := sha256.Sum256(data)
	token := base64.URLEncoding.EncodeToString(sum[:])
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/mms/"), "/")
	known := map[string]bool{"image": true, "video": true, "audio": true, "document": true}
	switch {
	case r.URL.Query().Get("auth") != mediaAuth:
		w.WriteHeader(http.StatusUnauthorized)
		return
	case len(parts) != 2 || parts[1] != token || r.URL.Query().Get("token") != token || !known[parts[0]]:
		s.complainLocked("an upload of %d bytes to %s, whose hash is another", len(data), r.URL.Path)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.media.uploaded++
	path := s.put(data)
	w.Header().Set("Content-Type", "application/json")
	// A failed write is the client's loss.
	_ = json.NewEncoder(w).Encode(map[string]string{"url": mediaURL(path), "direct_path": path + mediaQuery})
}

// Direct paths carry a query, to which clients append with "&".
const mediaQuery = "?ccb=11-4&oh=fake&oe=fake&_nc_sid=5e03e0"

func mediaURL(path string) string { return "https://" + mediaHost + path + mediaQuery + "&mms3=true" }

func (s *Server) serveDownload(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	code := pop(&s.media.status)
	data, ok := s.media.files[r.URL.Path]
	s.media.fetched++
	s.watch.Changed()
	s.mu.Unlock()
	switch {
	case code != 0:
		w.WriteHeader(code)
	case !ok:
		w.WriteHeader(http.StatusNotFound)
	default:
		_, _ = w.Write(data) // a failed write is the client's loss
	}
}

// kinds of media: the label of their keys.
func mediaLabel(kind string) string {
	switch kind {
	case "image", "sticker":
		return "WhatsApp Image Keys"
	case "video":
		return "WhatsApp Video Keys"
	case "audio", "voice":
		return "WhatsApp Audio Keys"
	case "history":
		return "WhatsApp History Keys"
	}
	return "WhatsApp Document Keys"
}

func mediaKeys(key []byte, kind string) (iv, cipherKey, macKey []byte) {
	all := hkdfutil.SHA256(key, nil, []byte(mediaLabel(kind)), 112)
	return all[:16], all[16:48], all[48:80]
}

// sealed is a file as the network keeps it, with what a message tells of it.
type sealed struct {
	path, url         string
	key, sum, encrSum []byte
	length            uint64
}

func (s *Server) upload(kind string, data []byte) (sealed, error) {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails (crypto/rand)
	iv, ck, mk := mediaKeys(key, kind)
	block, err := aes.NewCipher(ck)
	if err != nil {
		return sealed{}, fmt.Errorf("make the cipher: %w", err)
	}
	n := aes.BlockSize - len(data)%aes.BlockSize
	enc := append(bytes.Clone(data), bytes.Repeat([]byte{byte(n)}, n)...)
	cipher.NewCBCEncrypter(block, iv).CryptBlocks(enc, enc)
	h := hmac.New(sha256.New, mk)
	h.Write(iv)
	h.Write(enc)
	enc = append(enc, h.Sum(nil)[:macLength]...)
	path := s.put(enc)
	sum, encSum := sha256.Sum256(data), sha256.Sum256(enc)
	return sealed{path: path + mediaQuery, url: mediaURL(path), key: key, sum: sum[:], encrSum: encSum[:], length: uint64(len(data))}, nil
}

// described is a message's part that tells of a file.
type described interface {
	GetDirectPath() string
	GetMediaKey() []byte
	GetFileSHA256() []byte
	GetFileEncSHA256() []byte
	GetFileLength() uint64
}

// fetch opens a file as a phone does. What it cannot open is complained of.
func (s *Server) fetch(kind, name, mime string, d described, m *Shown) *File {
	data, err := s.openFile(kind, d)
	if err != nil {
		s.complainLocked("the file of %s cannot be opened: %v", m.ID, err)
		return nil
	}
	return &File{Kind: kind, Name: name, MIME: mime, Data: data}
}

func (s *Server) openFile(kind string, d described) ([]byte, error) {
	path, _, _ := strings.Cut(d.GetDirectPath(), "?")
	raw, ok := s.media.files[path]
	if !ok {
		return nil, fmt.Errorf("nothing is at %q", d.GetDirectPath())
	}
	if sum := sha256.Sum256(raw); !bytes.Equal(sum[:], d.GetFileEncSHA256()) {
		return nil, errors.New("the encrypted file's hash is another")
	}
	iv, ck, mk := mediaKeys(d.GetMediaKey(), kind)
	body, mac := raw[:len(raw)-macLength], raw[len(raw)-macLength:]
	h := hmac.New(sha256.New, mk)
	h.Write(iv)
	h.Write(body)
	if !hmac.Equal(h.Sum(nil)[:macLength], mac) {
		return nil, errors.New("the file's code is wrong: it was encrypted as another kind, or with another key")
	}
	block, err := aes.NewCipher(ck)
	if err != nil {
		return nil, fmt.Errorf("make the cipher: %w", err)
	}
	if len(body) == 0 || len(body)%aes.BlockSize != 0 {
		return nil, errors.New("the file is not whole blocks")
	}
	plain := make([]byte, len(body))
	cipher.NewCBCDecrypter(block, iv).CryptBlocks(plain, body)
	n := int(plain[len(plain)-1])
	if n == 0 || n > aes.BlockSize {
		return nil, errors.New("the file's padding is wrong")
	}
	plain = plain[:len(plain)-n]
	sum := sha256.Sum256(plain)
	switch {
	case !bytes.Equal(sum[:], d.GetFileSHA256()):
		return nil, errors.New("the file's hash is another")
	case d.GetFileLength() != uint64(len(plain)):
		return nil, errors.New("the file's length is another")
	}
	return plain, nil
}

// attach puts a person's file into a message.
func (s *Server) attach(m *waE2E.Message, in In, ctx *waE2E.ContextInfo) error {
	f := in.File
	up, err := s.upload(f.Kind, f.Data)
	if err != nil {
		return err
	}
	caption := proto.String(in.Text)
	if in.Text == "" {
		caption = nil
	}
	switch f.Kind {
	case "image":
		m.ImageMessage = &waE2E.ImageMessage{
			URL: &up.url, DirectPath: &up.path, MediaKey: up.key, FileSHA256: up.sum, FileEncSHA256: up.encrSum, FileLength: &up.length,
			Mimetype: &f.MIME, Caption: caption, ContextInfo: ctx,
		}
	case "video":
		m.VideoMessage = &waE2E.VideoMessage{
			URL: &up.url, DirectPath: &up.path, MediaKey: up.key, FileSHA256: up.sum, FileEncSHA256: up.encrSum, FileLength: &up.length,
			Mimetype: &f.MIME, Caption: caption, ContextInfo: ctx,
		}
	case "audio", "voice":
		m.AudioMessage = &waE2E.AudioMessage{
			URL: &up.url, DirectPath: &up.path, MediaKey: up.key, FileSHA256: up.sum, FileEncSHA256: up.encrSum, FileLength: &up.length,
			Mimetype: &f.MIME, PTT: proto.Bool(f.Kind == "voice"), ContextInfo: ctx,
		}
	case "sticker":
		m.StickerMessage = &waE2E.StickerMessage{
			URL: &up.url, DirectPath: &up.path, MediaKey: up.key, FileSHA256: up.sum, FileEncSHA256: up.encrSum, FileLength: &up.length,
			Mimetype: &f.MIME, ContextInfo: ctx,
		}
	default:
		doc := &waE2E.DocumentMessage{
			URL: &up.url, DirectPath: &up.path, MediaKey: up.key, FileSHA256: up.sum, FileEncSHA256: up.encrSum, FileLength: &up.length,
			Mimetype: &f.MIME, FileName: &f.Name, Caption: caption, ContextInfo: ctx,
		}
		if in.Text == "" {
			m.DocumentMessage = doc
		} else {
			m.DocumentWithCaptionMessage = &waE2E.FutureProofMessage{Message: &waE2E.Message{DocumentMessage: doc}}
		}
	}
	return nil
}

// mediaType is the attribute of a stanza with a file.
func mediaType(m *waE2E.Message) string {
	m, _ = unwrap(m)
	switch {
	case m.GetImageMessage() != nil:
		return "image"
	case m.GetVideoMessage() != nil:
		return "video"
	case m.GetAudioMessage() != nil:
		if m.GetAudioMessage().GetPTT() {
			return "ptt"
		}
		return "audio"
	case m.GetDocumentMessage() != nil:
		return "document"
	case m.GetStickerMessage() != nil:
		return "sticker"
	}
	return ""
}
