package conversation_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"parley/channels"
	"parley/gateway/control"
	"parley/gateway/control/controltest"
	"parley/gateway/control/conversation"
	"parley/gateway/control/run"
	"parley/gateway/control/session"
	"parley/workspace"
	"parley/workspace/store"
)

func TestResumeIsForOnesOwnMessagesUnlessOwner(t *testing.T) {
	t.Parallel()
	w := controltest.New(t)
	for i, by := range []workspace.PersonID{"ana", "ben", "ana"} {
		got := w.Accept(t, "old"+string(rune('a'+i)), by, workspace.InputQueued, false)
		if _, err := w.Store.EndInputs([]store.Ending{{Seq: got.Input.Seq, From: workspace.InputQueued, To: workspace.InputStale}}); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := conversation.Resume.Call(t.Context(), w.Conversations, w.Call("ana", workspace.Member, channels.DM), struct{}{}); err != nil || got.Messages != 2 || len(w.Running.Offered) != 2 {
		t.Errorf("ana resumed %+v, offered %d, %v", got, len(w.Running.Offered), err)
	}
	if got, err := conversation.Resume.Call(t.Context(), w.Conversations, w.Call("boss", workspace.Owner, channels.DM), struct{}{}); err != nil || got.Messages != 1 || w.Running.Offered[2].Person != "ben" {
		t.Errorf("the owner resumed %+v, %v", got, err)
	}
}

// A command's effect, the end of its input and its reply are one commit: done twice, it happens once.
func TestCommandHappensOnce(t *testing.T) {
	t.Parallel()
	w := controltest.New(t)
	in := w.Accept(t, "cmd", "ana", workspace.InputQueued, false).Input
	c := w.Call("ana", workspace.Member, channels.DM)
	c.Input, c.Render = &in, func(any) string { return "fresh" }
	first, err := conversation.New.Call(t.Context(), w.Conversations, c, conversation.NewIn{})
	if err != nil || len(w.Running.Pushed) != 1 || w.Running.Pushed[0].Text != "fresh" {
		t.Fatalf("pushed %+v, %v", w.Running.Pushed, err)
	}
	if _, err := conversation.New.Call(t.Context(), w.Conversations, c, conversation.NewIn{}); !errors.Is(err, workspace.ErrConflict) {
		t.Errorf("the second time: %v", err)
	}
	if ses, err := w.Store.SessionByKey(w.Key); err != nil || ses.ID != first.Session || ses.Gen != 2 {
		t.Errorf("generation %d, %v", ses.Gen, err)
	}
	if got, err := w.Store.Input(in.ID); err != nil || got.State != workspace.InputAnswered {
		t.Errorf("the command is %s, %v", got.State, err)
	}
	if len(w.Running.Pushed) != 1 {
		t.Errorf("%d replies", len(w.Running.Pushed))
	}
	again := w.Accept(t, "cmd2", "ana", workspace.InputQueued, false).Input
	c.Input = &again
	if err := w.Refuse(c, "No."); err != nil {
		t.Fatal(err)
	}
	if got, err := w.Store.Input(again.ID); err != nil || got.State != workspace.InputFailed || got.Reason != "No." {
		t.Errorf("the refused command is %s (%s), %v", got.State, got.Reason, err)
	}
}

func TestMessageRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	w := controltest.New(t)
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

// What is chosen for a session is the chooser's own to choose, holds as it was said, and is left where it is not known.
func TestChoosingAModel(t *testing.T) {
	t.Parallel()
	w := controltest.New(t)
	w.Accept(t, "first", "boss", workspace.InputQueued, false)
	here := conversation.InSession{Session: control.SessionWord(w.Key.String())}
	http := func(who workspace.PersonID, role workspace.Role) control.Call {
		return control.Call{Actor: workspace.Actor{Person: who, Role: role}}
	}
	boss, ana := http("boss", workspace.Owner), http("ana", workspace.Member)
	for _, c := range []struct {
		call control.Call
		in   conversation.ChooseIn
		err  error
		want string
	}{
		{boss, conversation.ChooseIn{InSession: here, Think: "high"}, nil, "high"},
		{boss, conversation.ChooseIn{InSession: here, Model: "nowhere", Think: "low"}, workspace.ErrNotFound, "high"},
		{boss, conversation.ChooseIn{InSession: here, Think: "harder"}, workspace.ErrInvalid, "high"},
		{ana, conversation.ChooseIn{InSession: here, Think: "low"}, workspace.ErrNotFound, "high"},
		{http("eve", workspace.Guest), conversation.ChooseIn{InSession: here, Think: "low"}, workspace.ErrDenied, "high"},
		{boss, conversation.ChooseIn{InSession: here, Model: "default"}, nil, "high"},
		{boss, conversation.ChooseIn{InSession: here, Think: "default"}, nil, ""},
	} {
		v, err := conversation.Choose.Call(t.Context(), w.Conversations, c.call, c.in)
		if !errors.Is(err, c.err) || err == nil && (!v.Running || !v.May || v.Think != c.want) {
			t.Errorf("%s chooses %+v: %+v, %v", c.call.Actor.Person, c.in, v, err)
		}
		if ses, err := w.Store.SessionByKey(w.Key); err != nil || ses.Overrides.Think != c.want {
			t.Errorf("after %+v it thinks %q, %v", c.in, ses.Overrides.Think, err)
		}
	}
	if _, err := conversation.SessionModels.Call(t.Context(), w.Conversations, ana, here); !errors.Is(err, workspace.ErrNotFound) {
		t.Errorf("another's session shows its models: %v", err)
	}
}

// A run that a model has failed is asked again once, however often that is wanted, by who asked alone, and listed until then.
func TestAFailedRunIsAskedAgainOnce(t *testing.T) {
	t.Parallel()
	w := controltest.New(t)
	ana, in := w.Call("ana", workspace.Member, channels.DM), conversation.RetryIn{Run: control.RunWord(w.RunID)}
	retry := func(c control.Call) (conversation.Retried, error) {
		return conversation.RetryRun.Call(t.Context(), w.Conversations, c, in)
	}
	failing := func(c control.Call) int {
		l, err := run.ListFailing.Call(t.Context(), w.Runs, c, struct{}{})
		if n, countErr := w.Runs.Waiting(c); err != nil || countErr != nil || n != len(l.Items) {
			t.Errorf("%d listed, %d counted, %v, %v", len(l.Items), n, err, countErr)
		}
		return len(l.Items)
	}
	now, err := w.Store.Run(w.RunID)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	w.Store.Trouble(w.RunID, &workspace.Trouble{Model: "m", Kind: "auth", Status: 401, At: time.Now()}, func() { close(done) })
	<-done
	if got, err := retry(ana); err != nil || got.State != workspace.RunRunning || w.Running.Anewed != 0 || failing(ana) != 1 {
		t.Errorf("while it is answered: %+v, %v", got, err)
	}
	w.Running.Waits = true
	if got, err := retry(ana); err != nil || got.State != workspace.RunRunning || w.Running.Anewed != 1 {
		t.Errorf("while it waits for its model: %+v, %v", got, err)
	}
	if _, err := retry(w.Call("ben", workspace.Member, channels.DM)); !errors.Is(err, workspace.ErrNotFound) || w.Running.Anewed != 1 {
		t.Errorf("somebody else: %v", err)
	}
	w.Running.Waits = false
	if _, err := w.Store.Finish(store.Finish{Run: now, State: workspace.RunFailed, Reason: "model_auth", InputState: workspace.InputFailed,
		Inputs: []workspace.Input{w.Input}, AnswerEntry: -1}); err != nil {
		t.Fatal(err)
	}
	if failing(ana) != 1 || failing(w.Call("ben", workspace.Member, channels.DM)) != 0 || failing(w.Call("boss", workspace.Owner, channels.DM)) != 0 {
		t.Error("it waits for ana alone")
	}
	if _, err := retry(w.Call("boss", workspace.Owner, channels.DM)); !errors.Is(err, workspace.ErrDenied) {
		t.Errorf("an owner in her name: %v", err)
	}
	if _, err := retry(w.Call("ben", workspace.Member, channels.DM)); !errors.Is(err, workspace.ErrNotFound) {
		t.Errorf("somebody else: %v", err)
	}
	first, err := retry(ana)
	if err != nil || first.State != "queued" || len(w.Running.Offered) != 1 {
		t.Fatalf("%+v, %v, offered %d", first, err, len(w.Running.Offered))
	}
	asked := w.Running.Offered[0]
	if asked.ID != first.InputID || asked.Text != w.Input.Text || asked.Person != "ana" || asked.Role != workspace.Member || asked.State != workspace.InputQueued {
		t.Errorf("asked again is %+v", asked)
	}
	in.Run = control.RunWord(w.Input.ID) // by its message too
	if second, err := retry(ana); err != nil || second != first || len(w.Running.Offered) != 1 {
		t.Errorf("the second time: %+v, %v, offered %d", second, err, len(w.Running.Offered))
	}
	entries, err := w.Store.LastEntries(now.SessionID, 10)
	if err != nil || entries[len(entries)-1].Body.Type != workspace.EventUndone || entries[len(entries)-1].Body.Reason != workspace.UndoneToRetry {
		t.Errorf("the failed exchange stays in the prompt: %+v, %v", entries, err)
	}
	if _, err := w.Store.Begin(store.Begin{Run: workspace.Run{ID: workspace.RunID(w.Store.IDs().New()), Requester: "ana", Role: workspace.Member}, Entries: []workspace.EntryBody{{}}},
		w.Key, asked.RoomID, []workspace.Input{asked}, nil); err != nil || failing(ana) != 0 {
		t.Errorf("when it is asked again: %v, %d", err, failing(ana))
	}
}
