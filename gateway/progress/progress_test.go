package progress

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"parley/agentloop"
	"parley/agentloop/lane"
	"parley/channels"
	"parley/configs"
	"parley/gateway/delivery"
	"parley/gateway/snapshot"
	"parley/gateway/transport"
	"parley/workspace"
	"parley/workspace/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// net is a network that shows typing and edits messages, and notes both.
type net struct {
	mu    sync.Mutex
	seen  []string
	edits []time.Time
}

func (n *net) note(s string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seen = append(n.seen, s)
}

// taken is what was shown since it was asked last.
func (n *net) taken() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := n.seen
	n.seen = nil
	return list
}

func (*net) Run(ctx context.Context, _ channels.Intake) error {
	<-ctx.Done()
	return nil
}

func (*net) Send(context.Context, channels.Post) (channels.MessageID, error) {
	return "", errors.New("nothing is sent")
}

func (*net) Traits() channels.Traits {
	return channels.Traits{Dialect: channels.Plain, TypingEvery: 4 * time.Second, EditEvery: time.Second, Ack: "👀"}
}

func (n *net) ShowTyping(context.Context, channels.Address) error {
	n.note("typing")
	return nil
}

func (n *net) Edit(_ context.Context, id channels.MessageID, p channels.Post) error {
	n.note(string(id) + ": " + p.Plain)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.edits = append(n.edits, time.Now())
	return nil
}

func (n *net) React(_ context.Context, _ channels.Address, id channels.MessageID, emoji string) error {
	n.note("mark " + string(id) + " " + emoji)
	return nil
}

// noStore fails whoever asks it for more than the one room.
type noStore struct{ delivery.Store }

func (noStore) Outbound(...store.NewOutbound) ([]workspace.Outbound, error) {
	return nil, store.ErrClosed
}

// inBubble shows a turn on the network, from two seconds on, without a placeholder.
func inBubble(t *testing.T, change func(*Turn), test func(t *testing.T, n *net, p *Progress)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		log := slog.New(slog.DiscardHandler)
		n := &net{}
		ch := transport.New(configs.Channel{Name: "net", Type: "mem"}, n, log, time.Now)
		list := &transport.Channels{}
		list.Add(ch)
		stale := delivery.NewStale(delivery.StaleOptions{After: func() time.Duration { return 0 }, Now: time.Now, Log: log})
		out := delivery.New(context.WithoutCancel(t.Context()), delivery.Options{Store: noStore{}, Channels: list,
			Hide: &workspace.Redactor{}, Now: time.Now, Log: log}, stale)
		d := New(t.Context(), Options{Store: noStore{}, Delivery: out, Channels: list, Hide: &workspace.Redactor{}, Now: time.Now})
		turn := Turn{Channel: ch, Run: "run", Lane: &lane.Turn{Inputs: []workspace.Input{{Data: workspace.InputData{Message: "1"}}}},
			Room: workspace.Room{ID: "room", Address: channels.Address{Network: "mem", Kind: channels.DM, Peer: "ana"}},
			When: snapshot.Progress{Typing: 2 * time.Second, Placeholder: time.Hour}}
		if change != nil {
			change(&turn)
		}
		p := d.Watch(turn)
		test(t, n, p)
		p.Stop()
		stale.Stop()
		out.Drain(t.Context(), 0)
	})
}

// open gives the turn the message of an answer that an earlier boot began.
func open(t *Turn) {
	t.Open = Answer{Out: &workspace.Outbound{Parts: []workspace.Part{{RemoteID: "7"}}}}
	t.When.Placeholder = 3 * time.Second
}

func want(t *testing.T, n *net, what string, list ...string) {
	t.Helper()
	if got := n.taken(); !slices.Equal(got, list) {
		t.Errorf("%s: %q, want %q", what, got, list)
	}
}

func TestAQuickAnswerShowsNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(t *testing.T, n *net, p *Progress) {
		<-time.After(1900 * time.Millisecond)
		p.Stop()
		<-time.After(time.Minute)
		want(t, n, "after the answer")
	})
}

func TestASlowAnswerShowsTypingAndItsMarkUntilItEnds(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(t *testing.T, n *net, p *Progress) {
		<-time.After(2100 * time.Millisecond)
		want(t, n, "when it is due", "mark 1 👀", "typing")
		<-time.After(8 * time.Second)
		want(t, n, "after two periods", "typing", "typing")
		p.Stop()
		synctest.Wait()
		want(t, n, "after the answer", "mark 1 ")
		<-time.After(time.Minute)
		want(t, n, "later")
	})
}

func TestNothingIsShownWithoutAChannel(t *testing.T) {
	t.Parallel()
	inBubble(t, func(turn *Turn) { turn.Channel = nil; open(turn) }, func(t *testing.T, n *net, p *Progress) {
		p.See(agentloop.Event{Type: agentloop.EventText, Text: "words"})
		p.Follow("`exec` ✓")
		<-time.After(time.Minute)
		if got := p.Stop(); got.Out == nil {
			t.Error("the answer to finish is lost")
		}
		p.Rest("it is paused")
		want(t, n, "in all")
	})
}

func TestAnAnswerGrowsAtThePaceOfItsNetwork(t *testing.T) {
	t.Parallel()
	inBubble(t, open, func(t *testing.T, n *net, p *Progress) {
		<-time.After(3 * time.Second)
		synctest.Wait()
		n.taken()
		p.See(agentloop.Event{Type: agentloop.EventToolStart, Tool: "exec"})
		<-time.After(1500 * time.Millisecond)
		if got := edits(n); len(got) != 1 || !strings.Contains(got[0], "working: exec") {
			t.Errorf("while it works: %q", got)
		}
		p.Follow("`exec` ✓")
		for _, word := range []string{"one ", "two ", "three "} { // within one period
			p.See(agentloop.Event{Type: agentloop.EventText, Text: word})
		}
		<-time.After(1500 * time.Millisecond)
		if got := edits(n); !slices.Equal(got, []string{"7: exec ✓\n\none two three"}) {
			t.Errorf("while it answers: %q", got)
		}
		<-time.After(20 * time.Second)
		if got := edits(n); len(got) != 0 {
			t.Errorf("while nothing comes: %q", got)
		}
		p.Stop()
		p.Rest("it is paused")
		if got := edits(n); !slices.Equal(got, []string{"7: one two three\n\n(it is paused)"}) {
			t.Errorf("suspended: %q", got)
		}
	})
}

// A model that sends nothing is said after ten seconds, and then ever more seldom; what it fails with after that stands in its place.
func TestAModelThatSendsNothingIsSaid(t *testing.T) {
	t.Parallel()
	inBubble(t, open, func(t *testing.T, n *net, p *Progress) {
		p.See(agentloop.Event{Type: agentloop.EventAsk, Who: "OpenAI", Since: time.Now()})
		<-time.After(9500 * time.Millisecond)
		if got := edits(n); len(got) != 0 {
			t.Errorf("before ten seconds: %q", got)
		}
		<-time.After(60 * time.Second)
		var said []string
		for _, e := range edits(n) {
			said = append(said, strings.TrimSuffix(strings.TrimPrefix(e, "7: "+delivery.Placeholder+" no answer from OpenAI for "), "; /stop ends this"))
		}
		if !slices.Equal(said, []string{"10 s", "15 s", "23 s", "35 s", "53 s"}) {
			t.Errorf("within a minute: %q", said)
		}
		p.See(agentloop.Event{Type: agentloop.EventWait, Note: "OpenAI did not answer in time; next try in 1 s"})
		<-time.After(1500 * time.Millisecond)
		if got := edits(n); len(got) != 1 || !strings.Contains(got[0], "OpenAI did not answer in time; next try in 1 s") {
			t.Errorf("when it has failed: %q", got)
		}
		p.See(agentloop.Event{Type: agentloop.EventAsk, Who: "OpenAI", Since: time.Now()})
		p.See(agentloop.Event{Type: agentloop.EventText, Text: "Hello"})
		<-time.After(30 * time.Second)
		if got := edits(n); !slices.Equal(got, []string{"7: Hello"}) {
			t.Errorf("when it answers: %q", got)
		}
	})
}

// However fast words come, edits are as far apart as the network wants them.
func TestEditsAreAPeriodApart(t *testing.T) {
	t.Parallel()
	inBubble(t, open, func(t *testing.T, n *net, p *Progress) {
		<-time.After(3 * time.Second)
		for range 65 { // the last one well after an edit, never at its instant
			p.See(agentloop.Event{Type: agentloop.EventText, Text: "word "})
			<-time.After(100 * time.Millisecond)
		}
		p.Stop()
		for i, at := range n.edits[1:] {
			if gap := at.Sub(n.edits[i]); gap != time.Second {
				t.Errorf("edits %d and %d are %v apart", i, i+1, gap)
			}
		}
		if len(n.edits) < 6 {
			t.Errorf("%d edits in 6 s", len(n.edits))
		}
	})
}

// edits are those of what was shown.
func edits(n *net) []string {
	return slices.DeleteFunc(n.taken(), func(s string) bool { return !strings.HasPrefix(s, "7: ") })
}
