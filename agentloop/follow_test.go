package agentloop

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"parley/tools"
	"parley/tools/tail"
	"parley/workspace"
)

// What a command writes is told while it runs, freed as its result is, and not after its end.
func TestWhatACommandWritesIsToldWhileItRuns(t *testing.T) {
	t.Parallel()
	const secret = "sk-canary-0123456789"
	synctest.Test(t, func(t *testing.T) {
		const said = "key " + secret + "\x1b[31m\n"
		command := fn{name: "exec", effect: workspace.Outside, call: func(_ context.Context, c tools.Call) (tools.Result, error) {
			for i := range 3 {
				fmt.Fprintf(c.Output, "%d ", i)
				_, _ = c.Output.Write([]byte(said[:10])) // the secret comes in two pieces
				<-time.After(2 * tail.Every)
				_, _ = c.Output.Write([]byte(said[10:]))
				<-time.After(2 * tail.Every)
			}
			_, _ = c.Output.Write([]byte("too late to be told\n"))
			return tools.TextResult(said), nil
		}}
		b := newTable(t, says(calls(toolCall("c1", "exec", `{}`)), "ok"), command)
		b.loop.Hide = workspace.NewRedactor(secret)
		b.run(t.Context())
		var told []string
		ended := false
		for _, e := range b.events {
			switch e.Type {
			case EventToolEnd:
				ended = true
			case EventOutput:
				if told = append(told, e.Text); ended || e.Call != "c1" || e.Tool != "exec" || e.Run != runID {
					t.Errorf("told %+v, after the end %v", e, ended)
				}
			}
		}
		const line = "key [secret]␛[31m\n"
		want := []string{"0 key …", "0 " + line, "0 " + line + "1 key …", "0 " + line + "1 " + line, "0 " + line + "1 " + line + "2 key …", "0 " + line + "1 " + line + "2 " + line}
		if !slices.Equal(told, want) {
			t.Errorf("told %q", told)
		}
		for _, st := range b.rec.steps {
			if st.Kind == workspace.StepTool && (len(st.Body.Content) != 1 || st.Body.Content[0].Text != line) {
				t.Errorf("the result is %+v", st.Body.Content)
			}
		}
	})
}

// A tool that does not return is left behind, and what it writes then is told to nobody.
func TestAToolThatIsLeftBehindIsNotFollowed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		released := make(chan struct{})
		command := timed{fn{name: "exec", effect: workspace.Outside, limit: time.Second, call: func(_ context.Context, c tools.Call) (tools.Result, error) {
			<-released
			_, _ = c.Output.Write([]byte("still here\n"))
			return tools.Result{}, nil
		}}}
		b := newTable(t, says(calls(toolCall("c1", "exec", `{}`)), "ok"), command)
		b.run(t.Context())
		close(released)
		synctest.Wait()
		if slices.ContainsFunc(b.events, func(e Event) bool { return e.Type == EventOutput }) {
			t.Errorf("told %+v", b.events)
		}
	})
}
