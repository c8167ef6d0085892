package offline

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/agentloop/llm"
	"parley/workspace"
)

func said(role llm.Role, text string) llm.Message {
	return llm.Message{Role: role, Content: []workspace.Content{{Kind: workspace.Text, Text: text}}}
}

func ask(t *testing.T, req llm.Request) (llm.Response, []llm.Delta) {
	t.Helper()
	var deltas []llm.Delta
	r, err := New("offline").Stream(t.Context(), req, func(d llm.Delta) { deltas = append(deltas, d) })
	if err != nil {
		t.Fatal(err)
	}
	return r, deltas
}

func TestSaysThatItIsNoModelAndHowToAddOne(t *testing.T) {
	t.Parallel()
	r, _ := ask(t, llm.Request{Messages: []llm.Message{said(llm.User, "What is the capital of France?")}})
	for _, want := range []string{"What is the capital of France?", "not a language model", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "local", "parley.yaml"} {
		if !strings.Contains(r.Content[0].Text, want) {
			t.Errorf("%q is absent", want)
		}
	}
	r, _ = ask(t, llm.Request{Messages: []llm.Message{said(llm.User, "a"), said(llm.Assistant, "b"), said(llm.User, "c")}})
	if got := r.Content[0].Text; !strings.HasPrefix(got, "You wrote: c\n") || !strings.Contains(got, "No model") || len(got) > 200 {
		t.Errorf("later: %s", got)
	}
	if m := New("x"); !m.Info().Offline || m.Info().Name != "x" {
		t.Errorf("%+v", m.Info())
	}
}

func TestStreamsInPiecesAndAlwaysTheSame(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"hello", "help", "long", "", "  two  spaces "} {
		req := llm.Request{Messages: []llm.Message{said(llm.User, text)}}
		r, deltas := ask(t, req)
		var b strings.Builder
		for _, d := range deltas {
			b.WriteString(d.Text)
		}
		if b.String() != r.Content[0].Text || len(deltas) < 3 {
			t.Errorf("%q: %d pieces: %q", text, len(deltas), b.String())
		}
		if again, _ := ask(t, req); !reflect.DeepEqual(again, r) {
			t.Errorf("%q: another answer", text)
		}
	}
	if r, _ := ask(t, llm.Request{Messages: []llm.Message{said(llm.User, "long")}}); len(r.Content[0].Text) < 5000 || strings.Contains(r.Content[0].Text, "%!") {
		t.Errorf("long: %d bytes", len(r.Content[0].Text))
	}
}

func TestToolCallsAndTheirResults(t *testing.T) {
	t.Parallel()
	for text, tool := range map[string]string{"tool": "list_dir", "Tool!": "list_dir", "@parley tool": "list_dir", "Ana: tool": "list_dir", "approval": "exec"} {
		req := llm.Request{Tools: []llm.Tool{{Name: "list_dir"}, {Name: "exec"}}, Messages: []llm.Message{said(llm.User, text)}}
		r, deltas := ask(t, req)
		calls := r.ToolCalls()
		if len(calls) != 1 || calls[0].Name != tool || r.Stop != llm.StopToolCalls || deltas[len(deltas)-1].ToolName != tool {
			t.Fatalf("%s: %+v", text, r)
		}
		req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Content: r.Content},
			llm.Message{Role: llm.ToolRole, Content: []workspace.Content{{Kind: workspace.ToolResult, CallID: calls[0].CallID, Text: "<data from=\"list_dir\">\nnotes.txt ```" + strings.Repeat("x", 9000) + "\n</data>"}}})
		done, _ := ask(t, req)
		if got := done.Content[0].Text; !strings.Contains(got, "notes.txt") || len(done.ToolCalls()) != 0 || len(got) > 2000 || strings.Count(got, "```") != 2 || strings.Contains(got, "<data") {
			t.Errorf("%s: %s", text, got)
		}
		req.Messages = append(req.Messages, said(llm.Assistant, "done"), said(llm.User, text))
		if again, _ := ask(t, req); again.ToolCalls()[0].CallID == calls[0].CallID {
			t.Error("the id of a call came twice")
		}
		req.Tools = nil
		if r, _ := ask(t, req); len(r.ToolCalls()) != 0 || !strings.Contains(r.Content[0].Text, tool) {
			t.Errorf("without the tool: %+v", r)
		}
	}
}

func TestWordsInsideASentenceAreEchoed(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"there is an error in my code", "tool time", "a long story"} {
		r, _ := ask(t, llm.Request{Tools: []llm.Tool{{Name: "list_dir"}}, Messages: []llm.Message{said(llm.User, text)}})
		if !strings.HasPrefix(r.Content[0].Text, "You wrote: "+text) {
			t.Errorf("%s: %+v", text, r)
		}
	}
}

func TestErrorFailsOnce(t *testing.T) {
	t.Parallel()
	reg, err := llm.NewRegistry(llm.RegistryOptions{}, New("offline"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := reg.Chain([]string{"offline"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Stream(t.Context(), llm.Request{Messages: []llm.Message{said(llm.User, "error")}}, nil)
	if llm.KindOf(err) != llm.Rejected || reg.Health()[0].Down {
		t.Errorf("%v", err)
	}
}

func TestSlowTakesItsTimeAndCanBeStopped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		req := llm.Request{Messages: []llm.Message{said(llm.User, "slow")}}
		start := time.Now()
		r, err := New("offline").Stream(t.Context(), req, nil)
		if took := time.Since(start); err != nil || took < 5*time.Second || took > 15*time.Second {
			t.Errorf("%s, %v", took, err)
		}
		cause := errors.New("stopped by a person")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 2*time.Second, cause)
		defer cancel()
		_, err = New("offline").Stream(ctx, req, nil)
		var e *llm.Error
		if !errors.As(err, &e) || e.Kind != llm.Cancelled || !errors.Is(err, cause) || e.Partial == "" || !strings.HasPrefix(r.Content[0].Text, e.Partial) {
			t.Errorf("%v", err)
		}
	})
}
