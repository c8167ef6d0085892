package discordtest

import (
	"bytes"
	"compress/zlib"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bwmarrin/discordgo"
	"github.com/gorilla/websocket"
)

// raw is a gateway client of our own, for what no library does.
type raw struct {
	t  *testing.T
	ws *websocket.Conn
	s  *Server
}

func dial(t *testing.T, s *Server, query string) *raw {
	t.Helper()
	ws, resp, err := websocket.DefaultDialer.Dial(s.wsURL("gateway")+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	t.Cleanup(func() { _ = ws.Close() })
	_ = ws.SetReadDeadline(time.Now().Add(20 * time.Second))
	return &raw{t, ws, s}
}

type packet struct {
	Op int             `json:"op"`
	S  int             `json:"s"`
	T  string          `json:"t"`
	D  json.RawMessage `json:"d"`
}

func (r *raw) read() (packet, error) {
	var p packet
	_, b, err := r.ws.ReadMessage()
	if err != nil {
		return p, err
	}
	return p, json.Unmarshal(b, &p)
}

func (r *raw) op(want int) packet {
	r.t.Helper()
	for {
		p, err := r.read()
		if err != nil {
			r.t.Fatalf("waiting for op %d: %v", want, err)
		}
		if p.Op == want {
			return p
		}
	}
}

// event reads up to a dispatch of that name.
func (r *raw) event(name string) packet {
	r.t.Helper()
	for {
		if p := r.op(opDispatch); p.T == name {
			return p
		}
	}
}

func (r *raw) send(op int, d any) {
	r.t.Helper()
	if err := r.ws.WriteJSON(obj{"op": op, "d": d}); err != nil {
		r.t.Fatal(err)
	}
}

// closed reads until the server's goodbye and gives its code; 0: it cut without one.
func (r *raw) closed() int {
	for {
		_, _, err := r.ws.ReadMessage()
		var e *websocket.CloseError
		if errors.As(err, &e) {
			if e.Code == websocket.CloseAbnormalClosure {
				return 0
			}
			return e.Code
		}
		if err != nil {
			return 0
		}
	}
}

func (r *raw) identify(intents int) (session string) {
	r.t.Helper()
	r.op(opHello)
	r.send(opIdentify, identity(r.s.Token(), intents))
	var ready struct {
		Session string `json:"session_id"`
		Resume  string `json:"resume_gateway_url"`
	}
	if err := json.Unmarshal(r.event("READY").D, &ready); err != nil || ready.Resume != r.s.wsURL("resume") {
		r.t.Fatalf("READY: %+v %v", ready, err)
	}
	return ready.Session
}

func identity(token string, intents int) obj {
	return obj{"token": token, "intents": intents, "properties": obj{"os": "linux", "browser": "test", "device": "test"}}
}

// clock is a time that a test moves.
type clock struct{ at atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.at.Store(1700000000e9)
	return c
}

func (c *clock) Now() time.Time      { return time.Unix(0, c.at.Load()) }
func (c *clock) add(d time.Duration) { c.at.Add(int64(d)) }

const most = IntentGuilds | IntentGuildMessages | IntentDirectMessages | IntentMessageContent

func TestCloseCodes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		o     Options
		query string
		do    func(*raw)
		want  int
	}{
		"version":      {Options{}, "?v=6&encoding=json", func(*raw) {}, closeVersion},
		"bad json":     {Options{}, "?v=10", func(r *raw) { _ = r.ws.WriteMessage(websocket.TextMessage, []byte("{")) }, closeDecode},
		"before auth":  {Options{}, "?v=10", func(r *raw) { r.send(opPresence, obj{}) }, closeNotAuth},
		"wrong token":  {Options{}, "?v=10", func(r *raw) { r.send(opIdentify, identity("x", most)) }, closeAuth},
		"wrong resume": {Options{}, "?v=10", func(r *raw) { r.send(opResume, obj{"token": "x", "session_id": "y", "seq": 1}) }, closeAuth},
		"intents":      {Options{}, "?v=10", func(r *raw) { r.send(opIdentify, identity(DefaultToken, 1<<40)) }, closeIntents},
		"no content":   {Options{NoContent: true}, "?v=10", func(r *raw) { r.send(opIdentify, identity(DefaultToken, most)) }, closeDisallowed},
		"no members":   {Options{NoMembers: true}, "?v=10", func(r *raw) { r.send(opIdentify, identity(DefaultToken, IntentMembers)) }, closeDisallowed},
		"twice":        {Options{NoLimits: true}, "?v=10", func(r *raw) { r.identify(most); r.send(opIdentify, identity(DefaultToken, most)) }, closeTwice},
		"opcode":       {Options{NoLimits: true}, "?v=10", func(r *raw) { r.identify(most); r.send(42, nil) }, closeOpcode},
		"shard":        {Options{}, "?v=10", func(r *raw) { o := identity(DefaultToken, most); o["shard"] = []int{2, 1}; r.send(opIdentify, o) }, closeShard},
		"too many": {Options{}, "?v=10", func(r *raw) {
			for range sendsPerMinute + 1 {
				r.send(opHeartbeat, nil)
			}
		}, closeRate},
		"no heartbeat":  {Options{Heartbeat: 20 * time.Millisecond}, "?v=10", func(*raw) {}, closeTimeout},
		"no more today": {Options{Starts: -1}, "?v=10", func(r *raw) { r.send(opIdentify, identity(DefaultToken, most)) }, closeAuth},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := dial(t, newWorld(t, tc.o), tc.query)
			tc.do(r)
			if got := r.closed(); got != tc.want {
				t.Errorf("closed with %d, want %d", got, tc.want)
			}
		})
	}
}

func TestIdentifyIsPaced(t *testing.T) {
	t.Parallel()
	s := newWorld(t, Options{})
	dial(t, s, "?v=10").identify(most)
	r := dial(t, s, "?v=10")
	r.op(opHello)
	r.send(opIdentify, identity(s.Token(), most))
	if p := r.op(opInvalid); string(p.D) != "false" {
		t.Errorf("a second identify within 5 s: %s", p.D)
	}
}

func TestResumeReplaysWhatWasMissed(t *testing.T) {
	t.Parallel()
	s := newWorld(t, Options{NoLimits: true})
	r := dial(t, s, "?v=10")
	session := r.identify(most)
	s.Write(In{Channel: dmID, From: anaID, Text: "one"})
	seq := r.event("MESSAGE_CREATE").S
	s.DropAll()
	if got := r.closed(); got != 0 {
		t.Errorf("a cut came with %d", got)
	}
	s.Write(In{Channel: dmID, From: anaID, Text: "two"})
	s.Write(In{Channel: dmID, From: anaID, Text: "three"})
	r = dial(t, s, "?v=10")
	r.op(opHello)
	r.send(opResume, obj{"token": s.Token(), "session_id": session, "seq": seq})
	for _, want := range []string{"two", "three"} {
		if p := r.event("MESSAGE_CREATE"); !strings.Contains(string(p.D), want) {
			t.Errorf("replayed %s, want %s", p.D, want)
		}
	}
	r.event("RESUMED")
	_ = r.ws.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(1000, ""))
	r.closed()
	if err := s.WaitFor(t.Context(), func() bool { return s.Line().Sessions == 0 }); err != nil {
		t.Error(err)
	}
	r = dial(t, s, "?v=10")
	r.op(opHello)
	r.send(opResume, obj{"token": s.Token(), "session_id": session, "seq": seq})
	if p := r.op(opInvalid); string(p.D) != "false" {
		t.Errorf("a session that was closed with 1000 is resumed: %s", p.D)
	}
}

func TestContentNeedsItsIntent(t *testing.T) {
	t.Parallel()
	s := newWorld(t, Options{NoLimits: true, NoContent: true})
	r := dial(t, s, "?v=10")
	r.identify(most &^ IntentMessageContent)
	for _, tc := range []struct {
		in   In
		want string
	}{
		{In{Channel: generalID, From: anaID, Text: "plain", Files: []File{{Name: "f", Data: []byte("x")}}}, ""},
		{In{Channel: generalID, From: anaID, Text: "<@" + s.Bot().ID + "> hey"}, "<@" + s.Bot().ID + "> hey"},
		{In{Channel: dmID, From: anaID, Text: "private"}, "private"},
	} {
		s.Write(tc.in)
		var m struct {
			Content     string `json:"content"`
			Attachments []any  `json:"attachments"`
		}
		if err := json.Unmarshal(r.event("MESSAGE_CREATE").D, &m); err != nil || m.Content != tc.want || len(m.Attachments) != 0 {
			t.Errorf("%q came as %+v, %v", tc.in.Text, m, err)
		}
	}
}

func TestIntentsChooseEvents(t *testing.T) {
	t.Parallel()
	s := newWorld(t, Options{NoLimits: true})
	r := dial(t, s, "?v=10")
	r.identify(IntentDirectMessages)
	s.Write(In{Channel: generalID, From: anaID, Text: "not asked for"})
	s.Write(In{Channel: dmID, From: anaID, Text: "asked for"})
	if p := r.event("MESSAGE_CREATE"); !strings.Contains(string(p.D), `"asked for"`) {
		t.Errorf("came: %s", p.D)
	}
}

func TestZlibStream(t *testing.T) {
	t.Parallel()
	s := newWorld(t, Options{NoLimits: true})
	r := dial(t, s, "?v=10&encoding=json&compress=zlib-stream")
	pr, pw := io.Pipe()
	defer pr.Close()
	go func() {
		for {
			_, b, err := r.ws.ReadMessage()
			if err != nil {
				_ = pw.CloseWithError(err)
				return
			}
			if _, err := pw.Write(b); err != nil {
				return
			}
		}
	}()
	z, err := zlib.NewReader(pr)
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(z)
	var hello, ready packet
	if err := dec.Decode(&hello); err != nil || hello.Op != opHello {
		t.Fatalf("%+v %v", hello, err)
	}
	r.send(opIdentify, identity(s.Token(), most))
	if err := dec.Decode(&ready); err != nil || ready.T != "READY" {
		t.Fatalf("%+v %v", ready, err)
	}
	s.DropAll()
}

func TestGatewayFaults(t *testing.T) {
	t.Parallel()
	s := newWorld(t, Options{NoLimits: true})
	r := dial(t, s, "?v=10")
	session := r.identify(most)
	s.Gateway(func(f *GatewayFault) { f.HalfFrame = 1 })
	s.Write(In{Channel: dmID, From: anaID, Text: "cut in the middle"})
	if got := r.closed(); got != 0 {
		t.Errorf("closed with %d", got)
	}
	r = dial(t, s, "?v=10")
	r.op(opHello)
	r.send(opResume, obj{"token": s.Token(), "session_id": session, "seq": 2})
	if p := r.event("MESSAGE_CREATE"); !strings.Contains(string(p.D), "cut in the middle") {
		t.Errorf("replayed %s", p.D)
	}
	s.Gateway(func(f *GatewayFault) { f.Repeat = 1 })
	s.Write(In{Channel: dmID, From: anaID, Text: "twice"})
	one, two := r.event("MESSAGE_CREATE"), r.event("MESSAGE_CREATE")
	if one.S == two.S || !bytes.Equal(one.D, two.D) {
		t.Errorf("repeated as %d %d", one.S, two.S)
	}
	s.Gateway(func(f *GatewayFault) { *f = GatewayFault{Reorder: 1} })
	s.Write(In{Channel: dmID, From: anaID, Text: "first"})
	s.Write(In{Channel: dmID, From: anaID, Text: "second"})
	if p := r.event("MESSAGE_CREATE"); !strings.Contains(string(p.D), "second") {
		t.Errorf("order kept: %s", p.D)
	}
	if p := r.event("MESSAGE_CREATE"); !strings.Contains(string(p.D), "first") {
		t.Errorf("lost: %s", p.D)
	}
	s.Gateway(func(f *GatewayFault) { *f = GatewayFault{NoAck: true} })
	r.send(opHeartbeat, 1)
	s.Reconnect()
	if p, err := r.read(); err != nil || p.Op != opReconnect {
		t.Errorf("an unacknowledged heartbeat was followed by %+v %v", p, err)
	}
	s.Gateway(func(f *GatewayFault) { *f = GatewayFault{Refuse: http.StatusServiceUnavailable} })
	if _, resp, err := websocket.DefaultDialer.Dial(s.wsURL("gateway")+"?v=10", nil); err == nil || resp.StatusCode != 503 {
		t.Errorf("handshake: %v", err)
	}
	s.Gateway(func(f *GatewayFault) { *f = GatewayFault{NoHello: true} })
	silent := dial(t, s, "?v=10")
	_ = silent.ws.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	var late net.Error
	if _, err := silent.read(); !errors.As(err, &late) || !late.Timeout() {
		t.Errorf("a silent gateway said %v", err)
	}
}

func TestLostSessionsAreOnlyInREST(t *testing.T) {
	t.Parallel()
	s := newWorld(t, Options{NoLimits: true})
	c := newSDK(t, s)
	c.open()
	first := s.Write(In{Channel: dmID, From: anaID, Text: "heard"})
	c.next("MESSAGE_CREATE")
	s.Gateway(func(f *GatewayFault) { f.Lost = true })
	s.DropAll()
	<-c.ended
	var want []string
	for _, text := range []string{"1", "2", "3"} {
		want = append(want, s.Write(In{Channel: dmID, From: anaID, Text: text}))
	}
	if err := s.WaitFor(t.Context(), func() bool { return s.Line().Sessions == 0 }); err != nil {
		t.Fatal(err)
	}
	c.open() // op 9: it identifies again
	all, err := c.ChannelMessages(dmID, 100, "", first, "")
	if err != nil || len(all) != 3 || all[0].ID != want[2] || all[2].ID != want[0] {
		t.Errorf("after %s REST gives %+v %v", first, all, err)
	}
	if all, err = c.ChannelMessages(dmID, 2, want[2], "", ""); err != nil || len(all) != 2 || all[0].ID != want[1] {
		t.Errorf("before: %+v %v", all, err)
	}
	if all, err = c.ChannelMessages(dmID, 3, "", "", want[1]); err != nil || len(all) != 3 {
		t.Errorf("around: %+v %v", all, err)
	}
}

func TestRevokedTokenEndsEverything(t *testing.T) {
	t.Parallel()
	s := newWorld(t, Options{NoLimits: true})
	r := dial(t, s, "?v=10")
	r.identify(most)
	s.Revoke()
	if got := r.closed(); got != closeAuth {
		t.Errorf("closed with %d", got)
	}
	c := newSDK(t, s)
	if err := c.Open(); err == nil || !websocket.IsCloseError(err, closeAuth) {
		t.Errorf("open: %v", err)
	}
	if _, err := c.User("@me"); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("@me: %v", err)
	}
}

func TestRateLimits(t *testing.T) {
	t.Parallel()
	now := newClock()
	s := newWorld(t, Options{Now: now.Now})
	c := newSDK(t, s)
	var limited *discordgo.RateLimitError
	ask := func(f func() error) (n int) {
		for ; n < 100; n++ {
			c.Ratelimiter = discordgo.NewRatelimiter() // its own pacing would sleep
			if err := f(); errors.As(err, &limited) {
				return n
			} else if err != nil {
				t.Fatal(err)
			}
		}
		return n
	}
	none := discordgo.WithRetryOnRatelimit(false)
	if n := ask(func() error { _, err := c.ChannelMessageSend(dmID, "x", none); return err }); n != 5 || limited.RetryAfter != 5*time.Second {
		t.Errorf("%d sends were taken, then wait %v", n, limited.RetryAfter)
	}
	s.AddFault(Fault{Do: Reply, Status: 429, After: 7 * time.Second, Global: true, Times: 1})
	if n := ask(func() error { _, err := c.User("@me", none); return err }); n != 0 || limited.RetryAfter != 7*time.Second {
		t.Errorf("%d calls were taken, then wait %v", n, limited.RetryAfter)
	}
	s.AddFault(Fault{Do: Reply, Status: 429, Body: Banned, Times: 1})
	if _, err := c.User("@me", none); err == nil || errors.As(err, &limited) && limited.RetryAfter == 0 {
		t.Errorf("the CDN's page: %v", err)
	}
	if n := ask(func() error { _, err := c.User("@me", none); return err }); n < 30 || n > globalRequests {
		t.Errorf("%d calls in a second", n)
	}
}

func TestOldMessagesBearFewEdits(t *testing.T) {
	t.Parallel()
	now := newClock()
	s := newWorld(t, Options{Now: now.Now, NoLimits: true})
	c := newSDK(t, s)
	m, err := c.ChannelMessageSend(dmID, "x")
	if err != nil {
		t.Fatal(err)
	}
	now.add(61 * time.Minute)
	for range oldEdits {
		if _, err := c.ChannelMessageEdit(dmID, m.ID, "y"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.ChannelMessageEdit(dmID, m.ID, "y", discordgo.WithRetryOnRatelimit(false)); err == nil {
		t.Error("too many edits were taken")
	}
}

func TestInteractionsEnd(t *testing.T) {
	t.Parallel()
	now := newClock()
	s := newWorld(t, Options{Now: now.Now, NoLimits: true})
	s.Offer("", [2]string{"new", "start afresh"})
	c := newSDK(t, s)
	c.open()
	late, _ := s.Command(dmID, anaID, "new", "")
	i := c.next("INTERACTION_CREATE").Struct.(*discordgo.InteractionCreate)
	answer := &discordgo.InteractionResponse{Type: discordgo.InteractionResponseChannelMessageWithSource, Data: &discordgo.InteractionResponseData{Content: "hi"}}
	now.add(answerWithin + time.Second)
	if err := c.InteractionRespond(i.Interaction, answer); code(err) != 10062 || !s.Answer(late).Late {
		t.Errorf("too late: %v", err)
	}
	if _, ok := s.Command(generalID, benID, "new", "x"); !ok {
		t.Fatal("not offered in a server")
	}
	i = c.next("INTERACTION_CREATE").Struct.(*discordgo.InteractionCreate)
	if err := c.InteractionRespond(i.Interaction, answer); err != nil {
		t.Fatal(err)
	}
	now.add(tokenLives)
	if _, err := c.FollowupMessageCreate(i.Interaction, true, &discordgo.WebhookParams{Content: "x"}); code(err) != 50027 {
		t.Errorf("after 15 minutes: %v", err)
	}
}

func TestAttachmentsExpireAndNeedNoToken(t *testing.T) {
	t.Parallel()
	now := newClock()
	s := newWorld(t, Options{Now: now.Now, NoLimits: true})
	c := newSDK(t, s)
	id := s.Write(In{Channel: dmID, From: anaID, Files: []File{{Name: "a.txt", Data: []byte("abc")}}})
	m, err := c.ChannelMessage(dmID, id)
	if err != nil {
		t.Fatal(err)
	}
	get := func(url string) int {
		resp, err := c.Client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	if got := get(m.Attachments[0].URL); got != 200 {
		t.Errorf("fresh: %d", got)
	}
	bare, _, _ := strings.Cut(m.Attachments[0].URL, "?")
	if got := get(bare); got != 404 {
		t.Errorf("unsigned: %d", got)
	}
	now.add(25 * time.Hour)
	if got := get(m.Attachments[0].URL); got != 404 {
		t.Errorf("after a day: %d", got)
	}
	if s.Calls("token at the CDN") != 0 {
		t.Error("a token came along")
	}
}

func TestFreezeAndDown(t *testing.T) {
	t.Parallel()
	s := newWorld(t, Options{NoLimits: true})
	r := dial(t, s, "?v=10")
	r.identify(most)
	s.Freeze()
	s.Write(In{Channel: dmID, From: anaID, Text: "later"})
	c := newSDK(t, s)
	ended := make(chan error, 1)
	go func() { _, err := c.User("@me"); ended <- err }()
	if err := s.WaitFor(t.Context(), func() bool { return s.Calls("GET /users/@me") == 1 }); err != nil {
		t.Fatal(err)
	}
	if l := s.Line(); l.Behind == 0 {
		t.Errorf("something was sent: %+v", l)
	}
	s.ClearFaults()
	if err := <-ended; err == nil {
		t.Error("the frozen call was answered")
	}
	if p := r.event("MESSAGE_CREATE"); !strings.Contains(string(p.D), "later") {
		t.Errorf("after the thaw: %s", p.D)
	}
	s.Down()
	if _, err := c.User("@me"); err == nil {
		t.Error("answered while down")
	}
	if err := s.Up(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.User("@me"); err != nil {
		t.Error(err)
	}
}
