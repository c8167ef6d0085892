package gateway_test

import (
	"strings"
	"testing"

	"parley/agentloop/llm/llmtest"
	"parley/channels/telegram/telegramtest"
)

// What comes with a file during a turn goes where its mode says, with the file.
func fileDuringATurn(mode, runs string) func(*rig) {
	return func(r *rig) {
		r.answers(throughGate)
		ana := r.person(11)
		r.say(ana, 11, "work")
		receive(r.t, r.slot.gate.called, "the tool call")
		r.send(ana, 11, "and look at this", telegramtest.File{Type: "photo", Data: photo(r.t, 30, 20)})
		if mode != "interrupt" {
			r.queued(1)
			close(r.slot.gate.open)
		}
		r.stored("the end", `SELECT count(*), count(DISTINCT run_id) FROM inputs WHERE state NOT IN ('queued', 'taken')`, "2|"+runs)
		if mode == "interrupt" {
			close(r.slot.gate.open)
		}
		b := r.bodies()
		for _, want := range []string{"data:image/jpeg;base64,", "and look at this", "inbox/image.jpg"} {
			if !strings.Contains(b[len(b)-1], want) {
				r.t.Errorf("the last of %d calls does not hold %q", len(b), want)
			}
		}
	}
}

// A turn that another boot finishes shows its picture again, without fetching it again.
func TestResumedTurnShowsItsPicture(t *testing.T) {
	t.Parallel()
	hold, asked := make(chan struct{}), make(chan int, 4)
	r := newRig(t, setup{extra: quiet, script: func(q *llmtest.Request) llmtest.Reply {
		asked <- q.N
		if q.N == 1 {
			<-hold
		}
		return llmtest.Echo(q)
	}})
	defer close(hold)
	ana := r.person(11)
	r.send(ana, 11, "look", telegramtest.File{Type: "photo", Data: photo(t, 30, 20)})
	receive(t, asked, "a model call")
	r.halt()
	r.start(nil)
	if got := texts(r.wait(ana, 1)); !strings.Contains(got[0], "30×20") {
		t.Errorf("%q", got)
	}
	b := r.llm.Bodies()
	if len(b) != 2 || !strings.Contains(b[1], "data:image/jpeg;base64,") {
		t.Errorf("%d calls", len(b))
	}
	if n := r.tg.View().Calls("getFile"); n != 1 {
		t.Errorf("fetched %d times", n)
	}
}

func TestShutdownDuringAFetchLeavesTheMessageToTheNextStart(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{extra: quiet})
	ana := r.person(11)
	r.tg.AddFault(telegramtest.Fault{Method: "file", Do: telegramtest.Hang})
	r.send(ana, 11, "read it", telegramtest.File{Type: "document", Name: "a.txt", Data: []byte("text")})
	r.until("the fetch", func(v telegramtest.View) bool { return v.Calls("getFile") == 1 })
	r.halt()
	if got := r.rows(`SELECT state FROM inputs`); len(got) != 1 || got[0] != "queued" {
		t.Errorf("inputs %q", got)
	}
	r.tg.ClearFaults()
	r.start(nil)
	if got := texts(r.wait(ana, 1)); !strings.Contains(got[0], "[attached file: inbox/a.txt, text/plain, 4 bytes]") {
		t.Errorf("%q", got)
	}
}

// A stop while a picture is fetched that was to be steered in ends the turn, and the picture's message with it.
func TestStopDuringASteeredFetch(t *testing.T) {
	t.Parallel()
	g := newGate()
	r := newRig(t, setup{script: throughGate, opt: withTools(g.tool()), extra: quiet})
	ana := r.person(11)
	r.say(ana, 11, "work")
	receive(t, g.called, "the tool call")
	r.tg.AddFault(telegramtest.Fault{Method: "file", Do: telegramtest.Hang})
	r.send(ana, 11, "and this", telegramtest.File{Type: "document", Name: "a.txt", Data: []byte("text")})
	r.queued(1)
	close(g.open)
	r.until("the fetch", func(v telegramtest.View) bool { return v.Calls("getFile") == 1 })
	r.say(ana, 11, "/stop")
	r.stored("the end", `SELECT state, count(*) FROM inputs WHERE mode = 'turn' GROUP BY state ORDER BY state`, "cancelled|1", "stopped|1")
	r.tg.ClearFaults()
	r.say(ana, 11, "hello")
	r.until("the next answer", func(v telegramtest.View) bool {
		sent := texts(v.Sent(ana.ID))
		return len(sent) > 0 && sent[len(sent)-1] == "echo: hello"
	})
}

func TestStopEndsAFetchThatHangs(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{})
	ana := r.person(11)
	r.tg.AddFault(telegramtest.Fault{Method: "file", Do: telegramtest.Hang, Times: 1})
	r.send(ana, 11, "read it", telegramtest.File{Type: "document", Name: "a.txt", Data: []byte("text")})
	r.until("the fetch", func(v telegramtest.View) bool { return v.Calls("getFile") == 1 })
	r.until("typing", func(v telegramtest.View) bool { return len(v.Actions(ana.ID)) > 0 })
	r.say(ana, 11, "/stop")
	r.wait(ana, 1)
	r.say(ana, 11, "hello")
	got := texts(r.wait(ana, 2))
	if got[1] != "echo: hello" {
		t.Errorf("%q", got)
	}
	if got := r.rows(`SELECT state, text FROM inputs ORDER BY seq`); got[0] != "cancelled|read it" {
		t.Errorf("inputs %q", got)
	}
	r.tg.ClearFaults()
}

func TestEditDuringAFetchIsWhatIsAnswered(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{})
	ana := r.person(11)
	r.tg.AddFault(telegramtest.Fault{Method: "file", Do: telegramtest.Hang})
	id := r.send(ana, 11, "read it", telegramtest.File{Type: "document", Name: "a.txt", Data: []byte("text")})
	r.until("the fetch", func(v telegramtest.View) bool { return v.Calls("getFile") == 1 })
	r.tg.EditIn(ana.ID, id, "count its letters")
	r.stored("the edit", `SELECT text FROM inputs ORDER BY seq`, "count its letters", "count its letters")
	r.tg.ClearFaults()
	if got := texts(r.wait(ana, 1)); !strings.HasPrefix(got[0], "echo: count its letters\n\n[attached file: inbox/a.txt") {
		t.Errorf("%q", got)
	}
	r.say(ana, 11, "next")
	r.wait(ana, 2)
	if b := r.llm.Bodies(); strings.Contains(b[1], "read it") || !strings.Contains(b[1], "count its letters") {
		t.Error("the next turn sees another text")
	}
}

// A text that is followed at once by its picture is one turn, and the picture is in it.
func TestPictureRightBehindItsQuestionIsAnsweredWithIt(t *testing.T) {
	t.Parallel()
	hold, asked := make(chan struct{}), make(chan int, 10)
	r := newRig(t, setup{extra: "sessions: {queue: {debounce: 60s}}\nreplies: {placeholder_after: 1m}", script: func(q *llmtest.Request) llmtest.Reply {
		asked <- q.N
		if !strings.Contains(string(q.Body), "image_url") {
			<-hold
		}
		return llmtest.Echo(q)
	}})
	defer close(hold)
	ana := r.person(11)
	r.say(ana, 11, "what is this?")
	receive(t, asked, "a model call")
	r.send(ana, 11, "", telegramtest.File{Type: "photo", Data: photo(t, 30, 20)})
	got := r.wait(ana, 1)
	if !strings.Contains(got[0].Text, "30×20") {
		t.Errorf("%q", got[0].Text)
	}
	if got := r.rows(`SELECT state, count(DISTINCT run_id), count(*) FROM inputs GROUP BY state`); got[0] != "answered|1|2" {
		t.Errorf("inputs %q", got)
	}
}
