package gateway_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/agentloop/llm/llmtest"
	"parley/channels/telegram/telegramtest"
	"parley/workspace"
)

// quiet keeps signs out of the way of a test about queues.
const quiet = "\nreplies: {typing_after: 1m, first_sign: 1m, placeholder_after: 1m}"

// throughGate calls the gate once in a turn and then echoes.
func throughGate(q *llmtest.Request) llmtest.Reply {
	if q.Round() == 0 && len(q.ToolResults()) == 0 && strings.Contains(q.LastUser(), "work") {
		return call("gate")
	}
	return llmtest.Echo(q)
}

// What becomes of messages that come during a turn, in each mode, on one daemon each.
func TestQueueModes(t *testing.T) {
	t.Parallel()
	for _, world := range []struct {
		name, queue string
		tests       map[string]func(*rig)
	}{
		{"steer", "mode: steer", map[string]func(*rig){"handed to the running turn": steered, "an album is one turn": albumIsOneTurn,
			"with a file": fileDuringATurn("steer", "1"), "T10_of another person": otherPersonWaits}},
		{"followup", "mode: followup", map[string]func(*rig){"one by one": oneByOne, "stopped with what waits": stoppedWithWhatWaits, "with a file": fileDuringATurn("followup", "2"),
			"more than are kept": overflows("summarize"), "more than are kept, the oldest go": overflows("old"), "more than are kept, the newest go": overflows("new"),
			"T10_stop in a group": stopInAGroup, "behind a switch of sessions": switchBeforeTheNextMessage}},
		{"collect", "mode: collect, debounce: 0s", map[string]func(*rig){"all at once": collected, "with a file": fileDuringATurn("collect", "2"), "T10_of another person": otherPersonWaits}},
		{"interrupt", "mode: interrupt", map[string]func(*rig){"moved to the new run": interrupted, "with a file": fileDuringATurn("interrupt", "1"),
			"T10_of another person": otherPersonWaits, "stopped while it ends": stopOutranksAnInterrupt}},
		{"debounce", "debounce: 1m", map[string]func(*rig){"at most three times": debounceRestarts, "the same run": secondMessageRestarts, "a picture behind its question": pictureRightBehindItsQuestion}},
	} {
		t.Run(world.name, func(t *testing.T) {
			t.Parallel()
			together(t, setup{extra: "sessions: {queue: {" + world.queue + "}}" + quiet}, world.tests)
		})
	}
}

func steered(r *rig) {
	r.answers(throughGate)
	ana := r.person(11)
	r.say(ana, 11, "work")
	receive(r.t, r.slot.gate.called, "the tool call")
	r.say(ana, 11, "and add sugar")
	r.queued(1)
	close(r.slot.gate.open)
	if got := r.wait(ana, 1); got[0].Text != "echo: and add sugar" {
		r.t.Errorf("answer %q", got[0].Text)
	}
	bodies := r.bodies()
	if len(bodies) != 2 || strings.Contains(bodies[0], "sugar") || !strings.Contains(bodies[1], "sugar") {
		r.t.Errorf("%d model calls; the second must hold what was steered in", len(bodies))
	}
	if got := r.rows(`SELECT state, count(DISTINCT run_id), count(*) FROM inputs GROUP BY state`); !slices.Equal(got, []string{"answered|1|2"}) {
		r.t.Errorf("inputs %q, want both answered by one run", got)
	}
	r.say(ana, 11, "next")
	if got := r.wait(ana, 2); got[1].Text != "echo: next" {
		r.t.Errorf("next answer %q", got[1].Text)
	}
}

// queued waits until n messages wait in the journal behind a turn, and their lanes know of it: they are told after the
// commit.
func (r *rig) queued(n int) {
	r.t.Helper()
	r.stored(fmt.Sprintf("%d queued", n), `SELECT count(*) FROM inputs WHERE state = 'queued'`, fmt.Sprint(n))
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(waitLimit)
	for !r.offered() {
		select {
		case <-tick.C:
		case <-limit:
			r.t.Fatal("a lane does not know of what is queued")
		}
	}
}

// offered says whether every queued message is in its session's lane.
func (r *rig) offered() bool {
	for _, row := range r.rows(`SELECT s.key, i.seq FROM inputs i JOIN sessions s ON s.id = i.session_id WHERE i.state = 'queued' AND i.mode = 'turn'`) {
		key, seq, _ := strings.Cut(row, "|")
		lane := r.g.Control().Sessions.Lanes.Lane(key)
		if !slices.ContainsFunc(append(lane.Waiting, lane.Run...), func(in workspace.Input) bool { return fmt.Sprint(in.Seq) == seq }) {
			return false
		}
	}
	return true
}

func oneByOne(r *rig) {
	h := newHold()
	r.answers(func(q *llmtest.Request) llmtest.Reply { return h.reply(r.t, q.LastUser(), llmtest.Echo(q)) })
	ana := r.person(11)
	r.say(ana, 11, "one")
	receive(r.t, h.asked, "the first turn")
	r.say(ana, 11, "two")
	r.say(ana, 11, "three")
	r.queued(2)
	close(h.open)
	if got := texts(r.wait(ana, 3)); !slices.Equal(got, []string{"echo: one", "echo: two", "echo: three"}) {
		r.t.Errorf("answers %q", got)
	}
}

func collected(r *rig) {
	h := newHold()
	r.answers(func(q *llmtest.Request) llmtest.Reply { return h.reply(r.t, q.LastUser(), llmtest.Echo(q)) })
	ana := r.person(11)
	r.say(ana, 11, "one")
	receive(r.t, h.asked, "the first turn")
	for _, text := range []string{"two", "three", "four"} {
		r.say(ana, 11, text)
	}
	r.queued(3)
	close(h.open)
	r.wait(ana, 2)
	if got := r.rows(`SELECT count(*) FROM inputs GROUP BY run_id ORDER BY min(seq)`); !slices.Equal(got, []string{"1", "3"}) {
		r.t.Errorf("inputs of the runs: %q, want 1 and 3", got)
	}
	last := r.bodies()[1]
	for _, text := range []string{"two", "three", "four"} {
		if !strings.Contains(last, text) {
			r.t.Errorf("the second turn does not hold %q", text)
		}
	}
}

func interrupted(r *rig) {
	r.answers(func(q *llmtest.Request) llmtest.Reply {
		if strings.Contains(q.LastUser(), "work") {
			return call("gate")
		}
		return llmtest.Echo(q)
	})
	ana := r.person(11)
	r.say(ana, 11, "work")
	receive(r.t, r.slot.gate.called, "the tool call")
	r.say(ana, 11, "no, tell me a joke")
	if got := r.wait(ana, 1); got[0].Text != "echo: no, tell me a joke" {
		r.t.Errorf("answer %q", got[0].Text)
	}
	if got := r.rows(`SELECT state, reason FROM runs ORDER BY id`); !slices.Equal(got, []string{"user_stopped|interrupted", "completed|"}) {
		r.t.Errorf("runs %q", got)
	}
	if got := r.rows(`SELECT count(*), count(DISTINCT run_id) FROM inputs WHERE state = 'answered' AND run_id = (SELECT max(id) FROM runs)`); got[0] != "2|1" {
		r.t.Errorf("inputs of the new run: %q, want both", got)
	}
	bodies := r.bodies()
	if last := bodies[len(bodies)-1]; !strings.Contains(last, "work") || !strings.Contains(last, "joke") {
		r.t.Error("the new turn does not hold both messages")
	}
}

// overflows is more messages than are kept; what is dropped is told, and a line of it goes into the next turn if it is summarised.
func overflows(drop string) func(*rig) {
	dropped, answers := []string{"m1", "m2"}, []string{"m3", "m4"}
	if drop == "new" {
		dropped, answers = answers, dropped
	}
	return func(r *rig) {
		h := newHold()
		r.answers(func(q *llmtest.Request) llmtest.Reply { return h.reply(r.t, q.LastUser(), llmtest.Echo(q)) })
		ana := r.person(11)
		r.ask(ana, 11, "/queue followup cap:2 drop:"+drop)
		r.say(ana, 11, "first")
		receive(r.t, h.asked, "the first turn")
		for _, text := range []string{"m1", "m2", "m3", "m4"} {
			r.say(ana, 11, text)
		}
		for i, got := range texts(r.wait(ana, 3))[1:] {
			if want := "Too many messages wait here, so this one was not answered: “" + dropped[i] + "”"; got != want {
				r.t.Errorf("notice %q, want %q", got, want)
			}
		}
		close(h.open)
		want := []string{"echo: first", "echo: " + answers[0], "echo: " + answers[1]}
		got := texts(r.wait(ana, 6))[3:]
		for i := range want { // the line of what was dropped may stand before the text
			if !strings.HasPrefix(got[i], "echo: ") || !strings.HasSuffix(got[i], strings.TrimPrefix(want[i], "echo: ")) {
				r.t.Errorf("answers %q, want %q", got, want)
			}
		}
		if kept := strings.Contains(r.bodies()[1], "not answered, too many at once"); kept != (drop == "summarize") {
			r.t.Errorf("a line of what was dropped reached the model: %v", kept)
		}
		if got := r.rows(`SELECT state, count(*) FROM inputs WHERE mode = 'turn' GROUP BY state`); !slices.Equal(got, []string{"answered|3", "dropped|2"}) {
			r.t.Errorf("inputs %q", got)
		}
	}
}

func debounceRestarts(r *rig) {
	asked := make(chan int, 10)
	open := make(chan struct{})
	r.answers(func(q *llmtest.Request) llmtest.Reply {
		asked <- q.N
		switch {
		case q.N < 4:
			return llmtest.Hang()
		case q.N == 4:
			<-open
		}
		return llmtest.Echo(q)
	})
	ana := r.person(11)
	for i := range 4 {
		r.say(ana, 11, fmt.Sprintf("m%d", i))
		if n := receive(r.t, asked, "a model call"); n != i+1 {
			r.t.Fatalf("call %d after message %d", n, i)
		}
	}
	r.say(ana, 11, "m4")
	r.queued(1)
	close(open)
	if got := texts(r.wait(ana, 2)); !strings.HasSuffix(got[0], "m3") || got[1] != "echo: m4" {
		r.t.Errorf("answers %q", got)
	}
	if n := len(r.bodies()); n != 5 {
		r.t.Errorf("%d model calls, want 5", n)
	}
	if got := r.rows(`SELECT count(*) FROM inputs GROUP BY run_id ORDER BY min(seq)`); !slices.Equal(got, []string{"4", "1"}) {
		r.t.Errorf("inputs of the runs: %q, want 4 and 1", got)
	}
}

func secondMessageRestarts(r *rig) {
	hold := make(chan struct{})
	r.answers(func(q *llmtest.Request) llmtest.Reply {
		if q.N == 1 {
			close(hold)
			return llmtest.Hang()
		}
		return llmtest.Reply{Text: "both: " + q.LastUser()}
	})
	ana := r.person(11)
	r.say(ana, 11, "first")
	<-hold
	r.say(ana, 11, "second")
	got := r.wait(ana, 1)
	if len(got) != 1 || !strings.Contains(got[0].Text, "second") {
		r.t.Fatalf("got %q", texts(got))
	}
	bodies := r.bodies()
	if last := bodies[len(bodies)-1]; !strings.Contains(last, "first") || !strings.Contains(last, "second") {
		r.t.Errorf("the second call does not hold both messages: %s", last)
	}
}

func albumIsOneTurn(r *rig) {
	ana := r.person(11)
	r.tg.Album(telegramtest.In{Chat: ana.ID, From: r.user(11), Text: "my cats"},
		telegramtest.File{Type: "photo", Data: []byte("a")}, telegramtest.File{Type: "photo", Data: []byte("b")}, telegramtest.File{Type: "photo", Data: []byte("c")})
	r.wait(ana, 1)
	if got := r.rows(`SELECT state, count(*), count(DISTINCT run_id) FROM inputs GROUP BY state`); !slices.Equal(got, []string{"answered|3|1"}) {
		r.t.Errorf("inputs %q, want three answered by one run", got)
	}
	if b := r.bodies(); len(b) != 1 || strings.Count(b[0], "[attached file: inbox/image") != 3 {
		r.t.Errorf("%d model calls; the one must name three pictures", len(b))
	}
}

// T10: a turn has one requester. What somebody else writes to the bot meanwhile waits for a turn of its own.
func otherPersonWaits(r *rig) {
	r.answers(throughGate)
	group := r.group()
	r.say(group, 11, "@parley_test_bot work for ana")
	receive(r.t, r.slot.gate.called, "the tool call")
	r.say(group, 12, "@parley_test_bot wishes of ben")
	r.queued(1)
	close(r.slot.gate.open)
	got := r.wait(group, 2)
	if !strings.Contains(got[0].Text, "for ana") || strings.Contains(got[0].Text, "ben") || !strings.Contains(got[1].Text, "of ben") {
		r.t.Errorf("answers %q", texts(got))
	}
	if first := r.bodies()[1]; strings.Contains(first, "wishes") {
		r.t.Error("ben's message was steered into ana's turn")
	}
	if got := r.rows(`SELECT count(DISTINCT requester), count(*) FROM runs WHERE state = 'completed'`); got[0] != "2|2" {
		r.t.Errorf("requesters and runs %q", got)
	}
	if got[0].ReplyTo == got[1].ReplyTo || got[0].ReplyTo == 0 {
		r.t.Error("the answers are not replies to their questions")
	}
}
