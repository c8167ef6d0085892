package storetest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"parley/channels"
	"parley/workspace"
	"parley/workspace/store"
)

func stopWins(t *testing.T, s *store.Store) {
	c := NewChat(1)
	first := accept(t, s, c.Begun(s, "m:1", "one"))
	done := finish(t, s, Answer(first.Begun.Run, "1", first.Input)) // its part is on its way: it stays
	two := accept(t, s, c.Begun(s, "m:2", "two"))
	waits := accept(t, s, c.Message(s, "m:3", "three"))
	other := c.Message(s, "m:4", "of another")
	other.Input.Person = "q"
	others := accept(t, s, other)
	got, err := s.Stop(store.Stop{Session: two.Input.SessionID, By: c.Person, Requester: c.Person, Before: 1 << 60})
	if err != nil || got.Run != two.Begun.Run.ID || !slices.Equal(got.Queued, []int64{waits.Input.Seq}) || got.Parts != 0 {
		t.Fatalf("stopped: %+v %v", got, err)
	}
	if in := input(t, s, others.Input.ID); in.State != workspace.InputQueued {
		t.Errorf("the other's message is %s", in.State)
	}
	f := Answer(two.Begun.Run, "too late", two.Input)
	last := Notice("last", two.Input.RoomID, "(stopped)")
	f.IfStopped = &last
	end := finish(t, s, f)
	if end.State != workspace.RunStopped || end.Answer == nil || end.Answer.Text != "(stopped)" {
		t.Errorf("finish after the stop: %+v", end)
	}
	if in := input(t, s, two.Input.ID); in.State != workspace.InputStopped {
		t.Errorf("its input is %s", in.State)
	}
	if und, err := s.OpenOutbound(); err != nil || len(und) != 2 || und[0].ID != done.Answer.ID {
		t.Errorf("undelivered: %+v %v", und, err)
	}
}

func stopHelpers(t *testing.T, s *store.Store) {
	parent := accept(t, s, NewChat(1).Begun(s, "m:1", "one")).Begun.Run
	below := []workspace.RunID{}
	up := parent
	for i := range 3 {
		c := NewChat(10 + i)
		a := c.Begun(s, "h", "help")
		a.Input.Account = string(rune('a' + i))
		a.Begin.Run.ParentRun, a.Begin.Run.ParentCall = up.ID, "call"
		up = accept(t, s, a).Begun.Run
		below = append(below, up.ID)
	}
	got, err := s.Stop(store.Stop{Session: parent.SessionID, By: "owner"})
	slices.Sort(below)
	if err != nil || !slices.Equal(got.Below, below) {
		t.Errorf("below: %v %v, want %v", got.Below, err, below)
	}
	if r, err := s.Run(up.ID); err != nil || r.StopBy != "owner" {
		t.Errorf("the deepest: %+v %v", r, err)
	}
	twin := NewChat(20).Begun(s, "t", "twin")
	twin.Begin.Run.ParentRun, twin.Begin.Run.ParentCall = parent.ID, "call"
	if a := accept(t, s, twin); a.Begun != nil {
		t.Errorf("one call began two helpers: %+v", a.Begun.Run)
	}
}

func command(t *testing.T, s *store.Store) {
	c := NewChat(1)
	m := c.Message(s, "m:1", "/status")
	m.Input.Mode = workspace.ModeCommand
	in := accept(t, s, m).Input
	reply := Notice("input:"+string(in.ID)+":reply", in.RoomID, "fine")
	did, err := s.RunCommand(store.Command{Input: in, Reply: &reply})
	if err != nil || len(did.Reply) != 1 {
		t.Fatalf("%+v %v", did, err)
	}
	if got := input(t, s, in.ID); got.State != workspace.InputAnswered {
		t.Errorf("input is %s", got.State)
	}
	if _, err := s.RunCommand(store.Command{Input: in, Reply: &reply}); !errors.Is(err, workspace.ErrConflict) {
		t.Errorf("a command twice: %v", err)
	}
	bad := store.Command{Input: accept(t, s, c.Message(s, "m:2", "/model")).Input, Reply: &store.NewOutbound{Key: "bad", RoomID: in.RoomID},
		Changes: []store.Change{store.SetOverrides{Session: "nobody"}}}
	if _, err := s.RunCommand(bad); !errors.Is(err, workspace.ErrConflict) {
		t.Errorf("a change of nothing: %v", err)
	}
	if got := input(t, s, bad.Input.ID); got.State != workspace.InputQueued {
		t.Errorf("half a command: %s", got.State)
	}
	if _, err := s.OutboundByKey("bad"); !errors.Is(err, workspace.ErrNotFound) {
		t.Errorf("half a command: %v", err)
	}
	set := store.SetOverrides{Session: in.SessionID, Overrides: workspace.Overrides{Model: "m"}}
	if _, err := s.RunCommand(store.Command{Changes: []store.Change{set}}); err != nil {
		t.Fatal(err)
	}
	if ses, err := s.Session(in.SessionID); err != nil || ses.Overrides.Model != "m" {
		t.Errorf("overrides: %+v %v", ses.Overrides, err)
	}
}

func newGeneration(t *testing.T, s *store.Store) {
	c := NewChat(1)
	cmd := accept(t, s, c.Message(s, "m:1", "/new")).Input
	waits := accept(t, s, c.Message(s, "m:2", "after")).Input
	did, err := s.RunCommand(store.Command{Input: cmd, Changes: []store.Change{store.NewGeneration{Key: c.Key}}})
	if err != nil || did.Session == "" || did.Session == cmd.SessionID {
		t.Fatalf("%+v %v", did, err)
	}
	if in := input(t, s, waits.ID); in.SessionID != did.Session {
		t.Errorf("what waited is in %s, want %s", in.SessionID, did.Session)
	}
	if in := accept(t, s, c.Message(s, "m:3", "more")).Input; in.SessionID != did.Session {
		t.Errorf("what came after is in %s", in.SessionID)
	}
	ses, err := s.SessionByKey(c.Key)
	if err != nil || ses.ID != did.Session || ses.Gen != 2 {
		t.Errorf("newest generation: %+v %v", ses, err)
	}
	if list, err := s.Heads(); err != nil || len(list) != 1 {
		t.Errorf("sessions: %+v %v", list, err)
	}
}

func streamed(t *testing.T, s *store.Store) {
	c := NewChat(1)
	a := accept(t, s, c.Begun(s, "m:1", "one"))
	open := store.NewOutbound{Key: workspace.AnswerKey(a.Begun.Run.ID), RoomID: a.Input.RoomID, RunID: a.Begun.Run.ID,
		Kind: workspace.OutAnswer, Open: true, Spans: []store.Span{{}, {}, {}}}
	out, err := s.Outbound(open)
	if err != nil || len(out) != 1 || out[0].State != workspace.OutOpen || len(out[0].Parts) != 3 {
		t.Fatalf("%+v %v", out, err)
	}
	for _, st := range []workspace.PartState{workspace.PartSending, workspace.PartLive} {
		if err := s.MovePart(store.Move{Part: out[0].Parts[0], To: st, Remote: "5"}); err != nil {
			t.Fatal(err)
		}
	}
	f := Answer(a.Begun.Run, "hello world", a.Input)
	f.Answer.Streamed, f.Answer.Spans = out[0].ID, []store.Span{{To: 5}, {From: 5, To: 11}}
	end := finish(t, s, f)
	got, err := s.OutboundOfRun(open.RunID)
	if err != nil || got.ID != out[0].ID || got.State != workspace.OutFinal || got.Text != "hello world" || len(got.Parts) != 3 {
		t.Fatalf("%+v %v", got, err)
	}
	if p := got.Parts[0]; p.State != workspace.PartLive || p.RemoteID != "5" || p.Token != out[0].Parts[0].Token || p.To != 5 {
		t.Errorf("first part: %+v", p)
	}
	if p := got.Parts[2]; p.From != 0 || p.To != 0 {
		t.Errorf("surplus part: %+v", p)
	}
	if end.Answer.N != out[0].N {
		t.Errorf("number %d became %d", out[0].N, end.Answer.N)
	}
}

func streamedAgain(t *testing.T, s *store.Store) {
	c := NewChat(1)
	a := accept(t, s, c.Begun(s, "m:1", "one"))
	open := store.NewOutbound{Key: workspace.AnswerKey(a.Begun.Run.ID), RoomID: a.Input.RoomID, RunID: a.Begun.Run.ID,
		Kind: workspace.OutAnswer, Open: true, Spans: []store.Span{{}}}
	first, err := s.Outbound(open)
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.Outbound(open)
	if err != nil || len(second) != 1 || second[0].ID != first[0].ID || len(second[0].Parts) != 1 || second[0].Parts[0].Token != first[0].Parts[0].Token {
		t.Fatalf("opened again: %+v %v", second, err)
	}
	// a resumed run that does not know of the stream must not lose its answer
	end := finish(t, s, Answer(a.Begun.Run, "text", a.Input))
	if end.Answer == nil || end.Answer.ID != first[0].ID {
		t.Fatalf("answer: %+v", end.Answer)
	}
	if got, err := s.OutboundOfRun(open.RunID); err != nil || got.Text != "text" || got.State != workspace.OutFinal {
		t.Errorf("%+v %v", got, err)
	}
}

func deadPart(t *testing.T, s *store.Store) {
	room := accept(t, s, NewChat(1).Message(s, "m:1", "x")).Input.RoomID
	n := Notice("n", room, "one two three")
	n.Spans = []store.Span{{To: 4}, {From: 4, To: 8}, {From: 8, To: 13}}
	out, err := s.Outbound(n)
	if err != nil {
		t.Fatal(err)
	}
	parts := out[0].Parts
	for _, st := range []workspace.PartState{workspace.PartSending, workspace.PartSent} {
		if err := s.MovePart(store.Move{Part: parts[0], To: st}); err != nil {
			t.Fatal(err)
		}
	}
	notice := Notice("dead", room, "could not be sent")
	told, err := s.Dead(store.Move{Part: parts[1], Error: "gone"}, &notice)
	if err != nil || len(told) != 1 {
		t.Fatalf("%+v %v", told, err)
	}
	got, err := s.OutboundByKey("n")
	if err != nil {
		t.Fatal(err)
	}
	want := []workspace.PartState{workspace.PartSent, workspace.PartDead, workspace.PartCancelled}
	for i, p := range got.Parts {
		if p.State != want[i] {
			t.Errorf("part %d is %s, want %s", i, p.State, want[i])
		}
	}
	if und, err := s.OpenOutbound(); err != nil || len(und) != 1 || und[0].Key != "dead" {
		t.Errorf("undelivered: %+v %v", und, err)
	}
}

func pairing(t *testing.T, s *store.Store) {
	c := NewChat(1)
	p := workspace.Pairing{ID: "pair1", Channel: "tg", Network: c.Addr.Network, Account: c.Addr.Account, User: "7", Name: "Bo\x00b",
		State: workspace.PairingOpen, Requested: time.UnixMilli(1000), CodeHash: "h", Issued: time.UnixMilli(2000)}
	a := c.Message(s, "m:1", "hi")
	a.Input.State, a.Pairing, a.Key = workspace.InputRefused, &p, workspace.Key{}
	a.Replies = []store.NewOutbound{Notice("input:x:refused", "", "your code")}
	got := accept(t, s, a)
	if len(got.Replies) != 1 || got.Replies[0].RoomID != got.Input.RoomID {
		t.Fatalf("reply: %+v", got.Replies)
	}
	p.State, p.DecidedBy, p.Decided = workspace.PairingApproved, "ana", time.UnixMilli(3000)
	note := Notice("pair", "", "welcome")
	acc, out, err := s.DecidePairing(p, workspace.Member, &note)
	if err != nil || acc.Person == "" || len(out) != 1 || out[0].RoomID != got.Input.RoomID {
		t.Fatalf("%+v %+v %v", acc, out, err)
	}
	if who, err := s.Person(c.Addr.Network, c.Addr.Account, "7"); err != nil || who.Role != workspace.Member || who.ID != acc.Person {
		t.Errorf("person: %+v %v", who, err)
	}
	if _, _, err := s.DecidePairing(p, workspace.Owner, nil); !errors.Is(err, workspace.ErrConflict) {
		t.Errorf("decided twice: %v", err)
	}
}

func people(t *testing.T, s *store.Store) {
	ana := workspace.Person{ID: "ana", Role: workspace.Owner, Name: "Ana", TZ: "Europe/Berlin"}
	acc := workspace.Account{Network: "telegram", Account: "42", User: "1", Person: "ana"}
	old := workspace.Account{Network: "telegram", Account: "42", User: "2", Person: "ana"}
	other := workspace.Account{Network: "telegram", Account: "43", User: "2", Person: "ana"}
	if err := s.SyncPeople([]workspace.Person{ana}); err != nil {
		t.Fatal(err)
	}
	if err := s.SyncAccounts("telegram", "42", []workspace.Account{acc, old}); err != nil {
		t.Fatal(err)
	}
	if err := s.SyncAccounts("telegram", "43", []workspace.Account{other}); err != nil {
		t.Fatal(err)
	}
	if p, err := s.Person("telegram", "42", "2"); err != nil || p.Role != workspace.Owner {
		t.Fatalf("%+v %v", p, err)
	}
	if err := s.SyncAccounts("telegram", "42", []workspace.Account{acc}); err != nil {
		t.Fatal(err)
	}
	if p, err := s.Person("telegram", "42", "2"); !errors.Is(err, workspace.ErrNotFound) {
		t.Errorf("an account that the configuration dropped is still %+v (%v)", p, err)
	}
	for account, user := range map[channels.AccountID]channels.UserID{"42": "1", "43": "2"} {
		if p, err := s.Person("telegram", account, user); err != nil || p.Role != workspace.Owner {
			t.Errorf("user %s of account %s: %+v %v", user, account, p, err)
		}
	}
	if err := s.SyncPeople(nil); err != nil {
		t.Fatal(err)
	}
	if p, err := s.PersonByID("ana"); err != nil || p.Role != workspace.Guest {
		t.Errorf("a person that the configuration dropped is %+v (%v)", p, err)
	}
}
