package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"parley/agentloop"
	"parley/gateway/client"
	"parley/gateway/live"
	"parley/workspace"
)

// Whatever stands in a transcript goes over the wire as one event and comes out as it was; what is private does not.
func FuzzEventsSurviveTheWire(f *testing.F) {
	f.Add("hello", "data: x\n\nid: 9\n\n", []byte(`{"a":1}`), int64(1), 2)
	f.Add("\r\n\x00\ufeff", "</script>\u2028", []byte(`{broken`), int64(1<<40), 0)
	f.Fuzz(func(t *testing.T, text, reason string, args []byte, n int64, step int) {
		if n < 1 {
			return
		}
		const private = "private-thought"
		if strings.Contains(text+reason+string(args), private) {
			return
		}
		e := workspace.Entry{SessionID: "S", N: n, RunID: "R", StepN: step, Role: workspace.RoleAssistant, At: time.UnixMilli(5), Body: workspace.EntryBody{Reason: reason,
			Content: []workspace.Content{{Kind: workspace.Reasoning, Text: private, Opaque: json.RawMessage(`"` + private + `"`)}, {Kind: workspace.Text, Text: text, Opaque: json.RawMessage(`"` + private + `"`)},
				{Kind: workspace.ToolCall, Name: text, CallID: "c", Args: args}}}}
		rec := httptest.NewRecorder()
		out := &sse{w: rec, rc: http.NewResponseController(rec)}
		for _, ev := range []event{stored(e), stored(workspace.Entry{SessionID: "S", N: n, Role: workspace.RoleEvent, Body: workspace.EntryBody{Type: "turn.ended", Reason: reason}})} {
			if err := out.write(ev); err != nil {
				t.Fatal(err)
			}
		}
		if bytes.Contains(rec.Body.Bytes(), []byte(private)) {
			t.Fatalf("private text leaves: %s", rec.Body)
		}
		frames := client.NewFrames(rec.Body)
		first, err := frames.Next()
		if err != nil {
			t.Fatal(err)
		}
		var got client.Event
		var data struct{ Item item }
		if err := json.Unmarshal([]byte(first.Data), &got); err != nil {
			t.Fatalf("%v in %q", err, first.Data)
		}
		if err := json.Unmarshal(got.Data, &data); err != nil {
			t.Fatal(err)
		}
		if want := strings.ToValidUTF8(text, "\uFFFD"); len(data.Item.Parts) != 2 || !sameText(data.Item.Parts[0].Text, text) {
			t.Fatalf("%q came out as %+v", want, data.Item.Parts)
		}
		if second, err := frames.Next(); err != nil || second.Event != "turn.ended" {
			t.Fatalf("%+v, %v", second, err)
		}
	})
}

// sameText compares as JSON carries text: each byte that is no UTF-8 is U+FFFD.
func sameText(got, sent string) bool { return got == string([]rune(sent)) }

func TestLiveEventsTellWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(7)
	of := func(e agentloop.Event) []event {
		return watched(live.Update{Session: "S", Run: "R", Step: 3, Offset: 4, Event: e}, 9, now, true)
	}
	for kind, want := range map[agentloop.EventType]string{
		agentloop.EventText: "item.delta", agentloop.EventDiscard: "item.delta", agentloop.EventToolStart: "item.started", agentloop.EventWait: "item.completed",
		agentloop.EventThinking: "item.completed", agentloop.EventModelStart: "", agentloop.EventToolEnd: "",
	} {
		got := of(agentloop.Event{Type: kind, Text: "t", Tool: "tool", Call: "c", Note: "busy"})
		if want == "" && len(got) != 0 || want != "" && (len(got) != 1 || got[0].Type != want || !got[0].Synthetic || got[0].Sequence != 9) {
			t.Errorf("%s: %+v", kind, got)
		}
	}
	if d := of(agentloop.Event{Type: agentloop.EventDiscard})[0].Data.(delta); d.Offset != 0 || d.Text != "" || d.ItemID != "R:3" {
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
		got, err := json.Marshal(stored(e))
		if err != nil || !strings.Contains(string(got), want) || !strings.Contains(string(got), `"type":"item.completed"`) {
			t.Errorf("%s: %s, %v", kind, got, err)
		}
	}
}
