package markup

import (
	"fmt"
	"regexp"
	"strings"

	"unicode"
	"unicode/utf8"

	"parley/channels"
)

var (
	tagShape  = regexp.MustCompile(`^<(/?)(b|i|u|s|a|code|pre|blockquote|tg-spoiler)( [^<>]*)?>`)
	hrefShape = regexp.MustCompile(`^ href="(https?://|mailto:)[^"<>&\s]*(&amp;[^"<>&\s]*)*"$`)
	langShape = regexp.MustCompile(`^ class="language-[A-Za-z0-9+#._-]+"$`)
	entShape  = regexp.MustCompile(`^&(amp|lt|gt|quot);`)
)

// checkTelegram is stricter than the Bot API ("Formatting options"): known tags only, properly nested, none
// empty, no code or pre with or within another look, no quote in a quote, everything else escaped.
func checkTelegram(s string) error {
	var open []string
	within := func(names ...string) bool {
		for _, o := range open {
			for _, n := range names {
				if o == n {
					return true
				}
			}
		}
		return false
	}
	prevOpen := false
	for i := 0; i < len(s); {
		switch s[i] {
		case '<':
			m := tagShape.FindStringSubmatch(s[i:])
			if m == nil {
				return fmt.Errorf("at %d: not a tag: %.40q", i, s[i:])
			}
			name, attr := m[2], m[3]
			if m[1] == "/" {
				if attr != "" || len(open) == 0 || open[len(open)-1] != name {
					return fmt.Errorf("at %d: %s closes %v", i, m[0], open)
				}
				if prevOpen {
					return fmt.Errorf("at %d: empty %s", i, name)
				}
				open = open[:len(open)-1]
				i += len(m[0])
				continue
			}
			if err := checkOpen(name, attr, open, within); err != nil {
				return fmt.Errorf("at %d: %w", i, err)
			}
			open = append(open, name)
			prevOpen = true
			i += len(m[0])
			continue
		case '>':
			return fmt.Errorf("at %d: bare >", i)
		case '&':
			m := entShape.FindString(s[i:])
			if m == "" {
				return fmt.Errorf("at %d: bare &", i)
			}
			i += len(m)
		default:
			i++
		}
		prevOpen = false
	}
	if len(open) > 0 {
		return fmt.Errorf("left open: %v", open)
	}
	return nil
}

func checkOpen(name, attr string, open []string, within func(...string) bool) error {
	langCode := name == "code" && len(open) > 0 && open[len(open)-1] == "pre"
	switch {
	case name == "a" && !hrefShape.MatchString(attr):
		return fmt.Errorf("bad link %q", attr)
	case langCode && !langShape.MatchString(attr):
		return fmt.Errorf("bad class %q", attr)
	case name != "a" && !langCode && attr != "":
		return fmt.Errorf("attribute %q of %s", attr, name)
	case within("code") || within("pre") && !langCode:
		return fmt.Errorf("%s within code", name)
	case (name == "code" || name == "pre") && !langCode && within("b", "i", "u", "s", "a"):
		return fmt.Errorf("%s within %v", name, open)
	case name == "blockquote" && len(open) > 0:
		return fmt.Errorf("quote within %v", open)
	case within(name):
		return fmt.Errorf("%s within itself", name)
	}
	return nil
}

// seenIn is what a reader of Telegram's HTML sees.
func seenIn(html string) string {
	s := regexp.MustCompile(`<[^>]*>`).ReplaceAllString(html, "")
	return strings.NewReplacer("&lt;", "<", "&gt;", ">", "&quot;", `"`, "&amp;", "&").Replace(s)
}

// letters keeps what cannot be markup.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) {
			return r
		}
		return -1
	}, s)
}

var (
	fenceLine = regexp.MustCompile("^(?:[> ]|[-*+] |[0-9]+[.)] )*(`{3,})([^`]*)$")
	slackPing = regexp.MustCompile(`(?i)<@|<!(channel|here|everyone|subteam)|@(channel|here|everyone)`)
	dcPing    = regexp.MustCompile(`(?i)<@|@(here|everyone)`)
)

// checkPart holds what is true of every part of every text.
func checkPart(t failer, text string, d channels.Dialect) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Fatalf("%s: invalid UTF-8 in %q", d, text)
	}
	if !visible(text) {
		t.Fatalf("%s: nothing to see in %q", d, text)
	}
	for _, r := range text {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			t.Fatalf("%s: control character %U in %q", d, r, text)
		}
	}
	switch d {
	case channels.Telegram:
		if err := checkTelegram(text); err != nil {
			t.Fatalf("telegram: %v\n%s", err, text)
		}
	case channels.Slack:
		if m := slackPing.FindString(text); m != "" {
			t.Fatalf("slack: %q in %q", m, text)
		}
	case channels.Discord:
		if m := dcPing.FindString(text); m != "" {
			t.Fatalf("discord: %q in %q", m, text)
		}
	}
	if d == channels.Slack || d == channels.Discord || d == channels.WhatsApp || d == channels.Markdown {
		if open := openFence(text); open != "" {
			t.Fatalf("%s: %s is left open in\n%s", d, open, text)
		}
	}
}

// checkSpans holds what is true of the spans of every text.
func checkSpans(t failer, md string, spans []Span) {
	t.Helper()
	at := 0
	for _, s := range spans {
		if s.From != at || s.To <= s.From {
			t.Fatalf("span %v after %d", s, at)
		}
		if s.From > 0 && utf8.ValidString(md) && !utf8.RuneStart(md[s.From]) {
			t.Fatalf("span %v begins within a character", s)
		}
		at = s.To
	}
	if len(spans) > 0 && at != len(md) {
		t.Fatalf("spans end at %d of %d", at, len(md))
	}
}

func dialects() []channels.Dialect {
	return []channels.Dialect{channels.Plain, channels.Markdown, channels.Telegram, channels.Slack, channels.Discord, channels.WhatsApp}
}

// checkAll cuts and renders md and checks spans, parts, limit and completeness.
func checkAll(t failer, md string, tr channels.Traits, keepsLimit bool) {
	t.Helper()
	doc := Parse(md)
	spans := doc.CutFrom(0, tr)
	checkSpans(t, md, spans)
	var got strings.Builder
	for _, s := range spans {
		text, plain := doc.Render(s, tr.Dialect)
		checkPart(t, text, tr.Dialect)
		checkPart(t, plain, channels.Plain)
		got.WriteString(plain)
		seen := Units(text, tr.Unit)
		if tr.Dialect == channels.Telegram {
			seen = Units(seenIn(text), tr.Unit)
		}
		if keepsLimit && tr.MaxUnits > 0 && tr.Dialect == channels.Telegram && len(text) > 1<<15 {
			t.Fatalf("%d bytes of HTML", len(text))
		}
		if n := max(seen, Units(plain, tr.Unit)); keepsLimit && tr.MaxUnits > 0 && n > tr.MaxUnits {
			t.Fatalf("%s: %d units of %d in %v:\n%s", tr.Dialect, n, tr.MaxUnits, s, text)
		}
	}
	whole, _ := doc.Render(Span{0, len(md)}, channels.Plain)
	if letters(whole) != letters(got.String()) {
		t.Fatalf("%s: the parts do not add up\nwhole %q\nparts %q", tr.Dialect, whole, got.String())
	}
}

// failer is testing.TB and *rapid.T.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// openFence is the fence that is not closed at the end of text.
func openFence(text string) string {
	open := ""
	for _, line := range strings.Split(text, "\n") {
		m := fenceLine.FindStringSubmatch(line)
		switch {
		case m == nil:
		case open == "":
			open = m[1]
		case len(m[1]) >= len(open) && m[2] == "":
			open = ""
		}
	}
	return open
}
