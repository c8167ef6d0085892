package edit

import (
	"errors"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const commented = `# Parley's configuration.
# Kept by Ada.

data_dir: ~/parley   # on the large disk

models:
  # The good one.
  - name: claude
    api: anthropic
    api_key: "${file:secrets/claude}"   # a file of its own
    model: claude-sonnet-4-5
  - {name: local, base_url: "http://127.0.0.1:11434/v1", model: llama} # slow
# What follows is for the family.

agents:
  - id: assistant
    default: true
    tools:
      # Nothing that writes.
      deny: [write_file, "edit_*"] # nor this
      exec:
        # not yet
        mode: ask

    models: [claude, local]
  - id: other # the second
channels: []   # none yet
# The end.
`

func TestApplyChangesOnePlace(t *testing.T) {
	for name, c := range map[string]struct {
		path, value string // no value: removed
		old, new    string // what is replaced in the text
	}{
		"a plain value":                    {"data_dir", `/srv/parley`, "~/parley   #", "/srv/parley   #"},
		"a quoted value":                   {"models[claude].api_key", `"${file:secrets/new}"`, `"${file:secrets/claude}"`, `"${file:secrets/new}"`},
		"a value in a flow":                {"models[local].base_url", `http://127.0.0.1:1234/v1`, `base_url: "http://127.0.0.1:11434/v1"`, `base_url: http://127.0.0.1:1234/v1`},
		"a new key in a flow":              {"models[local].context_window", `32000`, `model: llama}`, `model: llama, context_window: 32000}`},
		"a key of a flow goes":             {"models[local].base_url", ``, ` base_url: "http://127.0.0.1:11434/v1",`, ``},
		"a new key in a block":             {"models[claude].context_window", `200000`, "model: claude-sonnet-4-5\n", "model: claude-sonnet-4-5\n    context_window: 200000\n"},
		"a new item":                       {"models[gpt]", `{name: gpt, model: gpt-5, api_key: "${KEY}"}`, "# slow\n", "# slow\n  - name: gpt\n    model: gpt-5\n    api_key: \"${KEY}\"\n"},
		"an item goes":                     {"models[local]", ``, "  - {name: local, base_url: \"http://127.0.0.1:11434/v1\", model: llama} # slow\n", ""},
		"a list of names":                  {"agents[assistant].models", `[local]`, "models: [claude, local]", "models: [local]"},
		"a key of a block goes":            {"agents[assistant].models", ``, "    models: [claude, local]\n", ""},
		"the only key goes":                {"agents[assistant].tools.exec.mode", ``, "      exec:\n        # not yet\n        mode: ask\n", "      exec: {}\n"},
		"an empty list gets an item":       {"channels[tg]", `{name: tg, type: telegram}`, "channels: []   # none yet\n", "channels:   # none yet\n  - name: tg\n    type: telegram\n"},
		"a new key at the top":             {"gateway.public_url", `https://parley.example.org`, "# The end.\n", "gateway:\n  public_url: https://parley.example.org\n# The end.\n"},
		"a number":                         {"agents[1].id", `third`, "- id: other #", "- id: third #"},
		"a mapping in place of nothing":    {"agents[other].tools", `{exec: {mode: deny}}`, "- id: other # the second\n", "- id: other # the second\n    tools:\n      exec:\n        mode: deny\n"},
		"an item in a flow list":           {"agents[assistant].tools.deny[2]", `exec`, `"edit_*"]`, `"edit_*", exec]`},
		"an item of a flow list goes":      {"agents[assistant].tools.deny[0]", ``, `[write_file, "edit_*"]`, `["edit_*"]`},
		"a mapping in place of another":    {"agents[assistant].tools.exec", `{mode: deny, ask: true}`, "mode: ask\n", "mode: deny\n        ask: true\n"},
		"a text of two lines":              {"data_dir", `"a\nb"`, "~/parley   #", "\"a\\nb\"   #"},
		"a text that looks like a comment": {"data_dir", `"a # b"`, "~/parley   #", "'a # b'   #"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Apply([]byte(commented), Change{Path: c.path, Value: valueOf(t, c.value)})
			if err != nil {
				t.Fatal(err)
			}
			if strings.Count(commented, c.old) != 1 {
				t.Fatalf("the text has %q %d times", c.old, strings.Count(commented, c.old))
			}
			if want := strings.Replace(commented, c.old, c.new, 1); string(got) != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestApplyInOtherTexts(t *testing.T) {
	for name, c := range map[string]struct{ text, path, value, want string }{
		"no text":                         {"", "gateway.listen", "127.0.0.1:9", "gateway:\n  listen: 127.0.0.1:9\n"},
		"comments only":                   {"# mine", "data_dir", "/x", "# mine\ndata_dir: /x\n"},
		"no line break at the end":        {"a: 1", "b", "2", "a: 1\nb: 2\n"},
		"no line break, last value":       {"a: 1", "a", "2", "a: 2"},
		"lines of Windows":                {"a: 1\r\nb:\r\n  c: x\r\n", "b.c", "y", "a: 1\r\nb:\r\n  c: y\r\n"},
		"a mark at the beginning":         {"\ufeffa: 1\n", "a", "2", "\ufeffa: 2\n"},
		"nothing behind a colon":          {"a:\nb: 1\n", "a", "2", "a: 2\nb: 1\n"},
		"nothing behind a colon, a list":  {"a: # c\nb: 1\n", "a[x]", "{id: x}", "a: # c\n  - id: x\nb: 1\n"},
		"a block in place of a value":     {"a: 1 # c\nb: 1\n", "a", "{c: {d: 1}}", "a: # c\n  c:\n    d: 1\nb: 1\n"},
		"a value in place of a block":     {"a: # c\n  b: 1\n  c: 2\nd: 1\n", "a", "1", "a: 1 # c\nd: 1\n"},
		"a literal":                       {"a: |\n  one\n  # two\n\nb: 1\n", "a", "x", "a: x\n\nb: 1\n"},
		"a folded text becomes a mapping": {"a: >-\n  one\n  two\nb: 1\n", "a", "{c: 1}", "a:\n  c: 1\nb: 1\n"},
		"a plain text of two lines":       {"a: one\n  two # c\nb: 1\n", "a", "x", "a: x # c\nb: 1\n"},
		"a list at the same column":       {"a:\n- x: 1\n  id: p\n- id: q\nb: 1\n", "a[r]", "{id: r}", "a:\n- x: 1\n  id: p\n- id: q\n- id: r\nb: 1\n"},
		"a flow over lines":               {"a: {\n  b: 1, # c\n  d: 2 # e\n}\n", "a.f", "3", "a: {\n  b: 1, # c\n  d: 2, f: 3 # e\n}\n"},
		"the first key behind a dash":     {"a:\n  - x: 1\n    id: p\n", "a[p].x", "", "a:\n  - id: p\n"},
		"blank lines between":             {"a: 1\n\nb: 2\n\nc: 3\n", "d", "4", "a: 1\n\nb: 2\n\nc: 3\n\nd: 4\n"},
		"wide letters before it":          {"a: {\"ä – 漢\": 1, b: x}\n", "a.b", "y", "a: {\"ä – 漢\": 1, b: y}\n"},
		"quotes in quotes":                {"a: 'it''s' # \"c\nb: \"x\\\"y\" # d\n", "b", "z", "a: 'it''s' # \"c\nb: z # d\n"},
		"an address with a #":             {"a: http://x/#y\n", "a", "http://x/#z", "a: http://x/#z\n"},
		"an item behind a dash":           {"a:\n  - one # 1\n  - two\n", "a[0]", "", "a:\n  - two\n"},
		"what is there already":           {"a: {b: '1'}\n", "a.b", "\"1\"", "a: {b: '1'}\n"},
		"what is gone already":            {"a: 1\n", "b.c", "", "a: 1\n"},
		"a block list":                    {"a:\n  - x # 1\n  - y # 2\n  - z # 3\n", "a", "[x, z, w]", "a:\n  - x # 1\n  - z # 3\n  - w\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Apply([]byte(c.text), Change{Path: c.path, Value: valueOf(t, c.value)})
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestApplyRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		text, path, value string
		byHand            bool
	}{
		"a path that is none":       {"a: 1\n", "a..b", "1", false},
		"a path with a line break":  {"a: 1\n", "a\nb", "1", false},
		"an item that is not there": {"a: [{id: x}]\n", "a[y].z", "1", false},
		"an item of another name":   {"a: [{id: x}]\n", "a[y]", "{id: z}", false},
		"a key of a list":           {"a: [1]\n", "a.b", "1", true},
		"an anchor":                 {"a: &x {b: 1}\nc: *x\n", "a.b", "2", true},
		"what is shared":            {"a: &x {b: 1}\nc: *x\n", "c.b", "2", true},
		"what others use goes":      {"a: &x {b: 1}\nc: *x\n", "a", "", true},
		"a second document":         {"a: 1\n---\nb: 1\n", "a", "2", true},
		"a list at the top":         {"- 1\n", "a", "2", true},
		"no YAML":                   {"a: [\n", "a", "2", false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Apply([]byte(c.text), Change{Path: c.path, Value: valueOf(t, c.value)})
			if err == nil || errors.Is(err, ErrByHand) != c.byHand {
				t.Errorf("got %q, error %v", got, err)
			}
		})
	}
}

// FuzzApply: whatever the text and the path, a change is made exactly or not at all, and no comment goes with it.
func FuzzApply(f *testing.F) {
	for _, text := range []string{commented, "a: {\n  b: 1, # c\n}\n", "- 1\n", "a: |+\n  x\n\n\nb: 1\n", "? a\n: b\n", "a: &x 1\nb: *x\n", "a: !!str 1 # c\n", "a:\n  - - b: 1\n    - c\n"} {
		for _, path := range []string{"data_dir", "models[claude].api_key", "a", "a.b", "a[0]", "a[0][0].b"} {
			f.Add(text, path, "{x: 1}")
			f.Add(text, path, "")
			f.Add(text, path, "\"# 'y'\"")
		}
	}
	f.Fuzz(func(t *testing.T, text, path, value string) {
		if len(text) > 4000 || len(value) > 1000 {
			return
		}
		var v *yaml.Node
		if value != "" {
			var err error
			if v, err = Value([]byte(value)); err != nil {
				return
			}
		}
		got, err := Apply([]byte(text), Change{path, v})
		if err != nil {
			return
		}
		steps, _ := parsePath(path)
		root, err := parse(got)
		if err != nil {
			t.Fatalf("the result does not parse: %v\n%s", err, got)
		}
		if at := find(root, steps); !same(at, v) {
			t.Fatalf("%s is not %q in\n%s", path, value, got)
		}
		again, err := Apply(got, Change{path, v})
		if err != nil || string(again) != string(got) {
			t.Fatalf("a second time: %v\n%s\nafter\n%s", err, again, got)
		}
	})
}

func valueOf(t *testing.T, text string) *yaml.Node {
	t.Helper()
	if text == "" {
		return nil
	}
	v, err := Value([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}
