package slacktest

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

const (
	ana  = "U0ANA00001"
	ben  = "U0BEN00001"
	dm   = "D0ANA00001"
	room = "C0ROOM0001"
	dark = "G0DARK0001"
)

// start is a server with two people, a direct message, a public and a private channel.
func start(t *testing.T, o Options) *Server {
	t.Helper()
	s := Start(t, o)
	s.AddUser(User{ID: ana, Name: "ana", Real: "Ana Lima"})
	s.AddUser(User{ID: ben, Name: "ben"})
	bot := s.Team(0).Bot.ID
	s.AddChannel(Channel{ID: dm, Kind: IM, Members: []string{ana}})
	s.AddChannel(Channel{ID: room, Name: "general", Kind: Public, Members: []string{ana, ben, bot}})
	s.AddChannel(Channel{ID: dark, Name: "dark", Kind: Private, Members: []string{ana, ben}})
	return s
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

type answer struct {
	status int
	header http.Header
	body   map[string]any
}

func (a answer) ok() bool { return a.body["ok"] == true }

func (a answer) code() string {
	code, _ := a.body["error"].(string)
	return code
}

func (a answer) text(key string) string {
	v, _ := a.body[key].(string)
	return v
}

// client has no connections that stay.
func client(t *testing.T) *http.Client {
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// do calls a method with a form and the bot's token; "token" changes it.
func do(t *testing.T, s *Server, method string, kv ...string) answer {
	t.Helper()
	form := url.Values{}
	token := s.Team(0).Token
	for i := 0; i < len(kv); i += 2 {
		if kv[i] == "token" {
			token = kv[i+1]
			continue
		}
		form.Set(kv[i], kv[i+1])
	}
	return send(t, s, method, token, "application/x-www-form-urlencoded", form.Encode())
}

func send(t *testing.T, s *Server, method, token, kind, body string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(within(t), http.MethodPost, s.APIURL()+method, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", kind)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := client(t).Do(req)
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	defer res.Body.Close()
	a := answer{status: res.StatusCode, header: res.Header}
	if err := json.NewDecoder(res.Body).Decode(&a.body); err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	return a
}

// line is a plain socket.
type line struct {
	t    *testing.T
	conn *websocket.Conn
}

func dial(t *testing.T, s *Server) *line {
	t.Helper()
	a := do(t, s, "apps.connections.open", "token", s.App().Token)
	conn, res, err := websocket.DefaultDialer.DialContext(within(t), a.text("url"), nil)
	if err != nil {
		t.Fatalf("dial %q: %v", a.text("url"), err)
	}
	_ = res.Body.Close()
	t.Cleanup(func() { _ = conn.Close() })
	return &line{t, conn}
}

type envelope struct {
	Type           string `json:"type"`
	EnvelopeID     string `json:"envelope_id"`
	NumConnections int    `json:"num_connections"`
	Reason         string `json:"reason"`
	RetryAttempt   int    `json:"retry_attempt"`
	Payload        struct {
		EventID string          `json:"event_id"`
		Event   json.RawMessage `json:"event"`
		Command string          `json:"command"`
		URL     string          `json:"response_url"`
	} `json:"payload"`
}

// next reads one envelope.
func (l *line) next() envelope {
	l.t.Helper()
	e, err := l.try()
	if err != nil {
		l.t.Fatalf("read the socket: %v", err)
	}
	return e
}

func (l *line) try() (e envelope, err error) {
	_ = l.conn.SetReadDeadline(time.Now().Add(20 * time.Second)) // fails with the connection
	_, raw, err := l.conn.ReadMessage()
	if err != nil {
		return e, err
	}
	return e, json.NewDecoder(bytes.NewReader(raw)).Decode(&e)
}

func (l *line) ack(e envelope) {
	l.t.Helper()
	if err := l.conn.WriteJSON(map[string]string{"envelope_id": e.EnvelopeID}); err != nil {
		l.t.Fatal(err)
	}
}

func wait(t *testing.T, s *Server, what string, cond func(View) bool) {
	t.Helper()
	if err := s.WaitFor(within(t), cond); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
