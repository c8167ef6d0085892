package gateway_test

import (
	"context"
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
	b.ran = append(b.ran, c.Line)
	return sandbox.Outcome{Output: []byte("hello from inside\n")}, nil
}

// A message right after the start finds a sandbox that is still being tried: its command waits, is asked about when it
// can run, and runs.
func TestACommandRightAfterTheStartWaitsForTheSandbox(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		exec   string
		report sandbox.Report
		said   string
	}{
		"proven, allowed": {"allow", sandbox.Report{Done: true, Tier: sandbox.TierNS}, "hello from inside"},
		"proven, asked":   {"ask", sandbox.Report{Done: true, Tier: sandbox.TierNS}, "hello from inside"},
		"refused":         {"ask", sandbox.Report{Done: true, Tier: sandbox.TierNone, Reasons: []string{"the kernel gives no namespaces"}}, "the kernel gives no namespaces"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			box := newLateBox()
			r := newRig(t, setup{script: llmtest.TurnOf(llmtest.Act("exec", "command", "echo hello")), agent: ", tools: {exec: " + c.exec + "}", opt: withSandbox(box), extra: actors + quiet})
			ana := r.person(11)
			r.say(ana, 11, "say hello")
			r.stored("the call stands and has not begun", `SELECT tool, state FROM steps WHERE kind = 'tool'`, "exec|planned")
			if asked := r.rows(`SELECT id FROM approvals`); len(asked) > 0 || len(box.ran) > 0 {
				t.Errorf("asked %v, ran %v", asked, box.ran)
			}
			box.ends(c.report)
			if name == "proven, asked" {
				q := r.question(ana)
				r.tg.Press(ana.ID, q.ID, user(11), button(t, q, "Once"))
			}
			r.said(ana, c.said)
		})
	}
}

func TestStopEndsAWaitForTheSandbox(t *testing.T) {
	t.Parallel()
	box := newLateBox()
	r := newRig(t, setup{script: llmtest.TurnOf(llmtest.Act("exec", "command", "echo hello")), agent: ", tools: {exec: allow}", opt: withSandbox(box),
		extra: actors + "replies: {typing_after: 20ms, placeholder_after: 20ms}"})
	ana := r.person(11)
	r.say(ana, 11, "say hello")
	r.stored("the call stands", `SELECT tool, state FROM steps WHERE kind = 'tool'`, "exec|planned")
	r.until("a sign of it", func(v telegramtest.View) bool { return len(v.Sent(ana.ID)) > 0 })
	r.say(ana, 11, "/stop")
	r.stored("it ends", `SELECT state FROM runs`, "user_stopped")
	r.stored("the call", `SELECT tool, state FROM steps WHERE kind = 'tool'`, "exec|cancelled")
	box.ends(sandbox.Report{Done: true, Tier: sandbox.TierNS})
	if len(box.ran) > 0 {
		t.Errorf("ran %v", box.ran)
	}
}
