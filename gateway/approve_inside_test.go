package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
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

// byChannel has the runs of some channels carried out by other runners.
type byChannel struct {
	agentloop.Runner
	own sync.Map // runner by channel
}

func (b *byChannel) Run(ctx context.Context, t agentloop.Turn, rec agentloop.Recorder, emit agentloop.Emit) error {
	if r, ok := b.own.Load(t.Channel); ok {
		return r.(agentloop.Runner).Run(ctx, t, rec, emit)
	}
	return b.Runner.Run(ctx, t, rec, emit)
}

// What becomes of questions about list_dir, on one gateway over a network without buttons.
func TestT11_QuestionsInWords(t *testing.T) {
	t.Parallel()
	seated(t, "", func(g *Gateway) {
		s := g.snapshot()
		s.Loop.Tools = askAbout{s.Loop.Tools, "list_dir"}
		s.Runner = &byChannel{Runner: s.Runner}
	}, map[string]func(*seat){
		"T11_a session's grant ends with the session": grantEndsWithTheSession,
		"one under way is not taken up again":         questionUnderWay,
		"a turn is carried out by any runner":         turnByAnyRunner,
		"a lost wake-up is made good by the scan":     lostWakeUp,
		"a button of an earlier version":              pressOfAnEarlierVersion(channels.KindButton),
		"a quoted yes of an earlier version":          pressOfAnEarlierVersion(channels.KindMessage),
	})
}

// T11: a grant for the session holds for the same tool of the same person until the session begins again; a network
// without buttons is asked in words.
func grantEndsWithTheSession(s *seat) {
	n := 0
	say := func(text string) {
		n++
		s.hear(s.says("7", fmt.Sprint(n), text))
	}
	hears := func(wants ...string) {
		s.t.Helper()
		for range wants {
			got := s.next()
			i := slices.IndexFunc(wants, func(w string) bool { return strings.Contains(got, w) })
			if i < 0 {
				s.t.Fatalf("heard %q, want one of %q", got, wants)
			}
			wants = slices.Delete(slices.Clone(wants), i, i+1)
		}
	}
	approve := func(how string) {
		s.t.Helper()
		id := s.query(`SELECT id FROM approvals WHERE state = 'pending'`)
		if len(id) != 1 {
			s.t.Fatalf("%d questions stand", len(id))
		}
		say("/approve " + workspace.Short(id[0]) + " " + how)
	}
	say("tool")
	hears("Answer yes, session or no to this very message")
	approve("session")
	hears("for the rest of this session", "The tool answered")
	say("tool")
	hears("The tool answered")
	if got := s.query(`SELECT count(*) FROM approvals`); got[0] != "1" {
		s.t.Errorf("%s questions", got[0])
	}
	say("/new")
	hears("A fresh session begins")
	say("tool")
	hears("Answer yes, session or no to this very message")
	approve("once")
	hears("Approved, once", "The tool answered")
	say("tool")
	hears("Answer yes, session or no to this very message")
}

// Taking up what an earlier boot left leaves alone what this one asks: a question that a resumed turn is just sending is
// sent once. A second job for it would send it again, or hold it for cancelled, and its buttons would stay for good.
func questionUnderWay(s *seat) {
	sending, taken := make(chan struct{}, 10), make(chan struct{})
	s.send = func(post channels.Post) (channels.MessageID, error) {
		if strings.Contains(post.Plain, "May I do this?") {
			sending <- struct{}{}
			<-taken
		}
		return "", nil
	}
	s.hear(s.says("7", "1", "tool"))
	<-sending
	backlog, err := s.g.questions.Backlog()
	open := s.query(`SELECT id FROM approvals WHERE state = 'pending'`)
	if err != nil || len(open) != 1 {
		s.t.Fatalf("%q %v", open, err)
	}
	s.g.questions.Recover(backlog)
	close(taken)
	if got := s.next(); !strings.Contains(got, "May I do this?") {
		s.t.Errorf("heard %q", got)
	}
	s.hear(s.says("7", "2", "/approve "+workspace.Short(open[0])+" once"))
	for range 2 {
		if got := s.next(); !strings.Contains(got, "Approved, once") && !strings.Contains(got, "The tool answered") {
			s.t.Errorf("heard %q", got)
		}
	}
	if got := s.query(`SELECT parts.state, tries FROM parts JOIN outbound ON id = outbound_id WHERE kind = 'approval'`); !slices.Equal(got, []string{"sent|1"}) {
		s.t.Errorf("the question is %q", got)
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
func turnByAnyRunner(s *seat) {
	s.g.snapshot().Runner.(*byChannel).own.Store(s.name, other(func(t agentloop.Turn) agentloop.Outcome {
		heard := t.History[len(t.History)-1].Body.Content[0].Text
		if heard == "fall" {
			panic("over")
		}
		text := "I did this: " + heard
		return agentloop.Outcome{State: workspace.RunCompleted, Text: text, Content: []workspace.Content{{Kind: workspace.Text, Text: text}}}
	}))
	for i, c := range []struct{ say, hear, state string }{{"sweep the stairs", "I did this: sweep the stairs", "completed"}, {"fall", "Something went wrong", "failed"},
		{"get up", "I did this: get up", "completed"}} {
		s.hear(s.says("7", fmt.Sprint(i+1), c.say))
		if got := s.next(); !strings.Contains(got, c.hear) {
			s.t.Errorf("%s: heard %q, want %q", c.say, got, c.hear)
		}
		if got := s.query(`SELECT state FROM runs ORDER BY started DESC, id DESC LIMIT 1`); got[0] != c.state {
			s.t.Errorf("%s: the run is %s, want %s", c.say, got[0], c.state)
		}
	}
}

// asked has the seat's owner asked about a call of list_dir, and returns the id of the question.
func (s *seat) asked() string {
	s.t.Helper()
	s.hear(s.says("7", "1", "tool"))
	if got := s.next(); !strings.Contains(got, "Answer yes, session or no") {
		s.t.Fatalf("heard %q", got)
	}
	return s.query(`SELECT id FROM approvals WHERE state = 'pending'`)[0]
}

// A wake-up may be lost: behind it stands the scan, which finds that the question of a held turn has its answer.
func lostWakeUp(s *seat) {
	id := s.asked()
	verdict := store.Verdict{ID: workspace.ApprovalID(id), To: workspace.ApprovalApproved, By: workspace.PersonID(s.owner()), Via: "cli"}
	if _, _, err := s.g.store.Decide(verdict); err != nil {
		s.t.Fatal(err)
	}
	over := time.After(time.Minute)
	for {
		s.g.turns.Sweep(nil) // again, as the question is sent while its pass still ends
		select {
		case post := <-s.sent:
			if strings.Contains(post.Plain, "The tool answered") {
				return
			}
		case <-time.After(10 * time.Millisecond):
		case <-over:
			s.t.Fatal("the turn does not go on")
		}
	}
}

// An earlier version journalled a press, and a quoted yes, as the command that people type. What an upgrade finds of them is
// done as it was meant.
func pressOfAnEarlierVersion(kind channels.Kind) func(*seat) {
	return func(s *seat) {
		id, db := s.asked(), s.g.store
		in, err := db.Input(workspace.InputID(s.query(`SELECT id FROM inputs WHERE text = 'tool'`)[0]))
		if err != nil {
			s.t.Fatal(err)
		}
		key, err := workspace.ParseKey(in.Binding.Key)
		if err != nil {
			s.t.Fatal(err)
		}
		room, err := db.Room(in.RoomID)
		if err != nil {
			s.t.Fatal(err)
		}
		in.ID, in.Key, in.Seq, in.RunID, in.Kind = workspace.InputID(db.IDs().New()), "old", 0, "", kind
		in.Mode, in.State, in.Text = workspace.ModeCommand, workspace.InputQueued, "/approve "+id+" once"
		got, err := db.Accept(store.Arrival{Input: in, Key: key, Room: room.Address})
		if err != nil {
			s.t.Fatal(err)
		}
		s.g.intake.Offer(s.t.Context(), got[0].Input)
		for got := s.next(); !strings.Contains(got, "The tool answered"); got = s.next() {
			if !strings.Contains(got, "Approved, once") || kind == channels.KindButton {
				s.t.Fatalf("heard %q", got)
			}
		}
		if got := s.query(`SELECT state, decided_by FROM approvals`); got[0] != "consumed|"+s.owner() {
			s.t.Errorf("the approval: %q", got)
		}
	}
}
