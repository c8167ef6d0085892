package gateway_test

import (
	"slices"
	"strings"
	"testing"

	"parley/agentloop/llm/llmtest"
	"parley/channels"
	"parley/channels/telegram/telegramtest"
)

// busy is a rig whose first turn is held; the message that it answers is "first".
func busy(t *testing.T, n *memNet) (*rig, *hold) {
	t.Helper()
	h := newHold()
	r := memRig(t, n, setup{script: func(q *llmtest.Request) llmtest.Reply { return h.reply(t, q.LastUser(), llmtest.Echo(q)) },
		extra: "sessions: {queue: {mode: followup}}" + quiet})
	n.offer(t, dm("ana", "1", "first"))
	receive(t, h.asked, "the first turn")
	return r, h
}

func TestEditOfWhatIsQueuedReplacesIt(t *testing.T) {
	t.Parallel()
	n := newMem()
	r, h := busy(t, n)
	second := dm("ana", "2", "sceond")
	n.offer(t, second)
	n.offer(t, edited(second, "1", "second"))
	close(h.open)
	if got := memTexts(n.wait(t, "ana", 2)); !slices.Equal(got, []string{"echo: first", "echo: second"}) {
		t.Errorf("answers %q", got)
	}
	if got := r.rows(`SELECT kind, state, text FROM inputs ORDER BY seq`); !slices.Equal(got, []string{"message|answered|first", "message|answered|second", "edit|noted|second"}) {
		t.Errorf("inputs %q", got)
	}
}

func TestDeleteOfWhatIsQueuedCancelsIt(t *testing.T) {
	t.Parallel()
	n := newMem()
	r, h := busy(t, n)
	second := dm("ana", "2", "second")
	n.offer(t, second)
	n.offer(t, deleted(second))
	n.offer(t, dm("ana", "3", "third"))
	close(h.open)
	if got := memTexts(n.wait(t, "ana", 2)); !slices.Equal(got, []string{"echo: first", "echo: third"}) {
		t.Errorf("answers %q", got)
	}
	if got := r.rows(`SELECT state FROM inputs ORDER BY seq`); !slices.Equal(got, []string{"answered", "cancelled", "noted", "answered"}) {
		t.Errorf("inputs %q", got)
	}
}

// What a turn has taken is told to it at the next boundary, whatever the queue mode is for new messages.
func TestEditAndDeleteOfWhatIsTakenAreSteeredIn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(channels.Inbound) channels.Inbound
		says   string
	}{
		{"edit", func(in channels.Inbound) channels.Inbound { return edited(in, "1", "apples instead") }, "(I edited my message. It now says:) apples instead"},
		{"delete", deleted, "(I deleted my message.)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g, n := newGate(), newMem()
			r := memRig(t, n, setup{script: throughGate, opt: withTools(g.tool()), extra: "sessions: {queue: {mode: followup}}" + quiet})
			first := dm("ana", "1", "work on pears")
			n.offer(t, first)
			receive(t, g.called, "the tool call")
			n.offer(t, c.change(first))
			close(g.open)
			n.wait(t, "ana", 1)
			bodies := r.llm.Bodies()
			if len(bodies) != 2 || !strings.Contains(bodies[1], c.says) {
				t.Errorf("%d model calls; the second must hold %q", len(bodies), c.says)
			}
			n.offer(t, dm("ana", "2", "next"))
			n.wait(t, "ana", 2)
			if got := r.rows(`SELECT state FROM inputs ORDER BY seq`); !slices.Equal(got, []string{"answered", "answered", "answered"}) {
				t.Errorf("inputs %q", got)
			}
		})
	}
}

func TestEditAndDeleteOfWhatWasAnsweredAreOnlyNoted(t *testing.T) {
	t.Parallel()
	n := newMem()
	r := memRig(t, n, setup{extra: quiet})
	first := dm("ana", "1", "first")
	n.offer(t, first)
	n.wait(t, "ana", 1)
	n.offer(t, edited(first, "1", "another"))
	n.offer(t, deleted(first))
	n.offer(t, dm("ana", "2", "second"))
	if got := memTexts(n.wait(t, "ana", 2)); !slices.Equal(got, []string{"echo: first", "echo: second"}) {
		t.Errorf("answers %q", got)
	}
	if got := r.rows(`SELECT kind, state FROM inputs ORDER BY seq`); !slices.Equal(got, []string{"message|answered", "edit|noted", "delete|noted", "message|answered"}) {
		t.Errorf("inputs %q", got)
	}
}

func TestEditThatAddsTheMentionIsAnswered(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{extra: quiet})
	group := r.tg.AddChat(telegramtest.Chat{ID: -5001, Kind: telegramtest.Group, Title: "team"})
	id := r.say(group, 11, "when do we meet?")
	r.say(group, 12, "@parley_test_bot hello")
	r.wait(group, 1)
	r.tg.EditIn(group.ID, id, "@parley_test_bot when do we meet?")
	if got := r.wait(group, 2); !strings.Contains(got[1].Text, "when do we meet?") {
		t.Errorf("answer %q", got[1].Text)
	}
	r.tg.EditIn(group.ID, id, "@parley_test_bot when and where do we meet?") // it was answered: noted
	r.say(group, 12, "@parley_test_bot bye")
	if got := r.wait(group, 3); !strings.Contains(got[2].Text, "bye") {
		t.Errorf("answer %q", got[2].Text)
	}
}

func TestEditNeverRunsACommand(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{script: func(q *llmtest.Request) llmtest.Reply { return llmtest.Reply{Text: "model: " + q.LastUser()} }, extra: quiet})
	ana := r.person(11)
	group := r.tg.AddChat(telegramtest.Chat{ID: -5001, Kind: telegramtest.Group, Title: "team"})
	id := r.say(ana, 11, "hello")
	r.wait(ana, 1)
	r.tg.EditIn(ana.ID, id, "/stop")
	inGroup := r.say(group, 11, "hello all")
	r.tg.EditIn(group.ID, inGroup, "/whoami@parley_test_bot")
	if got := r.wait(group, 1)[0].Text; strings.Contains(got, "You are") {
		t.Errorf("an edit ran a command: %q", got)
	}
	r.say(ana, 11, "bye")
	if got := texts(r.wait(ana, 2)); !slices.Equal(got, []string{"model: hello", "model: bye"}) {
		t.Errorf("answers %q", got)
	}
	if got := r.rows(`SELECT count(*) FROM inputs WHERE mode = 'command'`); got[0] != "0" {
		t.Errorf("%s commands came of edits", got[0])
	}
}

// T08: an event about another person's message changes nothing, queued or taken, whatever its sender is called.
func TestT08_EditsAndDeletesByOthersChangeNothing(t *testing.T) {
	t.Parallel()
	h, n := newHold(), newMem()
	r := memRig(t, n, setup{script: func(q *llmtest.Request) llmtest.Reply { return h.reply(t, q.LastUser(), llmtest.Echo(q)) },
		extra: "sessions: {queue: {mode: followup}}" + quiet})
	mention := func(in channels.Inbound) channels.Inbound {
		in.Mentioned = true
		return in
	}
	first := mention(inbound(channels.Group, "team", "ana", "1", "first"))
	second := mention(inbound(channels.Group, "team", "ana", "2", "second"))
	n.offer(t, first)
	receive(t, h.asked, "the first turn")
	n.offer(t, second)
	for i, by := range []channels.Sender{{User: "ben", Name: "ben"}, {User: "mallory", Name: "ana"}} {
		for _, target := range []channels.Inbound{first, second} {
			e, d := edited(target, "x"+string(rune('a'+i)), "/stop everything"), deleted(target)
			e.From, d.From = by, by
			d.Key += string(by.User)
			n.offer(t, e, d)
		}
	}
	close(h.open)
	got := memTexts(n.wait(t, "team", 2))
	if !strings.HasSuffix(got[0], "first") || !strings.HasSuffix(got[1], "second") {
		t.Errorf("answers %q", got)
	}
	for _, b := range r.llm.Bodies() {
		if strings.Contains(b, "stop everything") || strings.Contains(b, "I deleted") {
			t.Error("another person's edit reached the turn")
		}
	}
	if got := r.rows(`SELECT DISTINCT state FROM inputs WHERE kind <> 'message'`); !slices.Equal(got, []string{"noted"}) {
		t.Errorf("edits and deletes by others are %q", got)
	}
}

// Who corrects a message at once has the correction answered, not the slip.
func TestEditRightBehindItsMessageIsAnswered(t *testing.T) {
	t.Parallel()
	n := newMem()
	h := newHold()
	r := memRig(t, n, setup{script: func(q *llmtest.Request) llmtest.Reply {
		if strings.Contains(q.LastUser(), "It now says") {
			return llmtest.Echo(q)
		}
		return h.reply(t, q.LastUser(), llmtest.Echo(q))
	}, extra: "sessions: {queue: {mode: followup, debounce: 1m}}" + quiet})
	first := dm("ana", "1", "two pears")
	n.offer(t, first)
	receive(t, h.asked, "the turn")
	n.offer(t, edited(first, "1", "two apples"))
	if got := n.wait(t, "ana", 1)[0].Text; !strings.Contains(got, "two apples") {
		t.Errorf("answer %q", got)
	}
	close(h.open)
	r.stored("inputs", `SELECT state, count(DISTINCT run_id), count(*) FROM inputs GROUP BY state`, "answered|1|2")
}
