package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"parley/gateway/client"
)

// signIn is a browser's cookie, by a fresh code.
func (r *rig) signIn() *http.Cookie {
	r.t.Helper()
	code := r.ask("POST", "/v1/sign-in/codes", "{}", nil).fields(r.t)["code"].(string)
	a := r.ask("POST", "/v1/sign-in", `{"code":"`+code+`"}`, func(q *http.Request) {
		q.Header.Del("Authorization")
		q.Header.Set("Origin", r.g.URL())
	})
	if a.StatusCode != http.StatusNoContent || len(a.Cookies()) != 1 {
		r.t.Fatalf("%d %s, cookies %v", a.StatusCode, a.body, a.Cookies())
	}
	return a.Cookies()[0]
}

// as makes requests those of a page that is signed in.
func (r *rig) as(c *http.Cookie) func(*http.Request) { return asPage(c, r.g.URL()) }

func asPage(c *http.Cookie, origin string) func(*http.Request) {
	return func(q *http.Request) {
		q.Header.Del("Authorization")
		q.AddCookie(c)
		q.Header.Set("Origin", origin)
		q.Header.Set("Sec-Fetch-Site", "same-origin")
	}
}

// page is a browser's end of the live line.
type page struct {
	t      *testing.T
	ws     *websocket.Conn
	frames chan map[string]any
	ended  chan error
}

// dial opens the live line; edit changes the request's headers.
func (r *rig) dial(h http.Header) (*page, *http.Response, error) {
	tr := &http.Transport{DisableKeepAlives: true}
	r.t.Cleanup(tr.CloseIdleConnections)
	ctx, cancel := context.WithTimeout(r.t.Context(), 20*time.Second)
	defer cancel()
	opt := &websocket.DialOptions{HTTPHeader: h, HTTPClient: &http.Client{Transport: tr}}
	if host := h.Get("Host"); host != "" {
		opt.Host = host
	}
	ws, res, err := websocket.Dial(ctx, strings.Replace(r.g.URL(), "http", "ws", 1)+"/v1/live", opt)
	if err != nil {
		return nil, res, err
	}
	ws.SetReadLimit(8 << 20)
	p := &page{t: r.t, ws: ws, frames: make(chan map[string]any, 10_000), ended: make(chan error, 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(p.frames)
		for {
			_, data, err := ws.Read(context.WithoutCancel(r.t.Context())) // until it is closed
			if err != nil {
				p.ended <- err
				return
			}
			var f map[string]any
			if err := json.Unmarshal(data, &f); err != nil {
				p.ended <- err
				return
			}
			p.frames <- f
		}
	}()
	r.t.Cleanup(func() {
		_ = ws.CloseNow() // it may have ended
		<-done
	})
	return p, res, nil
}

// page opens the live line of a signed-in browser.
func (r *rig) page(c *http.Cookie) *page {
	r.t.Helper()
	p, _, err := r.dial(http.Header{"Origin": {r.g.URL()}, "Cookie": {c.Name + "=" + c.Value}})
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

func (p *page) send(v any) {
	p.t.Helper()
	data, err := json.Marshal(v)
	if err == nil {
		err = p.ws.Write(p.t.Context(), websocket.MessageText, data)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// until reads to the frame that is wanted and returns it.
func (p *page) until(what string, want func(map[string]any) bool) map[string]any {
	p.t.Helper()
	late := time.NewTimer(20 * time.Second)
	defer late.Stop()
	var seen []any
	for {
		select {
		case f, ok := <-p.frames:
			if !ok {
				p.t.Fatalf("the line ended before %s: %v", what, seen)
			}
			if want(f) {
				return f
			}
			seen = append(seen, f["type"])
		case <-late.C:
			p.t.Fatalf("no %s among %v", what, seen)
		}
	}
}

func kind(name string) func(map[string]any) bool {
	return func(f map[string]any) bool { return f["type"] == name }
}

func event(name string) func(map[string]any) bool {
	return func(f map[string]any) bool {
		e, _ := f["event"].(map[string]any)
		return e["type"] == name
	}
}

// A page signs in, follows a session before anything was said in it, says something, and sees it answered.
func pageSaysSomethingAndSeesItAnswered(t *testing.T, r *rig) {
	p := r.page(r.signIn())
	hello := p.until("hello", kind("hello"))
	if who := hello["person"].(map[string]any); who["id"] != "local" || who["role"] != "owner" {
		t.Errorf("%v", hello)
	}
	p.until("needs", kind("needs"))
	p.send(map[string]any{"type": "follow", "key": r.key()})
	p.until("caught_up", kind("caught_up"))
	p.send(map[string]any{"type": "message", "id": "says", "session": r.session, "text": "hello"})
	stored := p.until("stored", kind("stored"))
	if stored["id"] != "says" || stored["session"] != r.key() || stored["input_id"] == "" || stored["run_id"] == nil {
		t.Errorf("%v", stored)
	}
	ended := p.until("the end", event("turn.ended"))
	if seq := ended["event"].(map[string]any)["sequence"]; seq != 4.0 {
		t.Errorf("ends with %v", ended)
	}
	p.until("session", kind("session"))
	p.send(map[string]any{"type": "message", "id": "says", "session": r.session, "text": "hello"})
	if again := p.until("stored", kind("stored")); again["input_id"] != stored["input_id"] {
		t.Errorf("sent twice: %v, first %v", again, stored)
	}
	if n := len(r.model.asked); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// sequences are the numbers of the stored events among frames up to the wanted one.
func (p *page) sequences(what string, want func(map[string]any) bool) (list []int64) {
	p.t.Helper()
	p.until(what, func(f map[string]any) bool {
		if e, ok := f["event"].(map[string]any); ok && e["synthetic"] == false {
			list = append(list, int64(e["sequence"].(float64)))
		}
		return want(f)
	})
	return list
}

// A page that comes back gets what it has not seen, once, and the answer that is growing; a second page is in step.
func pageComesBackWithoutAGapOrADouble(t *testing.T, r *rig) {
	c := r.signIn()
	first := r.page(c)
	first.send(map[string]any{"type": "follow", "key": r.key()})
	first.send(map[string]any{"type": "message", "id": "back one", "session": r.session, "text": "hello"})
	if got := first.sequences("the first end", event("turn.ended")); !slices.Equal(got, []int64{1, 2, 3, 4}) {
		t.Fatalf("stored events %v", got)
	}
	first.send(map[string]any{"type": "message", "id": "back two", "session": r.session, "text": "hold on"})
	r.model.say(t, "half ")
	first.until("a delta", event("item.delta"))
	_ = first.ws.CloseNow() // the network is gone

	second := r.page(c)
	second.send(map[string]any{"type": "follow", "key": r.key(), "after": 4})
	caught := int64(second.until("caught_up", kind("caught_up"))["sequence"].(float64))
	grown := second.until("what has grown", event("item.delta"))["event"].(map[string]any)["data"].(map[string]any)
	if grown["text"] != "half " || grown["offset"] != 0.0 {
		t.Errorf("it has grown to %v", grown)
	}
	third := r.page(c)
	third.send(map[string]any{"type": "follow", "key": r.key(), "after": caught})
	third.until("caught_up", kind("caught_up"))
	second.send(map[string]any{"type": "message", "id": "back two", "session": r.session, "text": "hold on"}) // it does not know that it was stored
	if again := second.until("stored", kind("stored")); again["id"] != "back two" {
		t.Errorf("%v", again)
	}
	r.model.say(t, "done")
	r.model.finish()
	for _, p := range []*page{second, third} {
		if got := p.sequences("the second end", event("turn.ended")); len(got) == 0 || got[len(got)-1] != 8 {
			t.Errorf("after %d: %v", caught, got)
		}
	}
	if n := len(r.model.asked); n != 2 {
		t.Errorf("the model was asked %d times", n)
	}
}

// Pages hear of sessions that they do not follow, and of people who ask to be let in.
func pagesHearOfOtherSessionsAndOfWhatWaits(t *testing.T, r *rig) {
	p := r.page(r.signIn())
	before := p.until("needs", kind("needs"))["pairings"].(float64)
	r.net.write(t, "71", "let me in")
	if n := p.until("needs", kind("needs")); n["pairings"] != before+1 {
		t.Fatalf("%v", n)
	}
	r.send(client.Message{Text: "hello", Session: "elsewhere", Wait: 20})
	p.until("the session", func(f map[string]any) bool {
		it, _ := f["item"].(map[string]any)
		return f["type"] == "session" && it["key"] == "agent:assistant:local:elsewhere" && it["sequence"] == 4.0
	})
	id := r.pairing("71")
	r.ask("POST", "/v1/pairings/"+id+"/deny", "", nil)
	if n := p.until("needs", kind("needs")); n["pairings"] != before {
		t.Fatalf("%v", n)
	}
}

// What is said to a conversation beside its transcript reaches its pages, also those that come later; a command's reply
// stands in the transcript and comes no second time.
func noticesReachThePageAndRepliesComeOnce(t *testing.T, r *rig) {
	c := r.signIn()
	p := r.page(c)
	p.send(map[string]any{"type": "follow", "key": r.key()})
	p.send(map[string]any{"type": "message", "id": "one", "session": r.session, "text": "hold on"})
	r.model.say(t, "wait ")
	for _, id := range []string{"two", "three", "four"} {
		p.send(map[string]any{"type": "message", "id": id, "session": r.session, "text": "and " + id})
	}
	post := p.until("the notice", kind("post"))
	if text, _ := post["text"].(string); !strings.Contains(text, "four") || post["session"] != r.key() {
		t.Errorf("%v", post)
	}
	late := r.page(c)
	if again := late.until("the notice", kind("post")); again["id"] != post["id"] {
		t.Errorf("%v, then %v", post, again)
	}
	p.send(map[string]any{"type": "got", "id": post["id"]})
	p.send(map[string]any{"type": "message", "id": "cmd", "session": r.session, "text": "/whoami"})
	p.until("the reply in the transcript", func(f map[string]any) bool {
		if f["type"] == "post" && f["id"] != post["id"] {
			t.Errorf("the reply is sent as well: %v", f)
		}
		e, _ := f["event"].(map[string]any)
		data, _ := e["data"].(map[string]any)
		it, _ := data["item"].(map[string]any)
		return it["type"] == "system" && it["command"] == "/whoami"
	})
	r.model.finish()
	p.until("the end of the second", func(f map[string]any) bool { return event("turn.ended")(f) })
}

// A message that waits can be changed or taken back; what no page should say is refused with a reason, and kept out.
func pageEditsDeletesAndIsRefused(t *testing.T, r *rig) {
	p := r.page(r.signIn())
	p.send(map[string]any{"type": "follow", "key": r.key()})
	p.send(map[string]any{"type": "message", "id": "e one", "session": r.session, "text": "hold on"})
	r.model.say(t, "wait")
	p.send(map[string]any{"type": "message", "id": "e two", "session": r.session, "text": "first words"})
	p.send(map[string]any{"type": "message", "id": "e three", "session": r.session, "text": "not this"})
	p.send(map[string]any{"type": "edit", "id": "e", "session": r.session, "target": "e two", "text": "other words"})
	p.send(map[string]any{"type": "delete", "id": "d", "session": r.session, "target": "e three"})
	for _, id := range []string{"e one", "e two", "e three", "e", "d"} {
		p.until("stored "+id, func(f map[string]any) bool { return f["type"] == "stored" && f["id"] == id })
	}
	for name, f := range map[string]map[string]any{
		"nothing": {"type": "message", "id": "r1", "text": "  "}, "no agent": {"type": "message", "id": "r2", "text": "x", "session": "agent:nobody:local:main"},
		"no file": {"type": "message", "id": "r3", "text": "x", "files": []map[string]any{{"ref": strings.Repeat("a", 64)}}},
		"no id":   {"type": "message", "text": "x"}, "too long": {"type": "message", "id": "r4", "text": strings.Repeat("x", 257<<10)}, "unknown": {"type": "dance", "id": "r5"},
	} {
		p.send(f)
		no := p.until(name, kind("refused"))
		problem, _ := no["problem"].(map[string]any)
		if status, _ := problem["status"].(float64); status < 400 || status >= 500 || problem["detail"] == "" || f["id"] != nil && no["id"] != f["id"] {
			t.Errorf("%s: %v", name, no)
		}
	}
	r.model.finish()
	p.until("the last answer", func(f map[string]any) bool {
		text := string(mustJSON(t, f))
		if strings.Contains(text, "not this") {
			t.Errorf("what was taken back is answered: %s", text)
		}
		return event("item.completed")(f) && strings.Contains(text, "echo: other words")
	})
}
