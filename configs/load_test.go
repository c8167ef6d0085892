package configs_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/configs"
)

func TestNoFileIsAllDefaults(t *testing.T) {
	t.Parallel()
	c := mustParse(t, "")
	if c.DataDir != "/home/ana/.local/share/parley" || c.Gateway.Listen != "127.0.0.1:8420" || c.Gateway.Token != "" {
		t.Errorf("data_dir %q, listen %q", c.DataDir, c.Gateway.Listen)
	}
	if len(c.Agents) != 1 || len(c.Models)+len(c.Channels)+len(c.Routes) != 0 {
		t.Fatalf("agents %d, models %d, channels %d", len(c.Agents), len(c.Models), len(c.Channels))
	}
	a := c.Agents[0]
	if a.ID != "assistant" || !a.Default || a.Model != "" || a.MaxSteps != 20 || a.Tools.Exec != "ask" || !a.Memory.Enabled || !a.May.Tasks {
		t.Errorf("assistant %+v", a)
	}
	if a.Workspace != "/home/ana/.local/share/parley/agents/assistant" || !slices.Equal(a.Tools.Allow, []string{"*"}) || a.Tools.Subagents.Archive != time.Hour {
		t.Errorf("assistant %+v", a)
	}
	if c.Sessions.TurnTimeout != 10*time.Minute || c.Sessions.Queue.Debounce != 700*time.Millisecond || c.Replies.PlaceholderAfter != 1500*time.Millisecond {
		t.Errorf("sessions %+v replies %+v", c.Sessions, c.Replies)
	}
	if c.Sandbox.Memory != 512<<20 || c.Retention.Runs != 90*24*time.Hour || c.Retention.Transcripts != 0 || c.Concurrency.Turns != 512 {
		t.Errorf("sandbox %+v retention %+v", c.Sandbox, c.Retention)
	}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}

func TestDefaultsOfAdaptersAndItems(t *testing.T) {
	t.Parallel()
	c := mustParse(t, `
models:
  - {name: far, api: anthropic, model: m, api_key: k}
  - {name: near, model: m, api_key: k}
agents: [{id: solo, tools: {by_role: {member: {exec: ask}}}}]
people: [{id: ana}]
channels: [{name: tg, type: telegram, token: "1:a"}]
hooks: [{name: h, secret: sixteen-letters-x}]
`)
	if c.Models[0].BaseURL != "https://api.anthropic.com" || c.Models[1].BaseURL != "https://api.openai.com/v1" || c.Models[1].MaxOutputTokens != 8192 {
		t.Errorf("models %+v", c.Models)
	}
	a := c.Agents[0]
	if !a.Default || a.Model != "far" || a.Name != "solo" || c.Hooks[0].Agent != "solo" || c.People[0].Role != "guest" {
		t.Errorf("agent %+v", a)
	}
	if r := a.Tools.ByRole["member"]; r.Exec != "ask" || !slices.Equal(r.Allow, []string{"*"}) {
		t.Errorf("by_role %+v", r)
	}
	ch := c.Channels[0]
	if ch.Stream != "edit" || ch.Access.DM != "pairing" || ch.Access.Groups != "allowlist" || !ch.Access.RequireMention {
		t.Errorf("channel %+v", ch)
	}
	if o := ch.Options.(*telegram); o.Token != "1:a" || o.Limit != 7 {
		t.Errorf("options token %v, limit %d", o.Token == "1:a", o.Limit)
	}
}

func TestExpansion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "token"), "from-file\r\n\n")
	write(t, filepath.Join(dir, "big"), strings.Repeat("x", 64<<10+1))
	write(t, filepath.Join(dir, "full"), strings.Repeat("x", 64<<10))
	load := func(value string) (string, error) {
		text := "models: [{name: m, api: offline, model: " + quoteYAML(value) + "}]"
		c, err := configs.Parse([]byte(text), configs.LoadOptions{Path: filepath.Join(dir, "parley.yaml"),
			Env: env("A=alpha", "EMPTY=", "ODD=a\": b\n${A} $$")})
		if err != nil {
			return "", err
		}
		return c.Models[0].Model, nil
	}
	for in, want := range map[string]string{
		"plain":                      "plain",
		"${A}":                       "alpha",
		"x${A}y${A}":                 "xalphayalpha",
		"${A:-no}":                   "alpha",
		"${NONE:-yes}":               "yes",
		"${EMPTY:-yes}":              "yes",
		"x${NONE:-}":                 "x",
		"$$":                         "$",
		"$${A}":                      "${A}",
		"$A $5 $":                    "$A $5 $",
		"$$$${A}":                    "$${A}",
		"${ODD}":                     "a\": b\n${A} $$", // once, and the structure stays
		"${file:token}":              "from-file\r\n",   // one newline goes
		"${file:./token}":            "from-file\r\n",
		"${file:" + dir + "/token}!": "from-file\r\n!",
		"${file:full}":               strings.Repeat("x", 64<<10),
	} {
		if got, err := load(in); err != nil || got != want {
			t.Errorf("%q is %q, %v; want %q", in, got, err, want)
		}
	}
	for in, want := range map[string]string{
		"${NONE}":      "models[0].model: environment variable NONE is not set",
		"${file:big}":  "larger than 64 KiB",
		"${file:none}": "no such file",
		"${A":          "never closed",
		"${a b}":       "does not name a variable",
	} {
		if got, err := load(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %q, %v; want an error with %q", in, got, err, want)
		}
	}
}

func TestExpansionOfCRLFFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "token"), "windows\r\n")
	c, err := configs.Parse([]byte(`gateway: {token: "${file:token}"}`), configs.LoadOptions{Path: filepath.Join(dir, "p.yaml"), Env: env()})
	if err != nil || c.Gateway.Token.Reveal() != "windows" {
		t.Fatalf("token %q, %v", c.Gateway.Token.Reveal(), err)
	}
	c, err = configs.Parse([]byte(`mcp: [{name: s, command: [run, "${file:token}"]}]`), configs.LoadOptions{Path: filepath.Join(dir, "p.yaml"), Env: env()})
	if err != nil || !slices.Contains(c.Secrets(), "windows") {
		t.Error("the content of a ${file:} is not among the secrets")
	}
}

func TestPathsStartAtTheFileAndHome(t *testing.T) {
	t.Parallel()
	text := "data_dir: data\ngateway: {tls: {cert: c.pem, key: /k.pem}}\nagents: [{id: a, workspace: ~/w, folders: [{path: ../n, as: n}]}]"
	c, err := configs.Parse([]byte(text), configs.LoadOptions{Path: "/etc/parley/parley.yaml", Env: env()})
	if err != nil {
		t.Fatal(err)
	}
	got := []string{c.DataDir, c.Gateway.TLS.Cert, c.Gateway.TLS.Key, c.Agents[0].Workspace, c.Agents[0].Folders[0].Path}
	want := []string{"/etc/parley/data", "/etc/parley/c.pem", "/k.pem", "/home/ana/w", "/etc/n"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if c := mustParse(t, "data_dir: ~"); c.DataDir != "/home/ana/.local/share/parley" { // a YAML null
		t.Error(c.DataDir)
	}
	if c := mustParse(t, "", "XDG_DATA_HOME=/xdg"); c.DataDir != "/xdg/parley" {
		t.Error(c.DataDir)
	}
}

// TestFileIsFound holds the order: the option, $PARLEY_CONFIG, ./parley.yaml, the user's config folder, none.
func TestFileIsFound(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"option", "env", "cwd", "user"} {
		if err := os.MkdirAll(filepath.Join(root, name, "parley"), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(root, name, "parley.yaml"), "data_dir: /"+name)
		write(t, filepath.Join(root, name, "parley", "parley.yaml"), "data_dir: /"+name)
	}
	t.Chdir(filepath.Join(root, "cwd"))
	user := "XDG_CONFIG_HOME=" + filepath.Join(root, "user")
	named := "PARLEY_CONFIG=" + filepath.Join(root, "env", "parley.yaml")
	check := func(want string, o configs.LoadOptions) {
		t.Helper()
		c, err := configs.Load(o)
		if err != nil || c.DataDir != want {
			t.Errorf("got %v, %v; want %s", c, err, want)
		}
		if err == nil && c.Path != "" && !filepath.IsAbs(c.Path) {
			t.Errorf("path %q is not absolute", c.Path)
		}
	}
	check("/option", configs.LoadOptions{Path: "../option/parley.yaml", Env: env(user, named)})
	check("/env", configs.LoadOptions{Env: env(user, named)})
	check("/cwd", configs.LoadOptions{Env: env(user)})
	if err := os.Remove("parley.yaml"); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll("parley"); err != nil {
		t.Fatal(err)
	}
	write(t, "parley", "\x7fELF: the program, which viper's own search would read")
	check("/user", configs.LoadOptions{Env: env(user)})
	check("/home/ana/.local/share/parley", configs.LoadOptions{Env: env("XDG_CONFIG_HOME=" + filepath.Join(root, "none"))})
	for _, o := range []configs.LoadOptions{{Path: "gone.yaml", Env: env()}, {Env: env("PARLEY_CONFIG=gone.yaml")}} {
		if _, err := configs.Load(o); err == nil || !strings.Contains(err.Error(), "gone.yaml") {
			t.Errorf("a named file that is missing: %v", err)
		}
	}
}

// TestEnvironmentOverrides runs over both ways to read it: viper's, of the process, and one that is handed in.
func TestEnvironmentOverrides(t *testing.T) {
	vars := map[string]string{
		"PARLEY_DATA_DIR": "/from/env", "PARLEY_GATEWAY_LISTEN": "127.0.0.1:0", "PARLEY_GATEWAY_TOKEN": "p$$ss${x}",
		"PARLEY_SESSIONS_TURN_TIMEOUT": "3m", "PARLEY_SESSIONS_QUEUE_CAP": "7", "PARLEY_SANDBOX_MEMORY": "1GiB",
		"PARLEY_SESSIONS_QUEUE_MODE": "", "PARLEY_UNRELATED": "x",
	}
	file := filepath.Join(t.TempDir(), "parley.yaml")
	write(t, file, "data_dir: /from/file\nsessions: {queue: {mode: collect}}")
	check := func(c *configs.Config, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if c.DataDir != "/from/env" || c.Gateway.Listen != "127.0.0.1:0" || c.Sessions.TurnTimeout != 3*time.Minute ||
			c.Sessions.Queue.Cap != 7 || c.Sandbox.Memory != 1<<30 || c.Sessions.Queue.Mode != "collect" {
			t.Errorf("%s %+v %+v", c.DataDir, c.Gateway, c.Sessions)
		}
		if c.Gateway.Token.Reveal() != "p$$ss${x}" {
			t.Error("the token of the environment was changed")
		}
	}
	var pairs []string
	for name, value := range vars {
		pairs = append(pairs, name+"="+value)
		t.Setenv(name, value)
	}
	check(configs.Load(configs.LoadOptions{Path: file, Env: env(pairs...)}))
	check(configs.Load(configs.LoadOptions{Path: file}))
	_, err := parse(t, "", "PARLEY_SESSIONS_TURN_TIMEOUT=soon", "PARLEY_GATEWAY_LISTEN=:8420")
	want := []string{
		`gateway.listen: ":8420" can be reached from other machines, which needs gateway.tls.cert and gateway.tls.key and gateway.token; or listen on 127.0.0.1 (environment variable PARLEY_GATEWAY_LISTEN)`,
		`sessions.turn_timeout: "soon" is not a duration: write a number with its unit, such as 500ms, 30s, 10m, 2h or 90d (environment variable PARLEY_SESSIONS_TURN_TIMEOUT)`,
	}
	if got := problems(t, err); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestT01_OpenListenNeedsTLSAndToken(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("k", 22)
	for _, c := range []struct {
		gateway string
		ok      bool
	}{
		{"listen: 127.0.0.1:1", true},
		{"listen: 127.9.9.9:0", true},
		{"listen: '[::1]:1'", true},
		{"listen: '[::ffff:127.0.0.1]:1'", true},
		{"listen: localhost:1", true},
		{"listen: :1", false},
		{"listen: 0.0.0.0:1", false},
		{"listen: '[::]:1'", false},
		{"listen: 192.168.1.2:1", false},
		{"listen: localhost.evil.example:1", false},
		{"listen: 0.0.0.0:1, token: " + long, false},
		{"listen: 0.0.0.0:1, tls: {cert: c, key: k}", false},
		{"listen: 0.0.0.0:1, tls: {cert: c}, token: " + long, false},
		{"listen: 0.0.0.0:1, tls: {cert: c, key: k}, token: " + long[1:], false},
		{"listen: 0.0.0.0:1, tls: {cert: c, key: k}, token: " + long, true},
		{"listen: 127.0.0.1:70000", false},
		{"listen: 127.0.0.1", false},
	} {
		_, err := parse(t, "gateway: {"+c.gateway+"}")
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.gateway, err)
		}
	}
}

func TestT21_AgentsCannotWriteTheConfiguration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for agents, ok := range map[string]bool{
		"folders: [{path: " + dir + ", as: d, mode: rw}]":     false,
		"folders: [{path: " + link + ", as: d, mode: rw}]":    false,
		"folders: [{path: /, as: d, mode: rw}]":               false,
		"folders: [{path: " + dir + ", as: d, mode: ro}]":     true,
		"folders: [{path: " + dir + "/sub, as: d, mode: rw}]": true,
		"folders: [{path: " + dir + "-sub, as: d, mode: rw}]": true,
		"workspace: " + dir:                                    false,
		"workspace: " + link:                                   false,
		"workspace: " + dir + "/w":                             true,
		"folders: [{path: /var/p/x, as: d}]":                   false, // in data_dir
		"folders: [{path: /var, as: d}]":                       false,
		"folders: [{path: " + dir + "/../a, as: d, mode: rw}]": true,
	} {
		text := "data_dir: /var/p\nagents: [{id: a, " + agents + "}]"
		_, err := configs.Parse([]byte(text), configs.LoadOptions{Path: filepath.Join(dir, "parley.yaml"), Env: env()})
		if (err == nil) != ok {
			t.Errorf("%s: %v", agents, err)
		}
	}
}

func TestT21_UnknownKeyOrBadValueIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"sandbx: {}", "sandbox: {backend: off}", "sandbox: {network: host}", "agents: [{id: a, tools: {exec: yolo}}]"} {
		if c, err := parse(t, text); err == nil || c != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestProblemsAreAllToldOnceAndSorted(t *testing.T) {
	t.Parallel()
	_, err := parse(t, "replies: {maybe_sent: perhaps}\nnonsense: 1\n\nretention: {runs: 5}\ngateway: {token: \"${NOPE}\"}")
	want := []string{
		"replies.maybe_sent: must be one of mark, drop, not \"perhaps\" (line 1)",
		"nonsense: unknown key, known: agents, approvals, budgets, channels, concurrency, data_dir, domains, gateway, hooks, mcp, models, people, … (line 2)",
		"retention.runs: \"5\" is not a duration: it needs a unit, such as 5s or 5m (line 4)",
		"gateway.token: environment variable NOPE is not set; write ${NOPE:-} if it may be absent (line 5)",
	}
	if got := problems(t, err); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestFileCannotBlowUp(t *testing.T) {
	t.Parallel()
	var bomb strings.Builder
	bomb.WriteString("agents:\n- &a {id: a, tools: {exec_allow: [&p {program: p, args: &s [" + strings.Repeat("x,", 1000) + "x]}")
	bomb.WriteString(strings.Repeat(",*p", 1000) + "]}}\n" + strings.Repeat("- *a\n", 100))
	_, err := parse(t, bomb.String())
	if err == nil || !strings.Contains(err.Error(), "more than 200000 values") {
		t.Errorf("%.200s", err)
	}
	_, err = parse(t, strings.Repeat("# a long comment\n", 1<<16))
	if err == nil || !strings.Contains(err.Error(), "larger than 1 MiB") {
		t.Errorf("%.200s", err)
	}
	_, err = parse(t, "agents: &a\n- *a\n")
	if err == nil {
		t.Error("an alias of itself was taken")
	}
}

// TestValidateOfAConfigMadeInCode: the checks do not need a file.
func TestValidateOfAConfigMadeInCode(t *testing.T) {
	t.Parallel()
	c := mustParse(t, "")
	c.Gateway.Listen = ":80"
	c.Sessions.Queue.Mode = "never"
	got := problems(t, c.Validate())
	if len(got) != 2 || strings.Contains(strings.Join(got, ""), "line") {
		t.Errorf("got %q", got)
	}
}

// TestTagsAreSound reads every tag of the configuration as the loader does: a default, example, min or max with a slip would
// otherwise be a silent zero.
func TestTagsAreSound(t *testing.T) {
	t.Parallel()
	seen := 0
	var visit func(typ reflect.Type)
	visit = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Slice, reflect.Map, reflect.Pointer:
			visit(typ.Elem())
		case reflect.Struct:
			for i := range typ.NumField() {
				f := typ.Field(i)
				if !f.IsExported() || f.Tag.Get("yaml") == "-" {
					continue
				}
				seen++
				for _, edge := range []string{f.Tag.Get("min"), f.Tag.Get("max")} {
					if _, err := configs.ParseDuration(edge); edge != "" && f.Type == reflect.TypeFor[time.Duration]() && err != nil {
						t.Errorf("%s.%s: %v", typ.Name(), f.Name, err)
					}
				}
				if doc := f.Tag.Get("doc"); doc == "" || !strings.HasSuffix(doc, ".") {
					t.Errorf("%s.%s: doc %q is not a sentence", typ.Name(), f.Name, doc)
				}
				visit(f.Type)
			}
		}
	}
	visit(reflect.TypeFor[configs.Config]())
	if seen < 120 {
		t.Errorf("saw %d keys", seen)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func quoteYAML(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
