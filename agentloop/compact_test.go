package agentloop

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"parley/agentloop/llm"
	"parley/workspace"

	"pgregory.net/rapid"
)

// talked is a transcript of n exchanges of about size bytes each, the last of the run "now".
func talked(n, size int) []workspace.Entry {
	var list []workspace.Entry
	for i := range n {
		run := fmt.Sprint("r", i)
		if i == n-1 {
			run = "now"
		}
		list = append(list, entry(run, workspace.RoleUser, text(fmt.Sprintf("question %d %s", i, strings.Repeat("x", size)))))
		if i < n-1 {
			list = append(list, entry(run, workspace.RoleAssistant, text(fmt.Sprintf("answer %d %s", i, strings.Repeat("y", size)))))
		}
	}
	for i := range list {
		list[i].N = int64(i + 1)
	}
	return list
}

func TestASummaryLeavesTheNewestExchanges(t *testing.T) {
	t.Parallel()
	m := says(reply(text("  a summary \n")))
	l := &Loop{Models: m}
	turn := Turn{History: talked(6, 200), Run: "now", Summary: "what came before"}
	got, err := l.Summarize(t.Context(), turn, "keep names", nil)
	if err != nil || got.Summary != "a summary" || got.To != 8 || got.Turns != 4 || got.Before < 400 || got.After != tokens("a summary") || got.Usage.Calls != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	req := m.requests[0]
	sent := show(req.Messages)
	for _, want := range []string{"question 0", "answer 3", "what came before"} {
		if !strings.Contains(sent, want) {
			t.Errorf("%q is not summed up", want)
		}
	}
	if strings.Contains(sent, "question 4") || !strings.Contains(req.System, "keep names") || len(req.Tools) > 0 || req.MaxTokens == 0 {
		t.Errorf("asked with %q, tools %v, for %d tokens", req.System, req.Tools, req.MaxTokens)
	}
}

func TestAShortConversationIsNotSummedUp(t *testing.T) {
	t.Parallel()
	for name, history := range map[string][]workspace.Entry{"none": nil, "one line": talked(1, 10), "small talk": talked(4, 5)} {
		if _, err := (&Loop{Models: says()}).Summarize(t.Context(), Turn{History: history}, "", nil); !errors.Is(err, ErrShort) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := (&Loop{Models: says(reply(text(" ")))}).Summarize(t.Context(), Turn{History: talked(5, 300)}, "", nil); !errors.Is(err, errEmpty) {
		t.Errorf("an empty summary: %v", err)
	}
	if _, err := (&Loop{Models: says(&llm.Error{Kind: llm.Auth})}).Summarize(t.Context(), Turn{History: talked(5, 300)}, "", nil); Explain(err) != "I couldn't use the model: the model refuses the key. Tell the owner." {
		t.Errorf("a refused key: %v", err)
	}
}

// What is too long to be sent is cut in the middle, so that a summary can always be asked for.
func TestASummaryIsAskedForWithinTheWindow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := says(reply(text("s")))
		m.info.ContextWindow = rapid.IntRange(6000, 20_000).Draw(t, "window")
		size := rapid.IntRange(100, 9000).Draw(t, "size")
		_, err := (&Loop{Models: m}).Summarize(t.Context(), Turn{History: talked(rapid.IntRange(4, 40).Draw(t, "turns"), size)}, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		req := m.requests[0]
		total := tokens(req.System) + req.MaxTokens
		for _, msg := range req.Messages {
			total += messageSize(msg)
		}
		if total > m.info.ContextWindow {
			t.Fatalf("%d tokens for a window of %d", total, m.info.ContextWindow)
		}
	})
}

// The summary stands at the head of every request, whatever else is left out, and the same bytes each time.
func TestTheSummaryIsNeverLeftOut(t *testing.T) {
	t.Parallel()
	m := says(&llm.Error{Kind: llm.Overflow}, "fine")
	m.info.ContextWindow, m.info.MaxOutput = 3000, 500
	rec := &memory{}
	turn := Turn{Run: "now", History: talked(12, 500), Summary: "of the beginning", Models: []string{"m"}, MaxSteps: 3}
	if err := newTable(t, m).loop.Run(t.Context(), turn, rec, nil); err != nil {
		t.Fatal(err)
	}
	want := show([]llm.Message{*summaryMessage("of the beginning")})
	for i, req := range m.requests {
		if got := show(req.Messages); !strings.HasPrefix(got, want) || !strings.Contains(got, "left out to fit") {
			t.Errorf("request %d begins with %.200s", i, got)
		}
	}
	if len(rec.outcomes) != 1 || !rec.outcomes[0].TooLong {
		t.Errorf("%+v", rec.outcomes)
	}
}

func TestAPromptIsWeighedAsItIsSent(t *testing.T) {
	t.Parallel()
	m := says("fine")
	m.info.ContextWindow, m.info.MaxOutput = 50_000, 1000
	turn := Turn{Run: "now", System: strings.Repeat("s", 400), Volatile: strings.Repeat("v", 40), History: talked(4, 200), Summary: "short", Models: []string{"m"}, MaxSteps: 3}
	l := newTable(t, m).loop
	c, err := l.Compose(turn)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Run(t.Context(), turn, &memory{}, nil); err != nil {
		t.Fatal(err)
	}
	req, sent := m.requests[0], 0
	for _, msg := range req.Messages {
		sent += messageSize(msg)
	}
	if c.System != 100 || c.Volatile != 10 || c.Summary+c.History != sent || c.Messages != 7 || c.Turns != 3 || len(c.Schemas) != len(req.Tools) || c.Free() != 50_000-1000-c.Used() {
		t.Errorf("%+v; sent %d in %d messages", c, sent, len(req.Messages))
	}
}
