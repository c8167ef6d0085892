package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/workspace"
	"parley/workspace/store"
)

// asking begins a run whose call c1 is planned, and the question about it.
func asking(t testing.TB, s *store.Store, c Chat, key string) (workspace.Run, workspace.Input, store.Ask) {
	t.Helper()
	got := accept(t, s, c.Begun(s, key, "x"))
	run := got.Begun.Run
	plan(t, s, run, 1, "c1")
	return run, got.Input, question(s, run, got.Input.RoomID, "c1")
}

func plan(t testing.TB, s *store.Store, run workspace.Run, n int, call string) {
	t.Helper()
	_, err := s.Step(store.StepUnit{Run: run, Wait: true, Steps: []workspace.Step{{RunID: run.ID, N: n, Kind: workspace.StepTool, CallID: call, Tool: "act",
		Effect: workspace.Outside, State: workspace.StepPlanned}}})
	if err != nil {
		t.Fatal(err)
	}
}

func question(s *store.Store, run workspace.Run, room workspace.RoomID, call string) store.Ask {
	ap := workspace.Approval{ID: workspace.ApprovalID(s.IDs().New()), RunID: run.ID, CallID: call, SessionID: run.SessionID, Session: "k", Agent: "a", Tool: "act", Hash: "h",
		Requester: run.Requester, Role: workspace.Owner, RoomID: room, Expires: time.Now().Add(time.Hour),
		Body: workspace.ApprovalBody{Shown: "rm -rf \x00/", Grants: []workspace.Grant{workspace.Once}, Rooms: []workspace.AskedRoom{{Room: room, Whole: true}}}}
	return store.Ask{Run: run, Approval: ap, Questions: []store.NewOutbound{{Key: ap.QuestionKey(room), RoomID: room, RunID: run.ID, Kind: workspace.OutApproval, Open: true,
		Text: "may I?", Spans: []store.Span{{To: 6}}}}}
}

func start(run workspace.Run, n int, call string, ap workspace.ApprovalID) store.StepUnit {
	return store.StepUnit{Run: run, Wait: true, Steps: []workspace.Step{{RunID: run.ID, N: n, Kind: workspace.StepTool, CallID: call, Tool: "act", Effect: workspace.Outside,
		State: workspace.StepStarted, Approval: ap}}}
}

func approvedOnce(t *testing.T, s *store.Store) {
	run, in, ask := asking(t, s, NewChat(1), "m:1")
	got, err := s.Ask(ask)
	if err != nil || got.Again || got.Approval.State != workspace.ApprovalPending || len(got.Pushed) != 1 || got.Pushed[0].State != workspace.OutOpen || got.Approval.Body.After < in.Seq {
		t.Fatalf("asked: %+v %v", got, err)
	}
	if asks, err := s.QuestionsOf(in.RoomID); err != nil || len(asks) != 1 {
		t.Errorf("the room was asked by %+v %v", asks, err)
	} else if ap, err := s.ApprovalAskedBy(asks[0]); err != nil || ap.ID != ask.Approval.ID {
		t.Errorf("the message asks about %+v %v", ap, err)
	}
	if _, err := s.ApprovalAskedBy(workspace.Outbound{Key: "approval:x:y", RunID: run.ID, RoomID: "y"}); !errors.Is(err, workspace.ErrNotFound) {
		t.Errorf("another message: %v", err)
	}
	if now, err := s.Run(run.ID); err != nil || now.State != workspace.RunWaiting {
		t.Errorf("the run is %s, %v", now.State, err)
	}
	open, err := s.OpenApprovals()
	if err != nil || len(open) != 1 || open[0].Body.Shown != "rm -rf \x00/" || !slices.Contains(open[0].Body.Rooms, workspace.AskedRoom{Room: in.RoomID, Whole: true}) {
		t.Errorf("open: %+v %v", open, err)
	}
	if _, err := s.Step(start(run, 1, "c1", ask.Approval.ID)); !errors.Is(err, workspace.ErrConflict) {
		t.Errorf("started before the answer: %v", err)
	}
	ap, entries, err := s.Decide(store.Verdict{ID: ask.Approval.ID, To: workspace.ApprovalApproved, By: "ana", Via: "cli"})
	if err != nil || ap.State != workspace.ApprovalApproved || ap.Grant != workspace.Once || ap.DecidedBy != "ana" || ap.Decided.IsZero() || len(entries) != 1 {
		t.Fatalf("decided: %+v %v", ap, err)
	}
	if late, _, err := s.Decide(store.Verdict{ID: ap.ID, To: workspace.ApprovalDenied, By: "ben"}); !errors.Is(err, workspace.ErrConflict) || late.DecidedBy != "ana" {
		t.Errorf("a second answer: %+v %v", late, err)
	}
	if err := s.MoveRun(run.ID, workspace.RunWaiting, workspace.RunRunning); err != nil {
		t.Fatal(err)
	}
	again, err := s.Ask(ask)
	if err != nil || !again.Again || again.Approval.State != workspace.ApprovalApproved || len(again.Pushed) != 0 {
		t.Errorf("asked again: %+v %v", again, err)
	}
	if now, err := s.Run(run.ID); err != nil || now.State != workspace.RunRunning {
		t.Errorf("after the answer the run is %s, %v", now.State, err)
	}
	if _, err := s.Step(start(run, 1, "c1", ap.ID)); err != nil {
		t.Fatal(err)
	}
	if now, err := s.Approval(ap.ID); err != nil || now.State != workspace.ApprovalConsumed {
		t.Errorf("then it is %s, %v", now.State, err)
	}
	plan(t, s, run, 2, "c2")
	if _, err := s.Step(start(run, 2, "c2", ap.ID)); !errors.Is(err, workspace.ErrConflict) {
		t.Errorf("used twice: %v", err)
	}
	f := Answer(run, "done", in)
	f.Asked = true
	if got := finish(t, s, f); len(got.Cancelled) != 0 {
		t.Errorf("cancelled: %+v", got.Cancelled)
	}
	if rest, err := s.OpenApprovals(); err != nil || len(rest) != 0 {
		t.Errorf("left: %+v %v", rest, err)
	}
}

// approvalPaths are how each state is come to.
func approvalPaths() map[workspace.ApprovalState][]workspace.ApprovalState {
	p, a := workspace.ApprovalPending, workspace.ApprovalApproved
	return map[workspace.ApprovalState][]workspace.ApprovalState{p: nil, a: {a}, workspace.ApprovalConsumed: {a, workspace.ApprovalConsumed},
		workspace.ApprovalDenied: {workspace.ApprovalDenied}, workspace.ApprovalExpired: {workspace.ApprovalExpired}, workspace.ApprovalCancelled: {workspace.ApprovalCancelled}}
}

func approvalEdges(t *testing.T, s *store.Store) {
	n := 0
	for from, path := range approvalPaths() {
		for to := range approvalPaths() {
			if to == workspace.ApprovalPending {
				continue // born so: Ask
			}
			n++
			run, _, ask := asking(t, s, NewChat(n), fmt.Sprint("m:", n))
			if _, err := s.Ask(ask); err != nil {
				t.Fatal(err)
			}
			move := func(to workspace.ApprovalState) error {
				if to == workspace.ApprovalConsumed {
					_, err := s.Step(start(run, 1, "c1", ask.Approval.ID))
					return err
				}
				_, _, err := s.Decide(store.Verdict{ID: ask.Approval.ID, To: to})
				return err
			}
			for _, step := range path {
				if err := move(step); err != nil {
					t.Fatal(err)
				}
			}
			check(t, "approval "+string(from)+" to "+string(to), workspace.Approvals.Can(from, to), move(to))
			now, err := s.Approval(ask.Approval.ID)
			if want := map[bool]workspace.ApprovalState{true: to, false: from}[workspace.Approvals.Can(from, to)]; err != nil || now.State != want {
				t.Errorf("%s to %s: it is %s, %v", from, to, now.State, err)
			}
		}
	}
}

func oneAnswerHolds(t *testing.T, s *store.Store) {
	_, _, ask := asking(t, s, NewChat(1), "m:1")
	if _, err := s.Ask(ask); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var won []workspace.Approval
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			to := []workspace.ApprovalState{workspace.ApprovalApproved, workspace.ApprovalDenied, workspace.ApprovalExpired}[i%3]
			ap, _, err := s.Decide(store.Verdict{ID: ask.Approval.ID, To: to, By: workspace.PersonID(fmt.Sprint("p", i))})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won = append(won, ap)
			} else if !errors.Is(err, workspace.ErrConflict) || ap.State == workspace.ApprovalPending {
				t.Errorf("answer %d: %v, of %+v", i, err, ap)
			}
		})
	}
	wg.Wait()
	now, err := s.Approval(ask.Approval.ID)
	if err != nil || len(won) != 1 || won[0].DecidedBy != now.DecidedBy || won[0].State != now.State {
		t.Errorf("%d won, it is %+v, %v", len(won), now, err)
	}
}

func stopBeforeStart(t *testing.T, s *store.Store) {
	run, in, ask := asking(t, s, NewChat(1), "m:1")
	if _, err := s.Ask(ask); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Decide(store.Verdict{ID: ask.Approval.ID, To: workspace.ApprovalApproved, By: "ana"}); err != nil {
		t.Fatal(err)
	}
	if err := s.MoveRun(run.ID, workspace.RunWaiting, workspace.RunRunning); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Stop(store.Stop{Session: run.SessionID, By: "ana", Before: 1 << 40}); err != nil {
		t.Fatal(err)
	}
	got, err := s.Step(start(run, 1, "c1", ask.Approval.ID))
	if err != nil || !got.Held || got.StopBy != "ana" {
		t.Fatalf("%+v %v", got, err)
	}
	steps, err := s.Steps(run.ID)
	if err != nil || steps[0].State != workspace.StepPlanned {
		t.Errorf("the call is %s, %v", steps[0].State, err)
	}
	f := Answer(run, "never said", in)
	f.Asked = true
	out := finish(t, s, f)
	if out.State != workspace.RunStopped || len(out.Cancelled) != 1 || out.Cancelled[0].State != workspace.ApprovalCancelled {
		t.Errorf("ended %+v", out)
	}
	last, err := s.LastEntries(run.SessionID, 3)
	if err != nil || last[len(last)-1].Body.Type != "turn.ended" || !slices.ContainsFunc(last, func(e workspace.Entry) bool { return e.Body.Type == workspace.EventResolved }) {
		t.Errorf("transcript: %+v %v", last, err)
	}
}

func sessionGrant(t *testing.T, s *store.Store) {
	run, _, ask := asking(t, s, NewChat(1), "m:1")
	if _, err := s.Ask(ask); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Decide(store.Verdict{ID: ask.Approval.ID, To: workspace.ApprovalApproved, By: "ana", Grant: workspace.ForSession}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		session workspace.SessionID
		tool    string
		agent   workspace.AgentID
		who     workspace.PersonID
		want    int
	}{{run.SessionID, "act", "a", run.Requester, 1}, {run.SessionID, "other", "a", run.Requester, 0}, {run.SessionID, "act", "b", run.Requester, 0},
		{run.SessionID, "act", "a", "ben", 0}, {"another generation", "act", "a", run.Requester, 0}} {
		list, err := s.SessionGrants(c.session, c.tool, c.agent, c.who)
		if err != nil || len(list) != c.want {
			t.Errorf("%+v: %d, %v", c, len(list), err)
		}
	}
	revoke := store.Command{Changes: []store.Change{store.Revoke{ID: ask.Approval.ID, By: "ana", Via: "cli"}}}
	did, err := s.RunCommand(revoke)
	if _, again := s.RunCommand(revoke); err != nil || did.Decided.Revoked.IsZero() || !errors.Is(again, workspace.ErrConflict) {
		t.Errorf("revoked %+v: %v, then %v", did.Decided, err, again)
	}
	left, err := s.Grants()
	rows, auditErr := s.AuditBefore(1<<40, 1)
	if err != nil || auditErr != nil || len(left) != 0 || !strings.Contains(string(rows[0].Body), workspace.AuditApprovalRevoked) {
		t.Errorf("left %+v, %v; audit %+v, %v", left, err, rows, auditErr)
	}
}

func holdAndGoOn(t *testing.T, s *store.Store) {
	got := accept(t, s, NewChat(1).Begun(s, "m:1", "x"))
	run := got.Begun.Run
	if err := s.Pause(run.ID, true, "ana", "cli"); err != nil {
		t.Fatal(err)
	}
	if err := s.Pause(run.ID, true, "ben", "cli"); !errors.Is(err, workspace.ErrConflict) {
		t.Errorf("paused twice: %v", err)
	}
	if err := s.Hold(run, workspace.RunRunning, workspace.RunPaused, "ana"); err != nil {
		t.Fatal(err)
	}
	now, err := s.LiveRun(run.SessionID)
	if err != nil || now.State != workspace.RunPaused || now.PauseBy != "ana" {
		t.Errorf("it is %+v, %v", now, err)
	}
	if err := s.Pause(run.ID, false, "ben", "cli"); err != nil {
		t.Fatal(err)
	}
	if err := s.Hold(run, workspace.RunPaused, workspace.RunRunning, ""); err != nil {
		t.Fatal(err)
	}
	finish(t, s, Answer(run, "y", got.Input))
	if err := s.Pause(run.ID, true, "ana", "cli"); !errors.Is(err, workspace.ErrConflict) {
		t.Errorf("paused after its end: %v", err)
	}
}

func waitMovesDeadline(t *testing.T, s *store.Store) {
	run, _, ask := asking(t, s, NewChat(1), "m:1")
	deadline := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	s.MoveDeadline(run.ID, deadline)
	moves := func(what string, wait, goOn func() error) {
		t.Helper()
		began := time.Now()
		if err := wait(); err != nil {
			t.Fatal(err)
		}
		if now, err := s.Run(run.ID); err != nil || !now.Deadline.Equal(deadline) {
			t.Errorf("%s: while it waits the deadline is %s, want %s (%v)", what, now.Deadline, deadline, err)
		}
		<-time.After(20 * time.Millisecond)
		if err := goOn(); err != nil {
			t.Fatal(err)
		}
		now, err := s.Run(run.ID)
		if by := now.Deadline.Sub(deadline); err != nil || by < 20*time.Millisecond || by > time.Since(began)+time.Millisecond {
			t.Errorf("%s: moved by %s after %s (%v)", what, by, time.Since(began), err)
		}
		deadline = now.Deadline
	}
	moves("an approval", func() error { _, err := s.Ask(ask); return err },
		func() error { return s.MoveRun(run.ID, workspace.RunWaiting, workspace.RunRunning) })
	moves("a pause", func() error { return s.Hold(run, workspace.RunRunning, workspace.RunPaused, "ana") },
		func() error { return s.Hold(run, workspace.RunPaused, workspace.RunRunning, "") })
	moves("a move", func() error { return s.MoveRun(run.ID, workspace.RunRunning, workspace.RunPaused) },
		func() error { return s.MoveRun(run.ID, workspace.RunPaused, workspace.RunRunning) })
}

func troubleKept(t *testing.T, s *store.Store) {
	run := accept(t, s, NewChat(1).Begun(s, "m:1", "x")).Begun.Run
	want := workspace.Trouble{Model: "m", Kind: "overload", Status: 500, Said: "upstream\nexploded ü", Failures: 3, Failing: 4 * time.Second, Wait: time.Second,
		At: time.Now().UTC().Truncate(time.Millisecond)}
	done := make(chan struct{}, 2)
	s.Trouble(run.ID, &want, func() { done <- struct{}{} })
	<-done
	if now, err := s.Run(run.ID); err != nil || now.Trouble == nil || *now.Trouble != want {
		t.Errorf("kept %+v, %v", now.Trouble, err)
	}
	s.Trouble(run.ID, nil, func() { done <- struct{}{} })
	<-done
	if now, err := s.Run(run.ID); err != nil || now.Trouble != nil {
		t.Errorf("after an answer %+v, %v", now.Trouble, err)
	}
}

func stopEverywhere(t *testing.T, s *store.Store) {
	var runs []workspace.RunID
	for i := range 3 {
		c := NewChat(i)
		runs = append(runs, accept(t, s, c.Begun(s, fmt.Sprint("m:", i), "x")).Begun.Run.ID)
		accept(t, s, c.Message(s, fmt.Sprint("q:", i), "and then"))
	}
	did := do(t, s, store.StopAll{By: "ana", Via: "cli", Before: 1 << 40})
	stopped, queued := 0, 0
	for _, in := range did.All {
		queued += len(in.Stopped.Queued)
		if slices.Contains(runs, in.Stopped.Run) {
			stopped++
		}
	}
	if len(did.All) != 3 || stopped != 3 || queued != 3 {
		t.Errorf("%+v", did.All)
	}
	for _, id := range runs {
		if run, err := s.Run(id); err != nil || run.StopBy != "ana" {
			t.Errorf("%+v %v", run, err)
		}
	}
}

func directRooms(t *testing.T, s *store.Store) {
	if _, err := s.DirectRoom("nobody"); !errors.Is(err, workspace.ErrNotFound) {
		t.Errorf("nobody: %v", err)
	}
	c := NewChat(1)
	first := accept(t, s, c.Message(s, "m:1", "x")).Input
	if room, err := s.DirectRoom(first.Person); err != nil || room != first.RoomID {
		t.Errorf("%q of %q, %v", room, first.RoomID, err)
	}
	if room, err := s.DirectRoom(first.Person, "webchat", c.Addr.Network); !errors.Is(err, workspace.ErrNotFound) {
		t.Errorf("%q on a network that is left out, %v", room, err)
	}
}
