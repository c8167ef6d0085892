// Package workspace holds the nouns that stay: agents, people, sessions, inputs, runs, steps, entries, outbound
// answers and their parts, with the states each may be in. Its types are plain values; workspace/store reads and
// writes them. It also owns an agent's files on disk and the one type that may open a path for a tool.
//
// It starts no goroutine.
package workspace

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
)

// Identifiers. Only their maker may parse them; ids never define an order.
type (
	AgentID    string // as configured
	PersonID   string // as configured, or a ULID
	SessionID  string // ULID of one generation of a session
	RunID      string // ULID
	InputID    string // ULID
	RoomID     string // ULID
	OutboundID string // ULID
)

// IDs makes ULIDs from a clock that is passed in. Safe for concurrent use.
type IDs struct {
	Now func() time.Time

	mu      sync.Mutex
	entropy *ulid.MonotonicEntropy
}

// New is a fresh ULID in its 26-character text form.
func (g *IDs) New() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.entropy == nil {
		g.entropy = ulid.Monotonic(rand.Reader, 0)
	}
	ms := uint64(max(0, g.Now().UnixMilli()))
	id, err := ulid.New(ms, g.entropy)
	if err != nil { // the entropy of one millisecond ran over: begin again
		g.entropy = ulid.Monotonic(rand.Reader, 0)
		id = ulid.MustNew(ms, g.entropy)
	}
	return id.String()
}

// Short is the form in which people see an id: its last six characters, lower case.
func Short[T ~string](id T) string {
	s := string(id)
	if len(s) > 6 {
		s = s[len(s)-6:]
	}
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// Sentinels that callers branch on with errors.Is.
var (
	ErrNotFound = errors.New("not found")
	ErrConflict = errors.New("conflict")      // a compare-and-set failed: somebody else got there first
	ErrDenied   = errors.New("not permitted") // the actor's role does not reach
	ErrInvalid  = errors.New("invalid")
)

// Said is an error that carries one plain sentence for the chat beside the cause for the operator.
type Said struct {
	Sentence string
	Err      error
}

func (s *Said) Error() string {
	if s.Err == nil {
		return s.Sentence
	}
	return s.Err.Error()
}
func (s *Said) Unwrap() error { return s.Err }

// Say wraps err with the sentence that the chat may see.
func Say(err error, format string, args ...any) error {
	return &Said{Sentence: fmt.Sprintf(format, args...), Err: err}
}

// Sentence is what the chat may be told of err; ok is false when nobody wrote a sentence for it.
func Sentence(err error) (sentence string, ok bool) {
	var s *Said
	if errors.As(err, &s) {
		return s.Sentence, true
	}
	return "", false
}

// Role is what a person may do. The empty role is nobody.
type Role string

const (
	Owner Role = "owner"
	// LocalOwner is the person who owns this machine until the first owner is made, who takes over all that is theirs.
	LocalOwner      = "local"
	Member     Role = "member"
	Guest      Role = "guest"
	Nobody     Role = ""
)

// AtLeast says whether r reaches want.
func (r Role) AtLeast(want Role) bool { return r.rank() >= want.rank() }

func (r Role) rank() int { return slices.Index([]Role{Guest, Member, Owner}, r) + 1 }

// Actor is who asks for something, computed from ids at ingress and never from text.
type Actor struct {
	Person PersonID `json:"person"`
	Role   Role     `json:"role"`
	Name   string   `json:"name,omitempty"` // a label
}
