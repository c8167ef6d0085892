package control

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley/channels"
	"parley/gateway/rights"
	"parley/gateway/spec"
	"parley/workspace"
	"parley/workspace/clip"
	"parley/workspace/store"
)

// SessionsIn says which sessions are wanted.
type SessionsIn struct {
	Agent workspace.AgentID `query:"agent" help:"only of this agent, by *id*"`
	Text  string            `query:"q" flag:"search" help:"only where these *words* stand in the title or were said"`
	spec.Page
}

// ListSessions lists the sessions that the caller reaches.
var ListSessions = Verb[SessionsIn, spec.List[SessionItem]]{
	Name: "sessions", Help: "List sessions of every channel, the last used first",
	Rights: rights.Row{Owner: rights.Direct, Member: rights.OwnDirect, Guest: rights.OwnDirect},
	HTTP:   "GET /v1/sessions", Group: "sessions", CLI: "session list",
	Do: func(ctx context.Context, c *Control, call Call, in SessionsIn) (spec.List[SessionItem], error) {
		page, err := c.list(ctx, call, in)
		if err != nil {
			return page, err
		}
		return page, c.answer(call, page)
	},
	Show: func(_ SessionsIn, l spec.List[SessionItem]) spec.Shown {
		s := spec.Shown{Heads: []string{"KEY", "NAME", "WHERE", "STATE", "USED", "LAST"}, Next: l.Next}
		for _, it := range l.Items {
			name := spec.Brief{Text: it.Name, Columns: 32}
			s.Rows = append(s.Rows, []any{ShortKey(it.Key), name, it.where(), it.state(), it.Usage, it.Updated})
		}
		return s
	},
}

// Lengths of what lists show, in characters.
const (
	titleLength   = 60
	previewLength = 140
)

// reaches says whether a session is one that the caller may see and be led to.
func reaches(call Call, k workspace.Key) bool {
	return rights.ReachesFrom(call.Actor, call.Kind, call.home(), k)
}

// home is the session that the chat's route names.
func (call Call) home() workspace.Key {
	if !call.Home.IsZero() {
		return call.Home
	}
	return call.Session
}

func (c *Control) list(ctx context.Context, call Call, q SessionsIn) (spec.List[SessionItem], error) {
	page := spec.Whole[SessionItem](nil)
	after, err := parseCursor(q.After)
	if err != nil {
		return page, err
	}
	heads, err := c.Store.Heads()
	if err != nil {
		return page, err
	}
	var last store.Head
	for _, h := range heads {
		if q.Agent != "" && h.Key.Agent != q.Agent || !reaches(call, h.Key) || q.After != "" && h.Compare(after) >= 0 {
			continue
		}
		if found, err := c.matches(h, strings.TrimSpace(q.Text)); err != nil {
			return page, err
		} else if !found {
			continue
		}
		if len(page.Items) == q.Limit {
			next := strconv.FormatInt(last.Updated.UnixMilli(), 10) + "." + string(last.ID)
			page.Next = &next
			break
		}
		it, err := c.item(h)
		if errors.Is(err, workspace.ErrNotFound) { // a newer generation came meanwhile
			continue
		}
		if err != nil {
			return page, err
		}
		last, page.Items = h, append(page.Items, it)
		if err := ctx.Err(); err != nil {
			return page, err
		}
	}
	return page, nil
}

// parseCursor reads where a page of sessions goes on.
func parseCursor(s string) (store.Head, error) {
	if s == "" {
		return store.Head{}, nil
	}
	ms, id, ok := strings.Cut(s, ".")
	at, err := strconv.ParseInt(ms, 10, 64)
	if !ok || err != nil {
		return store.Head{}, workspace.Say(workspace.ErrInvalid, "%.80q is no place in a list.", s)
	}
	return store.Head{ID: workspace.SessionID(id), Updated: time.UnixMilli(at).UTC()}, nil
}

// matches looks for a text in what names a session, then in what was said.
func (c *Control) matches(h store.Head, text string) (bool, error) {
	if text == "" {
		return true, nil
	}
	title, err := c.roomTitle(h.Key)
	if err != nil {
		return false, err
	}
	for _, s := range []string{h.Name, title, h.Key.Name, localTitle(h.Key), string(h.Key.Peer)} {
		if strings.Contains(strings.ToLower(s), strings.ToLower(text)) {
			return true, nil
		}
	}
	return c.Store.Mentions(h.ID, h.Last, text)
}

// BySession names a session.
type BySession struct {
	Session SessionWord `path:"key"`
}

// readSession is what reading a session needs.
var readSession = rights.Row{Owner: rights.Direct, Member: rights.OwnDirect}

var ShowSession = Verb[BySession, SessionItem]{
	Name: "session.read", Help: "Read the newest generation of a session", Rights: readSession,
	HTTP: "GET /v1/sessions/{key}", Group: "sessions",
	Do: func(_ context.Context, c *Control, call Call, in BySession) (SessionItem, error) {
		ses, err := c.find(call, in.Session)
		if err != nil {
			return SessionItem{}, err
		}
		return c.itemOf(ses)
	},
}

// keyOf is the session that a word names: a key, or in short a local one of the caller.
func (c *Control) keyOf(call Call, word SessionWord) (workspace.Key, error) {
	text := string(word)
	if text != "" && !strings.Contains(text, ":") {
		agent, name, named := strings.Cut(text, "/")
		if !named {
			id, err := c.agentOr("")
			if err != nil {
				return workspace.Key{}, err
			}
			agent, name = string(id), text
		}
		return rights.LocalKey(call.Actor, workspace.AgentID(agent), name), nil
	}
	k, err := workspace.ParseKey(text)
	if err != nil {
		return k, workspace.Say(err, "%q is not a session key.", clip.Runes(text, 200))
	}
	return k, nil
}

// noSession says that a session is not there for the caller.
func noSession(err error, k workspace.Key) error {
	return workspace.Say(err, "There is no session %q.", clip.Runes(k.String(), 200))
}

// find is the newest generation of a session that the caller reaches.
func (c *Control) find(call Call, word SessionWord) (workspace.Session, error) {
	k, err := c.keyOf(call, word)
	if err != nil {
		return workspace.Session{}, err
	}
	if !reaches(call, k) {
		return workspace.Session{}, noSession(workspace.ErrNotFound, k)
	}
	ses, err := c.Store.SessionByKey(k)
	if errors.Is(err, workspace.ErrNotFound) {
		return ses, noSession(err, k)
	}
	return ses, err
}

func (c *Control) itemOf(ses workspace.Session) (SessionItem, error) {
	last, err := c.Store.LastEntries(ses.ID, 1)
	if err != nil {
		return SessionItem{}, err
	}
	h := store.Head{ID: ses.ID, Key: ses.Key, Name: ses.Name, Updated: ses.Created}
	if len(last) > 0 {
		h.Last, h.Updated = last[0].N, last[0].At
	}
	return c.item(h)
}

func (c *Control) item(h store.Head) (SessionItem, error) {
	ses, err := c.Store.Session(h.ID)
	if err != nil {
		return SessionItem{}, err
	}
	k := h.Key
	it := SessionItem{Key: k.String(), SessionID: string(h.ID), Generation: ses.Gen, Generations: ses.Gen, Agent: string(k.Agent),
		Given: ses.Name, Local: k.Scope == workspace.ScopeLocal, Network: string(k.Network), Kind: string(k.Kind),
		Peer: string(k.Peer), Thread: string(k.Thread),
		Sequence: h.Last, Created: ses.Created.UTC(), Updated: h.Updated.UTC()}
	first, said, err := c.Store.Glimpse(h.ID)
	if err != nil {
		return it, err
	}
	it.Preview = oneLine(said, previewLength)
	used, err := c.usage.of(c.Store, h.ID)
	if err != nil {
		return it, err
	}
	it.Usage = UsageOf(used)
	lane := c.Turns.Lane(it.Key)
	it.Running, it.Waiting = lane.Running, len(lane.Waiting)
	for _, ch := range c.channels() {
		if ch.Network == it.Network && (k.Account == "" || ch.Account == string(k.Account)) {
			it.Channel = ch.Name
		}
	}
	title, err := c.roomTitle(k)
	if err != nil {
		return it, err
	}
	if it.Person, err = c.personOf(k); err != nil {
		return it, err
	}
	for _, name := range []string{ses.Name, title, oneLine(first, titleLength), k.Name, localTitle(k), k.String()} {
		if it.Name == "" {
			it.Name = name
		}
	}
	return it, nil
}

// localTitle is a local session's name as its person gave it.
func localTitle(k workspace.Key) string {
	if _, name, ok := strings.Cut(k.Local, ":"); ok {
		return name
	}
	return k.Local
}

// roomTitle is what the network calls the conversation of a key.
func (c *Control) roomTitle(k workspace.Key) (string, error) {
	if k.Scope != workspace.ScopeAddress {
		return "", nil
	}
	r, err := c.Store.RoomByAddress(channels.Address{Network: k.Network, Account: k.Account, Kind: k.Kind, Peer: k.Peer, Thread: k.Thread})
	if errors.Is(err, workspace.ErrNotFound) {
		return "", nil
	}
	return oneLine(r.Title, titleLength), err
}

// personOf is whose session it is; empty: several people's, or nobody known.
func (c *Control) personOf(k workspace.Key) (workspace.PersonID, error) {
	switch {
	case k.Scope == workspace.ScopePerson:
		return k.Person, nil
	case k.Scope == workspace.ScopeLocal:
		if person, _, ok := strings.Cut(k.Local, ":"); ok {
			return workspace.PersonID(person), nil
		}
		return "", nil
	case k.Kind != channels.DM || k.Account == "":
		return "", nil
	}
	p, err := c.Store.Person(k.Network, k.Account, channels.UserID(k.Peer))
	if errors.Is(err, workspace.ErrNotFound) {
		return "", nil
	}
	return p.ID, err
}

// oneLine is the first line of a text with something in it, in at most n characters.
func oneLine(s string, n int) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return clip.Runes(strings.TrimSpace(s), n)
}

// spent keeps what the runs of a session have cost, so that a list adds only what is new.
type spent struct {
	mu   sync.Mutex
	sums map[workspace.SessionID]sum
}

type sum struct {
	usage workspace.Usage
	upto  int64
}

const maxSums = 5000

func (s *spent) of(st *store.Store, id workspace.SessionID) (workspace.Usage, error) {
	s.mu.Lock()
	was := s.sums[id]
	s.mu.Unlock()
	more, upto, err := st.SessionUsage(id, was.upto)
	if err != nil {
		return workspace.Usage{}, err
	}
	now := sum{was.usage.Add(more), upto}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sums == nil || len(s.sums) >= maxSums {
		s.sums = map[workspace.SessionID]sum{}
	}
	s.sums[id] = now
	return now.usage, nil
}
