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

// What is bounded, and what guests are not told, on one gateway. One channel has an agent whose model's provider fails.
func TestR06_R07_T12_Bounds(t *testing.T) {
	t.Parallel()
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"error": {"message": "account of Initech GmbH is closed"}}`)
	}))
	t.Cleanup(provider.Close)
	seated(t, `sessions: {queue: {mode: followup, cap: 3}}
models: [{name: m, api: offline}, {name: closed, api: openai, base_url: "`+provider.URL+`", api_key: sk-x, model: x}]
agents: [{id: main, default: true, model: m}, {id: failing, model: closed}]
routes: [{channel: "{{T12_guests see no cause of a model's failure}}", agent: failing}]`, nil, map[string]func(*seat){
		"R06_resuming is not capped by the queue":      resumeIsNotCapped,
		"R07_waiting commands are bounded":             waitingCommandsAreBounded,
		"a queue mode holds at once":                   queueModeHoldsAtOnce,
		"T12_guests see no cause of a model's failure": guestsSeeNoCause,
	})
}

// R06: what /resume brings back is answered whole, however much it is; the cap is for what comes too fast.
func resumeIsNotCapped(s *seat) {
	var old []channels.Inbound
	for i := range 12 {
		in := s.says("7", fmt.Sprint(i), fmt.Sprintf("old %d", i))
		in.Time = time.Now().Add(-30 * time.Hour)
		old = append(old, in)
	}
	s.hear(old...)
	if got := s.next(); !strings.Contains(got, "12 messages") {
		s.t.Fatalf("told %q", got)
	}
	s.hear(s.says("7", "resume", "/resume"))
	for range 13 {
		s.next()
	}
	if got := s.query(`SELECT state, count(*) FROM inputs WHERE mode = 'turn' GROUP BY state`); !slices.Equal(got, []string{"answered|12"}) {
		s.t.Errorf("messages are %q", got)
	}
}

// R07: commands that wait for a turn are bounded as messages are, and each that is not done says so.
func waitingCommandsAreBounded(s *seat) {
	s.hear(s.says("7", "1", "one"))
	s.next()
	key, lanes := s.query(`SELECT key FROM sessions`)[0], s.g.turns.Lanes()
	limit, look := time.After(time.Minute), time.NewTicker(time.Millisecond)
	defer look.Stop()
	for !lanes.Reserve(key, "x") { // as a turn that is just beginning; the first one ends after its answer is out
		select {
		case <-look.C:
		case <-limit:
			s.t.Fatal("the session is busy")
		}
	}
	var flood []channels.Inbound
	for i := range 10 {
		flood = append(flood, s.says("7", fmt.Sprint("c", i), "/new"))
	}
	s.hear(flood...)
	if n := len(lanes.Look(key).Waiting); n != 3 {
		s.t.Errorf("%d commands wait", n)
	}
	for range 7 {
		if got := s.next(); !strings.Contains(got, "Too many") {
			s.t.Errorf("told %q", got)
		}
	}
	lanes.Release(key)
	for range 3 {
		if got := s.next(); !strings.Contains(got, "fresh session") {
			s.t.Errorf("told %q", got)
		}
	}
}

// A queue mode holds from the command on, not from the next turn on.
func queueModeHoldsAtOnce(s *seat) {
	for i, line := range []string{"hello", "/queue collect", "/queue", "/status"} {
		s.hear(s.says("7", fmt.Sprint(i), line))
		if got := s.next(); i > 0 && !strings.Contains(got, "collect") {
			s.t.Errorf("%s says %q", line, got)
		}
	}
}

// T12: what a provider says of a failure is for owners.
func guestsSeeNoCause(s *seat) {
	s.hear(s.says("8", "1", "hello"))
	s.next()
	s.hear(s.says("8", "2", "/status"))
	if got := s.next(); strings.Contains(got, "Initech") {
		s.t.Errorf("a guest reads %q", got)
	}
	s.hear(s.says("7", "1", "/status"))
	if got := s.next(); !strings.Contains(got, "Initech") {
		s.t.Errorf("the owner reads %q", got)
	}
}
