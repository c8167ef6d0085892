//go:build !race

package crashtest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"parley/agentloop/llm/llmtest"
	"parley/channels/telegram/telegramtest"
)

// story is a daemon between a Telegram without faults and a scripted model, for a few people and a death at one point.
type story struct {
	*scene
	tg   *telegramtest.Server
	llm  *llmtest.Server
	next int64 // user who comes next
}

// noSigns keep signs of work from being taken for an answer.
const noSigns = "replies: {typing_after: 1m, first_sign: 1m, placeholder_after: 1m}"

// owner is Ana, to whom the gateway belongs.
const owner = "people: [{id: ana, name: Ana, role: owner, accounts: [{channel: tg, user: \"11\"}]}]\n"

func newStory(t *testing.T, prog func(*testing.T, string) program, script llmtest.Script, extra string) *story {
	t.Helper()
	s := &story{scene: newScene(t), tg: telegramtest.Start(t, telegramtest.Options{NoLimits: true}), llm: llmtest.Start(t, script), next: 100}
	s.wake = func() { s.tg.Raw("poll", "{}") } // who waits for the network looks again
	s.write(s.llm.URL, fmt.Sprintf(`{name: tg, type: telegram, token: "%s", api_url: "%s", stream: "off", access: {dm: open}}`, s.tg.Token(), s.tg.URL()), extra)
	s.prog = prog(t, s.config())
	return s
}

func user(id int64) telegramtest.User {
	return telegramtest.User{ID: id, First: fmt.Sprintf("P%d", id)}
}

// person is somebody with a private chat of the same number.
func (s *story) person(id int64) telegramtest.Chat { return s.tg.AddPrivate(user(id)) }

// somebody is a person whom nobody has seen yet.
func (s *story) somebody() telegramtest.Chat {
	s.next++
	return s.person(s.next)
}

func (s *story) say(chat telegramtest.Chat, text string) {
	s.tg.Message(telegramtest.In{Chat: chat.ID, From: user(chat.ID), Text: text})
}

func (s *story) sent(chat telegramtest.Chat) []telegramtest.Message { return s.tg.View().Sent(chat.ID) }

// seen blocks until something holds on the network.
func (s *story) seen(what string, cond func() bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
	defer cancel()
	if err := s.tg.WaitFor(ctx, func(telegramtest.View) bool { return cond() }); err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
}

// ends waits until the daemon has ended by itself.
func (s *story) ends(why string) {
	s.t.Helper()
	s.seen("an end at "+why, s.d.gone)
}

// messages waits until the chat has seen n messages of the bot whose last text is complete.
func (s *story) messages(chat telegramtest.Chat, n int) []telegramtest.Message {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
	defer cancel()
	got, err := s.tg.WaitSent(ctx, chat.ID, n)
	if err != nil {
		s.t.Fatalf("%d messages: %v; have %q", n, err, texts(s.sent(chat)))
	}
	return got
}

func texts(list []telegramtest.Message) (out []string) {
	for _, m := range list {
		out = append(out, m.Text)
	}
	return out
}

// answer is the first text that the chat gets.
func (s *story) answer(chat telegramtest.Chat) (text string) {
	s.t.Helper()
	s.seen("a visible end of the turn", func() bool {
		i := slices.IndexFunc(s.sent(chat), func(m telegramtest.Message) bool { return m.Text != "" })
		if i >= 0 {
			text = s.sent(chat)[i].Text
		}
		return i >= 0
	})
	return text
}
