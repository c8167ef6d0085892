package gateway_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"parley/agentloop/llm/llmtest"
	"parley/channels"
	"parley/channels/all"
	"parley/channels/telegram/telegramtest"
	"parley/gateway"
	"parley/gateway/control"
	"parley/gateway/control/config"
	"parley/workspace"
)

// What comes of a configuration that is changed, on one daemon.
func TestR13_T21_Reload(t *testing.T) {
	t.Parallel()
	h := newHold()
	var broken atomic.Bool
	odd := channels.Factory{Network: "odd", Options: func() any { return &oddOptions{} }, New: func(_ string, o any, _ channels.Deps) (channels.Channel, error) {
		if broken.Load() && o.(*oddOptions).Key == "new" {
			return nil, errors.New("odd cannot be made")
		}
		return idle{}, nil
	}}
	r := newRig(t, setup{extra: quiet + "\npeople: [{id: ana, role: owner}]", more: ", {name: other, type: odd, key: old}",
		opt: func(o *gateway.Options) { o.Channels = append(all.Factories(), odd) }, script: func(q *llmtest.Request) llmtest.Reply {
			if strings.Contains(q.LastUser(), "slow") {
				return h.reply(t, "", llmtest.Echo(q))
			}
			return llmtest.Echo(q)
		}})
	for _, part := range []struct {
		name string
		test func(*rig)
	}{
		{"R13_T21_a bad one changes nothing", badConfigurationChangesNothing},
		{"R13_a good one holds for the next message", func(r *rig) { goodConfigurationHolds(r, h) }},
		{"R13_a refused one leaves all in force and is tried again", func(r *rig) { refusedReloadIsTriedAgain(r, &broken) }},
		{"R13_a change that breaks a channel is undone", changeThatBreaksAChannelIsUndone},
	} {
		t.Run(part.name, func(t *testing.T) {
			in := *r
			in.t = t
			part.test(&in)
		})
	}
}

// R13 and T21: a configuration that cannot be is refused as a whole and the reason said; the old one goes on.
func badConfigurationChangesNothing(r *rig) {
	ana := r.person(11)
	good := r.config()
	read := 0 // lines of the log that tell of a refusal; the watch of the file may tell of each as well
	for i, c := range []struct{ yaml, why string }{
		{good + "\nnonsense: 1\n", "nonsense"},
		{strings.Replace(good, "dm: open", "dm: wide", 1), "wide"},
		{strings.Replace(good, "model: m}", "model: nobody}", 1), "nobody"},
		{"agents: [", "yaml"},
		{strings.Replace(good, "api_key: sk-test-canary", "api_key: \"${NOT_SET}\"", 1), "NOT_SET"},
		{strings.Replace(good, "dm: open", "dm: disabled", 1) + "\nnonsense: 1\n", "nonsense"},
		{strings.Replace(good, `api_url: "`+r.tg.URL(), `api_url: "ftp://x`+r.tg.URL(), 1), "api_url"}, // a channel keeps its keys when the new ones are bad
	} {
		r.write(c.yaml)
		r.g.Reload()
		for named := false; !named; read++ {
			r.logged("configuration refused, the former one stays in force", read+1)
			_, after, _ := cutNth(r.log.String(), "configuration refused, the former one stays in force", read+1)
			why, _, _ := strings.Cut(after, "\n")
			named = strings.Contains(why, c.why)
		}
		r.say(ana, 11, fmt.Sprint(i))
		if got := texts(r.wait(ana, i+1)); got[i] != fmt.Sprintf("echo: %d", i) {
			r.t.Fatalf("after %q: %q", c.why, got)
		}
	}
	restored := r.log.Count("configuration restored")
	r.write(good)
	r.logged("configuration restored", restored+1)
}

// R13: a token that the network refuses is taken back, and said; the channel goes on with the former one. What is right stays.
func changeThatBreaksAChannelIsUndone(r *rig) {
	ana := r.person(41)
	r.say(ana, 41, "before")
	r.wait(ana, 1)
	before, call, secrets := r.config(), operator(), filepath.Join(filepath.Dir(r.conf), "secrets")
	change := func(token string) (config.Applied, error) {
		in := config.ChangeIn{Secrets: []config.Secret{{Path: "channels[tg].token", Value: token}},
			Changes: []config.Set{{Path: "replies.typing_after", Value: json.RawMessage(`"401ms"`)}}}
		return config.Change.Call(r.t.Context(), r.g.Control().Config, call, in)
	}
	_, err := change("7:refused-refused-refused-refused-refuse")
	var refusal *control.Refusal
	said, _ := workspace.Sentence(err)
	if !errors.As(err, &refusal) || refusal.Code != "change_undone" || !strings.Contains(said, "channel tg") || strings.Contains(said, "7:refused") {
		r.t.Fatalf("%v: %q", err, said)
	}
	if left, err := os.ReadDir(secrets); r.config() != before || err != nil || len(left) > 0 {
		r.t.Errorf("%d credentials are left (%v), the file is\n%s", len(left), err, r.config())
	}
	r.say(ana, 41, "after")
	if got := texts(r.wait(ana, 2)); got[1] != "echo: after" {
		r.t.Errorf("%q", got)
	}
	done, err := change(r.tg.Token())
	if left, second := os.ReadDir(secrets); err != nil || second != nil || len(left) != 1 || strings.Contains(r.config(), r.tg.Token()) {
		r.t.Fatalf("the right token: %+v, %v; %d credentials, %v", done, err, len(left), second)
	}
	r.say(ana, 41, "in the end")
	if got := texts(r.wait(ana, 3)); got[2] != "echo: in the end" {
		r.t.Errorf("%q", got)
	}
	rows := r.rows(`SELECT body FROM audit WHERE body LIKE '%config.changed%' OR body LIKE '%config.undone%' ORDER BY n`)
	if all := strings.Join(rows, "\n"); len(rows) != 3 || !strings.Contains(all, "channels[tg].token") || strings.Contains(all, r.tg.Token()) || strings.Contains(all, "7:refused") {
		r.t.Errorf("audited: %s", all)
	}
}

// cutNth is strings.Cut at the n-th of what it looks for, counted from 1.
func cutNth(s, sep string, n int) (before, after string, found bool) {
	for range n {
		var head string
		if head, s, found = strings.Cut(s, sep); !found {
			return before, "", false
		}
		before += head
	}
	return before, s, true
}

func goodConfigurationHolds(r *rig, h *hold) {
	other := llmtest.Start(r.t, func(q *llmtest.Request) llmtest.Reply { return llmtest.Reply{Text: "other: " + q.LastUser()} })
	reloaded := r.log.Count("configuration reloaded")
	ana, ben := r.person(21), r.person(22)
	r.say(ana, 21, "slow")
	receive(r.t, h.asked, "the slow turn")
	good := r.config()
	r.write(strings.Replace(good, r.modelURL(), strings.TrimRight(other.URL, "/"), 1))
	r.g.Reload()
	r.logged("configuration reloaded", reloaded+1)
	r.say(ben, 22, "hello")
	if got := r.wait(ben, 1)[0].Text; got != "other: hello" {
		r.t.Errorf("the new model: %q", got)
	}
	close(h.open)
	if got := r.wait(ana, 1)[0].Text; got != "echo: slow" {
		r.t.Errorf("the turn that ran: %q", got)
	}
	r.write(strings.Replace(good, "dm: open", "dm: allowlist, allow: [\"21\"]", 1))
	r.g.Reload()
	r.logged("configuration reloaded", reloaded+2)
	r.say(ben, 22, "still there?")
	r.say(ana, 21, "and I?")
	if got := r.wait(ana, 2)[1].Text; got != "echo: and I?" {
		r.t.Errorf("who is allowed: %q", got)
	}
	r.until("ben's message confirmed", func(v telegramtest.View) bool { return v.Pending() == 0 })
	if got := texts(r.tg.View().Sent(ben.ID)); len(got) != 1 {
		r.t.Errorf("who is not allowed any more got %q", got)
	}
	if got := r.rows(`SELECT state, text FROM inputs WHERE state = 'refused'`); !slices.Equal(got, []string{"refused|"}) {
		r.t.Errorf("refused inputs %q: a decision without the text", got)
	}
	r.write(good)
	r.g.Reload()
	r.logged("configuration reloaded", reloaded+3)
}

// R07: near the memory ceiling nothing more is taken in, and nothing is acknowledged; below it all is answered.
// It measures the whole process and so does not run beside other tests.
func TestR07_IntakeStopsNearTheMemoryCeilingAndGoesOn(t *testing.T) {
	r := newRig(t, setup{})
	t.Cleanup(func() { debug.SetMemoryLimit(4 << 30) })
	r.halt()
	debug.FreeOSMemory() // what other tests left is not a measure
	base := inUse()
	ballast := make([]byte, 256<<20)
	for i := 0; i < len(ballast); i += 4096 {
		ballast[i] = 1
	}
	// 90 % of the limit is half-way between what is in use with the ballast and without
	r.start(func(o *gateway.Options) { o.MemoryLimit = int64(base+128<<20) * 10 / 9 })
	const chats = 20
	for c := range int64(chats) {
		r.say(r.person(100+c), 100+c, "hello")
	}
	r.logged("gateway is at its memory ceiling", 1)
	if n := r.tg.View().Pending(); n != chats {
		t.Errorf("%d of %d messages were acknowledged", chats-n, chats)
	}
	if got := r.rows(`SELECT count(*) FROM inputs`); got[0] != "0" {
		t.Errorf("%s inputs were taken", got[0])
	}
	runtime.KeepAlive(ballast)
	ballast = nil
	debug.FreeOSMemory()
	for c := range int64(chats) {
		if got := texts(r.wait(telegramtest.Chat{ID: 100 + c}, 1)); !slices.Equal(got, []string{"echo: hello"}) {
			t.Errorf("chat %d: %q", c, got)
		}
	}
}

// inUse is the memory of the process, as the runtime has it from the system.
func inUse() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64() - sample[1].Value.Uint64()
}

// inForce is what a gateway shows of the configuration that it runs with.
func (r *rig) inForce(token, host string) string {
	r.t.Helper()
	get := func(path, token, host string) (int, map[string]any) {
		q, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, "http://"+r.g.Addr()+path, nil)
		if err != nil {
			r.t.Fatal(err)
		}
		q.Header.Set("Authorization", "Bearer "+token)
		if q.Host = r.g.Addr(); host != "" {
			q.Host = host
		}
		res, err := http.DefaultClient.Do(q)
		if err != nil {
			r.t.Fatal(err)
		}
		defer res.Body.Close()
		var v map[string]any
		if err := json.NewDecoder(res.Body).Decode(&v); err != nil {
			r.t.Fatal(err)
		}
		return res.StatusCode, v
	}
	code, me := get("/v1/me", token, "")
	if code != http.StatusOK {
		return "another token"
	}
	byName, _ := get("/v1/me", token, host)
	_, agents := get("/v1/agents", token, "")
	_, routes := get("/v1/routes", token, "")
	_, conf := get("/v1/config", token, "")
	person := me["person"]
	if p, ok := person.(map[string]any); ok {
		person = p["id"]
	}
	return fmt.Sprintf("owner %v, %s %d, agents %d, routes %d, problem %t", person, host, byName,
		len(agents["items"].([]any)), len(routes["items"].([]any)), conf["problem"] != nil)
}

// R13: a configuration that loads and cannot be put in force leaves all of the old one in force, whatever of it is the cause, and
// is tried again: the cause is mended outside of the file, and a signal puts all of the new one in force.
func refusedReloadIsTriedAgain(r *rig, broken *atomic.Bool) {
	const oldToken, newToken, host = "old-token-old-token-old-token", "new-token-new-token-new-token", "parley.example.org"
	const refusal = "configuration refused, the former one stays in force"
	reloaded, restored := r.log.Count("configuration reloaded"), r.log.Count("configuration restored")
	old := strings.Replace(r.config(), "gateway: {", "gateway: {token: "+oldToken+", ", 1)
	r.write(old)
	r.g.Reload()
	r.logged("configuration reloaded", reloaded+1)
	ana := r.person(31)
	r.say(ana, 31, "0")
	r.wait(ana, 1)
	was := r.inForce(oldToken, host)
	if want := "owner ana, " + host + " 421, agents 1, routes 1, problem false"; was != want {
		r.t.Fatalf("before: %s, want %s", was, want)
	}
	telegram := "7:rotated-rotated-rotated-rotated-rot"
	next := strings.NewReplacer(oldToken, newToken, "gateway: {", "gateway: {allowed_hosts: ["+host+"], ", "{id: ana,", "{id: ben,",
		"model: m}]", "model: m}, {id: second}]\nroutes: [{channel: tg, agent: second}]", r.tg.Token(), telegram, "key: old", "key: new").Replace(old)
	folder := filepath.Join(r.dir, "data", "agents", "second")
	for i, c := range []struct {
		why        string
		spoil, fix func()
	}{
		{"agents", func() { touch(r.t, folder) }, func() { remove(r.t, folder) }},
		{"odd cannot be made", func() { broken.Store(true) }, func() { broken.Store(false) }},
		{"nobody may change", func() {
			r.exec(`CREATE TRIGGER no_people BEFORE INSERT ON people BEGIN SELECT RAISE(ABORT, 'nobody may change'); END`)
		}, func() { r.exec(`DROP TRIGGER no_people`) }},
	} {
		c.spoil()
		n := r.log.Count(refusal)
		r.write(next)
		r.g.Reload()
		r.logged(refusal, n+1)
		n = r.log.Count(refusal)
		r.g.Reload() // tried again, and refused again
		r.logged(refusal, n+1)
		if !strings.Contains(r.log.String(), c.why) {
			r.t.Errorf("%s: the log does not say why", c.why)
		}
		if got, want := r.inForce(oldToken, host), strings.Replace(was, "problem false", "problem true", 1); got != want {
			r.t.Errorf("%s: %s, want %s", c.why, got, want)
		}
		if got := r.inForce(newToken, host); got != "another token" {
			r.t.Errorf("%s: the refused token opens", c.why)
		}
		r.say(ana, 31, fmt.Sprint(i+1)) // over the old connection, to the old agent
		if got := texts(r.wait(ana, i+2)); got[i+1] != fmt.Sprintf("echo: %d", i+1) {
			r.t.Errorf("%s: answers %q", c.why, got)
		}
		if strings.Contains(r.log.String(), newToken) || strings.Contains(r.log.String(), telegram) {
			r.t.Errorf("%s: a secret of the refused configuration stands in the log", c.why)
		}
		if i < 2 {
			r.write(old)
			r.logged("configuration restored", restored+i+1)
			if got := r.inForce(oldToken, host); got != was {
				r.t.Errorf("%s, put back: %s, want %s", c.why, got, was)
			}
		}
		c.fix() // not before: the refused one is tried again at any time
	}
	r.tg.Rotate(telegram)
	r.g.Reload() // nothing in the file has changed since it was refused
	r.logged("configuration reloaded", reloaded+2)
	if got, want := r.inForce(newToken, host), "owner ben, "+host+" 200, agents 2, routes 2, problem false"; got != want {
		r.t.Errorf("mended: %s, want %s", got, want)
	}
	if got := r.inForce(oldToken, host); got != "another token" {
		r.t.Error("the former token opens")
	}
	r.say(ana, 31, "4")
	if got := texts(r.wait(ana, 5)); got[4] != "echo: 4" {
		r.t.Errorf("over the new connection: %q", got)
	}
	if got := r.rows(`SELECT agent FROM sessions s JOIN runs r ON r.session_id = s.id ORDER BY r.started DESC LIMIT 1`); !slices.Equal(got, []string{"second"}) {
		r.t.Errorf("it was answered by %q", got)
	}
}

// oddOptions are those of a network that a test makes.
type oddOptions struct {
	Key string `yaml:"key"`
}

// idle is a channel of no network.
type idle struct{}

func (idle) Run(ctx context.Context, in channels.Intake) error {
	in.Report(channels.Status{State: channels.Ready})
	<-ctx.Done()
	return nil
}

func (idle) Send(context.Context, channels.Post) (channels.MessageID, error) { return "1", nil }

func touch(t *testing.T, name string) {
	t.Helper()
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, name string) {
	t.Helper()
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
}

// exec changes the database behind the gateway's back.
func (r *rig) exec(statement string) {
	r.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(r.dir, "data", "parley.db")+"?_pragma=busy_timeout(5000)")
	if err != nil {
		r.t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(r.t.Context(), statement); err != nil {
		r.t.Fatal(err)
	}
}
