package view

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"parley/agentloop"
	"parley/gateway/live"
	"parley/workspace"
)

func TestLiveEventsTellWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(7)
	of := func(e agentloop.Event) []Event {
		return Watched(live.Update{Session: "S", Run: "R", Step: 3, Offset: 4, Event: e}, 9, now, true)
	}
	for kind, want := range map[agentloop.EventType]string{
		agentloop.EventText: "item.delta", agentloop.EventDiscard: "item.delta", agentloop.EventToolStart: "item.started", agentloop.EventWait: "item.completed",
		agentloop.EventThinking: "item.completed", agentloop.EventOutput: "item.output", agentloop.EventModelStart: "", agentloop.EventToolEnd: "",
	} {
		got := of(agentloop.Event{Type: kind, Text: "t", Tool: "tool", Call: "c", Note: "busy"})
		if want == "" && len(got) != 0 || want != "" && (len(got) != 1 || got[0].Type != want || !got[0].Synthetic || got[0].Sequence != 9) {
			t.Errorf("%s: %+v", kind, got)
		}
	}
	if d := of(agentloop.Event{Type: agentloop.EventDiscard})[0].Data.(Delta); d.Offset != 0 || d.Text != "" || d.ItemID != "R:3" {
		t.Errorf("what is asked again begins again: %+v", d)
	}
}

// What a summary or an undo changes is told in words that every reader knows.
func TestMarksAreSystemItems(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{
		workspace.EventCompacted: `"type":"system","parts":[{"type":"text","text":"For the agent this summary stands in place of everything up to event 9:\n\nshort"}],"reason":"compacted"`,
		workspace.EventUndone:    `"text":"Taken out of what the agent sees: events 4 to 9."`,
	} {
		e := workspace.Entry{SessionID: "S", N: 12, Role: workspace.RoleEvent, Body: workspace.EntryBody{Type: kind, From: 4, To: 9,
			Content: []workspace.Content{{Kind: workspace.Text, Text: "short"}}}}
		got, err := json.Marshal(Stored(e))
		if err != nil || !strings.Contains(string(got), want) || !strings.Contains(string(got), `"type":"item.completed"`) {
			t.Errorf("%s: %s, %v", kind, got, err)
		}
	}
}
