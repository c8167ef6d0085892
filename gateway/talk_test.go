package gateway_test

import (
	"strings"
	"testing"
	"time"

	"parley/agentloop/llm/llmtest"
	"parley/channels/telegram/telegramtest"
)

// What people write and what comes of it, on one daemon.
func TestConversations(t *testing.T) {
	t.Parallel()
	together(t, setup{extra: quiet, models: bigModel + oldModel, agent: ", models: [big, old]", own: map[string]own{"a model that fails for good": {}}}, map[string]func(*rig){
		"an answer comes back to its chat":                answersComeBack,
		"a group needs a mention, and the rest is quoted": groupNeedsAMention,
		"the rest is quoted over a restart":               quotesOverARestart,
		"a malformed call ends in an answer":              malformedCall,
		"a panic in a tool is the call's failure":         toolPanics,
		"the limit of steps ends with a summary":          stepLimit,
		"a model that fails for good":                     modelFailsForGood,
		"an edit never runs a command":                    editIsNoCommand,
		"an edit that adds the mention is answered":       editAddsTheMention,
		"a reply to a picture brings the picture":         replyBringsThePicture,
		"a voice message without transcription":           voiceWithoutTranscription,
		"a paused run goes on after a restart":            pausedOverARestart,
		"T11_an approval of a former owner is void":       approvedByAFormerOwner,

		"commands answer":             commandsAnswer,
		"settings act and stay":       settingsActAndStay,
		"new with a model and a text": newWithModelAndText,
		"retry and undo":              retryAndUndo,
		"T10_retry in a group":        retryInAGroup,
		"send off":                    sendOff,
		"activation":                  activation,
		"queue options":               queueOptions,
		"verbose":                     verbose,
		"a chat switches sessions":    switchesSessions,
		"T16_a chat is switched to what its person reaches": switchedOnlyToWhatItsPersonReaches,
		"a long transcript is exported as file":             longExport,
	})
}

func answersComeBack(r *rig) {
	ana, ben := r.person(11), r.person(12)
	r.say(ana, 11, "one")
	r.say(ben, 12, "two")
	if got := r.wait(ana, 1)[0].Text; got != "echo: one" {
		r.t.Errorf("ana got %q", got)
	}
	if got := r.wait(ben, 1)[0].Text; got != "echo: two" {
		r.t.Errorf("ben got %q", got)
	}
}

func longAnswerGrows(r *rig) {
	words := strings.Repeat("word ", 40)
	r.answers(func(*llmtest.Request) llmtest.Reply {
		return llmtest.Reply{Pieces: strings.SplitAfter(words, " "), TokenDelay: 60 * time.Millisecond}
	})
	ana := r.person(11)
	r.say(ana, 11, "tell me")
	r.until("the whole answer", func(v telegramtest.View) bool {
		sent := v.Sent(ana.ID)
		return len(sent) == 1 && strings.TrimSpace(sent[0].Text) == strings.TrimSpace(words)
	})
	sent := r.tg.View().Sent(ana.ID)
	if len(sent) != 1 || len(sent[0].Edits) < 2 {
		r.t.Errorf("%d messages, %d edits: want one message that grew", len(sent), len(sent[0].Edits))
	}
	if len(r.tg.View().Actions(ana.ID)) == 0 {
		r.t.Error("typing was never shown")
	}
}

func stoppedWithWhatWaits(r *rig) {
	asked := make(chan struct{}, 10)
	r.answers(func(q *llmtest.Request) llmtest.Reply {
		asked <- struct{}{}
		if strings.Contains(q.LastUser(), "again") {
			return llmtest.Reply{Text: "fine"}
		}
		return llmtest.Hang()
	})
	ana := r.person(11)
	r.say(ana, 11, "one")
	<-asked
	r.say(ana, 11, "two")
	r.say(ana, 11, "/stop")
	got := r.wait(ana, 1)
	if !strings.HasPrefix(got[0].Text, "Stopped: run ") || !strings.Contains(got[0].Text, "1 waiting message") {
		r.t.Errorf("reply to /stop: %q", got[0].Text)
	}
	r.say(ana, 11, "again")
	if got := r.wait(ana, 2)[1].Text; got != "fine" {
		r.t.Errorf("after the stop: %q", got)
	}
}

func groupNeedsAMention(r *rig) {
	group := r.group()
	r.say(group, 11, "we meet at nine")
	r.say(group, 12, "@parley_test_bot when do we meet?")
	got := r.wait(group, 1)
	if !strings.Contains(got[0].Text, "when do we meet?") {
		r.t.Errorf("answer %q", got[0].Text)
	}
	if b := r.bodies(); len(b) != 1 || !strings.Contains(b[0], "we meet at nine") {
		r.t.Errorf("the turn does not quote what others said: %d calls", len(b))
	}
}

func commandsAnswer(r *rig) {
	ana := r.person(13)
	for i, c := range []struct{ line, want string }{
		{"/help", "/status"}, {"/commands", "/resume"}, {"/whoami", "role guest"}, {"/status", "Assistant"}, {"/why", "dm:open"}, {"/queue", "steer"},
		{"/queue collect", "now collect"}, {"/resume", "Nothing is waiting"}, {"/new", "fresh session"}, {"/stop", "Nothing is running"},
		{"/stpo", "Did you mean /stop"}, {"/status now", "no arguments"},
	} {
		r.say(ana, 13, c.line)
		if got := r.wait(ana, i+1)[i].Text; !strings.Contains(got, c.want) {
			r.t.Errorf("%s: %q, want %q in it", c.line, got, c.want)
		}
	}
}
