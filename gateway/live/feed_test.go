package live

import (
	"slices"
	"testing"
	"time"

	"parley/agentloop"
	"parley/gateway/bus"
	"parley/workspace"
)

// Who comes in the middle is told what the model fails with and since when it is asked, until it answers.
func TestWhoComesLateIsToldWhatATurnWaitsFor(t *testing.T) {
	t.Parallel()
	f := New(bus.New(1))
	told := func() (kinds []agentloop.EventType) {
		sub, list := f.Watch("k", 1)
		sub.Close()
		for _, l := range list {
			kinds = append(kinds, l.Event.Type)
		}
		return kinds
	}
	say := func(e agentloop.Event, want ...agentloop.EventType) {
		t.Helper()
		if f.Publish("k", Update{Run: "r", Event: e}); !slices.Equal(told(), want) {
			t.Errorf("after %s: %v, want %v", e.Type, told(), want)
		}
	}
	fails := agentloop.Event{Type: agentloop.EventWait, Trouble: &workspace.Trouble{Model: "m"}}
	asks := agentloop.Event{Type: agentloop.EventAsk, Who: "m", Since: time.Unix(1, 0)}
	say(agentloop.Event{Type: agentloop.EventModelStart})
	say(asks, agentloop.EventAsk)
	say(fails, agentloop.EventWait)
	say(asks, agentloop.EventWait, agentloop.EventAsk)
	say(agentloop.Event{Type: agentloop.EventDiscard}, agentloop.EventWait, agentloop.EventAsk)
	say(agentloop.Event{Type: agentloop.EventThinking})
	say(asks, agentloop.EventAsk)
	say(agentloop.Event{Type: agentloop.EventText, Text: "Hello"}, agentloop.EventText)
	say(fails, agentloop.EventText, agentloop.EventWait) // cut in the middle
	if f.Settle("k"); len(told()) != 0 {
		t.Errorf("at the end: %v", told())
	}
}

// Who comes in the middle is shown the end of what the command has written, until it ends.
func TestWhoComesLateSeesWhatACommandWrites(t *testing.T) {
	t.Parallel()
	f := New(bus.New(1))
	told := func() string {
		sub, list := f.Watch("k", 1)
		sub.Close()
		text := ""
		for _, l := range list {
			text += string(l.Event.Type) + " " + l.Event.Call + " " + l.Event.Text + ";"
		}
		return text
	}
	tell := func(kind agentloop.EventType, call, text, want string) {
		t.Helper()
		if f.Publish("k", Update{Run: "r", Event: agentloop.Event{Type: kind, Call: call, Text: text}}); told() != want {
			t.Errorf("after %s of %s: %q, want %q", kind, call, told(), want)
		}
	}
	tell(agentloop.EventToolStart, "c", "", "")
	tell(agentloop.EventOutput, "c", "one", "output c one;")
	tell(agentloop.EventOutput, "c", "two", "output c two;")
	tell(agentloop.EventToolEnd, "beside it", "", "output c two;")
	tell(agentloop.EventToolEnd, "c", "", "")
	tell(agentloop.EventOutput, "d", "left by a turn that was cut off", "output d left by a turn that was cut off;")
	if f.Settle("k"); told() != "" {
		t.Errorf("behind the turn: %q", told())
	}
}
