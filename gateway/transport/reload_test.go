package transport

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

	"parley/channels"
	"parley/configs"
)

// diary is what fake channels did, in order.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) note(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line)
}

func (d *diary) has() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.lines, ", ")
}

// keys are what a fake channel is made of.
type keys struct {
	account channels.AccountID
	slow    time.Duration // of a send
}

// line is a channel of an account. It is told as a duplicate, as the gateway's intake does, when it has connected.
type line struct {
	keys
	name  string
	diary *diary
	cs    *Channels
}

func (l *line) Account() channels.AccountID { return l.account }

func (l *line) Run(ctx context.Context, in channels.Intake) error {
	l.diary.note("+" + l.name)
	if !l.cs.Duplicate(l.cs.Named(l.name)) {
		in.Report(channels.Status{State: channels.Ready})
	}
	<-ctx.Done()
	l.diary.note("-" + l.name)
	return nil
}

func (l *line) Send(ctx context.Context, _ channels.Post) (channels.MessageID, error) {
	channels.Sleep(ctx, l.slow)
	l.diary.note("sent by " + l.name)
	return "1", nil
}

// reports is an intake that only takes states.
type reports struct {
	channels.Intake
	c *Channel
}

func (r reports) Report(s channels.Status) { r.c.Report(s) }

func conf(name string, k keys) configs.Channel {
	return configs.Channel{Name: name, Type: "n", Options: k}
}

// newLines makes channels of which the diary tells; run begins them and returns what puts a list in force.
func newLines(t *testing.T) (cs *Channels, d *diary, apply func(...configs.Channel)) {
	t.Helper()
	d = &diary{}
	cs = NewChannels(Options{Log: slog.New(slog.DiscardHandler), Now: time.Now, Build: func(c configs.Channel) (channels.Channel, error) {
		k, ok := c.Options.(keys)
		if !ok {
			return nil, errors.New("no keys")
		}
		return &line{k, c.Name, d, cs}, nil
	}})
	return cs, d, func(list ...configs.Channel) {
		t.Helper()
		ch, err := cs.Prepare(list)
		if err != nil {
			t.Fatal(err)
		}
		cs.Apply(ch)
	}
}

func (cs *Channels) start(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		cs.Run(ctx, func(c *Channel) channels.Intake { return reports{c: c} })
	}()
	return func() { cancel(); <-over }
}

// Channels come and go with their configuration; who stays notices nothing, and one of the same account begins after the
// one before it has ended.
func TestChannelsComeAndGoWithTheirConfiguration(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cs, d, apply := newLines(t)
		apply(conf("a", keys{account: "1"}), conf("b", keys{account: "2"}))
		defer cs.start(t)()
		synctest.Wait()
		a := cs.Named("a")
		apply(conf("c", keys{account: "2"}), conf("a", keys{account: "1"}))
		synctest.Wait()
		got := d.has()
		if first, rest, _ := strings.Cut(got, ", -b, "); len(first) != len("+a, +b") || rest != "+c" {
			t.Errorf("they did %s", got)
		}
		changed := conf("a", keys{account: "1"})
		changed.Stream, changed.Access.DM = "off", "open"
		if apply(conf("c", keys{account: "2"}), changed); a.Streams() || a.Access().DM != "open" || d.has() != got {
			t.Error("what may change while it runs has not changed")
		}
		if cs.Named("a") != a || cs.Named("b") != nil || !cs.Ready(channels.Address{Network: "n", Account: "2"}) {
			t.Error("the list is another")
		}
		if names := []string{cs.All()[0].Name, cs.All()[1].Name}; !slices.Equal(names, []string{"c", "a"}) {
			t.Errorf("it is %q", names)
		}
	})
}

// What is refused changes nothing, not even what could have been made of the rest.
func TestARefusedListChangesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cs, d, apply := newLines(t)
		apply(conf("a", keys{account: "1"}))
		defer cs.start(t)()
		synctest.Wait()
		if _, err := cs.Prepare([]configs.Channel{conf("a", keys{account: "9"}), conf("b", keys{account: "2"}), {Name: "c", Type: "n", Options: "bad"}}); err == nil {
			t.Fatal("it is taken")
		}
		synctest.Wait()
		if got := d.has(); got != "+a" || len(cs.All()) != 1 || cs.All()[0].Account() != "1" {
			t.Errorf("they did %s", got)
		}
	})
}

// A channel that is removed ends after what it is sending; what comes later is surely not sent, and who waits for it is let go.
func TestARemovedChannelEndsAfterWhatItSends(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cs, d, apply := newLines(t)
		apply(conf("a", keys{account: "1", slow: time.Minute}))
		defer cs.start(t)()
		synctest.Wait()
		a := cs.Named("a")
		sent := make(chan error, 2)
		send := func() { _, err := a.Adapter.Send(t.Context(), channels.Post{}); sent <- err }
		go send()
		synctest.Wait()
		apply()
		synctest.Wait()
		go send()
		if err := <-sent; channels.ClassOf(err) != channels.Retry {
			t.Error("what came after it:", err)
		}
		if err := <-sent; err != nil {
			t.Error("what was under way:", err)
		}
		synctest.Wait()
		if got := d.has(); got != "+a, sent by a, -a" {
			t.Errorf("they did %s", got)
		}
		if err := a.Sync(func(*Channel) error { return nil }); !errors.Is(err, errRemoved) {
			t.Error("it still takes messages:", err)
		}
	})
}

// Who waits for a channel that has not connected yet is let go when it is removed.
func TestNobodyWaitsForARemovedChannel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cs, _, apply := newLines(t)
		apply(conf("a", keys{account: ""}))
		over := make(chan bool)
		go func() {
			_, ok := cs.Wait(t.Context(), nil, channels.Address{Network: "n", Account: "1"})
			over <- ok
		}()
		synctest.Wait()
		apply()
		if <-over {
			t.Error("it has a channel")
		}
	})
}

// A channel that was kept out, since another had its account, connects when that one is removed.
func TestADuplicateTakesTheAccountOfARemovedChannel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cs, _, apply := newLines(t)
		apply(conf("a", keys{account: "1"}))
		defer cs.start(t)()
		synctest.Wait()
		apply(conf("a", keys{account: "1"}), conf("b", keys{account: "1"}))
		synctest.Wait()
		b := cs.Named("b")
		if v := b.View(); v.State != channels.Failed {
			t.Fatalf("the second is %s", v.State)
		}
		apply(conf("b", keys{account: "1"}))
		synctest.Wait()
		if v := b.View(); v.State != channels.Ready {
			t.Errorf("the second is %s", v.State)
		}
	})
}
