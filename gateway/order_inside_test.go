package gateway

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"parley/channels"
	"parley/workspace"
	"parley/workspace/store"
)

// Owners of the configuration stay owners when a channel tells its account, and one channel's people do not put out another's.
func TestConfiguredPeopleAreKnownOnEveryChannel(t *testing.T) {
	t.Parallel()
	a, b := newPuppet(t, "a"), newPuppet(t, "b")
	g := startPuppets(t, "{dm: pairing}", `people:
  - {id: ana, role: owner, accounts: [{channel: a, user: "7"}, {channel: b, user: "70"}]}
  - {id: ben, role: member, accounts: [{channel: a, user: "8"}]}`, nil, a, b)
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
	if got := query(t, g, `SELECT role, count(*) FROM inputs GROUP BY role`); !slices.Equal(got, []string{"member|1", "owner|3"}) {
		t.Errorf("roles %q", got)
	}
}

// What comes in one batch keeps its order: a message behind /new belongs to the new session.
func TestMessageBehindACommandOfTheSameBatchWaitsForIt(t *testing.T) {
	t.Parallel()
	p := newPuppet(t, "a")
	g := startPuppets(t, "{dm: open}", "", nil, p)
	p.hear(p.says("7", "1", "one"))
	p.next()
	p.hear(p.says("7", "2", "/new"), p.says("7", "3", "two"))
	p.next()
	p.next()
	if got := query(t, g, `SELECT i.text, s.gen FROM inputs i JOIN sessions s ON s.id = (SELECT session_id FROM entries WHERE input_id = i.id) WHERE i.mode = 'turn' ORDER BY i.seq`); !slices.Equal(got, []string{"one|1", "two|2"}) {
		t.Errorf("sessions of the messages %q", got)
	}
}

// A stop ends what was said before it, not what was said after it.
func TestStopLeavesWhatWasSaidAfterIt(t *testing.T) {
	t.Parallel()
	p := newPuppet(t, "a")
	g := startPuppets(t, "{dm: open}", "", nil, p)
	for range 20 {
		id := g.store.IDs().New()
		p.hear(p.says("7", id+"a", "/stop"), p.says("7", id+"b", "hello"))
		got := []string{p.next(), p.next()}
		slices.Sort(got)
		if !strings.Contains(got[0], "Nothing is running") && !strings.Contains(got[1], "Nothing is running") {
			t.Fatalf("got %q", got)
		}
	}
	if got := query(t, g, `SELECT state, count(*) FROM inputs WHERE mode = 'turn' GROUP BY state`); !slices.Equal(got, []string{"answered|20"}) {
		t.Errorf("messages are %q", got)
	}
}

// A message that finds another run of its session alive in the journal waits for its end; its lane is not held for ever.
func TestMessageBesideALeftRunIsAnsweredLater(t *testing.T) {
	t.Parallel()
	p := newPuppet(t, "a")
	failed := make(chan struct{}, 100)
	g := startPuppets(t, "{dm: open}", "sessions: {queue: {mode: followup}}", func(o *Options) {
		o.Log = slog.New(slog.NewTextHandler(writerFunc(func(line []byte) (int, error) {
			if strings.Contains(string(line), "turn cannot begin") {
				failed <- struct{}{}
			}
			return len(line), nil
		}), nil))
	}, p)
	p.hear(p.says("7", "1", "one"))
	p.next()
	left := leaveRun(t, g)
	p.hear(p.says("7", "2", "two"))
	<-failed
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

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// leaveRun begins a run of the only session behind the gateway's back, and returns its end.
func leaveRun(t *testing.T, g *Gateway) store.Finish {
	t.Helper()
	key, err := workspace.ParseKey(query(t, g, `SELECT key FROM sessions`)[0])
	if err != nil {
		t.Fatal(err)
	}
	a := store.Arrival{Key: key, Begin: &store.Begin{Run: workspace.Run{ID: workspace.RunID(g.store.IDs().New())}},
		Input: workspace.Input{ID: workspace.InputID(g.store.IDs().New()), Source: "puppet", Account: "bot-a", Key: "left", Kind: channels.KindMessage,
			Mode: workspace.ModeTurn, State: workspace.InputQueued, Binding: workspace.Binding{Key: key.String()}}}
	got, err := g.store.Accept(a)
	if err != nil {
		t.Fatal(err)
	}
	return store.Finish{Run: got[0].Begun.Run, State: workspace.RunFailed, Inputs: []workspace.Input{got[0].Input}, InputState: workspace.InputFailed, AnswerEntry: -1}
}
