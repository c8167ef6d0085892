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

// Sign-in. A code is 130 bits, works once and lives ten minutes; what it is exchanged for lives thirty days, and is fresh for ten
// minutes: then it may do what would outlive it (control.Call.Borrowed).
const (
	codeLives   = 10 * time.Minute
	cookieLives = 30 * 24 * time.Hour
	freshFor    = 10 * time.Minute
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
	by       *pass // the sign-in that asked for it; nil: the token, or the gateway itself
}

// pass is a sign-in, as its cookie says.
type pass struct {
	id    string
	ends  time.Time
	fresh time.Time // until then it may do what outlives it
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

// invite makes a code. One that a sign-in asked for opens another browser for that sign-in: it ends with it, and is never fresh.
func (d *door) invite(by *pass) (text string, ends time.Time) {
	text, ends = rand.Text(), d.now().Add(codeLives)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.codes) >= maxCodes {
		d.codes = d.codes[1:]
	}
	d.codes = append(d.codes, code{sha256.Sum256([]byte(text)), sha256.Sum256(d.key()), ends, by})
	return text, ends
}

// redeem uses a code up. All that are kept are compared, each in a time that depends on nothing.
func (d *door) redeem(text string) (by *pass, ok bool) {
	sum, key, now := sha256.Sum256([]byte(text)), d.key(), d.now()
	d.mu.Lock()
	defer d.mu.Unlock()
	kept := d.codes[:0]
	for _, c := range d.codes {
		hit := subtle.ConstantTimeCompare(c.sum[:], sum[:]) == 1
		if now.After(c.ends) || c.key != sha256.Sum256(key) {
			continue
		}
		if hit && key != nil {
			by, ok = c.by, true
			continue
		}
		kept = append(kept, c)
	}
	d.codes = kept
	return by, ok
}

// passSize is the cookie's body: when it ends, until when it is fresh, and a random id. Cookies of version 1 lack the second.
const passSize = 8 + 8 + 16

// cookie is a new sign-in, or another copy of the one that asked for the code, signed.
func (d *door) cookie(by *pass, secure bool) *http.Cookie {
	now, body := d.now(), make([]byte, passSize)
	ends := now.Add(cookieLives)
	_, _ = rand.Read(body[16:]) // never fails
	if by == nil {
		binary.BigEndian.PutUint64(body[8:], uint64(now.Add(freshFor).Unix()))
	} else if id, err := base64.RawURLEncoding.DecodeString(by.id); err == nil { // what read has encoded
		ends = by.ends
		copy(body[16:], id)
	}
	binary.BigEndian.PutUint64(body, uint64(ends.Unix()))
	return &http.Cookie{Name: d.name, Value: "2." + encode(body) + "." + encode(sign(d.key(), body)), Path: "/", MaxAge: int(ends.Sub(now) / time.Second),
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
	_, ok := d.read(r)
	return ok
}

// fresh says whether a request carries a sign-in that is fresh.
func (d *door) fresh(r *http.Request) bool {
	p, ok := d.read(r)
	return ok && d.now().Before(p.fresh)
}

// read is the request's sign-in.
func (d *door) read(r *http.Request) (p pass, ok bool) {
	key := d.key()
	for _, c := range r.CookiesNamed(d.name) {
		version, rest, _ := strings.Cut(c.Value, ".")
		text, mac, _ := strings.Cut(rest, ".")
		if version != "1" && version != "2" || len(c.Value) > maxCookie || key == nil {
			continue
		}
		body, err := base64.RawURLEncoding.Strict().DecodeString(text)
		sum, err2 := base64.RawURLEncoding.Strict().DecodeString(mac)
		if err != nil || err2 != nil || !hmac.Equal(sum, sign(key, body)) {
			continue
		}
		switch {
		case version == "1" && len(body) == 8+16: // of before there was a freshness
			p = pass{id: encode(body[8:])}
		case version == "2" && len(body) == passSize:
			p = pass{id: encode(body[16:]), fresh: seconds(body[8:])}
		default:
			continue
		}
		if p.ends = seconds(body); d.now().Before(p.ends) && !d.ended(p.id) {
			return p, true
		}
	}
	return pass{}, false
}

func seconds(b []byte) time.Time { return time.Unix(int64(binary.BigEndian.Uint64(b)), 0) }

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
	p, ok := d.read(r)
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
	d.out[p.id] = p.ends.Unix()
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
	leave, err := s.bodies.room(r.Context(), false, size(r, maxOpenBody))
	if err != nil {
		return err
	}
	defer leave()
	var req codeRequest
	r.Body = http.MaxBytesReader(w, r.Body, maxOpenBody) // anybody may send it
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
	by, ok := s.guard.door.redeem(req.Code)
	if ok && by != nil && s.guard.door.ended(by.id) { // whoever asked for it has signed out since
		ok = false
	}
	if err := s.guard.guess(r, ok, true, wrong); err != nil {
		return err
	}
	if err := s.opt.Control.SignedIn(r.Context(), normalised(r.RemoteAddr)); err != nil {
		return err
	}
	secure := s.opt.TLS || strings.HasPrefix(r.Header.Get("Origin"), "https://")
	http.SetCookie(w, s.guard.door.cookie(by, secure))
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
	var by *pass
	if p, ok := s.guard.door.read(r); ok && r.Header.Get("Authorization") == "" {
		by = &p
	}
	text, ends := s.guard.door.invite(by)
	reply(w, http.StatusCreated, codeView{text, "/#code=" + text, ends.UTC()})
	return nil
}

// SignInPath is a fresh way in: the address behind the gateway's, with its one-time code.
func (s *Server) SignInPath() string {
	text, _ := s.s.guard.door.invite(nil)
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
