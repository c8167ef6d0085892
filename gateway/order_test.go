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

// Many chats at once, on one daemon: in order, side by side, and each message once.
func TestR02_R03_ManyChatsAtOnce(t *testing.T) {
	t.Parallel()
	h, turns := newHold(), &busyChats{busy: map[string]int{}}
	r := newRig(t, setup{script: func(q *llmtest.Request) llmtest.Reply {
		text := q.LastUser()
		chat, _, _ := strings.Cut(text, " ")
		defer turns.begin(chat)()
		if chat == "c0" {
			return h.reply(t, text, llmtest.Echo(q))
		}
		return llmtest.Echo(q)
	}, extra: "sessions: {turn_timeout: 5m, queue: {mode: followup, cap: 100}}" + quiet})
	for _, part := range []struct {
		name string
		test func(*rig)
	}{
		{"R02_sessions keep their order and do not block each other", func(r *rig) { orderedAndUnblocked(r, h, turns) }},
		{"R03_redelivered updates are answered once", redeliveredAnsweredOnce},
		{"a thousand chats", thousandChats},
	} {
		t.Run(part.name, func(t *testing.T) {
			in := *r
			in.t = t
			part.test(&in)
		})
	}
}

// busyChats counts the turns that each chat has at once.
type busyChats struct {
	mu    sync.Mutex
	busy  map[string]int
	twice int // times that a chat had a second one
}

// begin counts a turn in, and what it returns counts it out.
func (b *busyChats) begin(chat string) func() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.busy[chat]++; b.busy[chat] > 1 {
		b.twice++
	}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.busy[chat]--
	}
}

// R02: one session runs one turn at a time in the order of arrival, and a session that stalls holds up no other.
func orderedAndUnblocked(r *rig, stalled *hold, turns *busyChats) {
	const chats, each = 20, 50 / slower
	for m := range each {
		for c := range int64(chats) {
			r.say(r.person(100+c), 100+c, fmt.Sprintf("c%d m%d", c, m))
		}
	}
	check := func(c int64) {
		r.t.Helper()
		for m, got := range texts(r.waitLong(telegramtest.Chat{ID: 100 + c}, each)) {
			if want := fmt.Sprintf("echo: c%d m%d", c, m); got != want {
				r.t.Errorf("chat %d: answer %d is %q, want %q", c, m, got, want)
				return
			}
		}
	}
	for c := int64(1); c < chats; c++ {
		check(c)
	}
	if n := len(r.tg.View().Sent(100)); n != 0 {
		r.t.Errorf("the stalled chat has %d answers", n)
	}
	close(stalled.open)
	check(0)
	turns.mu.Lock()
	defer turns.mu.Unlock()
	if turns.twice != 0 {
		r.t.Errorf("%d times a session had two turns at once", turns.twice)
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
func redeliveredAnsweredOnce(r *rig) {
	const chats, each = 10, 20
	before := r.llm.Count()
	r.tg.Redeliver(telegramtest.Redelivery{Again: 0.3, Twice: 0.3})
	defer r.tg.Redeliver(telegramtest.Redelivery{})
	for m := range each {
		for c := range int64(chats) {
			r.say(r.person(200+c), 200+c, fmt.Sprintf("c%d m%d", c, m))
		}
	}
	for c := range int64(chats) {
		r.waitLong(telegramtest.Chat{ID: 200 + c}, each)
	}
	r.until("everything confirmed", func(v telegramtest.View) bool { return v.Pending() == 0 })
	for c := range int64(chats) {
		got := texts(r.tg.View().Sent(200 + c))
		slices.Sort(got)
		if len(got) != each || len(slices.Compact(got)) != each {
			r.t.Errorf("chat %d: %d answers", c, len(got))
		}
	}
	if n := r.llm.Count() - before; n != chats*each {
		r.t.Errorf("%d turns, want %d", n, chats*each)
	}
	if got := r.rows(`SELECT count(*) FROM runs r JOIN rooms o ON o.id = r.room_id WHERE CAST(o.peer AS INTEGER) BETWEEN 200 AND 299`); got[0] != fmt.Sprint(chats*each) {
		r.t.Errorf("%s runs, want %d", got[0], chats*each)
	}
}

func thousandChats(r *rig) {
	if testing.Short() {
		r.t.Skip("takes its time")
	}
	const chats = 1000 / slower
	for c := range int64(chats) {
		r.say(r.person(1000+c), 1000+c, fmt.Sprintf("c%d", c))
	}
	for c := range int64(chats) {
		if got := r.waitLong(telegramtest.Chat{ID: 1000 + c}, 1); len(got) != 1 || got[0].Text != fmt.Sprintf("echo: c%d", c) {
			r.t.Fatalf("chat %d: %q", c, texts(got))
		}
	}
}
