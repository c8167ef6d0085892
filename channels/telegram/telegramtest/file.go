package telegramtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxDownload is the size of a file that a bot may fetch, in bytes (https://core.telegram.org/bots/api#getfile).
const maxDownload = 20 << 20

// File is a file of a message. Type is the field of Message that holds it: document, photo, voice, audio, video.
type File struct {
	ID   string
	Type string
	Name string
	MIME string
	Size int64 // as Telegram says; 0: the length of Data
	Data []byte
}

type files struct {
	mu   sync.Mutex
	n    int
	byID map[string]File
}

// keep stores a file under a new id.
func (fs *files) keep(f File) File {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.byID == nil {
		fs.byID = map[string]File{}
	}
	fs.n++
	f.ID = fmt.Sprintf("BQACAgQAAxkBAAI%06dAAF", fs.n)
	if f.Size == 0 {
		f.Size = int64(len(f.Data))
	}
	fs.byID[f.ID] = f
	return f
}

func (fs *files) get(id string) (File, bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f, ok := fs.byID[id]
	return f, ok
}

func (f File) append(b []byte) []byte {
	object := func(b []byte, id string, size int64) []byte {
		b = appendString(append(b, `{"file_id":`...), id)
		b = appendString(append(b, `,"file_unique_id":`...), "u"+id)
		return appendNumber(b, "file_size", size)
	}
	b = append(append(append(b, `,"`...), f.Type...), `":`...)
	if f.Type == "photo" { // a small size and the whole, as Telegram sends them
		b = append(object(append(b, '['), "s"+f.ID, 1+f.Size/10), `,"width":90,"height":90},`...)
		return append(object(b, f.ID, f.Size), `,"width":800,"height":800}]`...)
	}
	b = object(b, f.ID, f.Size)
	if f.Type != "voice" {
		b = appendField(b, "file_name", f.Name)
	}
	b = appendField(b, "mime_type", f.MIME)
	if f.Type != "document" {
		b = append(b, `,"duration":1`...)
	}
	if f.Type == "video" {
		b = append(b, `,"width":320,"height":240`...)
	}
	return append(b, '}')
}

func sendDocument(c *call) *apiError { return c.sendFile("document") }
func sendPhoto(c *call) *apiError    { return c.sendFile("photo") }

func (c *call) sendFile(kind string) *apiError {
	t, fail := c.caption()
	if fail != nil {
		return fail
	}
	markup, buttons, fail := c.markup()
	if fail != nil {
		return fail
	}
	f, fail := c.file(kind, kind)
	if fail != nil {
		return fail
	}
	ch, fail := c.chatOf()
	if fail != nil {
		return fail
	}
	return c.post(ch, func(m *Message) {
		m.set(t)
		m.Files = []File{f}
		m.markup, m.Buttons = markup, buttons
	})
}

// file takes the file of a field: an upload, attach://<field>, or the id of a file that is known.
func (c *call) file(field, kind string) (File, *apiError) {
	up, ok := c.upload(field)
	value := c.get(field)
	if name, attached := strings.CutPrefix(value, "attach://"); !ok && attached {
		up, ok = c.upload(name)
	}
	if ok {
		if len(up.data) == 0 {
			return File{}, badRequest("file must be non-empty")
		}
		return c.s.files.keep(File{Type: kind, Name: up.name, MIME: up.mime, Data: up.data}), nil
	}
	if value == "" {
		return File{}, badRequest("there is no %s in the request", kind)
	}
	f, ok := c.s.files.get(value)
	if !ok {
		return File{}, badRequest("wrong file identifier/HTTP URL specified")
	}
	f.Type = kind
	return f, nil
}

func sendMediaGroup(c *call) *apiError {
	var items []struct {
		Type, Media, Caption string
		Mode                 string `json:"parse_mode"`
	}
	if err := json.Unmarshal([]byte(c.get("media")), &items); err != nil {
		return badRequest("can't parse media JSON object")
	}
	if len(items) < 2 || len(items) > 10 {
		return badRequest("wrong number of media in the album, must be between 2 and 10")
	}
	var drafts []Message
	for _, it := range items {
		one := &call{s: c.s, files: c.files, kv: []pair{{"media", it.Media}, {"caption", it.Caption}, {"parse_mode", it.Mode}}}
		t, fail := one.caption()
		if fail != nil {
			return fail
		}
		f, fail := one.file("media", it.Type)
		if fail != nil {
			return fail
		}
		m := Message{Files: []File{f}}
		m.set(t)
		drafts = append(drafts, m)
	}
	ch, fail := c.chatOf()
	if fail != nil {
		return fail
	}
	return c.postAlbum(ch, drafts)
}

func (c *call) postAlbum(ch *chat, drafts []Message) *apiError {
	sent, fail := c.storeAlbum(ch, drafts)
	if fail == nil && c.s.opts.OnSent != nil {
		for _, m := range sent {
			c.s.opts.OnSent(m)
		}
	}
	return fail
}

func (c *call) storeAlbum(ch *chat, drafts []Message) (sent []Message, fail *apiError) {
	album := c.s.album()
	ch.mu.Lock()
	defer ch.mu.Unlock()
	base, fail := c.draft(ch)
	if fail == nil {
		fail = c.s.flood.send(ch, len(drafts))
	}
	if fail != nil {
		return nil, fail
	}
	c.out = append(c.out, '[')
	for i, d := range drafts {
		m := base
		m.Files, m.Text, m.Raw, m.Mode, m.Entities, m.Album = d.Files, d.Text, d.Raw, d.Mode, d.Entities, album
		stored := ch.add(c.s, m)
		if i > 0 {
			c.out = append(c.out, ',')
		}
		c.out = c.s.appendMessage(c.out, ch, stored, 1)
		sent = append(sent, stored.clone())
	}
	c.out = append(c.out, ']')
	return sent, nil
}

func (s *Server) album() string { return strconv.FormatInt(13000000000000000+s.albums.Add(1), 10) }

func getFile(c *call) *apiError {
	f, ok := c.s.files.get(strings.TrimPrefix(c.get("file_id"), "s"))
	if !ok {
		return badRequest("invalid file_id")
	}
	if f.Size > maxDownload {
		return badRequest("file is too big")
	}
	b := appendString(append(c.out, `{"file_id":`...), f.ID)
	b = appendString(append(b, `,"file_unique_id":`...), "u"+f.ID)
	b = appendNumber(b, "file_size", f.Size)
	b = appendField(b, "file_path", f.Type+"s/"+f.ID)
	c.out = append(b, '}')
	return nil
}

// serveFile answers /file/bot<token>/<path>.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request, rest string) {
	token, path, ok := strings.Cut(rest, "/")
	if !ok || !s.authorized(token) {
		s.writeError(w, errUnauthorized)
		return
	}
	if !s.faults.Take("file").Before(r, func(f Fault) { s.answerFault(w, f) }) {
		return
	}
	_, id, _ := strings.Cut(path, "/")
	f, ok := s.files.get(id)
	if !ok {
		s.writeError(w, errNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.Data))
}
