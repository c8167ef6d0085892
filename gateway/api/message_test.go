package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"parley/gateway/client"
)

func messageWithWaitReturnsTextUsageAndLog(t *testing.T, r *rig) {
	a := r.post(`"text":"good day","wait":20`, nil)
	if a.StatusCode != http.StatusOK {
		t.Fatal(a.StatusCode, a.body)
	}
	var got struct {
		InputID string `json:"input_id"`
		RunID   string `json:"run_id"`
		Session string `json:"session"`
		State   string `json:"state"`
		Text    string `json:"text"`
		Usage   struct {
			In       int      `json:"inputTokens"`
			Out      int      `json:"outputTokens"`
			Read     *int     `json:"cacheReadTokens"`
			Write    *int     `json:"cacheWriteTokens"`
			Cost     *float64 `json:"totalCostUsd"`
			Duration *int64   `json:"durationMs"`
		} `json:"usage"`
		Log []struct{ Type, Text string } `json:"log"`
	}
	if err := json.Unmarshal([]byte(a.body), &got); err != nil {
		t.Fatal(err)
	}
	if got.Text != "echo: good day" || got.State != "completed" || got.Session != r.key() || got.InputID == "" || got.RunID == "" {
		t.Errorf("%+v", got)
	}
	if got.Usage.In != 11 || got.Usage.Out != 7 || got.Usage.Read == nil || got.Usage.Write == nil || got.Usage.Duration == nil || got.Usage.Cost != nil {
		t.Errorf("usage %+v: the model has no price", got.Usage)
	}
	var types []string
	for _, l := range got.Log {
		types = append(types, l.Type)
	}
	if strings.Join(types, " ") != "turn.started message message turn.ended" {
		t.Errorf("log %v", types)
	}
	for _, id := range []string{got.RunID, got.InputID} {
		run := r.ask("GET", "/v1/runs/"+id, "", nil).fields(t)
		if run["id"] != got.RunID || run["text"] != got.Text || run["state"] != "completed" {
			t.Errorf("run by %s: %v", id, run)
		}
	}
	first := r.ask("GET", "/v1/runs/"+got.RunID+"/log?limit=3", "", nil).fields(t)
	if n := len(first["items"].([]any)); n != 3 || first["next"] != "3" {
		t.Errorf("%d lines, next %v", n, first["next"])
	}
	rest := r.ask("GET", "/v1/runs/"+got.RunID+"/log?limit=3&offset=3", "", nil).fields(t)
	if n := len(rest["items"].([]any)); n != 1 || rest["next"] != nil {
		t.Errorf("%d lines, next %v", n, rest["next"])
	}
	if n := len(r.ask("GET", "/v1/runs/"+got.RunID+"/log?offset=99", "", nil).fields(t)["items"].([]any)); n != 0 {
		t.Errorf("%d lines behind the end", n)
	}
}

// Without wait, or when the wait is over, the answer is 202 at once, and the turn goes on.
func waitThatIsOverIsAnswered202(t *testing.T, r *rig) {
	a := r.post(`"text":"hold on","wait":1`, nil)
	if a.StatusCode != http.StatusAccepted {
		t.Fatal(a.StatusCode, a.body)
	}
	got := a.fields(t)
	if got["input_id"] == nil || got["run_id"] == nil || got["session"] != r.key() || len(got) != 3 {
		t.Errorf("%v", got)
	}
	if loc := a.Header.Get("Location"); loc != "/v1/runs/"+got["input_id"].(string) {
		t.Errorf("Location %q", loc)
	}
	queued := r.ask("POST", "/v1/messages", `{"text":"behind it","session":"other"}`, nil)
	if queued.StatusCode != http.StatusAccepted {
		t.Fatal(queued.StatusCode)
	}
	if _, ok := queued.fields(t)["run_id"]; !ok {
		t.Error("run_id is left out; it must be null or an id")
	}
	r.model.finish()
	rd := r.follow("/v1/runs/"+got["input_id"].(string)+"/events", 0)
	rd.until("the end", typed("turn.ended"))
}

// A client that leaves while it waits cancels nothing.
func clientThatLeavesCancelsNothing(t *testing.T, r *rig) {
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := r.c.Send(ctx, client.Message{Text: "hold on", Session: r.session, Wait: 60, Key: "leaves"})
		gone <- err
	}()
	<-r.model.asked
	r.model.say(t, "half ")
	leave()
	if err := <-gone; err == nil {
		t.Fatal("it did not leave")
	}
	r.model.say(t, "and whole")
	r.model.finish()
	a := r.send(client.Message{Text: "hold on", Wait: 20, Key: "leaves"})
	if a.State != "completed" || a.Text != "half and whole" {
		t.Errorf("%+v", a)
	}
}

func repeatedIdempotencyKeyGivesTheFirstAnswerAgain(t *testing.T, r *rig) {
	key := func(k string) func(*http.Request) {
		return func(q *http.Request) { q.Header.Set("Idempotency-Key", k) }
	}
	body := `"text":"once","wait":20`
	first := r.post(body, key("a"))
	again := r.post(body, key("a"))
	if first.StatusCode != 200 || first.body != again.body {
		t.Errorf("first %s\nagain %s", first.body, again.body)
	}
	if other := r.post(`"text":"once"`, key("a")); other.StatusCode != 202 || other.fields(t)["input_id"] != first.fields(t)["input_id"] {
		t.Errorf("the same without wait: %d %s", other.StatusCode, other.body)
	}
	r.post(`"text":"twice","wait":20`, key("a")).wantProblem(t, 409, "idempotency_conflict")
	r.ask("POST", "/v1/messages", `{"text":"once","session":"elsewhere"}`, key("a")).wantProblem(t, 409, "idempotency_conflict")
	if b := r.post(body, key("b")); b.fields(t)["input_id"] == first.fields(t)["input_id"] {
		t.Error("another key is another message")
	}
	r.post(body, key(strings.Repeat("x", 201))).wantProblem(t, 400, "invalid")
	r.post(body, func(q *http.Request) { q.Header["Idempotency-Key"] = []string{"a", "b"} }).wantProblem(t, 400, "invalid")
}

// Twenty clients with one key at once make one message and hear one answer; a restart changes nothing about it.
func idempotencyKeyHoldsInARace(t *testing.T, r *rig) (after func(*testing.T, *rig)) {
	m := client.Message{Text: "race", Session: r.session, Wait: 20, Key: "race"}
	ids := make(chan string, 20)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			a, err := r.c.Send(t.Context(), m)
			if err != nil {
				t.Error(err)
			}
			ids <- a.InputID + a.Text
		})
	}
	wg.Wait()
	close(ids)
	seen := map[string]int{}
	for id := range ids {
		seen[id]++
	}
	if len(seen) != 1 {
		t.Errorf("%v", seen)
	}
	if n := len(r.model.asked); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
	return func(t *testing.T, r *rig) {
		if a := r.send(m); seen[a.InputID+a.Text] != 20 {
			t.Errorf("%+v", a)
		}
		if n := len(r.model.asked); n != 0 {
			t.Errorf("the model was asked again")
		}
	}
}

// A slash command has no run: its reply is the text, and it can be watched as any message.
func slashCommandIsAnsweredWithItsReply(t *testing.T, r *rig) {
	a := r.send(client.Message{Text: "/whoami", Wait: 20})
	if a.State != "answered" || !strings.Contains(a.Text, "local") || a.RunID != "" {
		t.Errorf("%+v", a)
	}
	if a := r.send(client.Message{Text: "/nonsense", Wait: 20}); a.State != "failed" || !strings.Contains(a.Text, "no command") {
		t.Errorf("%+v", a)
	}
	events := r.follow("/v1/runs/"+a.InputID+"/events", 0).rest()
	if len(events) != 1 || events[0].Type != "item.completed" || !strings.Contains(string(events[0].Data), `"command":"/whoami"`) {
		t.Errorf("%v", kinds(events))
	}
}

func stopEndsTheTurnAndKeepsWhatWasSaid(t *testing.T, r *rig) {
	a := r.send(client.Message{Text: "hold on"})
	<-r.model.asked
	rd := r.follow("/v1/runs/"+a.InputID+"/events", 0)
	r.model.say(t, "some words")
	rd.until("a delta", typed("item.delta"))
	got := r.ask("POST", "/v1/runs/"+a.InputID+"/stop", "", nil)
	if got.StatusCode != 200 || got.fields(t)["run"] == nil {
		t.Fatal(got.StatusCode, got.body)
	}
	last := rd.until("the end", typed("turn.ended"))
	if d := string(last[len(last)-1].Data); !strings.Contains(d, `"state":"user_stopped"`) {
		t.Errorf("ended as %s", d)
	}
	if run := r.ask("GET", "/v1/runs/"+a.InputID, "", nil).fields(t); run["state"] != "user_stopped" || run["text"] != "some words" {
		t.Errorf("%v", run)
	}
	if again := r.ask("POST", "/v1/runs/"+a.InputID+"/stop", "{}", nil); again.StatusCode != 200 || again.fields(t)["run"] != nil {
		t.Errorf("what has ended: %s", again.body)
	}
	r.ask("POST", "/v1/runs/nothing/stop", "", nil).wantProblem(t, 404, "not_found")
}

func readingEndpoints(t *testing.T, r *rig) {
	r.send(client.Message{Text: "hello", Wait: 20})
	for path, want := range map[string]string{
		"/v1/agents":   `"id":"assistant"`,
		"/v1/channels": `"name":"webchat"`,
		"/v1/pairings": `"items":[]`,
		"/v1/status":   `"health":"ok"`,
		"/v1/sessions": r.key(),
		"/readyz":      `"ready"`,
		"/healthz":     `"ok"`,
		"/metrics":     "\nparley_inputs_accepted_total 1\n",
		"/v1/sessions/" + url.PathEscape(r.key()):                               `"sequence":4`,
		"/v1/sessions/" + r.session:                                             `"sequence":4`,
		"/v1/sessions/assistant%2F" + r.session:                                 `"sequence":4`,
		"/v1/sessions/" + url.PathEscape(r.key()) + "/entries?limit=2":          `"next":"2"`,
		"/v1/sessions/" + url.PathEscape(r.key()) + "/entries?after=2":          `"text":"echo: hello"`,
		"/v1/sessions/" + url.PathEscape(r.key()) + "/entries?before=4&limit=2": `"next":"2"`,
		"/v1/sessions/" + url.PathEscape(r.key()) + "/entries?before=3&limit=2": `"sequence":2`,
		"/v1/status?session=" + url.QueryEscape("agent:assistant:main"):         `"session":"agent:assistant:main"`,
	} {
		if a := r.ask("GET", path, "", nil); a.StatusCode != 200 || !strings.Contains(a.body, want) {
			t.Errorf("GET %s: %d %s; want %s", path, a.StatusCode, a.body, want)
		}
	}
	for _, path := range []string{"/v1/runs/x", "/v1/runs/x/events", "/v1/runs/x/log", "/v1/sessions/x:y/events", "/v1/sessions/agent:assistant:local:none", "/v1/sessions/none",
		"/v1/sessions/agent:nobody:local:main/events", "/v1/status?session=x:y"} {
		r.ask("GET", path, "", nil).wantProblem(t, 404, "not_found")
	}
	r.ask("GET", "/v1/sessions/x:y", "", nil).wantProblem(t, 400, "invalid")
	r.ask("POST", "/v1/pairings/ABCDEFGH/approve", `{"as":"king"}`, nil).wantProblem(t, 400, "invalid")
	r.ask("POST", "/v1/pairings/zzzz/deny", ``, nil).wantProblem(t, 404, "not_found")
	r.ask("POST", "/v1/routes/explain", `{"channel":"none"}`, nil).wantProblem(t, 404, "not_found")
}
