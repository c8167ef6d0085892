package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// T26: event streams of every kind and live lines are counted together by person; beyond the cap is a 503 with Retry-After, a message is
// answered all the same, and who leaves makes room.
func streamsArePersonsTogether(t *testing.T, r *rig) {
	sent := r.post(`"text":"hello","wait":20`, nil).fields(t)
	paths := []string{"/v1/sessions/agent:assistant:local:main/events", "/v1/logs/events", "/v1/sessions/agent:assistant:local:other/events"}
	var open, refused, busy atomic.Int64
	var mu sync.Mutex
	var bodies []interface{ Close() error }
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	get := func(path string) *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), "GET", r.g.URL()+path, nil)
		if err != nil {
			t.Error(err)
			return nil
		}
		req.Header.Set("Authorization", "Bearer "+r.token)
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Error(err)
			return nil
		}
		return resp
	}
	var wg sync.WaitGroup
	for w := range 20 {
		wg.Go(func() {
			for i := range 15 {
				resp := get(paths[(w+i)%len(paths)])
				if resp == nil {
					return
				}
				switch resp.StatusCode {
				case http.StatusOK:
					open.Add(1)
					mu.Lock()
					bodies = append(bodies, resp.Body)
					mu.Unlock()
					continue
				case http.StatusServiceUnavailable:
					var p struct{ Type string }
					if err := json.NewDecoder(resp.Body).Decode(&p); err != nil || p.Type != "urn:parley:error:busy" || resp.Header.Get("Retry-After") == "" {
						t.Errorf("%+v, %v", p, err)
					}
					refused.Add(1)
				default:
					busy.Add(1)
				}
				resp.Body.Close()
			}
		})
	}
	wg.Wait()
	if open.Load() != 256 || refused.Load() != 44 || busy.Load() != 0 {
		t.Errorf("%d streams, %d refused, %d otherwise", open.Load(), refused.Load(), busy.Load())
	}
	a := r.ask("GET", "/v1/live", "", func(q *http.Request) {
		for k, v := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-Websocket-Version": "13", "Sec-Websocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="} {
			q.Header.Set(k, v)
		}
	})
	a.wantProblem(t, http.StatusServiceUnavailable, "busy")
	if text := r.post(`"text":"still there","wait":20`, nil).fields(t)["text"]; text != "echo: still there" {
		t.Errorf("beside the streams: %v", text)
	}
	if m := r.ask("GET", "/metrics", "", nil).body; !strings.Contains(m, "parley_http_held 256") {
		t.Error("metrics do not count them")
	}
	for _, b := range bodies[:10] {
		b.Close()
	}
	run := sent["run_id"].(string)
	for { // a place comes free when the server has seen the end
		resp := get("/v1/runs/" + run + "/events")
		if resp == nil {
			break
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			break
		}
	}
	for _, b := range bodies[10:] {
		b.Close()
	}
}
