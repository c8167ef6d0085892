package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
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
func (r *rig) as(c *http.Cookie) func(*http.Request) {
	return func(q *http.Request) {
		q.Header.Del("Authorization")
		q.AddCookie(c)
		q.Header.Set("Origin", r.g.URL())
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

const mainKey = "agent:assistant:local:main"

// A page signs in, follows a session before anything was said in it, says something, and sees it answered.
func TestPageSaysSomethingAndSeesItAnswered(t *testing.T) {
	t.Parallel()
	r := start(t, setup{})
	p := r.page(r.signIn())
	hello := p.until("hello", kind("hello"))
	if who := hello["person"].(map[string]any); who["id"] != "local" || who["role"] != "owner" {
		t.Errorf("%v", hello)
	}
	p.until("needs", kind("needs"))
	p.send(map[string]any{"type": "follow", "key": mainKey})
	p.until("caught_up", kind("caught_up"))
	p.send(map[string]any{"type": "message", "id": "one", "session": "main", "text": "hello"})
	stored := p.until("stored", kind("stored"))
	if stored["id"] != "one" || stored["session"] != mainKey || stored["input_id"] == "" || stored["run_id"] == nil {
		t.Errorf("%v", stored)
	}
	ended := p.until("the end", event("turn.ended"))
	if seq := ended["event"].(map[string]any)["sequence"]; seq != 4.0 {
		t.Errorf("ends with %v", ended)
	}
	p.until("session", kind("session"))
	p.send(map[string]any{"type": "message", "id": "one", "session": "main", "text": "hello"})
	if again := p.until("stored", kind("stored")); again["input_id"] != stored["input_id"] {
		t.Errorf("sent twice: %v, first %v", again, stored)
	}
	if n := len(r.model.asked); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
}
