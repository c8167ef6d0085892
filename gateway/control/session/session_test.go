package session_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/channels"
	"parley/gateway/control"
	"parley/gateway/control/controltest"
	"parley/gateway/control/session"
	"parley/gateway/rights"
	"parley/gateway/spec"
	"parley/workspace"
	"parley/workspace/store"
)

// world is a gateway's nouns over a store.
type world struct{ *controltest.World }

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{controltest.New(t)}
}

// fork, rename and the others ask for the verbs of sessions.
func (w *world) fork(t *testing.T, c control.Call, key string, before int64) (session.Item, error) {
	return session.Fork.Call(t.Context(), w.Sessions, c, session.ForkIn{BySession: bySession(key), Before: before})
}

func (w *world) rename(t *testing.T, c control.Call, key, name string) (session.Item, error) {
	return session.Rename.Call(t.Context(), w.Sessions, c, session.RenameIn{BySession: bySession(key), Name: &name})
}

func (w *world) remove(t *testing.T, c control.Call, key string) error {
	_, err := session.Delete.Call(t.Context(), w.Sessions, c, bySession(key))
	return err
}

func (w *world) lives(t *testing.T, c control.Call, key string) ([]session.Generation, error) {
	l, err := session.ListGenerations.Call(t.Context(), w.Sessions, c, bySession(key))
	return l.Items, err
}

func (w *world) sessions(t *testing.T, c control.Call, in session.ListIn) (spec.List[session.Item], error) {
	return session.List.Call(t.Context(), w.Sessions, c, in)
}

func (w *world) make(t *testing.T, c control.Call, name string) (session.Item, error) {
	return session.Create.Call(t.Context(), w.Sessions, c, session.CreateIn{Name: name})
}

func bySession(key string) session.BySession {
	return session.BySession{Session: control.SessionWord(key)}
}

func names(p spec.List[session.Item]) []string {
	var out []string
	for _, it := range p.Items {
		out = append(out, it.Name)
	}
	return out
}

// T16: a list, a search and every verb reach what is one's own and no more; owners reach all, and in a group it is the
// group's alone.
func TestT16_SessionVerbsReachOnesOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	http := func(who workspace.PersonID, role workspace.Role) control.Call {
		return control.Call{Actor: workspace.Actor{Person: who, Role: role}, Kind: channels.DM}
	}
	ana, ben, boss := http("ana", workspace.Member), http("ben", workspace.Member), http("boss", workspace.Owner)
	hers, err := w.make(t, ana, "diary")
	if err != nil || hers.Name != "diary" || !hers.Local || hers.Person != "ana" {
		t.Fatalf("%+v, %v", hers, err)
	}
	if _, err := w.make(t, ben, "diary"); err != nil {
		t.Fatal(err)
	}
	for who, c := range map[string]struct {
		call control.Call
		want int
	}{"ana": {ana, 1}, "ben": {ben, 1}, "boss": {boss, 3}} {
		for _, q := range []session.ListIn{{}, {Agent: "a"}, {Text: "DIA"}} {
			want := c.want
			if q.Text != "" {
				want = min(want, 2)
			}
			if page, err := w.sessions(t, c.call, q); err != nil || len(page.Items) != want {
				t.Errorf("%s sees %q of %+v, %v", who, names(page), q, err)
			}
		}
	}
	for what, do := range map[string]func() error{
		"read": func() error {
			_, err := session.Show.Call(ctx, w.Sessions, ben, bySession(hers.Key))
			return err
		},
		"rename": func() error { _, err := w.rename(t, ben, hers.Key, "mine"); return err },
		"fork":   func() error { _, err := w.fork(t, ben, hers.Key, 1); return err },
		"delete": func() error { return w.remove(t, ben, hers.Key) },
		"export": func() error {
			_, err := session.Export.Call(ctx, w.Sessions, ben, session.ExportIn{Session: control.SessionWord(hers.Key)})
			return err
		},
		"lives": func() error { _, err := w.lives(t, ben, hers.Key); return err },
		"old life": func() error {
			_, err := w.Sessions.Of(ctx, ben, control.SessionWord(hers.Key), hers.SessionID)
			return err
		},
	} {
		if err := do(); !errors.Is(err, workspace.ErrNotFound) {
			t.Errorf("ben may %s ana's session: %v", what, err)
		}
	}
	if _, err := w.Sessions.Of(ctx, ana, control.SessionWord(hers.Key), string(w.RunID)); !errors.Is(err, workspace.ErrNotFound) {
		t.Errorf("a generation of another session: %v", err)
	}
	home := workspace.Key{Agent: "a", Scope: workspace.ScopeAddress, Network: "mem", Account: "bot", Kind: channels.Group, Peer: "g"}
	named, other := home, workspace.Key{Agent: "b", Scope: workspace.ScopeAddress, Network: "mem", Account: "bot", Kind: channels.Group, Peer: "g"}
	named.Name = "plans"
	local, err := workspace.ParseKey(hers.Key)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		who  workspace.Actor
		kind channels.PeerKind
		to   workspace.Key
		want bool
	}{
		{boss.Actor, channels.Group, named, true}, {boss.Actor, channels.Group, local, false}, {ana.Actor, channels.Group, local, false},
		{boss.Actor, channels.DM, local, true}, {ana.Actor, channels.DM, local, true}, {ben.Actor, channels.DM, local, false}, {boss.Actor, channels.DM, other, false},
	} {
		if got := rights.Switchable(c.who, c.kind, home, c.to); got != c.want {
			t.Errorf("%s in a %s to %s: %v", c.who.Person, c.kind, c.to, got)
		}
	}
}

func TestSessionsAreMadeOnceAndPagedByAge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	boss := control.Call{Actor: workspace.Actor{Person: "boss", Role: workspace.Owner}, Kind: channels.DM}
	keyed := boss
	keyed.Key = "k"
	first, err := w.make(t, keyed, "trip")
	if err != nil {
		t.Fatal(err)
	}
	again, err := w.make(t, keyed, "trip")
	if err != nil || again.SessionID != first.SessionID {
		t.Errorf("made twice: %+v, %v", again, err)
	}
	if second, err := w.make(t, boss, "trip"); err != nil || !strings.HasSuffix(second.Key, ":trip-2") || second.Name != "trip" {
		t.Errorf("a second of the name: %+v, %v", second, err)
	}
	for _, name := range []string{strings.Repeat("x", 65), "a\nb", "agent:x", "\x00"} {
		if _, err := w.make(t, boss, name); !errors.Is(err, workspace.ErrInvalid) {
			t.Errorf("%q: %v", name, err)
		}
	}
	for i := range 7 {
		if _, err := w.make(t, boss, fmt.Sprint("s", i)); err != nil {
			t.Fatal(err)
		}
	}
	all, err := w.sessions(t, boss, session.ListIn{})
	if err != nil || len(all.Items) != 10 || all.Next != nil {
		t.Fatalf("%q, next %v, %v", names(all), all.Next, err)
	}
	var paged []string
	for q := (session.ListIn{Page: spec.Page{Limit: 3}}); ; {
		page, err := w.sessions(t, boss, q)
		if err != nil || len(page.Items) > 3 {
			t.Fatalf("%q, %v", names(page), err)
		}
		paged = append(paged, names(page)...)
		if page.Next == nil {
			break
		}
		q.After = *page.Next
	}
	if !slices.Equal(paged, names(all)) {
		t.Errorf("paged %q, want %q", paged, names(all))
	}
	if _, err := w.sessions(t, boss, session.ListIn{Page: spec.Page{After: "x"}}); !errors.Is(err, workspace.ErrInvalid) {
		t.Errorf("a cursor of nobody: %v", err)
	}
	if v, err := w.rename(t, boss, first.Key, "Great trip"); err != nil || v.Name != "Great trip" {
		t.Errorf("renamed: %+v, %v", v, err)
	}
	if v, err := w.rename(t, boss, first.Key, ""); err != nil || v.Name != "trip" || v.Given != "" {
		t.Errorf("without a name: %+v, %v", v, err)
	}
}

// A fork that is asked for again finds what it made and stops nothing; a deleted session is nowhere, and its record is.
func TestForksAndDeletesHappenOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	boss := control.Call{Actor: workspace.Actor{Person: "boss", Role: workspace.Owner}, Kind: channels.DM}
	keyed := boss
	keyed.Key = "k"
	first, err := w.fork(t, keyed, w.Key.String(), 3)
	if err != nil || first.Generation != 2 || len(w.Running.Cancelled) != 1 {
		t.Fatalf("%+v, cancelled %q, %v", first, w.Running.Cancelled, err)
	}
	got := w.Accept(t, "next", "ana", workspace.InputQueued, true)
	again, err := w.fork(t, keyed, w.Key.String(), 3)
	if err != nil || again.SessionID != first.SessionID || len(w.Running.Cancelled) != 1 {
		t.Errorf("again: %+v, cancelled %q, %v", again, w.Running.Cancelled, err)
	}
	if run, err := w.Store.Run(got.Begun.Run.ID); err != nil || run.StopBy != "" {
		t.Errorf("the run that came after was stopped: %+v, %v", run, err)
	}
	if _, err := w.fork(t, boss, w.Key.String(), 99); !errors.Is(err, workspace.ErrNotFound) {
		t.Errorf("beyond its end: %v", err)
	}
	lives, err := w.lives(t, boss, w.Key.String())
	if err != nil || len(lives) != 2 || lives[0].Ended != nil || lives[1].Ended == nil {
		t.Errorf("%+v, %v", lives, err)
	}
	if err := w.remove(t, boss, w.Key.String()); err != nil {
		t.Errorf("deleted: %v", err)
	}
	if run, err := w.Store.Run(got.Begun.Run.ID); err != nil || run.StopBy != "boss" {
		t.Errorf("its run goes on: %+v, %v", run, err)
	}
	if page, err := w.sessions(t, boss, session.ListIn{}); err != nil || len(page.Items) != 0 {
		t.Errorf("still listed: %q, %v", names(page), err)
	}
	if err := w.remove(t, boss, w.Key.String()); !errors.Is(err, workspace.ErrNotFound) {
		t.Errorf("deleted twice: %v", err)
	}
	if list, err := w.Store.Entries(workspace.SessionID(lives[1].SessionID), 0, 10); err != nil || len(list) == 0 {
		t.Errorf("the record: %d lines, %v", len(list), err)
	}
	if _, err := w.Store.Finish(store.Finish{Run: got.Begun.Run, State: workspace.RunStopped, InputState: workspace.InputStopped, Inputs: []workspace.Input{got.Input}, AnswerEntry: -1}); err != nil {
		t.Error(err)
	}
}
