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

// What becomes over restarts of what people wrote, on one daemon.
func TestMessagesOutliveRestarts(t *testing.T) {
	t.Parallel()
	const moves = "a group that moved keeps its session"
	tests := map[string]func(*rig){
		"R06_old ones are parked and resumed in order": oldMessagesAreParked,
		"R06_resumed ones are not parked again":        resumedMessagesStayResumed,
		"a stopped turn is answered once":              stoppedTurnIsAnsweredOnce,
		"a run that never ends is given up":            runThatNeverEndsIsGivenUp,
		"prompts begin alike over thirty turns":        promptsBeginAlike,
		moves:                                          groupThatMovedKeepsItsSession,
	}
	group := baseOf(tests, moves) + 5001
	together(t, setup{extra: "sessions: {queue: {mode: followup}}" + quiet,
		access: fmt.Sprintf(`{dm: open, groups: allowlist, allow: ["-%d"], require_mention: true}`, group),
		routes: fmt.Sprintf("  - {channel: tg, peer: \"-%d\", agent: assistant, session: crew}\n", group)}, tests)
}

// R06: what is older than stale_after when it comes is parked, its room told once, and answered when asked for.
func oldMessagesAreParked(r *rig) {
	ana, ben := r.person(11), r.person(12)
	old := func(chat telegramtest.Chat, text string, age time.Duration) {
		r.tg.Message(telegramtest.In{Chat: chat.ID, From: user(chat.ID), Text: text, Date: time.Now().Add(-age)})
	}
	r.restart(func() {
		old(ana, "first", 30*time.Hour)
		old(ana, "second", 29*time.Hour)
		old(ben, "yesterday", 28*time.Hour)
		old(ben, "fresh", time.Hour)
	})
	want := []string{"echo: fresh", "I was away; 1 message came meanwhile. Send /resume to have them answered."}
	if got := r.wait(ben, 2); !slices.Equal(texts(got), want) {
		r.t.Errorf("ben was told %q", texts(got))
	}
	if got := texts(r.wait(ana, 1)); !slices.Equal(got, []string{"I was away; 2 messages came meanwhile. Send /resume to have them answered."}) {
		r.t.Errorf("ana was told %q", got)
	}
	r.restart() // tells nobody again and answers nothing unasked
	r.say(ana, 11, "hello")
	if got := r.wait(ana, 2); got[1].Text != "echo: hello" {
		r.t.Errorf("after the second start ana has %q", texts(got))
	}
	r.say(ana, 11, "/resume")
	if got := texts(r.wait(ana, 5))[2:]; !slices.Equal(got, []string{"I answer 2 messages now.", "echo: first", "echo: second"}) {
		r.t.Errorf("after /resume: %q", got)
	}
	r.say(ana, 11, "/resume")
	if got := texts(r.wait(ana, 6))[5]; got != "Nothing is waiting here from while I was away." {
		r.t.Errorf("the second /resume: %q", got)
	}
	r.say(ben, 12, "bye")
	if got := texts(r.wait(ben, 3)); got[2] != "echo: bye" {
		r.t.Errorf("ben has %q: ana's /resume is not his", got)
	}
	if got := r.rows(`SELECT state, count(*) FROM inputs WHERE mode = 'turn' GROUP BY state`); !slices.Equal(got, []string{"answered|5", "stale|1"}) {
		r.t.Errorf("inputs %q", got)
	}
}

// R06: what was resumed is not parked again by a restart before it is answered.
func resumedMessagesStayResumed(r *rig) {
	h := newHold()
	r.answers(func(q *llmtest.Request) llmtest.Reply { return h.reply(r.t, q.LastUser(), llmtest.Echo(q)) })
	ana := r.person(11)
	r.restart(func() {
		for _, text := range []string{"first", "second"} {
			r.tg.Message(telegramtest.In{Chat: ana.ID, From: r.user(11), Text: text, Date: time.Now().Add(-30 * time.Hour)})
		}
	})
	r.wait(ana, 1)
	r.say(ana, 11, "/resume")
	receive(r.t, h.asked, "the first turn")
	r.wait(ana, 2)
	r.restart()
	close(h.open)
	if got := texts(r.wait(ana, 4))[2:]; !slices.Equal(got, []string{"echo: first", "echo: second"}) {
		r.t.Errorf("after the restart: %q", got)
	}
}

// Stop during a turn leaves it to the next start, which answers it once, also when the network is not there yet.
func stoppedTurnIsAnsweredOnce(r *rig) {
	h := newHold()
	r.answers(func(q *llmtest.Request) llmtest.Reply { return h.reply(r.t, q.LastUser(), llmtest.Echo(q)) })
	ana := r.person(11)
	r.say(ana, 11, "one")
	receive(r.t, h.asked, "the first turn")
	r.say(ana, 11, "two")
	r.queued(1)
	r.restart(func() {
		if got := r.rows(`SELECT state, tries FROM runs`); !slices.Equal(got, []string{"running|1"}) {
			r.t.Errorf("the run is %q after the stop", got)
		}
		r.tg.Down()
	})
	receive(r.t, h.asked, "the resumed turn")
	close(h.open)
	if n := len(r.tg.View().Sent(ana.ID)); n != 0 {
		r.t.Errorf("%d messages over a network that is down", n)
	}
	if err := r.tg.Up(); err != nil {
		r.t.Fatal(err)
	}
	if got := texts(r.wait(ana, 2)); !slices.Equal(got, []string{"echo: one", "echo: two"}) {
		r.t.Errorf("answers %q", got)
	}
	r.say(ana, 11, "three")
	if got := texts(r.wait(ana, 3)); got[2] != "echo: three" {
		r.t.Errorf("answers %q", got)
	}
	if got := r.rows(`SELECT count(*), count(DISTINCT run_id) FROM inputs WHERE state = 'answered'`); got[0] != "3|3" {
		r.t.Errorf("inputs and runs %q", got)
	}
}

// Begun three times in vain, a run ends where its sender sees it.
func runThatNeverEndsIsGivenUp(r *rig) {
	asked := make(chan int, 10)
	r.answers(func(q *llmtest.Request) llmtest.Reply {
		asked <- q.N
		if strings.Contains(q.LastUser(), "again") {
			return llmtest.Echo(q)
		}
		return llmtest.Hang()
	})
	ana := r.person(11)
	r.say(ana, 11, "kill me")
	receive(r.t, asked, "the turn")
	for i := range 3 {
		r.restart()
		if i < 2 {
			receive(r.t, asked, fmt.Sprintf("try %d", i+2))
		}
	}
	if got := texts(r.wait(ana, 1)); !strings.HasPrefix(got[0], "I tried 3 times to answer this and was interrupted each time (run ") {
		r.t.Errorf("told %q", got)
	}
	r.say(ana, 11, "again")
	if got := texts(r.wait(ana, 2)); got[1] != "echo: again" {
		r.t.Errorf("after that %q", got)
	}
}

// The bodies that the model gets begin alike, turn after turn and over a restart: providers cache by prefix.
func promptsBeginAlike(r *rig) {
	r.answers(func(q *llmtest.Request) llmtest.Reply {
		if strings.HasSuffix(q.LastUser(), "5") && q.Round() == 0 {
			return llmtest.Reply{Text: "I look.", Calls: []llmtest.Call{{Name: "look", Args: `{ "n": 1 }`}}}
		}
		return llmtest.Echo(q)
	})
	ana := r.person(11)
	for i := range 30 {
		if i == 15 {
			r.restart()
		}
		r.say(ana, 11, fmt.Sprintf("message \"%d\" <b>&", i))
		r.wait(ana, i+1)
	}
	bodies := r.bodies()
	if len(bodies) < 30 {
		r.t.Fatalf("%d model calls", len(bodies))
	}
	// what changes from turn to turn stands behind the history, right before the newest message
	for i := 1; i < len(bodies); i++ {
		before, _, found := strings.Cut(bodies[i-1], `{"role":"system","content":"## Now`)
		if !found {
			r.t.Fatalf("body %d has no volatile part: %s", i-1, bodies[i-1])
		}
		if !strings.HasPrefix(bodies[i], before) {
			n := 0
			for n < len(before) && n < len(bodies[i]) && before[n] == bodies[i][n] {
				n++
			}
			r.t.Fatalf("body %d leaves the one before at byte %d of %d:\n…%s\n…%s", i, n, len(before), before[max(0, n-200):], bodies[i][max(0, n-200):])
		}
	}
}

// A group that became a supergroup goes on as it was: the same room and session, the same permission, over a restart.
func groupThatMovedKeepsItsSession(r *rig) {
	group := r.group()
	r.say(group, 11, "@parley_test_bot the word is plum")
	r.wait(group, 1)
	super := telegramtest.Chat{ID: r.id(-5002)}
	r.tg.Migrate(group.ID, super.ID)
	for i := range 2 {
		r.say(super, 11, fmt.Sprint("@parley_test_bot and now? ", i))
		r.wait(super, i+1)
		if bodies := r.bodies(); !strings.Contains(bodies[len(bodies)-1], "plum") {
			r.t.Errorf("turn %d knows nothing of what was said before the move", i)
		}
		r.restart()
	}
	if got := r.rows(`SELECT count(*), max(gen) FROM sessions WHERE key LIKE '%:group:%'`); !slices.Equal(got, []string{"1|1"}) {
		r.t.Errorf("sessions %q", got)
	}
	if got := r.rows(`SELECT peer FROM rooms WHERE peer LIKE '-%'`); !slices.Equal(got, []string{fmt.Sprint(super.ID)}) {
		r.t.Errorf("rooms %q", got)
	}
}
