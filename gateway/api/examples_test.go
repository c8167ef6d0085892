package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"parley/channels"
	"parley/gateway/api"
	"parley/gateway/client"
)

// example is a fenced block of docs/api.md: a request, the status, and what comes back.
type example struct {
	method, path string
	header       http.Header
	body         string
	status       int
	want         any // nil: nothing is said of it
}

func examples(t *testing.T) []example {
	t.Helper()
	text, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	var list []example
	for _, m := range regexp.MustCompile("(?s)```http\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		pieces := strings.Split(strings.TrimSpace(m[1]), "\n\n")
		head := strings.Split(pieces[0], "\n")
		e := example{header: http.Header{}}
		e.method, e.path, _ = strings.Cut(head[0], " ")
		for _, line := range head[1:] {
			name, value, _ := strings.Cut(line, ": ")
			e.header.Set(name, value)
		}
		if len(pieces) == 3 {
			e.body = pieces[1]
		}
		status, body, _ := strings.Cut(pieces[len(pieces)-1], "\n")
		if e.status, err = strconv.Atoi(status); err != nil || len(pieces) < 2 || len(pieces) > 3 {
			t.Fatalf("not an example: %s", m[1])
		}
		if body != "" {
			if err := json.Unmarshal([]byte(body), &e.want); err != nil {
				t.Fatalf("%s %s: %v", e.method, e.path, err)
			}
		}
		list = append(list, e)
	}
	return list
}

// like says where a real answer has not what an example promises: each name, with a value of its kind.
func like(at string, want, have any) error {
	switch w := want.(type) {
	case map[string]any:
		h, ok := have.(map[string]any)
		if !ok {
			return fmt.Errorf("%s is not an object but %v", at, have)
		}
		for name, v := range w {
			if _, there := h[name]; !there {
				return fmt.Errorf("%s has no %q", at, name)
			}
			if err := like(at+"."+name, v, h[name]); err != nil {
				return err
			}
		}
	case []any:
		h, ok := have.([]any)
		if !ok || len(w) > 0 && len(h) == 0 {
			return fmt.Errorf("%s is not a list with something in it but %v", at, have)
		}
		if len(w) > 0 {
			return like(at+"[0]", w[0], h[0])
		}
	case nil:
	default:
		if have != nil && fmt.Sprintf("%T", have) != fmt.Sprintf("%T", want) {
			return fmt.Errorf("%s is %v, the example has %v", at, have, want)
		}
	}
	return nil
}

// The examples of docs/api.md are run one after the other, and there is one of every endpoint.
func TestExamplesOfTheDocumentation(t *testing.T) {
	t.Parallel()
	net := newStrangers()
	yaml, opt := heldYAML(t)
	r := start(t, setup{yaml: strings.Replace(strangerYAML, "agents: [{id: assistant, name: Assistant}]", yaml, 1), opt: opt, nets: []channels.Factory{net.factory()}})
	for _, user := range []string{"7", "8", "gone1", "gone2"} {
		net.write(t, user, "hello")
	}
	lost := waitFor(t, 2, func() []any { return r.ask("GET", "/v1/outbound?state=dead", "", nil).fields(t)["items"].([]any) })
	strange := r.ask("GET", "/v1/pairings", "", nil).fields(t)["items"].([]any)
	r.ask("POST", "/v1/messages", `{"text":"look inside","session":"files"}`, nil)
	question := waitFor(t, 1, func() []any { return r.ask("GET", "/v1/approvals?state=pending", "", nil).fields(t)["items"].([]any) })
	id := func(v any) string { return v.(map[string]any)["id"].(string) }
	r.put("old/report.pdf", "text")
	fill := map[string]string{"{session}": url.PathEscape(r.key()), "{approval}": id(question[0]), "{waiting}": question[0].(map[string]any)["run_id"].(string), "{person}": "local", "{dead}": id(lost[0]), "{lost}": id(lost[1]), "{pairing}": id(strange[0]), "{other}": id(strange[1])}
	asked := map[string]bool{}
	c, err := theContract()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range examples(t) {
		path, body := e.path, e.body
		for name, value := range fill {
			path, body = strings.ReplaceAll(path, name, value), strings.ReplaceAll(body, name, value)
		}
		a := r.ask(e.method, path, body, func(q *http.Request) {
			for name, values := range e.header {
				q.Header[name] = values
			}
		})
		if a.StatusCode != e.status {
			t.Errorf("%s %s: %d %s, the example has %d", e.method, path, a.StatusCode, a.body, e.status)
			continue
		}
		asked[e.method+" "+c.place(e.method, path)] = true
		if e.want == nil {
			continue
		}
		have := a.fields(t)
		if err := like(e.method+" "+e.path, e.want, have); err != nil {
			t.Error(err)
		}
		for name, field := range map[string]string{"{run}": "run_id", "{code}": "code", "{file}": "ref"} {
			if v, ok := have[field].(string); ok && fill[name] == "" {
				fill[name] = v
			}
		}
		if strings.HasPrefix(e.path, "/v1/messages") && e.status == http.StatusAccepted {
			r.send(client.Message{Text: "and so on", Session: "slow", Wait: 20}) // it has ended before the next example
		}
	}
	for _, rt := range api.Routes() {
		stream := strings.HasSuffix(rt.Pattern, "/events") || rt.Pattern == "GET /v1/live" || rt.Pattern == "GET /metrics" || rt.Pattern == "POST /v1/backup"
		if !asked[rt.Pattern] && !stream {
			t.Errorf("docs/api.md has no example of %s", rt.Pattern)
		}
	}
}
