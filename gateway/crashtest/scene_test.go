//go:build !race

package crashtest

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/channels/channeltest/stage"
)

// scene is a daemon over all its lives: its configuration, data and log, which survive it, and its present process.
type scene struct {
	t    *testing.T
	dir  string
	log  stage.Log
	ctx  context.Context // ends when the test must
	prog program
	d    *daemon // nil before the first life
	wake func()  // called at each end of a life; nil: nobody waits for that
}

func newScene(t *testing.T) *scene {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Minute)
	s := &scene{t: t, dir: t.TempDir(), ctx: ctx}
	t.Cleanup(func() {
		if s.d != nil {
			s.d.kill()
		}
		cancel()
		if t.Failed() {
			t.Log(tail(s.log.String(), 20_000))
		}
	})
	return s
}

func tail(s string, n int) string {
	if len(s) > n {
		return "…" + s[len(s)-n:]
	}
	return s
}

const apiToken = "crash-test-token-0123456789"

func (s *scene) config() string  { return filepath.Join(s.dir, "parley.yaml") }
func (s *scene) dataDir() string { return filepath.Join(s.dir, "data") }

// write writes the configuration: a model at the URL, one channel, and what else there is.
func (s *scene) write(model, channel, extra string) {
	s.t.Helper()
	yaml := fmt.Sprintf(`
data_dir: %s
gateway: {listen: "127.0.0.1:0", token: "%s"}
models: [{name: m, api: openai, base_url: "%s", api_key: sk-test-canary, model: test-1}]
channels: [%s]
%s
`, s.dataDir(), apiToken, strings.TrimRight(model, "/"), channel, extra)
	if !strings.Contains(extra, "agents:") {
		yaml += "agents: [{id: assistant, name: Assistant, default: true, model: m}]\n"
	}
	if err := os.WriteFile(s.config(), []byte(yaml), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// add adds to the configuration.
func (s *scene) add(yaml string) {
	s.t.Helper()
	text, err := os.ReadFile(s.config())
	if err == nil {
		err = os.WriteFile(s.config(), append(text, yaml+"\n"...), 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// start begins a life.
func (s *scene) start(env ...string) {
	s.t.Helper()
	over := s.wake
	if over == nil {
		over = func() {}
	}
	s.d = s.prog.start(s.t, &s.log, over, env...)
}

// killWithin kills the daemon at any moment of the time.
func (s *scene) killWithin(limit time.Duration, rng *rand.Rand) {
	s.t.Helper()
	timer := time.NewTimer(time.Duration(rng.Int64N(int64(limit))))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.d.exited:
		s.t.Fatal("the daemon ended by itself")
	}
	s.d.kill()
}

// end ends the daemon as an operator would, and returns how long that took.
func (s *scene) end() time.Duration {
	s.t.Helper()
	began := time.Now()
	s.d.term()
	limit := time.NewTimer(35 * time.Second)
	defer limit.Stop()
	select {
	case <-s.d.exited:
	case <-limit.C:
		s.t.Fatal("the daemon does not end on SIGTERM")
	}
	if s.d.code != 0 {
		s.t.Errorf("exit code %d after SIGTERM", s.d.code)
	}
	return time.Since(began)
}

// readyLine is what the daemon prints when its listener is up.
var readyLine = regexp.MustCompile(`Parley is ready: (http://\S+)`)

// url is where the newest life listens.
func (s *scene) url() string {
	s.t.Helper()
	var url string
	s.until("the address of the listener", func() bool {
		all := readyLine.FindAllStringSubmatch(s.log.String(), -1)
		if len(all) > 0 {
			url = all[len(all)-1][1]
		}
		return url != ""
	})
	return url
}

// logged blocks until the log has a text n times.
func (s *scene) logged(text string, n int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
	defer cancel()
	if err := s.log.Wait(ctx, text, n); err != nil {
		s.t.Fatal(err)
	}
}

// until looks again and again, for what no network tells.
func (s *scene) until(what string, cond func() bool) {
	s.t.Helper()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	limit := time.NewTimer(30 * time.Second)
	defer limit.Stop()
	for !cond() {
		select {
		case <-look.C:
		case <-limit.C:
			s.t.Fatalf("30 s without %s", what)
		}
	}
}

// post submits messages over HTTP, each on a connection of its own, and wants a 202 for each.
func (s *scene) post(n int) {
	s.t.Helper()
	url := s.url()
	var posts sync.WaitGroup
	for i := range n {
		posts.Go(func() {
			c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
			body := strings.NewReader(fmt.Sprintf(`{"session": "s%d", "text": "hello"}`, i))
			r, err := http.NewRequestWithContext(s.ctx, http.MethodPost, url+"/v1/messages", body)
			if err != nil {
				s.t.Error(err)
				return
			}
			r.Header.Set("Authorization", "Bearer "+apiToken)
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Idempotency-Key", fmt.Sprintf("k%d", i))
			resp, err := c.Do(r)
			if err != nil {
				s.t.Error(err)
				return
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusAccepted {
				s.t.Errorf("POST /v1/messages: %s", resp.Status)
			}
		})
	}
	posts.Wait()
}

// books opens the daemon's database.
func (s *scene) books() *sql.DB {
	s.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(s.dataDir(), "parley.db")+"?_pragma=busy_timeout(5000)")
	if err != nil {
		s.t.Fatal(err)
	}
	return db
}

// rows asks the books for the lines of one column.
func (s *scene) rows(query string) (out []string) {
	s.t.Helper()
	db := s.books()
	defer db.Close()
	rows, err := db.QueryContext(context.WithoutCancel(s.ctx), query)
	if err != nil {
		s.t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	for rows.Next() {
		var cell string
		if err := rows.Scan(&cell); err != nil {
			s.t.Fatal(err)
		}
		out = append(out, cell)
	}
	if err := rows.Err(); err != nil {
		s.t.Fatal(err)
	}
	return out
}

// none wants a count of 0 from the books.
func (s *scene) none(what, query string) {
	s.t.Helper()
	if got := s.rows(query); len(got) != 1 || got[0] != "0" {
		s.t.Errorf("%s: %q", what, got)
	}
}

// full says whether the long run was asked for, with PARLEY_KILLS.
func full() bool { return os.Getenv("PARLEY_KILLS") != "" }

// killsWanted is how often a test of this kind kills: PARLEY_KILLS, or few.
func killsWanted(t *testing.T, few int) int {
	t.Helper()
	if !full() {
		return few
	}
	n, err := strconv.Atoi(os.Getenv("PARLEY_KILLS"))
	if err != nil || n < 1 {
		t.Fatalf("PARLEY_KILLS is %q, want a number above 0", os.Getenv("PARLEY_KILLS"))
	}
	return n
}

// dice are seeded by the time; the log says how.
func dice(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}
