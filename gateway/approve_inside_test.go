package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/agentloop"
	"parley/channels"
	"parley/tools"
	"parley/workspace"
	"parley/workspace/store"
)

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

// T11: a grant for the session holds for the same tool of the same person until the session begins again; a network
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
	backlog, err := g.questions.Backlog()
	open := query(t, g, `SELECT id FROM approvals WHERE state = 'pending'`)
	if err != nil || len(open) != 1 {
		t.Fatalf("%q %v", open, err)
	}
	g.questions.Recover(backlog)
	close(taken)
	if got := p.next(); !strings.Contains(got, "May I do this?") {
		t.Errorf("heard %q", got)
	}
	p.hear(p.says("7", "2", "/approve "+workspace.Short(open[0])+" once"))
	for range 2 {
		if got := p.next(); !strings.Contains(got, "Approved, once") && !strings.Contains(got, "The tool answered") {
			t.Errorf("heard %q", got)
		}
	}
	if got := query(t, g, `SELECT parts.state, tries FROM parts JOIN outbound ON id = outbound_id WHERE kind = 'approval'`); !slices.Equal(got, []string{"sent|1"}) {
		t.Errorf("the question is %q", got)
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

// askedPuppet is a gateway whose owner, Ana, is asked about a call of list_dir, and the id of the question.
func askedPuppet(t *testing.T) (*puppet, *Gateway, string) {
	t.Helper()
	p := newPuppet(t, "a")
	g := startPuppets(t, "{dm: open}", `people: [{id: ana, name: Ana, role: owner, accounts: [{channel: a, user: "7"}]}]`, nil, p)
	g.snapshot().Loop.Tools = askAbout{g.snapshot().Loop.Tools, "list_dir"}
	p.hear(p.says("7", "1", "tool"))
	if got := p.next(); !strings.Contains(got, "Answer yes or no") {
		t.Fatalf("heard %q", got)
	}
	return p, g, query(t, g, `SELECT id FROM approvals WHERE state = 'pending'`)[0]
}

// A wake-up may be lost: behind it stands the scan, which finds that the question of a held turn has its answer.
func TestALostWakeUpIsMadeGoodByTheScan(t *testing.T) {
	t.Parallel()
	p, g, id := askedPuppet(t)
	if _, _, err := g.store.Decide(store.Verdict{ID: workspace.ApprovalID(id), To: workspace.ApprovalApproved, By: "ana", Via: "cli"}); err != nil {
		t.Fatal(err)
	}
	over := time.After(20 * time.Second)
	for {
		g.turns.Sweep(nil) // again, as the question is sent while its pass still ends
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

// An earlier version journalled a press, and a quoted yes, as the command that people type. What an upgrade finds of them is
// done as it was meant.
func TestAPressOfAnEarlierVersionIsDone(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]channels.Kind{"a button": channels.KindButton, "a quoted yes": channels.KindMessage} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, g, id := askedPuppet(t)
			in, err := g.store.Input(workspace.InputID(query(t, g, `SELECT id FROM inputs WHERE text = 'tool'`)[0]))
			if err != nil {
				t.Fatal(err)
			}
			key, err := workspace.ParseKey(in.Binding.Key)
			if err != nil {
				t.Fatal(err)
			}
			room, err := g.store.Room(in.RoomID)
			if err != nil {
				t.Fatal(err)
			}
			in.ID, in.Key, in.Seq, in.RunID, in.Kind = workspace.InputID(g.store.IDs().New()), "old", 0, "", kind
			in.Mode, in.State, in.Text = workspace.ModeCommand, workspace.InputQueued, "/approve "+id+" once"
			got, err := g.store.Accept(store.Arrival{Input: in, Key: key, Room: room.Address})
			if err != nil {
				t.Fatal(err)
			}
			g.intake.Offer(t.Context(), got[0].Input)
			for got := p.next(); !strings.Contains(got, "The tool answered"); got = p.next() {
				if !strings.Contains(got, "Approved, once") || kind == channels.KindButton {
					t.Fatalf("heard %q", got)
				}
			}
			if got := query(t, g, `SELECT state, decided_by FROM approvals`); got[0] != "consumed|ana" {
				t.Errorf("the approval: %q", got)
			}
		})
	}
}
