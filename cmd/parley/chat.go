package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"parley/gateway/client"
)

const (
	comeUp   = 10 * time.Second // how long a chat waits for its gateway
	comeBack = time.Minute      // and for one that went away during a turn
	maxTyped = 256 << 10
)

func (a *app) chatCommand() *cobra.Command {
	talk := &conversation{app: a}
	c := &cobra.Command{Use: "chat", Short: "Talk to a running gateway", Args: cobra.NoArgs,
		Long: "Talk to a running gateway, line by line, in a terminal or from a pipe. Lines that begin with / are commands: /help lists them, /quit leaves. Ctrl-C stops the running turn; twice, or at the prompt, it leaves."}
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
	t.signals = make(chan os.Signal, 2)
	signal.Notify(t.signals, os.Interrupt)
	defer signal.Stop(t.signals)
	next, done, err := t.reader()
	if err != nil {
		return err
	}
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
		fmt.Fprintf(t.out, "Talking to %s. /help lists commands, /quit leaves.\n", visible(st.Agent.Name))
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
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return nil, false
	}
	out, ok := t.out.(*os.File)
	return in, ok && term.IsTerminal(int(out.Fd()))
}

// reader reads lines: with editing and history at a terminal, else as they come.
func (t *conversation) reader() (next func(context.Context) (string, error), done func(), err error) {
	if in, ok := t.terminal(); ok {
		out := t.out.(*os.File)
		editor := term.NewTerminal(struct {
			io.Reader
			io.Writer
		}{in, out}, "› ")
		return func(context.Context) (string, error) { return edited(in, out, editor) }, func() {}, nil
	}
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
	}, func() { close(stop) }, nil
}

// edited reads one line in raw mode. The terminal is its old self while an answer is printed.
func edited(in, out *os.File, editor *term.Terminal) (string, error) {
	old, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return "", err
	}
	if w, h, err := term.GetSize(int(out.Fd())); err == nil && w > 0 && h > 0 {
		_ = editor.SetSize(w, h) // a wrong width only wraps badly
	}
	line, err := editor.ReadLine()
	if errors.Is(err, term.ErrPasteIndicator) {
		err = nil
	}
	return line, errors.Join(err, term.Restore(int(in.Fd()), old))
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
		if err := t.client.Post(ctx, "/v1/runs/"+input+"/stop", nil, nil); err != nil {
			fmt.Fprintln(t.errs, "parley: "+visible(err.Error()))
		}
	}
}

// watch follows a run to its end, over a gateway that is started again in between.
func (t *conversation) watch(ctx context.Context, input string, p *printer) error {
	for {
		err := t.client.Events(ctx, "/v1/runs/"+input+"/events", p.after, p.see)
		if p.ended || ctx.Err() != nil || errors.As(err, new(*client.Problem)) {
			return err
		}
		if err := t.client.Wait(ctx, comeBack); err != nil {
			return err
		}
		var run struct{ State string }
		if err := t.client.Get(ctx, "/v1/runs/"+input, &run); err != nil {
			return err
		}
		if p.over(run.State) {
			return nil
		}
	}
}
