package session

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/channels"
	"parley/gateway/control"
	"parley/gateway/turn"
	"parley/workspace"
	"parley/workspace/store"
)

// Chat is where a session is talked in.
type Chat struct {
	Local   bool   `json:"local"`             // of WebChat, the terminal or the API
	Channel string `json:"channel,omitempty"` // configured name
	Network string `json:"network,omitempty"`
	Kind    string `json:"kind,omitempty"` // dm, group, room
	Peer    string `json:"peer,omitempty"`
	Thread  string `json:"thread,omitempty"`
}

// Item is a session as lists show it: the newest generation of its key.
type Item struct {
	Key         string `json:"key"`
	SessionID   string `json:"session_id"` // of the generation
	Generation  int    `json:"generation"`
	Generations int    `json:"generations"`
	Agent       string `json:"agent"`
	Name        string `json:"name"`            // the title to show
	Given       string `json:"given,omitempty"` // that a person gave it
	Chat
	Person   workspace.PersonID `json:"person,omitempty"` // whose it is; left out: several people's, or nobody known
	Sequence int64              `json:"sequence"`         // of its newest event
	Preview  string             `json:"preview"`
	Created  time.Time          `json:"created"`
	Updated  time.Time          `json:"updated"`
	State    string             `json:"state"` // idle, running, waiting for a person, paused
	Running  bool               `json:"running"`
	Waiting  int                `json:"waiting"`         // messages behind the running turn
	Unread   bool               `json:"unread"`          // the caller has not seen its newest event
	Model    string             `json:"model,omitempty"` // that it asks first
	Think    string             `json:"think,omitempty"` // how hard it thinks; left out: the model's own
	Usage    control.Usage      `json:"usage"`
}

// where a session is talked in.
func (it Item) where() string {
	if it.Local {
		return "local"
	}
	return strings.TrimSpace(it.Channel + " " + it.Kind)
}

// state is State for people, with what waits behind.
func (it Item) state() string {
	state := map[string]string{"waiting": "waiting for a person"}[it.State]
	switch state = cmp.Or(state, it.State); {
	case it.Waiting > 0 && it.State == "idle":
		return fmt.Sprintf("%d wait", it.Waiting)
	case it.Waiting > 0:
		return fmt.Sprintf("%s, %d wait", state, it.Waiting)
	}
	return state
}

// Generation is one life of a session.
type Generation struct {
	SessionID  string        `json:"session_id"`
	Generation int           `json:"generation"`
	Created    time.Time     `json:"created"`
	Ended      *time.Time    `json:"ended,omitempty"` // left out: the present one
	Sequence   int64         `json:"sequence"`        // of its newest event
	Preview    string        `json:"preview"`
	Usage      control.Usage `json:"usage"`
	// ForkedFrom is the generation that this one parted from, before its event ForkedBefore; left out: it began with nothing.
	ForkedFrom   string `json:"forked_from,omitempty"`
	ForkedBefore int64  `json:"forked_before,omitempty"`
}

func (c *Sessions) itemOf(call control.Call, ses workspace.Session) (Item, error) {
	last, err := c.Store.LastEntries(ses.ID, 1)
	if err != nil {
		return Item{}, err
	}
	h := store.Head{ID: ses.ID, Key: ses.Key, Name: ses.Name, Updated: ses.Created}
	if len(last) > 0 {
		h.Last, h.Updated = last[0].N, last[0].At
	}
	return c.item(call, h)
}

func (c *Sessions) item(call control.Call, h store.Head) (Item, error) {
	ses, err := c.Store.Session(h.ID)
	if err != nil {
		return Item{}, err
	}
	k := h.Key
	it := Item{Key: k.String(), SessionID: string(h.ID), Generation: ses.Gen, Generations: ses.Gen, Agent: string(k.Agent),
		Given: ses.Name, Sequence: h.Last, Created: ses.Created.UTC(), Updated: h.Updated.UTC()}
	it.Chat = Chat{Local: k.Scope == workspace.ScopeLocal, Network: string(k.Network), Kind: string(k.Kind), Peer: string(k.Peer),
		Thread: string(k.Thread)}
	read, err := c.Store.ReadOf(call.Actor.Person, k)
	if err != nil {
		return it, err
	}
	it.Unread = read.Unread(ses.Gen, h.Last, h.Updated)
	first, said, err := c.Store.Glimpse(h.ID)
	if err != nil {
		return it, err
	}
	it.Preview = control.Preview(said, control.PreviewLength)
	used, err := c.Spent.Of(h.ID)
	if err != nil {
		return it, err
	}
	it.Usage = control.UsageOf(used)
	it.Think = ses.Overrides.Think
	if agent := c.Find.Snapshot().Agents[k.Agent]; agent != nil {
		if chain := agent.Chain(ses.Overrides); len(chain) > 0 {
			it.Model = chain[0]
		}
	}
	lane := c.Lanes.Lane(it.Key)
	it.State, it.Waiting = turn.StateOf(lane), len(lane.Waiting)
	it.Running = it.State == turn.AtWork
	for _, ch := range c.Channels.Views() {
		if ch.Network == it.Network && (k.Account == "" || ch.Account == string(k.Account)) {
			it.Channel = ch.Name
		}
	}
	if it.Name, err = c.Find.TitleOf(k, ses.Name, first); err != nil {
		return it, err
	}
	if it.Person, err = c.personOf(k); err != nil {
		return it, err
	}
	return it, nil
}

// itemAgain is an item as it is stored now.
func (c *Sessions) itemAgain(call control.Call, id workspace.SessionID) (Item, error) {
	ses, err := c.Store.Session(id)
	if err != nil {
		return Item{}, err
	}
	return c.itemOf(call, ses)
}

// personOf is whose session it is; empty: several people's, or nobody known.
func (c *Sessions) personOf(k workspace.Key) (workspace.PersonID, error) {
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
