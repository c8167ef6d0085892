package gateway

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/channels"
)

// What /resume brings back is answered whole, however much it is; the cap is for what comes too fast.
func TestR06_ResumeIsNotCappedByTheQueue(t *testing.T) {
	t.Parallel()
	p := newPuppet(t, "a")
	g := startPuppets(t, "{dm: open}", "sessions: {queue: {mode: followup, cap: 3}}", nil, p)
	var old []channels.Inbound
	for i := range 12 {
		in := p.says("7", fmt.Sprint(i), fmt.Sprintf("old %d", i))
		in.Time = time.Now().Add(-30 * time.Hour)
		old = append(old, in)
	}
	p.hear(old...)
	if got := p.next(); !strings.Contains(got, "12 messages") {
		t.Fatalf("told %q", got)
	}
	p.hear(p.says("7", "resume", "/resume"))
	for range 13 {
		p.next()
	}
	if got := query(t, g, `SELECT state, count(*) FROM inputs WHERE mode = 'turn' GROUP BY state`); !slices.Equal(got, []string{"answered|12"}) {
		t.Errorf("messages are %q", got)
	}
}

// R07: commands that wait for a turn are bounded as messages are, and each that is not done says so.
func TestR07_WaitingCommandsAreBounded(t *testing.T) {
	t.Parallel()
	p := newPuppet(t, "a")
	g := startPuppets(t, "{dm: open}", "sessions: {queue: {cap: 3}}", nil, p)
	p.hear(p.says("7", "1", "one"))
	p.next()
	key := query(t, g, `SELECT key FROM sessions`)[0]
	limit, look := time.After(20*time.Second), time.NewTicker(time.Millisecond)
	defer look.Stop()
	for !g.turns.Lanes().Reserve(key, "x") { // as a turn that is just beginning; the first one ends after its answer is out
		select {
		case <-look.C:
		case <-limit:
			t.Fatal("the session is busy")
		}
	}
	var flood []channels.Inbound
	for i := range 10 {
		flood = append(flood, p.says("7", fmt.Sprint("c", i), "/new"))
	}
	p.hear(flood...)
	if n := len(g.turns.Lanes().Look(key).Waiting); n != 3 {
		t.Errorf("%d commands wait", n)
	}
	for range 7 {
		if got := p.next(); !strings.Contains(got, "Too many") {
			t.Errorf("told %q", got)
		}
	}
	g.turns.Lanes().Release(key)
	for range 3 {
		if got := p.next(); !strings.Contains(got, "fresh session") {
			t.Errorf("told %q", got)
		}
	}
}

// A queue mode holds from the command on, not from the next turn on.
func TestQueueModeHoldsAtOnce(t *testing.T) {
	t.Parallel()
	p := newPuppet(t, "a")
	startPuppets(t, "{dm: open}", "", nil, p)
	for i, line := range []string{"hello", "/queue collect", "/queue", "/status"} {
		p.hear(p.says("7", fmt.Sprint(i), line))
		if got := p.next(); i > 0 && !strings.Contains(got, "collect") {
			t.Errorf("%s says %q", line, got)
		}
	}
}

// T12: what a provider says of a failure is for owners.
func TestT12_GuestsSeeNoCauseOfAModelsFailure(t *testing.T) {
	t.Parallel()
	p := newPuppet(t, "a")
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"error": {"message": "account of Initech GmbH is closed"}}`)
	}))
	t.Cleanup(provider.Close)
	startPuppets(t, "{dm: open}", `models: [{name: m, api: openai, base_url: "`+provider.URL+`", api_key: sk-x, model: x}]
people: [{id: ana, role: owner, accounts: [{channel: a, user: "7"}]}]`, nil, p)
	p.hear(p.says("8", "1", "hello"))
	p.next()
	p.hear(p.says("8", "2", "/status"))
	if got := p.next(); strings.Contains(got, "Initech") {
		t.Errorf("a guest reads %q", got)
	}
	p.hear(p.says("7", "1", "/status"))
	if got := p.next(); !strings.Contains(got, "Initech") {
		t.Errorf("the owner reads %q", got)
	}
}
