package session_test

import (
	"errors"
	"testing"

	"parley/channels"
	"parley/gateway/control"
	"parley/gateway/control/session"
	"parley/workspace"
	"parley/workspace/store"
)

// A mark is set for oneself, in what one reaches, and no further than there is something; a list says whether there is more.
func TestMarkRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	call := func(who workspace.PersonID, role workspace.Role) control.Call {
		return control.Call{Actor: workspace.Actor{Person: who, Role: role}, Kind: channels.DM}
	}
	boss, ana := call("boss", workspace.Owner), call("ana", workspace.Member)
	if err := w.Sessions.Look(boss); err != nil {
		t.Fatal(err)
	}
	for _, c := range []control.Call{boss, ana} {
		if err := w.Sessions.Look(c); err != nil {
			t.Fatal(err)
		}
	}
	it, err := w.make(t, ana, "")
	if err != nil || it.Name != "New chat" || it.Unread {
		t.Fatalf("%+v, %v", it, err)
	}
	mark := store.Mark{Session: workspace.SessionID(it.SessionID), Body: workspace.EntryBody{Type: workspace.EventUndone}}
	if _, err := w.Store.RunCommand(store.Command{Changes: []store.Change{mark}}); err != nil {
		t.Fatal(err)
	}
	seq := func(c control.Call, n int64) error {
		_, err := session.MarkRead.Call(t.Context(), w.Sessions, c, session.ReadIn{BySession: bySession(it.Key), Of: workspace.SessionID(it.SessionID), Sequence: n})
		return err
	}
	key, err := workspace.ParseKey(it.Key)
	if err != nil {
		t.Fatal(err)
	}
	if err := seq(call("ben", workspace.Member), 1); !errors.Is(err, workspace.ErrNotFound) {
		t.Errorf("ben marks ana's: %v", err)
	}
	if err := seq(call("eve", workspace.Guest), 1); !errors.Is(err, workspace.ErrDenied) {
		t.Errorf("a guest marks: %v", err)
	}
	if err := seq(ana, 1<<40); err != nil {
		t.Error(err)
	}
	if r, err := w.Store.ReadOf("ana", key); err != nil || r.N != 1 || r.Gen != 1 {
		t.Errorf("ana has read %+v, %v", r, err)
	}
	if r, err := w.Store.ReadOf("boss", key); err != nil || r.N != 0 {
		t.Errorf("the owner has read %+v, %v", r, err)
	}
	if now, err := session.Show.Call(t.Context(), w.Sessions, ana, bySession(it.Key)); err != nil || now.Unread {
		t.Errorf("ana's is %+v, %v", now, err)
	}
}

// A chat is called by its name, else by what was said in it first, as text; whoever does not reach it is not told.
func TestTitles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	boss := control.Call{Actor: workspace.Actor{Person: "boss", Role: workspace.Owner}}
	ana := control.Call{Actor: workspace.Actor{Person: "ana", Role: workspace.Member}}
	title := func(c control.Call, want string) {
		t.Helper()
		if got, err := w.Find.TitleFor(c, w.Key.String()); err != nil || got != want {
			t.Errorf("%s calls it %q, %v, want %q", c.Actor.Person, got, err, want)
		}
	}
	title(boss, "text 1")
	title(ana, "")
	if _, err := w.rename(t, boss, w.Key.String(), "Plans"); err != nil {
		t.Fatal(err)
	}
	title(boss, "Plans")
}
