package stream

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"parley/gateway/client"
	"parley/gateway/control/view"
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
		for _, ev := range []view.Event{view.Stored(e), view.Stored(workspace.Entry{SessionID: "S", N: n, Role: workspace.RoleEvent, Body: workspace.EntryBody{Type: "turn.ended", Reason: reason}})} {
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
		var data struct{ Item view.Item }
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
