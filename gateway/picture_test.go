package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/agentloop/llm/llmtest"
	"parley/channels/telegram/telegramtest"
)

// messagesOf is what stands before the messages of a request, and each of them up to the newest one of the user, as
// bytes without the marks of the cache.
func messagesOf(t *testing.T, body string) (head string, msgs []string) {
	t.Helper()
	body = strings.ReplaceAll(body, `,"cache_control":{"type":"ephemeral"}`, "")
	head, _, _ = strings.Cut(body, `"messages":[`)
	var req struct{ Messages []json.RawMessage }
	if err := json.Unmarshal([]byte(body), &req); err != nil {
		t.Fatal(err)
	}
	for _, m := range req.Messages[:len(req.Messages)-1] {
		if bytes.Contains(m, []byte(`"role":"system","content":"## Now`)) {
			continue // what changes from turn to turn
		}
		msgs = append(msgs, string(m))
	}
	return head, msgs
}

// Over 100 turns with 15 pictures and a restart in between, a request begins with the bytes of the one before, except
// where the oldest pictures leave the view.
func prefixIsByteStable(r *rig) {
	r.answers(func(*llmtest.Request) llmtest.Reply { return llmtest.Reply{Text: "fine"} })
	ana := r.person(11)
	for turn := range 100 {
		if turn == 50 {
			r.restart()
		}
		if turn%7 == 0 {
			r.send(ana, 11, fmt.Sprint("picture ", turn), telegramtest.File{Type: "photo", Data: photo(r.t, 8+turn, 8)})
		} else {
			r.say(ana, 11, fmt.Sprint("question ", turn))
		}
		r.wait(ana, turn+1)
	}
	bodies := r.bodies()
	if len(bodies) != 100 {
		r.t.Fatalf("%d requests", len(bodies))
	}
	changed, most := 0, 0
	head, before := messagesOf(r.t, bodies[0])
	for i, b := range bodies[1:] {
		h, msgs := messagesOf(r.t, b)
		if h != head {
			r.t.Fatalf("request %d begins otherwise", i+1)
		}
		for j := range before {
			if before[j] != msgs[j] {
				changed++
				break
			}
		}
		most = max(most, strings.Count(b, `"image_url":`)+strings.Count(b, `"type":"image"`))
		before = msgs
	}
	if changed > 3 { // 15 pictures, four leave at a time
		r.t.Errorf("the prefix changed %d times", changed)
	}
	if most < 4 || most > 8 {
		r.t.Errorf("at most %d pictures in a request, want 4 to 8", most)
	}
}

// documents says what is to stand in a request, and what not, when a document comes, by the model's configuration. A document is shown
// to models that read it on both wires, and to others only told of.
var documents = map[string]struct{ want, not string }{
	"vision: yes, api: openai":     {`"file_data":"data:application/pdf;base64,JVBERi0x`, "only told"},
	"vision: auto, api: openai":    {"(only told, not shown: this model does not see it)", "base64"},
	"vision: no, api: openai":      {"(only told, not shown: this model does not see it)", "base64"},
	"vision: auto, api: anthropic": {`"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0x`, "only told"},
	"vision: no, api: anthropic":   {"(only told, not shown: this model does not see it)", "base64"},
}

func documentIsShown(want, not string) func(*rig) {
	return func(r *rig) {
		ana := r.person(11)
		r.send(ana, 11, "read it", telegramtest.File{Type: "document", Name: "a b.pdf", MIME: "application/pdf", Data: []byte("%PDF-1.7\n1 0 obj\n")})
		r.wait(ana, 1)
		b := r.bodies()[0]
		if !strings.Contains(b, "inbox/a_b.pdf, application/pdf, 17 bytes]") || !strings.Contains(b, want) || strings.Contains(b, not) {
			r.t.Errorf("the request ends with %q", b[max(0, len(b)-700):])
		}
	}
}

// A server that refuses pictures is asked again without, once, and the person gets an answer.
func modelThatSeesNothing(r *rig) {
	r.answers(func(q *llmtest.Request) llmtest.Reply {
		if bytes.Contains(q.Body, []byte("image_url")) {
			return llmtest.Reply{Status: 500, ErrorBody: `{"error":{"message":"image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"}}`}
		}
		return llmtest.Echo(q)
	})
	ana := r.person(11)
	for n := range 2 {
		r.send(ana, 11, "look", telegramtest.File{Type: "photo", Data: photo(r.t, 30, 20)})
		if got := texts(r.wait(ana, n+1)); !strings.Contains(got[n], "inbox/image.jpg, image/jpeg") && !strings.Contains(got[n], "inbox/image-2.jpg") || !strings.Contains(got[n], "only told, not shown") {
			r.t.Errorf("%q", got[n])
		}
	}
	if n := len(r.bodies()); n != 3 {
		r.t.Errorf("%d calls, want a refusal and two answers", n)
	}
}

// What a guest sends stays in the guest's session: neither a name, nor a path, nor the tools of another reach it.
func filesStayInTheirSession(r *rig) {
	r.answers(func(q *llmtest.Request) llmtest.Reply {
		if q.Round() == 0 && strings.Contains(q.LastUser(), "list") {
			return llmtest.Reply{Calls: []llmtest.Call{{Name: "list_dir", Args: `{"path":"inbox"}`}, {Name: "read_file", Args: `{"path":"inbox/diary.txt"}`}}}
		}
		if q.Round() == 1 {
			return llmtest.Reply{Text: strings.Join(q.ToolResults(), " | ")}
		}
		return llmtest.Echo(q)
	})
	ana, ben := r.person(11), r.person(12)
	group := r.group()
	r.send(ana, 11, "keep this", telegramtest.File{Type: "document", Name: "diary.txt", Data: []byte("my secret")})
	r.wait(ana, 1)
	r.say(ana, 11, "list it")
	if got := texts(r.wait(ana, 2)); !strings.Contains(got[1], "diary.txt") || !strings.Contains(got[1], "my secret") {
		r.t.Errorf("its own session has %q", got[1])
	}
	r.say(ben, 12, "list it")
	r.say(group, 11, "@parley_test_bot list it")
	for _, got := range [][]string{texts(r.wait(ben, 1)), texts(r.wait(group, 1))} {
		if strings.Contains(got[0], "secret") || strings.Contains(got[0], "9 ") {
			r.t.Errorf("another session has %q", got[0])
		}
	}
	found, err := filepath.Glob(filepath.Join(r.dir, "data/agents/assistant/work/*/inbox/diary.txt"))
	if err != nil || len(found) != 1 {
		r.t.Fatalf("%q, %v", found, err)
	}
	if fi, err := os.Stat(found[0]); err != nil || fi.Mode().Perm() != 0o600 {
		r.t.Errorf("%v, %v", fi.Mode(), err)
	}
}
