// Package gateway is the building that holds the rooms of the house together. It wires them, starts and stops them,
// and owns what a crash leaves behind (recover.go).
//
// Goroutines: one per channel, the lanes', the rooms', the sweeper, the watcher of the configuration, and the HTTP
// server's. Stop ends all of them before it returns.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"parley/agentloop"
	"parley/agentloop/llm/price"
	"parley/channels"
	"parley/channels/webchat"
	"parley/configs"
	"parley/configs/source"
	"parley/gateway/api"
	"parley/gateway/approval"
	"parley/gateway/attachment"
	"parley/gateway/bus"
	"parley/gateway/command"
	"parley/gateway/control/all"
	"parley/gateway/delivery"
	"parley/gateway/intake"
	"parley/gateway/live"
	"parley/gateway/logbook"
	"parley/gateway/setup"
	"parley/gateway/snapshot"
	"parley/gateway/transcript"
	"parley/gateway/transport"
	"parley/gateway/turn"
	"parley/tools"
	"parley/tools/sandbox"
	"parley/workspace"
	"parley/workspace/blob"
	"parley/workspace/disk"
	"parley/workspace/folder"
	"parley/workspace/store"
	"parley/workspace/workers"
)

// Options of a Gateway.
type Options struct {
	Source   *source.Source // loaded
	Channels []channels.Factory
	Env      configs.Lookup // for the discovery of models; nil: the process's
	Now      func() time.Time
	Log      *slog.Logger
	Book     *logbook.Book // in which Log keeps its newest lines; nil: nothing is shown of it
	Secrets  *Secrets      // the one that stands before Log; nil: New makes one
	Version  string
	Tools    []tools.Tool // beside the built-in ones, which keep their names
	// Sandbox runs commands in place of what the configuration names; nil: that.
	Sandbox sandbox.Backend
	// Synchronous is the store's, for the test that proves that it matters.
	Synchronous string
	// Point is the store's, for tests that end the process in the middle of something.
	Point func(name string)
	// OnLoss is the store's: what a start does about a database that lacks what it held.
	OnLoss store.OnLoss
	// MemoryLimit in bytes; new input is refused near it. 0: 200 MiB.
	MemoryLimit int64
}

// Gateway is one running daemon as a value.
type Gateway struct {
	opt   Options
	log   *slog.Logger
	http  *http.Client // the one pooled client of SDKs
	calls *http.Client // the one of models

	life
	kept
	stations
	surfaces
	bus       *bus.Bus
	feed      *live.Feed
	memory    *memory
	snapshots *snapshot.Source
	conf      fileState
}

// life is from Start to Stop.
type life struct {
	base    context.Context
	cancel  context.CancelFunc
	began   time.Time
	booted  time.Time // by a clock that nobody can set
	stops   stack
	stopped sync.Once
	stopErr error
	failed  chan error // a part that cannot go on
}

// kept is where things are stored, and where commands run.
type kept struct {
	store   *store.Store
	blobs   *blob.Store
	disk    *disk.Rule
	sandbox *snapshot.Sandbox
	warden  *folder.Warden // of owners' folders
}

// stations are what a message passes.
type stations struct {
	channels    *transport.Channels
	moves       *transport.Moves
	logins      *transport.Logins
	directory   *intake.Directory
	intake      *intake.Receiver
	turns       *turn.Turns
	transcripts *transcript.Cache
	questions   *approval.Questions
	rule        *approval.Rule
	deliver     *delivery.Outbox
	stale       *delivery.Stale
	setup       *setup.Setup
	unserved    setup.Trouble // why the listener serves no more
}

// surfaces are what people and programs use.
type surfaces struct {
	control *all.Nouns
	api     *api.Server
	web     *webchat.Channel
	server  *server
}

// New prepares a gateway and does no IO.
func New(opt Options) *Gateway {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Env == nil {
		opt.Env = os.LookupEnv
	}
	if opt.Secrets == nil && opt.Source != nil {
		opt.Secrets = NewSecrets(opt.Source.Current, opt.Env)
	}
	if opt.Book == nil {
		opt.Book = NewLogbook()
	}
	if opt.MemoryLimit == 0 {
		opt.MemoryLimit = 200 << 20
	}
	return &Gateway{opt: opt, log: opt.Log, http: newHTTPClient(4 << 10), calls: newHTTPClient(16 << 10), life: life{failed: make(chan error, 1)}}
}

// newHTTPClient is a pooled client: SDKs' own keep two idle connections and spend the processor on new ones. Each
// connection holds write bytes; a request that fits is one write.
func newHTTPClient(write int) *http.Client {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, MaxIdleConns: 2048, MaxIdleConnsPerHost: 512,
		WriteBufferSize: write,
		HTTP2:           &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second}, // a dead shared connection is noticed
		IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 10 * time.Second, ExpectContinueTimeout: time.Second, ForceAttemptHTTP2: true}}
}

// hide takes secrets out of text; reload and the making of the token keep it up to date.
func (g *Gateway) hide() *workspace.Redactor {
	g.opt.Secrets.look()
	return g.opt.Secrets.Redactor
}

// snapshot is the configuration in force, for one piece of work.
func (g *Gateway) snapshot() *snapshot.Snapshot { return g.snapshots.Current() }

// config is the configuration in force as written; keys that wait for a restart are as the process has them.
func (g *Gateway) config() *configs.Config { return g.snapshot().Config }

// Start opens everything in order — store, agents, routes, lanes, channels, HTTP — and returns when it listens.
// What is started before a failure is stopped again.
func (g *Gateway) Start(ctx context.Context) (err error) {
	g.began, g.booted = g.opt.Now(), time.Now()
	g.base, g.cancel = context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		if err != nil {
			err = g.opt.Secrets.hidden(errors.Join(err, g.Stop(ctx)))
		}
	}()
	c := g.opt.Source.Current()
	if err := g.openStore(ctx, c); err != nil {
		return err
	}
	if err := g.openAgents(c); err != nil {
		return err
	}
	if err := g.openChannels(c); err != nil {
		return err
	}
	g.openLocal()
	g.wire(c)
	if err := g.listen(c); err != nil {
		return err
	}
	if err := g.recoverAll(); err != nil {
		return fmt.Errorf("take up what was left: %w", err)
	}
	g.run(c)
	return nil
}

func (g *Gateway) openStore(ctx context.Context, c *configs.Config) (err error) {
	g.memory = newMemory(g.opt.MemoryLimit)
	debug.SetMemoryLimit(g.opt.MemoryLimit)
	debug.SetGCPercent(gcPercent)
	g.store, err = store.Open(ctx, store.Options{Dir: c.DataDir, Postgres: g.postgres(), Now: g.opt.Now, Log: g.log, Synchronous: g.opt.Synchronous,
		Point: g.opt.Point, Hide: g.hide().Redact, OnLoss: g.opt.OnLoss, Keep: setup.Kept(c.Path)})
	if err != nil {
		return fmt.Errorf("open the store in %s: %w", c.DataDir, err)
	}
	g.stops.push("store", func(context.Context) error { return g.store.Close() })
	g.bus = bus.New(g.store.Epoch())
	g.feed = live.New(g.bus)
	g.openDisk(c)
	g.blobs = blob.In(c.DataDir).Under(g.disk)
	if err := g.blobs.Tidy(); err != nil {
		g.log.Warn("partial blob files not removed", "err", err)
	}
	g.transcripts, g.moves = transcript.New(g.store), transport.NewMoves(g.store)
	g.directory = intake.NewDirectory(g.store, g.moves)
	return g.auditStart(c)
}

// postgres is the connection string of the second database; empty means SQLite.
func (g *Gateway) postgres() string {
	dsn, _ := g.opt.Env("PARLEY_POSTGRES")
	return dsn
}

func (g *Gateway) openAgents(c *configs.Config) error {
	prices, err := snapshot.LoadPrices(c, g.opt.Now)
	if err != nil {
		return fmt.Errorf("load prices: %w", err)
	}
	g.sandbox = snapshot.NewSandbox(c, snapshot.SandboxOptions{Backend: g.opt.Sandbox, Disk: g.disk, Log: g.log, Refused: g.auditEgress()})
	g.openWarden(c)
	g.stops.push("folders", func(context.Context) error {
		g.warden.Close()
		return nil
	})
	g.stops.push("sandbox", func(context.Context) error {
		g.sandbox.Close()
		return nil
	})
	g.warn(c)
	g.rule = approval.NewRule(g.store, func() map[string]snapshot.Domain { return g.snapshot().Domains }, g.opt.Now, g.log)
	g.snapshots = snapshot.New(snapshot.Options{Models: g.models(prices), Tools: g.tools(), Network: g.sandbox.Network, Guards: g.warden.Guard,
		Granted: g.rule.Commands, Prompts: &agentloop.Prompts{Now: g.opt.Now, Log: g.log, Hide: g.hide()},
		Loop: agentloop.Loop{Log: g.log, Now: g.opt.Now, Hide: g.hide(), Budget: g.memory.answers, Disk: g.disk}})
	p, err := g.snapshots.Prepare(c)
	if err != nil {
		return err
	}
	p.Commit()
	g.loadFolders(c)
	g.conf.took(c, g.opt.Now())
	return nil
}

// models opens models and finds one; with no prices nothing can be priced.
func (g *Gateway) models(prices *price.Table) *snapshot.Models {
	return snapshot.NewModels(snapshot.ModelOptions{Calls: g.calls, HTTP: g.http, Env: g.opt.Env, Prices: prices, Blobs: g.readBlob, Log: g.log})
}

func (g *Gateway) openChannels(c *configs.Config) error {
	g.channels = transport.NewChannels(transport.Options{Build: g.adapterIn(c.DataDir), Menu: command.Menu(), Alone: g.bus.Alone, Log: g.log, Now: g.opt.Now})
	first, err := g.channels.Prepare(c.Channels)
	if err == nil {
		g.channels.Apply(first)
	}
	return err
}

// adapterIn makes the adapters of configured channels, which keep their files in dir; nil: the network is not built in.
func (g *Gateway) adapterIn(dir string) func(configs.Channel) (channels.Channel, error) {
	return func(conf configs.Channel) (channels.Channel, error) {
		for _, f := range g.opt.Channels {
			if string(f.Network) != conf.Type {
				continue
			}
			ch, err := f.New(conf.Name, conf.Options, channels.Deps{Log: g.log.With("channel", conf.Name), HTTP: g.http, Clock: clock(g.opt.Now), Dir: dir})
			if err != nil {
				return nil, fmt.Errorf("channel %q: %w", conf.Name, err)
			}
			return ch, nil
		}
		return nil, nil
	}
}

type clock func() time.Time

func (c clock) Now() time.Time { return c() }

// wire connects the rooms. Nothing runs yet.
func (g *Gateway) wire(c *configs.Config) {
	g.stale = delivery.NewStale(delivery.StaleOptions{Store: g.store, After: func() time.Duration { return g.snapshot().StaleAfter }, Now: g.opt.Now, Log: g.log})
	g.deliver = delivery.New(g.base, delivery.Options{Store: g.store, Channels: g.channels, Moves: g.moves, Blobs: g.blobs, Hide: g.hide(), Now: g.opt.Now, Log: g.log}, g.stale)
	if g.store.Crashed() {
		g.deliver.AfterCrash(g.booted)
	}
	g.stops.push("delivery", func(ctx context.Context) error {
		g.deliver.Drain(ctx, flushTime)
		return nil
	})
	g.questions = approval.New(g.base, approval.Options{Rule: g.rule, Store: g.store, Systems: g.http.Transport, Feed: g.feed, Bus: g.bus, Now: g.opt.Now, Log: g.log,
		Rooms: approval.NewRooms(approval.RoomOptions{Store: g.store, Rule: g.rule, Outbox: g.deliver, Channels: g.channels, KeepFile: g.blobs.Put, Log: g.log})})
	commands := command.NewRunner(command.RunnerOptions{Rooms: g.deliver, Feed: g.feed, Local: g.channels.IsLocal, Log: g.log})
	g.turns = turn.New(g.base, c.Concurrency.Turns, turn.Options{Store: turn.Over(g.store), Transcripts: g.transcripts, Delivery: g.deliver, Channels: g.channels,
		Attachments: attachment.New(attachment.Options{Blobs: g.blobs, Channels: g.channels, Store: g.store, Log: g.log, Now: g.opt.Now}), Questions: g.questions,
		Commands: commands.Run, Snapshot: g.snapshot, Feed: g.feed, Bus: g.bus, Hide: g.hide(), Now: g.opt.Now, Log: g.log})
	g.stops.push("lanes", func(ctx context.Context) error {
		g.turns.Drain(ctx)
		return nil
	})
	g.stops.push("approvals", func(context.Context) error {
		g.questions.Stop()
		return nil
	})
	g.stops.push("commands", func(context.Context) error {
		g.stale.Stop()
		commands.Wait()
		return nil
	})
	g.intake = intake.New(intake.Options{Store: g.store, Directory: g.directory, Channels: g.channels, Snapshot: g.snapshot,
		Onward:    intake.Onward{Lanes: g.turns.Lanes(), Commands: commands, Outbox: g.deliver, Stale: g.stale, Transcripts: g.transcripts, Feed: g.feed},
		Questions: g.questions, Overloaded: g.memory.high, Began: g.began, Hide: g.hide(), Now: g.opt.Now, Log: g.log})
	g.logins = transport.NewLogins(g.base, g.channels)
	g.setup = setup.New(setup.Options{Source: g.opt.Source, Audit: g.store.Audit, Hide: g.hide(), Base: g.base, Log: g.log, Now: g.opt.Now,
		Health: setup.Parts{Channels: g.channels, Store: g.store, Unserved: &g.unserved, HTTP: g.http}})
	g.control = g.nouns()
	commands.Serve(g.control, g.questions)
}

// changed drops what is remembered of a session whose record is another one now, and tells lists.
func (g *Gateway) changed(session string) {
	g.transcripts.Forget(session)
	g.feed.Changed(session)
}

const (
	flushTime      = 5 * time.Second // that a shutdown lets rooms send what is ready
	gcPercent      = 150             // trades memory for processor time: the heap is small, so a larger ratio costs little
	gcPercentTight = 40              // while most of the limit is in use
)

// run starts what takes in: channels, sweeper, the watch of the configuration.
func (g *Gateway) run(c *configs.Config) {
	var wg sync.WaitGroup
	ctx, stop := context.WithCancel(g.base)
	alone := func(what string, f func(context.Context)) { wg.Go(func() { g.bus.Alone(ctx, what, f) }) }
	wg.Go(func() {
		g.channels.Run(ctx, g.intake.For)
	})
	alone("sweep", g.sweep)
	wg.Go(func() { g.memory.watch(ctx) })
	wg.Go(func() { g.opt.Source.Watch(ctx, g.reload, g.badReload) })
	wg.Go(func() { g.setup.Resume(ctx) })
	wg.Go(func() { g.snapshots.Discover(ctx) })
	wg.Go(func() {
		defer workers.Guard(g.log, "sandbox probe")
		g.sandbox.Try(ctx)
	})
	alone("kept files", g.missBlobs)
	g.stops.push("intake", func(context.Context) error {
		stop()
		g.logins.Stop()
		wg.Wait()
		return nil
	})
}

// Addr is where HTTP listens.
func (g *Gateway) Addr() string { return g.server.addr() }

// Control is the verbs, for whoever runs the gateway inside their own process.
func (g *Gateway) Control() *all.Nouns { return g.control }

// Failed tells of a part that cannot go on, such as the listener.
func (g *Gateway) Failed() <-chan error { return g.failed }

// Reload reads the configuration again, as on SIGHUP.
func (g *Gateway) Reload() { g.opt.Source.Reload() }

// Stop takes in nothing more, lets turns end until ctx does, sends what is ready, and closes the store. What is not
// finished is taken up at the next start. Twice is fine.
func (g *Gateway) Stop(ctx context.Context) error {
	g.stopped.Do(func() {
		g.stopErr = g.stops.unwind(ctx, g.log)
		if g.cancel != nil {
			g.cancel()
		}
		g.http.CloseIdleConnections()
		g.calls.CloseIdleConnections()
	})
	return g.stopErr
}

// stack is what was started, by name, to be stopped in reverse.
type stack struct {
	mu   sync.Mutex
	list []named
}

type named struct {
	name string
	stop func(context.Context) error
}

func (s *stack) push(name string, stop func(context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, named{name, stop})
}

func (s *stack) unwind(ctx context.Context, log *slog.Logger) error {
	s.mu.Lock()
	list := s.list
	s.list = nil
	s.mu.Unlock()
	var errs []error
	for i := len(list) - 1; i >= 0; i-- {
		if err := list[i].stop(ctx); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", list[i].name, err))
		}
		log.Debug("stopped", "part", list[i].name)
	}
	return errors.Join(errs...)
}
