package gateway_test

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley/agentloop/llm/llmtest"
	"parley/channels/telegram/telegramtest"
	"parley/tools/sandbox"
)

// lateBox is a sandbox of which a test decides when it is proven, and whether.
type lateBox struct {
	open chan struct{}

	mu   sync.Mutex
	last sandbox.Report
	ran  []string
}

func newLateBox() *lateBox { return &lateBox{open: make(chan struct{})} }

// ends has the trial end with a report.
func (b *lateBox) ends(r sandbox.Report) {
	b.mu.Lock()
	b.last = r
	b.mu.Unlock()
	close(b.open)
}

// Close has nothing to end.
func (b *lateBox) Close() {}

func (b *lateBox) Probe(ctx context.Context) sandbox.Report {
	select {
	case <-b.open:
	case <-ctx.Done():
	}
	return b.Last()
}

func (b *lateBox) Last() sandbox.Report { b.mu.Lock(); defer b.mu.Unlock(); return b.last }

// lines are the commands that ran.
func (b *lateBox) lines() []string { b.mu.Lock(); defer b.mu.Unlock(); return slices.Clone(b.ran) }

func (b *lateBox) Tier() sandbox.Tier {
	if r := b.Last(); r.Done {
		return r.Tier
	}
	return sandbox.TierNone
}

func (b *lateBox) Run(_ context.Context, c sandbox.Command) (sandbox.Outcome, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.last.Done || b.last.Tier == sandbox.TierNone {
		return sandbox.Outcome{}, sandbox.ErrUnavailable
	}
	b.ran = append(b.ran, cmp.Or(c.Line, strings.Join(c.Argv, " ")))
	return sandbox.Outcome{Output: []byte("hello from inside\n")}, nil
}

// waits has the slot's agent want to run a command, which does not begin while the sandbox is being tried.
func (b *lateBox) waits(r *rig, command string) telegramtest.Chat {
	r.t.Helper()
	r.answers(llmtest.TurnOf(llmtest.Act("exec", "command", command)))
	ana := r.person(11)
	r.say(ana, 11, "say hello")
	r.stored("the call stands and has not begun", `SELECT tool, state FROM steps WHERE kind = 'tool'`, "exec|planned")
	if asked := r.rows(`SELECT id FROM approvals`); len(asked) > 0 || len(b.lines()) > 0 {
		r.t.Errorf("asked %v, ran %v", asked, b.lines())
	}
	return ana
}

// A message right after the start finds a sandbox that is still being tried: its command waits, is asked about when it
// can run, and runs; a stop ends the wait. What ran and what did not stands in the audit log.
func TestACommandRightAfterTheStartWaitsForTheSandbox(t *testing.T) {
	t.Parallel()
	const ask = ", tools: {exec: ask}"
	allow := own{agent: ", tools: {exec: allow}"}
	const early = "replies: {typing_after: 20ms, placeholder_after: 20ms}"
	box, waiting := newLateBox(), sync.WaitGroup{}
	tests := map[string]func(*rig){
		"proven, allowed": func(r *rig) {
			ana := box.waits(r, "echo allowed")
			waiting.Done()
			r.said(ana, "hello from inside")
		},
		"proven, asked": func(r *rig) {
			ana := box.waits(r, "echo asked")
			waiting.Done()
			q := r.question(ana)
			r.tg.Press(ana.ID, q.ID, r.user(11), button(r.t, q, "Once"))
			r.said(ana, "hello from inside")
		},
		"stopped": func(r *rig) {
			ana := box.waits(r, "echo stopped")
			r.until("a sign of it", func(v telegramtest.View) bool { return len(v.Sent(ana.ID)) > 0 })
			r.say(ana, 11, "/stop")
			r.stored("it ends", `SELECT state FROM runs`, "user_stopped")
			r.stored("the call", `SELECT tool, state FROM steps WHERE kind = 'tool'`, "exec|cancelled")
			waiting.Done()
		},
		"audited": commandsAreAudited,
	}
	waiting.Add(len(tests) - 1)
	tests["T11_allowed in a session"] = func(r *rig) { allowedInASession(r, box) }
	go func() {
		waiting.Wait()
		box.ends(sandbox.Report{Done: true, Tier: sandbox.TierNS})
	}()
	daemon := together(t, setup{opt: withSandbox(box), extra: early, agent: ask,
		own: map[string]own{"proven, allowed": allow, "stopped": allow, "audited": {agent: allow.agent, chats: []int64{13}}}}, tests)
	ran := slices.DeleteFunc(slices.Sorted(slices.Values(box.lines())), func(line string) bool { return strings.Contains(line, "plan") }) // of the session's rule
	if !slices.Equal(ran, []string{"echo [secret]", "echo allowed", "echo asked"}) {
		t.Errorf("ran %q", ran)
	}
	auditHolds(t, daemon)
	refused := newLateBox()
	together(t, setup{opt: withSandbox(refused), extra: quiet, agent: ask}, map[string]func(*rig){"refused": func(r *rig) {
		ana := refused.waits(r, "echo refused")
		refused.ends(sandbox.Report{Done: true, Tier: sandbox.TierNone, Reasons: []string{"the kernel gives no namespaces"}})
		r.said(ana, "the kernel gives no namespaces")
		if ran := refused.lines(); len(ran) > 0 {
			r.t.Errorf("ran %q", ran)
		}
	}})
}

// T11: an owner's "this session" lets the program run on with its first argument, shown beforehand; what is more asks, as does all
// of it once it is taken back, and after /new.
func allowedInASession(r *rig, box *lateBox) {
	waiting := func(command string) telegramtest.Message {
		r.t.Helper()
		r.answers(llmtest.TurnOf(llmtest.Act("exec", "command", command)))
		r.say(r.person(11), 11, "run it")
		return r.asked(r.person(11), command) // the buttons of the former question may still be there
	}
	ran := func(want string) {
		r.t.Helper()
		r.until("ran "+want, func(telegramtest.View) bool { return slices.Contains(box.lines(), want) })
	}
	ana := r.person(11)
	q := waiting("cat plan.txt")
	if !strings.Contains(q.Text, "allows cat plan.txt … in this session for 8h") {
		r.t.Errorf("asked %q", q.Text)
	}
	r.tg.Press(ana.ID, q.ID, r.user(11), button(r.t, q, "This session"))
	ran("cat plan.txt")
	r.stored("the rule", `SELECT state, scope FROM approvals`, "consumed|session")

	r.answers(llmtest.TurnOf(llmtest.Act("exec", "command", "cat plan.txt second.txt")))
	r.say(ana, 11, "once more")
	ran("/usr/bin/cat plan.txt second.txt") // as it was read, without a shell
	r.stored("nobody was asked", `SELECT count(*) FROM approvals`, "1")
	r.stored("by the rule", `SELECT count(*) FROM steps WHERE state = 'done' AND body LIKE '%"rule":"session:' || (SELECT id FROM approvals) || '"%'`, "1")

	q = waiting("cat other-plan.txt")
	r.tg.Press(ana.ID, q.ID, r.user(11), button(r.t, q, "Deny"))
	r.stored("another argument asks", `SELECT count(*) FROM approvals WHERE state = 'denied'`, "1")
	q = waiting("cat plan.txt > /work/plan-b")
	if slices.ContainsFunc(q.Buttons, func(row []telegramtest.Button) bool {
		return slices.ContainsFunc(row, func(b telegramtest.Button) bool { return b.Text == "This session" })
	}) {
		r.t.Errorf("a line with a redirection is offered for a session: %q", q.Text)
	}
	r.tg.Press(ana.ID, q.ID, r.user(11), button(r.t, q, "Deny"))
	r.stored("a redirection asks", `SELECT count(*) FROM approvals WHERE state = 'denied'`, "2")

	r.say(ana, 11, "/approve granted")
	r.said(ana, "cat plan.txt …")
	id := r.rows(`SELECT id FROM approvals WHERE scope = 'session'`)[0]
	r.say(ana, 11, "/approve revoke "+strings.ToLower(id[len(id)-6:]))
	r.said(ana, "asks again from now on")
	q = waiting("cat plan.txt third.txt")
	r.tg.Press(ana.ID, q.ID, r.user(11), button(r.t, q, "This session"))
	ran("cat plan.txt third.txt")
	r.say(ana, 11, "/new")
	r.stored("a new generation", `SELECT count(*) FROM sessions WHERE ended > 0`, "1")
	waiting("cat plan.txt fourth.txt")
	r.say(ana, 11, "/stop")
	r.stored("it ended", `SELECT count(*) FROM runs WHERE state = 'user_stopped'`, "1")
}
