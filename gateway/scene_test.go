package gateway_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/agentloop/llm/llmtest"
	"parley/channels/channeltest/stage"
	"parley/channels/telegram/telegramtest"
	"parley/gateway"
	"parley/tools"
	"parley/workspace"
)

// testTool is a tool of a test, allowed to everybody.
type testTool struct {
	name   string
	effect workspace.Effect // zero: pure
	call   func(ctx context.Context, c tools.Call) (tools.Result, error)
}

func (t testTool) Spec() tools.Spec {
	effect := t.effect
	if effect == "" {
		effect = workspace.Pure
	}
	return tools.Spec{Name: t.name, Description: "For tests.", Effect: effect, Group: tools.GroupFiles, MinRole: workspace.Guest,
		Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":false}`)}
}

func (t testTool) Call(ctx context.Context, c tools.Call) (tools.Result, error) {
	return t.call(ctx, c)
}

// gate is a tool that tells when it was called and returns when it is let go.
type gate struct {
	called chan struct{}
	open   chan struct{}
	deaf   bool // it does not return when its turn is ended
}

func newGate() *gate { return &gate{called: make(chan struct{}, 100), open: make(chan struct{})} }

func (g *gate) tool() testTool {
	return testTool{name: "gate", call: func(ctx context.Context, _ tools.Call) (tools.Result, error) {
		g.called <- struct{}{}
		ended := ctx.Done()
		if g.deaf {
			ended = nil
		}
		select {
		case <-g.open:
			return tools.TextResult("went through the gate"), nil
		case <-ended:
			return tools.Result{}, ctx.Err()
		}
	}}
}

// hold is a model that is busy: replies wait in it, each of its own text, until they are let go.
type hold struct {
	asked chan string
	open  chan struct{}
}

func newHold() *hold { return &hold{asked: make(chan string, 1000), open: make(chan struct{})} }

// reply waits for the hold to open, or for the test to end.
func (h *hold) reply(t *testing.T, text string, r llmtest.Reply) llmtest.Reply {
	h.asked <- text
	select {
	case <-h.open:
	case <-t.Context().Done():
	}
	return r
}

// call is a reply that calls one tool.
func call(name string) llmtest.Reply {
	return llmtest.Reply{Calls: []llmtest.Call{{Name: name, Args: `{}`}}}
}

func withTools(list ...tools.Tool) func(*gateway.Options) {
	return func(o *gateway.Options) { o.Tools = list }
}

// receive takes from a channel, or fails the test.
func receive[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(waitLimit):
		t.Fatalf("%s: nothing came", what)
		panic("unreachable")
	}
}

// halt ends the gateway as a shutdown without grace does: turns are left to the next start.
func (r *rig) halt() {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := r.g.Stop(ctx); err != nil {
		r.t.Error(err)
	}
}

// haltAtEnd is for tests that leave a turn running: their end does not wait for it.
func (r *rig) haltAtEnd() { r.t.Cleanup(r.halt) }

// logged blocks until the log has a text n times, since the test began if it runs in turn with others.
func (r *rig) logged(text string, n int) {
	r.t.Helper()
	if r.slot != nil {
		n += strings.Count(r.slot.before, text)
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), waitLimit)
	defer cancel()
	if err := r.log.Wait(ctx, text, n); err != nil {
		r.t.Fatal(err)
	}
}

// rows asks the database for lines of "a|b|c".
func (r *rig) rows(query string, args ...any) []string {
	r.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(r.dir, "data", "parley.db")+"?mode=ro&_pragma=busy_timeout(5000)")
	if err != nil {
		r.t.Fatal(err)
	}
	defer db.Close()
	one, err := db.Conn(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	defer one.Close()
	if r.slot != nil {
		if err := r.slot.own(r.t.Context(), one); err != nil {
			r.t.Fatal(err)
		}
	}
	rows, err := one.QueryContext(r.t.Context(), query, args...)
	if err != nil {
		r.t.Fatal(err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		r.t.Fatal(err)
	}
	var out []string
	for rows.Next() {
		cells, to := make([]any, len(names)), make([]any, len(names))
		for i := range cells {
			to[i] = &cells[i]
		}
		if err := rows.Scan(to...); err != nil {
			r.t.Fatal(err)
		}
		var line []string
		for _, c := range cells {
			line = append(line, fmt.Sprint(c))
		}
		out = append(out, strings.Join(line, "|"))
	}
	if err := rows.Err(); err != nil {
		r.t.Fatal(err)
	}
	return out
}

// stored waits until the database answers a question so.
func (r *rig) stored(what, query string, want ...string) {
	r.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(waitLimit)
	for {
		got := r.rows(query)
		if slices.Equal(got, want) {
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			r.t.Fatalf("%s: %q, want %q", what, got, want)
		}
	}
}

// run is the six characters that a notice names, with the row that they stand for.
func (r *rig) run(text string) (state, reason string) {
	r.t.Helper()
	_, rest, ok := strings.Cut(text, "(run ")
	id, _, closed := strings.Cut(rest, ")")
	if !ok || !closed {
		r.t.Fatalf("%q names no run", text)
	}
	got := r.rows(`SELECT state, reason FROM runs WHERE id LIKE ?`, "%"+id)
	if len(got) != 1 {
		r.t.Fatalf("%q names run %s, of which there are %d", text, id, len(got))
	}
	state, reason, _ = strings.Cut(got[0], "|")
	return state, reason
}

func user(id int64) telegramtest.User {
	return telegramtest.User{ID: id, First: fmt.Sprintf("P%d", id)}
}

// config is the configuration as it stands.
func (r *rig) config() string {
	r.t.Helper()
	text, err := os.ReadFile(r.conf)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(text)
}

func lookAround(context.Context, tools.Call) (tools.Result, error) {
	return tools.TextResult("nothing to see"), nil
}

func boomCall(context.Context, tools.Call) (tools.Result, error) { panic("boom") }

func infoLog(b *stage.Log) *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }
