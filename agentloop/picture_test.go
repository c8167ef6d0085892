package agentloop

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"parley/agentloop/llm"
	"parley/workspace"
)

// pictured is a transcript of turns, each an answered question; every third brings a picture.
func pictured(name string, turns, every int) (hist []workspace.Entry) {
	nth := 0
	for i := range turns {
		run := workspace.RunID(fmt.Sprint(name, i))
		q := workspace.Entry{RunID: run, Role: workspace.RoleUser, Body: workspace.EntryBody{Content: []workspace.Content{{Kind: workspace.Text, Text: fmt.Sprint("question ", i)}}}}
		if i%every == 0 {
			nth++
			q.Body.Content = append(q.Body.Content, workspace.Content{Kind: workspace.Image, MIME: "image/png", Blob: fmt.Sprint("blob", nth), Nth: nth, Size: 1000,
				Text: fmt.Sprintf("[attached image: inbox/p%d.png]", nth)})
		}
		hist = append(hist, q, workspace.Entry{RunID: run, Role: workspace.RoleAssistant, Body: workspace.EntryBody{Content: []workspace.Content{{Kind: workspace.Text, Text: "answer"}}}})
	}
	return hist
}

// prompt is the messages that a turn begins with, when the last entry of hist is its question.
func prompt(hist []workspace.Entry) []llm.Message {
	past, now := splitHistory(hist, hist[len(hist)-1].RunID, "dm")
	c := conversation{past: past, now: now.messages}
	return c.messages()
}

func inView(msgs []llm.Message) (n int) {
	for _, m := range msgs {
		for _, c := range m.Content {
			if c.Kind == workspace.Image {
				n++
			}
		}
	}
	return n
}

func TestOlderPicturesLeaveTheViewInStridesAndAlwaysTheSameWay(t *testing.T) {
	t.Parallel()
	hist := pictured("r", 100, 1)
	raw, err := json.Marshal(hist)
	if err != nil {
		t.Fatal(err)
	}
	var restarted []workspace.Entry
	if err := json.Unmarshal(raw, &restarted); err != nil {
		t.Fatal(err)
	}
	changed := 0
	var before []llm.Message
	for turn := range 100 {
		msgs := prompt(hist[:2*turn+1])
		if n := inView(msgs); n > 2*pictureStride || n < min(turn+1, pictureStride+1) {
			t.Fatalf("turn %d shows %d pictures", turn, n)
		}
		if msgs[len(msgs)-1].Content[1].Kind != workspace.Image {
			t.Fatalf("turn %d does not show its own", turn)
		}
		if same := fmt.Sprintf("%+v", prompt(restarted[:2*turn+1])) == fmt.Sprintf("%+v", msgs); !same {
			t.Fatalf("turn %d: another prompt after a restart", turn)
		}
		for i := range before {
			if fmt.Sprintf("%+v", before[i]) != fmt.Sprintf("%+v", msgs[i]) {
				changed++
				break
			}
		}
		before = msgs
	}
	if most := 100/pictureStride + 1; changed > most {
		t.Errorf("the prefix changed in %d of 100 turns, want at most %d", changed, most)
	}
	told := fmt.Sprintf("%+v", prompt(hist[:199])[0])
	if !strings.Contains(told, "inbox/p1.png] (it was shown when it came and is no longer in view)") {
		t.Errorf("the first picture is now %s", told)
	}
}

// Without new pictures nothing ever changes, however much of the transcript is at hand.
func TestPicturesStayInViewUntilNewOnesCome(t *testing.T) {
	t.Parallel()
	hist := append(pictured("r", 30, 3), pictured("s", 100, 1000)[2:]...)
	want := fmt.Sprintf("%+v", prompt(hist[:61])[54])
	for n := 61; n < len(hist); n += 2 {
		if got := fmt.Sprintf("%+v", prompt(hist[:n])[54]); got != want {
			t.Fatalf("with %d entries message 54 is %s, was %s", n, got, want)
		}
		if got := fmt.Sprintf("%+v", prompt(hist[20:n])[34]); got != want {
			t.Fatalf("without the oldest entries it is %s, was %s", got, want)
		}
	}
}

func TestPicturesFromBeforeCountingBeganAnewAreOutOfView(t *testing.T) {
	t.Parallel()
	hist := append(pictured("r", 9, 1), pictured("s", 2, 1)...)
	if n := inView(prompt(hist[:len(hist)-1])); n != 2 {
		t.Errorf("%d pictures in view, want the two new ones", n)
	}
}

func TestFilesOfATurnAreBounded(t *testing.T) {
	t.Parallel()
	pdf := workspace.Content{Kind: workspace.FileRef, MIME: "application/pdf", Blob: "b", Size: 9 << 20, Text: "[attached file: inbox/a.pdf]"}
	e := workspace.Entry{RunID: "r", Role: workspace.RoleUser}
	for i := range 3 {
		pdf.Nth = i + 1
		e.Body.Content = append(e.Body.Content, pdf)
	}
	_, now := splitHistory([]workspace.Entry{e}, "r", "dm")
	var kinds []workspace.ContentKind
	for _, c := range now.messages[0].Content {
		kinds = append(kinds, c.Kind)
	}
	if fmt.Sprint(kinds) != "[file_ref text text]" {
		t.Errorf("%v", kinds)
	}
	past, _ := splitHistory([]workspace.Entry{e, {RunID: "s", Role: workspace.RoleUser, Body: workspace.EntryBody{Content: []workspace.Content{{Kind: workspace.Text, Text: "and?"}}}}}, "s", "dm")
	if past[0].messages[0].Content[0].Kind != workspace.Text || e.Body.Content[0].Kind != workspace.FileRef {
		t.Error("a large document is shown again, or the transcript was changed")
	}
}

func TestPicturesThatDoNotFitAreToldOf(t *testing.T) {
	t.Parallel()
	_, now := splitHistory(pictured("r", 1, 1)[:1], "r0", "dm")
	c := conversation{now: now.messages}
	if !c.halve() || inView(c.now) != 0 || !strings.Contains(c.now[0].Content[1].Text, "does not fit") {
		t.Errorf("%+v", c.now)
	}
	if c.halve() {
		t.Error("there was nothing left to leave out")
	}
}
