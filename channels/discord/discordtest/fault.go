package discordtest

import (
	"io"
	"net/http"
	"strconv"
	"time"
)

// Do is what a Fault does to a request.
type Do int

const (
	// Reply gives Status and Body instead of acting; with Status 429 and no Body, Discord's own with After.
	Reply Do = iota + 1
	// CutBefore closes the connection without acting.
	CutBefore
	// CutAfter acts and closes the connection without an answer: the reply is swallowed.
	CutAfter
	// CutMiddle acts and closes the connection in the middle of the answer.
	CutMiddle
	// Hang neither acts nor answers until the client leaves, ClearFaults or Close.
	Hang
	// Delay waits for After, then acts.
	Delay
)

// Fault spoils REST requests.
type Fault struct {
	Route  string // such as "POST /channels/{channel}/messages"; empty: all
	Do     Do
	Times  int     // how many it spoils; 0: until ClearFaults
	Chance float64 // of each, 0 to 1; 0: every one
	Status int     // of Reply
	Body   string  // of Reply
	Global bool    // of a 429
	After  time.Duration
}

// BadGateway is the page of the front end in trouble, Banned the CDN's for an address with too many bad requests.
const (
	BadGateway = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n<hr><center>cloudflare</center>\r\n</body>\r\n</html>\r\n"
	Banned     = htmlLimited
)

// AddFault adds a rule behind those that stand; the first that matches is taken.
func (s *Server) AddFault(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &f)
}

// ClearFaults removes all rules and those of the gateway, and lets what hangs go: its connections are cut.
func (s *Server) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults, s.gate.fault = nil, GatewayFault{}
	close(s.hang)
	s.hang = make(chan struct{})
	s.note()
	s.wakeAll()
}

// Freeze makes the server deaf: REST and the gateway accept everything and answer nothing, until ClearFaults.
func (s *Server) Freeze() {
	s.AddFault(Fault{Do: Hang})
	s.Gateway(func(f *GatewayFault) { f.Frozen = true })
}

type hit struct {
	Fault
	hang chan struct{}
}

// fault takes the rule for a request. The caller holds s.mu.
func (s *Server) fault(name string) (hit, bool) {
	for i, r := range s.faults {
		if r.Route != "" && r.Route != name || r.Chance > 0 && s.rng.Float64() >= r.Chance {
			continue
		}
		if r.Times > 0 {
			if r.Times--; r.Times == 0 {
				s.faults = append(s.faults[:i:i], s.faults[i+1:]...)
			}
		}
		return hit{*r, s.hang}, true
	}
	return hit{}, false
}

// before does what precedes the act, and says whether to act at all.
func (s *Server) before(w http.ResponseWriter, r *http.Request, f hit) bool {
	switch f.Do {
	case Reply:
		s.answer(w, f.Fault)
		return false
	case CutBefore:
		panic(http.ErrAbortHandler)
	case Hang:
		_, _ = io.Copy(io.Discard, r.Body) // a client that leaves is noticed only behind the body
		select {
		case <-f.hang:
		case <-r.Context().Done():
		case <-s.life.done:
		}
		panic(http.ErrAbortHandler)
	case Delay:
		t := time.NewTimer(f.After)
		defer t.Stop()
		select {
		case <-t.C:
		case <-f.hang:
		case <-r.Context().Done():
			panic(http.ErrAbortHandler)
		case <-s.life.done:
			panic(http.ErrAbortHandler)
		}
	}
	return true
}

func (s *Server) answer(w http.ResponseWriter, f Fault) {
	if f.Body == "" && f.Status == http.StatusTooManyRequests {
		s.refuse(w, s.limited(w, max(f.After, time.Millisecond), f.Global))
		return
	}
	if f.Body == "" {
		s.refuse(w, refuse(f.Status, 0, strconv.Itoa(f.Status)+": "+http.StatusText(f.Status)))
		return
	}
	if f.After > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(f.After/time.Second)))
	}
	w.Header().Set("Content-Type", "text/html; charset=UTF-8")
	w.WriteHeader(f.Status)
	_, _ = w.Write([]byte(f.Body)) // the client may be gone
}

// after does what follows the act; it does not return where the connection is cut.
func (s *Server) after(w http.ResponseWriter, f hit, out []byte) {
	switch f.Do {
	case CutAfter:
		panic(http.ErrAbortHandler)
	case CutMiddle:
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(out)+1))
		_, _ = w.Write(out[:len(out)/2]) // cut anyhow
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}
