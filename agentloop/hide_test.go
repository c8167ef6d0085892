package agentloop

import (
	"strings"
	"testing"

	"parley/agentloop/llm"
	"parley/workspace"
)

// T12, E52: the model makes up the ids of its calls, and they are kept and sent back as they are.
func TestE52_ACallsIDHoldsNoSecret(t *testing.T) {
	t.Parallel()
	l := &Loop{Hide: workspace.NewRedactor("sk-canary-0123456789")}
	ids := func() string {
		r := llm.Response{Content: []workspace.Content{{Kind: workspace.ToolCall, CallID: "x-sk-canary-0123456789", Name: "exec"}, {Kind: workspace.ToolCall, CallID: "call_1"}}}
		l.hideResponse(&r)
		return r.Content[0].CallID + " " + r.Content[1].CallID
	}
	if got := ids(); len(got) != len("call_")+24+len(" call_1") || strings.Contains(got, "canary") || got != ids() {
		t.Errorf("got %q", got)
	}
}
