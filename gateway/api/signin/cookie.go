package signin

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// A sign-in lives thirty days, and is fresh for ten minutes: then it may do what would outlive it (control.Call.Borrowed).
const (
	cookieLives = 30 * 24 * time.Hour
	freshFor    = 10 * time.Minute
	maxCookie   = 200
)

// signIns are those of browsers: each is a cookie, which is signed with a key derived from the gateway's token. So it
// outlives a restart, and a changed token signs everybody out. Safe for concurrent use.
type signIns struct {
	token func() string
	now   func() time.Time
	name  string // of the cookie: browsers keep them by host and not by port
	keep  Ended
	log   *slog.Logger

	mu  sync.Mutex
	out map[string]int64 // sign-ins that were ended, until they would have ended by themselves, in Unix seconds; nil: not read yet
}

// Ended keeps the list of sign-ins that were ended before their time. Load of nothing is empty.
type Ended interface {
	Load() (string, error)
	Save(list string) error
}

// signIn is one, as its cookie says.
type signIn struct {
	id    string
	ends  time.Time
	fresh time.Time // until then it may do what outlives it
}

func newSignIns(o Options) *signIns {
	s := &signIns{token: o.Token, now: o.Now, name: "parley", keep: o.Ended, log: o.Log}
	if _, port, err := net.SplitHostPort(o.Addr); err == nil {
		s.name = "parley_" + port
	}
	return s
}

// key signs cookies; nil: nobody gets in.
func (s *signIns) key() []byte {
	token := s.token()
	if token == "" {
		return nil
	}
	m := hmac.New(sha256.New, []byte(token))
	m.Write([]byte("parley sign-in 1"))
	return m.Sum(nil)
}

// bodySize is the cookie's body: when it ends, until when it is fresh, and a random id. Cookies of version 1 lack the second.
const bodySize = 8 + 8 + 16

// cookie is a sign-in, signed: another copy of the one that asked for the code, or a fresh one, new or by the id that the browser has.
func (s *signIns) cookie(by *signIn, id string, secure bool) *http.Cookie {
	now, body := s.now(), make([]byte, bodySize)
	ends := now.Add(cookieLives)
	_, _ = rand.Read(body[16:]) // never fails
	if by == nil {
		binary.BigEndian.PutUint64(body[8:], uint64(now.Add(freshFor).Unix()))
	} else {
		ends, id = by.ends, by.id
	}
	if known, err := base64.RawURLEncoding.DecodeString(id); err == nil { // what read has encoded
		copy(body[16:], known)
	}
	binary.BigEndian.PutUint64(body, uint64(ends.Unix()))
	return &http.Cookie{Name: s.name, Value: "2." + encode(body) + "." + encode(sign(s.key(), body)), Path: "/",
		MaxAge:   int(ends.Sub(now) / time.Second),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: secure}
}

func sign(key, body []byte) []byte {
	m := hmac.New(sha256.New, key)
	m.Write(body)
	return m.Sum(nil)
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// valid says whether a request carries a sign-in that holds.
func (s *signIns) valid(r *http.Request) bool {
	_, ok := s.read(r)
	return ok
}

// fresh says whether a request carries a sign-in that is fresh.
func (s *signIns) fresh(r *http.Request) bool {
	p, ok := s.read(r)
	return ok && s.now().Before(p.fresh)
}

// read is the request's sign-in.
func (s *signIns) read(r *http.Request) (p signIn, ok bool) {
	key := s.key()
	for _, c := range r.CookiesNamed(s.name) {
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
			p = signIn{id: encode(body[8:])}
		case version == "2" && len(body) == bodySize:
			p = signIn{id: encode(body[16:]), fresh: seconds(body[8:])}
		default:
			continue
		}
		if p.ends = seconds(body); s.now().Before(p.ends) && !s.ended(p.id) {
			return p, true
		}
	}
	return signIn{}, false
}

func seconds(b []byte) time.Time { return time.Unix(int64(binary.BigEndian.Uint64(b)), 0) }

// ended says whether a sign-in was ended; one that cannot be known is.
func (s *signIns) ended(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.load(); err != nil {
		s.log.Error("ended sign-ins cannot be read", "err", err)
		return true
	}
	_, out := s.out[id]
	return out
}

// load reads the list once. The lock is held.
func (s *signIns) load() error {
	if s.out != nil {
		return nil
	}
	out, text := map[string]int64{}, ""
	if s.keep != nil {
		var err error
		if text, err = s.keep.Load(); err != nil {
			return err
		}
	}
	if text != "" {
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			return err
		}
	}
	s.out = out
	return nil
}

// end signs out: the cookie is worth nothing from now on, wherever a copy of it is. The list is kept before anybody is
// told.
func (s *signIns) end(r *http.Request) error {
	p, ok := s.read(r)
	if !ok {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for old, at := range s.out {
		if s.now().Unix() > at {
			delete(s.out, old)
		}
	}
	s.out[p.id] = s.now().Add(cookieLives).Unix() // a younger copy may end later than this one
	if s.keep == nil {
		return nil
	}
	text, err := json.Marshal(s.out)
	if err == nil {
		err = s.keep.Save(string(text))
	}
	return err
}
