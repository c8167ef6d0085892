package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"parley/workspace"
	"parley/workspace/store"
)

// Run tries every unit and reader on the stores that open makes: a new, empty one each time.
func Run(t *testing.T, open func(t testing.TB) *store.Store) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, *store.Store)
	}{
		{"AMessageIsAnsweredOnce", answeredOnce},
		{"UploadsAreCountedByPersonAndDay", uploadsCounted},
		{"ASecondCopyChangesNothing", secondCopy},
		{"ManyAtOnceKeepTheirNumbers", manyAtOnce},
		{"OneLiveRunASession", oneLiveRun},
		{"TwoMessagesOfAStrangerAreOnePerson", oneStranger},
		{"AnEditReplacesWhatWaits", editQueued},
		{"AnEditOfATakenMessageWaits", editTaken},
		{"ADeleteCancelsWhatWaits", deleteQueued},
		{"NobodyEditsForAnother", editByOther},
		{"AnInterruptMovesTheInputs", interrupt},
		{"AnOutsideCallStartsOnce", outsideOnce},
		{"InputsEndOnDrawnEdgesOnly", inputEdges},
		{"RunsMoveOnDrawnEdgesOnly", runEdges},
		{"StepsMoveOnDrawnEdgesOnly", stepEdges},
		{"PartsMoveOnDrawnEdgesOnly", partEdges},
		{"AnApprovalIsUsedOnce", approvedOnce},
		{"ApprovalsMoveOnDrawnEdgesOnly", approvalEdges},
		{"OneAnswerHolds", oneAnswerHolds},
		{"AStopComesBeforeAnApprovedStart", stopBeforeStart},
		{"AGrantIsOfOneGeneration", sessionGrant},
		{"ARunPausesAndGoesOn", holdAndGoOn},
		{"AWaitMovesTheDeadline", waitMovesDeadline},
		{"ATroubleIsKeptUntilAnAnswer", troubleKept},
		{"AStopReachesEverySession", stopEverywhere},
		{"PeopleAreFoundWhereTheyWroteLast", directRooms},
		{"AStopWins", stopWins},
		{"AStopReachesHelpers", stopHelpers},
		{"ACommandIsOneUnit", command},
		{"NewTakesWhatWaitsAlong", newGeneration},
		{"NewKeepsWhatWasSet", newKeeps}, {"ReadMarksAreOnesOwnAndNeverGoBack", readMarks},
		{"AForkCopiesWhatIsBefore", forkCopies},
		{"AForkGoesBackToAnOlderGeneration", forkGoesBack},
		{"AForkCutsATurnWhole", forkCuts},
		{"AForkHappensOnce", forkOnce},
		{"ADeletedSessionIsHiddenUntilItSpeaks", deleteHides},
		{"SessionsAreMadeAndNamedOnce", createOnce},
		{"SessionsAreListedNewestFirst", headsNewest},
		{"SessionsAreFoundByTheirText", mentions},
		{"ASessionsUsageIsItsRuns", sessionUsage},
		{"ARoomKeepsWhatIsSet", placeKept},
		{"AMarkStandsBehindWhatItWasMadeFor", marks},
		{"ACommandAsksInItsUnit", commandAsks},
		{"AStreamedAnswerKeepsItsParts", streamed},
		{"AStreamedAnswerIsFoundAgain", streamedAgain},
		{"ADeadPartEndsTheRest", deadPart},
		{"WhatEndedIsNotSteeredIn", steerGone},
		{"ADeadLetterIsRetriedWhole", deadRetried},
		{"ADoubtIsKeptAndMarksARetry", doubtKept},
		{"WhatIsUndeliveredIsRetriedOrDropped", undeliveredEdges},
		{"UndeliveredAnswersComeInPages", undeliveredInPages},
		{"LateAnswersAreResumed", lateResumed},
		{"OddTextStays", oddText},
		{"ATranscriptIsKeptOnce", transcriptKept},
		{"AnEditReplacesTheFileThatWaits", editedFile},
		{"PairingIsDecidedOnce", pairing},
		{"ALinkJoinsTwoOnce", linkOnce},
		{"WrongLinkCodesAreCounted", linkTries},
		{"T09ALinkRaisesNoRole", linkRoles},
		{"AnApprovalAfterALinkIsForOneAccount", approvedAfterLink},
		{"LinksAtOnce", linkedAtOnce},
		{"TheAuditLogIsOneChain", auditChain},
		{"AnAuditRowStandsWithItsAct", auditWithAct},
		{"PeopleFollowTheConfiguration", people},
		{"ContextIsNotATurn", contextLines},
		{"NewestMessagesOfRooms", newest},
		{"ARoomThatMoved", movedRoom},
		{"ListsForOperators", lists},
		{"AnAnswerIsKeptUnderItsKey", answers},
		{"NothingAfterClose", afterClose},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			c.run(t, s)
			if err := s.SetSetting("open", "yes"); errors.Is(err, store.ErrClosed) {
				return
			}
			if err := s.Verify(t.Context()); err != nil {
				t.Errorf("verify: %v", err)
			}
		})
	}
}

func answeredOnce(t *testing.T, s *store.Store) {
	c := NewChat(1)
	a := accept(t, s, c.Begun(s, "m:1:1", "ping"))
	if a.Begun == nil || a.Input.State != workspace.InputTaken || a.Begun.Run.State != workspace.RunRunning || a.Begun.Run.Epoch != s.Epoch() {
		t.Fatalf("begun: %+v %+v", a.Input, a.Begun)
	}
	f := finish(t, s, Answer(a.Begun.Run, "pong", a.Input))
	if f.Answer == nil || len(f.Answer.Parts) != 1 || f.Answer.Parts[0].State != workspace.PartSending || f.Answer.BodyRef == "" {
		t.Fatalf("answer: %+v", f.Answer)
	}
	und, err := s.OpenOutbound()
	if err != nil || len(und) != 1 || und[0].Text != "pong" || und[0].RoomID != a.Input.RoomID || len(und[0].Parts) != 1 {
		t.Fatalf("undelivered: %+v %v", und, err)
	}
	s.Receipt(store.Move{Part: f.Answer.Parts[0], To: workspace.PartSent, Remote: "77"})
	barrier(t, s)
	if und, err := s.OpenOutbound(); err != nil || len(und) != 0 {
		t.Errorf("after the receipt: %+v %v", und, err)
	}
	got, err := s.OutboundOfRun(a.Begun.Run.ID)
	if err != nil || got.Parts[0].RemoteID != "77" || got.Parts[0].State != workspace.PartSent || got.Parts[0].Tries != 1 {
		t.Errorf("part: %+v %v", got.Parts, err)
	}
	if _, err := s.Finish(Answer(a.Begun.Run, "pong again", a.Input)); !errors.Is(err, workspace.ErrConflict) {
		t.Errorf("a second end: %v", err)
	}
	entries, err := s.LastEntries(a.Begun.Run.SessionID, 10)
	var roles []string
	for i, e := range entries {
		if e.N != int64(i+1) {
			t.Errorf("entry %d is numbered %d", i, e.N)
		}
		roles = append(roles, string(e.Role)+":"+e.Body.Type+e.Body.Plain())
	}
	if want := "event:turn.started user:ping assistant:pong event:turn.ended"; err != nil || strings.Join(roles, " ") != want {
		t.Errorf("transcript: %v %v", roles, err)
	}
	list, err := s.RunInputs(a.Begun.Run.ID)
	if err != nil || len(list) != 1 || list[0].ID != a.Input.ID || list[0].State != workspace.InputAnswered {
		t.Errorf("inputs of the run: %+v %v", list, err)
	}
}

func secondCopy(t *testing.T, s *store.Store) {
	c := NewChat(1)
	first := accept(t, s, c.Begun(s, "m:1:1", "ping"))
	second := accept(t, s, c.Begun(s, "m:1:1", "ping"))
	if !second.Duplicate || second.Begun != nil || second.Input.ID != first.Input.ID || second.Input.State != workspace.InputTaken {
		t.Errorf("second: %+v", second)
	}
	both, err := s.Accept(c.Message(s, "m:1:2", "a"), c.Message(s, "m:1:2", "a"))
	if err != nil || both[0].Duplicate || !both[1].Duplicate || both[1].Input.ID != both[0].Input.ID {
		t.Errorf("two in one batch: %+v %v", both, err)
	}
	r := Notice("k", first.Input.RoomID, "hello")
	one, err := s.Outbound(r)
	if err != nil || len(one) != 1 {
		t.Fatal(one, err)
	}
	if two, err := s.Outbound(r); err != nil || len(two) != 0 {
		t.Errorf("an outbound twice: %+v %v", two, err)
	}
}

func manyAtOnce(t *testing.T, s *store.Store) {
	const chats, each = 12, 15
	var wg sync.WaitGroup
	for n := range chats {
		wg.Go(func() {
			c := NewChat(n)
			for i := range each {
				a, err := s.Accept(c.Begun(s, fmt.Sprintf("m:%d:%d", n, i), "ping"))
				if err != nil || a[0].Begun == nil {
					t.Errorf("chat %d: %+v %v", n, a, err)
					return
				}
				// a neighbour that fails must not harm the others of its batch
				if _, err := s.Begin(store.Begin{Run: c.NewRun(s)}, c.Key, "", []workspace.Input{{Seq: 1 << 40}}, nil); !errors.Is(err, workspace.ErrConflict) {
					t.Errorf("begin on nothing: %v", err)
				}
				f, err := s.Finish(Answer(a[0].Begun.Run, "pong", a[0].Input))
				if err != nil || f.Answer == nil {
					t.Errorf("chat %d: %v", n, err)
					return
				}
				s.Receipt(store.Move{Part: f.Answer.Parts[0], To: workspace.PartSent, Remote: "1"})
			}
		})
	}
	wg.Wait()
	barrier(t, s)
	sessions, err := s.Heads()
	if err != nil || len(sessions) != chats {
		t.Fatalf("%d sessions, %v", len(sessions), err)
	}
	for _, ses := range sessions {
		entries, err := s.Entries(ses.ID, 0, 1000)
		if err != nil || len(entries) != 4*each {
			t.Errorf("%d entries, %v", len(entries), err)
		}
		for i, e := range entries {
			if e.N != int64(i+1) {
				t.Fatalf("session %s: entry %d is numbered %d", ses.ID, i, e.N)
			}
		}
	}
	if und, err := s.OpenOutbound(); err != nil || len(und) != 0 {
		t.Errorf("undelivered: %d %v", len(und), err)
	}
}

func oneLiveRun(t *testing.T, s *store.Store) {
	c := NewChat(1)
	first := accept(t, s, c.Begun(s, "m:1:1", "one"))
	second := accept(t, s, c.Begun(s, "m:1:2", "two"))
	if second.Begun != nil || second.Input.State != workspace.InputQueued || second.Input.RunID != "" {
		t.Fatalf("a second run: %+v %+v", second.Input, second.Begun)
	}
	if _, err := s.Begin(store.Begin{Run: c.NewRun(s)}, c.Key, second.Input.RoomID, []workspace.Input{second.Input}, nil); !errors.Is(err, workspace.ErrConflict) {
		t.Errorf("a second run: %v", err)
	}
	queued, err := s.Queued()
	if err != nil || len(queued) != 1 || queued[0].ID != second.Input.ID {
		t.Fatalf("queued: %+v %v", queued, err)
	}
	finish(t, s, Answer(first.Begun.Run, "1", first.Input))
	b, err := s.Begin(store.Begin{Run: c.NewRun(s)}, c.Key, second.Input.RoomID, []workspace.Input{second.Input}, nil)
	if err != nil || len(b.Entries) != 2 {
		t.Fatalf("begin: %+v %v", b, err)
	}
	live, err := s.LiveRuns()
	if err != nil || len(live) != 1 || live[0].ID != b.Run.ID {
		t.Errorf("live: %+v %v", live, err)
	}
}

func oneStranger(t *testing.T, s *store.Store) {
	c := NewChat(1)
	guest := func(person string) store.Arrival {
		a := c.Begun(s, "m:1:"+person, "hi")
		a.Input.Person, a.Begin.Run.Requester = workspace.PersonID(person), workspace.PersonID(person)
		a.Guest = &workspace.Account{Network: c.Addr.Network, Account: c.Addr.Account, User: "7", Person: a.Input.Person}
		return a
	}
	one := accept(t, s, guest("first"))
	finish(t, s, Answer(one.Begun.Run, "x", one.Input))
	two := accept(t, s, guest("second"))
	if two.Input.Person != "first" || two.Begun.Run.Requester != "first" {
		t.Errorf("the second message is of %q, its run of %q", two.Input.Person, two.Begun.Run.Requester)
	}
	if p, err := s.Person(c.Addr.Network, c.Addr.Account, "7"); err != nil || p.ID != "first" || p.Role != workspace.Guest {
		t.Errorf("person: %+v %v", p, err)
	}
	if in := input(t, s, two.Input.ID); in.Person != "first" {
		t.Errorf("stored of %q", in.Person)
	}
}

func interrupt(t *testing.T, s *store.Store) {
	c := NewChat(1)
	first := accept(t, s, c.Begun(s, "m:1:1", "one"))
	second := accept(t, s, c.Message(s, "m:1:2", "two"))
	old := store.Finish{Run: first.Begun.Run, State: workspace.RunStopped, Inputs: []workspace.Input{first.Input}, InputState: workspace.InputStopped, AnswerEntry: -1}
	run := c.NewRun(s)
	var wg sync.WaitGroup
	for range 8 { // company that fails, so that the unit is run again
		wg.Go(func() { _ = s.MoveRun("nobody", workspace.RunRunning, workspace.RunPaused) })
	}
	b, err := s.Begin(store.Begin{Run: run}, c.Key, first.Input.RoomID, []workspace.Input{first.Input, second.Input}, &old)
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []workspace.InputID{first.Input.ID, second.Input.ID} {
		if in := input(t, s, id); in.State != workspace.InputTaken || in.RunID != run.ID {
			t.Errorf("%s is %s of %s", in.Key, in.State, in.RunID)
		}
	}
	if r, err := s.Run(first.Begun.Run.ID); err != nil || r.State != workspace.RunStopped || r.Reason != "interrupted" {
		t.Errorf("old run: %+v %v", r, err)
	}
	if got, err := s.RunInputs(run.ID); err != nil || len(got) != 2 {
		t.Errorf("inputs of the new run: %+v %v", got, err)
	}
	finish(t, s, Answer(b.Run, "both", first.Input, second.Input))
	if len(old.Inputs) != 1 || old.State != workspace.RunStopped {
		t.Errorf("the caller's value was changed: %+v", old)
	}
}

func outsideOnce(t *testing.T, s *store.Store) {
	c := NewChat(1)
	a := accept(t, s, c.Begun(s, "m:1:1", "do"))
	run := a.Begun.Run
	call := workspace.Step{RunID: run.ID, N: 2, Kind: workspace.StepTool, CallID: "c1", Tool: "exec", Effect: workspace.Outside, State: workspace.StepPlanned}
	model := workspace.Step{RunID: run.ID, N: 1, Kind: workspace.StepModel, State: workspace.StepDone}
	if _, err := s.Step(store.StepUnit{Run: run, Steps: []workspace.Step{model, call}}); err != nil {
		t.Fatal(err)
	}
	call.State = workspace.StepStarted
	if _, err := s.Step(store.StepUnit{Run: run, Steps: []workspace.Step{call}, Wait: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Step(store.StepUnit{Run: run, Steps: []workspace.Step{call}, Wait: true}); !errors.Is(err, workspace.ErrConflict) {
		t.Errorf("started twice: %v", err)
	}
	again := call
	again.N, again.State = 3, workspace.StepPlanned
	if _, err := s.Step(store.StepUnit{Run: run, Steps: []workspace.Step{again}, Wait: true}); !errors.Is(err, workspace.ErrConflict) {
		t.Errorf("the same call planned again: %v", err)
	}
	steps, err := s.Steps(run.ID)
	if err != nil || len(steps) != 2 || steps[1].State != workspace.StepStarted {
		t.Errorf("journal: %+v %v", steps, err)
	}
}

func contextLines(t *testing.T, s *store.Store) {
	c := NewChat(1)
	var ids []workspace.InputID
	for i := range 5 {
		a := c.Message(s, fmt.Sprintf("m:1:%d", i), fmt.Sprint("line ", i))
		a.Input.State, a.Input.Mode = workspace.InputContext, workspace.ModeNote
		ids = append(ids, accept(t, s, a).Input.ID)
	}
	if q, err := s.Queued(); err != nil || len(q) != 0 {
		t.Errorf("queued: %+v %v", q, err)
	}
	ses, err := s.SessionByKey(c.Key)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.ContextInputs(ses.ID, 0, 3)
	if err != nil || len(got) != 3 || got[0].ID != ids[2] || got[2].ID != ids[4] {
		t.Errorf("context: %+v %v", got, err)
	}
}

func newest(t *testing.T, s *store.Store) {
	c, other := NewChat(1), NewChat(2)
	for i := range 4 {
		a := c.Message(s, fmt.Sprintf("m:1:%d", i), "x")
		a.Backfill = i < 3
		accept(t, s, a)
	}
	accept(t, s, other.Message(s, "m:2:1", "of a room that nothing is fetched for"))
	got, err := s.Newest(c.Addr.Network, c.Addr.Account)
	if err != nil || len(got) != 1 || got[c.Addr.Peer] != "m:1:2" {
		t.Errorf("newest: %v %v", got, err)
	}
}

func movedRoom(t *testing.T, s *store.Store) {
	c := NewChat(1)
	a := accept(t, s, c.Message(s, "m:1:1", "x"))
	if err := s.MoveRoom(c.Addr, "-100"); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Room(a.Input.RoomID); err != nil || r.Peer != "-100" {
		t.Errorf("room: %+v %v", r, err)
	}
	moved := c
	moved.Addr.Peer = "-100"
	if err := s.MoveRoom(c.Addr, "-100"); err != nil {
		t.Errorf("told twice: %v", err)
	}
	if err := s.MoveRoom(moved.Addr, "-200"); err != nil {
		t.Fatal(err)
	}
	moved.Addr.Peer = "-200"
	if list, err := s.Moves(); err != nil || len(list) != 2 || list[0].Origin != c.Addr.Peer || list[1].Origin != c.Addr.Peer {
		t.Errorf("moves: %+v %v", list, err)
	}
	if b := accept(t, s, moved.Message(s, "m:1:2", "y")); b.Input.RoomID != a.Input.RoomID {
		t.Errorf("a second room: %s and %s", a.Input.RoomID, b.Input.RoomID)
	}
}

func afterClose(t *testing.T, s *store.Store) {
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Accept(NewChat(1).Message(s, "m:1:1", "x")); !errors.Is(err, store.ErrClosed) {
		t.Errorf("accept: %v", err)
	}
	s.Receipt(store.Move{To: workspace.PartSent})
	if err := s.Close(); err != nil {
		t.Errorf("twice: %v", err)
	}
}

func oddText(t *testing.T, s *store.Store) {
	c := NewChat(1)
	odd := "a\x00b\xffc\u2028\\u0000 ' \" ? $1 " + strings.Repeat("世", 100_000)
	a := c.Begun(s, "m:\x00:\xff", odd)
	a.Input.Sender, a.Title = "na\x00me", "\xfe"
	got := accept(t, s, a)
	in := input(t, s, got.Input.ID)
	if want := strings.ToValidUTF8(strings.ReplaceAll(odd, "\x00", "\uFFFD"), "\uFFFD"); in.Text != want {
		t.Errorf("text: %.40q", in.Text)
	}
	if !accept(t, s, a).Duplicate {
		t.Error("a key with odd bytes does not find itself")
	}
	f := finish(t, s, Answer(got.Begun.Run, odd, got.Input))
	o, err := s.OutboundByID(f.Answer.ID)
	if err != nil || len(o.Text) == 0 {
		t.Errorf("answer: %.40q %v", o.Text, err)
	}
}
