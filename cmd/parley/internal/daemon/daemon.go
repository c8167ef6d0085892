// Package daemon runs the gateway as a process: signals, its log, and what a service manager hears of it.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"parley/channels/all"
	"parley/cmd/parley/internal/cli"
	"parley/configs/source"
	"parley/gateway"
)

// Drain is how long a stop may take.
const Drain = 25 * time.Second

func Command(a *cli.App) *cobra.Command {
	var level string
	var accept, fresh bool
	to := Log{To: a.Errs}
	c := &cobra.Command{Use: "gateway", Short: "Run the daemon", Args: cobra.NoArgs,
		Long: "Run the daemon until SIGTERM or SIGINT, which let running turns end for up to 25 seconds; a second one ends it at " +
			"once. SIGHUP reads the configuration again."}
	c.Flags().StringVar(&level, "log-level", "info", "least `level` that is logged: debug, info, warn, error")
	c.Flags().BoolVar(&to.JSON, "log-json", false, "log JSON lines instead of text")
	c.Flags().BoolVar(&accept, "accept-loss", false, "once: go on with a database that lacks what it held; the audit log tells of it")
	c.Flags().BoolVar(&fresh, "fresh", false, "once: move a data directory that lacks its database aside, into a folder in it, and "+
		"begin from nothing")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := to.Least.UnmarshalText([]byte(level)); err != nil {
			return cli.Misuse(fmt.Errorf("there is no log level %q", level))
		}
		if accept && fresh {
			return cli.Misuse(errors.New("--accept-loss and --fresh exclude each other"))
		}
		err := serve(c.Context(), a, to, gateway.OnLoss(accept, fresh))
		if gateway.NeedsOperator(err) {
			err = cli.Misuse(err) // a service manager need not try again
		}
		return err
	}
	return c
}

// serve runs the daemon. Signals are taken from the beginning, so that one during the start counts too.
func serve(ctx context.Context, a *cli.App, to Log, onLoss gateway.LossOption) error {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	// whoever read our output may leave; the daemon stays. Ignored, it would be ignored by what exec runs too
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	defer signal.Stop(pipes)
	src, _, err := a.Load()
	if err != nil {
		return err
	}
	g, log := New(src, a.Version, to, onLoss)
	starting, cancel := context.WithCancel(ctx)
	defer cancel()
	started := make(chan error, 1)
	go func() { started <- g.Start(starting) }() // waited for below, or the process ends
	for {
		select {
		case err := <-started:
			if err != nil {
				return cli.Hint(err)
			}
			started = nil
			fmt.Fprintf(a.Out, "Parley is ready: %s (talk to it with: %s chat)\n", g.URL(), cli.Program())
			if intoJournal(a.Out, os.Getenv("JOURNAL_STREAM")) {
				fmt.Fprintf(a.Out, "WebChat: %s (%s webchat prints a link to sign in with)\n", g.URL(), cli.Program())
			} else {
				fmt.Fprint(a.Out, cli.SignInLinks(g.SignInURL()))
			}
			if err := tellManager("READY=1"); err != nil {
				log.Warn("service manager not notified", "err", err)
			}
			log.Info("ready", "url", g.URL(), "version", a.Version, "config", src.Current().Path, "data", src.Current().DataDir)
		case err := <-g.Failed():
			log.Error("gateway failed", "err", err)
			return errors.Join(err, stop(ctx, g, signals, log))
		case s := <-signals:
			if s == syscall.SIGHUP {
				g.Reload()
				continue
			}
			log.Info("stopping", "signal", s.String())
			_ = tellManager("STOPPING=1") // it is only shown
			if started != nil {
				cancel()
				if err := <-started; err != nil {
					return err
				}
			}
			return stop(ctx, g, signals, log)
		case <-ctx.Done():
			return stop(context.WithoutCancel(ctx), g, signals, log)
		}
	}
}

// Log is where and how the daemon logs.
type Log struct {
	To    io.Writer
	Least slog.Level
	JSON  bool // lines of JSON in place of text
}

// New makes a gateway that logs there and into its own book.
func New(src *source.Source, version string, to Log, onLoss gateway.LossOption) (*gateway.Gateway, *slog.Logger) {
	book := gateway.NewLogbook()
	hide := gateway.NewSecrets(src.Current, os.LookupEnv)
	log := slog.New(newLogHandler(to, hide.Redact, book.Handler))
	return gateway.New(gateway.Options{Source: src, Channels: all.Factories(), Log: log, Book: book, Secrets: hide, Version: version,
		OnLoss: onLoss}), log
}

// errTwice ends the process at once on a second signal (R08): what is not finished is taken up at the next start.
var errTwice = errors.New("stopped at once by a second signal")

func stop(ctx context.Context, g *gateway.Gateway, signals <-chan os.Signal, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, Drain)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- g.Stop(ctx) }() // waited for below, or the process ends
	for {
		select {
		case err := <-done:
			if err == nil {
				log.Info("stopped")
			}
			return err
		case s := <-signals:
			if s != syscall.SIGHUP {
				return errTwice
			}
		}
	}
}
