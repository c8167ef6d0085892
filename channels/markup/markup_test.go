package markup

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rivo/uniseg"

	"parley/channels"
)

const family3 = "👩‍👩‍👧"

func render(md string, d channels.Dialect) string {
	text, _ := Render(md, Span{0, len(md)}, d)
	return text
}

func TestUnitsCountAsTheNetworkDoes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		s                   string
		utf16, bytes, runes int
	}{
		{"", 0, 0, 0},
		{"abc", 3, 3, 3},
		{"é", 1, 2, 1},
		{"日本", 2, 6, 2},
		{"😀", 2, 4, 1},
		{family3, 8, 18, 5},
	} {
		got := [3]int{Units(c.s, channels.UTF16), Units(c.s, channels.Bytes), Units(c.s, channels.Runes)}
		if got != [3]int{c.utf16, c.bytes, c.runes} {
			t.Errorf("%q: %v", c.s, got)
		}
	}
	if Units("é", "") != 2 {
		t.Error("an unknown unit must count bytes")
	}
}

func TestT15_StrangersTextCannotAct(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, md string
		d        channels.Dialect
		want     string
	}{
		{"raw html", `<b>x</b><script>y</script>`, channels.Telegram, `&lt;b&gt;x&lt;/b&gt;&lt;script&gt;y&lt;/script&gt;`},
		{"html block", "<div>\n**b**\n</div>", channels.Telegram, "&lt;div&gt;\n<b>b</b>\n&lt;/div&gt;"},
		{"raw html in markdown", `a <img src=x onerror=y>`, channels.Markdown, `a \<img src=x onerror=y>`},
		{"web link", `[t](https://a.example/p?q=1&r="2")`, channels.Telegram, `t (https://a.example/p?q=1&amp;r="2")`},
		{"mail link", `[t](mailto:a@b.example)`, channels.Telegram, `t (a@b.example)`},
		{"script link", `[t](javascript:alert(1))`, channels.Telegram, `t (javascript:alert(1))`},
		{"script link with entity", `[t](java&#115;cript:x)`, channels.Telegram, `t (javascript:x)`},
		{"app link", `[t](tg://user?id=1)`, channels.Telegram, `t (tg://user?id=1)`},
		{"relative link", `[t](//evil.example)`, channels.Discord, `t (//evil.example)`},
		{"script autolink", `<javascript:x>`, channels.Telegram, `javascript:x`},
		{"other address as text", `[https://good.example](https://evil.example)`, channels.Telegram, `https://good.example (https://evil.example)`},
		{"other host as text", `[good.example/login](https://evil.example)`, channels.Discord, `good.example/login (<https://evil.example>)`},
		{"other host in words", `[see www.good.example now](https://evil.example)`, channels.Slack, `see www.good.example now (<https://evil.example>)`},
		{"disguised host", "[good\u200b.example](https://evil.example)", channels.Telegram, "good\u200b.example (https://evil.example)"},
		{"other mail as text", `[help@good.example](mailto:x@evil.example)`, channels.Telegram, `help@good.example (x@evil.example)`},
		{"user part as host", `[t](https://good.example@evil.example)`, channels.Telegram, `t (https://good.example@evil.example)`},
		{"same host", `[www.good.example](https://good.example/x)`, channels.Telegram, `www.good.example (https://good.example/x)`},
		{"name of a product", `[Node.js](https://nodejs.example)`, channels.Telegram, `Node.js (https://nodejs.example)`},
		{"quote in attribute", `[t](<https://a.example/" onclick="x>)`, channels.Telegram, `t (https://a.example/" onclick="x)`},
		{"words for a target", `[click](http://evil.example/?d=1)`, channels.Telegram, `click (http://evil.example/?d=1)`},
		{"words for a target, by reference", "[click][1]\n\n[1]: http://evil.example/?d=1", channels.Discord, "\\[click\\][1]\n\n\\[1\\]: <http://evil.example/?d=1>"},
		{"words for a target, in HTML", `<a href="http://evil.example">click</a>`, channels.Telegram, `&lt;a href="http://evil.example"&gt;click&lt;/a&gt;`},
		{"Slack's own form", `<https://evil.example|https://bank.example>`, channels.Slack, "https://evil.example|https://bank.example"},
		{"Slack's own form with words", `<https://evil.example|your bank>`, channels.Slack, "&lt;https://evil.example|your bank>"},
		{"label with a look", `[**https://bank.example**](https://evil.example)`, channels.Discord, `**https://bank.example** (<https://evil.example>)`},
		{"label that begins as the target", `[https://bank.example](https://bank.example.evil.example)`, channels.Discord, `https://bank.example (<https://bank.example.evil.example>)`},
		{"image in a link", `[![alt](https://a.example/i.png)](https://evil.example)`, channels.Discord, `alt (<https://evil.example>)`},
		{"title of a link", `[t](https://evil.example "https://bank.example")`, channels.Telegram, `t (https://evil.example)`},
		{"the target itself", `[https://a.example/x_y](https://a.example/x_y)`, channels.Telegram, `https://a.example/x_y`},
		{"the target without its scheme", `[a.example/x](https://a.example/x)`, channels.Discord, `<https://a.example/x>`},
		{"itself", `https://a.example/x_y`, channels.Discord, `<https://a.example/x_y>`},
		{"long target", `[t](https://a.example/` + strings.Repeat("x", 2000) + `)`, channels.Telegram, `t (https://a.example/` + strings.Repeat("x", 2000) + `)`},
		{"image", `![alt](https://a.example/i.png)`, channels.Discord, `alt (<https://a.example/i.png>)`},
		{"image without text", `![](https://a.example/i.png)`, channels.Telegram, `https://a.example/i.png`},
		{"file image", `![alt](data:image/png;base64,AAAA)`, channels.Telegram, `alt (data:image/png;base64,AAAA)`},
		{"link by escapes", `\[t\](javascript:x)`, channels.Slack, `\[t]\(javascript:x)`},
		{"link by entities", `&#91;t&#93;&#40;https://a.example)`, channels.Discord, `\[t]\(https://a.example)`},
		{"definition", `[a]: https://evil.example`, channels.Plain, `[a]: https://evil.example`},
		{"everyone", `@everyone and @here`, channels.Discord, "@\u200deveryone and @\u200dhere"},
		{"everyone, escaped", `@&#101;veryone @\everyone`, channels.Discord, "@\u200deveryone @\\everyone"},
		{"everyone, through a dropped character", "@\u202eeveryone", channels.Discord, "@\u200deveryone"},
		{"everyone in code", "`@everyone`", channels.Discord, "`@\u200deveryone`"},
		{"role", `<@&12>`, channels.Discord, "\\<\u200d@&12>"},
		{"channel", `<!channel> <!here|x> <@U12>`, channels.Slack, "&lt;\u200d!channel> &lt;\u200d!here|x> &lt;\u200d@U12>"},
		{"channel in code", "```\n<!channel>\n```", channels.Slack, "```\n<\u200d!channel>\n```"},
		{"no mention elsewhere", `@everyone`, channels.Telegram, `@everyone`},
		{"controls", "a\x00b\x1b[31mc\x07\u0085d", channels.Telegram, "a\ufffdb\ufffd[31mc\ufffd\ufffdd"},
		{"carriage returns", "a\r\nb\rc\r\n\r\n```\r\nd\r\n\r\ne\r\n```\r\n", channels.Telegram, "a\nb c\n\n<pre>d\n\ne</pre>"},
		{"bidi override", "a\u202eb\u2066c", channels.Telegram, "abc"},
		{"bidi override in code", "`a\u202eb`", channels.Telegram, "<code>ab</code>"},
		{"invalid", "a\xff\xfeb", channels.Telegram, "a\ufffd\ufffdb"},
		{"language", "```go\"><b>\nx\n```", channels.Telegram, "<pre>x</pre>"},
		{"fence in code", "````\n```\nx\n````", channels.Discord, "```\n``\u200d`\nx\n```"},
		{"line break by entity", "a&#10;&#35; b", channels.Markdown, "a # b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := render(c.md, c.d); got != c.want {
				t.Errorf("%q in %s\ngot  %q\nwant %q", c.md, c.d, got, c.want)
			}
		})
	}
}

func TestUnfinishedMarkdownIsClosed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ md, telegram, discord string }{
		{"```go\nfunc", `<pre><code class="language-go">func</code></pre>`, "```go\nfunc\n```"},
		{"a **b", "a **b", `a \*\*b`},
		{"a [b](http", "a [b](http", `a [b\](http`},
		{"> a\n> - `b", "<blockquote>a\n• `b</blockquote>", "> a\n> - \\`b"},
		{"```go", "", ""},
		{"", "", ""},
		{" \n", "", ""},
	} {
		if got := render(c.md, channels.Telegram); got != c.telegram {
			t.Errorf("%q: telegram %q, want %q", c.md, got, c.telegram)
		}
		if got := render(c.md, channels.Discord); got != c.discord {
			t.Errorf("%q: discord %q, want %q", c.md, got, c.discord)
		}
		if spans := Cut(c.md, channels.Traits{MaxUnits: 100}); (len(spans) == 0) != (c.telegram == "") {
			t.Errorf("%q: cut %v", c.md, spans)
		}
	}
}

// parts renders all parts of md.
func parts(md string, tr channels.Traits) []string {
	var out []string
	for _, s := range Cut(md, tr) {
		text, _ := Render(md, s, tr.Dialect)
		out = append(out, text)
	}
	return out
}

func TestCutsFallWhereAReaderWouldCut(t *testing.T) {
	t.Parallel()
	p := func(n int) string { return strings.Repeat("word ", n/5-1) + "end." }
	for _, c := range []struct {
		name string
		md   string
		max  int
		want []string
	}{
		{"between blocks", p(60) + "\n\n" + p(60) + "\n\n" + p(60), 130, []string{p(60) + "\n\n" + p(60), p(60)}},
		{"a heading goes with its text", p(60) + "\n\n# H\n\n" + p(60), 70, []string{p(60), "# H\n\n" + p(60)}},
		{"between items", "- " + p(40) + "\n- " + p(40) + "\n- " + p(40), 90, []string{"- " + p(40) + "\n- " + p(40), "- " + p(40)}},
		{"after a sentence", "One two three. Four five six. Seven eight.", 30, []string{"One two three. Four five six.", "Seven eight."}},
		{"at a space", "one two three four", 12, []string{"one two", "three four"}},
		{"at a line of code", "```go\naaaa\nbbbb\ncccc\n```", 20, []string{"```go\naaaa\nbbbb\n```", "```go\ncccc\n```"}},
		{"between graphemes", strings.Repeat(family3, 5), 17, []string{family3 + family3, family3 + family3, family3}},
		{"a look is opened again", "**one two three four**", 14, []string{"**one two**", "**three four**"}},
		{"a quote stays one", "> one two three four", 12, []string{"> one two", "> three four"}},
		{"an address stays one", "[x.example](http://x.example) and [x.example](http://x.example)", 24, []string{"<http://x.example> and", "<http://x.example>"}},
		{"a small block is filled up before a large one", "Hi:\n\n" + strings.Repeat("abcd. ", 20), 60, []string{"Hi:\n\n" + strings.TrimSpace(strings.Repeat("abcd. ", 9)), strings.TrimSpace(strings.Repeat("abcd. ", 10)), "abcd."}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := parts(c.md, channels.Traits{Unit: channels.UTF16, MaxUnits: c.max, Dialect: channels.Discord})
			if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n---\n"), strings.Join(c.want, "\n---\n"))
			}
		})
	}
}

func TestGraphemesStayWhole(t *testing.T) {
	t.Parallel()
	md := strings.Repeat(family3+"e\u0301🇩🇪", 400)
	for most := 100; most < 116; most++ {
		got := 0
		for _, s := range Cut(md, channels.Traits{Unit: channels.UTF16, MaxUnits: most, Dialect: channels.WhatsApp}) {
			got += uniseg.GraphemeClusterCount(md[s.From:s.To])
		}
		if got != 1200 {
			t.Errorf("at %d units 1200 graphemes became %d", most, got)
		}
	}
}

func TestATableThatWouldLoseTextIsShownAsItStands(t *testing.T) {
	t.Parallel()
	for _, md := range []string{"| a |\n|---|\n| b | c |", "| a |\n|---|\n| b \\|"} {
		if got := render(md, channels.Plain); letters(got) != letters(md) || !strings.Contains(got, "|---|") {
			t.Errorf("%q became %q", md, got)
		}
	}
}

// A million quotes in a line are a tree a million deep for the parser: without the bound this ends the process.
func TestT15_DeepNestingIsShownLiterally(t *testing.T) {
	t.Parallel()
	for _, mark := range []string{">", "> ", "- ", "1. ", "* > "} {
		md := strings.Repeat(mark, maxParse/len(mark)-1) + "a"
		if n := len(Parse(md).leaves[0].frames); n > 0 {
			t.Errorf("%q: %d frames", mark, n)
		}
	}
	nine := strings.Repeat("> ", 9) + "a"
	if got := render(nine, channels.Plain); got != strings.Repeat("> ", maxFrames)+"a" {
		t.Errorf("nine quotes became %q", got)
	}
}

func TestOneCharacterLongerThanTheLimitStillMakesProgress(t *testing.T) {
	t.Parallel()
	md := "e" + strings.Repeat("\u0301", 5000)
	checkAll(t, md, channels.Traits{Unit: channels.UTF16, MaxUnits: 1500, Dialect: channels.Discord}, true)
	checkAll(t, "[ab](https://x.example/"+strings.Repeat("y", 500)+")", channels.Traits{Unit: channels.UTF16, MaxUnits: 10, Dialect: channels.Discord}, false)
}

func TestCutGoesOnWhereAStreamEnded(t *testing.T) {
	t.Parallel()
	tr := channels.Traits{Unit: channels.UTF16, MaxUnits: 60, Dialect: channels.Discord}
	md := strings.Repeat("One two three four five. ", 10)
	all := Cut(md, tr)
	rest := CutFrom(md, all[1].From, tr)
	if fmt.Sprint(rest) != fmt.Sprint(all[1:]) {
		t.Errorf("after %v: %v, want %v", all[0], rest, all[1:])
	}
	if got := CutFrom(md, len(md), tr); got != nil {
		t.Errorf("at the end: %v", got)
	}
}

func TestSettledIsTheBeginOfTheLastBlock(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		md   string
		want int
	}{
		{"", 0}, {"one", 0}, {"one\n\ntwo", 5}, {"one\n\n- a\n- b", 5}, {"one\n\n```\ncode\n\nmore", 5},
	} {
		if got := Settled(c.md); got != c.want {
			t.Errorf("%q: %d, want %d", c.md, got, c.want)
		}
	}
}

// Hostile text must cost about as much as honest text of its size; without the guard much of this takes
// hundreds of times as long. Three tries, since the machine may be busy with something else.
func TestT15_HostileMarkdownCostsNoTime(t *testing.T) {
	tr := traits(channels.Telegram)
	cost := func(md string) time.Duration {
		begin := time.Now()
		doc := Parse(md)
		for _, s := range doc.CutFrom(0, tr) {
			doc.Render(s, tr.Dialect)
		}
		return time.Since(begin)
	}
	const size = 50_000
	honest := cost(long(size))
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	for name, md := range map[string]string{
		"quotes":           fill(">"),
		"spaced quotes":    fill("> "),
		"10,000 quotes":    strings.Repeat(">", 10_000) + "a",
		"quote lines":      fill(strings.Repeat(">", 90) + "a\n"),
		"bullets":          fill("- "),
		"numbers":          fill("1. "),
		"mixed containers": fill("> - 1. "),
		"growing lists": func() string {
			var b strings.Builder
			for i := 0; b.Len() < size; i++ {
				b.WriteString(strings.Repeat("  ", i) + "- a\n")
			}
			return b.String()
		}(),
		"brackets":           fill("["),
		"10,000 brackets":    strings.Repeat("[", 10_000),
		"closed brackets":    strings.Repeat("[", size/2) + strings.Repeat("]", size/2),
		"images":             fill("!["),
		"link begins":        fill("[a]("),
		"link parens":        fill("[a](((((("),
		"link angles":        fill("[a](<b"),
		"nested links":       strings.Repeat("[", size/5) + "a" + strings.Repeat("](b)", size/5),
		"stars":              fill("*"),
		"open stars":         fill("*a "),
		"stars and scores":   fill("*a_ "),
		"nested stars":       strings.Repeat("*a **a ", size/14) + strings.Repeat("b** b*", size/14),
		"heading brackets":   "# " + fill("["),
		"listed headings":    fill("- # " + strings.Repeat("*a_ ", 500) + "\n"),
		"backticks":          fill("`a``b"),
		"wide table":         strings.Repeat("|a", size/8) + "\n" + strings.Repeat("|-", size/8) + "\n" + strings.Repeat("|\n", size/4),
		"long table":         "|a|b|\n|-|-|\n" + fill("|\n"),
		"cells":              strings.Repeat("|a", 30) + "\n" + strings.Repeat("|-", 30) + "\n" + fill(strings.Repeat("|[a](http://x.y)", 30)+"\n"),
		"delimiter rows":     fill("a|\n:-\n"),
		"www":                fill("(www."),
		"mails":              fill("a@b.c "),
		"addresses":          fill("http://a.b/( "),
		"one word":           fill("a"),
		"one line of code":   "```\n" + fill("a"),
		"short lines":        fill("a\n"),
		"empty lines":        fill("\n"),
		"invisible":          fill("\u200b"),
		"overrides":          fill("\u202e"),
		"combining":          "e" + fill("\u0301"),
		"entities":           fill("&amp;"),
		"escapes":            fill(`\*`),
		"links":              fill("[a](http://x.example) "),
		"looks":              fill("**a** *b* "),
		"invisible tail":     "a" + fill("\u200b"),
		"invisible middle":   "a" + fill("\u200d") + "b" + fill("\u3164") + "c",
		"wide blanks":        "a" + fill("\u3000") + "b",
		"blanks":             "a" + fill(" ") + "b" + fill("\n") + "c",
		"blank code":         "```\na" + fill("\n") + "b" + fill(" ") + "c\n" + fill(" ") + "d\n" + fill("\u200b") + "e\n```",
		"nul":                fill("\x00"),
		"target":             "[a](http://x.example/" + fill("y") + ")",
		"file":               "![a](data:image/png;base64," + fill("y") + ")",
		"fence of backticks": "```\n" + fill("`") + " a\n```",
	} {
		t.Run(name, func(t *testing.T) {
			checkAll(t, md, tr, true)
			took := cost(md)
			for range 2 {
				if took > 50*honest {
					took = cost(md)
				}
			}
			if took > 50*honest {
				t.Errorf("took %v, an honest text %v", took, honest)
			}
			t.Logf("%.1f times an honest text", float64(took)/float64(honest))
		})
	}
}

// What a list shows of a message is its words: no mark is left, and none is half taken away.
func TestLine(t *testing.T) {
	t.Parallel()
	for md, want := range map[string]string{
		"# Title\n\nA **bold** [link](http://x.y) \\*esc\\* `code` &amp; more": "Title A bold link (http://x.y) *esc* code & more",
		"| Column 1 | Column 2 |\n|---|---|\n| a | b |\n":                      "Column 1 Column 2 a b",
		"Here: **bold** <b>bold</b> <script>alert(1)</script>":                 "Here: bold <b>bold</b> <script>alert(1)</script>",
		"- [x] one\n- two\n\n> quote\n\n---\n":                                 "one two quote ———",
		"```go\nfunc x()\n```\nafter ~~gone~~ ![alt](http://p/q.png)":          "func x() after gone alt (http://p/q.png)",
		"an unclosed **mark and `code":                                         "an unclosed **mark and `code",
		"":                                                                     "", "\n\n": "",
	} {
		if got := Line(md); got != want {
			t.Errorf("Line(%q) = %q, want %q", md, got, want)
		}
	}
}
