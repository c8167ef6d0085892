package telegram

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/channels"
	"parley/channels/channeltest"
)

// answering is a server that says the same to every call.
func answering(t *testing.T, status int, body string) *Channel {
	t.Helper()
	return overHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
}

func refusal(code int, description, parameters string) string {
	return fmt.Sprintf(`{"ok":false,"error_code":%d,"description":%q%s}`, code, description, parameters)
}

func TestRefusalsAreClassified(t *testing.T) {
	t.Parallel()
	const page = "<html><h1>Bad Gateway</h1></html>"
	for name, c := range map[string]struct {
		status int
		body   string
		want   channels.Class
	}{
		"flood":             {429, refusal(429, "Too Many Requests: retry after 5", `,"parameters":{"retry_after":5}`), channels.Retry},
		"flood, no time":    {429, refusal(429, "Too Many Requests", ""), channels.Retry},
		"flood by 400":      {400, refusal(400, "Bad Request: FLOOD_WAIT", `,"parameters":{"retry_after":5}`), channels.Retry},
		"too long":          {400, refusal(400, "Bad Request: message is too long", ""), channels.BadMessage},
		"empty":             {400, refusal(400, "Bad Request: message text is empty", ""), channels.BadMessage},
		"too large":         {413, refusal(413, "Request Entity Too Large", ""), channels.BadMessage},
		"proxy too large":   {413, page, channels.BadMessage},
		"no such chat":      {400, refusal(400, "Bad Request: chat not found", ""), channels.PeerGone},
		"no rights":         {400, refusal(400, "Bad Request: have no rights to send a message", ""), channels.PeerGone},
		"not enough rights": {400, refusal(400, "Bad Request: not enough rights to send text messages to the chat", ""), channels.PeerGone},
		"topic gone":        {400, refusal(400, "Bad Request: message thread not found", ""), channels.PeerGone},
		"topic closed":      {400, refusal(400, "Bad Request: TOPIC_CLOSED", ""), channels.PeerGone},
		"blocked":           {403, refusal(403, "Forbidden: bot was blocked by the user", ""), channels.PeerGone},
		"moved":             {400, refusal(400, "Bad Request: group chat was upgraded to a supergroup chat", `,"parameters":{"migrate_to_chat_id":-1001}`), channels.PeerGone},
		"token":             {401, refusal(401, "Unauthorized", ""), channels.Fatal},
		"token shape":       {404, refusal(404, "Not Found", ""), channels.Fatal},
		"server":            {500, refusal(500, "Internal Server Error", ""), channels.Unknown},
		"gateway":           {502, refusal(502, "Bad Gateway", ""), channels.Unknown},
		"gateway's page":    {502, page, channels.Unknown},
		"timeout's page":    {504, page, channels.Unknown},
		"page says ok":      {200, page, channels.Unknown},
		"empty answer":      {200, "", channels.Unknown},
		"cut answer":        {200, `{"ok":true,"result":{"message_`, channels.Unknown},
		"ok without id":     {200, `{"ok":true,"result":{}}`, channels.Unknown},
		"ok, odd result":    {200, `{"ok":true,"result":"sent"}`, channels.Unknown},
		"proxy says no":     {403, page, channels.Retry},
		"redirect":          {302, "", channels.Retry},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ch := answering(t, c.status, c.body)
			post := channels.Post{To: dm(), Text: "x"}
			if name == "flood" || name == "moved" || name == "blocked" || name == "too long" {
				// The SDK leaves the code out on uploads.
				withFile := post
				withFile.Files = []channels.File{channeltest.Outgoing("f", "", []byte("abc"))}
				if _, err := ch.Send(t.Context(), withFile); channels.ClassOf(err) != c.want {
					t.Errorf("upload: %v, want %s", err, c.want)
				}
			}
			_, err := ch.Send(t.Context(), post)
			if channels.ClassOf(err) != c.want {
				t.Fatalf("%v, want %s", err, c.want)
			}
			var e *channels.Error
			if !errors.As(err, &e) {
				t.Fatal("not classified by the adapter")
			}
			if name == "flood" && e.After != 5*time.Second {
				t.Errorf("After is %s", e.After)
			}
			if name == "moved" && e.Moved != "-1001" {
				t.Errorf("Moved is %q", e.Moved)
			}
		})
	}
}

func TestNeverConnectedIsRetry(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.NotFoundHandler())
	base := srv.URL
	srv.Close()
	tr := &http.Transport{}
	c, _ := newChannel(t, base, &http.Client{Transport: tr})
	if _, err := c.Send(t.Context(), channels.Post{To: dm(), Text: "x"}); channels.ClassOf(err) != channels.Retry {
		t.Errorf("refused connection: %v", err)
	}
	file := channels.Post{To: dm(), Files: []channels.File{channeltest.Outgoing("f", "", []byte("abc"))}}
	if _, err := c.Send(t.Context(), file); channels.ClassOf(err) != channels.Retry {
		t.Errorf("refused connection on upload: %v", err)
	}
	gone := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.DNSError{Err: "no such host", Name: "bot.example", IsNotFound: true}
	}}
	c, _ = newChannel(t, "http://bot.example", &http.Client{Transport: gone})
	if _, err := c.Send(t.Context(), channels.Post{To: dm(), Text: "x"}); channels.ClassOf(err) != channels.Retry {
		t.Errorf("no such host: %v", err)
	}
}

func TestR05_CutAfterTheRequestIsUnknownAndNotRepeated(t *testing.T) {
	t.Parallel()
	for name, warm := range map[string]bool{"fresh connection": false, "pooled connection": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var taken atomic.Int64
			c := overHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if strings.HasSuffix(r.URL.Path, "/sendChatAction") {
					_, _ = io.WriteString(w, ok("true").body)
					return
				}
				taken.Add(1)
				conn, _, err := w.(http.Hijacker).Hijack()
				if err == nil {
					_ = conn.Close()
				}
			}))
			if warm {
				if err := c.ShowTyping(t.Context(), dm()); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := c.Send(t.Context(), channels.Post{To: dm(), Text: "x"}); channels.ClassOf(err) != channels.Unknown {
				t.Errorf("%v, want unknown", err)
			}
			if n := taken.Load(); n != 1 {
				t.Errorf("taken %d times", n)
			}
		})
	}
}

func TestDeadlineAfterTheRequestIsUnknown(t *testing.T) {
	t.Parallel()
	reached := make(chan struct{})
	c := overHTTP(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(reached)
		<-r.Context().Done()
	}))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-reached
		cancel()
	}()
	_, err := c.Send(ctx, channels.Post{To: dm(), Text: "x"})
	if channels.ClassOf(err) != channels.Unknown || !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestContextThatEndsBeforeAConnectionIsRetry(t *testing.T) {
	t.Parallel()
	dialing, over := make(chan struct{}, 1), make(chan struct{})
	t.Cleanup(func() { close(over) }) // the transport dials on after its request has gone
	tr := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		dialing <- struct{}{}
		<-over
		return nil, errors.New("nobody there")
	}}
	c, _ := newChannel(t, "http://bot.example", &http.Client{Transport: tr})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-dialing
		cancel()
	}()
	if _, err := c.Send(ctx, channels.Post{To: dm(), Text: "x"}); channels.ClassOf(err) != channels.Retry {
		t.Errorf("%v", err)
	}
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	t.Parallel()
	var conns atomic.Int64
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if strings.HasSuffix(r.URL.Path, "/getMe") || strings.HasSuffix(r.URL.Path, "/deleteMessage") {
			w.(http.Flusher).Flush() // chunked: the SDK's decoder stops before the last chunk
			_, _ = io.WriteString(w, ok(`{"id":1}`).body+"\n")
			return
		}
		_, _ = io.WriteString(w, ok(`{"message_id":1}`).body)
	}))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			conns.Add(1)
		}
	}
	srv.Start()
	tr := &http.Transport{}
	t.Cleanup(func() { tr.CloseIdleConnections(); srv.Close() })
	c, _ := newChannel(t, srv.URL, &http.Client{Transport: tr})
	for range 5 {
		if _, err := c.Send(t.Context(), channels.Post{To: dm(), Text: "x"}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.whoami(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := c.Delete(t.Context(), dm(), "1"); err != nil {
			t.Fatal(err)
		}
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("%d connections for 15 calls", n)
	}
}
