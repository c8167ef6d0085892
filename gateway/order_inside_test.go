package gateway

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/agentloop/llm/llmtest"
	"parley/channels"
	"parley/channels/channeltest/stage"
	"parley/tools"
	"parley/workspace"
	"parley/workspace/store"
)

// What networks say to the letter, on one daemon, with a network account for each test.
func TestWhatIsHeardExactly(t *testing.T) {
	t.Parallel()
	w := newWaitTool()
	model := llmtest.Start(t, w.script)
	log := &stage.Log{}
	list := []*puppet{newPuppet(t, "a"), newPuppet(t, "b"), newPuppet(t, "batch"), newPuppet(t, "stops"), newPuppet(t, "left"), newPuppet(t, "steered")}
	a, b, batch, stops, left, steered := list[0], list[1], list[2], list[3], list[4], list[5]
	a.access, b.access = "{dm: pairing}", "{dm: pairing}"
	g := startPuppets(t, "{dm: open}", `models: [{name: m, api: offline}, {name: w, api: openai, base_url: "`+model.URL+`", api_key: sk-x, model: x}]
agents: [{id: main, model: m, default: true}, {id: waits, model: w}]
routes: [{channel: steered, agent: waits}]
people:
  - {id: ana, role: owner, accounts: [{channel: a, user: "7"}, {channel: b, user: "70"}]}
  - {id: ben, role: member, accounts: [{channel: a, user: "8"}]}
replies: {typing_after: 1m, first_sign: 1m, placeholder_after: 1m}`, func(o *Options) {
		o.Tools, o.Log = []tools.Tool{w}, slog.New(slog.NewTextHandler(log, nil))
	}, list...)
	t.Run("configured people are known on every channel", func(t *testing.T) { peopleAreKnownEverywhere(t, g, a.of(t), b.of(t)) })
	t.Run("a message behind a command of its batch waits for it", func(t *testing.T) { waitsForTheCommandBefore(t, g, batch.of(t)) })
	t.Run("a stop leaves what was said after it", func(t *testing.T) { stopLeavesWhatFollows(t, g, stops.of(t)) })
	t.Run("a message beside a left run is answered later", func(t *testing.T) { answeredAfterALeftRun(t, g, left.of(t), log) })
	t.Run("a turn outlives what ended before it was steered in", func(t *testing.T) { outlivesWhatEnded(t, g, steered.of(t), w, model) })
}

// Owners of the configuration stay owners when a channel tells its account, and one channel's people do not put out another's.
func peopleAreKnownEverywhere(t *testing.T, g *Gateway, a, b *puppet) {
	a.hear(a.says("7", "1", "/whoami"))
	a.next()
	b.hear(b.says("70", "1", "/whoami"))
	b.next()
	a.hear(a.says("7", "2", "/whoami"))
	if got := a.next(); !strings.Contains(got, "ana") || !strings.Contains(got, "role owner") {
		t.Errorf("ana is %q", got)
	}
	a.hear(a.says("8", "1", "/whoami"))
	if got := a.next(); !strings.Contains(got, "ben") || !strings.Contains(got, "role member") {
		t.Errorf("ben is %q", got)
	}
	if got := query(t, g, `SELECT role, count(*) FROM inputs WHERE account IN ('bot-a', 'bot-b') GROUP BY role`); !slices.Equal(got, []string{"member|1", "owner|3"}) {
		t.Errorf("roles %q", got)
	}
}

// What comes in one batch keeps its order: a message behind /new belongs to the new session.
func waitsForTheCommandBefore(t *testing.T, g *Gateway, p *puppet) {
	p.hear(p.says("7", "1", "one"))
	p.next()
	p.hear(p.says("7", "2", "/new"), p.says("7", "3", "two"))
	p.next()
	p.next()
	if got := query(t, g, `SELECT i.text, s.gen FROM inputs i JOIN sessions s ON s.id = (SELECT session_id FROM entries WHERE input_id = i.id) WHERE i.mode = 'turn' AND i.account = 'bot-batch' ORDER BY i.seq`); !slices.Equal(got, []string{"one|1", "two|2"}) {
		t.Errorf("sessions of the messages %q", got)
	}
}

// A stop ends what was said before it, not what was said after it.
func stopLeavesWhatFollows(t *testing.T, g *Gateway, p *puppet) {
	for range 20 {
		id := g.store.IDs().New()
		p.hear(p.says("7", id+"a", "/stop"), p.says("7", id+"b", "hello"))
		got := []string{p.next(), p.next()}
		slices.Sort(got)
		if !strings.Contains(got[0], "Nothing is running") && !strings.Contains(got[1], "Nothing is running") {
			t.Fatalf("got %q", got)
		}
	}
	if got := query(t, g, `SELECT state, count(*) FROM inputs WHERE mode = 'turn' AND account = 'bot-stops' GROUP BY state`); !slices.Equal(got, []string{"answered|20"}) {
		t.Errorf("messages are %q", got)
	}
}

// A message that finds another run of its session alive in the journal waits for its end; its lane is not held for ever.
func answeredAfterALeftRun(t *testing.T, g *Gateway, p *puppet, log *stage.Log) {
	for _, line := range []string{"/queue followup", "one"} {
		p.hear(p.says("7", line, line))
		p.next()
	}
	left := leaveRun(t, g, p)
	p.hear(p.says("7", "2", "two"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := log.Wait(ctx, "turn cannot begin", 1); err != nil {
		t.Fatal(err)
	}
	if _, err := g.store.Finish(left); err != nil {
		t.Fatal(err)
	}
	p.hear(p.says("7", "3", "three"))
	for _, want := range []string{"two", "three"} {
		if got := p.next(); !strings.Contains(got, want) {
			t.Errorf("the answer is %q, want %s", got, want)
		}
	}
	if _, turns := g.turns.Lanes().Count(); turns > 1 {
		t.Errorf("%d turns are held", turns)
	}
}

// leaveRun begins a run of a puppet's only session behind the gateway's back, and returns its end.
func leaveRun(t *testing.T, g *Gateway, p *puppet) store.Finish {
	t.Helper()
	key, err := workspace.ParseKey(query(t, g, `SELECT key FROM sessions WHERE key LIKE '%bot-`+p.name+`%'`)[0])
	if err != nil {
		t.Fatal(err)
	}
	a := store.Arrival{Key: key, Begin: &store.Begin{Run: workspace.Run{ID: workspace.RunID(g.store.IDs().New())}},
		Input: workspace.Input{ID: workspace.InputID(g.store.IDs().New()), Source: "puppet", Account: string(p.Account()), Key: "left", Kind: channels.KindMessage,
			Mode: workspace.ModeTurn, State: workspace.InputQueued, Binding: workspace.Binding{Key: key.String()}}}
	got, err := g.store.Accept(a)
	if err != nil {
		t.Fatal(err)
	}
	return store.Finish{Run: got[0].Begun.Run, State: workspace.RunFailed, Inputs: []workspace.Input{got[0].Input}, InputState: workspace.InputFailed, AnswerEntry: -1}
}
