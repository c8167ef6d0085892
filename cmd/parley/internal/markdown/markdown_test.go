package markdown

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"
)

const answer = `# The *nightly* build

It failed **twice**, once ~~by accident~~ on purpose: [the log](https://ci.example/run/12?a=1&b=2), ` + "`rm -rf ./tmp`" + ` and <https://ci.example/help>.
A second line.

- [x] done
- [ ] open
  1. one
  2. two \*not\* &amp; &lt;b&gt;

     a paragraph

> quoted **text**
> - with a list

| Name | Count |
|:-----|------:|
| apples | 12 |
| **Äpfel** und 日本 | 1 |

` + "```sh\n" + `curl -fsSL https://get.example/install.sh --output /tmp/a/very/long/path/install.sh && sh /tmp/a/very/long/path/install.sh
	indented
` + "```\n" + `
---
The end.
`

const drawn = `The nightly build

It failed twice, once by accident on
purpose: the log
(https://ci.example/run/12?a=1&b=2),
rm -rf ./tmp and
https://ci.example/help.
A second line.

☑ done
☐ open
  1. one
  2. two *not* & <b>

     a paragraph

│ quoted text
│ • with a list

 Name           │ Count
────────────────┼───────
 apples         │    12
 Äpfel und 日本 │     1

curl -fsSL https://get.example/install.sh --output /tmp/a/very/long/path/install.sh && sh /tmp/a/very/long/path/install.sh
	indented

────────────────────────────────────────

The end.`

func strip(rows []string) string {
	for i := range rows {
		rows[i] = strings.TrimRight(ansi.Strip(rows[i]), " ")
	}
	return strings.TrimRight(strings.Join(rows, "\n"), "\n")
}

func whole(md string, o Options) string {
	rows, _ := draw(md, o)
	return strip(rows)
}

func TestMarkdownIsDrawn(t *testing.T) {
	t.Parallel()
	if got := whole(answer, Options{Width: 40}); got != drawn {
		t.Errorf("got\n%s", got)
	}
}

func TestLooksAreStyles(t *testing.T) {
	t.Parallel()
	for md, want := range map[string][2]string{
		"a **bold** *it* ~~no~~ `x y`": {"a \x1b[1mbold\x1b[0m \x1b[3mit\x1b[0m \x1b[9mno\x1b[0m \x1b[36mx y\x1b[0m", "a **bold** *it* ~~no~~ `x y`"},
		"## Head":                      {"\x1b[1mHead\x1b[0m", "## Head"},
		"***both***":                   {"\x1b[1;3mboth\x1b[0m", "***both***"},
	} {
		for i, o := range []Options{{}, {Plain: true}} {
			if rows, _ := draw(md, o); strings.Join(rows, "|") != want[i] {
				t.Errorf("%q: %q, want %q", md, rows, want[i])
			}
		}
	}
}

// Nothing in an answer moves the cursor, turns text around, hides in code, or leads where its text does not say.
func TestHostileMarkdownIsHarmless(t *testing.T) {
	t.Parallel()
	for md, want := range map[string]string{
		"&#x1b;[2J &#27;]0;x&#7; &#x202e;abc":             "␛[2J ␛]0;x␇ \ufffdabc",
		"\x1b[2J\u202eabc":                                "␛[2J\ufffdabc",
		"`rm\u200b -rf`":                                  "rm⟦U+200B⟧ -rf",
		"```\necho\u00a0\x1b[2J\u202e\n```":               "echo⟦U+00A0⟧␛[2J⟦U+202E⟧",
		"[bank.example](https://evil.example)":            "bank.example (https://evil.example)",
		"[https://evil.example](<https://evil.example>)":  "https://evil.example",
		"![](https://x.example/\u202ep.png)":              "https://x.example/\ufffdp.png",
		"<script>x</script> <b>":                          "<script>x</script> <b>",
		"[a]: https://hidden.example\n\n[a]":              "[a]: https://hidden.example\n\n[a]",
		"|a|\n|-|\n|&#x1b;[2J|":                           " a\n──────\n ␛[2J",
		strings.Repeat("> ", 150) + "deep":                strings.Repeat("> ", 150) + "deep",
		"[x](https://a.example/\"&#10;&#x1b;[2J)":         "x (https://a.example/\" ␛[2J)",
		"```\n" + strings.Repeat("x", 60) + " y\n```":     strings.Repeat("x", 60) + " y",
		strings.Repeat("日", 30):                           strings.Repeat("日", 20) + "\n" + strings.Repeat("日", 10),
		"see `a command that is longer than a row is` so": "see\na command that is longer than a row is\nso",
	} {
		if got := whole(md, Options{Width: 40}); got != want {
			t.Errorf("%q: %q, want %q", md, got, want)
		}
	}
}

// However an answer comes in pieces, the same rows go up the screen, each once.
func TestPiecesMakeTheSameRows(t *testing.T) {
	t.Parallel()
	parts := []string{"# Head\n", "text **bold** ", "`code`", "\n", "\n\n", "- item\n", "  - inner\n", "1. one\n", "> quote\n", "```sh\n", "```\n", "rm -rf x\n",
		"|a|b|\n|-|-|\n", "|1|2|\n", "\n---\n", "*", "    indented\n", "日本", "[l](https://x.example)", "- [x] t\n"}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 20).Draw(t, "parts"), "")
		o := Options{Width: rapid.IntRange(10, 50).Draw(t, "width")}
		s := Stream{Options: o}
		var rows []string
		for rest := []rune(text); len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			rows = append(rows, s.Add(string(rest[:n]))...)
			rest = rest[n:]
		}
		rows = append(rows, s.Reset()...)
		one := Stream{Options: o}
		if got, want := strip(rows), strip(append(one.Add(text), one.Reset()...)); got != want {
			t.Fatalf("%q:\n%s\nwant\n%s", text, got, want)
		}
	})
}

// A break within code, such as somebody else's message, leaves it code.
func TestCodeGoesOnAfterABreak(t *testing.T) {
	t.Parallel()
	var s Stream
	rows := append(s.Add("Do:\n\n```sh\nmake **a**\n"), s.End()...)
	rows = append(rows, s.Add("make **b**\n```\nand **so** on\n")...)
	if got, want := strip(append(rows, s.Reset()...)), "Do:\n\nmake **a**\nmake **b**\n\nand so on"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func FuzzDraw(f *testing.F) {
	f.Add(answer, 40)
	f.Add("|a|\n|-|\n", 3)
	f.Fuzz(func(t *testing.T, md string, width int) {
		rows, settled := draw(md, Options{Width: width & 0xff})
		if settled > len(rows) {
			t.Fatalf("%d of %d rows are settled", settled, len(rows))
		}
		for _, row := range rows {
			if bare := ansi.Strip(row); strings.ContainsAny(bare, "\x1b\u202e\u2066\u009b\r\n") {
				t.Fatalf("%q", row)
			}
		}
	})
}
