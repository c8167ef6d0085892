// Package session is the verbs about sessions: which there are, what a chat writes into, and their names, lives and transcripts.
package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"parley/agentloop/lane"
	"parley/channels"
	"parley/gateway/control"
	"parley/gateway/rights"
	"parley/gateway/spec"
	"parley/gateway/transport"
	"parley/workspace"
	"parley/workspace/store"
)

// Sessions does the verbs about sessions. All fields are needed.
type Sessions struct {
	*control.Kernel
	Store    Store
	Lanes    Lanes
	Channels *transport.Channels
	Outbox   Outbox
	Spent    *control.Spent
	Moved    func()                                          // drops what is remembered of where chats write
	Changed  func(session string)                            // drops what is remembered of a session, and tells lists
	Seen     func(session string, person workspace.PersonID) // tells that person's lists how far was read
}

// Store is what these verbs use of the store, by what it is for. Over fills it.
type Store struct {
	Index
	Lives
	Transcripts
	Reads
}

// Over is all of it over one store.
func Over(s *store.Store) Store { return Store{Index: s, Lives: s, Transcripts: s, Reads: s} }

// Index reads what lists show of sessions.
type Index interface {
	Heads() ([]store.Head, error)
	Mentions(session workspace.SessionID, last int64, text string) (bool, error)
	Glimpse(session workspace.SessionID) (first, last string, err error)
	Person(network channels.Network, account channels.AccountID, user channels.UserID) (workspace.Person, error)
}

// Lives reads generations, and makes and ends them.
type Lives interface {
	Session(id workspace.SessionID) (workspace.Session, error)
	SessionByKey(key workspace.Key) (workspace.Session, error)
	SessionByOrigin(origin string) (workspace.Session, error)
	Generations(key workspace.Key) ([]workspace.Session, error)
	Fork(key workspace.Key, session workspace.SessionID, before int64, origin string) (*store.Fork, error)
	RunCommand(c store.Command) (store.Did, error)
	IDs() *workspace.IDs
}

// Transcripts reads what was said.
type Transcripts interface {
	Entries(session workspace.SessionID, after int64, limit int) ([]workspace.Entry, error)
	EntriesBefore(session workspace.SessionID, before int64, limit int) ([]workspace.Entry, error)
	LastEntries(session workspace.SessionID, limit int) ([]workspace.Entry, error)
}

// Reads keeps how far people have read.
type Reads interface {
	ReadOf(person workspace.PersonID, key workspace.Key) (store.Read, error)
	MarkRead(person workspace.PersonID, key workspace.Key, gen int, n int64) (moved bool, err error)
	KeepReads(person workspace.PersonID) error
}

// Lanes is what runs in sessions. *turn.Turns is it.
type Lanes interface {
	// Lane shows what runs and what waits in a session.
	Lane(key string) lane.View
	// Cancel ends the running turn of a session if match accepts its first input.
	Cancel(key string, cause error, match func(first workspace.Input) bool) bool
	// Remove takes inputs out of the queue that are ended in the journal.
	Remove(key string, seqs ...int64)
}

// Outbox keeps files for rooms. *delivery.Outbox does.
type Outbox interface {
	// Attach keeps a file for a room; ok is false where the network takes none.
	Attach(room workspace.RoomID, data []byte) (ref string, ok bool)
}

// ListIn says which sessions are wanted.
type ListIn struct {
	Agent workspace.AgentID `query:"agent" help:"only of this agent, by *id*"`
	Text  string            `query:"q" flag:"search" chat:"text" help:"only where these *words* stand in the title or were said"`
	spec.Page
}

// inChat is how many sessions a chat is told of.
const inChat = 20

// List lists the sessions that the caller reaches.
var List = control.Verb[*Sessions, ListIn, spec.List[Item]]{
	Name: "sessions", Help: "List sessions of every channel, the last used first",
	Rights: rights.Row{Owner: rights.Direct, Member: rights.OwnDirect, Guest: rights.OwnDirect},
	HTTP:   "GET /v1/sessions", Group: "sessions", CLI: "session list", MCP: "list_sessions", Chat: "session list [text]",
	Do: func(ctx context.Context, c *Sessions, call control.Call, in ListIn) (spec.List[Item], error) {
		if call.Input != nil { // a chat is told of its agent's
			in.Agent, in.Limit = cmp.Or(in.Agent, call.Session.Agent), min(in.Limit, inChat)
		}
		page, err := c.list(ctx, call, in)
		if err != nil {
			return page, err
		}
		return page, c.Answer(call, page)
	},
	Show: func(_ ListIn, l spec.List[Item]) spec.Shown {
		s := spec.Shown{Heads: []string{"KEY", "NAME", "WHERE", "STATE", "USED", "LAST"}, Next: l.Next}
		for _, it := range l.Items {
			name := spec.Brief{Text: it.Name, Columns: 32}
			s.Rows = append(s.Rows, []any{control.ShortKey(it.Key), name, it.where(), it.state(), it.Usage, it.Updated})
		}
		return s
	},
	Say: func(l spec.List[Item]) string {
		if len(l.Items) == 0 {
			return "There is no such session."
		}
		var b strings.Builder
		for _, it := range l.Items {
			fmt.Fprintf(&b, "- **%s** · %s", it.Name, it.Updated.Format("2 Jan 15:04"))
			if it.State != "idle" {
				b.WriteString(" · " + it.state())
			}
			fmt.Fprintf(&b, "\n  `%s`\n", it.Key)
		}
		if l.Next != nil {
			b.WriteString("There are more: /session list and a word narrows them.")
		}
		return strings.TrimRight(b.String(), "\n")
	},
}

func (c *Sessions) list(ctx context.Context, call control.Call, q ListIn) (spec.List[Item], error) {
	page := spec.Whole[Item](nil)
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
		if q.Agent != "" && h.Key.Agent != q.Agent || !call.Reaches(h.Key) || q.After != "" && h.Compare(after) >= 0 {
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
		it, err := c.item(call, h)
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
		return store.Head{}, workspace.Say(workspace.ErrInvalid, "%.80q is not a place in a list.", s)
	}
	return store.Head{ID: workspace.SessionID(id), Updated: time.UnixMilli(at).UTC()}, nil
}

// matches looks for a text in what names a session, then in what was said.
func (c *Sessions) matches(h store.Head, text string) (bool, error) {
	if text == "" {
		return true, nil
	}
	title, err := c.Find.RoomTitle(h.Key)
	if err != nil {
		return false, err
	}
	for _, s := range []string{h.Name, title, h.Key.Name, control.LocalTitle(h.Key), string(h.Key.Peer)} {
		if strings.Contains(strings.ToLower(s), strings.ToLower(text)) {
			return true, nil
		}
	}
	return c.Store.Mentions(h.ID, h.Last, text)
}

// BySession names a session.
type BySession struct {
	Session control.SessionWord `path:"key"`
}

// readSession is what reading a session needs.
var readSession = rights.Row{Owner: rights.Direct, Member: rights.OwnDirect}

var Show = control.Verb[*Sessions, BySession, Item]{
	Name: "session.read", Help: "Read the newest generation of a session", Rights: readSession,
	HTTP: "GET /v1/sessions/{key}", Group: "sessions",
	Do: func(_ context.Context, c *Sessions, call control.Call, in BySession) (Item, error) {
		ses, err := c.Find.Session(call, in.Session)
		if err != nil {
			return Item{}, err
		}
		return c.itemOf(call, ses)
	},
}
