package gateway

import (
	"errors"
	"slices"
	"sync"

	"parley/agentloop"
	"parley/channels"
	"parley/workspace"
	"parley/workspace/store"
)

const (
	maxHistory   = 400      // entries that are kept in memory and offered to the prompt
	maxContext   = 20       // lines of others that a turn may quote
	sessionBytes = 16 << 20 // transcripts kept in memory, all sessions together
)

// session is what the gateway remembers of a session between turns: never the record, always a copy of it.
type session struct {
	key  string
	mu   sync.Mutex
	ses  workspace.Session
	hist []workspace.Entry
	past past
	told agentloop.Known // what the loop made of hist
	said []remark        // by others, since the last turn

	lastSaid  int  // number of the last of them
	overheard bool // what the journal holds of them is here
	size      int  // under sessions.mu
}

// remark is a line that was not said to us. n counts them; seq is its input, 0: it has none that may change.
type remark struct {
	workspace.ContextLine
	n   int
	seq int64
}

// sessions keeps as many transcripts as there is room for. Safe for concurrent use.
type sessions struct {
	store *store.Store
	mu    sync.Mutex
	byKey map[string]*session
	size  int
}

func newSessions(s *store.Store) *sessions {
	return &sessions{store: s, byKey: map[string]*session{}}
}

// get returns the session's memory; it is empty until load.
func (ss *sessions) get(key string) *session {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s := ss.byKey[key]
	if s == nil {
		s = &session{key: key}
		if len(ss.byKey) >= maxSessions {
			ss.dropAny()
		}
		ss.byKey[key] = s
	}
	return s
}

// peek returns it only if it is in memory.
func (ss *sessions) peek(key string) *session {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.byKey[key]
}

// forget drops what is remembered: the next turn reads the record.
func (ss *sessions) forget(key string) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if s := ss.byKey[key]; s != nil {
		ss.drop(s)
	}
}

func (ss *sessions) drop(s *session) {
	delete(ss.byKey, s.key)
	ss.size -= s.size
}

// dropAny makes room. Whom it hits is chance: when a few more sessions speak in turn than there is room for, dropping the
// one that waited longest would drop each just before it speaks.
func (ss *sessions) dropAny() {
	for _, s := range ss.byKey {
		ss.drop(s)
		return
	}
}

// load makes sure that the memory is of the generation id, with its transcript up to but without the run that is
// just beginning.
func (ss *sessions) load(key string, id workspace.SessionID, run workspace.RunID) (*session, error) {
	s := ss.get(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ses.ID == id {
		return s, nil
	}
	ses, err := ss.store.Session(id)
	if err != nil {
		return nil, err
	}
	hist, err := ss.store.LastEntries(id, maxHistory)
	if err != nil {
		return nil, err
	}
	was, err := pastOf(ss.store, ses)
	if err != nil {
		return nil, err
	}
	hist = slices.DeleteFunc(was.inPrompt(hist), func(e workspace.Entry) bool { return e.RunID == run })
	s.ses, s.hist, s.past = ses, nil, was
	ss.grow(s, hist)
	return s, nil
}

// overhear reads what others said since the newest turn of a group, where memory does not know it: after a restart.
func (ss *sessions) overhear(key workspace.Key) error {
	if key.Kind == "" || key.Kind == channels.DM {
		return nil
	}
	s := ss.get(key.String())
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.overheard {
		return nil
	}
	s.overheard = true
	ses, err := ss.store.SessionByKey(key)
	if errors.Is(err, workspace.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	after, err := ss.store.LastTaken(ses.ID)
	if err != nil {
		return err
	}
	lines, err := ss.store.ContextInputs(ses.ID, after, maxContext)
	if err != nil {
		return err
	}
	s.said = nil
	for _, in := range lines {
		s.say(in.Seq, workspace.ContextLine{Name: in.Sender, Text: in.Text})
	}
	return nil
}

// append adds what was stored and returns the transcript with it, which nobody changes. The session's lock is not held.
func (ss *sessions) append(s *session, entries []workspace.Entry) []workspace.Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	ss.grow(s, entries)
	return s.hist[:len(s.hist):len(s.hist)]
}

func (ss *sessions) grow(s *session, entries []workspace.Entry) {
	size := s.size
	if len(s.hist) == 0 {
		size = 0 // load begins anew
	}
	for _, e := range entries {
		if e.Role != workspace.RoleEvent {
			s.hist = append(s.hist, e)
			size += entrySize(e)
		}
	}
	if over := len(s.hist) - maxHistory/2; over > maxHistory/2 { // by half, so that the prompt's prefix is not another one each turn
		for _, e := range s.hist[:over] {
			size -= entrySize(e)
		}
		s.hist = slices.Clone(s.hist[over:])
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.byKey[s.key] != s {
		return // dropped meanwhile: nobody counts it
	}
	ss.size += size - s.size
	s.size = size
	for ss.size > sessionBytes && len(ss.byKey) > 1 {
		ss.dropAny()
	}
}

// maxSessions bounds those in memory that have no transcript to count.
const maxSessions = 20_000

func entrySize(e workspace.Entry) int {
	n := 350
	for _, c := range e.Body.Content {
		n += 150 + len(c.Text) + len(c.Args)
	}
	return n
}

// note keeps a line that somebody said beside a turn.
func (s *session) note(seq int64, l workspace.ContextLine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.say(seq, l)
}

// amend gives a line its new text; without one it was taken back, and nobody quotes it.
func (s *session) amend(seq int64, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = slices.DeleteFunc(s.said, func(r remark) bool { return r.seq == seq && text == "" })
	for i := range s.said {
		if s.said[i].seq == seq {
			s.said[i].Text = text
		}
	}
}

func (s *session) say(seq int64, l workspace.ContextLine) {
	s.lastSaid++
	s.said = append(s.said, remark{l, s.lastSaid, seq})
	if len(s.said) > maxContext {
		s.said = s.said[len(s.said)-maxContext:]
	}
}

// lines are what was said since the last turn, with the number of the last one.
func (s *session) lines() (list []workspace.ContextLine, last int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.said {
		list = append(list, r.ContextLine)
	}
	return list, s.lastSaid
}

// heard forgets the lines up to the numbered one: they are stored with a turn.
func (s *session) heard(last int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said = slices.DeleteFunc(s.said, func(r remark) bool { return r.n <= last })
}

// overrides of the session; known is false before load.
func (s *session) overrides() (o workspace.Overrides, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ses.Overrides, s.ses.ID != ""
}
