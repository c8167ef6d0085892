package stage

import (
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Do is what a fault does to a call.
type Do int

const (
	// Reply gives the fault's own answer instead of acting.
	Reply Do = iota + 1
	// CutBefore closes the connection without acting.
	CutBefore
	// CutAfter acts and closes the connection without an answer: the reply is swallowed.
	CutAfter
	// CutMiddle acts and closes the connection in the middle of the answer.
	CutMiddle
	// Hang neither acts nor answers until the client leaves, the faults are cleared, or the fake is closed.
	Hang
	// Delay waits for After, or until the faults are cleared, and then acts.
	Delay
)

// Rule is what the faults of all networks have in common.
type Rule struct {
	Call   string // which calls it spoils, by their name; empty: all
	Room   string // … and of which room, where the network's fake tells them apart; empty: all
	Do     Do
	Times  int           // how many it spoils; 0: until the faults are cleared
	Chance float64       // of each call, 0 to 1; 0: every call
	After  time.Duration // of Delay
}

// Fault is a network's own kind of fault: it has a rule, and says what Reply answers.
type Fault interface{ Rule() Rule }

// Faults are the rules of a fake; the first that fits a call is taken. Safe for concurrent use. As long as there are none,
// a call costs one atomic read.
type Faults[F Fault] struct {
	done <-chan struct{}

	some atomic.Bool
	mu   sync.Mutex // guards all below
	list []*standing[F]
	hang chan struct{} // closed by Clear
	rng  *rand.Rand
}

type standing[F Fault] struct {
	fault F
	Rule
}

// NewFaults makes an empty list whose hanging calls end when done is closed. Chances are drawn from seed.
func NewFaults[F Fault](seed uint64, done <-chan struct{}) *Faults[F] {
	return &Faults[F]{done: done, hang: make(chan struct{}), rng: Rand(seed)}
}

// Rand is a source of what a fake leaves to chance, the same for the same seed.
func Rand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x7061726c6579)) }

// Add puts a rule behind those that stand.
func (f *Faults[F]) Add(fault F) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, &standing[F]{fault, fault.Rule()})
	f.some.Store(true)
}

// Clear removes all rules and lets go what hangs: its connections are cut.
func (f *Faults[F]) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = nil
	f.some.Store(false)
	close(f.hang)
	f.hang = make(chan struct{})
}

// Hang keeps a call waiting as Do Hang does, and then cuts it.
func (f *Faults[F]) Hang(r *http.Request) {
	f.mu.Lock()
	until := f.hang
	f.mu.Unlock()
	hang(r, until, f.done)
}

func hang(r *http.Request, until, done <-chan struct{}) {
	_, _ = io.Copy(io.Discard, r.Body) // a client that leaves is noticed only behind the body
	select {
	case <-until:
	case <-r.Context().Done():
	case <-done:
	}
	panic(http.ErrAbortHandler)
}

// Hit is a fault that befell a call.
type Hit[F Fault] struct {
	Fault F
	rule  Rule
	hang  <-chan struct{}
	done  <-chan struct{}
}

// Take uses up the rule for a call; nil: there is none.
func (f *Faults[F]) Take(call string) *Hit[F] { return f.TakeIn("", call) }

// TakeIn is Take for a call that is about a room.
func (f *Faults[F]) TakeIn(room, call string) *Hit[F] {
	if !f.some.Load() {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, r := range f.list {
		if r.Call != "" && r.Call != call || r.Room != "" && r.Room != room || r.Chance > 0 && f.rng.Float64() >= r.Chance {
			continue
		}
		if r.Times > 0 {
			if r.Times--; r.Times == 0 {
				f.list = append(f.list[:i:i], f.list[i+1:]...)
			}
		}
		return &Hit[F]{r.fault, r.Rule, f.hang, f.done}
	}
	return nil
}

// Before does what precedes the act, and says whether to act at all. reply writes the answer of Reply. A connection is cut by
// a panic with http.ErrAbortHandler. Of no hit it is true.
func (h *Hit[F]) Before(r *http.Request, reply func(F)) bool {
	if h == nil {
		return true
	}
	switch h.rule.Do {
	case Reply:
		reply(h.Fault)
		return false
	case CutBefore:
		panic(http.ErrAbortHandler)
	case Hang:
		hang(r, h.hang, h.done)
	case Delay:
		t := time.NewTimer(h.rule.After)
		defer t.Stop()
		select {
		case <-t.C:
		case <-h.hang:
		case <-r.Context().Done():
			panic(http.ErrAbortHandler)
		case <-h.done:
			panic(http.ErrAbortHandler)
		}
	}
	return true
}

// After does what follows the act, with the answer that would be given; it does not return where the connection is cut. Of no
// hit it does nothing.
func (h *Hit[F]) After(w http.ResponseWriter, answer []byte) {
	if h == nil {
		return
	}
	switch h.rule.Do {
	case CutAfter:
		panic(http.ErrAbortHandler)
	case CutMiddle:
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(answer)+1))
		_, _ = w.Write(answer[:len(answer)/2]) // cut anyhow
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}
