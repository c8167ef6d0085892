package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"time"

	"parley/channels"
	"parley/channels/webchat"
	"parley/configs"
	"parley/gateway/api"
	"parley/gateway/api/signin"
	"parley/gateway/command"
	"parley/gateway/control"
	"parley/gateway/snapshot"
	"parley/workspace"
	"parley/workspace/store"
)

// server is the one HTTP listener.
type server struct {
	listener net.Listener
	http     *http.Server
	tls      bool
}

func (s *server) addr() string {
	if s == nil {
		return ""
	}
	return s.listener.Addr().String()
}

// lastWords is how long requests have to end when the gateway stops.
const lastWords = 2 * time.Second

// listen opens the port and serves until Stop.
func (g *Gateway) listen(c *configs.Config) error {
	if err := makeToken(c); err != nil {
		return fmt.Errorf("make the gateway's token: %w", err)
	}
	l, err := (&net.ListenConfig{}).Listen(g.base, "tcp", c.Gateway.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", c.Gateway.Listen, err)
	}
	handler := g.handler(c, l.Addr().String())
	g.api = handler
	s := &server{listener: l, tls: c.Gateway.TLS.Cert != "", http: &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(g.log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return g.base }, ConnContext: handler.Conns.ConnContext, ConnState: handler.Conns.ConnState}}
	l = handler.Conns.Listen(l)
	g.server = s
	done := make(chan struct{})
	go func() { // ends with Shutdown or Close below, which wait for done
		defer close(done)
		var err error
		if s.tls {
			err = s.http.ServeTLS(l, c.Gateway.TLS.Cert, c.Gateway.TLS.Key)
		} else {
			err = s.http.Serve(l)
		}
		if !errors.Is(err, http.ErrServerClosed) {
			g.unserved.Set(err)
			select {
			case g.failed <- fmt.Errorf("serve HTTP: %w", err):
			default:
			}
		}
	}()
	g.stops.push("http", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords) // also when all other time is used up
		defer cancel()
		handler.Close() // streams and waiters end with a word: their readers resume by number
		err := s.http.Shutdown(ctx)
		if err != nil {
			err = s.http.Close()
		}
		<-done
		return err
	})
	return nil
}

// URL is where the listener is reached from this machine.
func (g *Gateway) URL() string {
	if g.server == nil {
		return ""
	}
	scheme := "http"
	if g.server.tls {
		scheme = "https"
	}
	host, port, err := net.SplitHostPort(g.Addr())
	if err != nil {
		return ""
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

// SignInURL is a fresh link for a browser, and the same for one elsewhere: its one-time code stands behind the #, which no log sees.
func (g *Gateway) SignInURL() (here, elsewhere string) {
	if err := g.store.Audit(workspace.AuditRow{Kind: workspace.AuditSignInCode, Via: "start"}); err != nil {
		g.log.Error("audit row is not kept", "kind", workspace.AuditSignInCode, "err", err)
	}
	code, _ := g.api.Guard.Invite(nil)
	return g.URL() + signin.PathOf(code), g.api.Guard.Elsewhere(code)
}

// handler is what the listener serves. It reads what can change by a reload again for each request.
func (g *Gateway) handler(c *configs.Config, addr string) *api.Server {
	return api.New(api.Options{Hide: g.hide(), Page: webchat.Page(), Live: g.live,
		Control: g.control, Feed: g.feed, Log: g.log, Now: g.opt.Now, Ready: g.ready, Metrics: g.metrics,
		SignIn: signin.Options{Token: g.token, Hosts: func() []string { return g.config().Gateway.AllowedHosts }, Addr: addr,
			Public: func() string { return g.config().Gateway.PublicURL },
			TLS:    c.Gateway.TLS.Cert != "", Ended: ended{g.store}},
		Commands: func(call control.Call) (list []api.Command) {
			for _, c := range command.Shown(g.control, call) {
				list = append(list, api.Command{Name: c.Name, Aliases: append([]string{}, c.Aliases...), Args: c.Args, Help: c.Help, Example: c.Example})
			}
			return list
		},
		Network: g.network, Systems: g.questions,
		Writes: func() int { return g.config().Gateway.WritesPerSecond },
		Owner:  func() workspace.Actor { return snapshot.OwnerNow(g.config(), g.localActor(workspace.LocalOwner)) }})
}

// network is what serves a channel's own HTTP calls; nil where it takes none.
func (g *Gateway) network(name string) http.Handler {
	if l := g.channels.Named(name); l != nil {
		if m, ok := channels.As[channels.Mounter](l.Adapter); ok {
			return m.Handler()
		}
	}
	return nil
}

// ready says why the gateway cannot do its work, if it cannot.
func (g *Gateway) ready() error {
	if health, why := g.store.Health(); health == store.Unwritable || health == store.Damaged {
		return fmt.Errorf("the store is %s: %s", health, why)
	}
	if g.memory.high() {
		return errors.New("memory is short: new messages are refused for the moment")
	}
	for _, l := range g.channels.All() {
		if v := l.View(); v.State == channels.Failed {
			return fmt.Errorf("channel %s: %s", v.Name, v.Cause)
		}
	}
	return nil
}

// metrics are the counters of intake, lanes and store.
func (g *Gateway) metrics(w io.Writer) {
	in, n := g.intake.Counts(), g.store.Counts()
	api.Metric(w, "parley_inputs_accepted_total", "counter", "Inputs journalled.", in.Accepted)
	api.Metric(w, "parley_inputs_duplicate_total", "counter", "Inputs that had been journalled before.", in.Duplicates)
	api.Metric(w, "parley_inputs_refused_total", "counter", "Inputs that the gate refused.", in.Refused)
	api.Metric(w, "parley_inputs_shed_total", "counter", "Inputs not taken since memory was short.", in.Shed)
	api.Metric(w, "parley_store_units_total", "counter", "Units of work committed.", n.Units)
	api.Metric(w, "parley_store_commits_total", "counter", "Commits.", n.Commits)
	api.Metric(w, "parley_store_commits_waited_total", "counter", "Units that somebody waited for.", n.Waited)
	api.Metric(w, "parley_store_statements_total", "counter", "Statements run by the writer.", n.Statements)
	api.Metric(w, "parley_store_replays_total", "counter", "Units run again since one of their batch failed.", n.Replays)
	api.Metric(w, "parley_store_queue", "gauge", "Units that wait for the writer.", g.store.QueueLen())
	held, waiting := g.memory.answers.Held()
	api.Metric(w, "parley_memory_bytes", "gauge", "Memory in use, that what is measured against the ceiling.", g.memory.now.Load())
	api.Metric(w, "parley_answers_held_bytes", "gauge", "Memory set aside for long answers of models, in bytes.", held)
	api.Metric(w, "parley_answers_waiting", "gauge", "Long answers that wait for memory.", waiting)
	g.approvalMetrics(w)
	if s, ok := g.disk.Space(g.opt.Source.Current().DataDir); ok {
		api.Metric(w, "parley_disk_free_bytes", "gauge", "Free bytes on the disk of the data directory.", s.Free)
		api.Metric(w, "parley_disk_floor_bytes", "gauge", "Bytes that stay free for the gateway: floor and reserve.", s.Floor+s.Reserve)
	}
	stopped, refused := g.disk.Counts()
	api.Metric(w, "parley_disk_stopped_total", "counter", "Commands stopped since the disk or their work folder was full.", stopped)
	api.Metric(w, "parley_disk_refused_total", "counter", "Commands and writes refused since the disk or the work folder was full.", refused)
	api.Metric(w, "parley_goroutines", "gauge", "Goroutines.", runtime.NumGoroutine())
	api.Metric(w, "parley_uptime_seconds", "gauge", "Seconds since the start.", g.opt.Now().Sub(g.began).Seconds())
}

// approvalMetrics writes how many questions stand, for how long, and how they were answered since the start.
func (g *Gateway) approvalMetrics(w io.Writer) {
	n, oldest, err := g.questions.Pending()
	if err != nil {
		g.log.Error("open approvals not counted", "err", err)
	}
	api.Metric(w, "parley_approvals_pending", "gauge", "Questions that wait for a person.", n)
	api.Metric(w, "parley_approvals_oldest_seconds", "gauge", "Age of the oldest of them.", oldest.Seconds())
	api.Metric(w, "parley_approvals_granted", "gauge", "Commands and tools that are allowed in a session and run there without a question.", g.questions.Standing())
	g.questions.WriteDecided(w)
	_, turns := g.turns.Lanes().Count()
	api.Metric(w, "parley_turns_running", "gauge", "Turns that run; those that wait for a person do not.", turns)
}
