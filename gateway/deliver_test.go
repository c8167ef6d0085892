package gateway_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/agentloop/llm/llmtest"
	"parley/channels"
	"parley/channels/telegram/telegramtest"
)

func TestR05_RetryAfterIsKeptAndTheRoomPaced(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{extra: "sessions: {queue: {mode: followup}}" + quiet})
	ana := r.person(11)
	r.tg.AddFault(telegramtest.Fault{Method: "sendMessage", Do: telegramtest.Reply, Status: 429, After: 2 * time.Second, Times: 1})
	began := time.Now()
	for i := range 3 {
		r.say(ana, 11, fmt.Sprintf("m%d", i))
	}
	got := r.wait(ana, 3)
	if !slices.Equal(texts(got), []string{"echo: m0", "echo: m1", "echo: m2"}) {
		t.Errorf("answers %q", texts(got))
	}
	if wait := got[0].At.Sub(began); wait < 2*time.Second {
		t.Errorf("sent again after %v, asked for 2 s", wait)
	}
	for i := range 2 {
		if gap := got[i+1].At.Sub(got[i].At); gap < 900*time.Millisecond {
			t.Errorf("answers %d and %d are %v apart: after a 429 the room keeps to one a second", i, i+1, gap)
		}
	}
	if n := r.tg.View().Calls("sendMessage"); n != 4 {
		t.Errorf("%d sends, want 4", n)
	}
}

func TestLongAnswerGoesInPartsInOrder(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 1200 {
		fmt.Fprintf(&b, "word%04d ", i)
	}
	r := newRig(t, setup{script: func(*llmtest.Request) llmtest.Reply { return llmtest.Reply{Text: b.String()} }, extra: quiet})
	ana := r.person(11)
	r.say(ana, 11, "tell me all")
	got := texts(r.wait(ana, 3))
	if strings.Join(strings.Fields(strings.Join(got, " ")), " ") != strings.TrimSpace(b.String()) {
		t.Errorf("%d parts do not make the answer", len(got))
	}
}

func TestAnswerOfManyPartsGoesAsAFile(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a line of many\n", 2500)
	r := newRig(t, setup{script: func(*llmtest.Request) llmtest.Reply { return llmtest.Reply{Text: long} }, extra: quiet})
	ana := r.person(11)
	r.say(ana, 11, "tell me all")
	got := r.wait(ana, 2)
	if len(got[0].Text) < 3000 || len(got[1].Files) != 1 {
		t.Fatalf("a text of %d bytes, then %d files", len(got[0].Text), len(got[1].Files))
	}
	if f := got[1].Files[0]; strings.TrimSpace(string(f.Data)) != strings.TrimSpace(long) || f.Name != "answer.md" {
		t.Errorf("file %s of %d bytes, want the whole answer of %d", f.Name, len(f.Data), len(long))
	}
}

func TestRefusedMarkupGoesAsPlainText(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{script: func(*llmtest.Request) llmtest.Reply { return llmtest.Reply{Text: "**so** it is"} }, extra: quiet})
	ana := r.person(11)
	r.tg.AddFault(telegramtest.Fault{Method: "sendMessage", Do: telegramtest.Reply, Status: 400, Times: 1,
		Body: `{"ok":false,"error_code":400,"description":"Bad Request: can't parse entities: Unsupported start tag at byte offset 0"}`})
	r.say(ana, 11, "is it so?")
	if got := r.wait(ana, 1)[0]; got.Mode != "" || got.Text != "so it is" {
		t.Errorf("%q in mode %q", got.Text, got.Mode)
	}
}

// R05: what cannot be delivered is a dead letter that can be found, and nobody else waits for it.
func TestR05_BlockedUserIsADeadLetterOfTheirOwn(t *testing.T) {
	t.Parallel()
	h := newHold()
	r := newRig(t, setup{script: func(q *llmtest.Request) llmtest.Reply { return h.reply(t, q.LastUser(), llmtest.Echo(q)) }, extra: quiet})
	ana, ben := r.person(11), r.person(12)
	r.say(ana, 11, "one")
	r.say(ben, 12, "two")
	receive(t, h.asked, "a turn")
	receive(t, h.asked, "the other")
	r.tg.Block(ana.ID)
	close(h.open)
	if got := r.wait(ben, 1)[0].Text; got != "echo: two" {
		t.Errorf("ben got %q", got)
	}
	r.logged("answer is a dead letter", 1)
	r.stored("the dead part", `SELECT state, error LIKE '%blocked by the user%' FROM parts WHERE state <> 'sent'`, "dead|1")
	r.tg.Unblock(ana.ID)
	r.say(ana, 11, "three")
	if got := texts(r.wait(ana, 1)); !slices.Equal(got, []string{"echo: three"}) {
		t.Errorf("ana got %q", got)
	}
}

// R05: what may have been sent is sent once more with a mark, or dropped, and never blindly.
func TestR05_SwallowedReplyIsMarkedOnceOrDropped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, extra string
		cuts        int
		want        []string
		parts       []string
	}{
		{"mark", "", 1, []string{"echo: hello", "(maybe a repeat) echo: hello"}, []string{"sent"}},
		{"mark, swallowed again", "", 2, []string{"echo: hello", "(maybe a repeat) echo: hello", "I have an answer but could not deliver it here (run "}, []string{"dead", "sent"}},
		{"drop", ", maybe_sent: drop", 1, []string{"echo: hello"}, []string{"dead"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, setup{extra: strings.Replace(quiet, "}", c.extra+"}", 1)})
			ana, ben := r.person(11), r.person(12)
			r.say(ben, 12, "warm up") // so that the connection that is cut is an old one
			r.wait(ben, 1)
			r.tg.AddFault(telegramtest.Fault{Method: "sendMessage", Do: telegramtest.CutAfter, Times: c.cuts})
			r.say(ana, 11, "hello")
			r.wait(ana, len(c.want))
			r.stored("parts", `SELECT p.state FROM parts p JOIN outbound o ON o.id = p.outbound_id JOIN rooms r ON r.id = o.room_id WHERE r.peer = '11' ORDER BY o.n`, c.parts...)
			r.say(ana, 11, "next")
			got := texts(r.wait(ana, len(c.want)+1))
			if last := got[len(got)-1]; last != "echo: next" {
				t.Errorf("after that %q", got)
			}
			for i, want := range c.want {
				if !strings.HasPrefix(got[i], want) {
					t.Errorf("messages %q, want %q", got, c.want)
				}
			}
		})
	}
}

// R05: a network that can be asked, or that dedupes, is never sent an answer twice.
func TestR05_DoubtIsResolvedByTheNetwork(t *testing.T) {
	t.Parallel()
	cut := func() func(channels.Post) error {
		once := false
		return func(channels.Post) error {
			if once {
				return nil
			}
			once = true
			return errors.New("cut")
		}
	}
	for _, c := range []struct {
		name  string
		setup func(n *memNet)
		want  []string
		calls int
	}{
		{"found", func(n *memNet) {
			n.swallow = cut()
			n.find = func(p channels.Post) (channels.MessageID, bool, bool, error) {
				for _, have := range n.posts {
					if have.Token == p.Token {
						return have.ID, true, true, nil
					}
				}
				return "", false, true, nil
			}
		}, []string{"echo: hello"}, 1},
		{"surely absent", func(n *memNet) {
			n.fail = cut()
			n.find = func(channels.Post) (channels.MessageID, bool, bool, error) { return "", false, true, nil }
		}, []string{"echo: hello"}, 2},
		{"cannot be told", func(n *memNet) {
			n.fail = cut()
			n.find = func(channels.Post) (channels.MessageID, bool, bool, error) { return "", false, false, nil }
		}, []string{"(maybe a repeat) echo: hello"}, 2},
		{"same token is the same message", func(n *memNet) {
			n.fail = cut()
			n.traits.Idempotent = true
		}, []string{"echo: hello"}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := newMem()
			c.setup(n)
			r := memRig(t, n, setup{extra: quiet})
			n.offer(t, dm("ana", "1", "hello"))
			n.wait(t, "ana", 1)
			r.stored("the part", `SELECT state FROM parts`, "sent")
			if got := memTexts(n.have("ana")); !slices.Equal(got, c.want) {
				t.Errorf("messages %q, want %q", got, c.want)
			}
			n.mu.Lock()
			defer n.mu.Unlock()
			if n.sent != c.calls {
				t.Errorf("%d sends, want %d", n.sent, c.calls)
			}
		})
	}
}

func TestAnswerFollowsAGroupThatMoved(t *testing.T) {
	t.Parallel()
	h := newHold()
	r := newRig(t, setup{script: func(q *llmtest.Request) llmtest.Reply { return h.reply(t, q.LastUser(), llmtest.Echo(q)) }, extra: quiet})
	group := r.tg.AddChat(telegramtest.Chat{ID: -5001, Kind: telegramtest.Group, Title: "team"})
	r.say(group, 11, "@parley_test_bot hello")
	receive(t, h.asked, "the turn")
	r.tg.Migrate(-5001, -1005001)
	close(h.open)
	super := telegramtest.Chat{ID: -1005001}
	if got := r.wait(super, 1); !strings.Contains(got[0].Text, "hello") {
		t.Errorf("got %q", texts(got))
	}
	r.say(super, 11, "@parley_test_bot and now?")
	if got := r.wait(super, 2); !strings.Contains(got[1].Text, "and now?") {
		t.Errorf("got %q", texts(got))
	}
}

// The network tells the new id only when something is sent.
func TestAnswerFollowsAMoveThatTheSendTells(t *testing.T) {
	t.Parallel()
	n := newMem()
	n.fail = func(p channels.Post) error {
		if p.To.Peer == "old" {
			return &channels.Error{Class: channels.PeerGone, Moved: "new", Err: errors.New("moved")}
		}
		return nil
	}
	memRig(t, n, setup{extra: quiet})
	in := inbound(channels.Group, "old", "ana", "1", "hello")
	in.Mentioned = true
	n.offer(t, in)
	if got := memTexts(n.wait(t, "new", 1)); !strings.HasSuffix(got[0], "hello") {
		t.Errorf("got %q", got)
	}
}

func TestDeletedPlaceholderIsReplacedByTheAnswer(t *testing.T) {
	t.Parallel()
	h, n := newHold(), newMem()
	r := memRig(t, n, setup{script: func(q *llmtest.Request) llmtest.Reply { return h.reply(t, q.LastUser(), llmtest.Echo(q)) },
		extra: "replies: {typing_after: 50ms, placeholder_after: 50ms}"})
	n.offer(t, dm("ana", "1", "hello"))
	first := n.wait(t, "ana", 1)[0]
	if first.Text != "…" {
		t.Errorf("placeholder %q", first.Text)
	}
	n.remove(first.ID)
	close(h.open)
	n.until(t, "the answer", func([]memPost) bool { return slices.Equal(memTexts(n.have("ana")), []string{"echo: hello"}) })
	n.offer(t, dm("ana", "2", "more"))
	n.until(t, "the next", func([]memPost) bool { return len(n.have("ana")) == 2 && n.have("ana")[1].Text == "echo: more" })
	r.stored("parts that are not at their end", `SELECT count(*) FROM parts WHERE state NOT IN ('sent', 'cancelled')`, "0")
}

func TestStreamKeepsThePaceOfTheNetwork(t *testing.T) {
	t.Parallel()
	words := strings.Repeat("word ", 60)
	r := newRig(t, setup{limits: true, script: func(*llmtest.Request) llmtest.Reply {
		return llmtest.Reply{Pieces: strings.SplitAfter(words, " "), TokenDelay: 100 * time.Millisecond}
	}, extra: "replies: {typing_after: 50ms, placeholder_after: 100ms}"})
	ana := r.person(11)
	r.say(ana, 11, "tell me")
	r.until("the whole answer", func(v telegramtest.View) bool {
		sent := v.Sent(ana.ID)
		return len(sent) == 1 && strings.TrimSpace(sent[0].Text) == strings.TrimSpace(words)
	})
	m := r.tg.View().Sent(ana.ID)[0]
	if n := len(m.Edits); n < 3 || n > 7 {
		t.Errorf("%d edits in 6 s at one per 1.5 s", n)
	}
	for i := 2; i < len(m.Edits)-1; i++ { // the last one, with the final text, need not wait
		if gap := m.Edits[i].At.Sub(m.Edits[i-1].At); gap < 1400*time.Millisecond {
			t.Errorf("edits %d and %d are %v apart", i-1, i, gap)
		}
	}
	if n := r.tg.View().Calls("editMessageText"); n != int64(len(m.Edits)) {
		t.Errorf("%d edits were tried, %d taken", n, len(m.Edits))
	}
}

func TestHeldRoomDelaysNoOther(t *testing.T) {
	t.Parallel()
	n := newMem()
	n.fail = func(p channels.Post) error {
		if p.To.Peer == "ana" {
			return &channels.Error{Class: channels.Retry, After: time.Hour, Err: errors.New("429")}
		}
		return nil
	}
	r := memRig(t, n, setup{extra: quiet})
	n.offer(t, dm("ana", "1", "hello"))
	n.until(t, "the refusal", func([]memPost) bool { n.mu.Lock(); defer n.mu.Unlock(); return n.sent == 1 })
	for i := range 3 {
		n.offer(t, dm("ben", fmt.Sprint(i), "hello"))
		n.wait(t, "ben", i+1)
	}
	n.offer(t, dm("ana", "2", "/whoami")) // the room waits, and so does all that goes there
	n.offer(t, dm("ben", "9", "/whoami"))
	n.wait(t, "ben", 4)
	if got := n.have("ana"); len(got) != 0 {
		t.Errorf("ana got %q", memTexts(got))
	}
	r.stored("ana's parts", `SELECT p.state, count(*) FROM parts p JOIN outbound o ON o.id = p.outbound_id JOIN rooms r ON r.id = o.room_id WHERE r.peer = 'ana' GROUP BY p.state`, "ready|2")
}

func TestStatusIsAnsweredDuringALongStream(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{script: func(*llmtest.Request) llmtest.Reply {
		return llmtest.HangMid("some words and then nothing more of them")
	}, extra: "replies: {typing_after: 50ms, placeholder_after: 50ms}"})
	r.haltAtEnd()
	ana := r.person(11)
	r.say(ana, 11, "tell me")
	r.until("the stream", func(v telegramtest.View) bool {
		sent := v.Sent(ana.ID)
		return len(sent) == 1 && strings.HasPrefix(sent[0].Text, "some words")
	})
	r.say(ana, 11, "/status")
	if got := r.wait(ana, 2)[1].Text; !strings.Contains(got, "a turn is running") {
		t.Errorf("status: %q", got)
	}
	r.say(ana, 11, "/stop")
	if got := r.wait(ana, 3)[2].Text; !strings.HasPrefix(got, "Stopped: run ") {
		t.Errorf("stop: %q", got)
	}
	r.until("the end of the stream", func(v telegramtest.View) bool { return strings.HasSuffix(v.Sent(ana.ID)[0].Text, "(stopped)") })
}

// A message that the network will never take is given up, and the room hears of it.
func TestR05_UnsendableAnswerIsSaidInOneSentence(t *testing.T) {
	t.Parallel()
	n := newMem()
	n.fail = func(p channels.Post) error {
		if strings.Contains(p.Text, "echo") {
			return &channels.Error{Class: channels.BadMessage, Err: errors.New("no such words here")}
		}
		return nil
	}
	r := memRig(t, n, setup{extra: quiet})
	n.offer(t, dm("ana", "1", "hello"))
	if got := memTexts(n.wait(t, "ana", 1)); !strings.HasPrefix(got[0], "I have an answer but could not deliver it here (run ") {
		t.Errorf("got %q", got)
	}
	r.stored("dead parts", `SELECT state FROM parts WHERE error LIKE '%no such words here%'`, "dead")
}

// A busy network's refusals without a time are tried again, with growing waits.
func TestR05_RefusalsAreTriedAgain(t *testing.T) {
	t.Parallel()
	n := newMem()
	left := 2
	n.fail = func(channels.Post) error {
		if left--; left >= 0 {
			return &channels.Error{Class: channels.Retry, Err: errors.New("502")}
		}
		return nil
	}
	r := memRig(t, n, setup{extra: quiet})
	n.offer(t, dm("ana", "1", "hello"))
	n.wait(t, "ana", 1)
	r.stored("the receipt", `SELECT state, tries FROM parts`, "sent|3")
}

// A group that became a supergroup goes on as it was: the same room and session, the same permission, over a restart.
func TestGroupThatMovedKeepsItsSession(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{access: "{dm: open, groups: allowlist, allow: [\"-5001\"], require_mention: true}", extra: "routes: [{channel: tg, peer: \"-5001\", agent: assistant, session: crew}]" + quiet})
	group := r.tg.AddChat(telegramtest.Chat{ID: -5001, Kind: telegramtest.Group, Title: "team"})
	r.say(group, 11, "@parley_test_bot the word is plum")
	r.wait(group, 1)
	r.tg.Migrate(-5001, -1005001)
	super := telegramtest.Chat{ID: -1005001}
	for i := range 2 {
		r.say(super, 11, fmt.Sprint("@parley_test_bot and now? ", i))
		r.wait(super, i+1)
		if bodies := r.llm.Bodies(); !strings.Contains(bodies[len(bodies)-1], "plum") {
			t.Errorf("turn %d knows nothing of what was said before the move", i)
		}
		r.halt()
		r.start(nil)
	}
	if got := r.rows(`SELECT count(*), max(gen) FROM sessions WHERE key LIKE '%:group:%'`); !slices.Equal(got, []string{"1|1"}) {
		t.Errorf("sessions %q", got)
	}
	if got := r.rows(`SELECT peer FROM rooms WHERE peer LIKE '-%'`); !slices.Equal(got, []string{"-1005001"}) {
		t.Errorf("rooms %q", got)
	}
}
