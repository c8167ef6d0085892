package telegramtest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestRedeliveryIgnoresTheOffsetOnce(t *testing.T) {
	t.Parallel()
	c := newClient(t, Options{FirstUpdate: 1})
	c.peopled()
	c.s.Redeliver(Redelivery{Again: 1})
	c.s.Message(In{Chat: 42, From: ana, Text: "hi"})
	seen := []string{fmt.Sprint(c.updates()), fmt.Sprint(c.updates("offset", "2")), fmt.Sprint(c.updates("offset", "2"))}
	if got := strings.Join(seen, " "); got != "[1] [1] []" {
		t.Errorf("polls gave %s", got)
	}
}

func TestTwiceAndReorderSpoilABatch(t *testing.T) {
	t.Parallel()
	c := newClient(t, Options{FirstUpdate: 1, Seed: 3})
	c.peopled()
	c.s.Redeliver(Redelivery{Twice: 1, Reorder: true})
	for range 10 {
		c.s.Message(In{Chat: 42, From: ana, Text: "hi"})
	}
	ids := c.updates()
	if len(ids) != 20 {
		t.Fatalf("%d updates, want each of 10 twice", len(ids))
	}
	ordered := true
	for i := 1; i < len(ids); i++ {
		ordered = ordered && ids[i] >= ids[i-1]
	}
	if ordered {
		t.Errorf("in order: %v", ids)
	}
}

func TestFloodLimits(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	c := newClient(t, Options{Now: func() time.Time { return now }})
	c.peopled()
	for i := range 40 {
		c.s.AddPrivate(User{ID: 1000 + int64(i), First: "P"})
	}
	send := func(chat int64) answer { return c.do("sendMessage", "chat_id", fmt.Sprint(chat), "text", "x") }
	burst := func(call func() answer) (n int, refused answer) {
		for range 100 {
			a := call()
			if !a.OK {
				return n, a
			}
			n++
		}
		return n, answer{}
	}
	n, a := burst(func() answer { return send(42) })
	if n != 5 || a.Code != 429 || a.Parameters.Retry != 1 || a.Description != "Too Many Requests: retry after 1" {
		t.Errorf("one chat: %d taken, then %+v", n, a)
	}
	now = now.Add(time.Second)
	if a := send(42); !a.OK {
		t.Errorf("after retry_after: %+v", a)
	}
	i := int64(0)
	edit := func() answer {
		i++
		return c.do("editMessageText", "chat_id", "42", "message_id", "1", "text", fmt.Sprint(i))
	}
	n, a = burst(edit)
	if n != 5 || a.Code != 429 {
		t.Errorf("edits of one message: %d taken, then %+v", n, a)
	}
	now = now.Add(time.Minute)
	i = 0
	n, a = burst(func() answer { i++; return send(999 + i) })
	if n != 30 || a.Code != 429 {
		t.Errorf("overall: %d taken, then %+v", n, a)
	}
}

func TestGroupTakesTwentyAMinute(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	c := newClient(t, Options{Now: func() time.Time { return now }, Limits: Limits{PerSecond: 100, Burst: 100, Overall: 1000}})
	c.peopled()
	taken := 0
	var last answer
	for range 40 {
		if last = c.do("sendMessage", "chat_id", fmt.Sprint(groupID), "text", "x"); last.OK {
			taken++
		}
	}
	if taken != 20 || last.Code != 429 || last.Parameters.Retry != 3 {
		t.Errorf("%d taken in one moment, last %+v", taken, last)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	c := newClient(t, Options{NoLimits: true})
	c.peopled()
	send := func() (answer, error) { return c.try(t.Context(), "sendMessage", "chat_id", "42", "text", "x") }
	sent := func() int { return len(c.s.View().Sent(42)) }
	rows := []struct {
		name   string
		fault  Fault
		code   int  // 0: no readable answer
		stored bool // the message was taken
	}{
		{"429", Fault{Do: Reply, Status: 429, After: 7 * time.Second}, 429, false},
		{"500", Fault{Do: Reply, Status: 500}, 500, false},
		{"HTML 502", Fault{Do: Reply, Status: 502, Body: BadGateway}, 0, false},
		{"cut before", Fault{Do: CutBefore}, 0, false},
		{"swallowed", Fault{Do: CutAfter}, 0, true},
		{"cut in the middle", Fault{Do: CutMiddle}, 0, true},
		{"delay", Fault{Do: Delay, After: time.Millisecond}, 200, true},
	}
	for _, r := range rows {
		before := sent()
		r.fault.Method, r.fault.Times = "sendMessage", 1
		c.s.AddFault(r.fault)
		a, err := send()
		switch {
		case r.code == 0 && err == nil:
			t.Errorf("%s: readable answer %+v", r.name, a)
		case r.code == 200 && !a.OK, r.code > 200 && a.Code != r.code:
			t.Errorf("%s: %+v %v", r.name, a, err)
		}
		if stored := sent() > before; stored != r.stored {
			t.Errorf("%s: stored %v, want %v", r.name, stored, r.stored)
		}
		if a, err := send(); err != nil || !a.OK {
			t.Errorf("%s: the next call is spoiled too: %+v %v", r.name, a, err)
		}
	}
}

// A fault of one chat spares the others; what is edited in vain counts as an edit.
func TestAFaultIsOfItsChat(t *testing.T) {
	t.Parallel()
	c := newClient(t, Options{NoLimits: true})
	c.peopled()
	c.s.AddFault(Fault{Chat: 42, Method: "sendMessage", Do: Reply, Status: 500, Times: 1})
	for i, want := range []struct {
		chat int64
		ok   bool
	}{{groupID, true}, {42, false}, {42, true}} {
		if got := c.do("sendMessage", "chat_id", fmt.Sprint(want.chat), "text", "x"); got.OK != want.ok {
			t.Errorf("send %d: %+v", i, got)
		}
	}
	id := fmt.Sprint(c.s.View().Sent(42)[0].ID)
	for _, text := range []string{"y", "y"} {
		c.do("editMessageText", "chat_id", "42", "message_id", id, "text", text)
	}
	if v := c.s.View(); v.Edits(42) != 2 || v.Edits(groupID) != 0 || len(v.Sent(42)[0].Edits) != 1 {
		t.Errorf("%d edits of one chat, %d of the other", v.Edits(42), v.Edits(groupID))
	}
}

func TestFreezeNeverAnswers(t *testing.T) {
	t.Parallel()
	c := newClient(t, Options{})
	c.s.Freeze()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if a, err := c.try(ctx, "getMe"); err == nil || ctx.Err() == nil {
		t.Errorf("frozen server answered %+v", a)
	}
	c.s.ClearFaults()
	if !c.do("getMe").OK {
		t.Error("thawed server does not answer")
	}
}

func TestDownRefusesConnectionsUntilUp(t *testing.T) {
	t.Parallel()
	c := newClient(t, Options{})
	c.s.Down()
	if _, err := c.try(t.Context(), "getMe"); err == nil || !strings.Contains(err.Error(), "dial tcp") {
		t.Errorf("down: %v", err)
	}
	if err := c.s.Up(); err != nil {
		t.Fatal(err)
	}
	if !c.do("getMe").OK {
		t.Error("up again, and no answer")
	}
}

func TestCloseLetsHangingCallsGo(t *testing.T) {
	t.Parallel()
	c := newClient(t, Options{})
	ended := make(chan error, 1)
	go func() {
		_, err := c.try(context.WithoutCancel(t.Context()), "getUpdates", "timeout", "50")
		ended <- err
	}()
	c.wait(View.Polling)
	c.s.Close()
	if err := <-ended; err == nil {
		t.Error("the poll got an answer from a closed server")
	}
}

func TestRevokeEndsTheLongPoll(t *testing.T) {
	t.Parallel()
	c := newClient(t, Options{})
	got := make(chan answer, 1)
	go func() {
		a, _ := c.try(c.t.Context(), "getUpdates", "timeout", "50")
		got <- a
	}()
	c.wait(View.Polling)
	c.s.Revoke()
	if a := <-got; a.Code != 401 {
		t.Errorf("the poll got %+v", a)
	}
}
