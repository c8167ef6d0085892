package benchtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
)

const (
	openPages   = 200
	pageAnswers = 20
)

// pages opens 200 pages on one session and measures how long the model's first token takes to each of them.
func (r *bench) pages() {
	for round := range r.plays() {
		for _, who := range r.gateways(round) {
			r.pagesOf(who)
		}
	}
}

func (r *bench) pagesOf(who int) {
	m := &slowModel{said: make(chan time.Time, 1)}
	server := httptest.NewServer(m)
	defer server.Close()
	dir := r.dir()
	p := r.bin.serve(r.b, who, dir, server.URL)
	defer p.kill()
	address, token := p.address(dir)
	seen := make(chan time.Time, openPages)
	ctx, cancel := context.WithCancel(r.b.Context())
	var wg sync.WaitGroup
	var first *websocket.Conn
	for range openPages {
		ws := openPage(r.b, address, token)
		wg.Go(func() { readPage(ctx, ws, seen) })
		if first == nil {
			first = ws
		}
	}
	for n := range pageAnswers + 2 {
		send(r.b, first, map[string]any{"type": "message", "id": fmt.Sprint("m", n), "text": "hello"})
		said := <-m.said
		var took []float64
		for range openPages {
			select {
			case at := <-seen:
				took = append(took, max(0, millis(at.Sub(said))))
			case <-time.After(10 * time.Second):
				r.b.Fatalf("%d of %d pages saw answer %d; the log ends: %s", len(took), openPages, n, p.tail())
			}
		}
		if n >= 2 { // warm
			r.note("pages p50", who, median(took))
			r.note("pages last", who, slices.Max(took))
		}
	}
	u := p.used()
	r.note("pages memory", who, u.rss)
	cancel()
	wg.Wait()
	r.say("first token to %d pages: p50 %.1f ms, the last %.1f ms, worst of %d answers %.1f ms; %.1f MiB", openPages, median(r.seen["pages p50"][who]),
		median(r.seen["pages last"][who]), pageAnswers, slices.Max(r.seen["pages last"][who]), u.rss)
}

// slowModel says one token, stamps it, and ends a little later.
type slowModel struct{ said chan time.Time }

func (m *slowModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // whatever it is asked
	w.Header().Set("Content-Type", "text/event-stream")
	say := func(delta string) {
		fmt.Fprintf(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"model\":\"x\",\"choices\":[{\"index\":0,%s}]}\n\n", delta)
		w.(http.Flusher).Flush()
	}
	say(`"delta":{"content":"first "}`)
	m.said <- time.Now()
	end := time.NewTimer(200 * time.Millisecond)
	defer end.Stop()
	select {
	case <-end.C:
	case <-r.Context().Done():
		return
	}
	say(`"delta":{"content":"last"},"finish_reason":"stop"`)
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// serve starts the gateway with no channel but WebChat.
func (bin binaries) serve(b *testing.B, who int, dir, model string) *process {
	b.Helper()
	path := filepath.Join(dir, "parley.yaml")
	text := fmt.Sprintf("data_dir: %s/data\ngateway: {listen: \"127.0.0.1:0\"}\nmodels: [{name: m, api: openai, base_url: \"%s\", api_key: sk-bench, model: bench-1}]\n", dir, model)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	return bin.run(b, dir, bin.path(who), "gateway", "--config", path)
}

// address reads what the gateway says when it is ready.
func (p *process) address(dir string) (address, token string) {
	p.b.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil {
		p.b.Fatalf("%v; the log ends: %s", err, p.tail())
	}
	_, rest, _ := strings.Cut(line, "http://")
	host, _, _ := strings.Cut(rest, " ")
	text, err := os.ReadFile(filepath.Join(dir, "data", "token"))
	if err != nil {
		p.b.Fatal(err)
	}
	return host, strings.TrimSpace(string(text))
}

func openPage(b *testing.B, address, token string) *websocket.Conn {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Second)
	defer cancel()
	dial := func() (*websocket.Conn, *http.Response, error) {
		return websocket.Dial(ctx, "ws://"+address+"/v1/live", &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + token}}})
	}
	ws, answer, err := dial()
	for err != nil && answer != nil && answer.StatusCode == http.StatusServiceUnavailable { // an older gateway is ready before its pages are
		ws, answer, err = dial()
	}
	if err != nil {
		b.Fatal(err)
	}
	ws.SetReadLimit(-1)
	b.Cleanup(func() { _ = ws.CloseNow() }) // it may have ended
	send(b, ws, map[string]any{"type": "follow", "key": "agent:assistant:local:main"})
	for {
		_, data, err := ws.Read(ctx)
		if err != nil {
			b.Fatal(err)
		}
		if strings.Contains(string(data), `"caught_up"`) {
			return ws
		}
	}
}

func send(b *testing.B, ws *websocket.Conn, v any) {
	b.Helper()
	data, err := json.Marshal(v)
	if err == nil {
		err = ws.Write(b.Context(), websocket.MessageText, data)
	}
	if err != nil {
		b.Fatal(err)
	}
}

// readPage tells when the first words of each answer came: as they grew, or whole when the page was late.
func readPage(ctx context.Context, ws *websocket.Conn, seen chan<- time.Time) {
	last := ""
	for {
		_, data, err := ws.Read(ctx)
		if err != nil {
			return
		}
		at := time.Now()
		var f struct {
			Event struct {
				Run string `json:"run_id"`
			}
		}
		if !strings.Contains(string(data), `"first `) || json.Unmarshal(data, &f) != nil || f.Event.Run == "" || f.Event.Run == last {
			continue
		}
		last = f.Event.Run
		seen <- at
	}
}
