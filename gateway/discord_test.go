package gateway_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/agentloop/llm/llmtest"
	"parley/channels/discord/discordtest"
)

const (
	discordGuild   = "900000000000000001"
	discordRoom    = "900000000000000002"
	discordThread  = "900000000000000003"
	discordPeople  = 12 // the last four talk in the server
	discordOwner   = "800000000000000000"
	discordPerKill = 24
)

// discordWorld is people in conversations, a channel and a thread, and the daemon that people run.
type discordWorld struct {
	t     *testing.T
	fake  *discordtest.Server
	prog  program
	log   *logBuffer
	d     *daemon
	asked []string
	mu    sync.Mutex
}

func newDiscordWorld(t *testing.T) *discordWorld {
	t.Helper()
	w := &discordWorld{t: t, log: &logBuffer{}, fake: discordtest.Start(t, discordtest.Options{NoLimits: true})}
	members := map[string][]string{}
	for p := range discordPeople {
		w.fake.AddUser(discordtest.User{ID: person(p), Name: fmt.Sprintf("p%d", p)})
		members[person(p)] = nil
		w.fake.AddChannel(discordtest.Channel{ID: conversation(p), Type: discordtest.Direct, With: person(p)})
	}
	w.fake.AddGuild(discordtest.Guild{ID: discordGuild, Name: "Friends", Members: members})
	w.fake.AddChannel(discordtest.Channel{ID: discordRoom, Type: discordtest.Text, Guild: discordGuild, Name: "general"})
	w.fake.AddChannel(discordtest.Channel{ID: discordThread, Type: discordtest.PublicThread, Guild: discordGuild, Name: "incident", Parent: discordRoom})
	model := llmtest.Start(t, func(r *llmtest.Request) llmtest.Reply {
		last := r.LastUser()
		if strings.Contains(last, "[run") && len(r.ToolResults()) == 0 {
			return llmtest.Reply{Calls: []llmtest.Call{{Name: "exec", Args: `{"command":"echo hello"}`}}}
		}
		return llmtest.Reply{Text: "Heard: " + last[strings.LastIndex(last, "[")+1:]}
	})
	conf := filepath.Join(t.TempDir(), "parley.yaml")
	yaml := fmt.Sprintf(`
data_dir: %s
gateway: {listen: "127.0.0.1:0", token: "%s"}
models: [{name: m, api: openai, base_url: "%s/v1", api_key: sk-test-canary, model: test-1}]
agents: [{id: assistant, name: Assistant, default: true, model: m}]
people: [{id: boss, role: owner, accounts: [{channel: dc, user: "%s"}]}]
channels: [{name: dc, type: discord, token: "%s", api_url: "%s", access: {dm: open, groups: open, require_mention: true}}]
replies: {typing_after: 20ms, placeholder_after: 50ms}
`, filepath.Join(filepath.Dir(conf), "data"), apiToken, model.URL, person(0), w.fake.Token(), w.fake.URL())
	if err := os.WriteFile(conf, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	w.prog = realProgram(t, conf)
	t.Cleanup(func() {
		if w.d != nil {
			w.d.kill()
		}
		if t.Failed() {
			t.Log(tail(w.log.String(), 8_000))
		}
	})
	return w
}

func person(p int) string       { return fmt.Sprintf("8000000000000000%02d", p) }
func conversation(p int) string { return fmt.Sprintf("9500000000000000%02d", p) }

// place is where a person talks.
func place(p int) string {
	switch {
	case p < discordPeople-4:
		return conversation(p)
	case p%2 == 0:
		return discordRoom
	}
	return discordThread
}

func (w *discordWorld) boot() {
	w.t.Helper()
	w.d = w.prog.start(w.t, w.log, func() {})
	w.wait("a session", func() bool { return w.fake.Line().Ready > 0 || w.d.gone() })
	if w.d.gone() {
		w.t.Fatal("the daemon ended by itself")
	}
}

func (w *discordWorld) wait(what string, cond func() bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	if err := w.fake.WaitFor(ctx, cond); err != nil {
		w.t.Fatalf("a minute without %s", what)
	}
}

// ask has a person write, and says with what the answer will be marked.
func (w *discordWorld) ask(p, n int) string {
	mark := fmt.Sprintf("%d-%d.", p, n)
	text := "[" + mark
	if place(p) != conversation(p) {
		text = "<@" + w.fake.Bot().ID + "> " + text
	}
	w.fake.Write(discordtest.In{Channel: place(p), From: person(p), Text: text})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, mark)
	return mark
}

func (w *discordWorld) answers(where, mark string) (n int) {
	for _, m := range w.fake.Sent(where) {
		if strings.Contains(m.Text, "Heard: "+mark) {
			n++
		}
	}
	return n
}

// TestR01_R05_KillsOnDiscordLoseNothingAndRepeatNothing: SIGKILL at random while a dozen people talk.
func TestR01_R05_KillsOnDiscordLoseNothingAndRepeatNothing(t *testing.T) {
	kills, rng := killsWanted(t, 6), dice(t)
	w := newDiscordWorld(t)
	w.boot()
	var talking sync.WaitGroup
	enough := make(chan struct{})
	for p := range discordPeople {
		talking.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-enough:
					return
				default:
				}
				mark := w.ask(p, n)
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				err := w.fake.WaitFor(ctx, func() bool { return w.answers(place(p), mark) > 0 })
				cancel()
				if err != nil {
					t.Errorf("%s has no answer", mark)
					return
				}
			}
		})
	}
	total := func() int { w.mu.Lock(); defer w.mu.Unlock(); return len(w.asked) }
	for range kills {
		before := total()
		w.wait("progress", func() bool { return total() >= before+discordPerKill })
		pause := time.NewTimer(time.Duration(rng.IntN(60_000)) * time.Microsecond)
		<-pause.C
		w.d.kill()
		w.boot()
	}
	close(enough)
	talking.Wait()
	w.d.term()
	<-w.d.exited
	if w.d.code != 0 {
		t.Errorf("exit code %d after SIGTERM", w.d.code)
	}
	lost, twice, orphans := 0, 0, 0
	for _, mark := range w.asked {
		var p int
		if _, err := fmt.Sscanf(mark, "%d-", &p); err != nil {
			t.Fatal(err)
		}
		switch w.answers(place(p), mark) {
		case 0:
			lost++
		case 1:
		default:
			twice++
		}
	}
	for p := range discordPeople {
		for _, m := range w.fake.Sent(place(p)) {
			if m.Text == "…" {
				orphans++
			}
		}
	}
	t.Logf("%d kills, %d messages: %d lost, %d twice, %d orphans", kills, len(w.asked), lost, twice, orphans)
	if lost+twice+orphans > 0 {
		t.Errorf("%d lost, %d answered twice, %d placeholders left", lost, twice, orphans)
	}
}

// TestDiscordCommandsAreAnsweredInTime: the daemon offers its commands, and answers one for its sender alone in a server.
func TestDiscordCommandsAreAnsweredInTime(t *testing.T) {
	w := newDiscordWorld(t)
	w.boot()
	w.wait("the menu", func() bool { return len(w.fake.Menu("")) > 0 })
	for _, where := range []string{conversation(0), discordRoom} {
		id, ok := w.fake.Command(where, person(0), "status", "")
		if !ok {
			t.Fatalf("/status is not offered: %v", w.fake.Menu(""))
		}
		w.wait("an answer to /status", func() bool {
			a := w.fake.Answer(id)
			return a.Type != 0 && !a.Original.Deferred && a.Original.Text != ""
		})
		a := w.fake.Answer(id)
		if a.Late || a.Type != 5 || (a.Original.For == "") != (where == conversation(0)) {
			t.Errorf("/status in %s was answered by %+v", where, a)
		}
		t.Logf("in %s: %q for %q", where, a.Original.Text, a.Original.For)
	}
}

// TestT10_ApprovalsOnDiscordArePressed: the question has buttons, the owner's press decides, and the buttons go away.
func TestT10_ApprovalsOnDiscordArePressed(t *testing.T) {
	w := newDiscordWorld(t)
	w.boot()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := w.log.wait(ctx, "sandbox self-test passed", 1); err != nil {
		t.Fatalf("no exec, so nothing to ask about: %v", err)
	}
	w.fake.Write(discordtest.In{Channel: conversation(0), From: person(0), Text: "[run"})
	var asked discordtest.Message
	w.wait("a question with buttons", func() bool {
		for _, m := range w.fake.Sent(conversation(0)) {
			if len(m.Buttons) > 0 {
				asked = m
			}
		}
		return asked.ID != ""
	})
	t.Logf("asked %q with %+v", asked.Text, asked.Buttons)
	id, ok := w.fake.Press(conversation(0), asked.ID, person(0), asked.Buttons[0][0].ID)
	if !ok {
		t.Fatal("the button cannot be pressed")
	}
	w.wait("the buttons to go", func() bool {
		m, _ := w.fake.Message(conversation(0), asked.ID)
		return len(m.Buttons) == 0
	})
	w.wait("the answer", func() bool { return w.answers(conversation(0), "run") > 0 })
	m, _ := w.fake.Message(conversation(0), asked.ID)
	if a := w.fake.Answer(id); a.Type != 6 || a.Late || m.Text == asked.Text {
		t.Errorf("pressed: %+v; the question became %q", a, m.Text)
	}
	t.Logf("then %q", m.Text)
}
