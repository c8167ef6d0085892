package markup

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/channels"
)

// sample is Markdown that was made together with what must be seen of it.
type sample struct {
	md    string
	seen  string // letters of the text
	plain string // letters of the text with the targets of its links
}

func (s sample) and(o sample) sample {
	return sample{s.md + o.md, s.seen + o.seen, s.plain + o.plain}
}

func same(s string) sample { return sample{s, letters(s), letters(s)} }

func silent(md string) sample { return sample{md: md} }

// words draws text without any markup character.
func drawWords(t *rapid.T, most int) sample {
	word := rapid.SampledFrom([]string{
		"alpha", "Beta", "gamma.", "delta!", "12", "Ωmega", "שלום", "مرحبا", "日本語。", "héllo", "👩‍👩‍👧", "e\u0301t\u0301", "x", "Wort,",
		strings.Repeat("long", 40), "snake_case", "a<b", "AT&T", "R&amp;D", "5>3", "1.", "#tag", "@everyone", "it's", "C:\\dir",
	})
	n := rapid.IntRange(1, most).Draw(t, "words")
	var out []string
	vis := ""
	for range n {
		w := word.Draw(t, "word")
		out = append(out, w)
		if w == "R&amp;D" {
			w = "RD"
		}
		vis += letters(w)
	}
	// A letter in front keeps the text from beginning a block of another kind.
	md := "T " + strings.Join(out, " ")
	return sample{md, "T" + vis, "T" + vis}
}

func drawInline(t *rapid.T, most int) sample {
	s := drawWords(t, most)
	for range rapid.IntRange(0, 4).Draw(t, "pieces") {
		s.md += " "
		in := drawWords(t, 5)
		switch rapid.IntRange(0, 6).Draw(t, "piece") {
		case 0:
			s = s.and(silent("**")).and(in).and(silent("Z**")).and(sample{"", "Z", "Z"})
		case 1:
			s = s.and(silent("*")).and(in).and(silent("Z*")).and(sample{"", "Z", "Z"})
		case 2:
			s = s.and(silent("~~**")).and(in).and(silent("Z**~~")).and(sample{"", "Z", "Z"})
		case 3:
			s = s.and(silent("`")).and(same("co de<&>*x*")).and(silent("`"))
		case 4:
			s = s.and(silent("[")).and(in).and(sample{"](https://example.com/p_q?r=1&s=2)", "", "httpsexamplecompqrs"})
		case 5:
			s = s.and(same("https://example.org/a_b"))
		case 6:
			s = s.and(silent("[")).and(in).and(same("](javascript:alert)"))
		}
	}
	return s
}

// indentBy puts a prefix before every line but the first.
func indentBy(s sample, prefix string) sample {
	s.md = strings.ReplaceAll(s.md, "\n", "\n"+prefix)
	return s
}

func drawBlock(t *rapid.T, depth int) sample {
	kinds := 6
	if depth > 0 {
		kinds = 9
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "block") {
	case 0:
		return silent(strings.Repeat("#", rapid.IntRange(1, 6).Draw(t, "level")) + " ").and(drawInline(t, 6))
	case 1:
		return drawCode(t)
	case 2:
		return drawTable(t)
	case 3:
		return drawInline(t, 60).and(silent("\n")).and(drawInline(t, 20))
	case 4, 5:
		return drawInline(t, 30)
	case 6:
		return silent("> ").and(indentBy(drawBlocks(t, depth-1), "> "))
	default:
		var s sample
		ordered := rapid.Bool().Draw(t, "ordered")
		for i := range rapid.IntRange(1, 5).Draw(t, "items") {
			marker := "- "
			if ordered {
				marker = fmt.Sprintf("%d. ", i+1)
			}
			if i > 0 {
				s.md += "\n"
			}
			s = s.and(silent(marker)).and(indentBy(drawBlocks(t, depth-1), strings.Repeat(" ", len(marker))))
		}
		return s
	}
}

func drawCode(t *rapid.T) sample {
	var s sample
	lang := rapid.SampledFrom([]string{"", "go", "c++"}).Draw(t, "lang")
	s = silent("````" + lang + "\n")
	for range rapid.IntRange(1, 25).Draw(t, "lines") {
		s = s.and(same(rapid.SampledFrom([]string{
			"func main() {\n", "\tif a < b && c > d {\n", "```\n", "\n", "# no heading\n", "x := \"<!channel>\"\n", strings.Repeat("veryLongLine", 30) + "\n", "日本 語\n",
		}).Draw(t, "line")))
	}
	return s.and(same("end of code\n")).and(silent("````"))
}

func drawTable(t *rapid.T) sample {
	cols := rapid.IntRange(1, 5).Draw(t, "cols")
	s := silent("|")
	row := func() {
		for range cols {
			s = s.and(silent(" ")).and(drawWords(t, 3)).and(silent(" |"))
		}
	}
	row()
	s.md += "\n|" + strings.Repeat("---|", cols)
	for range rapid.IntRange(0, 6).Draw(t, "rows") {
		s.md += "\n|"
		row()
	}
	return s
}

func drawBlocks(t *rapid.T, depth int) sample {
	var s sample
	for i := range rapid.IntRange(1, 4).Draw(t, "blocks") {
		if i > 0 {
			s.md += "\n\n"
		}
		s = s.and(drawBlock(t, depth))
	}
	return s
}

func drawTraits(t *rapid.T, least int) channels.Traits {
	return channels.Traits{
		Dialect:  rapid.SampledFrom(dialects()).Draw(t, "dialect"),
		Unit:     rapid.SampledFrom([]channels.Unit{channels.UTF16, channels.Bytes, channels.Runes}).Draw(t, "unit"),
		MaxUnits: rapid.SampledFrom([]int{least, 2 * least, 1500, 2000, 4096, 0}).Draw(t, "max"),
	}
}

func TestPartsCoverEverythingInOrderWithinTheLimit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := drawBlocks(t, 3)
		tr := drawTraits(t, 300)
		spans := Cut(s.md, tr)
		checkSpans(t, s.md, spans)
		if again := Cut(s.md, tr); !reflect.DeepEqual(spans, again) {
			t.Fatalf("cut twice: %v and %v", spans, again)
		}
		checkAll(t, s.md, tr, true)
		var plain, seen strings.Builder
		for _, span := range spans {
			text, p := Render(s.md, span, tr.Dialect)
			plain.WriteString(p)
			if tr.Dialect == channels.Telegram {
				seen.WriteString(seenIn(text))
			}
			if lookOf(tr.Dialect).family == marked {
				// Read again, alone, the part says the same. Plain text shows the target of a cut link once only.
				back, _ := Render(text, Span{0, len(text)}, channels.Plain)
				if target := "httpsexamplecompqrs"; strings.ReplaceAll(letters(back), target, "") != strings.ReplaceAll(letters(p), target, "") {
					t.Fatalf("%s part\n%s\nreads\n%s\nwant\n%s", tr.Dialect, text, back, p)
				}
			}
		}
		if got := letters(plain.String()); got != s.plain {
			t.Fatalf("of\n%s\nseen\n%s\nwant\n%s", s.md, got, s.plain)
		}
		if got := letters(seen.String()); tr.Dialect == channels.Telegram && got != s.plain {
			t.Fatalf("of\n%s\nseen\n%s\nwant\n%s", s.md, got, s.plain)
		}
	})
}

func TestUnfinishedMarkdownIsValidAtEveryByte(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		md := drawBlocks(t, 2).md
		md = md[:rapid.IntRange(0, len(md)).Draw(t, "until")]
		checkAll(t, md, drawTraits(t, 1500), true)
	})
}

func TestWhatIsSettledStaysAsItIs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		md := drawBlocks(t, 2).md
		some := md[:rapid.IntRange(0, len(md)).Draw(t, "until")]
		if strings.ToValidUTF8(some, "") != some {
			return
		}
		s := Span{0, Settled(some)}
		d := rapid.SampledFrom(dialects()).Draw(t, "dialect")
		before, _ := Render(some, s, d)
		if after, _ := Render(md, s, d); before != after {
			t.Fatalf("up to %d was\n%s\nis\n%s\nof\n%s", s.To, before, after, md)
		}
	})
}

func TestShortTextSkipsTheParserOnlyIfThatChangesNothing(t *testing.T) {
	t.Parallel()
	char := rapid.SampledFrom([]rune("abw.Z09 \n\n,.!?;:/'()-%$+#*_~`<>&@[]|\\\t=wé"))
	rapid.Check(t, func(t *rapid.T) {
		md := rapid.StringOfN(char, 1, 40, -1).Draw(t, "md")
		if !literalIsRendered(md) {
			return
		}
		for _, d := range dialects() {
			if text, plain := Parse(md).Render(Span{0, len(md)}, d); text != md || plain != md {
				t.Fatalf("%s: %q is rendered %q, plain %q", d, md, text, plain)
			}
		}
	})
}
