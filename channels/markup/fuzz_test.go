package markup

import (
	"os"
	"path/filepath"
	"testing"

	"parley/channels"
)

func seeds(f *testing.F) []string {
	files, err := filepath.Glob("testdata/*.md")
	if err != nil {
		f.Fatal(err)
	}
	out := []string{
		"", "pong 123", "**a *b** c*", "```\n`` ` ```\n````", "> - 1. # a\n\n      b", "[a](<b c> \"d\") ![e](f)", "|a|b|\n|-|-|\n|c|d|e|",
		"|a\n|-\n|b\\|", "[x]: y", "a\\\nb  \nc", "\x00\xff\u202e&#0;&#x202e;&#10;# x", "* * *\n- - -\n___", "- [ ] \n- [x]\n-", "<a@b.c><http://x>www.y.z",
		"@everyone <!here> <@U1>", "~~a~~ ~b~", "1. a\n\n   ```\n   b\n   ```\n2. c", "👩‍👩‍👧e\u0301\u200d\u200d", "***a** b*", "[**a**`b`](http://c.d)", "====\n#\n##",
		"[`0 ](http://0)", "```\n\r", "```0", "- - -\n      ```\n      a\n      ```\n      b",
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		out = append(out, string(src))
	}
	return out
}

// FuzzRender renders any span of anything: it must not panic, and what is seen must parse.
func FuzzRender(f *testing.F) {
	for _, s := range seeds(f) {
		f.Add(s, 0, len(s))
		f.Add(s, len(s)/3, 2*len(s)/3)
	}
	f.Fuzz(func(t *testing.T, md string, from, to int) {
		if len(md) > 20_000 {
			return
		}
		from = min(max(from, 0), len(md))
		to = min(max(to, from), len(md))
		doc := Parse(md)
		for _, d := range dialects() {
			text, plain := doc.Render(Span{from, to}, d)
			if visible(text) {
				checkPart(t, text, d)
			}
			if visible(plain) {
				checkPart(t, plain, channels.Plain)
			}
		}
		if n := Settled(md); n < 0 || n > len(md) {
			t.Fatalf("settled at %d", n)
		}
	})
}

// FuzzCut cuts anything: spans tile it, parts fit, parse and add up.
func FuzzCut(f *testing.F) {
	for _, s := range seeds(f) {
		for i := range dialects() {
			f.Add(s, i, 1500)
			f.Add(s, i, 40)
		}
	}
	f.Fuzz(func(t *testing.T, md string, dialect, most int) {
		if len(md) > 20_000 || most < 1 {
			return
		}
		all := dialects()
		d := all[uint(dialect)%uint(len(all))]
		checkAll(t, md, channels.Traits{Dialect: d, Unit: channels.UTF16, MaxUnits: most}, most >= 1500)
	})
}
