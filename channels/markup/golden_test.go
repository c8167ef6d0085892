package markup

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/channels"
)

// traits are those of the networks, for tests.
func traits(d channels.Dialect) channels.Traits {
	t := channels.Traits{Dialect: d, Unit: channels.UTF16, MaxUnits: 4000}
	switch d {
	case channels.Telegram:
		t.MaxUnits = 4096
	case channels.Discord:
		t.MaxUnits = 2000
	case channels.Markdown:
		t.MaxUnits = 0
	}
	return t
}

// golden compares with a file, or writes it with -update.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; run with -update and read the diff\n%s", file, got)
	}
}

// Every testdata/*.md is rendered in every dialect into testdata/<name>.<dialect>. Adding a case needs no Go.
func TestEveryDialectOfTheCorpus(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.md")
	if err != nil || len(files) == 0 {
		t.Fatal("no corpus", err)
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		md := string(src)
		for _, d := range dialects() {
			name := strings.TrimSuffix(file, ".md") + "." + string(d)
			t.Run(filepath.Base(name), func(t *testing.T) {
				t.Parallel()
				checkAll(t, md, traits(d), true)
				golden(t, name, strings.Join(parts(md, traits(d)), "\n=-=-=-=-= next message =-=-=-=-=\n")+"\n")
			})
		}
	}
}

// long is an honest answer of about size bytes.
func long(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "## Step %d\n\nWe look at *file %d* and **change** `line_%d`, see [docs](https://docs.example/%d?a=1&b=2). Then we wait; it takes %d ms.\n\n", i, i, i, i, i)
		fmt.Fprintf(&b, "- first <%d>\n- second\n  - nested one\n  - nested two\n\n```go\nfor i := range %d {\n\tfmt.Println(i) // %s\n}\n```\n\n", i, i, strings.Repeat("x", i%50))
		if i%7 == 0 {
			fmt.Fprintf(&b, "| name | value |\n|---|---|\n| a%d | %d |\n| b | `c` |\n\n> %s\n\n", i, i*i, strings.Repeat("quoted words ", i%90))
		}
	}
	return b.String()
}

func TestLongAnswerIsCutAlikeForEver(t *testing.T) {
	t.Parallel()
	md := long(100_000)
	checkAll(t, md, traits(channels.Telegram), true)
	doc := Parse(md)
	var out strings.Builder
	for _, d := range dialects() {
		spans, text := doc.CutFrom(0, traits(d)), sha256.New()
		for _, s := range spans {
			part, _ := doc.Render(s, d)
			text.Write([]byte(part + "\x00"))
		}
		fmt.Fprintf(&out, "%s: %d parts, spans %x, text %x\n", d, len(spans), sha256.Sum256([]byte(fmt.Sprint(spans))), text.Sum(nil))
	}
	golden(t, "testdata/long.sums", out.String())
}
