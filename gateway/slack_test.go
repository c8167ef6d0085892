package gateway_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/agentloop/llm/llmtest"
	"parley/channels/slack/slacktest"
)

const slackRoom = "C0ROOM0001"

// slackRig is a whole daemon as a value between a fake Slack and a scripted model; its Telegram stands idle.
type slackRig struct {
	*rig
	s *slacktest.Server
}

func newSlackRig(t *testing.T, script llmtest.Script, extra string) *slackRig {
	t.Helper()
	s := slacktest.Start(t, slacktest.Options{NoLimits: true, PingEvery: 200 * time.Millisecond})
	s.AddChannel(slacktest.Channel{ID: slackRoom, Name: "room", Kind: slacktest.Public, Members: []string{"U0ANA00001", "U0BEN00001", s.Team(0).Bot.ID}})
	for id, name := range map[string]string{"U0ANA00001": "ana", "U0BEN00001": "ben"} {
		s.AddUser(slacktest.User{ID: id, Name: name})
		s.AddChannel(slacktest.Channel{ID: "D" + id[1:], Kind: slacktest.IM, Members: []string{id}})
	}
	more := fmt.Sprintf(`, {name: work, type: slack, bot_token: "%s", app_token: "%s", api_url: "%s", access: {dm: open, groups: open, require_mention: true}}`,
		s.Team(0).Token, s.App().Token, s.APIURL())
	r := &slackRig{s: s, rig: newRig(t, setup{script: script, more: more, extra: extra})}
	r.seen("a socket", func(v slacktest.View) bool { return v.Sockets() == 1 })
	return r
}

// seen blocks until the condition holds on Slack's side.
func (r *slackRig) seen(what string, cond func(slacktest.View) bool) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 20*time.Second)
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

func TestSlackAnswersWhereItWasAsked(t *testing.T) {
	t.Parallel()
	r := newSlackRig(t, llmtest.Echo, "")
	r.s.Say(slacktest.Say{Channel: "D0ANA00001", User: "U0ANA00001", Text: "hello &amp; good day"})
	r.seen("an answer to a direct message", func(v slacktest.View) bool {
		thread, ok := shows(v, "D0ANA00001", "echo: hello & good day")
		return ok && thread == ""
	})
	bot := r.s.Team(0).Bot.ID
	r.s.Say(slacktest.Say{Channel: slackRoom, User: "U0BEN00001", Text: "just talking"})
	root := r.s.Say(slacktest.Say{Channel: slackRoom, User: "U0ANA00001", Text: "<@" + bot + "> what is up?"})
	r.seen("an answer in the thread of the mention", func(v slacktest.View) bool {
		thread, ok := shows(v, slackRoom, "what is up?")
		return ok && thread == root
	})
	r.s.Say(slacktest.Say{Channel: slackRoom, User: "U0ANA00001", Text: "and without your name?", Thread: root})
	r.seen("an answer to what follows in that thread", func(v slacktest.View) bool {
		thread, ok := shows(v, slackRoom, "and without your name?")
		return ok && thread == root
	})
	if v := r.s.View(); len(v.Sent(slackRoom)) != 2 || len(v.Sent("D0ANA00001")) != 1 {
		t.Errorf("the room got %d answers, want 2; the direct message %d, want 1", len(v.Sent(slackRoom)), len(v.Sent("D0ANA00001")))
	}
}

func TestSlackCommandsAreAnsweredThroughTheirHandle(t *testing.T) {
	t.Parallel()
	r := newSlackRig(t, llmtest.Echo, "")
	r.s.Command(slackRoom, "U0ANA00001", "/parley", "status")
	r.seen("a private answer in a room", func(v slacktest.View) bool { return len(v.Ephemerals(slackRoom, "U0ANA00001")) == 1 })
	r.s.Command("D0ANA00001", "U0ANA00001", "/parley", "new")
	r.seen("an answer in the direct message", func(v slacktest.View) bool {
		_, ok := shows(v, "D0ANA00001", "fresh session")
		return ok
	})
	if v := r.s.View(); len(v.Sent(slackRoom)) != 0 || v.Calls("chat.postMessage") != 0 {
		t.Errorf("others in the room see %d messages; %d were posted beside the handles", len(v.Sent(slackRoom)), v.Calls("chat.postMessage"))
	}
	r.seen("every acknowledgement, within 3 s each", func(v slacktest.View) bool {
		return !slices.ContainsFunc(v.Deliveries(), func(d slacktest.Delivery) bool { return !d.Acked })
	})
}

func TestSlackAnswersGrow(t *testing.T) {
	t.Parallel()
	slow := func(r *llmtest.Request) llmtest.Reply {
		return llmtest.Reply{Pieces: slices.Repeat([]string{"some words and\n"}, 60), TokenDelay: 50 * time.Millisecond}
	}
	r := newSlackRig(t, slow, "replies: {typing_after: 20ms, placeholder_after: 50ms}")
	bot := r.s.Team(0).Bot.ID
	ts := r.s.Say(slacktest.Say{Channel: "D0ANA00001", User: "U0ANA00001", Text: "at length"})
	root := r.s.Say(slacktest.Say{Channel: slackRoom, User: "U0ANA00001", Text: "<@" + bot + "> at length"})
	r.seen("a mark on what is worked on", func(v slacktest.View) bool {
		m, _ := v.Message("D0ANA00001", ts)
		return len(m.Reactions) > 0
	})
	r.seen("a stream in the room's thread", func(v slacktest.View) bool {
		return slices.ContainsFunc(v.Sent(slackRoom), func(m slacktest.Message) bool {
			return m.ThreadTS == root && m.Streaming && strings.Contains(m.Shown(), "some words")
		})
	})
	whole := strings.TrimSpace(strings.Repeat("some words and\n", 60))
	for _, ch := range []string{"D0ANA00001", slackRoom} {
		r.seen("the whole answer in "+ch, func(v slacktest.View) bool {
			_, ok := shows(v, ch, whole)
			return ok
		})
		sent := r.s.View().Sent(ch)
		if len(sent) != 1 || len(sent[0].Edits) < 2 || sent[0].Streaming {
			t.Errorf("%s has %d messages, of which the first grew %d times", ch, len(sent), len(sent[0].Edits))
		}
	}
	r.seen("the mark to go", func(v slacktest.View) bool {
		m, _ := v.Message("D0ANA00001", ts)
		return len(m.Reactions) == 0
	})
}

// slackWorld is people on a fake Slack who talk to a daemon that keeps dying.
type slackWorld struct {
	t     *testing.T
	s     *slacktest.Server
	model *llmtest.Server
	dir   string
	log   *logBuffer
	prog  program
	d     *daemon
	said  map[string]string // by marker: where

	mu   sync.Mutex
	left int // messages that Slack still takes before the daemon is killed, its answer not given; 0: none is
	gone chan struct{}
}

// taken is called for every message and edit that Slack has taken and not answered yet.
func (w *slackWorld) taken(slacktest.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.left == 0 {
		return
	}
	if w.left--; w.left == 0 {
		w.d.kill()
		close(w.gone)
	}
}

// killAt has the daemon killed when Slack has taken n more messages or edits, and waits for it.
func (w *slackWorld) killAt(n int) {
	w.t.Helper()
	w.mu.Lock()
	w.left, w.gone = n, make(chan struct{})
	w.mu.Unlock()
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	select {
	case <-w.gone:
	case <-limit.C:
		w.t.Fatalf("a minute without %d messages", n)
	}
}

const slackPeople = 8

func newSlackWorld(t *testing.T) *slackWorld {
	t.Helper()
	w := &slackWorld{t: t, dir: t.TempDir(), log: &logBuffer{}, said: map[string]string{}}
	w.s = slacktest.Start(t, slacktest.Options{NoLimits: true, OnPosted: w.taken, OnEdited: w.taken, PingEvery: 200 * time.Millisecond, Retries: slices.Repeat([]time.Duration{200 * time.Millisecond}, 500)})
	w.model = llmtest.Start(t, markers)
	for c := 1; c <= slackPeople; c++ {
		id := fmt.Sprintf("U0PERSON%02d", c)
		w.s.AddUser(slacktest.User{ID: id, Name: fmt.Sprintf("p%d", c)})
		w.s.AddChannel(slacktest.Channel{ID: w.chat(c), Kind: slacktest.IM, Members: []string{id}})
	}
	conf := fmt.Sprintf(`
data_dir: %s/data
gateway: {listen: "127.0.0.1:0", token: "%s"}
models: [{name: m, api: openai, base_url: "%s", api_key: sk-test-canary, model: test-1}]
agents: [{id: assistant, name: Assistant, default: true, model: m}]
channels: [{name: work, type: slack, bot_token: "%s", app_token: "%s", api_url: "%s", access: {dm: open}}]
replies: {typing_after: 20ms, placeholder_after: 50ms}
`, w.dir, apiToken, strings.TrimRight(w.model.URL, "/"), w.s.Team(0).Token, w.s.App().Token, w.s.APIURL())
	if err := os.WriteFile(w.config(), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if w.d != nil {
			w.d.kill()
		}
		if t.Failed() {
			t.Log(tail(w.log.String(), 20_000))
		}
	})
	return w
}

func (w *slackWorld) config() string { return filepath.Join(w.dir, "parley.yaml") }

func (w *slackWorld) chat(c int) string { return fmt.Sprintf("D0PERSON%02d", c) }

// say has everybody write the n-th message.
func (w *slackWorld) say(n int) {
	for c := 1; c <= slackPeople; c++ {
		k := markerOf(c, n)
		text := k
		switch (c + n) % 5 {
		case 0:
			text += " stream"
		case 1:
			text += " tools"
		}
		w.said[k] = w.chat(c)
		w.s.Say(slacktest.Say{Channel: w.chat(c), User: fmt.Sprintf("U0PERSON%02d", c), Text: text})
	}
}

// seen counts how often each marker stands in finished messages of the chat where it was said; strays are elsewhere.
func (w *slackWorld) seen() (times map[string]int, strays int) {
	times = map[string]int{}
	for c := 1; c <= slackPeople; c++ {
		for _, m := range w.s.View().Sent(w.chat(c)) {
			for _, k := range marker.FindAllString(m.Shown(), -1) {
				if w.said[k] != w.chat(c) {
					strays++
				}
				times[k]++
			}
		}
	}
	return times, strays
}

// story is what became of a message on its way, for the reader of a failure.
func (w *slackWorld) story(k string) string {
	var b strings.Builder
	for _, m := range w.s.View().Messages(w.said[k]) {
		if strings.Contains(m.Shown(), k) || m.BotID != "" {
			fmt.Fprintf(&b, "[%s %q streaming %v edits %d] ", m.TS, m.Shown(), m.Streaming, len(m.Edits))
		}
		if !strings.HasPrefix(m.Text, k) {
			continue
		}
		for _, d := range w.s.View().Deliveries() {
			if d.TS == m.TS {
				fmt.Fprintf(&b, "%d attempts, acknowledged %v, lost %v ", len(d.Attempts), d.Acked, d.Lost)
			}
		}
	}
	return b.String()
}

// wait blocks until that share of all that was said has an answer.
func (w *slackWorld) wait(share float64) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	err := w.s.WaitFor(ctx, func(slacktest.View) bool {
		times, _ := w.seen()
		return float64(len(times)) >= share*float64(len(w.said))
	})
	if err != nil {
		times, _ := w.seen()
		for k := range w.said {
			if times[k] == 0 {
				w.t.Logf("no answer to %s: %s", k, w.story(k))
			}
		}
		w.t.Fatalf("%d of %d are answered: %v", len(times), len(w.said), err)
	}
}

// TestR01_R05_SlackKillsLoseNothingAndRepeatNothing kills the real binary under load, while Slack redelivers and breaks
// its sockets: a message is never lost, and since Slack can be asked what was sent, none is answered twice.
func TestR01_R05_SlackKillsLoseNothingAndRepeatNothing(t *testing.T) {
	kills, rng := killsWanted(t, 8), dice(t)
	w := newSlackWorld(t)
	w.prog = realProgram(t, w.config())
	w.s.Disturb(slacktest.Faults{Redeliver: 0.3, Drop: 0.02})
	doubts := func() int { return strings.Count(w.log.String(), doubted) } // told by the boot after the kill
	n := 1
	for ; n <= kills || doubts() == 0 && n <= 5*kills; n++ {
		w.d = w.prog.start(t, w.log, func() {})
		w.say(n)
		if n%2 == 0 {
			w.killAt(1 + rng.IntN(slackPeople))
			continue
		}
		w.wait((float64(n) - 0.8) / float64(n))
		timer := time.NewTimer(time.Duration(rng.IntN(100_000)) * time.Microsecond)
		select {
		case <-timer.C:
		case <-w.d.exited:
			t.Fatal("the daemon ended by itself")
		}
		w.d.kill()
	}
	w.d = w.prog.start(t, w.log, func() {})
	w.say(n)
	w.wait(1)
	w.settled()
	times, strays := w.seen()
	twice := 0
	for k, n := range times {
		if n > 1 {
			twice++
			t.Errorf("%s was answered %d times", k, n)
		}
	}
	t.Logf("%d kills, %d messages, %d answered, %d twice, %d elsewhere, %d parts in doubt, %d sockets", n-1, len(w.said), len(times), twice, strays, doubts(), w.s.View().Connected())
	if doubts() == 0 {
		t.Error("no part was in doubt after any kill: nothing is proven")
	}
	if strays > 0 {
		t.Errorf("%d answers went elsewhere", strays)
	}
}

// settled waits until nothing of Slack's waits for an acknowledgement, and ends the daemon.
func (w *slackWorld) settled() {
	w.t.Helper()
	w.s.Disturb(slacktest.Faults{})
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	if err := w.s.WaitFor(ctx, func(v slacktest.View) bool { return v.Pending() == 0 }); err != nil {
		w.t.Errorf("%d events wait for their acknowledgement: %v", w.s.View().Pending(), err)
	}
	w.d.term()
	select {
	case <-w.d.exited:
	case <-ctx.Done():
		w.t.Error("the daemon does not end on SIGTERM")
	}
}
