package anthropic

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/agentloop/llm"
	"parley/agentloop/llm/llmtest"
	"parley/workspace"
)

var update = flag.Bool("update", false, "write the golden files again")

const (
	png     = "\x89PNG\r\n\x1a\n…"
	pdfData = "%PDF-1.7 …"
)

func tools() []llm.Tool {
	return []llm.Tool{
		{Name: "read_file", Description: "Reads \"a\" file.", Schema: json.RawMessage(`{"type": "object", "properties": {"path": {"type": "string"}}}`)},
		{Name: "broken", Description: "From a stranger.", Schema: json.RawMessage(`{"type": `)},
		{Name: "choice", Schema: json.RawMessage(`{"anyOf": [{"type": "object"}], "properties": {}}`)},
		{Name: "bare"},
	}
}

func toolTurn() []llm.Message {
	return []llm.Message{
		says(workspace.Content{Kind: workspace.Reasoning, Text: "private"}, text("Looking."),
			workspace.Content{Kind: workspace.ToolCall, CallID: "call_1", Name: "read_file", Args: json.RawMessage(`{"path":"a \"b\".txt"}`)},
			workspace.Content{Kind: workspace.ToolCall, CallID: "functions.exec:2", Name: "my.exec", Args: json.RawMessage(`"{broken"`), Error: true}),
		{Role: llm.ToolRole, Content: []workspace.Content{
			{Kind: workspace.ToolResult, CallID: "call_1", Text: "line\n"},
			{Kind: workspace.JSON, Text: `{"n":1}`},
			{Kind: workspace.Image, Name: "plot.png", MIME: "image/jpeg", Blob: "png"},
		}},
		{Role: llm.ToolRole, Content: []workspace.Content{
			{Kind: workspace.ToolResult, CallID: "functions.exec:2", Error: true},
			{Kind: workspace.Image, Name: "crash.png", MIME: "image/png", Blob: "png"}}},
	}
}

func blobs(ref string) ([]byte, error) {
	switch ref {
	case "png":
		return []byte(png), nil
	case "pdf":
		return []byte(pdfData), nil
	case "huge":
		return []byte(png + strings.Repeat("x", maxImage)), nil
	case "tiff":
		return []byte("II*\x00…"), nil
	}
	return nil, errors.New("gone")
}

// long is a request with everything in it.
func long() llm.Request {
	req := llm.Request{System: "You are\thelpful.\n", Volatile: "It is Monday.", Tools: tools(), MaxTokens: 100, CacheKey: "agent:a:telegram:1"}
	req.Messages = append([]llm.Message{llmtest.User("old"), llmtest.User("older")}, toolTurn()...)
	req.Messages = append(req.Messages, says(text(" ")), says(text("It says \"line\".")), says(workspace.Content{Kind: workspace.Reasoning, Text: "nothing said"}),
		llm.Message{Role: llm.User, Content: []workspace.Content{text("what is this?"),
			{Kind: workspace.Image, Name: "cat.jpg", MIME: "image/jpeg", Blob: "png"}, {Kind: workspace.Image, Name: "gone.jpg", MIME: "image/jpeg", Blob: "gone"},
			{Kind: workspace.Image, Name: "huge.png", MIME: "image/png", Blob: "huge"}, {Kind: workspace.Image, Name: "scan.tiff", MIME: "image/tiff", Blob: "tiff"},
			{Kind: workspace.FileRef, Name: "notes.pdf", MIME: "application/pdf", Blob: "pdf"}, {Kind: workspace.FileRef, Name: "a.zip", MIME: "application/zip", Blob: "pdf"}}})
	return req
}

func TestRequestBody(t *testing.T) {
	t.Parallel()
	srv, m := serve(t, llmtest.Echo)
	m.o.Blobs = blobs
	llmtest.Golden(t, "plain", []byte(llmtest.Sent(t, srv, m, long())), *update)
	m.learned.Store(uint32(noCache | sightless))
	llmtest.Golden(t, "quirks", []byte(llmtest.Sent(t, srv, m, long())), *update)
	m.learned.Store(0)
	llmtest.Golden(t, "empty", []byte(llmtest.Sent(t, srv, m, llm.Request{Volatile: "now"})), *update)
	// The wrap-up of a turn names no tools any more, and the model speaks first and last.
	llmtest.Golden(t, "wrapup", []byte(llmtest.Sent(t, srv, m, llm.Request{Messages: append(toolTurn(), says(text("Done. ")))})), *update)
}

// unmarked is a body without its breakpoints.
func unmarked(body string) string { return strings.ReplaceAll(body, breakpoint, "") }

// cached are the beginnings that the server has in its cache after the body: one for each breakpoint.
func cached(body string) []string {
	var out []string
	for at := 0; ; {
		i := strings.Index(body[at:], breakpoint)
		if i < 0 {
			return out
		}
		out = append(out, unmarked(body[:at+i]))
		at += i + len(breakpoint)
	}
}

// The provider's cache hits only while the start of a request is, byte for byte, what stood before a breakpoint of
// an earlier one.
func TestPrefixIsByteStableOverTurns(t *testing.T) {
	t.Parallel()
	srv, m := serve(t, llmtest.Echo)
	const mark = `{"type":"text","text":"<system-reminder>`
	req := llm.Request{System: "Sys", Tools: tools(), CacheKey: "k"}
	var before string
	var inCache []string
	// hits says that the longest beginning in the cache holds want, and puts the body's own into the cache.
	hits := func(when, body, want string) {
		t.Helper()
		marks := cached(body)
		if n := len(marks); n > maxBreakpoints || n == 0 || !strings.HasSuffix(marks[0], `"text":"Sys"`) {
			t.Fatalf("%s: %d breakpoints: %q", when, n, marks)
		}
		if want != "" && !slices.ContainsFunc(inCache, func(c string) bool {
			return slices.Contains(marks, c) && len(c) >= len(want) && strings.HasPrefix(unmarked(body), c)
		}) {
			t.Errorf("%s: nothing of %d bytes is read from the cache", when, len(want))
		}
		inCache = append(inCache, marks...)
	}
	var past string // what the turn before wrote
	for turn := range 6 {
		req.Volatile = "Volatile " + strings.Repeat("x", turn)
		req.Messages = append(req.Messages, llmtest.User("question"))
		body := llmtest.Sent(t, srv, m, req)
		stable, _, found := strings.Cut(unmarked(body), mark)
		if !found || !strings.HasPrefix(stable, before) {
			t.Fatalf("turn %d changed the prefix:\n%s\n%s", turn, before, body)
		}
		hits(fmt.Sprintf("turn %d", turn), body, past)
		before, past = stable, strings.TrimSuffix(strings.TrimSuffix(stable, `{"role":"user","content":[`), "}]},")
		if turn == 0 {
			past = ""
		}
		// Within the turn everything before the tools' results stays, Volatile included.
		round := body
		for n := range 3 {
			req.Messages = append(req.Messages, toolTurn()...)
			again := llmtest.Sent(t, srv, m, req)
			if !strings.HasPrefix(unmarked(again), strings.TrimSuffix(unmarked(round), `]}]}`)) {
				t.Fatalf("turn %d: round %d does not go on from the one before:\n%s\n%s", turn, n, round, again)
			}
			want := past
			if n > 0 {
				want = strings.TrimSuffix(unmarked(round), `}]}]}`)
			}
			hits(fmt.Sprintf("turn %d, round %d", turn, n), again, want)
			round = again
		}
		// A message that is steered in moves nothing.
		req.Messages = append(req.Messages, llmtest.User("by the way"))
		if again := llmtest.Sent(t, srv, m, req); !strings.HasPrefix(unmarked(again), strings.TrimSuffix(unmarked(round), `]}]}`)) {
			t.Fatalf("turn %d: steering changed what stood before:\n%s\n%s", turn, round, again)
		}
		req.Messages = append(req.Messages, says(text("done")))
	}
}

func TestThinkingGoesBackOnlyWhereItWas(t *testing.T) {
	t.Parallel()
	think := llmtest.Reply{Reasoning: "let me look", Redacted: "secret", Calls: []llmtest.Call{{Name: "read_file", Args: `{}`}}}
	srv, m := serve(t, llmtest.Sequence(think, think, think, llmtest.Reply{Reasoning: "now I know", Text: "It is 7."}, llmtest.Reply{Text: "bye"}))
	blocks := func() int {
		b := srv.Bodies()[srv.Count()-1]
		return strings.Count(b, `"type":"thinking"`) + strings.Count(b, `"type":"redacted_thinking"`)
	}
	req := llm.Request{System: "Sys", Volatile: "Monday", Tools: tools(), Messages: []llm.Message{llmtest.User("hello"), says(text("hi")), llmtest.User("what is it?")}}
	for round := range 3 {
		r, err := m.Stream(t.Context(), req, nil)
		if err != nil || len(r.Content) != 3 || r.Content[0].Text != "let me look" || len(r.Content[0].Opaque) == 0 || r.Content[1].Text != "" {
			t.Fatalf("round %d: %+v, %v", round, r, err)
		}
		// The way through the journal changes nothing.
		raw, err := json.Marshal(r.Content)
		if err != nil {
			t.Fatal(err)
		}
		var kept []workspace.Content
		if err := json.Unmarshal(raw, &kept); err != nil {
			t.Fatal(err)
		}
		if got := blocks(); got != 2*round {
			t.Errorf("round %d: %d thinking blocks were sent", round, got)
		}
		if round == 1 { // thinking between other blocks counts too
			kept = append([]workspace.Content{text("Looking.")}, kept...)
		}
		call := kept[len(kept)-1]
		req.Messages = append(req.Messages, says(kept...),
			llm.Message{Role: llm.ToolRole, Content: []workspace.Content{{Kind: workspace.ToolResult, CallID: call.CallID, Text: "7"}}})
	}
	for name, change := range map[string]func(*llm.Request, *Model){
		"system":          func(r *llm.Request, _ *Model) { r.System = "New" },
		"tools":           func(r *llm.Request, _ *Model) { r.Tools = r.Tools[:1] },
		"volatile":        func(r *llm.Request, _ *Model) { r.Volatile = "Tuesday" },
		"history":         func(r *llm.Request, _ *Model) { r.Messages = r.Messages[2:] },
		"another account": func(_ *llm.Request, m *Model) { m.account = "other" },
	} {
		changed, other := req, open(t, srv)
		change(&changed, other)
		if b := string(other.write(changed, 0).body()); strings.Contains(b, `thinking"`) || strings.Contains(b, "let me look") {
			t.Errorf("%s changed, and thinking goes back: %s", name, b)
		}
	}
	r, err := m.Stream(t.Context(), req, nil)
	if err != nil || blocks() != 6 {
		t.Fatalf("%+v, %v; %d blocks were sent", r, err, blocks())
	}
	req.Messages = append(req.Messages, says(r.Content...), llmtest.User("thanks"))
	req.Volatile = "Tuesday"
	if _, err := m.Stream(t.Context(), req, nil); err != nil || blocks() != 0 {
		t.Fatalf("%v; %d blocks of the turn before were sent", err, blocks())
	}
}

func TestFourBreakpointsAtMost(t *testing.T) {
	t.Parallel()
	srv, m := serve(t, llmtest.Echo) // which refuses more, and every other thing that the API refuses
	m.o.Blobs = blobs
	rapid.Check(t, func(rt *rapid.T) {
		req := llm.Request{Tools: tools()[:rapid.IntRange(0, 4).Draw(rt, "tools")]}
		req.System = rapid.SampledFrom([]string{"", " \n", "Sys"}).Draw(rt, "system")
		req.Volatile = rapid.SampledFrom([]string{"", "Monday"}).Draw(rt, "volatile")
		for range rapid.IntRange(0, 12).Draw(rt, "messages") {
			switch rapid.IntRange(0, 5).Draw(rt, "kind") {
			case 0:
				req.Messages = append(req.Messages, llmtest.User(rapid.SampledFrom([]string{"", " ", "question", "\xff"}).Draw(rt, "text")))
			case 1:
				req.Messages = append(req.Messages, says(text(rapid.SampledFrom([]string{"", "\n", "answer"}).Draw(rt, "text"))))
			case 2:
				req.Messages = append(req.Messages, says(workspace.Content{Kind: workspace.Reasoning, Text: "t"}))
			case 3:
				req.Messages = append(req.Messages, llm.Message{Role: llm.User, Content: []workspace.Content{{Kind: workspace.Image, Blob: "png"}, {Kind: workspace.FileRef, MIME: pdf, Blob: "pdf"}}})
			default:
				req.Messages = append(req.Messages, toolTurn()...)
			}
		}
		if _, err := m.Stream(t.Context(), req, nil); err != nil {
			rt.Fatalf("%v: %s", err, m.write(req, 0).body())
		}
	})
	for _, b := range srv.Bodies() {
		if n := len(cached(b)); n > maxBreakpoints {
			t.Fatalf("%d breakpoints in %s", n, b)
		}
	}
}
