package gateway

import (
	"slices"
	"strings"
	"testing"
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
	g := startPuppets(t, "{dm: open}", "", nil, p)
	p.hear(p.says("7", "1", "one"))
	p.next()
	query(t, g, `INSERT INTO runs (id, session_id, task_id, requester, role, room_id, state, epoch, tries, model, started, first_n)
		SELECT 'left', session_id, '', requester, role, room_id, 'running', epoch, 1, '', started, first_n FROM runs RETURNING id`)
	p.hear(p.says("7", "2", "two"))
	query(t, g, `UPDATE runs SET state = 'failed' WHERE id = 'left' RETURNING id`)
	if got := p.next(); !strings.Contains(got, "two") {
		t.Errorf("the answer is %q", got)
	}
	if _, turns := g.lanes.Count(); turns > 1 {
		t.Errorf("%d turns are held", turns)
	}
}
