package view

import (
	"fmt"
	"time"

	"parley/agentloop"
	"parley/agentloop/llm"
	"parley/gateway/live"
)

// Watched are the events that a live one stands for; next is the sequence that the next stored event is expected to
// have, and begun says that the answer's item was started for this reader.
func Watched(l live.Update, next int64, now time.Time, begun bool) []Event {
	id := AnswerID(l.Run, l.Step)
	ev := Event{Sequence: next, Time: now.UTC().Truncate(time.Millisecond), SessionID: string(l.Session), RunID: Optional(l.Run),
		Source: "agent", Synthetic: true, Type: "item.started"}
	with := func(kind, suffix string, data any) Event {
		e := ev
		e.Type, e.EventID, e.Data = kind, id+suffix, data
		return e
	}
	status := func(suffix, text string) []Event {
		ev.Source = "daemon"
		return []Event{with("item.completed", suffix, ItemData{Item{ID: id + suffix, Type: "status", Parts: []Part{{Type: "text",
			Text: text}}, Trouble: TroubleOf(l.Event.Trouble, true)}})}
	}
	switch l.Event.Type {
	case agentloop.EventText:
		grown := with("item.delta", fmt.Sprintf(".%d", l.Offset), Delta{ItemID: id, Offset: l.Offset, Text: l.Event.Text})
		if begun {
			return []Event{grown}
		}
		return []Event{with("item.started", ".start", ItemData{Item{ID: id, Type: "message", Role: "assistant"}}), grown}
	case agentloop.EventDiscard:
		return []Event{with("item.delta", ".again", Delta{ItemID: id})}
	case agentloop.EventToolStart:
		call := Item{ID: l.Event.Call, Type: "tool_call", Name: l.Event.Tool, Parts: []Part{{Type: "tool_call", Name: l.Event.Tool,
			CallID: l.Event.Call}}}
		return []Event{with("item.started", ".call."+l.Event.Call, ItemData{call})}
	case agentloop.EventOutput:
		return []Event{with("item.output", ".output."+l.Event.Call, OutputData{l.Event.Call, l.Event.Text, l.Event.Lines})}
	case agentloop.EventAsk:
		ev.Source = "daemon"
		asked := AskedData{Model: l.Event.Model, Provider: l.Event.Who, Time: l.Event.Since.UTC()}
		return []Event{with("model.asked", fmt.Sprintf(".asked.%d", l.Event.Since.UnixMilli()), asked)}
	case agentloop.EventWait:
		return status(".wait", l.Event.Note)
	case agentloop.EventThinking:
		return status(".thinking", "thinking")
	}
	return nil
}

// SilentAfter is how long a model may send nothing before people are told.
const SilentAfter = llm.SilentAfter

// Silence is what they are told.
func Silence(provider string, lasted time.Duration) string { return llm.Silence(provider, lasted) }
