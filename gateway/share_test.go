package gateway_test

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"parley/agentloop/llm/llmtest"
	"parley/channels/telegram/telegramtest"
	"parley/tools"
	"parley/workspace"
)

// slotSize is how many people and groups a test has to itself where several share a daemon: the ids of its slot.
const slotSize = 100_000

// shared is a daemon on which tests run at the same time. Each has a slot of it: a rig with people, a script, tools and books
// of its own, so that it sees no more of the daemon than if it were alone.
type shared struct {
	mu     sync.Mutex
	slots  map[int64]*slot
	alive  int           // tests that have not ended
	asking int           // … of them, those that wait for a restart
	up     chan struct{} // closed by the next restart
	host   *rig
}

// slot is what of a shared daemon is one test's.
type slot struct {
	*shared
	base   int64
	script llmtest.Script
	gate   *gate
	act    actTool
	asked  []string // bodies of the requests
}

// together runs tests at the same time on one daemon. In each slot 1 and 11 are owners and 12 is a member.
func together(t *testing.T, s setup, tests map[string]func(*rig)) {
	t.Helper()
	sh := &shared{slots: map[int64]*slot{}, alive: len(tests), up: make(chan struct{})}
	names := slices.Sorted(maps.Keys(tests))
	var people strings.Builder
	people.WriteString("\nconcurrency: {turns: 1000, per_model: 1000}\npeople:\n")
	for i := range names {
		base := int64(i+1) * slotSize
		sh.slots[base] = &slot{shared: sh, base: base, script: llmtest.Echo, gate: newGate(), act: newAct()}
		for _, p := range []struct {
			name, role string
			user       int64
		}{{"boss", "owner", 1}, {"ana", "owner", 11}, {"ben", "member", 12}} {
			fmt.Fprintf(&people, "  - {id: %s%d, name: P%d, role: %s, accounts: [{channel: tg, user: \"%d\"}]}\n", p.name, i+1, base+p.user, p.role, base+p.user)
		}
	}
	s.script, s.extra, s.opt = sh.reply, s.extra+people.String(), withTools(sh.tools()...)
	sh.host = newRig(t, s)
	var running sync.WaitGroup
	for i, name := range names {
		r := *sh.host
		r.slot = sh.slots[int64(i+1)*slotSize]
		running.Go(func() {
			defer sh.ended()
			t.Run(name, func(t *testing.T) {
				r.t = t
				tests[name](&r)
			})
		})
	}
	running.Wait()
}

// ended is told when a test is over: the others may only have waited for it.
func (s *shared) ended() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.alive--
	s.restart()
}

// restart starts the daemon again, as after a shutdown without grace, when all who are left have asked for it.
func (s *shared) restart() {
	if s.asking < s.alive || s.asking == 0 {
		return
	}
	s.host.halt()
	s.host.start(withTools(s.tools()...))
	close(s.up)
	s.asking, s.up = 0, make(chan struct{})
}

// restart starts the daemon again.
func (r *rig) restart() {
	r.t.Helper()
	s := r.slot.shared
	s.mu.Lock()
	s.asking++
	up := s.up
	s.restart()
	s.mu.Unlock()
	<-up
	r.g = s.host.g
}

var (
	askedBy   = regexp.MustCompile(`Asked by: [^\\]*\\"P(\d+)\\"`)
	peerOfKey = regexp.MustCompile(`:(?:dm|group):-?(\d+)`)
)

// of is the slot of an id that a pattern finds.
func (s *shared) of(pattern *regexp.Regexp, text string) *slot {
	m := pattern.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	id, _ := strconv.ParseInt(m[1], 10, 64) // digits
	return s.slots[id/slotSize*slotSize]
}

// reply answers by the script of whose person asks.
func (s *shared) reply(q *llmtest.Request) llmtest.Reply {
	at := s.of(askedBy, string(q.Body))
	if at == nil {
		return llmtest.Reply{Status: 400, ErrorBody: `{"error":{"message":"nobody's"}}`}
	}
	s.mu.Lock()
	at.asked = append(at.asked, string(q.Body))
	own := *q
	own.N = len(at.asked)
	script := at.script
	s.mu.Unlock()
	return script(&own)
}

// tools are what slots have: a gate and act are each slot's own.
func (s *shared) tools() []tools.Tool {
	gates := testTool{name: "gate", call: func(ctx context.Context, c tools.Call) (tools.Result, error) {
		return s.of(peerOfKey, c.Session.String()).gate.tool().call(ctx, c)
	}}
	return []tools.Tool{gates, sharedAct{newAct(), s}, testTool{name: "look", call: lookAround}, testTool{name: "boom", call: boomCall}}
}

// sharedAct is act, counted by slot.
type sharedAct struct {
	actTool
	s *shared
}

func (a sharedAct) Call(ctx context.Context, c tools.Call) (tools.Result, error) {
	return a.s.of(peerOfKey, c.Session.String()).act.Call(ctx, c)
}

// answers has the slot's requests answered by a script.
func (r *rig) answers(script llmtest.Script) {
	r.slot.mu.Lock()
	defer r.slot.mu.Unlock()
	r.slot.script = script
}

// bodies are the requests to the model, of the slot if there is one.
func (r *rig) bodies() []string {
	if r.slot == nil {
		return r.llm.Bodies()
	}
	r.slot.mu.Lock()
	defer r.slot.mu.Unlock()
	return slices.Clone(r.slot.asked)
}

// id is a person's or a group's, in the slot if there is one.
func (r *rig) id(n int64) int64 {
	switch {
	case r.slot == nil || n >= slotSize || n <= -slotSize:
		return n
	case n < 0:
		return n - r.slot.base
	}
	return n + r.slot.base
}

func (r *rig) user(id int64) telegramtest.User { return user(r.id(id)) }

// group is a group chat.
func (r *rig) group() telegramtest.Chat {
	return r.tg.AddChat(telegramtest.Chat{ID: r.id(-5001), Kind: telegramtest.Group, Title: "team"})
}

// who is a configured person as people are shown them.
func (r *rig) who(name string, role workspace.Role, user int64) string {
	return fmt.Sprintf("%s%d (%s) \"P%d\"", name, r.slot.base/slotSize, role, r.id(user))
}

// own hides from a connection to the store all rows that are not the slot's.
func (s *slot) own(ctx context.Context, db *sql.Conn) error {
	rooms := fmt.Sprintf(`(SELECT id FROM main.rooms WHERE abs(CAST(peer AS INTEGER)) BETWEEN %d AND %d)`, s.base, s.base+slotSize-1)
	runs := `(SELECT id FROM main.runs WHERE room_id IN ` + rooms + `)`
	sessions := `(SELECT session_id FROM main.runs WHERE room_id IN ` + rooms + ` UNION SELECT session_id FROM main.inputs WHERE room_id IN ` + rooms + `)`
	for table, where := range map[string]string{
		"rooms": "id IN " + rooms, "inputs": "room_id IN " + rooms, "runs": "room_id IN " + rooms, "outbound": "room_id IN " + rooms, "sessions": "id IN " + sessions,
		"approvals": "run_id IN " + runs, "entries": "session_id IN " + sessions, "steps": "run_id IN " + runs,
		"parts": "outbound_id IN (SELECT id FROM main.outbound WHERE room_id IN " + rooms + ")",
	} {
		if _, err := db.ExecContext(ctx, fmt.Sprintf(`CREATE TEMP VIEW %s AS SELECT * FROM main.%s WHERE %s`, table, table, where)); err != nil {
			return err
		}
	}
	return nil
}
