package tools

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"parley/workspace"
)

type fileArgs struct {
	Path  string `json:"path"`
	Limit int    `json:"limit,omitempty"`
}

const fileSchema = `{"type":"object","properties":{"path":{"type":"string"},"limit":{"type":"integer"}},"required":["path"],"additionalProperties":false}`

func TestT17_DecodeIsStrict(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"path":"a"}`:                          "",
		` {"limit":3,"path":"a"} `:              "",
		`{"path":"a","sandbox":"none"}`:         `there is no argument "sandbox"; there are: `,
		`{"path":"a","Path":"b"}`:               `there is no argument "Path"`,
		`{"PATH":"a"}`:                          `there is no argument "PATH"`,
		`{"path":"a","path":"b"}`:               `argument "path" is given twice`,
		`{"limit":1}`:                           `argument "path" is missing`,
		`{}`:                                    `argument "path" is missing`,
		`{"path":1}`:                            `argument "path" must be text`,
		`{"path":"a","limit":"x"}`:              `argument "limit" must be a whole number`,
		`{"path":"a","limit":1.5}`:              `argument "limit" must be a whole number`,
		`{"path":"a"}{"path":"b"}`:              "not one JSON object",
		`{"path":"a"} x`:                        "not one JSON object",
		`["path"]`:                              "not one JSON object",
		`"path"`:                                "not one JSON object",
		`null`:                                  "not one JSON object",
		``:                                      "not one JSON object",
		`{"path":"a"`:                           "not one JSON object",
		`{"path":`:                              "not one JSON object",
		"{\"a\x1b\":1}":                         "not one JSON object",
		`{"\u001b[31m":1}`:                      `there is no argument "␛[31m"`,
		strings.Repeat(`[`, 2*MaxArgs):          "longer than",
		`{"path":` + strings.Repeat(`[`, 20000): "not one JSON object",
	} {
		_, err := Decode[fileArgs](json.RawMessage(in))
		said, _ := workspace.Sentence(err)
		if want == "" && err != nil || want != "" && (!strings.Contains(said, want) || !errors.Is(err, workspace.ErrInvalid)) {
			t.Errorf("%.60s: got %q, want %q", in, said, want)
		}
		if strings.Contains(want, "must be") {
			continue // the schema check looks at names only
		}
		if cerr := CheckArgs(json.RawMessage(fileSchema), json.RawMessage(in)); (cerr == nil) != (err == nil) {
			t.Errorf("%.60s: CheckArgs says %v, Decode %v", in, cerr, err)
		}
	}
}

func TestCheckArgsRefusesABrokenSchema(t *testing.T) {
	t.Parallel()
	if err := CheckArgs(json.RawMessage(`{`), json.RawMessage(`{}`)); err == nil {
		t.Error("a broken schema passed")
	}
}

// FuzzArgs: what Decode takes holds only known keys, survives a round trip, and CheckArgs agrees.
func FuzzArgs(f *testing.F) {
	for _, s := range []string{`{"path":"a","limit":2}`, `{"path":"a","x":1}`, `{"path":"a","path":"b"}`, `{"Path":"a"}`, `[`, `{"path":"\ud800"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		v, err := Decode[fileArgs](in)
		if err != nil {
			if said, ok := workspace.Sentence(err); !ok || len(said) > 400 {
				t.Fatalf("error without a short sentence: %v", err)
			}
			return
		}
		if CheckArgs(json.RawMessage(fileSchema), in) != nil {
			t.Fatalf("%q: only Decode takes it", in)
		}
		var loose map[string]json.RawMessage
		if err := json.Unmarshal(in, &loose); err != nil {
			t.Fatalf("%q is not an object: %v", in, err)
		}
		for k := range loose {
			if k != "path" && k != "limit" {
				t.Fatalf("%q: key %q was taken", in, k)
			}
		}
		out, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Decode[fileArgs](out); err != nil || again != v {
			t.Fatalf("%q became %q: %v", in, out, err)
		}
	})
}
