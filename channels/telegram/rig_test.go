package telegram

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"parley/channels"
	"parley/channels/channeltest"
)

const testToken = "4242:AAsecretsecretsecret"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// reply is what a script answers to a call; status 0 is 200.
type reply struct {
	status int
	body   string
}

func ok(result string) reply { return reply{body: `{"ok":true,"result":` + result + `}`} }

func refuse(code int, description string) reply {
	return reply{code, fmt.Sprintf(`{"ok":false,"error_code":%d,"description":%q}`, code, description)}
}

// script is a Bot API without sockets: it serves as a transport, also inside a synctest bubble. It keeps every
// call and holds a queue of updates with Telegram's rule: what is below the offset of a poll is forgotten.
type script struct {
	mu      sync.Mutex
	calls   []madeCall
	queue   []string // raw updates; ids are 1 + index
	confirm int      // updates forgotten
	arrived chan struct{}
	answer  map[string]func(url.Values) reply
}

type madeCall struct {
	method string
	form   url.Values
}

func newScript() *script {
	s := &script{arrived: make(chan struct{}), answer: map[string]func(url.Values) reply{}}
	s.on("getMe", ok(`{"id":4242,"is_bot":true,"first_name":"Parley","username":"ParleyBot","can_join_groups":true,"can_read_all_group_messages":false}`))
	s.on("deleteWebhook", ok("true"))
	s.on("answerCallbackQuery", ok("true"))
	s.on("getWebhookInfo", ok(`{"url":"","pending_update_count":0}`))
	return s
}

func (s *script) on(method string, r reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer[method] = func(url.Values) reply { return r }
}

// onTurns answers with the replies in order, and with the last for ever.
func (s *script) onTurns(method string, replies ...reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	s.answer[method] = func(url.Values) reply {
		r := replies[min(n, len(replies)-1)]
		n++
		return r
	}
}

// confirmed is how many updates were forgotten.
func (s *script) confirmed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.confirm
}

func (s *script) push(raws ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, raws...)
	close(s.arrived)
	s.arrived = make(chan struct{})
}

func (s *script) made(method string) []url.Values {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []url.Values
	for _, c := range s.calls {
		if c.method == method {
			out = append(out, c.form)
		}
	}
	return out
}

// RoundTrip serves one call.
func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	method := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	form := url.Values{}
	if r.Body != nil {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		if form, err = url.ParseQuery(string(raw)); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	s.calls = append(s.calls, madeCall{method, form})
	answer := s.answer[method]
	s.mu.Unlock()
	out := reply{404, `{"ok":false,"error_code":404,"description":"Not Found: method"}`}
	switch {
	case answer != nil:
		out = answer(form)
	case method == "getUpdates":
		var err error
		if out, err = s.updates(r.Context(), form); err != nil {
			return nil, err
		}
	}
	if out.status == 0 {
		out.status = 200
	}
	return &http.Response{StatusCode: out.status, Header: http.Header{}, ContentLength: int64(len(out.body)),
		Body: io.NopCloser(strings.NewReader(out.body)), Request: r}, nil
}

func (s *script) updates(ctx context.Context, form url.Values) (reply, error) {
	var offset, wait int
	_, _ = fmt.Sscan(form.Get("offset"), &offset)
	_, _ = fmt.Sscan(form.Get("timeout"), &wait)
	timeout := time.NewTimer(time.Duration(wait) * time.Second)
	defer timeout.Stop()
	for {
		s.mu.Lock()
		s.confirm = max(s.confirm, offset-1)
		waiting, arrived := s.queue[min(s.confirm, len(s.queue)):], s.arrived
		s.mu.Unlock()
		if len(waiting) > 0 {
			return ok("[" + strings.Join(waiting[:min(len(waiting), 100)], ",") + "]"), nil
		}
		select {
		case <-arrived:
		case <-timeout.C:
			return ok("[]"), nil
		case <-ctx.Done():
			return reply{}, ctx.Err()
		}
	}
}

// channel is a Channel on the script, and its log.
func (s *script) channel(t testing.TB) (*Channel, *channeltest.Log) {
	t.Helper()
	return newChannel(t, "http://bot.example", &http.Client{Transport: s})
}

func newChannel(t testing.TB, base string, client *http.Client) (*Channel, *channeltest.Log) {
	t.Helper()
	logs := &channeltest.Log{}
	d := channels.Deps{Log: logs.Logger(), HTTP: client, Clock: &channeltest.Clock{}}
	c, err := New("tg", Options{Token: testToken, APIURL: base}, d)
	if err != nil {
		t.Fatal(err)
	}
	return c, logs
}

// overHTTP is a Channel on a real server with a transport of its own.
func overHTTP(t testing.TB, h http.Handler) *Channel {
	t.Helper()
	srv := httptest.NewServer(h)
	tr := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(func() { tr.CloseIdleConnections(); srv.Close() })
	c, _ := newChannel(t, srv.URL, &http.Client{Transport: tr})
	return c
}

// journal is an Intake that keeps what it takes.
type journal struct {
	mu     sync.Mutex
	taken  []channels.Inbound
	offers int
	refuse func(offer int) error // nil: takes all; offer counts from 1
	before func()
	states []channels.Status
}

func newJournal() *journal { return &journal{} }

func (j *journal) Receive(_ context.Context, batch ...channels.Inbound) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.offers++
	if j.before != nil {
		j.before()
	}
	if j.refuse != nil {
		if err := j.refuse(j.offers); err != nil {
			return err
		}
	}
	j.taken = append(j.taken, batch...)
	return nil
}

func (j *journal) Newest(context.Context) (map[channels.PeerID]channels.MessageID, error) {
	return nil, nil
}

func (j *journal) Report(s channels.Status) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.states = append(j.states, s)
}

func (j *journal) texts() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []string
	for _, in := range j.taken {
		out = append(out, in.Text)
	}
	return out
}

func (j *journal) all() []channels.Inbound {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.taken)
}

func (j *journal) told() []channels.Status {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.states)
}

func (j *journal) last() channels.Status {
	all := j.told()
	if len(all) == 0 {
		return channels.Status{}
	}
	return all[len(all)-1]
}

func (j *journal) seen(state channels.State) (channels.Status, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, s := range j.states {
		if s.State == state {
			return s, true
		}
	}
	return channels.Status{}, false
}

func textUpdate(id int, text string) string {
	raw, _ := json.Marshal(map[string]any{"update_id": id, "message": map[string]any{
		"message_id": 100 + id, "date": 1700000000, "text": text,
		"from": map[string]any{"id": 7, "first_name": "Ana"},
		"chat": map[string]any{"id": 7, "type": "private"},
	}})
	return string(raw)
}
