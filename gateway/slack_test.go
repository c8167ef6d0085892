package gateway_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/agentloop/llm/llmtest"
	"parley/channels/slack/slacktest"
)

const slackRoom, slackHall = "C0ROOM0001", "C0HALL0001"

// slackRig is a whole daemon as a value between a fake Slack and a scripted model, beside the rig's Telegram.
type slackRig struct {
	*rig
	s *slacktest.Server
}

func newSlackRig(t *testing.T, script llmtest.Script, extra string, channels ...string) *slackRig {
	t.Helper()
	s := slacktest.Start(t, slacktest.Options{NoLimits: true, PingEvery: 200 * time.Millisecond})
	for id, name := range map[string]string{slackRoom: "room", slackHall: "hall"} {
		s.AddChannel(slacktest.Channel{ID: id, Name: name, Kind: slacktest.Public, Members: []string{"U0ANA00001", "U0BEN00001", "U0CID00001", s.Team(0).Bot.ID}})
	}
	for id, name := range map[string]string{"U0ANA00001": "ana", "U0BEN00001": "ben", "U0CID00001": "cid"} {
		s.AddUser(slacktest.User{ID: id, Name: name})
		s.AddChannel(slacktest.Channel{ID: "D" + id[1:], Kind: slacktest.IM, Members: []string{id}})
	}
	more := fmt.Sprintf(`, {name: work, type: slack, bot_token: "%s", app_token: "%s", api_url: "%s", access: {dm: open, groups: open, require_mention: true}}`,
		s.Team(0).Token, s.App().Token, s.APIURL())
	r := &slackRig{s: s, rig: newRig(t, setup{script: script, more: more + strings.Join(channels, ""), extra: extra})}
	r.seen("a socket", func(v slacktest.View) bool { return v.Sockets() == 1 })
	return r
}

// seen blocks until the condition holds on Slack's side.
func (r *slackRig) seen(what string, cond func(slacktest.View) bool) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), waitLimit)
	defer cancel()
	if err := r.s.WaitFor(ctx, cond); err != nil {
		r.t.Fatalf("%s: %v", what, err)
	}
}

// shows says whether a message of the bot with such a text is in the channel, and in which thread.
func shows(v slacktest.View, channel, text string) (thread string, ok bool) {
	for _, m := range v.Sent(channel) {
		if strings.Contains(m.Shown(), text) && !m.Streaming {
			return m.ThreadTS, true
		}
	}
	return "", false
}

// What people on Slack see, on one daemon; commands come first, for they are counted for the whole network.
func TestSlack(t *testing.T) {
	t.Parallel()
	r := newSlackRig(t, func(q *llmtest.Request) llmtest.Reply {
		if strings.Contains(q.LastUser(), "at length") {
			return llmtest.Reply{Pieces: slices.Repeat([]string{"some words and\n"}, 60), TokenDelay: 50 * time.Millisecond}
		}
		return llmtest.Echo(q)
	}, "replies: {typing_after: 20ms, placeholder_after: 50ms}")
	for _, part := range []struct {
		name string
		test func(*slackRig)
	}{
		{"commands are answered through their handle", slackCommandsGoThroughTheirHandle},
		{"answers come where one asked", slackAnswersWhereItWasAsked},
		{"answers grow", slackAnswersGrow},
	} {
		t.Run(part.name, func(t *testing.T) {
			in := *r.rig
			in.t = t
			part.test(&slackRig{&in, r.s})
		})
	}
}

func slackCommandsGoThroughTheirHandle(r *slackRig) {
	r.s.Command(slackRoom, "U0ANA00001", "/parley", "status")
	r.seen("a private answer in a room", func(v slacktest.View) bool { return len(v.Ephemerals(slackRoom, "U0ANA00001")) == 1 })
	r.s.Command("D0ANA00001", "U0ANA00001", "/parley", "new")
	r.seen("an answer in the direct message", func(v slacktest.View) bool {
		_, ok := shows(v, "D0ANA00001", "fresh session")
		return ok
	})
	if v := r.s.View(); len(v.Sent(slackRoom)) != 0 || v.Calls("chat.postMessage") != 0 {
		r.t.Errorf("others in the room see %d messages; %d were posted beside the handles", len(v.Sent(slackRoom)), v.Calls("chat.postMessage"))
	}
	r.seen("every acknowledgement, within 3 s each", func(v slacktest.View) bool {
		return !slices.ContainsFunc(v.Deliveries(), func(d slacktest.Delivery) bool { return !d.Acked })
	})
}

func slackAnswersWhereItWasAsked(r *slackRig) {
	r.s.Say(slacktest.Say{Channel: "D0CID00001", User: "U0CID00001", Text: "hello &amp; good day"})
	r.seen("an answer to a direct message", func(v slacktest.View) bool {
		thread, ok := shows(v, "D0CID00001", "echo: hello & good day")
		return ok && thread == ""
	})
	bot := r.s.Team(0).Bot.ID
	r.s.Say(slacktest.Say{Channel: slackHall, User: "U0BEN00001", Text: "just talking"})
	root := r.s.Say(slacktest.Say{Channel: slackHall, User: "U0CID00001", Text: "<@" + bot + "> what is up?"})
	r.seen("an answer in the thread of the mention", func(v slacktest.View) bool {
		thread, ok := shows(v, slackHall, "what is up?")
		return ok && thread == root
	})
	r.s.Say(slacktest.Say{Channel: slackHall, User: "U0CID00001", Text: "and without your name?", Thread: root})
	r.seen("an answer to what follows in that thread", func(v slacktest.View) bool {
		thread, ok := shows(v, slackHall, "and without your name?")
		return ok && thread == root
	})
	if v := r.s.View(); len(v.Sent(slackHall)) != 2 || len(v.Sent("D0CID00001")) != 1 {
		r.t.Errorf("the room got %d answers, want 2; the direct message %d, want 1", len(v.Sent(slackHall)), len(v.Sent("D0CID00001")))
	}
}

func slackAnswersGrow(r *slackRig) {
	bot := r.s.Team(0).Bot.ID
	ts := r.s.Say(slacktest.Say{Channel: "D0BEN00001", User: "U0BEN00001", Text: "at length"})
	root := r.s.Say(slacktest.Say{Channel: slackRoom, User: "U0ANA00001", Text: "<@" + bot + "> at length"})
	r.seen("a mark on what is worked on", func(v slacktest.View) bool {
		m, _ := v.Message("D0BEN00001", ts)
		return len(m.Reactions) > 0
	})
	r.seen("a stream in the room's thread", func(v slacktest.View) bool {
		return slices.ContainsFunc(v.Sent(slackRoom), func(m slacktest.Message) bool {
			return m.ThreadTS == root && m.Streaming && strings.Contains(m.Shown(), "some words")
		})
	})
	whole := strings.TrimSpace(strings.Repeat("some words and\n", 60))
	for _, ch := range []string{"D0BEN00001", slackRoom} {
		r.seen("the whole answer in "+ch, func(v slacktest.View) bool {
			_, ok := shows(v, ch, whole)
			return ok
		})
		sent := r.s.View().Sent(ch)
		if len(sent) != 1 || len(sent[0].Edits) < 2 || sent[0].Streaming {
			r.t.Errorf("%s has %d messages, of which the first grew %d times", ch, len(sent), len(sent[0].Edits))
		}
	}
	r.seen("the mark to go", func(v slacktest.View) bool {
		m, _ := v.Message("D0BEN00001", ts)
		return len(m.Reactions) == 0
	})
}
