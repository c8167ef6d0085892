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

// How answers reach people, and what becomes of messages that are edited and deleted, on one daemon between Telegram and a
// network in memory.
func TestAnswersReachPeople(t *testing.T) {
	t.Parallel()
	together(t, newMem().beside(setup{extra: "sessions: {queue: {mode: followup}}" + quiet}), map[string]func(*rig){
		"R05_a flood's wait is kept and the room paced":    floodIsWaitedOut,
		"a long one goes in parts in order":                longAnswerGoesInParts,
		"one of many parts goes as a file":                 answerOfManyPartsGoesAsAFile,
		"refused markup goes as plain text":                refusedMarkupGoesPlain,
		"R05_a blocked user is a dead letter":              blockedUserIsADeadLetter,
		"R05_a swallowed one is marked":                    swallowedIsMarked,
		"R05_one that is swallowed again is given up":      swallowedAgainIsGivenUp,
		"a group that moved during the turn":               answerFollowsAMovedGroup,
		"a move that the send tells":                       answerFollowsAMoveThatTheSendTells,
		"a held room delays no other":                      heldRoomDelaysNoOther,
		"an edit of what is queued replaces it":            editReplacesWhatIsQueued,
		"a deletion of what is queued cancels it":          deletionCancelsWhatIsQueued,
		"an edit of what is taken is steered in":           changeIsSteeredIn(editedToApples, "(I edited my message. It now says:) apples instead"),
		"a deletion of what is taken is steered in":        changeIsSteeredIn(deleted, "(I deleted my message.)"),
		"a change of what was answered is noted":           changeOfWhatWasAnsweredIsNoted,
		"T08_edits and deletions by others change nothing": changesByOthersChangeNothing,
		"an edit right behind its message is answered":     editRightBehindIsAnswered,
	})
}

func floodIsWaitedOut(r *rig) {
	ana := r.person(11)
	r.tg.AddFault(telegramtest.Fault{Chat: ana.ID, Method: "sendMessage", Do: telegramtest.Reply, Status: 429, After: 2 * time.Second, Times: 1})
	began := time.Now()
	for i := range 3 {
		r.say(ana, 11, fmt.Sprintf("m%d", i))
	}
	got := r.wait(ana, 3)
	if !slices.Equal(texts(got), []string{"echo: m0", "echo: m1", "echo: m2"}) {
		r.t.Errorf("answers %q", texts(got))
	}
	if wait := got[0].At.Sub(began); wait < 2*time.Second {
		r.t.Errorf("sent again after %v, asked for 2 s", wait)
	}
	for i := range 2 {
		if gap := got[i+1].At.Sub(got[i].At); gap < 900*time.Millisecond {
			r.t.Errorf("answers %d and %d are %v apart: after a 429 the room keeps to one a second", i, i+1, gap)
		}
	}
	r.stored("sends", `SELECT p.state, tries FROM parts p JOIN outbound o ON o.id = outbound_id ORDER BY o.n`, "sent|2", "sent|1", "sent|1")
}

func longAnswerGoesInParts(r *rig) {
	var b strings.Builder
	for i := range 1200 {
		fmt.Fprintf(&b, "word%04d ", i)
	}
	r.answers(func(*llmtest.Request) llmtest.Reply { return llmtest.Reply{Text: b.String()} })
	ana := r.person(11)
	r.say(ana, 11, "tell me all")
	got := texts(r.wait(ana, 3))
	if strings.Join(strings.Fields(strings.Join(got, " ")), " ") != strings.TrimSpace(b.String()) {
		r.t.Errorf("%d parts do not make the answer", len(got))
	}
}

func answerOfManyPartsGoesAsAFile(r *rig) {
	long := strings.Repeat("a line of many\n", 2500)
	r.answers(func(*llmtest.Request) llmtest.Reply { return llmtest.Reply{Text: long} })
	ana := r.person(11)
	r.say(ana, 11, "tell me all")
	got := r.wait(ana, 2)
	if len(got[0].Text) < 3000 || len(got[1].Files) != 1 {
		r.t.Fatalf("a text of %d bytes, then %d files", len(got[0].Text), len(got[1].Files))
	}
	if f := got[1].Files[0]; strings.TrimSpace(string(f.Data)) != strings.TrimSpace(long) || f.Name != "answer.md" {
		r.t.Errorf("file %s of %d bytes, want the whole answer of %d", f.Name, len(f.Data), len(long))
	}
}

func refusedMarkupGoesPlain(r *rig) {
	r.answers(func(*llmtest.Request) llmtest.Reply { return llmtest.Reply{Text: "**so** it is"} })
	ana := r.person(11)
	r.tg.AddFault(telegramtest.Fault{Chat: ana.ID, Method: "sendMessage", Do: telegramtest.Reply, Status: 400, Times: 1,
		Body: `{"ok":false,"error_code":400,"description":"Bad Request: can't parse entities: Unsupported start tag at byte offset 0"}`})
	r.say(ana, 11, "is it so?")
	if got := r.wait(ana, 1)[0]; got.Mode != "" || got.Text != "so it is" {
		r.t.Errorf("%q in mode %q", got.Text, got.Mode)
	}
}

// R05: what cannot be delivered is a dead letter that can be found, and nobody else waits for it.
func blockedUserIsADeadLetter(r *rig) {
	h := newHold()
	r.answers(func(q *llmtest.Request) llmtest.Reply { return h.reply(r.t, q.LastUser(), llmtest.Echo(q)) })
	ana, ben := r.person(11), r.person(12)
	r.say(ana, 11, "one")
	r.say(ben, 12, "two")
	receive(r.t, h.asked, "a turn")
	receive(r.t, h.asked, "the other")
	r.tg.Block(ana.ID)
	close(h.open)
	if got := r.wait(ben, 1)[0].Text; got != "echo: two" {
		r.t.Errorf("ben got %q", got)
	}
	r.logged(fmt.Sprintf(`msg="answer is a dead letter" room=telegram/%d/dm/%d `, r.tg.Bot().ID, ana.ID), 1)
	r.stored("the dead part", `SELECT state, error LIKE '%blocked by the user%' FROM parts WHERE state <> 'sent'`, "dead|1")
	r.tg.Unblock(ana.ID)
	r.say(ana, 11, "three")
	if got := texts(r.wait(ana, 1)); !slices.Equal(got, []string{"echo: three"}) {
		r.t.Errorf("ana got %q", got)
	}
}

// R05: what may have been sent is sent once more with a mark, and never blindly.
func swallowedIsMarked(r *rig) {
	swallow(r, 1, []string{"sent"}, "echo: hello", "(maybe a repeat) echo: hello")
}

func swallowedAgainIsGivenUp(r *rig) {
	swallow(r, 2, []string{"dead", "sent"}, "echo: hello", "(maybe a repeat) echo: hello", "I have an answer but could not deliver it here (run ")
}

// swallowedIsDropped is for a daemon that is to drop what may have been sent.
func swallowedIsDropped(r *rig) { swallow(r, 1, []string{"dead"}, "echo: hello") }

// swallow has the network take answers without saying so, and wants messages, and what is stored of their parts.
func swallow(r *rig, cuts int, parts []string, want ...string) {
	ana, ben := r.person(11), r.person(12)
	r.say(ben, 12, "warm up") // so that the connection that is cut is an old one
	r.wait(ben, 1)
	r.tg.AddFault(telegramtest.Fault{Chat: ana.ID, Method: "sendMessage", Do: telegramtest.CutAfter, Times: cuts})
	r.say(ana, 11, "hello")
	r.wait(ana, len(want))
	r.stored("parts", fmt.Sprintf(`SELECT p.state FROM parts p JOIN outbound o ON o.id = p.outbound_id JOIN rooms r ON r.id = o.room_id
		WHERE r.peer = '%d' ORDER BY o.n`, ana.ID), parts...)
	r.say(ana, 11, "next")
	got := texts(r.wait(ana, len(want)+1))
	if last := got[len(got)-1]; last != "echo: next" {
		r.t.Errorf("after that %q", got)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			r.t.Errorf("messages %q, want %q", got, want)
		}
	}
}

func answerFollowsAMovedGroup(r *rig) {
	h := newHold()
	r.answers(func(q *llmtest.Request) llmtest.Reply { return h.reply(r.t, q.LastUser(), llmtest.Echo(q)) })
	group, super := r.group(), telegramtest.Chat{ID: r.id(-5002)}
	r.say(group, 11, "@parley_test_bot hello")
	receive(r.t, h.asked, "the turn")
	r.tg.Migrate(group.ID, super.ID)
	close(h.open)
	if got := r.wait(super, 1); !strings.Contains(got[0].Text, "hello") {
		r.t.Errorf("got %q", texts(got))
	}
	r.say(super, 11, "@parley_test_bot and now?")
	if got := r.wait(super, 2); !strings.Contains(got[1].Text, "and now?") {
		r.t.Errorf("got %q", texts(got))
	}
}

// The network tells the new id only when something is sent.
func answerFollowsAMoveThatTheSendTells(r *rig) {
	r.mem.judges(r.peer(21), func(channels.Post) error {
		return &channels.Error{Class: channels.PeerGone, Moved: channels.PeerID(r.peer(22)), Err: errors.New("moved")}
	})
	r.mem.offer(r.t, r.wroteIn(21, 11, "1", "hello"))
	if got := r.sent(22, 1); !strings.HasSuffix(got[0], "hello") {
		r.t.Errorf("got %q", got)
	}
}

func heldRoomDelaysNoOther(r *rig) {
	refused := make(chan struct{}, 10)
	r.mem.judges(r.peer(11), func(channels.Post) error {
		refused <- struct{}{}
		return &channels.Error{Class: channels.Retry, After: time.Hour, Err: errors.New("429")}
	})
	r.mem.offer(r.t, r.wrote(11, "1", "hello"))
	receive(r.t, refused, "the refusal")
	for i := range 3 {
		r.mem.offer(r.t, r.wrote(12, fmt.Sprint(i), "hello"))
		r.sent(12, i+1)
	}
	r.mem.offer(r.t, r.wrote(11, "2", "/whoami")) // the room waits, and so does all that goes there
	r.mem.offer(r.t, r.wrote(12, "9", "/whoami"))
	r.sent(12, 4)
	if got := r.mem.have(r.peer(11)); len(got) != 0 || len(refused) != 0 {
		r.t.Errorf("ana got %q, and was sent something %d times more", memTexts(got), len(refused))
	}
	r.stored("ana's parts", fmt.Sprintf(`SELECT p.state, count(*) FROM parts p JOIN outbound o ON o.id = p.outbound_id JOIN rooms r ON r.id = o.room_id
		WHERE r.peer = '%s' GROUP BY p.state`, r.peer(11)), "ready|2")
}

// Answers that grow while they are written, on one daemon that shows a placeholder soon.
func TestAnswersGrow(t *testing.T) {
	t.Parallel()
	together(t, newMem().beside(setup{limits: true, extra: "replies: {typing_after: 50ms, placeholder_after: 100ms}"}), map[string]func(*rig){
		"a deleted placeholder is replaced":       deletedPlaceholderIsReplaced,
		"a stream keeps the pace of the network":  streamKeepsThePace,
		"the status is answered during a stream":  statusDuringAStream,
		"a stream goes on where a restart cut it": streamGoesOnAfterARestart,
	})
}

func deletedPlaceholderIsReplaced(r *rig) {
	h := newHold()
	r.answers(func(q *llmtest.Request) llmtest.Reply { return h.reply(r.t, q.LastUser(), llmtest.Echo(q)) })
	r.mem.offer(r.t, r.wrote(11, "1", "hello"))
	ana := r.peer(11)
	first := r.mem.wait(r.t, ana, 1)[0]
	if first.Text != "…" {
		r.t.Errorf("placeholder %q", first.Text)
	}
	r.mem.remove(first.ID)
	close(h.open)
	r.mem.until(r.t, "the answer", func([]memPost) bool { return slices.Equal(memTexts(r.mem.have(ana)), []string{"echo: hello"}) })
	r.mem.offer(r.t, r.wrote(11, "2", "more"))
	r.mem.until(r.t, "the next", func([]memPost) bool {
		return slices.Equal(memTexts(r.mem.have(ana)), []string{"echo: hello", "echo: more"})
	})
	r.stored("parts that are not at their end", `SELECT count(*) FROM parts WHERE state NOT IN ('sent', 'cancelled')`, "0")
}

func streamKeepsThePace(r *rig) {
	words := strings.Repeat("word ", 60)
	r.answers(func(*llmtest.Request) llmtest.Reply {
		return llmtest.Reply{Pieces: strings.SplitAfter(words, " "), TokenDelay: 100 * time.Millisecond}
	})
	ana := r.person(11)
	r.say(ana, 11, "tell me")
	r.until("the whole answer", func(v telegramtest.View) bool {
		sent := v.Sent(ana.ID)
		return len(sent) == 1 && strings.TrimSpace(sent[0].Text) == strings.TrimSpace(words)
	})
	m := r.tg.View().Sent(ana.ID)[0]
	took := m.EditedAt.Sub(m.At)
	if n := len(m.Edits); n < 3 || n > 3+int(took/(1400*time.Millisecond)) {
		r.t.Errorf("%d edits in %v at one per 1.5 s", n, took)
	}
	for i := 2; i < len(m.Edits)-1; i++ { // the last one, with the final text, need not wait
		for before := 1; before < i; before++ { // each may be half a second on its way
			want := time.Duration(i-before)*1500*time.Millisecond - 500*time.Millisecond
			if gap := m.Edits[i].At.Sub(m.Edits[before].At); gap < want {
				r.t.Errorf("edits %d and %d are %v apart, want %v", before, i, gap, want)
			}
		}
	}
	if n := r.tg.View().Edits(ana.ID); n != int64(len(m.Edits)) {
		r.t.Errorf("%d edits were tried, %d taken", n, len(m.Edits))
	}
}

func statusDuringAStream(r *rig) {
	r.answers(func(*llmtest.Request) llmtest.Reply {
		return llmtest.HangMid("some words and then nothing more of them")
	})
	ana := r.person(11)
	r.say(ana, 11, "tell me")
	r.until("the stream", func(v telegramtest.View) bool {
		sent := v.Sent(ana.ID)
		return len(sent) == 1 && strings.HasPrefix(sent[0].Text, "some words")
	})
	r.say(ana, 11, "/status")
	if got := r.wait(ana, 2)[1].Text; !strings.Contains(got, "a turn is running") {
		r.t.Errorf("status: %q", got)
	}
	r.say(ana, 11, "/stop")
	if got := r.wait(ana, 3)[2].Text; !strings.HasPrefix(got, "Stopped: run ") {
		r.t.Errorf("stop: %q", got)
	}
	r.until("the end of the stream", func(v telegramtest.View) bool { return strings.HasSuffix(v.Sent(ana.ID)[0].Text, "(stopped)") })
}

// A streamed answer that a stop cut off goes on in the same message.
func streamGoesOnAfterARestart(r *rig) {
	r.answers(func(q *llmtest.Request) llmtest.Reply {
		if q.N == 1 {
			return llmtest.Hang()
		}
		return llmtest.Reply{Text: "here it is"}
	})
	ana := r.person(11)
	r.say(ana, 11, "tell me")
	r.until("a placeholder", func(v telegramtest.View) bool { return len(v.Sent(ana.ID)) == 1 })
	r.restart()
	r.until("the answer", func(v telegramtest.View) bool { return v.Sent(ana.ID)[0].Text == "here it is" })
	if got := r.tg.View().Sent(ana.ID); len(got) != 1 {
		r.t.Errorf("messages %q, want one", texts(got))
	}
}
