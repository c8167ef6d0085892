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
	"parley/gateway"
	"parley/tools"
	"parley/workspace"
)

// slotSize is how many people and groups a test has to itself where several share a daemon: the ids of its slot.
const slotSize = 100_000

// shared is a daemon on which tests run, at the same time or in turn. Each has a slot of it: a rig with people, a script,
// tools and books of its own, so that it sees no more of the daemon than if it were alone.
type shared struct {
	mu     sync.Mutex
	setup  setup
	slots  map[int64]*slot
	alive  int           // tests that have not ended
	asking int           // … of them, those that wait for a restart
	while  []func()      // what they do while the daemon is down
	now    *slot         // of the test whose turn it is, if they run in turn
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
	before string   // what the log held when a test began that runs in turn
}

// own is a model, by the names m and b, and an agent that a slot has to itself: what fails there is no other test's.
type own struct {
	model, second string  // further keys of the models, each with a comma before it; no second: there is none
	agent         string  // further keys of the agent
	chats         []int64 // whose messages go to it, besides those of everybody's people and group
}

// together runs tests at the same time on one daemon, or in turn, which leaves the network's faults, the clock and the log to
// each. In each slot 1 and 11 are owners and 12 is a member; {{name of a test}} in the configuration is its slot's number.
// It returns the daemon, which all have left.
func together(t *testing.T, s setup, tests map[string]func(*rig)) *rig {
	t.Helper()
	names := slices.Sorted(maps.Keys(tests))
	sh := newShared(t, s, names)
	run := func(name string, r rig) {
		defer sh.ended()
		t.Run(name, func(t *testing.T) {
			r.t = t
			tests[name](&r)
		})
	}
	var running sync.WaitGroup
	for i, name := range names {
		r := *sh.host
		r.slot = sh.slots[int64(i+1)*slotSize]
		if s.inTurn {
			sh.turnTo(r.slot)
			run(name, r)
			continue
		}
		running.Go(func() { run(name, r) })
	}
	running.Wait()
	return sh.host
}

// newShared starts a daemon with a slot for each of the tests.
func newShared(t *testing.T, s setup, names []string) *shared {
	t.Helper()
	sh := &shared{setup: s, slots: map[int64]*slot{}, alive: len(names), up: make(chan struct{})}
	for i, name := range names {
		base := int64(i+1) * slotSize
		s.extra = strings.ReplaceAll(s.extra, "{{"+name+"}}", strconv.Itoa(i+1))
		sh.slots[base] = &slot{shared: sh, base: base, script: llmtest.Echo, gate: newGate(), act: newAct()}
		if o, ok := s.own[name]; ok {
			s.add(i+1, base, o)
		}
	}
	s.script, s.opt = sh.reply, sh.options
	s.extra += sh.people()
	if s.routes != "" {
		s.extra += "\nroutes:\n" + s.routes
	}
	sh.host = newRig(t, s)
	return sh
}

// turnTo leaves the daemon to one test.
func (s *shared) turnTo(at *slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.alive, s.now, at.before = 1, at, s.host.log.String()
}

// add configures a slot's own model and agent.
func (s *setup) add(n int, base int64, o own) {
	model := func(name, more string) string {
		if !strings.Contains(more, "api: ") {
			more += ", api: openai"
		}
		if !strings.Contains(more, "base_url: ") {
			more += `, base_url: "{{model}}"`
		}
		return fmt.Sprintf(", {name: %s%d, api_key: sk-slot-%d, model: test-%s%d%s}", name, n, n, name, n, more)
	}
	s.models += model("m", o.model)
	if o.second != "" {
		s.models += model("b", o.second)
	}
	s.agents += fmt.Sprintf(", {id: a%d, name: Assistant, model: m%d%s}", n, n, strings.ReplaceAll(o.agent, "{{n}}", fmt.Sprint(n)))
	for _, peer := range append([]int64{1, 2, 11, 12, -5001}, o.chats...) {
		if peer < 0 {
			peer -= 2 * base
		}
		peer += base
		s.routes += fmt.Sprintf("  - {channel: tg, peer: \"%d\", agent: a%d}\n", peer, n)
	}
}

// people are those of all slots, with room for what each wants to do at once.
func (s *shared) people() string {
	var out strings.Builder
	if !strings.Contains(s.setup.extra, "concurrency:") {
		out.WriteString("\nconcurrency: {turns: 1000, per_model: 1000}")
	}
	out.WriteString("\npeople:\n")
	for _, base := range slices.Sorted(maps.Keys(s.slots)) {
		for _, p := range []struct {
			name, role string
			user       int64
		}{{"boss", "owner", 1}, {"ana", "owner", 11}, {"ben", "member", 12}} {
			n := base / slotSize
			fmt.Fprintf(&out, "  - {id: %s%d, name: P%d, role: %s, accounts: [{channel: tg, user: \"%d\"}]}\n", p.name, n, base+p.user, p.role, base+p.user)
		}
	}
	return out.String()
}

// options are the daemon's: what the tests want, and tools that are each slot's own.
func (s *shared) options(o *gateway.Options) {
	if s.setup.opt != nil {
		s.setup.opt(o)
	}
	o.Tools = append(o.Tools, s.tools()...)
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
	for _, f := range s.while {
		f()
	}
	s.host.start(s.options)
	close(s.up)
	s.asking, s.while, s.up = 0, nil, make(chan struct{})
}

// restart starts the daemon again. While it is down, what is given is done.
func (r *rig) restart(while ...func()) {
	r.t.Helper()
	s := r.slot.shared
	s.mu.Lock()
	s.asking++
	s.while = append(s.while, while...)
	up := s.up
	s.restart()
	s.mu.Unlock()
	<-up
	r.g = s.host.g
}

// reload changes one thing in the configuration, and has the daemon take it.
func (r *rig) reload(old, new string) {
	r.t.Helper()
	r.slot.mu.Lock()
	defer r.slot.mu.Unlock()
	n := r.log.Count("configuration reloaded")
	r.change(old, new)
	r.g.Reload()
	if err := r.log.Wait(r.t.Context(), "configuration reloaded", n+1); err != nil {
		r.t.Fatal(err)
	}
}

// change changes one thing in the file of the configuration.
func (r *rig) change(old, new string) {
	r.t.Helper()
	conf := r.config()
	if strings.Count(conf, old) != 1 {
		r.t.Fatalf("%q stands %d times in the configuration", old, strings.Count(conf, old))
	}
	r.write(strings.Replace(conf, old, new, 1))
}

var (
	askedBy   = regexp.MustCompile(`Asked by: [^\\]*\\"P(\d+)\\"`)
	ownKey    = regexp.MustCompile(`^sk-slot-(\d+)$`)
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

// reply answers by the script of whose person asks, or of whose model is asked.
func (s *shared) reply(q *llmtest.Request) llmtest.Reply {
	s.mu.Lock()
	at := s.now
	if own := s.of(askedBy, string(q.Body)); own != nil {
		at = own
	}
	if m := ownKey.FindStringSubmatch(strings.TrimPrefix(q.Header.Get("Authorization"), "Bearer ") + q.Header.Get("X-Api-Key")); m != nil {
		n, _ := strconv.ParseInt(m[1], 10, 64) // digits
		at = s.slots[n*slotSize]
	}
	if at == nil {
		s.mu.Unlock()
		return llmtest.Reply{Status: 400, ErrorBody: `{"error":{"message":"nobody's"}}`}
	}
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

// n is the number of the slot, which the names of its model and agent end with.
func (r *rig) n() string { return fmt.Sprint(r.slot.base / slotSize) }

// boss is how the configuration begins to tell of person 1, with a role.
func (r *rig) boss(role workspace.Role) string {
	return fmt.Sprintf("{id: boss%s, name: P%d, role: %s,", r.n(), r.id(1), role)
}

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

// baseOf is where the ids begin that a test will have to itself.
func baseOf(tests map[string]func(*rig), name string) int64 {
	return slotSize * int64(1+slices.Index(slices.Sorted(maps.Keys(tests)), name))
}
