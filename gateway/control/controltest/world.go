// Package controltest is the nouns over a store and a gateway that only notes what it is told, for the tests of verbs.
package controltest

import (
	"context"
	"io/fs"
	"log/slog"
	"os"
	"testing"
	"time"

	"parley/agentloop"
	"parley/agentloop/lane"
	"parley/agentloop/llm"
	"parley/channels"
	"parley/configs"
	"parley/configs/source"
	"parley/gateway/control"
	"parley/gateway/control/all"
	"parley/gateway/control/approval"
	"parley/gateway/control/config"
	"parley/gateway/control/conversation"
	"parley/gateway/control/file"
	"parley/gateway/control/operator"
	"parley/gateway/control/outbound"
	"parley/gateway/control/person"
	"parley/gateway/control/run"
	"parley/gateway/control/session"
	"parley/gateway/logbook"
	"parley/gateway/rights"
	"parley/gateway/setup"
	"parley/gateway/snapshot"
	"parley/gateway/transport"
	"parley/gateway/turn"
	"parley/routes"
	"parley/tools"
	"parley/workspace"
	"parley/workspace/store"
)

// Running is a gateway as far as verbs without side effects need one.
type Running struct {
	Cancelled []string
	Offered   []workspace.Input
	Pushed    []workspace.Outbound
	First     workspace.Input // of the turn that runs
	Waiting   []workspace.Input
	Waits     bool                                                                      // it does nothing but wait for its model
	Anewed    int                                                                       // times that it was begun again for that
	Opens     func(workspace.Key, workspace.Actor, workspace.RoomID) (turn.Work, error) // nil: nothing has worked
}

func (h *Running) Work(key workspace.Key, who workspace.Actor, room workspace.RoomID) (turn.Work, error) {
	if h.Opens == nil {
		return turn.Work{}, fs.ErrNotExist
	}
	return h.Opens(key, who, room)
}

func (h *Running) Lane(string) lane.View {
	return lane.View{Running: true, Run: []workspace.Input{h.First}, Requester: h.First.Person, Waiting: h.Waiting}
}

func (h *Running) Cancel(key string, _ error, match func(workspace.Input) bool) bool {
	if match(h.First) {
		h.Cancelled = append(h.Cancelled, key)
		return true
	}
	return false
}

func (h *Running) Anew(_ string, match func(workspace.Input) bool) bool {
	if h.Waits && match(h.First) {
		h.Anewed++
		return true
	}
	return false
}

func (h *Running) CancelSummary(string, func(workspace.Input) bool) bool { return false }
func (h *Running) Remove(string, ...int64)                               {}
func (h *Running) Stuck(string) bool                                     { return h.Waits }
func (h *Running) Offer(inputs ...workspace.Input)                       { h.Offered = append(h.Offered, inputs...) }
func (h *Running) PushAll(list []workspace.Outbound)                     { h.Pushed = append(h.Pushed, list...) }
func (h *Running) Pausing(string, bool, func(workspace.Input) bool)      {}
func (h *Running) Compose(turn.Asked) (turn.Composed, error)             { return turn.Composed{}, nil }

func (h *Running) Output(workspace.Key, workspace.Actor, workspace.RoomID, string) (*os.File, error) {
	return nil, fs.ErrNotExist
}

func (h *Running) Summarize(context.Context, turn.Asked, workspace.Session, string) (agentloop.Compaction, error) {
	return agentloop.Compaction{}, agentloop.ErrShort
}

func (h *Running) Attach(workspace.RoomID, []byte) (string, bool) { return "", false }
func (h *Running) CutFor(_ workspace.RoomID, text string) []store.Span {
	return []store.Span{{To: len(text)}}
}
func (h *Running) Queue(string) lane.Settings { return lane.Settings{Mode: lane.Steer} }

// noIntake takes every message and journals none.
type noIntake struct{}

func (noIntake) LocalKey(workspace.Actor, workspace.AgentID, string) (workspace.Key, error) {
	return workspace.Key{}, nil
}

func (noIntake) Submit(context.Context, workspace.Actor, workspace.Key, channels.Inbound) (store.Accepted, error) {
	return store.Accepted{Input: workspace.Input{ID: "x"}}, nil
}

func (noIntake) RoomsChanged() {}

// noServers is no model to be tried.
type noServers struct{}

func (noServers) Attempt(context.Context, snapshot.Ask) (snapshot.Tried, error) {
	return snapshot.Tried{}, nil
}

func (noIntake) Explain(routes.Facts, string) (routes.Verdict, routes.Route, []routes.Considered, error) {
	return routes.Verdict{}, routes.Route{}, nil, nil
}

// oneAgent is a configuration with the agent a, and without models, tools and routes.
func oneAgent(t *testing.T) func() *snapshot.Snapshot {
	t.Helper()
	table, err := routes.NewTable(nil, routes.Options{Default: "a", Agents: []routes.Agent{{ID: "a"}}})
	if err != nil {
		t.Fatal(err)
	}
	models, err := llm.NewRegistry(llm.RegistryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	snap := &snapshot.Snapshot{Config: &configs.Config{}, Order: []workspace.AgentID{"a"}, Default: "a", Table: table, Models: models,
		Queue:  lane.Settings{Mode: lane.Steer},
		Agents: map[workspace.AgentID]*snapshot.Agent{"a": {ID: "a", Tools: tools.NewSet(nil, tools.PolicyConfig{})}}}
	return func() *snapshot.Snapshot { return snap }
}

// World is all nouns over a store in which ana has a run in a direct chat.
type World struct {
	*all.Nouns
	Store   *store.Store
	Running *Running
	Key     workspace.Key
	Room    workspace.RoomID
	RunID   workspace.RunID // of the run that ana has, with her message
	Input   workspace.Input
}

// New makes a world whose store is closed at the end of the test.
func New(t *testing.T) *World {
	t.Helper()
	st, err := store.Open(t.Context(), store.Options{Dir: t.TempDir(), BallastBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	w := &World{Store: st, Running: &Running{}, Key: workspace.Key{Agent: "a", Scope: workspace.ScopeLocal, Local: "main"}}
	w.Nouns = w.Over(t, st, nil)
	people := []workspace.Person{{ID: "ana", Role: workspace.Member}, {ID: "ben", Role: workspace.Member},
		{ID: "boss", Role: workspace.Owner}}
	if err := st.SyncPeople(people); err != nil {
		t.Fatal(err)
	}
	got := w.Accept(t, "1", "ana", workspace.InputQueued, true)
	w.Input, w.RunID, w.Room = got.Input, got.Begun.Run.ID, got.Input.RoomID
	w.Running.First = got.Input
	return w
}

// Over is all that a gateway has, over what runs in the world; log may be nil.
func (w *World) Over(t *testing.T, st *store.Store, log *slog.Logger) *all.Nouns {
	t.Helper()
	snap, changed, conf := oneAgent(t), func(string) {}, func() control.ConfigFile { return control.ConfigFile{} }
	channels, spent := &transport.Channels{}, &control.Spent{Store: st}
	kernel := control.New(control.Options{Store: st, Outbox: w.Running, Find: &control.Finder{Records: st, Snapshot: snap},
		Verbs: all.Verbs(), Now: time.Now, Log: log})
	approvals := &approval.Approvals{Kernel: kernel, Store: st}
	return &all.Nouns{Kernel: kernel, Approvals: approvals,
		Answers: &control.Answers{Kernel: kernel, Store: st},
		Conversations: &conversation.Conversations{Kernel: kernel, Store: conversation.Over(st), Snapshot: snap, Intake: noIntake{},
			Lanes: w.Running, Prompts: w.Running, Channels: channels, Spent: spent, Changed: changed,
			Process: conversation.Process{Began: time.Unix(1, 0), ConfigFile: conf}},
		Sessions: &session.Sessions{Kernel: kernel, Store: session.Over(st), Lanes: w.Running, Channels: channels,
			Outbox: w.Running, Spent: spent, Moved: func() {}, Changed: changed,
			Seen: func(key string, _ workspace.PersonID) { changed(key) }},
		Runs: &run.Runs{Kernel: kernel, Store: run.Over(st), Turns: w.Running, Summaries: w.Running, Work: w.Running,
			Approvals: approvals},
		People:   &person.People{Kernel: kernel, Store: st, Changed: func() {}},
		Files:    &file.Files{Kernel: kernel, Store: st, Work: w.Running, Folders: noFolders{}},
		Outbound: &outbound.Outbound{Kernel: kernel, Store: st},
		Config:   &config.Config{Kernel: kernel, Setup: noFile(t)},
		Operator: &operator.Operator{Kernel: kernel, Store: st, Snapshot: snap, Channels: channels, Dry: noIntake{}, Models: noServers{},
			Process: operator.Process{Book: &logbook.Book{}, ConfigFile: conf, Reload: func() {}}},
	}
}

// noFile changes a configuration that has no file, and that nobody puts in force.
func noFile(t *testing.T) *setup.Setup {
	t.Helper()
	home := t.TempDir()
	src := source.New(configs.LoadOptions{Env: func(name string) (string, bool) {
		if name == "XDG_CONFIG_HOME" || name == "HOME" {
			return home, true
		}
		return "", false
	}})
	if _, err := src.Load(); err != nil {
		t.Fatal(err)
	}
	return setup.New(setup.Options{Source: src, Hide: workspace.NewRedactor(), Base: t.Context(), Now: time.Now})
}

// Accept journals a message of a person.
func (w *World) Accept(t *testing.T, id string, by workspace.PersonID, state workspace.InputState, begin bool) store.Accepted {
	t.Helper()
	a := store.Arrival{Key: w.Key, Room: channels.Address{Network: "mem", Account: "bot", Kind: channels.DM, Peer: "1"},
		Input: workspace.Input{ID: workspace.InputID(w.Store.IDs().New()), Source: "mem", Account: "bot",
			Key: "m:1:" + id, Kind: channels.KindMessage, Person: by, Role: workspace.Member, Agent: "a",
			Mode: workspace.ModeTurn, State: state, Decision: workspace.Decision{Allow: true, Rule: "dm:open"},
			Binding: workspace.Binding{Agent: "a", Key: w.Key.String(), Rule: "fallback"}, Text: "text " + id}}
	if begin {
		run := workspace.Run{ID: workspace.RunID(w.Store.IDs().New()), Requester: by, Role: workspace.Member}
		a.Begin = &store.Begin{Run: run, Entries: []workspace.EntryBody{{}}}
	}
	got, err := w.Store.Accept(a)
	if err != nil {
		t.Fatal(err)
	}
	return got[0]
}

// Call is somebody in the direct chat, or in a room of another kind.
func (w *World) Call(who workspace.PersonID, role workspace.Role, kind channels.PeerKind) control.Call {
	return control.Call{Actor: workspace.Actor{Person: who, Role: role, Name: string(who)}, Kind: kind, Session: w.Key, Room: w.Room}
}

// Local is a new local session of whoever calls.
func (w *World) Local(t *testing.T, c control.Call) string {
	t.Helper()
	key := rights.LocalKey(c.Actor, "a", w.Store.IDs().New())
	if _, err := w.Store.RunCommand(store.Command{Changes: []store.Change{store.Create{Key: key}}}); err != nil {
		t.Fatal(err)
	}
	return key.String()
}

// noFolders is an owner without any.
type noFolders struct{}

func (noFolders) Writable() []file.OwnerFolder                  { return nil }
func (noFolders) Look(string) (file.FolderState, error)         { return file.FolderState{}, nil }
func (noFolders) Accept(string, string) (workspace.Held, error) { return workspace.Held{}, nil }

// Audited lists the rows of a kind.
func (w *World) Audited(t *testing.T, kind string) (rows []workspace.AuditRow) {
	t.Helper()
	list, err := w.Store.AuditAfter(0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		row, err := e.Row()
		if err != nil {
			t.Fatal(err)
		}
		if row.Kind == kind {
			rows = append(rows, row)
		}
	}
	return rows
}
