package slack_test

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"parley/channels"
	"parley/channels/channeltest"
	"parley/channels/slack"
	"parley/channels/slack/slacktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is one adapter on a fake Slack, with the gateway's side played.
type bench struct {
	t    *testing.T
	s    *slacktest.Server
	ch   channels.Channel
	in   *journal
	log  *channeltest.Log
	tr   *http.Transport
	stop func()
}

// newFake is a Slack with the people of the suite.
func newFake(t *testing.T, o slacktest.Options) *slacktest.Server {
	t.Helper()
	if o.PingEvery == 0 {
		o.PingEvery = 100 * time.Millisecond
	}
	o.NoLimits = true
	s := slacktest.Start(t, o)
	s.AddUser(slacktest.User{ID: anaID, Name: "ana", Real: "Ana Lima"})
	s.AddUser(slacktest.User{ID: benID, Name: "ben", Real: "Ben"})
	s.AddChannel(slacktest.Channel{ID: anaDM, Kind: slacktest.IM, Members: []string{anaID}})
	s.AddChannel(slacktest.Channel{ID: groupID, Name: "friends", Kind: slacktest.Public, Members: []string{anaID, benID, s.Team(0).Bot.ID}})
	return s
}

// bind makes an adapter without running it; change has the last word on its options.
func bind(t *testing.T, s *slacktest.Server, f channels.Factory, change func(*slack.Options)) *bench {
	t.Helper()
	o := f.Options().(*slack.Options)
	o.BotToken, o.AppToken, o.APIURL = channels.Secret(s.Team(0).Token), channels.Secret(s.App().Token), s.APIURL()
	if change != nil {
		change(o)
	}
	b := &bench{t: t, s: s, in: newJournal(), log: &channeltest.Log{}, tr: &http.Transport{MaxIdleConnsPerHost: 64}}
	ch, err := f.New("work", o, channels.Deps{Log: b.log.Logger(), HTTP: &http.Client{Transport: b.tr}, Clock: &channeltest.Clock{}})
	if err != nil {
		t.Fatal(err)
	}
	ch.(*slack.Channel).Hurry()
	b.ch = ch
	t.Cleanup(b.tr.CloseIdleConnections)
	return b
}

// run runs the adapter until the test or stop ends it.
func (b *bench) run() *bench {
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.in.ended(b.ch.Run(ctx, b.in))
	}()
	b.stop = func() { cancel(); <-done }
	b.t.Cleanup(b.stop)
	return b
}

// start is an adapter that is ready.
func start(t *testing.T, s *slacktest.Server, change func(*slack.Options)) *bench {
	t.Helper()
	b := bind(t, s, slack.Factory(), change).run()
	b.until("ready", func() bool { return b.in.told(channels.Ready) != nil })
	return b
}

// until waits for something that the journal or Slack sees.
func (b *bench) until(what string, cond func() bool) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 20*time.Second)
	defer cancel()
	stop := context.AfterFunc(ctx, b.in.wake)
	defer stop()
	for !cond() {
		b.in.mu.Lock()
		changed := b.in.changed
		b.in.mu.Unlock()
		if cond() {
			return
		}
		seen := make(chan struct{})
		look, done := context.WithCancel(ctx)
		go func() { // Slack's changes wake it as well
			defer close(seen)
			_ = b.s.WaitFor(look, func(slacktest.View) bool { return cond() })
		}()
		select {
		case <-changed:
		case <-seen:
		}
		done()
		<-seen
		if ctx.Err() != nil {
			b.t.Fatalf("20 s without %s; the log: %s", what, b.log.String())
		}
	}
}

// journal is an Intake that keeps what it takes, each key once.
type journal struct {
	mu      sync.Mutex
	changed chan struct{}
	all     []channels.Inbound // every offer that was taken
	keys    map[string]int
	states  []channels.Status
	refuse  func(batch []channels.Inbound) error
	newest  map[channels.PeerID]channels.MessageID
	over    []error
}

func newJournal() *journal {
	return &journal{changed: make(chan struct{}), keys: map[string]int{}, newest: map[channels.PeerID]channels.MessageID{}}
}

func (j *journal) wake() {
	j.mu.Lock()
	defer j.mu.Unlock()
	close(j.changed)
	j.changed = make(chan struct{})
}

func (j *journal) Receive(_ context.Context, batch ...channels.Inbound) error {
	j.mu.Lock()
	refuse := j.refuse
	j.mu.Unlock()
	if refuse != nil {
		if err := refuse(batch); err != nil {
			return err
		}
	}
	defer j.wake()
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, in := range batch {
		j.all = append(j.all, in)
		j.keys[in.Key]++
		if in.Kind == channels.KindMessage && in.ID > j.newest[in.To.Peer] {
			j.newest[in.To.Peer] = in.ID
		}
	}
	return nil
}

func (j *journal) Newest(context.Context) (map[channels.PeerID]channels.MessageID, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	m := map[channels.PeerID]channels.MessageID{}
	for k, v := range j.newest {
		m[k] = v
	}
	return m, nil
}

func (j *journal) Report(s channels.Status) {
	defer j.wake()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.states = append(j.states, s)
}

func (j *journal) ended(err error) {
	defer j.wake()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.over = append(j.over, err)
}

// end is what Run returned; ok says that it did.
func (j *journal) end() (err error, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.over) == 0 {
		return nil, false
	}
	return j.over[len(j.over)-1], true
}

// told is the newest status with that state; nil: none.
func (j *journal) told(s channels.State) *channels.Status {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, st := range slices.Backward(j.states) {
		if st.State == s {
			return &st
		}
	}
	return nil
}

// texts are the texts of all messages, each key once, in the order in which they came first.
func (j *journal) texts() (all []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	seen := map[string]bool{}
	for _, in := range j.all {
		if in.Kind == channels.KindMessage && !seen[in.Key] {
			seen[in.Key] = true
			all = append(all, in.Text)
		}
	}
	return all
}

// find is the first input that matches.
func (j *journal) find(match func(channels.Inbound) bool) (channels.Inbound, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, in := range j.all {
		if match(in) {
			return in, true
		}
	}
	return channels.Inbound{}, false
}

func (b *bench) get(what string, match func(channels.Inbound) bool) (got channels.Inbound) {
	b.t.Helper()
	b.until(what, func() bool {
		in, ok := b.in.find(match)
		if ok {
			got = in
		}
		return ok
	})
	return got
}

func (b *bench) dm() channels.Address {
	t := b.s.Team(0)
	return channels.Address{Network: slack.Network, Account: channels.AccountID(t.ID + "/" + t.Bot.ID), Kind: channels.DM, Peer: anaDM}
}

func (b *bench) room(thread string) channels.Address {
	a := b.dm()
	a.Kind, a.Peer, a.Thread = channels.Room, groupID, channels.ThreadID(thread)
	return a
}

func withText(text string) func(channels.Inbound) bool {
	return func(in channels.Inbound) bool { return in.Text == text }
}

func contains(list []string, text string) bool {
	return slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, text) })
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
