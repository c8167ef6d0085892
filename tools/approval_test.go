package tools_test

import (
	"encoding/json"
	"testing"

	"parley/tools"
	"parley/workspace"
)

// T11: the hash is of the meaning, not of the writing, and of everything that decides what a call does.
func TestT11_HashBindsEverythingAboutACall(t *testing.T) {
	t.Parallel()
	key := workspace.Key{Agent: "a", Scope: workspace.ScopeLocal, Local: "main"}
	base := tools.Question{Shown: "ls", Args: json.RawMessage(`{"command":"ls","n":1}`), Cwd: "/work", Env: []string{"A=1"}, Sandbox: "ns/1"}
	hash := func(q tools.Question, tool string, k workspace.Key, who workspace.PersonID) string {
		t.Helper()
		h, err := tools.Hash(q, tool, k, who)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	want := hash(base, "exec", key, "ana")
	same := base
	same.Args, same.Shown = json.RawMessage("{ \"n\": 1.0,\n \"command\": \"l\\u0073\" }"), "something else"
	if got := hash(same, "exec", key, "ana"); got != want {
		t.Errorf("the same call in other letters has another hash")
	}
	other := func(change func(*tools.Question)) tools.Question { q := base; change(&q); return q }
	k2 := key
	k2.Local = "second"
	seen := map[string]string{want: "the call itself"}
	for name, got := range map[string]string{
		"args":      hash(other(func(q *tools.Question) { q.Args = json.RawMessage(`{"command":"ls -a","n":1}`) }), "exec", key, "ana"),
		"space":     hash(other(func(q *tools.Question) { q.Args = json.RawMessage(`{"command":"ls ","n":1}`) }), "exec", key, "ana"),
		"cwd":       hash(other(func(q *tools.Question) { q.Cwd = "/work/x" }), "exec", key, "ana"),
		"env":       hash(other(func(q *tools.Question) { q.Env = []string{"A=2"} }), "exec", key, "ana"),
		"no env":    hash(other(func(q *tools.Question) { q.Env = nil }), "exec", key, "ana"),
		"sandbox":   hash(other(func(q *tools.Question) { q.Sandbox = "" }), "exec", key, "ana"),
		"tool":      hash(base, "exec2", key, "ana"),
		"session":   hash(base, "exec", k2, "ana"),
		"requester": hash(base, "exec", key, "bob"),
	} {
		if was, ok := seen[got]; ok {
			t.Errorf("another %s has the hash of %s", name, was)
		}
		seen[got] = name
	}
	if _, err := tools.Hash(tools.Question{Args: json.RawMessage(`{"a":`)}, "exec", key, "ana"); err == nil {
		t.Error("half a JSON has a hash")
	}
}
