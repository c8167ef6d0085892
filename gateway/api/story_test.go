package api_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"parley/channels"
	"parley/gateway/client"
)

// What needs a whole daemon is told as a few stories, each of which starts one. A part that outlives a restart returns what holds
// behind it.

// lasting is a part of a story that goes on behind a restart.
type lasting struct {
	name  string
	test  func(*testing.T, *rig) (after func(*testing.T, *rig))
	after func(*testing.T, *rig)
}

const turnsYAML = "channels: [{name: net, type: strangers}]\nroutes: [{channel: net, peer: \"7\", agent: assistant}]\n" +
	"agents: [{id: assistant, name: Assistant, default: true}, {id: other}, {id: third}]\n"

// A gateway takes what is said over HTTP, and tells of it; over a restart nothing is lost and nothing done twice.
func TestTurnsOverHTTP(t *testing.T) {
	t.Parallel()
	r := start(t, setup{yaml: turnsYAML, net: newStrangers()})
	r.tell([]part{
		{"ReadingEndpoints", readingEndpoints}, // first: it counts
		{"RunsAreListedOnceAndNarrowed", runsAreListedOnceAndNarrowed},
		{"MessageWithWaitReturnsTextUsageAndLog", messageWithWaitReturnsTextUsageAndLog},
		{"WaitThatIsOverIsAnswered202", waitThatIsOverIsAnswered202},
		{"ClientThatLeavesCancelsNothing", clientThatLeavesCancelsNothing},
		{"RepeatedIdempotencyKeyGivesTheFirstAnswerAgain", repeatedIdempotencyKeyGivesTheFirstAnswerAgain},
		{"SlashCommandIsAnsweredWithItsReply", slashCommandIsAnsweredWithItsReply},
		{"StopEndsTheTurnAndKeepsWhatWasSaid", stopEndsTheTurnAndKeepsWhatWasSaid},
		{"RunStreamTellsAWholeTurnAndEnds", runStreamTellsAWholeTurnAndEnds},
		{"LateReaderBeginsWithASnapshot", lateReaderBeginsWithASnapshot},
		{"T15_ReasoningNeverLeaves", reasoningNeverLeaves},
		{"SessionStreamFollowsIntoTheNextGeneration", sessionStreamFollowsIntoTheNextGeneration},
		{"DeltasCarryTheIDOfTheirItem", deltasCarryTheIDOfTheirItem},
		{"PageSaysSomethingAndSeesItAnswered", pageSaysSomethingAndSeesItAnswered},
		{"PageComesBackWithoutAGapOrADouble", pageComesBackWithoutAGapOrADouble},
		{"PagesHearOfOtherSessionsAndOfWhatWaits", pagesHearOfOtherSessionsAndOfWhatWaits},
		{"ARefusalIsRepeatedAndADecisionIsNotMadeTwice", aRefusalIsRepeatedAndADecisionIsNotMadeTwice},
		{"HeadEndsAndWrongMethodsHearAllThatAreRight", headEndsAndWrongMethodsHearAllThatAreRight},
		{"TheLogIsReadLiveAndFromANumber", theLogIsReadLiveAndFromANumber},
		{"AKeyBelongsToOneRequestOnAllRoutes", aKeyBelongsToOneRequestOnAllRoutes},
		{"TheClientKnowsWhatTheGatewaySays", theClientKnowsWhatTheGatewaySays},
		{"AuditTellsWhatOwnersDid", auditTellsWhatOwnersDid},
		{"BodiesAreReadStrictly", bodiesAreReadStrictly},
		{"ListsSayTheirLimits", listsSayTheirLimits},
		{"FilesComeBackHarmless", filesComeBackHarmless},
		{"CookieHasTheRightsOfTheToken", cookieHasTheRightsOfTheToken},
	})
	last := []lasting{
		{name: "AWriteWithAKeyHappensOnce", test: aWriteWithAKeyHappensOnce},
		{name: "IdempotencyKeyHoldsInARace", test: idempotencyKeyHoldsInARace},
		{name: "ResumeHasNoGapAndNoDouble", test: resumeHasNoGapAndNoDouble},
		{name: "UploadedFileGoesWithAMessage", test: uploadedFileGoesWithAMessage},
		{name: "SignInsOutliveARestart", test: signInsOutliveARestart},
	}
	for i := range last {
		t.Run(last[i].name, func(t *testing.T) { last[i].after = last[i].test(t, r.at(t, last[i].name)) })
	}
	t.Run("EverybodyIsToldThatTheGatewayStops", r.everybodyIsToldThatTheGatewayStops)
	for _, p := range last {
		t.Run(p.name+"AlsoOverARestart", func(t *testing.T) {
			if p.after != nil {
				p.after(t, r.at(t, p.name))
			}
		})
	}
}

// Before the gateway stops, streams and pages end with a word, and those who wait hear at once; their message is answered after the restart.
func (r *rig) everybodyIsToldThatTheGatewayStops(t *testing.T) {
	q := r.at(t, "stops")
	q.send(client.Message{Text: "hello", Wait: 20})
	reader := q.follow(q.events(), 0)
	reader.until("its end", typed("turn.ended"))
	page := q.page(q.signIn())
	page.until("hello", kind("hello"))
	waiter := client.Message{Text: "hold on", Session: "waits", Wait: 600, Key: "waiter"}
	<-q.model.asked // of the first message
	got := make(chan client.Answer, 1)
	go func() {
		a, err := q.c.Send(t.Context(), waiter)
		if err != nil {
			t.Error(err)
		}
		got <- a
	}()
	<-q.model.asked
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // no time for turns to end
	if err := r.g.Stop(ctx); err != nil {
		t.Log(err)
	}
	r.g = nil
	if a := <-got; a.State != "" || a.InputID == "" {
		t.Errorf("who waits hears %+v", a)
	}
	if told := reader.rest(); len(told) != 1 || told[0].Type != "error" {
		t.Errorf("who follows hears %v", kinds(told))
	}
	page.until("closing", kind("closing"))
	if code := page.closed(); code != 1001 {
		t.Errorf("the page's line ends with %d", code)
	}
	q.model.finish()
	r.run(nil)
	if a := r.send(client.Message{Text: waiter.Text, Session: waiter.Session, Wait: 20, Key: waiter.Key}); a.State == "" {
		t.Errorf("after the restart: %+v", a)
	}
}

// What a page may do ends with time.
func TestTimePasses(t *testing.T) {
	t.Parallel()
	r := start(t, setup{yaml: strangerYAML, net: newStrangers(), clock: &fakeClock{at: time.Now()}})
	r.tell([]part{
		{"T28_ASignInCannotMakeItselfPermanent", aSignInCannotMakeItselfPermanent},
		{"T28_ABrowserLinksNoAccounts", aBrowserLinksNoAccounts},
		{"T18_UploadsHaveCaps", uploadsHaveCaps},
	})
}

// While a turn runs, messages of a page wait behind it. And what must be kept from strangers, and from a disk that is full.
func TestWaitingStrangersAndAFullDisk(t *testing.T) {
	t.Parallel()
	kept := filepath.Join(t.TempDir(), "kept.txt")
	if err := os.WriteFile(kept, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	net := newStrangers()
	factory := net.factory()
	factory.New = func(string, any, channels.Deps) (channels.Channel, error) { return mounted{net}, nil }
	r := start(t, setup{nets: []channels.Factory{factory}, yaml: "gateway: {listen: \"127.0.0.1:0\", allowed_hosts: [parley.example.org], public_url: \"https://Talk.example.org:443/\"}\nsandbox: {disk_floor: 100TB}\nchannels: [{name: net, type: strangers}]\n" +
		"agents: [{id: assistant, name: Assistant, folders: [{path: " + filepath.Dir(kept) + ", as: proj, mode: rw}]}]\n" +
		"sessions: {queue: {mode: followup, cap: 2, overflow: new}}"})
	r.tell([]part{
		{"NoticesReachThePageAndRepliesComeOnce", noticesReachThePageAndRepliesComeOnce},
		{"PageEditsDeletesAndIsRefused", pageEditsDeletesAndIsRefused},
		{"E65_FilesBelowTheFloor", func(t *testing.T, r *rig) { filesBelowTheFloor(t, r, kept) }},
		{"T26_StreamsArePersonsTogether", streamsArePersonsTogether},
		{"T05_ANetworksCallsReachItsChannelAlone", aNetworksCallsReachItsChannelAlone},
		{"T04_TokenIsLongAndItsOwners", tokenIsLongAndItsOwners},
		{"T02_T20_ConfiguredNamesAreTaken", configuredNamesAreTaken},
		{"T03_SignInLeaksNothing", signInLeaksNothing},
		{"T03_TokenIsInNoAnswerAndNoLog", tokenIsInNoAnswerAndNoLog},
		{"T07_ChangedTokenSignsEverybodyOut", changedTokenSignsEverybodyOut},
		{"T07_ChangedTokenCountsFromTheNextRequest", changedTokenCountsFromTheNextRequest},
		{"ConfiguredPaceCountsFromTheNextRequest", configuredPaceCountsFromTheNextRequest}, // last: it has used it up
	})
}
