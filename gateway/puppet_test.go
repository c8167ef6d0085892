package gateway

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/channels"
	"parley/configs"
	"parley/configs/source"
)

// Starts counts the daemons that the tests of this package start.
var Starts starts

type starts struct {
	mu    sync.Mutex
	n     int
	tests map[string]bool
}

// By notes that a test starts a daemon.
func (s *starts) By(t *testing.T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tests == nil {
		s.tests = map[string]bool{}
	}
	test, _, _ := strings.Cut(t.Name(), "/")
	s.n, s.tests[test] = s.n+1, true
}

func (s *starts) String() string {
	return fmt.Sprintf("%d daemons started by %d tests", s.n, len(s.tests))
}

// puppet is a network of which a test holds every string.
type puppet struct {
	name   string
	access string // empty: as all others
	t      *testing.T
	sent   chan channels.Post
	send   func(channels.Post) (channels.MessageID, error) // nil: it arrives

	mu    sync.Mutex
	in    channels.Intake
	ready chan struct{}
	n     int
}

var (
	_ channels.Channel   = (*puppet)(nil)
	_ channels.Accounter = (*puppet)(nil)
	_ channels.Describer = (*puppet)(nil)
)

func newPuppet(t *testing.T, name string) *puppet {
	return &puppet{name: name, t: t, sent: make(chan channels.Post, 1000), ready: make(chan struct{})}
}

func (p *puppet) Account() channels.AccountID { return "bot-" + channels.AccountID(p.name) }

func (p *puppet) Traits() channels.Traits {
	return channels.Traits{Unit: channels.Runes, MaxUnits: 4000, Dialect: channels.Plain}
}

func (p *puppet) Send(_ context.Context, post channels.Post) (channels.MessageID, error) {
	if p.send != nil {
		if id, err := p.send(post); err != nil {
			return id, err
		}
	}
	p.sent <- post
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n++
	return channels.MessageID(fmt.Sprint(p.n)), nil
}

func (p *puppet) Run(ctx context.Context, in channels.Intake) error {
	p.mu.Lock()
	p.in = in
	p.mu.Unlock()
	in.Report(channels.Status{State: channels.Ready})
	close(p.ready)
	<-ctx.Done()
	return nil
}

// says is a private message.
func (p *puppet) says(user, id, text string) channels.Inbound {
	return channels.Inbound{Key: "m:" + user + ":" + id, Kind: channels.KindMessage, ID: channels.MessageID(id), Time: time.Now(), Text: text,
		From: channels.Sender{User: channels.UserID(user), Name: "P" + user},
		To:   channels.Address{Network: "puppet", Account: p.Account(), Kind: channels.DM, Peer: channels.PeerID(user)}}
}

// hear hands events to the gateway as one batch.
func (p *puppet) hear(batch ...channels.Inbound) {
	p.t.Helper()
	<-p.ready
	p.mu.Lock()
	in := p.in
	p.mu.Unlock()
	if err := in.Receive(p.t.Context(), batch...); err != nil {
		p.t.Fatal(err)
	}
}

// next is the next message that people see.
func (p *puppet) next() string {
	p.t.Helper()
	select {
	case post := <-p.sent:
		return post.Plain
	case <-time.After(time.Minute):
		p.t.Fatal("nothing was sent")
		return ""
	}
}

// startPuppets runs a gateway over puppets. access is of each channel; extra is further configuration.
func startPuppets(t *testing.T, access, extra string, change func(*Options), list ...*puppet) *Gateway {
	t.Helper()
	options := func() any { return &struct{}{} }
	f := channels.Factory{Network: "puppet", Options: options, New: func(name string, _ any, _ channels.Deps) (channels.Channel, error) {
		for _, p := range list {
			if p.name == name {
				return p, nil
			}
		}
		return nil, fmt.Errorf("no puppet %q", name)
	}}
	dir := t.TempDir()
	var conf strings.Builder
	fmt.Fprintf(&conf, "data_dir: %s/data\ngateway: {listen: \"127.0.0.1:0\"}\n", dir)
	if !strings.Contains(extra, "models:") {
		conf.WriteString("models: [{name: m, api: offline}]\n")
	}
	conf.WriteString("channels:\n")
	for _, p := range list {
		fmt.Fprintf(&conf, "  - {name: %s, type: puppet, access: %s}\n", p.name, cmp.Or(p.access, access))
	}
	conf.WriteString(extra + "\n")
	path := filepath.Join(dir, "parley.yaml")
	if err := os.WriteFile(path, []byte(conf.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	none := func(string) (string, bool) { return "", false }
	src := source.New(configs.LoadOptions{Path: path, Sections: []configs.Section{{Type: "puppet", Options: options}}, Env: none})
	if _, err := src.Load(); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
	opt := Options{Source: src, Channels: []channels.Factory{f}, Env: none, Log: log, MemoryLimit: 4 << 30}
	if change != nil {
		change(&opt)
	}
	Starts.By(t)
	g := New(opt)
	if err := g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := g.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return g
}

// of is the puppet as a part of a test sees it.
func (p *puppet) of(t *testing.T) *puppet {
	p.t = t
	return p
}

// seat is a test's own in a gateway that several share: a puppet, and an owner on it, whose account is 7.
type seat struct {
	*puppet
	g *Gateway
}

// seated runs tests at the same time on one gateway. In extra the channel of a test is written {{its name}}.
func seated(t *testing.T, extra string, prepare func(*Gateway), tests map[string]func(*seat)) {
	t.Helper()
	names := slices.Sorted(maps.Keys(tests))
	var list []*puppet
	people := "\npeople:\n"
	for i, name := range names {
		p := newPuppet(t, string(rune('a'+i)))
		list = append(list, p)
		extra = strings.ReplaceAll(extra, "{{"+name+"}}", p.name)
		people += fmt.Sprintf("  - {id: ana-%s, name: Ana, role: owner, accounts: [{channel: %s, user: \"7\"}]}\n", p.name, p.name)
	}
	g := startPuppets(t, "{dm: open}", extra+people, nil, list...)
	if prepare != nil {
		prepare(g)
	}
	var running sync.WaitGroup
	for i, name := range names {
		running.Go(func() {
			t.Run(name, func(t *testing.T) {
				list[i].t = t
				tests[name](&seat{list[i], g})
			})
		})
	}
	running.Wait()
}

// owner is the configured name of the seat's owner.
func (s *seat) owner() string { return "ana-" + s.name }

// query asks for rows of the seat's own.
func (s *seat) query(q string) []string {
	s.t.Helper()
	runs := `(SELECT id FROM main.runs WHERE room_id IN (SELECT id FROM rooms))`
	var views []string
	for _, v := range [][2]string{
		{"rooms", "account = '" + string(s.Account()) + "'"}, {"inputs", "account = '" + string(s.Account()) + "'"}, {"runs", "id IN " + runs},
		{"approvals", "run_id IN " + runs}, {"outbound", "room_id IN (SELECT id FROM rooms)"}, {"parts", "outbound_id IN (SELECT id FROM outbound)"},
		{"sessions", "id IN (SELECT session_id FROM inputs)"},
	} {
		views = append(views, fmt.Sprintf("CREATE TEMP VIEW %s AS SELECT * FROM main.%s WHERE %s", v[0], v[0], v[1]))
	}
	return query(s.t, s.g, q, views...)
}

// query asks the database of a gateway for lines of "a|b|c", after what is to be done first; with write it may change it
// behind the gateway's back.
func query(t *testing.T, g *Gateway, q string, first ...string) (out []string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(g.opt.Source.Current().DataDir, "parley.db")+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	one, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	for _, s := range first {
		if _, err := one.ExecContext(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := one.QueryContext(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		cells, to := make([]any, len(names)), make([]any, len(names))
		for i := range cells {
			to[i] = &cells[i]
		}
		if err := rows.Scan(to...); err != nil {
			t.Fatal(err)
		}
		var line []string
		for _, c := range cells {
			line = append(line, fmt.Sprint(c))
		}
		out = append(out, strings.Join(line, "|"))
	}
	return out
}
