package workspace

import (
	"bytes"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"parley/workspace/lazy"
)

// Masked stands where a secret was.
const Masked = "[secret]"

// minSecret is the shortest value that is looked for, in bytes: a shorter one would hide pieces of innocent words.
const minSecret = 6

// minEncoded is the same for what encodings make of a secret's inside.
const minEncoded = 12

// Redactor takes secrets out of text by their value, in the forms in which text carries them: as they are, escaped for
// URLs, JSON and HTML, in hex, and inside any base64. It is a net, not a wall: a secret that a program spells backwards
// passes. What was a secret once stays one. It is safe for concurrent use; nil redacts nothing.
type Redactor struct {
	mu    sync.Mutex // held while needles is replaced
	known map[string]bool
	inUse atomic.Pointer[needles]
}

// NewRedactor looks for the secrets; Add takes more.
func NewRedactor(secrets ...string) *Redactor {
	r := &Redactor{known: map[string]bool{}}
	r.Add(secrets...)
	return r
}

// Add looks for further secrets. Those that are known or too short change nothing.
func (r *Redactor) Add(secrets ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	grew := false
	for _, s := range secrets {
		for _, form := range forms(s) {
			if !r.known[form] {
				r.known[form], grew = true, true
			}
		}
	}
	if grew {
		n := newNeedles(r.known)
		if reduced := reducedForms(r.known); len(reduced) > 0 {
			n.reduced = newNeedles(reduced)
		}
		r.inUse.Store(n)
	}
}

// Redact is the text with Masked in place of every secret.
func (r *Redactor) Redact(text string) string {
	if r == nil {
		return text
	}
	n := r.inUse.Load()
	if n == nil {
		return text
	}
	text = n.unwrapped(text)
	if may(n, text) {
		text = n.replace.Replace(text)
	}
	return n.revealed(text)
}

// JSON is Redact of JSON text: it stays JSON.
func (r *Redactor) JSON(text []byte) []byte {
	if r == nil {
		return text
	}
	n := r.inUse.Load()
	if n == nil || !may(n, text) {
		return text
	}
	return []byte(n.replace.Replace(string(text)))
}

// Args is Redact of every text in JSON, however it is escaped there: of what a model wrote by itself.
func (r *Redactor) Args(text json.RawMessage) json.RawMessage {
	if r == nil || len(text) == 0 {
		return text
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return r.JSON(text)
	}
	hit := false
	v = r.value(v, &hit)
	if !hit {
		return r.JSON(text)
	}
	out, err := json.Marshal(v)
	if err != nil { // it was JSON
		return r.JSON(text)
	}
	return r.JSON(out)
}

func (r *Redactor) value(v any, hit *bool) any {
	switch v := v.(type) {
	case string:
		s := r.Redact(v)
		*hit = *hit || s != v
		return s
	case []any:
		for i := range v {
			v[i] = r.value(v[i], hit)
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, inside := range v {
			name := r.Redact(key)
			*hit = *hit || name != key
			out[name] = r.value(inside, hit)
		}
		return out
	}
	return v
}

// Watch looks for secrets in bytes that are written to it in pieces, over line ends too. It never fails.
type Watch struct {
	r     *Redactor
	tail  []byte
	flat  []byte // the same without line ends
	Found bool
}

// Watch begins to look.
func (r *Redactor) Watch() *Watch { return &Watch{r: r} }

// Write looks at a piece, and at what it makes with the end of the one before.
func (w *Watch) Write(p []byte) (int, error) {
	if w.r == nil || w.Found {
		return len(p), nil
	}
	n := w.r.inUse.Load()
	if n == nil {
		return len(p), nil
	}
	w.tail = w.look(n, append(w.tail, p...))
	w.flat = w.look(n, append(w.flat, withoutEnds(p)...))
	return len(p), nil
}

// look returns the end of text, which may be the beginning of a secret.
func (w *Watch) look(n *needles, text []byte) []byte {
	w.Found = w.Found || may(n, text) && n.replace.Replace(string(text)) != string(text)
	return append([]byte{}, text[max(0, len(text)-n.longest+1):]...)
}

func withoutEnds(p []byte) []byte {
	if !bytes.ContainsAny(p, "\r\n") {
		return p
	}
	return bytes.ReplaceAll(bytes.ReplaceAll(p, []byte("\n"), nil), []byte("\r"), nil)
}

// wrapped is an encoded text that was broken into lines, as base64 and xxd -p do.
var wrapped = lazy.Regexp(`[A-Za-z0-9+/_-]{8,}(?:\r?\n[ \t]*[A-Za-z0-9+/_-]+)+`)

// unwrapped masks such texts, as wholes, when they hold a form across their line ends.
func (n *needles) unwrapped(text string) string {
	if !mayWrap(text) {
		return text
	}
	return wrapped().ReplaceAllStringFunc(text, func(lines string) string {
		if f := flat(lines); may(n, f) && n.replace.Replace(f) != flat(n.replace.Replace(lines)) {
			return Masked
		}
		return lines
	})
}

func flat(lines string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' || r == ' ' || r == '\t' {
			return -1
		}
		return r
	}, lines)
}

// mayWrap says whether a line ends in a long word that the next might go on with; most texts have none.
func mayWrap(text string) bool {
	for at := 0; ; {
		i := strings.IndexByte(text[at:], '\n')
		if i < 0 {
			return false
		}
		at += i + 1
		line := strings.TrimSuffix(text[:at-1], "\r")
		if at < len(text) && len(line) >= 8 && !strings.ContainsFunc(line[len(line)-8:], notEncoded) {
			return true
		}
	}
}

func notEncoded(r rune) bool {
	return (r|0x20 < 'a' || r|0x20 > 'z') && (r < '0' || r > '9') && r != '+' && r != '/' && r != '_' && r != '-'
}

// Stream redacts text that comes in pieces, such as a model's answer: a secret that is cut between two is found.
type Stream struct {
	r    *Redactor
	held string // may be the beginning of a secret
}

// Stream begins a text that comes in pieces.
func (r *Redactor) Stream() *Stream { return &Stream{r: r} }

// Next takes a piece and returns what can be shown now.
func (s *Stream) Next(piece string) string {
	if s.r == nil {
		return piece
	}
	n := s.r.inUse.Load()
	if n == nil {
		return s.flush(piece)
	}
	text := s.held + piece
	if s.held == "" && n.settled(piece) == len(piece) && !may(n, piece) {
		return piece
	}
	text = n.replace.Replace(text)
	cut := n.settled(text)
	s.held = text[cut:]
	return text[:cut]
}

// End returns what was held back of a text that is whole.
func (s *Stream) End() string { return s.flush("") }

// Cut is End of a text that was cut off: what may be most of a secret is not shown.
func (s *Stream) Cut() string {
	if s == nil {
		return ""
	}
	if len(s.held) >= minSecret {
		s.held = ""
		return Masked
	}
	return s.flush("")
}

func (s *Stream) flush(piece string) string {
	text := s.held + piece
	s.held = ""
	return text
}

// needles are all forms of all secrets, with a filter in front: nearly every text holds none.
type needles struct {
	replace *strings.Replacer
	min     int           // of the shortest form, in bytes
	skip    [1 << 14]byte // by the hash of four bytes: how far the next form may begin behind them (Wu and Manber 1994)
	starts  [256][]string // forms by their first byte
	longest int
	reduced *needles // of texts that are reduced; nil: none
}

func newNeedles(known map[string]bool) *needles {
	list := make([]string, 0, len(known))
	n := &needles{min: 1 << 20}
	for form := range known {
		list = append(list, form)
		n.min = min(n.min, len(form))
		n.longest = max(n.longest, len(form))
		n.starts[form[0]] = append(n.starts[form[0]], form)
	}
	slices.SortFunc(list, func(a, b string) int { // a secret may hold another
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	pairs := make([]string, 0, 2*len(list))
	for _, form := range list {
		pairs = append(pairs, form, Masked)
	}
	n.replace = strings.NewReplacer(pairs...)
	n.min = min(n.min, 200)
	for i := range n.skip {
		n.skip[i] = byte(n.min - block + 1)
	}
	for _, form := range list {
		for i := 0; i+block <= n.min; i++ {
			h := hashAt(form, i)
			n.skip[h] = min(n.skip[h], byte(n.min-block-i))
		}
	}
	return n
}

const block = 4

func hashAt[T string | []byte](s T, i int) uint32 {
	_ = s[i+3]
	v := uint32(s[i]) | uint32(s[i+1])<<8 | uint32(s[i+2])<<16 | uint32(s[i+3])<<24
	return v * 2654435761 >> 18
}

// may says that the text perhaps holds a form; false is sure.
func may[T string | []byte](n *needles, text T) bool {
	for i := n.min - block; i+block <= len(text); {
		step := n.skip[hashAt(text, i)]
		if step == 0 {
			return true
		}
		i += int(step)
	}
	return false
}

// settled is how much of a text is surely not the beginning of a secret that goes on behind it.
func (n *needles) settled(text string) int {
	for i := max(0, len(text)-n.longest+1); i < len(text); i++ {
		tail := text[i:]
		for _, form := range n.starts[text[i]] {
			if len(form) > len(tail) && strings.HasPrefix(form, tail) {
				return i
			}
		}
	}
	return len(text)
}

// forms are the ways in which text carries a secret.
func forms(secret string) []string {
	if len(secret) < minSecret {
		return nil
	}
	hexed := hex.EncodeToString([]byte(secret))
	list := []string{secret, url.QueryEscape(secret), url.PathEscape(secret), inJSON(secret, true), inJSON(secret, false),
		html.EscapeString(secret), hexed, strings.ToUpper(hexed), otherHTML(secret),
		strings.ReplaceAll(inJSON(secret, false), "/", `\/`)}
	for _, escaped := range list[1:3] {
		list = append(list, percent().ReplaceAllStringFunc(escaped, strings.ToLower))
	}
	list = append(list, insideBase64(secret)...)
	for _, inner := range insideBase64(secret) { // base64 twice
		list = append(list, insideBase64(inner)...)
	}
	list = append(list, insideBase32(secret)...)
	list = append(list, hex.EncodeToString([]byte(strings.Join(strings.Split(secret, ""), "\x00")))) // UTF-16, in hex
	for line := range strings.Lines(secret) {                                                        // of a private key, each shows as much
		if line = strings.TrimSpace(line); line != secret && len(line) >= minLine {
			list = append(list, forms(line)...)
		}
	}
	return slices.DeleteFunc(list, func(s string) bool { return len(s) < minSecret })
}

// minLine is the shortest line of a secret of many lines that is looked for by itself, in bytes.
const minLine = 20

// otherHTML is how Python and JavaScript write what Go's html package writes in numbers.
func otherHTML(secret string) string {
	return strings.NewReplacer("&#34;", "&quot;", "&#39;", "&#x27;").Replace(html.EscapeString(secret))
}

var percent = lazy.Regexp(`%[0-9A-F]{2}`)

func inJSON(secret string, escapeHTML bool) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(escapeHTML)
	_ = enc.Encode(secret) // a string into memory
	return b.String()[1 : b.Len()-2]
}

// insideBase64 is what of a secret is the same in the base64 of every text that holds it: three ways, by where the
// secret begins, in both alphabets.
func insideBase64(secret string) (list []string) {
	for shift := range 3 {
		text := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("\x00", shift) + secret))
		from := (8*shift + 5) / 6
		to := (8 * (shift + len(secret))) / 6
		if inner := text[from:to]; len(inner) >= minEncoded {
			list = append(list, inner, strings.NewReplacer("+", "-", "/", "_").Replace(inner))
		}
	}
	return list
}

// insideBase32 is the same for base32: five ways.
func insideBase32(secret string) (list []string) {
	for shift := range 5 {
		text := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString([]byte(strings.Repeat("\x00", shift) + secret))
		from := (8*shift + 4) / 5
		to := (8 * (shift + len(secret))) / 5
		if inner := text[from:to]; len(inner) >= minEncoded {
			list = append(list, inner)
		}
	}
	return list
}
