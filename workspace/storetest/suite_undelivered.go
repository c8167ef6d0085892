package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"parley/workspace"
	"parley/workspace/store"
)

// partStates of an answer's parts, in order.
func partStates(t *testing.T, s *store.Store, key string) (list []workspace.PartState) {
	t.Helper()
	o, err := s.OutboundByKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range o.Parts {
		list = append(list, p.State)
	}
	return list
}

// A dead answer is retried from the part that died on, with all that was cancelled behind it, as often as one likes.
func deadRetried(t *testing.T, s *store.Store) {
	room := accept(t, s, NewChat(1).Message(s, "m", "x")).Input.RoomID
	n := Notice(workspace.InputKey("in", "long"), room, "one two three")
	n.NotAfter, n.InputID = time.UnixMilli(5), "in"
	n.Spans = []store.Span{{From: 0, To: 4}, {From: 4, To: 8}, {From: 8, To: 13}}
	out, err := s.Outbound(n)
	if err != nil {
		t.Fatal(err)
	}
	die := func(i int) {
		t.Helper()
		o, err := s.OutboundByKey(n.Key)
		if err == nil {
			_, err = s.Dead(store.Move{Part: o.Parts[i], Error: "gone"}, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.MovePart(store.Move{Part: out[0].Parts[0], To: workspace.PartSending}); err != nil {
		t.Fatal(err)
	}
	s.Receipt(store.Move{Part: out[0].Parts[0], To: workspace.PartSent, Remote: "1"})
	if _, err := s.Retry(out[0].ID); !errors.Is(err, workspace.ErrConflict) {
		t.Errorf("retried though nothing is undelivered: %v", err)
	}
	die(1)
	got, err := s.Retry(out[0].ID)
	if err != nil || !got.NotAfter.IsZero() || len(got.Parts) != 4 || got.N != out[0].N || got.InputID != "in" {
		t.Fatalf("%+v %v", got, err)
	}
	want := []workspace.PartState{workspace.PartSent, workspace.PartReady, workspace.PartCancelled, workspace.PartReady}
	if have := partStates(t, s, n.Key); !slices.Equal(have, want) {
		t.Errorf("parts %v, want %v", have, want)
	}
	if p := got.Parts[1]; p.Error != "" || p.Doubt != "" || p.Tries != 0 || p.Epoch != s.Epoch() {
		t.Errorf("retried part %+v", p)
	}
	if p := got.Parts[3]; p.From != 8 || p.To != 13 || p.Token == got.Parts[2].Token {
		t.Errorf("what comes back is %+v", p)
	}
	if stored, err := s.OutboundByKey(n.Key); err != nil || !stored.NotAfter.IsZero() || stored.InputID != "in" {
		t.Errorf("it is still too old, or answers %q: %v %v", stored.InputID, stored.NotAfter, err)
	}
	die(1)
	if got, err = s.Retry(out[0].ID); err != nil || len(got.Parts) != 5 {
		t.Fatalf("again: %+v %v", got.Parts, err)
	}
	want = []workspace.PartState{workspace.PartSent, workspace.PartReady, workspace.PartCancelled, workspace.PartCancelled, workspace.PartReady}
	if have := partStates(t, s, n.Key); !slices.Equal(have, want) {
		t.Errorf("parts %v, want %v", have, want)
	}
	if _, err := s.Retry("nothing"); !errors.Is(err, workspace.ErrNotFound) {
		t.Errorf("an answer that is not there: %v", err)
	}
}

// A doubt is read as it was stored, in every state that it is kept in, and what was in doubt is retried marked, but for an answer of
// which only the placeholder may be there; what a network says is no doubt, whatever it says.
func doubtKept(t *testing.T, s *store.Store) {
	room := accept(t, s, NewChat(1).Message(s, "m", "x")).Input.RoomID
	sending := store.Move{To: workspace.PartSending}
	unknown := store.Move{To: workspace.PartUnknown, Doubt: workspace.DoubtUnanswered, Error: "cut"}
	to := func(state workspace.PartState, d workspace.Doubt, words string) store.Move {
		return store.Move{To: state, Doubt: d, Error: words}
	}
	for i, c := range []struct {
		path        []store.Move
		doubt       workspace.Doubt
		words       string
		retry       workspace.Doubt
		undelivered bool
	}{
		{[]store.Move{sending, unknown}, workspace.DoubtUnanswered, "cut", workspace.DoubtMarked, true},
		{[]store.Move{sending, to(workspace.PartUnknown, workspace.DoubtEnded, "")}, workspace.DoubtEnded, "", workspace.DoubtMarked, true},
		{[]store.Move{sending, to(workspace.PartUnknown, workspace.DoubtMarked, "cut")}, workspace.DoubtMarked, "", workspace.DoubtMarked, true},
		{[]store.Move{sending, unknown, to(workspace.PartReady, workspace.DoubtMarked, "flood")}, workspace.DoubtMarked, "", "", false},
		{[]store.Move{sending, unknown, to(workspace.PartReady, workspace.DoubtMarked, ""), sending}, workspace.DoubtMarked, "", "", false},
		{[]store.Move{sending, unknown, to(workspace.PartReady, "", "surely absent")}, "", "surely absent", "", false},
		{[]store.Move{sending, unknown, to(workspace.PartParked, workspace.DoubtMarked, "past its age")}, workspace.DoubtMarked, "", workspace.DoubtMarked, true},
		{[]store.Move{to(workspace.PartParked, "", "past its age")}, "", "past its age", "", true},
		{[]store.Move{sending, unknown, to(workspace.PartReady, workspace.DoubtPlaceholder, ""),
			to(workspace.PartParked, workspace.DoubtPlaceholder, "past its age")}, workspace.DoubtPlaceholder, "", workspace.DoubtPlaceholder, true},
		{[]store.Move{sending, unknown, to(workspace.PartDead, workspace.DoubtDropped, "")}, workspace.DoubtDropped, "", workspace.DoubtMarked, true},
		{[]store.Move{sending, unknown, to(workspace.PartDead, workspace.DoubtTwice, "")}, workspace.DoubtTwice, "", workspace.DoubtMarked, true},
		{[]store.Move{to(workspace.PartDead, "", "sent once more, marked")}, "", "sent once more, marked.", workspace.DoubtPlaceholder, true},
		{[]store.Move{sending, to(workspace.PartDead, "", "forbidden")}, "", "forbidden", workspace.DoubtPlaceholder, true},
		{[]store.Move{sending, unknown, to(workspace.PartDead, workspace.DoubtMarked, "")},
			workspace.DoubtMarked, "", workspace.DoubtMarked, true},
	} {
		key := fmt.Sprint("doubt", i)
		out, err := s.Outbound(Notice(key, room, "hello"))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range c.path {
			m.Part = out[0].Parts[0]
			if err := s.MovePart(m); err != nil {
				t.Fatal(err)
			}
		}
		o, err := s.OutboundByKey(key)
		if p := o.Parts[0]; err != nil || p.Doubt != c.doubt || p.Error != c.words {
			t.Errorf("%d: read as %q, %q, %v; want %q, %q", i, p.Doubt, p.Error, err, c.doubt, c.words)
		}
		got, err := s.Retry(out[0].ID)
		if check(t, "retry "+key, c.undelivered, err); err == nil && got.Parts[0].Doubt != c.retry {
			t.Errorf("%d: retried as %q, want %q", i, got.Parts[0].Doubt, c.retry)
		}
	}
}

// Every state of a part: what is undelivered can be listed, retried and dropped, and nothing else.
func undeliveredEdges(t *testing.T, s *store.Store) {
	room := accept(t, s, NewChat(1).Message(s, "m", "x")).Input.RoomID
	in := func(key string, path ...store.Move) workspace.Outbound {
		t.Helper()
		out, err := s.Outbound(Notice(key, room, "hello"))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range path {
			m.Part = out[0].Parts[0]
			if err := s.MovePart(m); err != nil {
				t.Fatal(err)
			}
		}
		return out[0]
	}
	sending := store.Move{To: workspace.PartSending}
	unknown := store.Move{To: workspace.PartUnknown}
	for name, c := range map[string]struct {
		path        []store.Move
		undelivered bool
	}{
		"ready": {nil, false}, "sending": {[]store.Move{sending}, false}, "sent": {[]store.Move{sending, {To: workspace.PartSent}}, false},
		"live": {[]store.Move{sending, {To: workspace.PartLive, Remote: "1"}}, false}, "cancelled": {[]store.Move{{To: workspace.PartCancelled}}, false},
		"unknown": {[]store.Move{sending, unknown}, true}, "dead": {[]store.Move{{To: workspace.PartDead}}, true}, "parked": {[]store.Move{{To: workspace.PartParked}}, true},
	} {
		retried, dropped := in(name+" retried", c.path...), in(name+" dropped", c.path...)
		if list, err := s.OutboundIn([]workspace.PartState{workspace.PartDead, workspace.PartUnknown, workspace.PartParked}, "", 100); err != nil ||
			slices.ContainsFunc(list, func(o workspace.Outbound) bool { return o.ID == retried.ID }) != c.undelivered {
			t.Errorf("%s: listed %v, %v", name, !c.undelivered, err)
		}
		_, err := s.Retry(retried.ID)
		check(t, "retry what is "+name, c.undelivered, err)
		check(t, "drop what is "+name, c.undelivered, s.Drop(dropped.ID, "dropped by p1"))
		if c.undelivered {
			if have := partStates(t, s, name+" retried"); have[0] != workspace.PartReady {
				t.Errorf("%s retried is %s", name, have)
			}
			if have := partStates(t, s, name+" dropped"); have[0] != workspace.PartCancelled {
				t.Errorf("%s dropped is %s", name, have)
			}
		}
	}
}

func undeliveredInPages(t *testing.T, s *store.Store) {
	room := accept(t, s, NewChat(1).Message(s, "m", "x")).Input.RoomID
	var all []workspace.OutboundID
	for i := range 5 {
		out, err := s.Outbound(Notice(fmt.Sprint("n", i), room, "hello"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Dead(store.Move{Part: out[0].Parts[0], Error: "gone"}, nil); err != nil {
			t.Fatal(err)
		}
		all = append(all, out[0].ID)
	}
	slices.Sort(all)
	slices.Reverse(all)
	var got []workspace.OutboundID
	for after := workspace.OutboundID(""); ; after = got[len(got)-1] {
		page, err := s.OutboundIn([]workspace.PartState{workspace.PartDead}, after, 2)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, o := range page {
			if len(o.Parts) != 1 || o.Text != "hello" {
				t.Errorf("%+v", o)
			}
			got = append(got, o.ID)
		}
	}
	if !slices.Equal(got, all) {
		t.Errorf("%v, want %v", got, all)
	}
}

// /resume takes late answers up in the command's commit; those that are parked no more are passed over.
func lateResumed(t *testing.T, s *store.Store) {
	c := NewChat(1)
	room := accept(t, s, c.Message(s, "m", "x")).Input.RoomID
	var ids []workspace.OutboundID
	for i := range 2 {
		out, err := s.Outbound(Notice(fmt.Sprint("late", i), room, "hello"))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.MovePart(store.Move{Part: out[0].Parts[0], To: workspace.PartParked, Error: "past its age"}); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, out[0].ID)
	}
	if list, err := s.Parked(room); err != nil || len(list) != 2 || list[0].ID != ids[0] {
		t.Errorf("parked: %+v %v", list, err)
	}
	if list, err := s.Parked("another room"); err != nil || len(list) != 0 {
		t.Errorf("parked elsewhere: %+v %v", list, err)
	}
	if err := s.Drop(ids[1], "not wanted"); err != nil {
		t.Fatal(err)
	}
	a := c.Message(s, "resume", "/resume")
	a.Input.Mode = workspace.ModeCommand
	did, err := s.RunCommand(store.Command{Input: accept(t, s, a).Input, Changes: []store.Change{store.Unpark(ids)}})
	if err != nil || len(did.Late) != 1 || did.Late[0].ID != ids[0] || did.Late[0].Parts[0].State != workspace.PartReady {
		t.Fatalf("%+v %v", did, err)
	}
	if have := partStates(t, s, "late0"); have[0] != workspace.PartReady {
		t.Errorf("stored as %s", have)
	}
}
