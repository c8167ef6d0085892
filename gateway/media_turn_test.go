package gateway_test

import (
	"strings"

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
func resumedTurnShowsItsPicture(r *rig) {
	hold, asked := make(chan struct{}), make(chan int, 4)
	defer close(hold)
	r.answers(func(q *llmtest.Request) llmtest.Reply {
		asked <- q.N
		if q.N == 1 {
			<-hold
		}
		return llmtest.Echo(q)
	})
	fetched := r.tg.View().Calls("getFile")
	ana := r.person(11)
	r.send(ana, 11, "look", telegramtest.File{Type: "photo", Data: photo(r.t, 30, 20)})
	receive(r.t, asked, "a model call")
	r.restart()
	if got := texts(r.wait(ana, 1)); !strings.Contains(got[0], "30×20") {
		r.t.Errorf("%q", got)
	}
	b := r.bodies()
	if len(b) != 2 || !strings.Contains(b[1], "data:image/jpeg;base64,") {
		r.t.Errorf("%d calls", len(b))
	}
	if n := r.tg.View().Calls("getFile") - fetched; n != 1 {
		r.t.Errorf("fetched %d times", n)
	}
}

// hangs has a message come with a file whose fetch hangs, and waits until it does.
func (r *rig) hangs(text string) (chat telegramtest.Chat, id int64) {
	r.t.Helper()
	fetched := r.tg.View().Calls("getFile")
	chat = r.person(11)
	r.tg.AddFault(telegramtest.Fault{Method: "file", Do: telegramtest.Hang})
	id = r.send(chat, 11, text, telegramtest.File{Type: "document", Name: "a.txt", Data: []byte("text")})
	r.until("the fetch", func(v telegramtest.View) bool { return v.Calls("getFile") == fetched+1 })
	return chat, id
}

func shutdownDuringAFetch(r *rig) {
	ana, _ := r.hangs("read it")
	r.restart(func() {
		if got := r.rows(`SELECT state FROM inputs`); len(got) != 1 || got[0] != "queued" {
			r.t.Errorf("inputs %q", got)
		}
		r.tg.ClearFaults()
	})
	if got := texts(r.wait(ana, 1)); !strings.Contains(got[0], "[attached file: inbox/a.txt, text/plain, 4 bytes]") {
		r.t.Errorf("%q", got)
	}
}

// A stop while a picture is fetched that was to be steered in ends the turn, and the picture's message with it.
func stopDuringASteeredFetch(r *rig) {
	r.answers(throughGate)
	fetched := r.tg.View().Calls("getFile")
	ana := r.person(11)
	r.say(ana, 11, "work")
	receive(r.t, r.slot.gate.called, "the tool call")
	r.tg.AddFault(telegramtest.Fault{Method: "file", Do: telegramtest.Hang})
	r.send(ana, 11, "and this", telegramtest.File{Type: "document", Name: "a.txt", Data: []byte("text")})
	r.queued(1)
	close(r.slot.gate.open)
	r.until("the fetch", func(v telegramtest.View) bool { return v.Calls("getFile") == fetched+1 })
	r.say(ana, 11, "/stop")
	r.stored("the end", `SELECT state, count(*) FROM inputs WHERE mode = 'turn' GROUP BY state ORDER BY state`, "cancelled|1", "stopped|1")
	r.tg.ClearFaults()
	r.say(ana, 11, "hello")
	r.until("the next answer", func(v telegramtest.View) bool {
		sent := texts(v.Sent(ana.ID))
		return len(sent) > 0 && sent[len(sent)-1] == "echo: hello"
	})
}

func stopEndsAFetchThatHangs(r *rig) {
	ana, _ := r.hangs("read it")
	r.until("typing", func(v telegramtest.View) bool { return len(v.Actions(ana.ID)) > 0 })
	r.say(ana, 11, "/stop")
	r.wait(ana, 1)
	r.say(ana, 11, "hello")
	got := texts(r.wait(ana, 2))
	if got[1] != "echo: hello" {
		r.t.Errorf("%q", got)
	}
	if got := r.rows(`SELECT state, text FROM inputs ORDER BY seq`); got[0] != "cancelled|read it" {
		r.t.Errorf("inputs %q", got)
	}
	r.tg.ClearFaults()
}

func editDuringAFetch(r *rig) {
	ana, id := r.hangs("read it")
	r.tg.EditIn(ana.ID, id, "count its letters")
	r.stored("the edit", `SELECT text FROM inputs ORDER BY seq`, "count its letters", "count its letters")
	r.tg.ClearFaults()
	if got := texts(r.wait(ana, 1)); !strings.HasPrefix(got[0], "echo: count its letters\n\n[attached file: inbox/a.txt") {
		r.t.Errorf("%q", got)
	}
	r.say(ana, 11, "next")
	r.wait(ana, 2)
	if b := r.bodies(); strings.Contains(b[1], "read it") || !strings.Contains(b[1], "count its letters") {
		r.t.Error("the next turn sees another text")
	}
}

// A text that is followed at once by its picture is one turn, and the picture is in it.
func pictureRightBehindItsQuestion(r *rig) {
	hold, asked := make(chan struct{}), make(chan int, 10)
	defer close(hold)
	r.answers(func(q *llmtest.Request) llmtest.Reply {
		asked <- q.N
		if !strings.Contains(string(q.Body), "image_url") {
			<-hold
		}
		return llmtest.Echo(q)
	})
	ana := r.person(11)
	r.say(ana, 11, "what is this?")
	receive(r.t, asked, "a model call")
	r.send(ana, 11, "", telegramtest.File{Type: "photo", Data: photo(r.t, 30, 20)})
	got := r.wait(ana, 1)
	if !strings.Contains(got[0].Text, "30×20") {
		r.t.Errorf("%q", got[0].Text)
	}
	if got := r.rows(`SELECT state, count(DISTINCT run_id), count(*) FROM inputs GROUP BY state`); got[0] != "answered|1|2" {
		r.t.Errorf("inputs %q", got)
	}
}
