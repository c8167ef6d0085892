package channels

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"
)

// Intake errors: nothing of the batch was taken.
var (
	ErrBusy       = errors.New("gateway is at its memory ceiling")
	ErrUnwritable = errors.New("the journal cannot be written")
)

// ErrTooLarge is returned by an Opener, and by reading what it opened, for a file that is larger than was said or than
// the network gives away. Trying again is no use.
var ErrTooLarge = errors.New("the file is too large")

// Class of a failed Send. The adapter classifies, the core decides.
type Class string

const (
	Retry      Class = "retry"       // surely not sent; try again after After
	BadMessage Class = "bad_message" // surely not sent, and never will be in this form
	PeerGone   Class = "peer_gone"   // surely not sent: blocked, left, deleted; the channel is well
	Fatal      Class = "fatal"       // surely not sent: the account itself is refused
	Unknown    Class = "unknown"     // it may have been sent
)

// Error is a classified failure. Err is cleaned of credentials by the adapter.
type Error struct {
	Class  Class
	After  time.Duration // of Retry; 0: the core's own backoff
	Global bool          // of Retry: holds the whole account, not the room
	Moved  PeerID        // of PeerGone: the peer's new id, when the network told it
	Err    error
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %v", e.Class, e.Err) }
func (e *Error) Unwrap() error { return e.Err }

// ClassOf is the class of err: Unknown for everything that nobody classified.
func ClassOf(err error) Class {
	var e *Error
	if errors.As(err, &e) {
		return e.Class
	}
	return Unknown
}

// CauseOf is what is said of err to people: why the network was not reached, or what it said, without the class, which is for the
// gateway, and what was tried around it.
func CauseOf(err error) string {
	if plain := reason(err); plain != "" {
		return plain
	}
	var e *Error
	if errors.As(err, &e) && e.Err != nil {
		return e.Err.Error()
	}
	return err.Error()
}

// Clock is the time that is passed in.
type Clock interface {
	Now() time.Time
}

// Deps is what an adapter may use.
type Deps struct {
	Log   *slog.Logger
	HTTP  *http.Client // the one pooled client; no timeout of its own, use contexts
	Clock Clock
	// Dir is the gateway's data directory, for what a network makes an adapter keep on disk; it may not exist yet when
	// New is called.
	Dir string
}

// Factory makes a channel from its own section of the configuration, which decode reads strictly.
type Factory struct {
	Network Network
	// Options is a pointer to the zero value of the section's type; configs reads names and docs from it.
	Options func() any
	New     func(name string, options any, d Deps) (Channel, error)
	// Manifest is the description of the app that the network wants before there is an account; nil: it wants none.
	Manifest func(ManifestAsk) ([]byte, error)
	Setup    Setup
}

// ManifestAsk is what an app is to be called and to offer.
type ManifestAsk struct {
	Name     string     // of the bot
	URL      string     // where the network posts events; empty: the gateway fetches them
	Commands []MenuItem // beside the one that takes all names
}
