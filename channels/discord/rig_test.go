package discord

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"parley/channels"
	"parley/channels/channeltest"
	"parley/channels/discord/discordtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	ana     = "800000000000000001"
	ben     = "800000000000000002"
	server  = "900000000000000001"
	general = "900000000000000002"
	thread  = "900000000000000004"
	dm      = "900000000000000006"
	opsRole = "700000000000000001"
	botRole = "700000000000000002"
)

// rig is an adapter on the fake, with the journal's side played here.
type rig struct {
	t    *testing.T
	dir  string // the gateway's data; empty: nothing outlives the process
	fake *discordtest.Server
	c    *Channel
	logs *channeltest.Log
	j    *journal
	stop context.CancelFunc
	over chan error
}

// newRig is a server with a channel, a thread and two people, one of them with a role, and a conversation with her.
func newRig(t *testing.T, o discordtest.Options) *rig {
	t.Helper()
	s := discordtest.Start(t, o)
	s.AddUser(discordtest.User{ID: ana, Name: "ana", Global: "Ana"})
	s.AddUser(discordtest.User{ID: ben, Name: "ben"})
	s.AddGuild(discordtest.Guild{ID: server, Name: "Friends", Roles: []discordtest.Role{{ID: opsRole, Name: "ops"}, {ID: botRole, Name: "Parley"}},
		Members: map[string][]string{ana: {opsRole}, ben: nil, s.Bot().ID: {botRole}}, Nick: map[string]string{ben: "Benny"}})
	s.AddChannel(discordtest.Channel{ID: general, Type: discordtest.Text, Guild: server, Name: "general"})
	s.AddChannel(discordtest.Channel{ID: thread, Type: discordtest.PublicThread, Guild: server, Name: "incident", Parent: general})
	s.AddChannel(discordtest.Channel{ID: dm, Type: discordtest.Direct, With: ana})
	r := &rig{t: t, fake: s, j: newJournal()}
	r.c, r.logs = adapter(t, s)
	t.Cleanup(r.end)
	return r
}

// adapter is a fresh one, as a new process makes it, with pauses as short as a test can bear.
func adapter(t testing.TB, s *discordtest.Server) (*Channel, *channeltest.Log) {
	t.Helper()
	tr := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(tr.CloseIdleConnections)
	logs := &channeltest.Log{}
	c, err := New("dc", Options{Token: channels.Secret(s.Token()), APIURL: s.URL()}, channels.Deps{
		Log: logs.Logger(), HTTP: &http.Client{Transport: tr}, Clock: &channeltest.Clock{}})
	if err != nil {
		t.Fatal(err)
	}
	c.pace.first, c.pace.longest, c.pace.identify, c.pace.refused = time.Millisecond, 20*time.Millisecond, 0, time.Millisecond
	c.pace.settled = 1 // a connection that was ready has held
	return c, logs
}

// run starts the adapter and waits until it is ready.
func (r *rig) run() {
	r.t.Helper()
	r.launch()
	r.wait("ready", func() bool { return r.j.last().State == channels.Ready })
}

func (r *rig) launch() {
	ctx, cancel := context.WithCancel(r.t.Context())
	r.stop, r.over = cancel, make(chan error, 1)
	over, c := r.over, r.c
	go func() { over <- c.Run(ctx, r.j) }()
}

// end stops the adapter; a second end does nothing.
func (r *rig) end() {
	r.t.Helper()
	if r.stop == nil {
		return
	}
	r.stop()
	r.stop = nil
	late := time.NewTimer(15 * time.Second)
	defer late.Stop()
	select {
	case err := <-r.over:
		if err != nil && channels.ClassOf(err) != channels.Fatal {
			r.t.Errorf("Run ended with %v", err)
		}
	case <-late.C:
		r.t.Errorf("Run does not end")
	}
}

// restart is a new process with the same journal.
func (r *rig) restart() {
	r.t.Helper()
	r.end()
	r.renew()
	r.run()
}

// renew makes a new process, which does not run yet.
func (r *rig) renew() {
	r.t.Helper()
	r.c, r.logs = adapter(r.t, r.fake)
	r.c.dir = r.dir
	r.j.forgetStates()
}

func (r *rig) ctx() context.Context {
	ctx, cancel := context.WithTimeout(r.t.Context(), 20*time.Second)
	r.t.Cleanup(cancel)
	return ctx
}

func (r *rig) wait(what string, cond func() bool) {
	r.t.Helper()
	if err := r.j.wait(r.ctx(), cond); err != nil {
		r.t.Fatalf("%s: %v; taken %q, states %+v\n%s", what, err, r.j.texts(), r.j.told(), r.logs)
	}
}

// hears waits until the texts were taken, whatever else was.
func (r *rig) hears(texts ...string) {
	r.t.Helper()
	r.wait(fmt.Sprintf("messages %q", texts), func() bool {
		got := r.j.texts()
		return !slices.ContainsFunc(texts, func(s string) bool { return !slices.Contains(got, s) })
	})
}

// says has somebody write in a channel.
func (r *rig) says(who, where, text string) string {
	return r.fake.Write(discordtest.In{Channel: where, From: who, Text: text})
}

// inbound is what was taken with a text.
func (r *rig) inbound(text string) channels.Inbound {
	r.t.Helper()
	r.hears(text)
	for _, in := range r.j.all() {
		if in.Text == text {
			return in
		}
	}
	return channels.Inbound{}
}

func (r *rig) at(where string) channels.Address {
	a := channels.Address{Network: Network, Account: channels.AccountID(r.fake.Bot().ID), Kind: channels.Room, Peer: channels.PeerID(where)}
	switch where {
	case dm:
		a.Kind = channels.DM
	case thread:
		a.Peer, a.Thread = general, thread
	}
	return a
}

// journal is an Intake that dedupes by key and keeps what it takes.
type journal struct {
	mu      sync.Mutex
	changed chan struct{}
	taken   []channels.Inbound
	keys    map[string]bool
	offers  int
	again   int // offered once more
	counts  map[channels.Kind]int
	newest  map[channels.PeerID]channels.MessageID
	states  []channels.Status
	refuse  func(in []channels.Inbound) error
}

func newJournal() *journal {
	return &journal{changed: make(chan struct{}), keys: map[string]bool{}, counts: map[channels.Kind]int{}, newest: map[channels.PeerID]channels.MessageID{}}
}

func (j *journal) note() {
	close(j.changed)
	j.changed = make(chan struct{})
}

func (j *journal) Receive(_ context.Context, batch ...channels.Inbound) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	defer j.note()
	j.offers++
	if j.refuse != nil {
		if err := j.refuse(batch); err != nil {
			return err
		}
	}
	for _, in := range batch {
		if j.keys[in.Key] {
			j.again++
			continue
		}
		j.keys[in.Key] = true
		j.taken = append(j.taken, in)
		j.counts[in.Kind]++
		if in.Kind == channels.KindMessage {
			j.newest[in.To.Peer] = in.ID
		}
	}
	return nil
}

// refuseAll refuses every batch with err; nil: no more.
func (j *journal) refuseAll(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.refuse = func([]channels.Inbound) error { return err }
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
	j.mu.Lock()
	defer j.mu.Unlock()
	defer j.note()
	j.states = append(j.states, s)
}

func (j *journal) wait(ctx context.Context, cond func() bool) error {
	for {
		j.mu.Lock()
		changed := j.changed
		j.mu.Unlock()
		if cond() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (j *journal) all() []channels.Inbound {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.taken)
}

func (j *journal) texts() []string {
	var out []string
	for _, in := range j.all() {
		out = append(out, in.Text)
	}
	return out
}

func (j *journal) told() []channels.Status {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.states)
}

func (j *journal) last() channels.Status {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.states) == 0 {
		return channels.Status{}
	}
	return j.states[len(j.states)-1]
}

func (j *journal) forgetStates() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.states = nil
}

// count is how many of a kind were taken.
func (j *journal) count(k channels.Kind) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.counts[k]
}

func read(t *testing.T, rc io.ReadCloser) string {
	t.Helper()
	defer rc.Close()
	raw, err := io.ReadAll(rc)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func has(s string, parts ...string) bool {
	return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(s, p) })
}

func must(t *testing.T, address string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
