package turn

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/tools/builtin"
	"parley/workspace"
)

// called is a journal with one call of a tool that was given args and came to state.
func called(tool, args string, state workspace.StepState, result string) []workspace.Step {
	began := time.Unix(100, 0)
	return []workspace.Step{
		{N: 1, Kind: workspace.StepModel, Body: workspace.StepBody{Content: []workspace.Content{
			{Kind: workspace.ToolCall, CallID: "c1", Name: tool, Args: json.RawMessage(args)}}}},
		{N: 2, Kind: workspace.StepTool, CallID: "c1", Tool: tool, State: state, Started: began, Ended: began.Add(1240 * time.Millisecond),
			Body: workspace.StepBody{Content: []workspace.Content{{Kind: workspace.ToolResult, CallID: "c1", Text: result}}}},
	}
}

func TestStepSummary(t *testing.T) {
	t.Parallel()
	done := called("exec", "{\"line\":\"ls `x`\"}", workspace.StepDone, "a\nb")
	for _, c := range []struct {
		verbose string
		journal []workspace.Step
		want    string
	}{
		{"", done, ""},
		{"off", done, ""},
		{"on", nil, ""},
		{"on", done, "`exec` ✓ 1.2s"},
		{"full", done, "`exec {\"line\":\"ls 'x'\"}` ✓ 1.2s `a`"},
		{"full", called("list_dir", "{}", workspace.StepFailed, ""), "`list_dir` ✗ 1.2s"},
		{"full", called("list_dir", "{}", workspace.StepStarted, "x"), "`list_dir` …"},
		{"on", called("read_file", "{}", workspace.StepRefused, ""), "`read_file` ✗ 1.2s"},
	} {
		if got := stepSummary(c.verbose, c.journal); got != c.want {
			t.Errorf("%s: %q, want %q", c.verbose, got, c.want)
		}
	}
	var many []workspace.Step
	for range maxSteps + 3 {
		many = append(many, done[1])
	}
	if got := stepSummary("on", many); !strings.HasPrefix(got, "3 more · `exec`") || strings.Count(got, "`exec`") != maxSteps {
		t.Errorf("of many: %q", got)
	}
}

func TestUsageFooter(t *testing.T) {
	t.Parallel()
	cost := 0.25
	answer := workspace.Usage{Calls: 1, InputTokens: 10, OutputTokens: 5, CacheReadTokens: 3, CostUSD: &cost, DurationMS: 1500}
	before := workspace.Usage{Calls: 2, InputTokens: 100, OutputTokens: 50, CostUSD: &cost}
	for mode, want := range map[string]string{
		"tokens": "_13 in, 5 out; session: 113 in, 55 out_",
		"cost":   "_$0.2500; session: $0.5000_",
		"full": "_m: 13 in, 5 out (cache 3 read, 0 written), $0.2500, 1.5 s; " +
			"session: 113 in, 55 out (cache 3 read, 0 written), $0.5000_",
	} {
		if got := usageFooter(mode, "m", answer, before); got != want {
			t.Errorf("%s: %q, want %q", mode, got, want)
		}
	}
	if got := usageLine("cost", "", workspace.Usage{}); got != "no price is known" {
		t.Errorf("without a price: %q", got)
	}
}

// The audit log has each command from its start to its end, and what was refused, with what it was called with.
func TestCommandRows(t *testing.T) {
	t.Parallel()
	key := workspace.Key{Agent: "a", Scope: workspace.ScopeLocal, Local: "main"}
	run := workspace.Run{ID: "run", Requester: "ana"}
	asked := `map[agent:a args:{"x":1} call:c1 run:run session:` + key.String() + " state:"
	ended := `map[agent:a call:c1 ended:exit status 3 run:run session:` + key.String() + " state:"
	for _, c := range []struct {
		tool  string
		state workspace.StepState
		kind  string
		what  string
	}{
		{builtin.ExecName, workspace.StepPlanned, "", ""},
		{builtin.ExecName, workspace.StepStarted, workspace.AuditExecStarted, asked + "started]"},
		{builtin.ExecName, workspace.StepDone, workspace.AuditExecEnded, ended + "done]"},
		{builtin.ExecName, workspace.StepRefused, workspace.AuditExecRefused, asked + "refused]"},
		{builtin.RemoveName, workspace.StepDone, workspace.AuditFilesRemoved, asked + "done]"},
		{builtin.RemoveName, workspace.StepFailed, "", ""},
		{"read_file", workspace.StepDone, "", ""},
	} {
		journal := called(c.tool, `{"x":1}`, c.state, "words\n(exit status 3)\n")
		rows := commandRows(run, key, journal, journal[1:])
		if c.kind == "" {
			if len(rows) != 0 {
				t.Errorf("%s %s: %+v", c.tool, c.state, rows)
			}
			continue
		}
		if len(rows) != 1 || rows[0].Kind != c.kind || rows[0].Actor != "ana" || fmt.Sprint(rows[0].What) != c.what {
			t.Errorf("%s %s: %+v, want %s %s", c.tool, c.state, rows, c.kind, c.what)
		}
	}
}

// A stop ends the summary that it is about, and no later one.
func TestASummaryIsCancelledByItsSession(t *testing.T) {
	t.Parallel()
	p := NewPrompts(PromptOptions{})
	all := func(workspace.Input) bool { return true }
	if p.CancelSummary("s", all) {
		t.Error("there is none")
	}
	ctx, end := p.begin(t.Context(), "s", &workspace.Input{Seq: 7})
	if p.CancelSummary("other", all) || p.CancelSummary("s", func(in workspace.Input) bool { return in.Seq != 7 }) || ctx.Err() != nil {
		t.Error("another was cancelled")
	}
	if !p.CancelSummary("s", all) || ctx.Err() == nil {
		t.Error("it goes on")
	}
	end()
	if p.CancelSummary("s", all) {
		t.Error("it has ended")
	}
}
