package transcript

import (
	"errors"
	"slices"
	"sync"

	"parley/agentloop"
	"parley/workspace"
)

// Session is what is remembered of one session. Safe for concurrent use.
type Session struct {
	// Known is what the loop made of the entries. The session's one turn uses it.
	Known agentloop.Known

	cache *Cache
	key   string
	size  int // in bytes, under the cache's lock

	mu      sync.Mutex
	stored  workspace.Session // as it was loaded; zero before
	entries []workspace.Entry
	summary Summary
	tooLong bool // the model refused the conversation's length since

	said     []remark // by others, since the last turn
	lastSaid int      // number of the last of them
	asked    bool     // what the journal holds of them is here
}

// remark is a line that was not said to us. n counts them; seq is its input, 0: it has none that may change.
type remark struct {
	workspace.ContextLine
	n   int
	seq int64
}

// Append adds what was stored and returns the transcript with it, which nobody changes.
func (s *Session) Append(entries []workspace.Entry) []workspace.Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grow(entries)
	return s.entries[:len(s.entries):len(s.entries)]
}

// grow adds entries and has the cache count them. The lock is held.
func (s *Session) grow(entries []workspace.Entry) {
	size := s.size
	if len(s.entries) == 0 {
		size = 0 // it was loaded again
	}
	for _, e := range entries {
		if e.Role != workspace.RoleEvent {
			s.entries = append(s.entries, e)
			size += entrySize(e)
		}
	}
	if over := len(s.entries) - MaxEntries/2; over > MaxEntries/2 { // by half, so that the prompt's prefix is not another one each turn
		for _, e := range s.entries[:over] {
			size -= entrySize(e)
		}
		s.entries = slices.Clone(s.entries[over:])
	}
	c := s.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey[s.key] != s {
		return // dropped meanwhile: nobody counts it
	}
	c.size += size - s.size
	s.size = size
	for c.size > maxBytes && len(c.byKey) > 1 {
		c.dropAny()
	}
}

// entrySize is about what an entry takes in memory.
func entrySize(e workspace.Entry) int {
	n := 350
	for _, c := range e.Body.Content {
		n += 150 + len(c.Text) + len(c.Args)
	}
	return n
}

// Size is about how many bytes of the session the prompt holds.
func (s *Session) Size() int {
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	return s.size
}

// Stored is the session as it was loaded, with what is set for it.
func (s *Session) Stored() workspace.Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stored
}

// overrides of the session; known is false before Load.
func (s *Session) overrides() (o workspace.Overrides, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stored.Overrides, s.stored.ID != ""
}

// Summary is what stands for the older part; empty: none was made.
func (s *Session) Summary() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.summary.Text
}

// Overflowed notes that the model refused the conversation's length: before the next turn it is summed up.
func (s *Session) Overflowed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tooLong = true
}

// TooLong says that the model refused the conversation's length since it was loaded.
func (s *Session) TooLong() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tooLong
}

// readSaid reads what others said since the newest turn of a group, where memory does not know it: after a restart.
func (s *Session) readSaid(key workspace.Key) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked {
		return nil
	}
	s.asked = true
	store := s.cache.store
	ses, err := store.SessionByKey(key)
	if errors.Is(err, workspace.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	after, err := store.LastTaken(ses.ID)
	if err != nil {
		return err
	}
	lines, err := store.ContextInputs(ses.ID, after, maxContext)
	if err != nil {
		return err
	}
	s.said = nil
	for _, in := range lines {
		s.say(in.Seq, workspace.ContextLine{Name: in.Sender, Text: in.Text})
	}
	return nil
}

func (s *Session) note(seq int64, l workspace.ContextLine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.say(seq, l)
}

func (s *Session) amend(seq int64, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = slices.DeleteFunc(s.said, func(r remark) bool { return r.seq == seq && text == "" })
	for i := range s.said {
		if s.said[i].seq == seq {
			s.said[i].Text = text
		}
	}
}

// say adds a line. The lock is held.
func (s *Session) say(seq int64, l workspace.ContextLine) {
	s.lastSaid++
	s.said = append(s.said, remark{l, s.lastSaid, seq})
	if len(s.said) > maxContext {
		s.said = s.said[len(s.said)-maxContext:]
	}
}

// lines are what was said since the last turn, with the number of the last one.
func (s *Session) lines() (list []workspace.ContextLine, last int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.said {
		list = append(list, r.ContextLine)
	}
	return list, s.lastSaid
}

func (s *Session) heard(last int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = slices.DeleteFunc(s.said, func(r remark) bool { return r.n <= last })
}
