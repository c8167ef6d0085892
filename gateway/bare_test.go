package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// bare is a server that knows the little of a network without which nobody could answer there, and says of all else
// that there is no such thing: a stand-in, a proxy or an older version. An adapter goes on without what it lacks.
type bare struct {
	t    *testing.T
	http *httptest.Server

	mu     sync.Mutex
	posts  map[string]string // text by message
	order  []string
	calls  map[string]int
	acked  map[string]bool
	grew   chan struct{}
	events chan string   // frames for the adapter
	up     chan struct{} // closed when it may be sent events
	again  chan struct{} // wakes the connection for it
	once   sync.Once
	next   int
}

func newBare(t *testing.T, serve func(*bare) http.Handler) *bare {
	b := &bare{t: t, posts: map[string]string{}, calls: map[string]int{}, acked: map[string]bool{}, grew: make(chan struct{}), events: make(chan string, 100), up: make(chan struct{}), again: make(chan struct{}, 1)}
	b.http = httptest.NewServer(serve(b))
	t.Cleanup(b.http.Close)
	return b
}

func (b *bare) ready() {
	b.once.Do(func() {
		close(b.up)
		b.again <- struct{}{}
	})
}

func (b *bare) note(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
	close(b.grew)
	b.grew = make(chan struct{})
}

// said blocks until a message with that text stands there, and returns how many messages there are.
func (b *bare) until(what string, cond func() bool) {
	b.t.Helper()
	limit := time.After(30 * time.Second)
	for {
		b.mu.Lock()
		ok, grew := cond(), b.grew
		b.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-grew:
		case <-limit:
			b.t.Fatalf("%s: never; have %q, calls %v", what, b.posts, b.calls)
		}
	}
}

func (b *bare) has(text string) (n int) {
	for _, p := range b.posts {
		if strings.Contains(p, text) {
			n++
		}
	}
	return n
}

// bareSlack knows auth.test, apps.connections.open, chat.postMessage and chat.update.
func bareSlack(b *bare) http.Handler {
	say := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		method := strings.TrimPrefix(r.URL.Path, "/api/")
		b.note(func() { b.calls[method]++ })
		say(w, map[string]any{"ok": false, "error": "unknown_method"})
	})
	mux.HandleFunc("/api/auth.test", func(w http.ResponseWriter, _ *http.Request) {
		say(w, map[string]any{"ok": true, "url": "https://t.slack.com/", "team": "T", "user": "parley", "team_id": "T0001", "user_id": "U0BOT", "bot_id": "B0001"})
	})
	mux.HandleFunc("/api/apps.connections.open", func(w http.ResponseWriter, _ *http.Request) {
		say(w, map[string]any{"ok": true, "url": "ws" + strings.TrimPrefix(b.http.URL, "http") + "/link"})
	})
	mux.HandleFunc("/api/chat.postMessage", func(w http.ResponseWriter, r *http.Request) {
		f := fields(r)
		var ts string
		b.note(func() {
			b.next++
			ts = fmt.Sprintf("1700000000.%06d", b.next)
			b.posts[ts] = f.Get("channel") + ": " + f.Get("text") + f.Get("markdown_text") + f.Get("blocks")
			b.order = append(b.order, ts)
		})
		say(w, map[string]any{"ok": true, "channel": f.Get("channel"), "ts": ts, "message": map[string]any{"ts": ts, "text": f.Get("text")}})
	})
	mux.HandleFunc("/api/chat.update", func(w http.ResponseWriter, r *http.Request) {
		f := fields(r)
		b.note(func() {
			b.posts[f.Get("ts")] = f.Get("channel") + ": " + f.Get("text") + f.Get("markdown_text") + f.Get("blocks")
		})
		say(w, map[string]any{"ok": true, "channel": f.Get("channel"), "ts": f.Get("ts"), "text": f.Get("text")})
	})
	mux.HandleFunc("/link", func(w http.ResponseWriter, r *http.Request) {
		b.ready()
		b.talk(w, r, `{"type":"hello","num_connections":1,"connection_info":{"app_id":"A1"}}`, func(frame map[string]any) string {
			if id, ok := frame["envelope_id"].(string); ok {
				b.note(func() { b.acked[id] = true })
			}
			return ""
		})
	})
	return mux
}

// fields are those of a form or of a JSON body.
func fields(r *http.Request) url.Values {
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		var v map[string]any
		_ = json.NewDecoder(r.Body).Decode(&v)
		out := url.Values{}
		for k, x := range v {
			if s, ok := x.(string); ok {
				out.Set(k, s)
			} else {
				text, _ := json.Marshal(x)
				out.Set(k, string(text))
			}
		}
		return out
	}
	_ = r.ParseMultipartForm(1 << 20)
	_ = r.ParseForm()
	return r.Form
}

// talk serves one WebSocket: the greeting, then events, and what answer makes of each frame.
func (b *bare) talk(w http.ResponseWriter, r *http.Request, greeting string, answer func(map[string]any) string) {
	c, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return
	}
	defer c.CloseNow()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	if c.Write(ctx, websocket.MessageText, []byte(greeting)) != nil {
		return
	}
	go func() { // ends with the connection
		defer cancel()
		for {
			_, data, err := c.Read(ctx)
			if err != nil {
				return
			}
			var frame map[string]any
			if json.Unmarshal(data, &frame) != nil {
				continue
			}
			say := answer(frame)
			if say != "" && c.Write(ctx, websocket.MessageText, []byte(say)) != nil {
				return
			}
			if strings.Contains(say, "READY") {
				b.ready()
			}
		}
	}()
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for {
		var events chan string
		select {
		case <-b.up:
			events = b.events
		default:
		}
		select {
		case <-ctx.Done():
			return
		case <-b.again:
		case e := <-events:
			if c.Write(ctx, websocket.MessageText, []byte(e)) != nil {
				return
			}
		case <-tick.C:
			if c.Ping(ctx) != nil {
				return
			}
		}
	}
}

// bareDiscord knows gateway/bot, users/@me, and messages: POST and PATCH.
func bareDiscord(b *bare) http.Handler {
	mux := http.NewServeMux()
	say := func(w http.ResponseWriter, status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	me := map[string]any{"id": "9001", "username": "parley", "discriminator": "0", "bot": true}
	message := func(id, channel, text string) map[string]any {
		return map[string]any{"id": id, "channel_id": channel, "content": text, "author": me, "timestamp": "2026-01-01T00:00:00.000000+00:00", "type": 0}
	}
	mux.HandleFunc("/api/v10/", func(w http.ResponseWriter, r *http.Request) {
		b.note(func() { b.calls[r.Method+" "+r.URL.Path]++ })
		say(w, 404, map[string]any{"message": "404: Not Found", "code": 0})
	})
	mux.HandleFunc("GET /api/v10/gateway/bot", func(w http.ResponseWriter, _ *http.Request) {
		say(w, 200, map[string]any{"url": "ws" + strings.TrimPrefix(b.http.URL, "http") + "/gw", "shards": 1,
			"session_start_limit": map[string]any{"total": 1000, "remaining": 999, "reset_after": 0, "max_concurrency": 1}})
	})
	mux.HandleFunc("GET /api/v10/users/@me", func(w http.ResponseWriter, _ *http.Request) { say(w, 200, me) })
	mux.HandleFunc("POST /api/v10/channels/{channel}/messages", func(w http.ResponseWriter, r *http.Request) {
		text := content(r)
		var id string
		b.note(func() {
			b.next++
			id = fmt.Sprint(7000 + b.next)
			b.posts[id] = r.PathValue("channel") + ": " + text
			b.order = append(b.order, id)
		})
		say(w, 200, message(id, r.PathValue("channel"), text))
	})
	mux.HandleFunc("PATCH /api/v10/channels/{channel}/messages/{id}", func(w http.ResponseWriter, r *http.Request) {
		text := content(r)
		b.note(func() { b.posts[r.PathValue("id")] = r.PathValue("channel") + ": " + text })
		say(w, 200, message(r.PathValue("id"), r.PathValue("channel"), text))
	})
	mux.HandleFunc("/gw", func(w http.ResponseWriter, r *http.Request) { bareGateway(b, w, r, me) })
	mux.HandleFunc("/gw/", func(w http.ResponseWriter, r *http.Request) { bareGateway(b, w, r, me) })
	return mux
}

func bareGateway(b *bare, w http.ResponseWriter, r *http.Request, me map[string]any) {
	b.talk(w, r, `{"op":10,"d":{"heartbeat_interval":41250},"s":null,"t":null}`, func(frame map[string]any) string {
		switch frame["op"] {
		case 1.0:
			return `{"op":11}`
		case 2.0, 6.0:
			ready, _ := json.Marshal(map[string]any{"op": 0, "s": 1, "t": "READY", "d": map[string]any{"v": 10, "user": me, "guilds": []any{}, "session_id": "s1",
				"resume_gateway_url": "ws" + strings.TrimPrefix(b.http.URL, "http") + "/gw", "application": map[string]any{"id": "9001", "flags": 1 << 18}}})
			return string(ready)
		}
		return ""
	})
}

func content(r *http.Request) string {
	data, _ := io.ReadAll(r.Body)
	var v struct {
		Content string `json:"content"`
	}
	_ = json.Unmarshal(data, &v)
	return v.Content
}

// Each network's adapter answers on a server that knows only what an answer needs: once, also when the event comes twice.
func TestAdaptersAnswerOnABareServer(t *testing.T) {
	t.Parallel()
	slack := func(n int) string {
		return fmt.Sprintf(`{"type":"events_api","envelope_id":"e%d","accepts_response_payload":false,"payload":{"type":"event_callback","team_id":"T0001","api_app_id":"A1","event_id":"Ev%d","event_time":1700000000,`+
			`"event":{"type":"message","channel":"D0001","channel_type":"im","user":"U0ANA","text":"hello","ts":"%d.000100","team":"T0001"}}}`, n, n, time.Now().Unix())
	}
	discord := func(n int) string {
		return fmt.Sprintf(`{"op":0,"s":%d,"t":"MESSAGE_CREATE","d":{"id":"8001","channel_id":"5001","type":0,"content":"hello","timestamp":"%s","edited_timestamp":null,"tts":false,"mention_everyone":false,`+
			`"mentions":[],"mention_roles":[],"attachments":[],"embeds":[],"pinned":false,"author":{"id":"42","username":"ana","discriminator":"0"}}}`, n+1, time.Now().UTC().Format(time.RFC3339))
	}
	for name, c := range map[string]struct {
		serve  func(*bare) http.Handler
		config string
		event  func(int) string
		where  string
		group  string // a mention in a group that the adapter has never seen
		room   string
	}{
		"slack":   {bareSlack, `{name: net, type: slack, bot_token: xoxb-1-2-abcdefghijkl, app_token: xapp-1-A1-2-abcdefghijkl, api_url: "%s/api/", access: {dm: open, groups: open}}`, slack, "D0001", strings.NewReplacer(`"D0001","channel_type":"im"`, `"C0001","channel_type":"channel"`, "hello", "<@U0BOT> hi all", ".000100", ".000900", `"e4"`, `"e9"`).Replace(slack(4)), "C0001"},
		"discord": {bareDiscord, `{name: net, type: discord, token: "OTAwMQ.Gabcde.abcdefghijklmnopqrstuvwxyz0123456789", api_url: "%s/api/v10/", access: {dm: open, groups: open}}`, discord, "5001", strings.NewReplacer(`"channel_id":"5001"`, `"channel_id":"6001","guild_id":"77"`, "hello", "<@9001> hi all", "8001", "8009", `"mentions":[]`, `"mentions":[{"id":"9001","username":"parley"}]`).Replace(discord(9)), "6001"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBare(t, c.serve)
			r := newRig(t, setup{more: ", " + fmt.Sprintf(c.config, b.http.URL)})
			b.events <- c.event(1)
			b.until("an answer", func() bool { return b.has(c.where+": ") == 1 && b.has("echo: hello") == 1 })
			b.events <- c.event(2)
			b.events <- strings.NewReplacer("hello", "again", "8001", "8002", ".000100", ".000200", `"Ev`, `"Ex`).Replace(c.event(3))
			b.until("the second answer", func() bool { return b.has("echo: again") == 1 })
			b.events <- c.group
			b.until("the answer in a group", func() bool { return b.has(c.room+": ") == 1 && b.has("hi all") == 1 })
			b.mu.Lock()
			defer b.mu.Unlock()
			if n := b.has("echo: hello"); n != 1 {
				t.Errorf("%d answers to one message: %q", n, b.posts)
			}
			if !strings.Contains(r.log.String(), "channel state") {
				t.Error("nothing is logged")
			}
		})
	}
}
