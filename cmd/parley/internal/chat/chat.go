// Package chat is the chat in a terminal, or line by line from a pipe.
package chat

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

	"parley/cmd/parley/internal/cli"
	"parley/cmd/parley/internal/printer"
	"parley/gateway/client"
	"parley/gateway/control"
	runs "parley/gateway/control/run"
	"parley/gateway/control/session"
)

func Command(a *cli.App) *cobra.Command {
	talk := &conversation{App: a}
	c := &cobra.Command{Use: "chat", Short: "Talk to a running gateway", Args: cobra.NoArgs,
		Long: "Talk to a running gateway, in a terminal or line by line from a pipe. What begins with / is a command: /help lists " +
			"them, Tab completes, /quit leaves. In a terminal Alt-Enter (or Ctrl-J) begins a new line, a paste stays one message, " +
			"up and down go through what was said before, and what you send during an answer is handed to it. A question of the agent " +
			"is answered by y, n, e (deny and say why) or the arrows and Enter; on a pipe by /approve in another chat. Ctrl-C stops the " +
			"running turn; twice, or at an empty prompt, it leaves."}
	c.Flags().StringVar(&talk.session, "session", "main", "`name` of the session, or a whole session key")
	c.Flags().StringVar(&talk.agent, "agent", "", "`id` of the agent (default: the default agent)")
	c.RunE = func(c *cobra.Command, _ []string) error {
		cl, err := a.AwaitClient(c.Context())
		if err != nil {
			return err
		}
		defer cl.Close()
		talk.client = cl
		return talk.run(c.Context())
	}
	return c
}

// conversation is one chat at a terminal or a pipe.
type conversation struct {
	*cli.App
	client         *client.Client
	session, agent string
	offline        bool   // the built-in responder answers, whose words are this program's own
	follows        string // the key of the session that a terminal watches; empty: it is not begun yet
	signals        chan os.Signal
}

// Run is a chat with the default agent, to its end.
func Run(ctx context.Context, a *cli.App, cl *client.Client, session string) error {
	return (&conversation{App: a, client: cl, session: session}).run(ctx)
}

// errLeave ends a chat.
var errLeave = errors.New("leave")

func (t *conversation) run(ctx context.Context) error {
	if err := t.greet(ctx); err != nil {
		return err
	}
	if in, ok := t.Terminal(); ok {
		return t.inTerminal(ctx, in)
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
			fmt.Fprintln(t.Errs, "parley: "+cli.Visible(cli.Hinted(err.Error())))
		}
	}
}

// greet says to whom one speaks, and what is not as it should be.
func (t *conversation) greet(ctx context.Context) error {
	st, err := cli.Status(ctx, t.client, "")
	if err != nil {
		return cli.Hint(err)
	}
	if _, ok := t.Terminal(); ok {
		who := st.Agent.Name
		if t.agent != "" {
			who = t.agent
		}
		fmt.Fprintf(t.Out, "Talking to %s. /help lists commands, Alt-Enter makes a new line, /quit leaves.\n", cli.Visible(who))
	}
	for _, m := range st.Models {
		if m.Offline {
			t.offline = true
			fmt.Fprintln(t.Errs, cli.Hinted("note: no model is configured, so the built-in responder answers. To add one: parley onboard"))
		}
	}
	if st.Health != "ok" {
		fmt.Fprintf(t.Errs, "note: the store is %s. %s\n", cli.Visible(st.Health), cli.Visible(st.Reason))
	}
	return nil
}

// inTerminal is a chat on a terminal: the session is watched while somebody types.
func (t *conversation) inTerminal(ctx context.Context, in *os.File) error {
	word := t.session
	if t.agent != "" && !strings.ContainsAny(word, ":/") {
		word = t.agent + "/" + word
	}
	w := &watcher{client: t.client, key: word}
	key, err := w.begin(ctx)
	if err != nil {
		return err
	}
	t.follows = key
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	v := newView(ctx, t, openHistory(historyFile()))
	p := tea.NewProgram(v, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(t.Out))
	done := make(chan struct{})
	go func() { // ends with ctx
		defer close(done)
		w.run(ctx, p.Send)
	}()
	_, err = p.Run()
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

// begin leaves out what was said before, and returns the whole key of the session.
func (w *watcher) begin(ctx context.Context) (key string, err error) {
	ses, err := session.Show.Ask(ctx, w.client, session.BySession{Session: control.SessionWord(w.key)})
	var p *client.Problem
	if errors.As(err, &p) && p.Status == http.StatusNotFound {
		return "", nil // nothing was said in it yet
	}
	w.session, w.after = ses.SessionID, ses.Sequence
	return ses.Key, err
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
			send(brokenMsg{cli.Hint(err)})
			return
		}
		for err = errLost; err != nil; err = w.client.Wait(ctx, cli.ComeBack) {
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
		scan := bufio.NewScanner(t.In)
		scan.Buffer(nil, cli.MaxTyped)
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
		if err := t.client.Wait(ctx, cli.ComeUp); err != nil {
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
	p := &printer.Printer{Out: t.Out, Errs: t.Errs}
	err = p.Follow(ctx, t.client, got.InputID)
	p.EndLine()
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
		fmt.Fprintln(t.Errs, "\n(stopping; once more leaves)")
		if err := t.stop(ctx, input); err != nil {
			fmt.Fprintln(t.Errs, "parley: "+cli.Visible(cli.Hinted(err.Error())))
		}
	}
}

// stop ends the turn that a message is in.
func (t *conversation) stop(ctx context.Context, input string) error {
	_, err := runs.Stop.Ask(ctx, t.client, runs.ByRun{Run: control.RunWord(input)})
	return err
}
