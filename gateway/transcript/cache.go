// Package transcript keeps what is remembered of sessions between turns: the newest part of each transcript, the summary
// that stands for what is older, and what others said since the last turn. It is never the record, always a copy of it:
// whatever is dropped is read again.
//
// It starts no goroutine.
package transcript

import (
	"errors"
	"slices"
	"sync"

	"parley/channels"
	"parley/workspace"
)

// Bounds of what is kept.
const (
	MaxEntries = 400 // of one session, that are kept in memory and offered to the prompt

	maxContext  = 20       // lines of others that a turn may quote
	maxBytes    = 16 << 20 // of transcripts, all sessions together
	maxSessions = 20_000   // those that have no transcript to count
)

// Store is what a cache reads of the record.
type Store interface {
	Session(id workspace.SessionID) (workspace.Session, error)
	SessionByKey(key workspace.Key) (workspace.Session, error)
	Entries(session workspace.SessionID, after int64, limit int) ([]workspace.Entry, error)
	LastEntries(session workspace.SessionID, limit int) ([]workspace.Entry, error)
	// LastTaken is the seq of the newest input that a turn of the session took; 0: none.
	LastTaken(session workspace.SessionID) (int64, error)
	// ContextInputs lists the newest n lines of others in a session that came after an input, oldest first.
	ContextInputs(session workspace.SessionID, after int64, n int) ([]workspace.Input, error)
}

// Cache keeps as many transcripts as there is room for. Safe for concurrent use.
type Cache struct {
	store Store
	mu    sync.Mutex // taken after a session's
	byKey map[string]*Session
	size  int
}

// New makes an empty cache over a store.
func New(s Store) *Cache { return &Cache{store: s, byKey: map[string]*Session{}} }

// get returns the session's memory; it is empty until Load.
func (c *Cache) get(key string) *Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.byKey[key]
	if s == nil {
		s = &Session{cache: c, key: key}
		if len(c.byKey) >= maxSessions {
			c.dropAny()
		}
		c.byKey[key] = s
	}
	return s
}

// peek returns it only if it is in memory; nil: it is not.
func (c *Cache) peek(key string) *Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byKey[key]
}

// Forget drops what is remembered: the next turn reads the record.
func (c *Cache) Forget(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.byKey[key]; s != nil {
		c.drop(s)
	}
}

func (c *Cache) drop(s *Session) {
	delete(c.byKey, s.key)
	c.size -= s.size
}

// dropAny makes room. Which session it drops is chance: when a few more sessions speak in turn than there is room for,
// dropping the one that waited longest would drop each just before it speaks.
func (c *Cache) dropAny() {
	for _, s := range c.byKey {
		c.drop(s)
		return
	}
}

// Load makes sure that the memory is of the generation id, with its transcript up to but without the run that is just
// beginning.
func (c *Cache) Load(key string, id workspace.SessionID, run workspace.RunID) (*Session, error) {
	s := c.get(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stored.ID == id {
		return s, nil
	}
	ses, err := c.store.Session(id)
	if err != nil {
		return nil, err
	}
	list, err := c.store.LastEntries(id, MaxEntries)
	if err != nil {
		return nil, err
	}
	sum, err := c.summary(ses)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(sum.Keep(list), func(e workspace.Entry) bool { return e.RunID == run })
	s.stored, s.entries, s.summary, s.tooLong = ses, nil, sum, false
	s.grow(list)
	return s, nil
}

// History reads the record: what a prompt that holds the newest most entries would hold of a session, without events,
// and the summary of what is older.
func (c *Cache) History(ses workspace.Session, most int) (Summary, []workspace.Entry, error) {
	sum, err := c.summary(ses)
	if err != nil {
		return sum, nil, err
	}
	list, err := c.store.LastEntries(ses.ID, most)
	if err != nil {
		return sum, nil, err
	}
	return sum, slices.DeleteFunc(sum.Keep(list), func(e workspace.Entry) bool { return e.Role == workspace.RoleEvent }), nil
}

// summary reads the summary of a generation.
func (c *Cache) summary(ses workspace.Session) (Summary, error) {
	if ses.Compacted == 0 {
		return Summary{}, nil
	}
	list, err := c.store.Entries(ses.ID, ses.Compacted-1, 1)
	if err != nil || len(list) == 0 {
		return Summary{}, err
	}
	return Summary{Text: list[0].Body.Plain(), To: list[0].Body.To}, nil
}

// Fresh says that no turn of the session ever was.
func (c *Cache) Fresh(key workspace.Key) (bool, error) {
	ses, err := c.store.SessionByKey(key)
	if errors.Is(err, workspace.ErrNotFound) {
		return true, nil
	}
	if err != nil || ses.Gen > 1 {
		return false, err
	}
	taken, err := c.store.LastTaken(ses.ID)
	return taken == 0, err
}

// Overrides are what is set for a session, from memory or, where it is not known there, from the record.
func (c *Cache) Overrides(key string) workspace.Overrides {
	if s := c.peek(key); s != nil {
		if over, known := s.overrides(); known {
			return over
		}
	}
	k, err := workspace.ParseKey(key) // it has not spoken for a while, or was changed just now
	if err != nil {
		return workspace.Overrides{}
	}
	ses, err := c.store.SessionByKey(k)
	if err != nil {
		return workspace.Overrides{}
	}
	return ses.Overrides
}

// Said is what others said in a session since its last turn, with the number of the last line. When the record cannot be
// asked, what memory has comes with the error.
func (c *Cache) Said(key workspace.Key) (lines []workspace.ContextLine, last int, err error) {
	s := c.get(key.String())
	if key.Kind != "" && key.Kind != channels.DM {
		err = s.readSaid(key)
	}
	lines, last = s.lines()
	return lines, last, err
}

// Heard forgets the lines up to the numbered one: they are stored with a turn.
func (c *Cache) Heard(key string, last int) {
	if s := c.peek(key); s != nil {
		s.heard(last)
	}
}

// Note keeps a line that somebody said beside a turn. seq is its input; 0: it has none that may change.
func (c *Cache) Note(key string, seq int64, line workspace.ContextLine) { c.get(key).note(seq, line) }

// Amend gives a line its new text; without one it was taken back, and nobody quotes it.
func (c *Cache) Amend(key string, seq int64, text string) {
	if s := c.peek(key); s != nil {
		s.amend(seq, text)
	}
}
