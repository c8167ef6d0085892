package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"parley/gateway/client"
	"parley/gateway/control"
	runs "parley/gateway/control/run"
	"parley/gateway/control/session"
)

const (
	comeUp   = 10 * time.Second // how long a chat waits for its gateway
	comeBack = time.Minute      // and for one that went away during a turn
	maxTyped = 256 << 10
)

func (a *app) chatCommand() *cobra.Command {
	talk := &conversation{app: a}
	c := &cobra.Command{Use: "chat", Short: "Talk to a running gateway", Args: cobra.NoArgs,
		Long: "Talk to a running gateway, in a terminal or line by line from a pipe. What begins with / is a command: /help lists them, Tab completes, /quit leaves. In a terminal Alt-Enter (or Ctrl-J) begins a new line, a paste stays one message, up and down go through what was said before, and what you send during an answer is handed to it. Ctrl-C stops the running turn; twice, or at an empty prompt, it leaves."}
	c.Flags().StringVar(&talk.session, "session", "main", "`name` of the session, or a whole session key")
	c.Flags().StringVar(&talk.agent, "agent", "", "`id` of the agent (default: the default agent)")
	c.RunE = func(c *cobra.Command, _ []string) error {
		cl, err := a.awaited(c.Context())
		if err != nil {
			return err
		}
		defer cl.Close()
		talk.client = cl
		return talk.run(c.Context())
	}
	return c
}

// awaited is client, for a gateway that may be starting. Only when it answers is its token there to be read.
func (a *app) awaited(ctx context.Context) (*client.Client, error) {
	cl, err := a.client()
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	if err := cl.Wait(ctx, comeUp); err != nil {
		return nil, hint(err)
	}
	return a.client()
}

// conversation is one chat at a terminal or a pipe.
type conversation struct {
	*app
	client         *client.Client
	session, agent string
	signals        chan os.Signal
}

// errLeave ends a chat.
var errLeave = errors.New("leave")

func (t *conversation) run(ctx context.Context) error {
	if err := t.greet(ctx); err != nil {
		return err
	}
	if in, ok := t.terminal(); ok {
		return t.converse(ctx, in)
	}
	t.signals = make(chan os.Signal, 2)
	signal.Notify(t.signals, os.Interrupt)
	defer signal.Stop(t.signals)
	next, done := t.reader()
	defer done()
	for {
		line, err := next(ctx)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, errLeave):
			return nil
		case err != nil:
			return err
		}
		line = strings.TrimSpace(line)
		switch line {
		case "":
			continue
		case "/quit", "/exit":
			return nil
		}
		switch err := t.say(ctx, line); {
		case errors.Is(err, errLeave):
			return nil
		case errors.Is(err, client.ErrUnreachable):
			return err
		case err != nil:
			fmt.Fprintln(t.errs, "parley: "+visible(err.Error()))
		}
	}
}

// greet says to whom one speaks, and what is not as it should be.
func (t *conversation) greet(ctx context.Context) error {
	st, err := status(ctx, t.client, "")
	if err != nil {
		return hint(err)
	}
	if _, ok := t.terminal(); ok {
		who := st.Agent.Name
		if t.agent != "" {
			who = t.agent
		}
		fmt.Fprintf(t.out, "Talking to %s. /help lists commands, Alt-Enter makes a new line, /quit leaves.\n", visible(who))
	}
	for _, m := range st.Models {
		if m.Offline {
			fmt.Fprintln(t.errs, "note: no model is configured, so the built-in responder answers. Run parley onboard to add one, or see docs/models.md.")
		}
	}
	if st.Health != "ok" {
		fmt.Fprintf(t.errs, "note: the store is %s. %s\n", visible(st.Health), visible(st.Reason))
	}
	return nil
}

// terminal is standard input as a terminal with somebody at it.
func (t *conversation) terminal() (*os.File, bool) {
	in, ok := t.in.(*os.File)
	return in, ok && isTerminal(in) && isTerminal(t.out) && os.Getenv("TERM") != "dumb"
}

// converse is a chat on a terminal: the session is watched while somebody types.
func (t *conversation) converse(ctx context.Context, in *os.File) error {
	word := t.session
	if t.agent != "" && !strings.ContainsAny(word, ":/") {
		word = t.agent + "/" + word
	}
	w := &watcher{client: t.client, key: word}
	if err := w.begin(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	v := newView(ctx, t, openHistory(historyFile()))
	p := tea.NewProgram(v, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(t.out))
	done := make(chan struct{})
	go func() { // ends with ctx
		defer close(done)
		w.run(ctx, p.Send)
	}()
	_, err := p.Run()
	cancel()
	<-done
	if errors.Is(err, tea.ErrInterrupted) || errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		err = nil
	}
	return errors.Join(err, v.err)
}

// watcher follows a session over generations, and over a gateway that is started again.
type watcher struct {
	client  *client.Client
	key     string
	session string // id of the generation
	after   int64  // sequence of the newest stored event
}

// begin leaves out what was said before.
func (w *watcher) begin(ctx context.Context) error {
	ses, err := session.Show.Ask(ctx, w.client, session.BySession{Session: control.SessionWord(w.key)})
	var p *client.Problem
	if errors.As(err, &p) && p.Status == http.StatusNotFound {
		return nil // nothing was said in it yet
	}
	w.session, w.after = ses.SessionID, ses.Sequence
	return err
}

// run hands over what happens until ctx ends.
func (w *watcher) run(ctx context.Context, send func(tea.Msg)) {
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	for {
		path := "/v1/sessions/" + url.PathEscape(w.key) + "/events"
		if w.session != "" {
			path += "?session_id=" + url.QueryEscape(w.session)
		}
		err := w.client.Events(ctx, path, w.after, func(e client.Event) error {
			w.see(e)
			send(eventMsg{e})
			return nil
		})
		var p *client.Problem
		switch {
		case ctx.Err() != nil:
			return
		case errors.As(err, &p) && p.Status < http.StatusInternalServerError:
			send(brokenMsg{hint(err)})
			return
		}
		for err = errLost; err != nil; err = w.client.Wait(ctx, comeBack) {
			send(awayMsg{err})
			select { // a gateway that stops still answers for a moment
			case <-ctx.Done():
				return
			case <-again.C:
			}
		}
		send(awayMsg{})
	}
}

// errLost says that a stream was cut.
var errLost = errors.New("the stream was cut")

func (w *watcher) see(e client.Event) {
	if e.SessionID != "" && e.SessionID != w.session {
		w.session, w.after = e.SessionID, 0
	}
	if n, err := strconv.ParseInt(e.ID, 10, 64); err == nil {
		w.after = n
	}
}

// reader reads lines as they come.
func (t *conversation) reader() (next func(context.Context) (string, error), done func()) {
	lines := make(chan string)
	ended := make(chan error, 1)
	stop := make(chan struct{})
	go func() { // ends with its input or with stop; a read that never returns ends with the process
		scan := bufio.NewScanner(t.in)
		scan.Buffer(nil, maxTyped)
		for scan.Scan() {
			select {
			case lines <- scan.Text():
			case <-stop:
				return
			}
		}
		ended <- scan.Err()
	}()
	return func(ctx context.Context) (string, error) {
		select {
		case line := <-lines:
			return line, nil
		case err := <-ended:
			return "", errors.Join(err, io.EOF)
		case <-t.signals:
			return "", errLeave
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}, func() { close(stop) }
}

// say sends one line and prints what comes of it.
func (t *conversation) say(ctx context.Context, line string) error {
	m := client.Message{Agent: t.agent, Session: t.session, Text: line, Key: rand.Text()}
	got, err := t.client.Send(ctx, m)
	if err != nil && errors.As(err, new(*client.Problem)) {
		return err
	}
	if err != nil { // it may have arrived: the key makes a second one harmless
		if err := t.client.Wait(ctx, comeUp); err != nil {
			return err
		}
		if got, err = t.client.Send(ctx, m); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watching := make(chan struct{})
	defer close(watching)
	go t.interrupts(ctx, cancel, got.InputID, watching) // ends with watching
	p := &printer{out: t.out, errs: t.errs}
	err = t.watch(ctx, got.InputID, p)
	p.end()
	if errors.Is(context.Cause(ctx), errLeave) {
		return errLeave
	}
	return err
}

// interrupts stops the turn at the first Ctrl-C and leaves at the second.
func (t *conversation) interrupts(ctx context.Context, cancel context.CancelCauseFunc, input string, done <-chan struct{}) {
	for n := 0; ; n++ {
		select {
		case <-done:
			return
		case <-t.signals:
		}
		if n > 0 {
			cancel(errLeave)
			return
		}
		fmt.Fprintln(t.errs, "\n(stopping; once more leaves)")
		if err := t.stop(ctx, input); err != nil {
			fmt.Fprintln(t.errs, "parley: "+visible(err.Error()))
		}
	}
}

// stop ends the turn that a message is in.
func (t *conversation) stop(ctx context.Context, input string) error {
	_, err := runs.Stop.Ask(ctx, t.client, runs.ByRun{Run: control.RunWord(input)})
	return err
}

// watch follows a run to its end, over a gateway that is started again in between.
func (t *conversation) watch(ctx context.Context, input string, p *printer) error {
	for {
		err := t.client.Events(ctx, "/v1/runs/"+url.PathEscape(input)+"/events", p.after, p.see)
		if p.ended || ctx.Err() != nil || errors.As(err, new(*client.Problem)) {
			return err
		}
		if err := t.client.Wait(ctx, comeBack); err != nil {
			return err
		}
		var run struct{ State string }
		if err := t.client.Get(ctx, "/v1/runs/"+url.PathEscape(input), &run); err != nil {
			return err
		}
		if over(run.State) {
			return nil
		}
	}
}
