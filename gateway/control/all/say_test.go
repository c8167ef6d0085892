package all_test

import (
	"strings"
	"testing"
	"time"

	"parley/agentloop/lane"
	"parley/agentloop/llm"
	"parley/channels"
	"parley/gateway/control"
	"parley/gateway/control/conversation"
	"parley/gateway/control/operator"
	"parley/gateway/control/person"
	"parley/gateway/control/run"
	"parley/workspace"
)

func TestChatsAreToldPlainly(t *testing.T) {
	t.Parallel()
	cost := 0.0123
	last := workspace.Run{ID: "01J000000000000000ABC123", State: workspace.RunCompleted, Reason: "step_limit", Model: "claude",
		Usage: workspace.Usage{InputTokens: 100, CacheReadTokens: 900, OutputTokens: 50, CostUSD: &cost}}
	for _, c := range []struct {
		name  string
		verb  control.Any
		value any
		want  []string
		not   []string
	}{
		{"nothing to stop", run.StopTurn, run.Stopped{}, []string{"Nothing is running here."}, nil},
		{"stopped", run.StopTurn, run.Stopped{Run: last.ID, Queued: 2, Parts: 1}, []string{"Stopped: run abc123, 2 waiting messages, 1 unsent part."}, nil},
		{"nothing to resume", conversation.Resume, conversation.Resumed{}, []string{"Nothing is waiting here"}, nil},
		{"resumed", conversation.Resume, conversation.Resumed{Messages: 1}, []string{"I answer 1 message now."}, nil},
		{"late answers", conversation.Resume, conversation.Resumed{Answers: 2}, []string{"I send 2 late answers now."}, nil},
		{"both", conversation.Resume, conversation.Resumed{Messages: 1, Answers: 1}, []string{"I send 1 late answer and answer 1 message now."}, nil},
		{"why nothing", run.Why, run.Reason{}, []string{"I have answered nothing here yet."}, nil},
		{"why", run.Why, run.Reason{Input: &workspace.Input{Role: workspace.Guest, Decision: workspace.Decision{Rule: "dm:open", Gates: []string{"sender"}},
			Binding: workspace.Binding{Agent: "a", Rule: "fallback", Key: "agent:a:main", Fallback: true}}, Run: &last,
			Steps: []workspace.Step{{Kind: workspace.StepTool, Tool: "exec", State: workspace.StepRefused, Body: workspace.StepBody{Reason: "policy"}}}},
			[]string{"Run abc123 ended completed (step_limit).", "`dm:open`, having passed sender", "as a fallback", "1000 tokens in, 50 out, $0.0123", "tool `exec`: refused, policy"}, nil},
		{"status", conversation.SayStatus, conversation.Status{Agent: control.Agent{Name: "Ada", Models: []string{"m", "n"}}, Session: "agent:a:main", Activity: conversation.Activity{Running: true, Waiting: 1}, Entries: 1, Queue: lane.Settings{Mode: "steer"},
			Overrides: workspace.Overrides{Queue: "collect"}, Models: []llm.ModelHealth{{Name: "m", Down: true, LastError: "429"}, {Name: "n", Offline: true}},
			Channels: []operator.Channel{{Name: "tg", Network: "telegram", State: channels.Needs, Hint: "Scan the code."}}, Last: &last, Uptime: 90 * time.Second, Health: "degraded", Reason: "checking"},
			[]string{"**Ada**", "in the session **agent:a:main**", "a turn is running, 1 message behind it", "model `m`: unavailable (429), retrying", "fallback `n`: offline responder", "changed for this session: queue collect",
				"channel tg (telegram): needs. Scan the code.", "up for 1m30s, store degraded: checking", "last run abc123"}, []string{"idle"}},
		{"idle status", conversation.SayStatus, conversation.Status{}, []string{"- idle"}, []string{"channel", "last run"}},
		{"who", person.WhoAmI, person.Who{Actor: workspace.Actor{Person: "ana", Role: workspace.Owner}, User: "11", Network: "telegram", Session: "s", Agent: control.Agent{Name: "Ada"}},
			[]string{"You are `ana` (no name), role **owner**.", "on telegram you are user `11`", "answered by Ada"}, nil},
		{"queue", conversation.ShowQueue, conversation.QueueView{Settings: lane.Settings{Mode: "steer", Cap: 20, Overflow: "new"}, Waiting: []string{strings.Repeat("é", 90) + "\nmore"}, Changed: true},
			[]string{"Queue mode is now **steer**: at most 20 wait, beyond that the newest is dropped; what comes within 0s", "1 message:", strings.Repeat("é", 60) + "…"}, []string{"more"}},
		{"empty queue", conversation.ShowQueue, conversation.QueueView{Settings: lane.Settings{Mode: "collect", Overflow: "old"}}, []string{"Queue mode is **collect**", "the oldest is dropped", "Nothing waits."}, nil},
		{"fresh", conversation.New, conversation.Fresh{}, []string{"A fresh session begins."}, nil},
		{"another verb's value", conversation.New, 7, []string{"Done."}, nil},
	} {
		got := c.verb.Said(c.value)
		for _, s := range c.want {
			if !strings.Contains(strings.ToLower(got), strings.ToLower(s)) {
				t.Errorf("%s: %q lacks %q", c.name, got, s)
			}
		}
		for _, s := range c.not {
			if strings.Contains(got, s) {
				t.Errorf("%s: %q holds %q", c.name, got, s)
			}
		}
	}
}
