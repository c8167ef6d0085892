package api_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func keyed(key string) func(*http.Request) {
	return func(q *http.Request) { q.Header.Set("Idempotency-Key", key) }
}

func aWriteWithAKeyHappensOnce(t *testing.T, r *rig) (after func(*testing.T, *rig)) {
	const body = `{"name":"Trip"}`
	sessions := func(t *testing.T, r *rig) int {
		return len(r.ask("GET", "/v1/sessions?limit=500", "", nil).fields(t)["items"].([]any))
	}
	before := sessions(t, r)
	var mu sync.Mutex
	answers := map[string]int{}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			a := r.ask("POST", "/v1/sessions", body, keyed("once"))
			mu.Lock()
			defer mu.Unlock()
			answers[fmt.Sprint(a.StatusCode, a.body)]++
		})
	}
	all.Wait()
	if len(answers) != 1 {
		t.Fatalf("answers: %v", answers)
	}
	if n := sessions(t, r) - before; n != 1 {
		t.Errorf("%d sessions were made", n)
	}
	return func(t *testing.T, r *rig) {
		before := sessions(t, r)
		again := r.ask("POST", "/v1/sessions", body, keyed("once"))
		if answers[fmt.Sprint(again.StatusCode, again.body)] != 8 || again.StatusCode != http.StatusCreated || again.Header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("after a restart: %d %s, was %v", again.StatusCode, again.body, answers)
		}
		if n := sessions(t, r) - before; n != 0 {
			t.Errorf("%d sessions were made", n)
		}
		r.ask("POST", "/v1/sessions", `{"name":"Other"}`, keyed("once")).wantProblem(t, 409, "idempotency_conflict")
		r.ask("PATCH", "/v1/sessions/agent:assistant:local:Trip", `{"name":"x"}`, keyed("once")).wantProblem(t, 409, "idempotency_conflict")
		r.ask("POST", "/v1/sessions", body, keyed(strings.Repeat("k", 201))).wantProblem(t, 400, "invalid")
		r.ask("POST", "/v1/sessions", body, func(q *http.Request) { q.Header["Idempotency-Key"] = []string{"a", "b"} }).wantProblem(t, 400, "invalid")
	}
}

func aRefusalIsRepeatedAndADecisionIsNotMadeTwice(t *testing.T, r *rig) {
	for range 2 {
		r.ask("DELETE", "/v1/sessions/agent:assistant:local:none", "", keyed("gone")).wantProblem(t, 404, "not_found")
	}
	r.net.write(t, "72", "hello")
	id := r.pairing("72")
	first := r.ask("POST", "/v1/pairings/"+id+"/approve", `{"as":"member"}`, keyed("yes"))
	again := r.ask("POST", "/v1/pairings/"+id+"/approve", `{"as":"member"}`, keyed("yes"))
	if first.StatusCode != 200 || again.StatusCode != 200 || first.body != again.body {
		t.Errorf("%d %s, then %d %s", first.StatusCode, first.body, again.StatusCode, again.body)
	}
	r.ask("POST", "/v1/pairings/"+id+"/approve", `{"as":"member"}`, keyed("another")).wantProblem(t, 422, "refused")
}

func headEndsAndWrongMethodsHearAllThatAreRight(t *testing.T, r *rig) {
	for _, path := range []string{"/v1/agents", "/healthz", "/v1/sessions/agent:assistant:local:main/events", "/v1/logs/events"} {
		a := r.ask("HEAD", path, "", nil)
		if a.StatusCode != 200 || a.body != "" || a.Header.Get("Content-Type") == "" {
			t.Errorf("HEAD %s: %d %q %q", path, a.StatusCode, a.Header.Get("Content-Type"), a.body)
		}
	}
	if a := r.ask("HEAD", "/v1/runs/none/events", "", nil); a.StatusCode != 404 {
		t.Errorf("HEAD of a run that is not there: %d", a.StatusCode)
	}
	for path, want := range map[string]string{"/v1/sessions/x": "GET, HEAD, PATCH, DELETE", "/v1/sessions": "GET, HEAD, POST", "/v1/backup": "POST"} {
		a := r.ask("PUT", path, "{}", nil)
		a.wantProblem(t, 405, "method")
		if a.Header.Get("Allow") != want {
			t.Errorf("%s allows %q, want %q", path, a.Header.Get("Allow"), want)
		}
	}
}

func theLogIsReadLiveAndFromANumber(t *testing.T, r *rig) {
	list := r.ask("GET", "/v1/logs?level=debug&limit=500", "", nil).fields(t)["items"].([]any)
	last := 0 // an empty log begins with 1
	if len(list) > 0 {
		last = int(list[len(list)-1].(map[string]any)["n"].(float64))
	}
	body, err := r.c.Stream(t.Context(), http.MethodGet, fmt.Sprintf("/v1/logs/events?after=%d", last), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	r.write(strings.Replace(r.yaml, "{id: third}", "{id: third, name: Third}", 1))
	r.g.Reload()
	buf := make([]byte, 4096)
	n, err := io.ReadAtLeast(body, buf, 20)
	if err != nil || !strings.HasPrefix(string(buf[:n]), fmt.Sprintf("id: %d\nevent: line\ndata: {", last+1)) {
		t.Errorf("%q, %v", buf[:n], err)
	}
	r.ask("GET", "/v1/logs?level=shout", "", nil).wantProblem(t, 400, "invalid")
}

// A key belongs to the first request that it came with, whichever two routes are asked, in either order and at once.
func aKeyBelongsToOneRequestOnAllRoutes(t *testing.T, r *rig) {
	type request struct{ method, path, body string }
	requests := []request{
		{"POST", "/v1/messages", `{"text":"hello"}`},
		{"POST", "/v1/sessions", `{"name":"Errand"}`},
		{"POST", "/v1/files?name=a.txt", "content"},
		{"POST", "/v1/backup", "{}"},
		{"POST", "/v1/sign-in/codes", "{}"},
		{"POST", "/v1/routes/explain", `{}`},
		{"PATCH", "/v1/sessions/agent:assistant:local:none", `{"name":"x"}`},
	}
	ask := func(q request, key string) answer {
		return r.ask(q.method, q.path, q.body, func(h *http.Request) {
			keyed(key)(h)
			if strings.Contains(q.path, "/files") {
				h.Header.Set("Content-Type", "text/plain")
			}
		})
	}
	for i, first := range requests {
		key := fmt.Sprint("key ", i)
		was := ask(first, key)
		for j, other := range requests {
			if i != j {
				ask(other, key).wantProblem(t, 409, "idempotency_conflict")
			}
		}
		if again := ask(first, key); again.StatusCode != was.StatusCode {
			t.Errorf("%s %s: %d, then %d %s", first.method, first.path, was.StatusCode, again.StatusCode, again.body)
		}
	}
	for i := range 8 {
		var wg sync.WaitGroup
		var won atomic.Int64
		for _, q := range requests[:2] {
			wg.Go(func() {
				if a := ask(q, fmt.Sprint("race ", i)); a.StatusCode < 300 {
					won.Add(1)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Errorf("round %d: %d requests with one key were done", i, won.Load())
		}
	}
}
