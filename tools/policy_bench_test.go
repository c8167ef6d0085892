package tools

import (
	"testing"

	"parley/workspace"
)

// BenchmarkFor is asked twice for each message.
func BenchmarkFor(b *testing.B) {
	set := NewSet(allTools(), PolicyConfig{Agents: map[workspace.AgentID]AgentPolicy{"a": {Rules: Rules{Allow: []string{"*"}}}}})
	b.ReportAllocs()
	for b.Loop() {
		set.For(as(workspace.Owner))
	}
}
