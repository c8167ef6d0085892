package api

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"parley/gateway/control"
)

// Sign-in. A code is 130 bits, works once and lives ten minutes; what it is exchanged for lives thirty days.
const (
	codeLives   = 10 * time.Minute
	cookieLives = 30 * 24 * time.Hour
	maxCodes    = 16 // outstanding; a further one ends the oldest
	maxCookie   = 200
)

// door is how a browser comes in: a code is exchanged for a cookie, which is signed with a key derived from the gateway's
// token. So it outlives a restart, and a changed token signs everybody out. Safe for concurrent use.
type door struct {
	token func() string
	now   func() time.Time
	name  string // of the cookie: browsers keep them by host and not by port
	keep  Ended
	log   *slog.Logger

	mu    sync.Mutex
	codes []code
	out   map[string]int64 // sign-ins that were ended, until they would have ended by themselves, in Unix seconds; nil: not read yet
}

// Ended keeps the list of sign-ins that were ended before their time. Load of nothing is empty.
type Ended interface {
	Load() (string, error)
	Save(list string) error
}

// code is one that was made and not yet used; only its hash is kept.
type code struct {
	sum, key [sha256.Size]byte
	ends     time.Time
}

func newDoor(o Options) *door {
	d := &door{token: o.Token, now: o.Now, name: "parley", keep: o.Ended, log: o.Log}
	if _, port, err := net.SplitHostPort(o.Addr); err == nil {
		d.name = "parley_" + port
	}
	return d
}

// key signs cookies; nil: nobody gets in.
func (d *door) key() []byte {
	token := d.token()
	if token == "" {
		return nil
	}
	m := hmac.New(sha256.New, []byte(token))
	m.Write([]byte("parley sign-in 1"))
	return m.Sum(nil)
}

// invite makes a code.
func (d *door) invite() (text string, ends time.Time) {
	text, ends = rand.Text(), d.now().Add(codeLives)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.codes) >= maxCodes {
		d.codes = d.codes[1:]
	}
	d.codes = append(d.codes, code{sha256.Sum256([]byte(text)), sha256.Sum256(d.key()), ends})
	return text, ends
}

// redeem uses a code up. All that are kept are compared, each in a time that depends on nothing.
func (d *door) redeem(text string) bool {
	sum, key, now := sha256.Sum256([]byte(text)), d.key(), d.now()
	d.mu.Lock()
	defer d.mu.Unlock()
	found, kept := false, d.codes[:0]
	for _, c := range d.codes {
		hit := subtle.ConstantTimeCompare(c.sum[:], sum[:]) == 1
		if now.After(c.ends) || c.key != sha256.Sum256(key) {
			continue
		}
		if hit && key != nil {
			found = true
			continue
		}
		kept = append(kept, c)
	}
	d.codes = kept
	return found
}

// cookie is a fresh sign-in: when it ends and a random id, signed.
func (d *door) cookie(secure bool) *http.Cookie {
	body := make([]byte, 8+16)
	binary.BigEndian.PutUint64(body, uint64(d.now().Add(cookieLives).Unix()))
	_, _ = rand.Read(body[8:]) // never fails
	return &http.Cookie{Name: d.name, Value: "1." + encode(body) + "." + encode(sign(d.key(), body)), Path: "/", MaxAge: int(cookieLives / time.Second),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: secure}
}

func sign(key, body []byte) []byte {
	m := hmac.New(sha256.New, key)
	m.Write(body)
	return m.Sum(nil)
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// signedIn says whether a request carries a sign-in that holds.
func (d *door) signedIn(r *http.Request) bool {
	_, _, ok := d.read(r)
	return ok
}

// read is the id and the end of the request's sign-in.
func (d *door) read(r *http.Request) (id string, ends time.Time, ok bool) {
	key := d.key()
	for _, c := range r.CookiesNamed(d.name) {
		version, rest, _ := strings.Cut(c.Value, ".")
		text, mac, _ := strings.Cut(rest, ".")
		if version != "1" || len(c.Value) > maxCookie || key == nil {
			continue
		}
		body, err := base64.RawURLEncoding.Strict().DecodeString(text)
		sum, err2 := base64.RawURLEncoding.Strict().DecodeString(mac)
		if err != nil || err2 != nil || len(body) != 8+16 || !hmac.Equal(sum, sign(key, body)) {
			continue
		}
		id, ends = encode(body[8:]), time.Unix(int64(binary.BigEndian.Uint64(body)), 0)
		if d.now().Before(ends) && !d.ended(id) {
			return id, ends, true
		}
	}
	return "", time.Time{}, false
}

// ended says whether a sign-in was ended; one that cannot be known is.
func (d *door) ended(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.load(); err != nil {
		d.log.Error("ended sign-ins cannot be read", "err", err)
		return true
	}
	_, out := d.out[id]
	return out
}

// load reads the list once. The lock is held.
func (d *door) load() error {
	if d.out != nil {
		return nil
	}
	out, text := map[string]int64{}, ""
	if d.keep != nil {
		var err error
		if text, err = d.keep.Load(); err != nil {
			return err
		}
	}
	if text != "" {
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			return err
		}
	}
	d.out = out
	return nil
}

// end signs out: the cookie is worth nothing from now on, wherever a copy of it is. The list is kept before anybody is
// told.
func (d *door) end(r *http.Request) error {
	id, ends, ok := d.read(r)
	if !ok {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for old, at := range d.out {
		if d.now().Unix() > at {
			delete(d.out, old)
		}
	}
	d.out[id] = ends.Unix()
	if d.keep == nil {
		return nil
	}
	text, err := json.Marshal(d.out)
	if err == nil {
		err = d.keep.Save(string(text))
	}
	return err
}

// signIn exchanges a code for a cookie.
func (s *server) signIn(w http.ResponseWriter, r *http.Request) error {
	var req codeRequest
	if err := decode(w, r, &req); err != nil {
		return err
	}
	if len(req.Code) > maxCookie {
		req.Code = ""
	}
	wrong := fault(http.StatusUnauthorized, "sign_in_code", "This code is not right, was used, or is older than ten minutes. On the machine that Parley runs on, `parley webchat` prints another link.")
	if from := normalised(r.RemoteAddr); s.guard.limited(from) && !loopback(from) { // a right code is not used up by who may not guess
		return s.guard.guess(r, false, true, wrong)
	}
	if err := s.guard.guess(r, s.guard.door.redeem(req.Code), true, wrong); err != nil {
		return err
	}
	if err := s.opt.Control.SignedIn(r.Context(), normalised(r.RemoteAddr)); err != nil {
		return err
	}
	secure := s.opt.TLS || strings.HasPrefix(r.Header.Get("Origin"), "https://")
	http.SetCookie(w, s.guard.door.cookie(secure))
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// signOut ends the sign-in that asks.
func (s *server) signOut(w http.ResponseWriter, r *http.Request) error {
	if err := s.guard.door.end(r); err != nil {
		return err
	}
	http.SetCookie(w, &http.Cookie{Name: s.guard.door.name, Path: "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// codeView is a way in for one browser. The link carries the code where no server and no log sees it.
type codeView struct {
	Code    string    `json:"code"`
	Path    string    `json:"path"` // behind the gateway's address
	Expires time.Time `json:"expires"`
}

func (s *server) newCode(w http.ResponseWriter, r *http.Request) error {
	if err := decode(w, r, &struct{}{}); err != nil {
		return err
	}
	if err := s.opt.Control.Invited(r.Context(), s.call(r)); err != nil {
		return err
	}
	text, ends := s.guard.door.invite()
	reply(w, http.StatusCreated, codeView{text, "/#code=" + text, ends.UTC()})
	return nil
}

// SignInPath is a fresh way in: the address behind the gateway's, with its one-time code.
func (s *Server) SignInPath() string {
	text, _ := s.s.guard.door.invite()
	return "/#code=" + text
}

// personView is who asks.
type personView struct {
	ID   string `json:"id"`
	Role string `json:"role"`
	Name string `json:"name"`
}

type meView struct {
	Person  personView      `json:"person"`
	Version string          `json:"version"`
	Boot    int64           `json:"boot"` // counts the starts of this gateway
	Agents  []control.Agent `json:"agents"`
}

// me is who asks and what answers, for a page that begins.
func (s *server) me(w http.ResponseWriter, r *http.Request) error {
	call := s.call(r)
	who, agents, boot, err := s.opt.Control.Me(r.Context(), call)
	if err != nil {
		return err
	}
	reply(w, http.StatusOK, meView{personView{string(who.Person), string(who.Role), who.Name}, s.opt.Version, boot, agents})
	return nil
}
