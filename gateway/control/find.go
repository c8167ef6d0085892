package control

import (
	"context"
	"errors"
	"strings"

	"parley/channels"
	"parley/gateway/rights"
	"parley/gateway/snapshot"
	"parley/workspace"
	"parley/workspace/clip"
	"parley/workspace/store"
)

// Records is what the finder reads.
type Records interface {
	SessionByKey(key workspace.Key) (workspace.Session, error)
	RunsBefore(before workspace.RunID, limit int) ([]store.RunRow, error)
	PersonByID(id workspace.PersonID) (workspace.Person, error)
	Glimpse(session workspace.SessionID) (first, last string, err error)
	RoomByAddress(a channels.Address) (workspace.Room, error)
}

// Finder finds what is meant by a word, as far as the caller reaches, and what people call it.
type Finder struct {
	Records  Records
	Snapshot func() *snapshot.Snapshot // of the configuration in force
}

// SessionWord names a session: by its key, or one of the caller's local ones in short: main is that of the default agent,
// research/main that of another.
type SessionWord string

// RunWord names a run, by its id or by that of its message. Of the newest 500 runs the last six characters do.
type RunWord string

// ShortKey is a key as Key takes it in short, where it does.
func ShortKey(key string) string {
	rest, ok := strings.CutPrefix(key, "agent:")
	agent, name, local := strings.Cut(rest, ":local:")
	if !ok || !local || strings.Contains(agent, ":") || strings.ContainsAny(name, ":%") { // what is escaped in a key is not in a name
		return key
	}
	return agent + "/" + name
}

// Key is the session that a word names: a key, or in short a local one of the caller.
func (f *Finder) Key(call Call, word SessionWord) (workspace.Key, error) {
	return rights.SessionKey(call.Actor, f.Snapshot().Default, string(word))
}

// Session is the newest generation of a session that the caller reaches; no word is the session that the chat writes into.
func (f *Finder) Session(call Call, word SessionWord) (workspace.Session, error) {
	if word == "" && !call.Session.IsZero() {
		word = SessionWord(call.Session.String())
	}
	k, err := f.Key(call, word)
	if err != nil {
		return workspace.Session{}, err
	}
	if !call.Reaches(k) {
		return workspace.Session{}, NoSession(workspace.ErrNotFound, k)
	}
	ses, err := f.Records.SessionByKey(k)
	if errors.Is(err, workspace.ErrNotFound) {
		return ses, NoSession(err, k)
	}
	return ses, err
}

// Watch says whether a session may be watched; it need not exist yet.
func (k *Kernel) Watch(_ context.Context, call Call, word SessionWord) (workspace.Key, error) {
	if err := k.Allow(call, "session.read"); err != nil {
		return workspace.Key{}, err
	}
	key, err := k.Find.Key(call, word)
	if err != nil || !rights.Reaches(call.Actor, key) {
		return workspace.Key{}, workspace.Say(workspace.ErrNotFound, "There is no session %q.", string(word))
	}
	if _, ok := k.Find.Agent(key.Agent); ok {
		return key, nil
	}
	if _, err := k.Find.Records.SessionByKey(key); err != nil { // of an agent that is configured no more
		return workspace.Key{}, NoSession(workspace.ErrNotFound, key)
	}
	return key, nil
}

// NoSession says that a session is not there for the caller.
func NoSession(err error, k workspace.Key) error {
	return workspace.Say(err, "There is no session %q.", clip.Runes(k.String(), 200))
}

// shortID is how many characters chats show of an id.
const shortID = 6

// Run is the id that a word names.
func (f *Finder) Run(call Call, word RunWord) (string, error) {
	if len(word) != shortID {
		return string(word), nil
	}
	rows, err := f.Records.RunsBefore("", LookAt)
	if err != nil {
		return "", err
	}
	for _, r := range rows {
		if strings.EqualFold(workspace.Short(r.ID), string(word)) && (call.Owner() || r.Requester == call.Actor.Person) {
			return string(r.ID), nil
		}
	}
	return "", workspace.Say(workspace.ErrNotFound, "None of the newest %d runs has the id %q.", LookAt, string(word))
}

// Name is what people call a person; known keeps what was read before.
func (f *Finder) Name(known map[workspace.PersonID]string, id workspace.PersonID) (string, error) {
	if name, ok := known[id]; ok || id == "" {
		return name, nil
	}
	p, err := f.Records.PersonByID(id)
	if err != nil && !errors.Is(err, workspace.ErrNotFound) {
		return "", err
	}
	known[id] = p.Name
	return p.Name, nil
}

// Agent as people see it.
type Agent struct {
	ID      workspace.AgentID `json:"id"`
	Name    string            `json:"name"`
	Models  []string          `json:"models"`
	Default bool              `json:"default"`
	// Choices are further models that a session of it may be switched to.
	Choices []string `json:"choices,omitempty"`
}

// Agent is a configured agent; of one that is not, only its id is known.
func (f *Finder) Agent(id workspace.AgentID) (Agent, bool) {
	snap := f.Snapshot()
	a, ok := snap.Agents[id]
	if !ok {
		return Agent{ID: id, Name: string(id)}, false
	}
	return Agent{ID: a.ID, Name: a.Name, Models: a.Models, Choices: a.Choices, Default: id == snap.Default}, true
}

// Agents are the configured ones, in their order.
func (f *Finder) Agents() []Agent {
	var out []Agent
	for _, id := range f.Snapshot().Order {
		a, _ := f.Agent(id)
		out = append(out, a)
	}
	return out
}

// AgentOr is the id of a configured agent; an empty one is that of the default agent.
func (f *Finder) AgentOr(id workspace.AgentID) (workspace.AgentID, error) {
	if id != "" {
		if _, ok := f.Agent(id); !ok {
			return "", workspace.Say(workspace.ErrNotFound, "There is no agent %q.", clip.Runes(string(id), 80))
		}
		return id, nil
	}
	for _, a := range f.Agents() {
		if a.Default {
			return a.ID, nil
		}
	}
	return "", workspace.Say(workspace.ErrInvalid, "There is no default agent: name one.")
}
