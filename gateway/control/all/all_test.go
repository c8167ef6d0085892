package all_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/agentloop"
	"parley/agentloop/lane"
	"parley/agentloop/llm"
	"parley/channels"
	"parley/configs"
	"parley/gateway/control"
	"parley/gateway/control/all"
	"parley/gateway/control/approval"
	"parley/gateway/control/conversation"
	"parley/gateway/control/file"
	"parley/gateway/control/operator"
	"parley/gateway/control/outbound"
	"parley/gateway/control/person"
	"parley/gateway/control/run"
	"parley/gateway/control/session"
	"parley/gateway/logbook"
	"parley/gateway/rights"
	"parley/gateway/snapshot"
	"parley/gateway/transport"
	"parley/gateway/turn"
	"parley/routes"
	"parley/tools"
	"parley/workspace"
	"parley/workspace/store"
)

// running is a gateway as far as verbs without side effects need one.
type running struct {
	cancelled []string
	offered   []workspace.Input
	pushed    []workspace.Outbound
	first     workspace.Input // of the turn that runs
	waiting   []workspace.Input
	work      func(workspace.Key, workspace.Actor, workspace.RoomID) (turn.Work, error) // nil: nothing has worked
}

func (h *running) Work(key workspace.Key, who workspace.Actor, room workspace.RoomID) (turn.Work, error) {
	if h.work == nil {
		return turn.Work{}, fs.ErrNotExist
	}
	return h.work(key, who, room)
}

func (h *running) Lane(string) lane.View {
	return lane.View{Running: true, Run: []workspace.Input{h.first}, Requester: h.first.Person, Waiting: h.waiting}
}

func (h *running) Cancel(key string, _ error, match func(workspace.Input) bool) bool {
	if match(h.first) {
		h.cancelled = append(h.cancelled, key)
		return true
	}
	return false
}

func (h *running) CancelSummary(string, func(workspace.Input) bool) bool { return false }
func (h *running) Remove(string, ...int64)                               {}
func (h *running) Offer(inputs ...workspace.Input)                       { h.offered = append(h.offered, inputs...) }
func (h *running) PushAll(list []workspace.Outbound)                     { h.pushed = append(h.pushed, list...) }
func (h *running) Pausing(string, bool, func(workspace.Input) bool)      {}
func (h *running) Compose(turn.Asked) (turn.Composed, error)             { return turn.Composed{}, nil }

func (h *running) Output(workspace.Key, workspace.Actor, workspace.RoomID, string) (*os.File, error) {
	return nil, fs.ErrNotExist
}

func (h *running) Summarize(context.Context, turn.Asked, workspace.Session, string) (agentloop.Compaction, error) {
	return agentloop.Compaction{}, agentloop.ErrShort
}

func (h *running) Attach(workspace.RoomID, []byte) (string, bool) { return "", false }
func (h *running) CutFor(_ workspace.RoomID, text string) []store.Span {
	return []store.Span{{To: len(text)}}
}
func (h *running) Queue(string) lane.Settings { return lane.Settings{Mode: lane.Steer} }

// noIntake takes every message and journals none.
type noIntake struct{}

func (noIntake) LocalKey(workspace.Actor, workspace.AgentID, string) (workspace.Key, error) {
	return workspace.Key{}, nil
}

func (noIntake) Submit(context.Context, workspace.Actor, workspace.Key, channels.Inbound) (store.Accepted, error) {
	return store.Accepted{Input: workspace.Input{ID: "x"}}, nil
}

func (noIntake) PeopleChanged() {}
func (noIntake) RoomsChanged()  {}

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

// world is all nouns over a store in which ana has a run in a direct chat.
type world struct {
	*all.Nouns
	store   *store.Store
	running *running
	key     workspace.Key
	room    workspace.RoomID
	run     workspace.RunID
	input   workspace.Input
}

func newWorld(t *testing.T) *world {
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
	w := &world{store: st, running: &running{}, key: workspace.Key{Agent: "a", Scope: workspace.ScopeLocal, Local: "main"}}
	w.Nouns = w.nouns(t, st, nil)
	people := []workspace.Person{{ID: "ana", Role: workspace.Member}, {ID: "ben", Role: workspace.Member}, {ID: "boss", Role: workspace.Owner}}
	if err := st.SyncPeople(people); err != nil {
		t.Fatal(err)
	}
	got := w.accept(t, "1", "ana", workspace.InputQueued, true)
	w.input, w.run, w.room = got.Input, got.Begun.Run.ID, got.Input.RoomID
	w.running.first = got.Input
	return w
}

// nouns are all that a gateway has, over what runs in the world; log may be nil.
func (w *world) nouns(t *testing.T, st *store.Store, log *slog.Logger) *all.Nouns {
	t.Helper()
	snap, changed, conf := oneAgent(t), func(string) {}, func() control.ConfigFile { return control.ConfigFile{} }
	channels, spent := &transport.Channels{}, &control.Spent{Store: st}
	kernel := control.New(control.Options{Store: st, Outbox: w.running, Find: &control.Finder{Records: st, Snapshot: snap}, Verbs: all.Verbs(), Now: time.Now, Log: log})
	approvals := &approval.Approvals{Kernel: kernel, Store: st}
	return &all.Nouns{Kernel: kernel, Approvals: approvals,
		Answers: &control.Answers{Kernel: kernel, Store: st},
		Conversations: &conversation.Conversations{Kernel: kernel, Store: conversation.Over(st), Snapshot: snap, Intake: noIntake{}, Lanes: w.running,
			Prompts: w.running, Channels: channels, Spent: spent, Changed: changed, Process: conversation.Process{Began: time.Unix(1, 0), ConfigFile: conf}},
		Sessions: &session.Sessions{Kernel: kernel, Store: session.Over(st), Lanes: w.running, Channels: channels, Outbox: w.running, Spent: spent,
			Moved: func() {}, Changed: changed},
		Runs:     &run.Runs{Kernel: kernel, Store: run.Over(st), Turns: w.running, Summaries: w.running, Work: w.running, Approvals: approvals},
		People:   &person.People{Kernel: kernel, Store: st, Changed: func() {}},
		Files:    &file.Files{Kernel: kernel, Store: st, Work: w.running, Folders: noFolders{}},
		Outbound: &outbound.Outbound{Kernel: kernel, Store: st},
		Operator: &operator.Operator{Kernel: kernel, Store: st, Snapshot: snap, Channels: channels, Dry: noIntake{},
			Process: operator.Process{Book: &logbook.Book{}, ConfigFile: conf, Reload: func() {}}},
	}
}

// accept journals a message of a person.
func (w *world) accept(t *testing.T, id string, by workspace.PersonID, state workspace.InputState, begin bool) store.Accepted {
	t.Helper()
	a := store.Arrival{Key: w.key, Room: channels.Address{Network: "mem", Account: "bot", Kind: channels.DM, Peer: "1"},
		Input: workspace.Input{ID: workspace.InputID(w.store.IDs().New()), Source: "mem", Account: "bot", Key: "m:1:" + id, Kind: channels.KindMessage, Person: by,
			Role: workspace.Member, Agent: "a", Mode: workspace.ModeTurn, State: state, Decision: workspace.Decision{Allow: true, Rule: "dm:open"},
			Binding: workspace.Binding{Agent: "a", Key: w.key.String(), Rule: "fallback"}, Text: "text " + id}}
	if begin {
		a.Begin = &store.Begin{Run: workspace.Run{ID: workspace.RunID(w.store.IDs().New()), Requester: by, Role: workspace.Member}, Entries: []workspace.EntryBody{{}}}
	}
	got, err := w.store.Accept(a)
	if err != nil {
		t.Fatal(err)
	}
	return got[0]
}

func (w *world) call(who workspace.PersonID, role workspace.Role, kind channels.PeerKind) control.Call {
	return control.Call{Actor: workspace.Actor{Person: who, Role: role, Name: string(who)}, Kind: kind, Session: w.key, Room: w.room}
}

// mine is a new local session of whoever calls.
func (w *world) mine(t *testing.T, c control.Call) string {
	t.Helper()
	key := rights.LocalKey(c.Actor, "a", w.store.IDs().New())
	if _, err := w.store.RunCommand(store.Command{Changes: []store.Change{store.Create{Key: key}}}); err != nil {
		t.Fatal(err)
	}
	return key.String()
}

// do is each verb of docs/rights.md that control holds.
func (w *world) do(t *testing.T, verb string) func(control.Call) error {
	ctx := t.Context()
	switch verb {
	case "help", "commands":
		return func(c control.Call) error { return w.Text(ctx, c, verb, "text") }
	case "whoami":
		return func(c control.Call) error { _, err := w.People.WhoAmI(ctx, c); return err }
	case "status":
		return func(c control.Call) error { _, err := w.Conversations.Status(ctx, c); return err }
	case "why":
		return func(c control.Call) error { _, err := w.Runs.Why(ctx, c); return err }
	case "resume":
		return func(c control.Call) error { _, err := w.Conversations.Resume(ctx, c); return err }
	case "new", "reset":
		return func(c control.Call) error { _, err := w.Conversations.New(ctx, c, ""); return err }
	case "queue":
		return func(c control.Call) error {
			_, err := w.Conversations.Queue(ctx, c, conversation.QueueChange{Mode: lane.Collect})
			return err
		}
	case "message":
		return func(c control.Call) error {
			_, err := w.Conversations.Submit(ctx, conversation.Submission{Actor: c.Actor, Text: "hello"})
			return err
		}
	case "run.read":
		return func(c control.Call) error { _, err := w.Runs.Read(ctx, c, control.RunWord(w.run)); return err }
	case "compact":
		return func(c control.Call) error { _, err := w.Conversations.Compact(ctx, c, ""); return err }
	case "retry":
		return func(c control.Call) error { _, err := w.Conversations.Retry(ctx, c); return err }
	case "undo":
		return func(c control.Call) error { _, err := w.Conversations.Undo(ctx, c); return err }
	case "models":
		return func(c control.Call) error { _, err := w.Conversations.Models(ctx, c, true); return err }
	case "model":
		return func(c control.Call) error { _, err := w.Conversations.Model(ctx, c, "default"); return err }
	case "think":
		return func(c control.Call) error { _, err := w.Conversations.Think(ctx, c, "high"); return err }
	case "verbose", "reasoning", "usage", "send":
		return func(c control.Call) error { _, err := w.Conversations.Setting(ctx, c, verb, "default"); return err }
	case "activation":
		return func(c control.Call) error { _, err := w.Conversations.Activation(ctx, c, "default"); return err }
	case "context":
		return func(c control.Call) error { _, err := w.Conversations.Context(ctx, c, ""); return err }
	case "logs":
		return func(c control.Call) error { _, err := w.Operator.Log(ctx, c); return err }
	case "describe":
		return func(c control.Call) error { return w.Operator.Describe(ctx, c) }
	case "files.remove":
		return func(c control.Call) error { _, err := w.Files.Remove(ctx, c, "", "x", false); return err }
	}
	if do := w.doSession(t, verb); do != nil {
		return do
	}
	return w.doValue(t, verb)
}

// doValue is do for the verbs that are values: all of the name, with what they are told left out as far as it may be.
func (w *world) doValue(t *testing.T, verb string) (do func(control.Call) error) {
	for _, v := range all.Verbs() {
		if name, _ := v.Right(); name != verb {
			continue
		}
		before := do
		do = func(c control.Call) error {
			if before != nil {
				if err := before(c); err != nil {
					return err
				}
			}
			_, err := v.Run(t.Context(), w.List(), c, func(in any) error {
				for _, f := range v.Spec().Fields {
					text := "ana"
					switch f.Type {
					case reflect.TypeFor[control.SessionWord]():
						text = w.mine(t, c)
					case reflect.TypeFor[control.RunWord]():
						text = string(w.run)
					case reflect.TypeFor[int64]():
						text = "1"
					}
					if f.Needed {
						if err := f.Set(in, text); err != nil {
							return err
						}
					}
				}
				return nil
			})
			return err
		}
	}
	return do
}

// noFolders is an owner without any.
type noFolders struct{}

func (noFolders) Writable() []file.OwnerFolder                  { return nil }
func (noFolders) Look(string) (file.FolderState, error)         { return file.FolderState{}, nil }
func (noFolders) Accept(string, string) (workspace.Held, error) { return workspace.Held{}, nil }

// doSession is do for the verbs of sessions.
func (w *world) doSession(t *testing.T, verb string) func(control.Call) error {
	ctx, n := t.Context(), 0
	switch verb {
	case "session.new":
		return func(c control.Call) error {
			n++
			_, err := session.New.Call(ctx, w.Sessions, c, session.NewIn{Name: fmt.Sprint("s", n)})
			return err
		}
	case "session.switch":
		return func(c control.Call) error {
			_, err := session.Switch.Call(ctx, w.Sessions, c, session.SwitchIn{To: "main"})
			return err
		}
	}
	return nil
}

// rows are the cells of docs/rights.md: verb to role to cell.
func rows(t *testing.T) map[string]map[workspace.Role]string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/rights.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[workspace.Role]string{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 6 {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		out[cells[0]] = map[workspace.Role]string{workspace.Owner: cells[2], workspace.Member: cells[3], workspace.Guest: cells[4], workspace.Nobody: cells[5]}
	}
	return out
}

// T10: every verb, asked for by every role in direct chats and in groups, does what docs/rights.md says.
func TestT10_EveryVerbKeepsToTheTableOfRights(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	seen := 0
	for verb, cells := range rows(t) {
		if slices.Contains([]string{"verb", "---", "alive", "sign-in", "deliver"}, verb) {
			continue // not asked of control: anybody may reach them
		}
		seen++
		for role, cell := range cells {
			for _, kind := range []channels.PeerKind{channels.DM, channels.Group, channels.Room, ""} {
				allowed := cell != "no"
				if group := kind == channels.Group || kind == channels.Room; group && strings.HasSuffix(cell, "direct") {
					allowed = false
				}
				c := w.call("ana", role, kind)
				if got := w.May(c, verb); got != allowed {
					t.Errorf("%s by %q in %q: may is %v, the table says %q", verb, role, kind, got, cell)
				}
				f := w.do(t, verb)
				if f == nil {
					continue
				}
				if kind != channels.DM && kind != "" && verb == "message" {
					continue // a message of the API has no group
				}
				err := f(c)
				if denied := errors.Is(err, workspace.ErrDenied); denied == allowed {
					t.Errorf("%s by %q in %q: %v, the table says %q", verb, role, kind, err, cell)
				}
				if err != nil {
					if _, ok := workspace.Sentence(err); !ok {
						t.Errorf("%s by %q in %q: %v has no sentence for the chat", verb, role, kind, err)
					}
				}
			}
		}
	}
	if seen < 20 {
		t.Errorf("only %d verbs were read", seen)
	}
}

// What a cell calls "own" is what the person asked for; other people's is not there for them.
func TestOwnMeansOnlyOnesOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	ben, ana, boss := w.call("ben", workspace.Member, channels.DM), w.call("ana", workspace.Member, channels.DM), w.call("boss", workspace.Owner, channels.DM)
	if _, err := w.Runs.Read(ctx, ben, control.RunWord(w.run)); !errors.Is(err, workspace.ErrNotFound) {
		t.Errorf("ben reads ana's run: %v", err)
	}
	if _, err := w.Runs.Read(ctx, ben, control.RunWord(w.input.ID)); !errors.Is(err, workspace.ErrNotFound) {
		t.Errorf("ben reads ana's run by its input: %v", err)
	}
	for _, c := range []control.Call{ana, boss} {
		if v, err := w.Runs.Read(ctx, c, control.RunWord(w.run)); err != nil || v.Run.ID != w.run {
			t.Errorf("%s reads ana's run: %v", c.Actor.Person, err)
		}
	}
	if v, err := w.Runs.Why(ctx, ben); err != nil || v.Run != nil {
		t.Errorf("ben is told why about %+v, %v", v.Run, err)
	}
	w.running.waiting = []workspace.Input{{Person: "ana", Text: "secret of ana"}, {Person: "ben", Text: "ben's"}}
	if v, err := w.Conversations.Queue(ctx, ben, conversation.QueueChange{}); err != nil || !slices.Equal(v.Waiting, []string{"ben's"}) {
		t.Errorf("ben sees %q waiting, %v", v.Waiting, err)
	}
	if st, err := w.Conversations.Status(ctx, ben); err != nil || len(st.Channels) != 0 {
		t.Errorf("ben sees channels %+v, %v", st.Channels, err)
	}
	got, err := w.Runs.StopTurn(ctx, ben)
	if err != nil || got.Run != "" || len(w.running.cancelled) != 0 {
		t.Errorf("ben stopped %+v, %v", got, err)
	}
	if got, err = w.Runs.StopTurn(ctx, boss); err != nil || got.Run != w.run || len(w.running.cancelled) != 1 {
		t.Errorf("the owner stopped %+v, %v", got, err)
	}
}

func TestResumeIsForOnesOwnMessagesUnlessOwner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i, by := range []workspace.PersonID{"ana", "ben", "ana"} {
		got := w.accept(t, "old"+string(rune('a'+i)), by, workspace.InputQueued, false)
		if _, err := w.store.EndInputs([]store.Ending{{Seq: got.Input.Seq, From: workspace.InputQueued, To: workspace.InputStale}}); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := w.Conversations.Resume(t.Context(), w.call("ana", workspace.Member, channels.DM)); err != nil || got.Messages != 2 || len(w.running.offered) != 2 {
		t.Errorf("ana resumed %+v, offered %d, %v", got, len(w.running.offered), err)
	}
	if got, err := w.Conversations.Resume(t.Context(), w.call("boss", workspace.Owner, channels.DM)); err != nil || got.Messages != 1 || w.running.offered[2].Person != "ben" {
		t.Errorf("the owner resumed %+v, %v", got, err)
	}
}

// A command's effect, the end of its input and its reply are one commit: done twice, it happens once.
func TestCommandHappensOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	in := w.accept(t, "cmd", "ana", workspace.InputQueued, false).Input
	c := w.call("ana", workspace.Member, channels.DM)
	c.Input, c.Render = &in, func(any) string { return "fresh" }
	first, err := w.Conversations.New(t.Context(), c, "")
	if err != nil || len(w.running.pushed) != 1 || w.running.pushed[0].Text != "fresh" {
		t.Fatalf("pushed %+v, %v", w.running.pushed, err)
	}
	if _, err := w.Conversations.New(t.Context(), c, ""); !errors.Is(err, workspace.ErrConflict) {
		t.Errorf("the second time: %v", err)
	}
	if ses, err := w.store.SessionByKey(w.key); err != nil || ses.ID != first.Session || ses.Gen != 2 {
		t.Errorf("generation %d, %v", ses.Gen, err)
	}
	if got, err := w.store.Input(in.ID); err != nil || got.State != workspace.InputAnswered {
		t.Errorf("the command is %s, %v", got.State, err)
	}
	if len(w.running.pushed) != 1 {
		t.Errorf("%d replies", len(w.running.pushed))
	}
	again := w.accept(t, "cmd2", "ana", workspace.InputQueued, false).Input
	c.Input = &again
	if err := w.Refuse(c, "No."); err != nil {
		t.Fatal(err)
	}
	if got, err := w.store.Input(again.ID); err != nil || got.State != workspace.InputFailed || got.Reason != "No." {
		t.Errorf("the refused command is %s (%s), %v", got.State, got.Reason, err)
	}
}

func TestMessageRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	actor := workspace.Actor{Person: "boss", Role: workspace.Owner}
	for _, m := range []conversation.Submission{
		{Text: " \n"}, {Text: strings.Repeat("x", conversation.MaxText+1)}, {Text: "x", Key: strings.Repeat("k", control.MaxKey+1)},
		{Text: "x", Session: strings.Repeat("s", session.MaxName+1)},
	} {
		m.Actor = actor
		if _, err := w.Conversations.Submit(t.Context(), m); !errors.Is(err, workspace.ErrInvalid) {
			t.Errorf("text of %d, key of %d, session of %d bytes: %v", len(m.Text), len(m.Key), len(m.Session), err)
		}
	}
	if _, err := w.Conversations.Submit(t.Context(), conversation.Submission{Actor: actor, Text: "hello"}); err != nil {
		t.Error(err)
	}
}
