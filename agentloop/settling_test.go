package agentloop

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/tools"
	"parley/workspace"
)

// late is a tool that finds out after the start whether it works.
type late struct {
	fn
	done chan struct{}
	why  *string // it does not work; set before done is closed
}

var _ tools.Settling = late{}

func (l late) Unavailable() string {
	if done, _ := l.Settled(); done != nil {
		return ""
	}
	return *l.why
}

func (l late) Settled() (<-chan struct{}, string) {
	select {
	case <-l.done:
		return nil, ""
	default:
		return l.done, "the sandbox is being tried"
	}
}

// A call of a tool of which nobody knows yet whether it works waits, says so, and neither begins nor is asked about before.
func TestACallWaitsUntilItsToolKnowsWhetherItWorks(t *testing.T) {
	t.Parallel()
	type want struct {
		state workspace.StepState
		said  string
		after time.Duration
	}
	for name, c := range map[string]struct {
		change func(l late, stop context.CancelCauseFunc) // after a second
		want   want
	}{
		"it works":        {func(l late, _ context.CancelCauseFunc) { close(l.done) }, want{workspace.StepDone, "act says {}", time.Second}},
		"it does not":     {func(l late, _ context.CancelCauseFunc) { *l.why = "no namespaces here"; close(l.done) }, want{workspace.StepRefused, "does not work here: no namespaces here", time.Second}},
		"nobody finds it": {func(late, context.CancelCauseFunc) {}, want{workspace.StepRefused, "the sandbox is being tried, and that takes longer than 10s", 10 * time.Second}},
		"the turn stops":  {func(_ late, stop context.CancelCauseFunc) { stop(ErrStopped) }, want{workspace.StepCancelled, saidCancelled, time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := late{fn: echoes("act", workspace.Outside), done: make(chan struct{}), why: new(string)}
				b := newTable(t, plays([][]workspace.Content{calls(toolCall("c1", "act", `{}`))}), l)
				asked := 0
				b.loop.Tools = &asking{Set: b.loop.Tools, about: "act"}
				b.rec.ask = func(Wanted) (Answer, error) { asked++; return Answer{}, nil }
				ctx, stop := context.WithCancelCause(t.Context())
				began := time.Now()
				soon := time.AfterFunc(time.Second, func() {
					if asked > 0 || b.rec.state("c1") != workspace.StepPlanned {
						t.Errorf("asked %d times, the call is %s before it is known", asked, b.rec.state("c1"))
					}
					c.change(l, stop)
				})
				defer soon.Stop()
				b.run(ctx)
				if got := b.rec.state("c1"); got != c.want.state || !strings.Contains(b.rec.result("c1").Text, c.want.said) {
					t.Errorf("the call is %s: %q", got, b.rec.result("c1").Text)
				}
				if took := time.Since(began); took != c.want.after {
					t.Errorf("after %s", took)
				}
				if want := c.want.state == workspace.StepDone; want != (asked == 1) {
					t.Errorf("asked %d times", asked)
				}
				if !slices.ContainsFunc(b.events, func(e Event) bool { return e.Type == EventWait && e.Note == "waiting: the sandbox is being tried" }) {
					t.Errorf("nothing says why nothing happens: %+v", b.events)
				}
			})
		})
	}
}

// What policy refuses does not wait.
func TestARefusedCallDoesNotWaitForItsTool(t *testing.T) {
	t.Parallel()
	l := late{fn: echoes("act", workspace.Outside), done: make(chan struct{}), why: new(string)}
	b := newTable(t, plays([][]workspace.Content{calls(toolCall("c1", "act", `{}`))}), l)
	b.loop.Tools = &asking{Set: b.loop.Tools, about: "act", off: true}
	b.run(t.Context())
	if b.rec.state("c1") != workspace.StepRefused || b.count(EventWait) > 0 {
		t.Errorf("the call is %s after %d waits", b.rec.state("c1"), b.count(EventWait))
	}
}
