package setup_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"parley/configs"
	"parley/configs/edit"
	"parley/gateway/setup"
)

// guarded are changes of each key that reaches the host, widens rights or loses something, as a place with its value.
var guarded = [][2]string{
	{"gateway.listen", `"127.0.0.1:0"`}, {"gateway.token", `"0123456789012345678901"`}, {"gateway.allowed_hosts", `[evil.example]`}, {"gateway.public_url", `"https://evil.example"`},
	{"gateway.writes_per_second", `0`}, {"gateway.tls", `{cert: "/x", key: "/y"}`}, {"data_dir", `/elsewhere`},
	{"sandbox.backend", `none`}, {"sandbox.network", `egress`}, {"sandbox.egress", `["evil.example:443"]`}, {"sandbox.memory", `8GiB`}, {"sandbox.control_paths", `[x]`},
	{"agents[assistant].folders", `[{path: /srv, as: srv, mode: rw}]`}, {"agents[assistant].workspace", `/tmp`}, {"agents[assistant].tools.exec", `allow`},
	{"agents[assistant].tools.exec_allow", `[{program: sh}]`}, {"agents[assistant].tools.by_role", `{guest: {exec: allow}}`}, {"agents[assistant].tools.allow", `["*", x]`},
	{"agents[assistant].mcp", `[x]`}, {"agents[assistant].skills", `[x]`}, {"agents[assistant].may.ask", `["*"]`}, {"agents[assistant].budget.usd_per_day", `9`},
	{"agents[other]", `{id: other, tools: {exec: allow}}`}, {"agents[other]", `{id: other, folders: [{path: /srv, as: srv}]}`},
	{"people[ana].role", `guest`}, {"people[eve]", `{id: eve, role: owner}`}, {"people[eve]", `{id: eve, role: member}`}, {"people[ana].accounts", `[{channel: tg, user: "6"}]`},
	{"people[eve]", `{id: eve, accounts: [{channel: tg, user: "6"}]}`},
	{"channels[tg].access", `{dm: open}`}, {"channels[tg].access.allow", `["6"]`}, {"channels[tg].access.groups", `open`}, {"channels[tg].tools", `{deny: [x]}`},
	{"channels[new]", `{name: new, type: telegram, token: "9:x", access: {dm: open}}`}, {"channels[new]", `{name: new, type: telegram, token: "9:x", api_url: "http://127.0.0.1:9"}`},
	{"routes", `[{channel: tg, agent: assistant}]`}, {"tools.deny", `[x]`}, {"tools.allow", `["*"]`}, {"budgets", `[{scope: all, usd_per_day: 1}]`},
	{"domains", `[{name: d, match: {tools: [x]}, handler: command, command: [/bin/sh]}]`}, {"hooks", `[{name: h, secret: "0123456789abcdef"}]`},
	{"mcp", `[{name: m, command: [/bin/sh]}]`}, {"mcp", `[{name: m, url: "https://evil.example"}]`}, {"approvals.expire", `100h`}, {"retention.runs", `1d`},
	{"sessions.dm_scope", `main`}, {"sessions.reset.idle", `1m`},
	{"models[claude]", ``}, {"channels[tg]", ``}, {"people", ``}, // what is removed is lost
	// a ${…} that is new may read any file or variable, whatever the key
	{"models[claude].model", `"${file:/etc/passwd}"`}, {"people[ana].name", `"${HOME}"`}, {"models[new]", `{name: new, base_url: "https://evil.example/${file:data/token}", model: m}`},
	{"models[claude].api_key", `"${ANY}"`}, {"agents[assistant].name", `"x${PATH}"`},
}

// E68, T28: by a sign-in that is not fresh no such key changes, by whatever way and however it is written.
func TestE68_T28_AHostileCookieChangesNothingThatIsGuarded(t *testing.T) {
	t.Parallel()
	r := newRig(t, first)
	f, err := r.File()
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, err error) {
		t.Helper()
		var wrong *configs.Error // it does not load here
		if !errors.Is(err, errBorrowed) && !errors.As(err, &wrong) {
			t.Errorf("%s: %v", what, err)
		}
		if r.text() != first || len(r.secrets()) > 0 || len(r.left()) > 0 {
			t.Fatalf("%s: secrets %v, left %q, the text\n%s", what, r.secrets(), r.left(), r.text())
		}
	}
	taken := 0
	for _, c := range guarded {
		what := c[0] + ": " + c[1]
		_, err := r.change(r.borrowed(), setup.Edit{Sets: []setup.Set{set(t, c[0], c[1])}})
		refused(what, err)
		// the same text by the editor, beside what is free
		done, err := r.change(r.owner(), setup.Edit{Sets: []setup.Set{set(t, "agents[assistant].max_steps", "9"), set(t, c[0], c[1])}})
		var wrong *configs.Error
		if errors.As(err, &wrong) {
			continue
		}
		if err != nil {
			t.Errorf("%s by the owner: %v", what, err)
			continue
		}
		taken++ // where nobody judges the keys
		text := r.text()
		if _, err := r.write(r.owner(), done.Revision, first); err != nil && c[0] != "models[claude]" && c[0] != "channels[tg]" {
			t.Fatalf("%s: back: %v", what, err)
		}
		if r.text() != first {
			r.save(first)
			if err := r.Replace(t.Context(), f.Revision, []byte(first)); err != nil {
				t.Fatal(err)
			}
		}
		if strings.Contains(text, "secrets/") { // its references are new to the editor
			continue
		}
		_, err = r.write(r.borrowed(), f.Revision, text)
		refused(what+" as text", err)
	}
	if taken < len(guarded)*3/4 { // the others do not load here
		t.Fatalf("where nobody judges only %d of %d are taken", taken, len(guarded))
	}
	t.Logf("escape E68: broken: where nobody judges the keys %d of %d are taken", taken, len(guarded))
}

// E68: the ways in which one writes YAML are no way around.
func TestE68_NoWayToWriteItIsAWayAround(t *testing.T) {
	t.Parallel()
	r := newRig(t, first)
	f, err := r.File()
	if err != nil {
		t.Fatal(err)
	}
	v, err := r.Show()
	if err != nil {
		t.Fatal(err)
	}
	shown := string(v.Text)
	for what, text := range map[string]string{
		"flow":               strings.Replace(shown, "[{id: assistant, default: true}]", "[{id: assistant, default: true, tools: {exec: allow}}]", 1),
		"an anchor":          strings.Replace(shown, "agents: [{id: assistant, default: true}]", "agents: [{id: assistant, default: true, tools: &t {exec: allow}}, {id: b, tools: *t}]", 1),
		"an alias as a key":  strings.Replace(shown, "agents: [{id: assistant", "agents: [{name: &k tools, *k : {exec: allow}, id: assistant", 1),
		"JSON":               strings.Replace(shown, "agents: [{id: assistant, default: true}]", `"agents": [{"id": "assistant", "default": true, "tools": {"exec": "allow"}}]`, 1),
		"an escape":          strings.Replace(shown, "default: true}", `default: true, "to\u006fls": {exec: allow}}`, 1),
		"given twice":        shown + "people: [{id: ana, role: owner}, {id: eve, role: owner}]\n",
		"twice in an item":   strings.Replace(shown, "{id: ana, role: owner}", "{id: ana, role: owner}, {id: eve, role: guest, role: owner}", 1),
		"another case":       strings.Replace(shown, "{id: ana, role: owner}", "{id: ana, role: owner}, {id: eve, Role: owner}", 1),
		"a merge":            strings.Replace(shown, "[{id: ana, role: owner}]", "[&a {id: ana, role: owner}, {<<: *a, id: eve}]", 1),
		"a second document":  shown + "---\npeople: [{id: eve, role: owner}]\n",
		"a tag":              strings.Replace(shown, "{id: ana, role: owner}", "{id: ana, role: owner}, {id: eve, role: !!str owner}", 1),
		"a folded value":     strings.Replace(shown, "people: [{id: ana, role: owner}]", "people:\n  - {id: ana, role: owner}\n  - id: eve\n    role: >-\n      owner\n", 1),
		"a reference by `$`": strings.Replace(shown, "default: true}", `default: true, name: "${file:/etc/passwd}"}`, 1),
		"by an anchor":       strings.Replace(shown, "agents: [{id: assistant, default: true}]", "agents: [{id: assistant, default: true, name: &n \"${file:/etc/passwd}\"}, {id: b, name: *n}]", 1),
	} {
		_, err := r.write(r.borrowed(), f.Revision, text)
		var wrong *configs.Error
		if !errors.Is(err, errBorrowed) && !errors.As(err, &wrong) && !errors.Is(err, edit.ErrByHand) || r.text() != first {
			t.Errorf("%s: %v\n%s", what, err, r.text())
		}
		if c := r.Current(); len(c.People) != 1 || c.Agents[0].Tools.Exec == "allow" {
			t.Fatalf("%s is in force", what)
		}
	}
	// a look reads nothing that a text names newly
	_, err = r.Setup.Check([]byte(strings.Replace(shown, "default: true}", `default: true, name: "${file:/etc/passwd}"}`, 1)), r.borrowed().May)
	if !errors.Is(err, errBorrowed) {
		t.Errorf("a look by a cookie: %v", err)
	}
	if done, err := r.write(r.borrowed(), f.Revision, strings.Replace(shown, "model: c}", "model: d}", 1)); err != nil || len(done.Changed) != 1 {
		t.Errorf("what is free: %+v, %v", done, err)
	}
}

// E68: a kept credential is sent to nobody who listens at another address, whoever asks and by whatever way.
func TestE68_AChangedAddressGetsNoKey(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var heard atomic.Int64
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			heard.Add(1)
			_ = c.Close() // it was enough that it came
		}
	}()
	defer func() { _ = l.Close(); <-over }() // nobody is asked
	r := newRig(t, first)
	if err := os.WriteFile(filepath.Join(filepath.Dir(r.path), "key"), []byte("kept-in-the-text\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := r.File()
	if err != nil {
		t.Fatal(err)
	}
	v, err := r.Show()
	if err != nil {
		t.Fatal(err)
	}
	evil := "http://" + l.Addr().String()
	for what, e := range map[string]setup.Edit{
		"the model's":         {Sets: []setup.Set{set(t, "models[claude].base_url", `"`+evil+`"`)}},
		"another model":       {Sets: []setup.Set{set(t, "models[x]", `{name: x, base_url: "`+evil+`", model: m, api_key: "${file:key}"}`)}},
		"the same by value":   {Sets: []setup.Set{set(t, "models[x]", `{name: x, base_url: "`+evil+`", model: m}`)}, Secrets: []setup.Secret{{Path: "models[x].api_key", Value: "kept-in-the-text"}}},
		"the channel's":       {Sets: []setup.Set{set(t, "channels[tg].api_url", `"`+evil+`"`)}},
		"transcription":       {Sets: []setup.Set{set(t, "transcription", `{model: w, base_url: "`+evil+`", api_key: "${file:key}"}`)}},
		"the channel's model": {Sets: []setup.Set{set(t, "models[x]", `{name: x, base_url: "`+evil+`", model: m}`)}, Secrets: []setup.Secret{{Path: "models[x].api_key", Value: "1:kept-too"}}},
	} {
		for _, who := range []setup.Asker{r.owner(), r.borrowed()} {
			if _, err := r.change(who, e); err == nil || r.text() != first {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	if _, err := r.write(r.owner(), f.Revision, strings.Replace(string(v.Text), "api: anthropic,", "api: anthropic, base_url: \""+evil+"\",", 1)); err == nil {
		t.Error("by the text it was taken")
	}
	if n := heard.Load(); n > 0 {
		t.Errorf("the listener was asked %d times", n)
	}
}
