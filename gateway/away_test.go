package gateway_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/agentloop/llm/llmtest"
	"parley/channels/telegram/telegramtest"
)

// R06: what is older than stale_after when it comes is parked, its room told once, and answered when asked for.
func TestR06_OldMessagesAreParkedAndResumedInOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{extra: "sessions: {queue: {mode: followup}}" + quiet})
	ana, ben := r.person(11), r.person(12)
	r.halt()
	old := func(chat telegramtest.Chat, text string, age time.Duration) {
		r.tg.Message(telegramtest.In{Chat: chat.ID, From: user(chat.ID), Text: text, Date: time.Now().Add(-age)})
	}
	old(ana, "first", 30*time.Hour)
	old(ana, "second", 29*time.Hour)
	old(ben, "yesterday", 28*time.Hour)
	old(ben, "fresh", time.Hour)
	r.start(nil)
	if got := r.wait(ben, 2); !slices.Equal(texts(got), []string{"echo: fresh", "I was away; 1 message came meanwhile. Send /resume to have them answered."}) {
		t.Errorf("ben was told %q", texts(got))
	}
	if got := texts(r.wait(ana, 1)); !slices.Equal(got, []string{"I was away; 2 messages came meanwhile. Send /resume to have them answered."}) {
		t.Errorf("ana was told %q", got)
	}
	// another start tells nobody again and answers nothing unasked
	r.halt()
	r.start(nil)
	r.say(ana, 11, "hello")
	if got := r.wait(ana, 2); got[1].Text != "echo: hello" {
		t.Errorf("after the second start ana has %q", texts(got))
	}
	r.say(ana, 11, "/resume")
	if got := texts(r.wait(ana, 5))[2:]; !slices.Equal(got, []string{"I answer 2 messages now.", "echo: first", "echo: second"}) {
		t.Errorf("after /resume: %q", got)
	}
	r.say(ana, 11, "/resume")
	if got := texts(r.wait(ana, 6))[5]; got != "Nothing is waiting here from while I was away." {
		t.Errorf("the second /resume: %q", got)
	}
	r.say(ben, 12, "bye")
	if got := texts(r.wait(ben, 3)); got[2] != "echo: bye" {
		t.Errorf("ben has %q: ana's /resume is not his", got)
	}
	if got := r.rows(`SELECT state, count(*) FROM inputs WHERE mode = 'turn' GROUP BY state`); !slices.Equal(got, []string{"answered|5", "stale|1"}) {
		t.Errorf("inputs %q", got)
	}
}

// What was resumed is not parked again by a restart before it is answered.
func TestR06_ResumedMessagesOutliveARestart(t *testing.T) {
	t.Parallel()
	h := newHold()
	r := newRig(t, setup{script: func(q *llmtest.Request) llmtest.Reply { return h.reply(t, q.LastUser(), llmtest.Echo(q)) },
		extra: "sessions: {queue: {mode: followup}}" + quiet})
	ana := r.person(11)
	r.halt()
	for _, text := range []string{"first", "second"} {
		r.tg.Message(telegramtest.In{Chat: ana.ID, From: user(11), Text: text, Date: time.Now().Add(-30 * time.Hour)})
	}
	r.start(nil)
	r.wait(ana, 1)
	r.say(ana, 11, "/resume")
	receive(t, h.asked, "the first turn")
	r.wait(ana, 2)
	r.halt()
	r.start(nil)
	close(h.open)
	if got := texts(r.wait(ana, 4))[2:]; !slices.Equal(got, []string{"echo: first", "echo: second"}) {
		t.Errorf("after the restart: %q", got)
	}
}

// Stop during a turn leaves it to the next start, which answers it once, also when the network is not there yet.
func TestStoppedTurnIsAnsweredOnceAfterARestart(t *testing.T) {
	t.Parallel()
	h := newHold()
	r := newRig(t, setup{script: func(q *llmtest.Request) llmtest.Reply { return h.reply(t, q.LastUser(), llmtest.Echo(q)) },
		extra: "sessions: {queue: {mode: followup}}" + quiet})
	ana := r.person(11)
	r.say(ana, 11, "one")
	receive(t, h.asked, "the first turn")
	r.say(ana, 11, "two")
	r.queued(1)
	r.halt()
	if got := r.rows(`SELECT state, tries FROM runs`); !slices.Equal(got, []string{"running|1"}) {
		t.Errorf("the run is %q after the stop", got)
	}
	r.tg.Down()
	r.start(nil)
	receive(t, h.asked, "the resumed turn")
	close(h.open)
	if n := len(r.tg.View().Sent(ana.ID)); n != 0 {
		t.Errorf("%d messages over a network that is down", n)
	}
	if err := r.tg.Up(); err != nil {
		t.Fatal(err)
	}
	if got := texts(r.wait(ana, 2)); !slices.Equal(got, []string{"echo: one", "echo: two"}) {
		t.Errorf("answers %q", got)
	}
	r.say(ana, 11, "three")
	if got := texts(r.wait(ana, 3)); got[2] != "echo: three" {
		t.Errorf("answers %q", got)
	}
	if got := r.rows(`SELECT count(*), count(DISTINCT run_id) FROM inputs WHERE state = 'answered'`); got[0] != "3|3" {
		t.Errorf("inputs and runs %q", got)
	}
}

// A streamed answer that a stop cut off goes on in the same message.
func TestStreamedAnswerGoesOnInItsMessageAfterARestart(t *testing.T) {
	t.Parallel()
	asked := make(chan int, 10)
	r := newRig(t, setup{script: func(q *llmtest.Request) llmtest.Reply {
		asked <- q.N
		if q.N == 1 {
			return llmtest.Hang()
		}
		return llmtest.Reply{Text: "here it is"}
	}, extra: "replies: {typing_after: 50ms, placeholder_after: 100ms}"})
	ana := r.person(11)
	r.say(ana, 11, "tell me")
	r.until("a placeholder", func(v telegramtest.View) bool { return len(v.Sent(ana.ID)) == 1 })
	r.halt()
	r.start(nil)
	r.until("the answer", func(v telegramtest.View) bool { return v.Sent(ana.ID)[0].Text == "here it is" })
	if got := r.tg.View().Sent(ana.ID); len(got) != 1 {
		t.Errorf("messages %q, want one", texts(got))
	}
}

// Begun three times in vain, a run ends where its sender sees it.
func TestRunThatNeverEndsIsGivenUpAfterThreeStarts(t *testing.T) {
	t.Parallel()
	asked := make(chan int, 10)
	r := newRig(t, setup{script: func(q *llmtest.Request) llmtest.Reply {
		asked <- q.N
		if strings.Contains(q.LastUser(), "again") {
			return llmtest.Echo(q)
		}
		return llmtest.Hang()
	}, extra: quiet})
	ana := r.person(11)
	r.say(ana, 11, "kill me")
	receive(t, asked, "the turn")
	for i := range 3 {
		r.halt()
		r.start(nil)
		if i < 2 {
			receive(t, asked, fmt.Sprintf("try %d", i+2))
		}
	}
	if got := texts(r.wait(ana, 1)); !strings.HasPrefix(got[0], "I tried 3 times to answer this and was interrupted each time (run ") {
		t.Errorf("told %q", got)
	}
	r.say(ana, 11, "again")
	if got := texts(r.wait(ana, 2)); got[1] != "echo: again" {
		t.Errorf("after that %q", got)
	}
}

// The bodies that the model gets begin alike, turn after turn and over a restart: providers cache by prefix.
func TestPromptsBeginAlikeOverThirtyTurnsAndARestart(t *testing.T) {
	t.Parallel()
	look := testTool{name: "look", call: lookAround}
	s := setup{opt: withTools(look), script: func(q *llmtest.Request) llmtest.Reply {
		if strings.HasSuffix(q.LastUser(), "5") && q.Round() == 0 {
			return llmtest.Reply{Text: "I look.", Calls: []llmtest.Call{{Name: "look", Args: `{ "n": 1 }`}}}
		}
		return llmtest.Echo(q)
	}, extra: quiet}
	r := newRig(t, s)
	ana := r.person(11)
	for i := range 30 {
		if i == 15 {
			r.halt()
			r.start(s.opt)
		}
		r.say(ana, 11, fmt.Sprintf("message \"%d\" <b>&", i))
		r.wait(ana, i+1)
	}
	bodies := r.llm.Bodies()
	if len(bodies) < 30 {
		t.Fatalf("%d model calls", len(bodies))
	}
	// what changes from turn to turn stands behind the history, right before the newest message
	for i := 1; i < len(bodies); i++ {
		before, _, found := strings.Cut(bodies[i-1], `{"role":"system","content":"## Now`)
		if !found {
			t.Fatalf("body %d has no volatile part: %s", i-1, bodies[i-1])
		}
		if !strings.HasPrefix(bodies[i], before) {
			n := 0
			for n < len(before) && n < len(bodies[i]) && before[n] == bodies[i][n] {
				n++
			}
			t.Fatalf("body %d leaves the one before at byte %d of %d:\n…%s\n…%s", i, n, len(before), before[max(0, n-200):], bodies[i][max(0, n-200):])
		}
	}
}
