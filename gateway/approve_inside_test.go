package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/agentloop"
	"parley/channels"
	"parley/tools"
	"parley/workspace"
	"parley/workspace/store"
)

// R10: a question stands as long as it may, by the wall clock over a restart and by the steady clock within one, whatever
// the wall clock is set to meanwhile.
func TestR10_AQuestionLapsesInItsTime(t *testing.T) {
	t.Parallel()
	asked := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	ap := workspace.Approval{ID: "A", Created: asked, Expires: asked.Add(30 * time.Minute)}
	for name, c := range map[string]struct{ now, left time.Duration }{
		"at once":              {0, 30 * time.Minute},
		"after a restart":      {20 * time.Minute, 10 * time.Minute},
		"after a long one":     {time.Hour, 0},
		"ten years later":      {10 * 365 * 24 * time.Hour, 0},
		"an hour earlier":      {-time.Hour, 30 * time.Minute},
		"ten years earlier":    {-10 * 365 * 24 * time.Hour, 30 * time.Minute},
		"the very last moment": {30 * time.Minute, 0},
	} {
		if got := remaining(ap, asked.Add(c.now)); got != c.left {
			t.Errorf("%s: %s are left, want %s", name, got, c.left)
		}
	}
	for name, jump := range map[string]time.Duration{"none": 0, "forward": 10 * 365 * 24 * time.Hour, "back": -10 * 365 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				wall := func() time.Time { return time.Now() }
				a := &approvals{log: slog.New(slog.DiscardHandler), due: map[workspace.ApprovalID]*lapse{}, now: func() time.Time { return wall() }}
				a.base, a.end = context.WithCancel(t.Context())
				lapsed := make(chan time.Duration, 1)
				a.lapsed = func(workspace.ApprovalID) { lapsed <- time.Since(began) }
				a.watch(workspace.Approval{ID: "A", Created: began, Expires: began.Add(30 * time.Minute)})
				wall = func() time.Time { return time.Now().Add(jump) }
				a.watch(workspace.Approval{ID: "A", Created: began, Expires: began.Add(30 * time.Minute)}) // seen again: nothing changes
				soon := time.NewTimer(30*time.Minute - time.Second)
				<-soon.C
				if a.Overdue("A") || len(lapsed) > 0 {
					t.Error("it lapsed too soon")
				}
				if got := <-lapsed; got != 30*time.Minute {
					t.Errorf("it lapsed after %s", got)
				}
				if !a.Overdue("A") {
					t.Error("it can still be answered")
				}
				a.watch(workspace.Approval{ID: "B", Created: wall(), Expires: wall().Add(time.Hour)})
				a.stop()
				a.watch(workspace.Approval{ID: "C"})
				if len(lapsed) > 0 || a.due["C"] != nil {
					t.Error("something lapses after the end")
				}
			})
		})
	}
}

// askAbout is a Set that wants people asked about one tool.
type askAbout struct {
	tools.Set
	name string
}

func (s askAbout) Decide(t tools.Subject, name string, args json.RawMessage) tools.Verdict {
	v := s.Set.Decide(t, name, args)
	v.Ask = v.Allow && name == s.name
	return v
}

// T11: a grant for the session holds for the same tool of the same person until the session begins anew; a network
// without buttons is asked in words.
func TestT11_ASessionGrantEndsWithTheSession(t *testing.T) {
	t.Parallel()
	p := newPuppet(t, "a")
	g := startPuppets(t, "{dm: open}", `people: [{id: ana, name: Ana, role: owner, accounts: [{channel: a, user: "7"}]}]`, nil, p)
	g.snapshot().Loop.Tools = askAbout{g.snapshot().Loop.Tools, "list_dir"}
	n := 0
	say := func(text string) {
		n++
		p.hear(p.says("7", fmt.Sprint(n), text))
	}
	hears := func(wants ...string) {
		t.Helper()
		for range wants {
			got := p.next()
			i := slices.IndexFunc(wants, func(w string) bool { return strings.Contains(got, w) })
			if i < 0 {
				t.Fatalf("heard %q, want one of %q", got, wants)
			}
			wants = slices.Delete(slices.Clone(wants), i, i+1)
		}
	}
	approve := func(how string) {
		t.Helper()
		id := query(t, g, `SELECT id FROM approvals WHERE state = 'pending'`)
		if len(id) != 1 {
			t.Fatalf("%d questions stand", len(id))
		}
		say("/approve " + workspace.Short(id[0]) + " " + how)
	}
	say("tool")
	hears("Answer yes or no to this very message")
	approve("session")
	hears("for the rest of this session", "The tool answered")
	say("tool")
	hears("The tool answered")
	if got := query(t, g, `SELECT count(*) FROM approvals`); got[0] != "1" {
		t.Errorf("%s questions", got[0])
	}
	say("/new")
	hears("A fresh session begins")
	say("tool")
	hears("Answer yes or no to this very message")
	approve("once")
	hears("Approved, once", "The tool answered")
	say("tool")
	hears("Answer yes or no to this very message")
}

// Taking up what an earlier boot left leaves alone what this one asks: a question that a resumed turn is just sending is
// sent once. A second job for it would send it again, or hold it for cancelled, and its buttons would stay for good.
func TestAQuestionUnderWayIsNotTakenUpAgain(t *testing.T) {
	t.Parallel()
	p := newPuppet(t, "a")
	sending, taken := make(chan struct{}, 10), make(chan struct{})
	p.send = func(post channels.Post) (channels.MessageID, error) {
		if strings.Contains(post.Plain, "May I do this?") {
			sending <- struct{}{}
			<-taken
		}
		return "", nil
	}
	g := startPuppets(t, "{dm: open}", `people: [{id: ana, name: Ana, role: owner, accounts: [{channel: a, user: "7"}]}]`, nil, p)
	g.snapshot().Loop.Tools = askAbout{g.snapshot().Loop.Tools, "list_dir"}
	p.hear(p.says("7", "1", "tool"))
	<-sending
	left, err := g.approvals.left()
	if err != nil || len(left.open) != 1 || len(left.messages) != 1 {
		t.Fatalf("%+v %v", left, err)
	}
	g.approvals.recover(left)
	close(taken)
	if got := p.next(); !strings.Contains(got, "May I do this?") {
		t.Errorf("heard %q", got)
	}
	p.hear(p.says("7", "2", "/approve "+workspace.Short(left.open[0].ID)+" once"))
	for range 2 {
		if got := p.next(); !strings.Contains(got, "Approved, once") && !strings.Contains(got, "The tool answered") {
			t.Errorf("heard %q", got)
		}
	}
	if got := query(t, g, `SELECT parts.state, tries FROM parts JOIN outbound ON id = outbound_id WHERE kind = 'approval'`); !slices.Equal(got, []string{"sent|1"}) {
		t.Errorf("the question is %q", got)
	}
}

// T11: what is pushed out of sight is spoken of before it.
func TestT11_AQuestionWarnsOfBlanks(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]bool{
		"ls" + strings.Repeat(" ", 200) + "; rm -rf /work": true,
		"ls" + strings.Repeat("\n", 30) + "rm -rf /work":   true,
		"ls\n\n\nrm -rf /work":                             false,
		"ls" + strings.Repeat(" ", 200):                    false, // nothing stands behind them
		"if x\n" + strings.Repeat(" ", 24) + "then":        false,
	} {
		head := (&approvals{}).head(workspace.Approval{Tool: "exec", Requester: "ana", Body: workspace.ApprovalBody{Shown: line}}, nil)
		if strings.Contains(head, "long stretch of blanks") != want {
			t.Errorf("%.40q: %s", line, head)
		}
	}
}

// other carries runs out without a model.
type other func(t agentloop.Turn) agentloop.Outcome

func (o other) Run(ctx context.Context, t agentloop.Turn, rec agentloop.Recorder, emit agentloop.Emit) error {
	out := o(t)
	emit(agentloop.Event{Type: agentloop.EventText, Text: out.Text})
	return rec.Finish(ctx, out)
}

// A turn is queued, recorded and answered alike, whoever carries its run out; one that panics ends its run alone.
func TestATurnIsCarriedOutByAnyRunner(t *testing.T) {
	t.Parallel()
	p := newPuppet(t, "a")
	g := startPuppets(t, "{dm: open}", `people: [{id: ana, name: Ana, role: owner, accounts: [{channel: a, user: "7"}]}]`, nil, p)
	g.snapshot().Runner = other(func(t agentloop.Turn) agentloop.Outcome {
		heard := t.History[len(t.History)-1].Body.Content[0].Text
		if heard == "fall" {
			panic("over")
		}
		text := "I did this: " + heard
		return agentloop.Outcome{State: workspace.RunCompleted, Text: text, Content: []workspace.Content{{Kind: workspace.Text, Text: text}}}
	})
	for i, c := range []struct{ say, hear, state string }{{"sweep the stairs", "I did this: sweep the stairs", "completed"}, {"fall", "Something went wrong", "failed"},
		{"get up", "I did this: get up", "completed"}} {
		p.hear(p.says("7", fmt.Sprint(i+1), c.say))
		if got := p.next(); !strings.Contains(got, c.hear) {
			t.Errorf("%s: heard %q, want %q", c.say, got, c.hear)
		}
		if got := query(t, g, `SELECT state FROM runs ORDER BY started DESC, id DESC LIMIT 1`); got[0] != c.state {
			t.Errorf("%s: the run is %s, want %s", c.say, got[0], c.state)
		}
	}
}

// A wake-up may be lost: behind it stands the scan, which finds that the question of a held turn has its answer.
func TestALostWakeUpIsMadeGoodByTheScan(t *testing.T) {
	t.Parallel()
	p := newPuppet(t, "a")
	g := startPuppets(t, "{dm: open}", `people: [{id: ana, name: Ana, role: owner, accounts: [{channel: a, user: "7"}]}]`, nil, p)
	g.snapshot().Loop.Tools = askAbout{g.snapshot().Loop.Tools, "list_dir"}
	p.hear(p.says("7", "1", "tool"))
	if got := p.next(); !strings.Contains(got, "Answer yes or no") {
		t.Fatalf("heard %q", got)
	}
	id := query(t, g, `SELECT id FROM approvals WHERE state = 'pending'`)[0]
	if _, _, err := g.store.Decide(store.Verdict{ID: workspace.ApprovalID(id), To: workspace.ApprovalApproved, By: "ana", Via: "cli"}); err != nil {
		t.Fatal(err)
	}
	live, err := g.store.LiveRuns()
	if err != nil {
		t.Fatal(err)
	}
	over := time.After(20 * time.Second)
	for {
		g.sweepHeld(live) // again, as the question is sent while its pass still ends
		select {
		case post := <-p.sent:
			if strings.Contains(post.Plain, "The tool answered") {
				return
			}
		case <-time.After(10 * time.Millisecond):
		case <-over:
			t.Fatal("the turn does not go on")
		}
	}
}
