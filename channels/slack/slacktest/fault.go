package slacktest

import (
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Do is what a Fault does to a call.
type Do int

const (
	// Reply gives Status and Body, or Error in Slack's form, instead of acting; with Status 429 Retry-After is After.
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

// Fault spoils calls of the Web API.
type Fault struct {
	Method string // such as "chat.postMessage"; "upload", "download" and "response_url" for what is no method; empty: all
	Do     Do
	Times  int     // how many calls it spoils; 0: until ClearFaults
	Chance float64 // of each call, 0 to 1; 0: every call
	Status int     // of Reply
	Body   string  // of Reply: sent as HTML
	Error  string  // of Reply: {"ok":false,"error":…} with status 200
	After  time.Duration
}

// BadGateway is a page as Slack's front end gives in trouble.
const BadGateway = "<html><head><title>502 Bad Gateway</title></head><body><center><h1>502 Bad Gateway</h1></center></body></html>\n"

// faults holds the rules; the first that matches is taken.
type faults struct {
	any  atomic.Bool // there are rules: the only thing that a healthy call looks at
	mu   sync.Mutex
	list []*Fault
	hang chan struct{} // closed by ClearFaults
	rng  *rand.Rand
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x7061726c6579)) }

// AddFault adds a rule behind those that stand.
func (s *Server) AddFault(f Fault) {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	if s.faults.hang == nil {
		s.faults.hang = make(chan struct{})
	}
	s.faults.list = append(s.faults.list, &f)
	s.faults.any.Store(true)
}

// ClearFaults removes all rules, lets hanging calls go (their connections are cut) and ends a Freeze.
func (s *Server) ClearFaults() {
	s.faults.mu.Lock()
	s.faults.list = nil
	s.faults.any.Store(false)
	if s.faults.hang != nil {
		close(s.faults.hang)
		s.faults.hang = nil
	}
	s.faults.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen = false
	s.events.mode = Faults{}
	s.flushHeld()
	for _, k := range s.sockets {
		k.stir()
	}
}

// Freeze makes the server deaf: it accepts every call and answers none, and its sockets neither speak nor ping.
func (s *Server) Freeze() {
	s.AddFault(Fault{Do: Hang})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen = true
}

type hit struct {
	Fault
	hang chan struct{}
}

func (f *faults) take(name string) (hit, bool) {
	if !f.any.Load() {
		return hit{}, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, r := range f.list {
		if r.Method != "" && r.Method != name {
			continue
		}
		if r.Chance > 0 && f.rng.Float64() >= r.Chance {
			continue
		}
		if r.Times > 0 {
			if r.Times--; r.Times == 0 {
				f.list = append(f.list[:i:i], f.list[i+1:]...)
			}
		}
		return hit{*r, f.hang}, true
	}
	return hit{}, false
}

// before does what precedes the act, and says whether to act at all.
func (s *Server) before(w http.ResponseWriter, r *http.Request, f hit) bool {
	switch f.Do {
	case Reply:
		s.answerFault(w, f.Fault)
		return false
	case CutBefore:
		panic(http.ErrAbortHandler)
	case Hang:
		_, _ = io.Copy(io.Discard, r.Body) // a client that leaves is noticed only behind the body
		select {
		case <-f.hang:
		case <-r.Context().Done():
		case <-s.done:
		}
		panic(http.ErrAbortHandler)
	case Delay:
		t := time.NewTimer(f.After)
		defer t.Stop()
		select {
		case <-t.C:
		case <-r.Context().Done():
			panic(http.ErrAbortHandler)
		case <-s.done:
			panic(http.ErrAbortHandler)
		}
	}
	return true
}

func (s *Server) answerFault(w http.ResponseWriter, f Fault) {
	switch {
	case f.Error != "":
		writeFailure(w, fail(f.Error))
	case f.Status == http.StatusTooManyRequests && f.Body == "":
		writeFailure(w, limited(max(time.Second, f.After)))
	default:
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(f.Status)
		_, _ = io.WriteString(w, f.Body) // the client may be gone
	}
}

// after does what follows the act; it does not return where the connection is cut.
func (s *Server) after(w http.ResponseWriter, f hit) {
	switch f.Do {
	case CutAfter:
		s.watch.changed()
		panic(http.ErrAbortHandler)
	case CutMiddle:
		s.watch.changed()
		const half = `{"ok":true,"chan`
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(half)+100))
		_, _ = io.WriteString(w, half) // cut anyhow
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}
