package gateway_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/agentloop/llm/llmtest"
	"parley/channels/telegram/telegramtest"
)

// R02: one session runs one turn at a time in the order of arrival, and a session that stalls holds up no other.
func TestR02_SessionsKeepTheirOrderAndDoNotBlockEachOther(t *testing.T) {
	t.Parallel()
	const chats, each = 20, 50 / slower
	h := newHold()
	var mu sync.Mutex
	busy, twice := map[string]int{}, 0
	r := newRig(t, setup{script: func(q *llmtest.Request) llmtest.Reply {
		text := q.LastUser()
		chat, _, _ := strings.Cut(text, " ")
		mu.Lock()
		busy[chat]++
		if busy[chat] > 1 {
			twice++
		}
		mu.Unlock()
		defer func() {
			mu.Lock()
			busy[chat]--
			mu.Unlock()
		}()
		if chat == "c0" {
			return h.reply(t, text, llmtest.Echo(q))
		}
		return llmtest.Echo(q)
	}, extra: "sessions: {turn_timeout: 5m, queue: {mode: followup, cap: 100}}\nreplies: {typing_after: 1m, first_sign: 1m, placeholder_after: 1m}"})
	for m := range each {
		for c := range int64(chats) {
			r.say(r.person(100+c), 100+c, fmt.Sprintf("c%d m%d", c, m))
		}
	}
	check := func(c int64) {
		t.Helper()
		for m, got := range texts(r.waitLong(telegramtest.Chat{ID: 100 + c}, each)) {
			if want := fmt.Sprintf("echo: c%d m%d", c, m); got != want {
				t.Errorf("chat %d: answer %d is %q, want %q", c, m, got, want)
				return
			}
		}
	}
	for c := int64(1); c < chats; c++ {
		check(c)
	}
	if n := len(r.tg.View().Sent(100)); n != 0 {
		t.Errorf("the stalled chat has %d answers", n)
	}
	close(h.open)
	check(0)
	if twice != 0 {
		t.Errorf("%d times a session had two turns at once", twice)
	}
}

// waitLong is wait for what takes longer under the race detector.
func (r *rig) waitLong(chat telegramtest.Chat, n int) []telegramtest.Message {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 2*time.Minute)
	defer cancel()
	got, err := r.tg.WaitSent(ctx, chat.ID, n)
	if err != nil {
		r.t.Fatalf("%d messages: %v; have %d", n, err, len(r.tg.View().Sent(chat.ID)))
	}
	return got
}

// R03: an update that comes twice or more is one turn with one answer.
func TestR03_RedeliveredUpdatesAreAnsweredOnce(t *testing.T) {
	t.Parallel()
	const chats, each = 10, 20
	r := newRig(t, setup{extra: "sessions: {queue: {mode: followup, cap: 100}}"})
	r.tg.Redeliver(telegramtest.Redelivery{Again: 0.3, Twice: 0.3})
	for m := range each {
		for c := range int64(chats) {
			r.say(r.person(100+c), 100+c, fmt.Sprintf("c%d m%d", c, m))
		}
	}
	for c := range int64(chats) {
		r.waitLong(telegramtest.Chat{ID: 100 + c}, each)
	}
	r.until("everything confirmed", func(v telegramtest.View) bool { return v.Pending() == 0 })
	for c := range int64(chats) {
		got := texts(r.tg.View().Sent(100 + c))
		slices.Sort(got)
		if len(got) != each || len(slices.Compact(got)) != each {
			t.Errorf("chat %d: %d answers", c, len(got))
		}
	}
	if n := r.llm.Count(); n != chats*each {
		t.Errorf("%d turns, want %d", n, chats*each)
	}
	if got := r.rows(`SELECT count(*) FROM runs`); got[0] != fmt.Sprint(chats*each) {
		t.Errorf("%s runs, want %d", got[0], chats*each)
	}
}

func TestThousandChatsAtOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("takes its time")
	}
	t.Parallel()
	const chats = 1000 / slower
	r := newRig(t, setup{})
	for c := range int64(chats) {
		r.say(r.person(1000+c), 1000+c, fmt.Sprintf("c%d", c))
	}
	for c := range int64(chats) {
		if got := r.waitLong(telegramtest.Chat{ID: 1000 + c}, 1); len(got) != 1 || got[0].Text != fmt.Sprintf("echo: c%d", c) {
			t.Fatalf("chat %d: %q", c, texts(got))
		}
	}
}
