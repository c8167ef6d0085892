package workspace_test

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/workspace"
)

func secrets() *rapid.Generator[string] { return rapid.StringMatching(`[ -~]{6,60}`) }

// T12, E52: whatever surrounds a secret, and in whichever usual form it is written, nothing of it stays.
func TestE52_ASecretIsFoundInItsUsualForms(t *testing.T) {
	t.Parallel()
	carry := map[string]func(string) string{
		"plain": func(s string) string { return s }, "query": url.QueryEscape, "path": url.PathEscape, "html": html.EscapeString,
		"hex": func(s string) string { return hex.EncodeToString([]byte(s)) },
		"HEX": func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) },
		"quot": func(s string) string {
			return strings.ReplaceAll(strings.ReplaceAll(html.EscapeString(s), "&#34;", "&quot;"), "&#39;", "&#x27;")
		},
		"php": func(s string) string {
			b, _ := json.Marshal(s)
			return strings.ReplaceAll(strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(b[1:len(b)-1])), "/", `\/`)
		},
		"json": func(s string) string { b, _ := json.Marshal(s); return string(b[1 : len(b)-1]) },
	}
	rapid.Check(t, func(rt *rapid.T) {
		secret := secrets().Draw(rt, "secret")
		before, after := rapid.StringMatching(`[a-z ]{0,20}`).Draw(rt, "before"), rapid.StringMatching(`[a-z ]{0,20}`).Draw(rt, "after")
		r := workspace.NewRedactor("another-secret-0", secret)
		for name, form := range carry {
			got := r.Redact(before + form(secret) + after)
			if !strings.Contains(got, workspace.Masked) || strings.Contains(got, form(secret)) && !strings.Contains(before+workspace.Masked+after, form(secret)) {
				rt.Fatalf("%s: %q shows %q", name, got, form(secret))
			}
		}
		if got := r.JSON([]byte(`{"a":"` + carry["json"](secret) + `"}`)); !json.Valid(got) {
			rt.Fatalf("not JSON any more: %s", got)
		}
	})
}

func TestE52_ASecretInsideBase64IsFound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		secret := rapid.StringMatching(`[ -~]{12,60}`).Draw(rt, "secret")
		around := rapid.SliceOf(rapid.Byte()).Draw(rt, "before")
		whole := append(append([]byte{}, around...), secret+"tail"...)
		r := workspace.NewRedactor(secret)
		for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
			got := r.Redact(enc.EncodeToString(whole))
			if !strings.Contains(got, workspace.Masked) {
				rt.Fatalf("%q in base64 stays: %q", secret, got)
			}
		}
	})
}

// base64, xxd -p and fold break what they print into lines.
func TestE52_ASecretInLinesIsFound(t *testing.T) {
	t.Parallel()
	lines := func(s, end string, width int) string {
		var b strings.Builder
		for len(s) > width {
			b.WriteString(s[:width] + end)
			s = s[width:]
		}
		return b.String() + s + end
	}
	rapid.Check(t, func(rt *rapid.T) {
		secret := rapid.StringMatching(`[A-Za-z0-9_-]{16,60}`).Draw(rt, "secret")
		around := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(rt, "before")
		width := rapid.SampledFrom([]int{10, 60, 64, 76}).Draw(rt, "width")
		end := rapid.SampledFrom([]string{"\n", "\r\n", "\n  "}).Draw(rt, "end")
		whole := string(around) + secret + "tail"
		r := workspace.NewRedactor(secret)
		for name, text := range map[string]string{"base64": base64.StdEncoding.EncodeToString([]byte(whole)), "hex": hex.EncodeToString([]byte(whole)), "plain": secret} {
			text = lines(text, end, width)
			got := r.Redact("# file\n" + text)
			if !strings.Contains(got, workspace.Masked) {
				rt.Fatalf("%s: %q stays", name, got)
			}
			if !strings.HasPrefix(got, "# file\n") {
				rt.Fatalf("%s: the rest is gone: %q", name, got)
			}
			w := r.Watch()
			for i := 0; i < len(text); i += 7 {
				w.Write([]byte(text[i:min(i+7, len(text))]))
			}
			if end != "\n  " && !w.Found {
				rt.Fatalf("%s: a file with it is sent: %q", name, text)
			}
		}
	})
	list := "workspace\nagentloop\ngateway-2\nfour\n"
	if got := workspace.NewRedactor("agentloopgateway-3").Redact(list); got != list {
		t.Errorf("an innocent list became %q", got)
	}
}

// A secret that an answer carries in pieces is shown in none of them, and nothing else is lost.
func TestE52_AStreamNeverShowsASecretInPieces(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		secret := rapid.StringMatching(`[a-c]{6,12}`).Draw(rt, "secret") // few letters: many false beginnings
		text := rapid.StringMatching(`[a-c ]{0,40}`).Draw(rt, "before") + secret + rapid.StringMatching(`[a-c ]{0,40}`).Draw(rt, "after")
		r := workspace.NewRedactor(secret, "cabbage")
		s := r.Stream()
		shown := ""
		for rest := text; rest != ""; {
			k := rapid.IntRange(1, len(rest)).Draw(rt, "piece")
			shown += s.Next(rest[:k])
			rest = rest[k:]
			if strings.Contains(strings.ReplaceAll(shown, workspace.Masked, "\x00"), secret) {
				rt.Fatalf("%q shows %q", shown, secret)
			}
		}
		if shown += s.End(); shown != r.Redact(text) {
			rt.Fatalf("in pieces %q, at once %q", shown, r.Redact(text))
		}
	})
}

func TestE52_ACutStreamKeepsHalfASecretBack(t *testing.T) {
	t.Parallel()
	r := workspace.NewRedactor("sk-0123456789")
	for text, want := range map[string]string{"some words": "some words", "key sk-0": "key sk-0", "key sk-01234567": "key [secret]", "key sk-0123456789 s": "key [secret] s"} {
		s := r.Stream()
		if got := s.Next(text) + s.Cut(); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestE52_AFileIsSearchedInPieces(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		secret := rapid.StringMatching(`[a-z0-9]{8,40}`).Draw(rt, "secret")
		before := rapid.SliceOf(rapid.Byte()).Draw(rt, "before")
		r := workspace.NewRedactor(secret, "another-secret")
		clean, dirty := r.Watch(), r.Watch()
		for _, b := range before {
			_, _ = clean.Write([]byte{b}) // never fails
		}
		for rest := append(before, secret+"x"...); len(rest) > 0; {
			k := rapid.IntRange(1, len(rest)).Draw(rt, "piece")
			_, _ = dirty.Write(rest[:k]) // never fails
			rest = rest[k:]
		}
		if clean.Found || !dirty.Found {
			rt.Fatalf("clean %v, dirty %v", clean.Found, dirty.Found)
		}
	})
}

func TestTextWithoutSecretsStays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		list := rapid.SliceOfN(secrets(), 0, 5).Draw(rt, "secrets")
		text := rapid.String().Draw(rt, "text")
		r := workspace.NewRedactor(list...)
		if got := r.Redact(text); got != text && strings.Contains(got, workspace.Masked) == false {
			rt.Fatalf("%q became %q", text, got)
		}
		if string(r.JSON([]byte(text))) != r.Redact(text) {
			rt.Fatal("JSON and text differ")
		}
	})
	var none *workspace.Redactor
	if none.Redact("x") != "x" || string(none.JSON([]byte("x"))) != "x" || none.Stream().Next("x") != "x" {
		t.Error("no redactor changes text")
	}
	if got := workspace.NewRedactor("a", "", "12345").Redact("a 12345"); got != "a 12345" {
		t.Errorf("short words are hidden: %q", got)
	}
}

func TestASecretOfManyLinesIsFoundByLine(t *testing.T) {
	t.Parallel()
	key := "-----BEGIN KEY-----\nMIIEpAIBAAKCAQEA7s0x9q4k\nkkkkkkkkkkkkkkkkkkkkkkkkkk\n-----END KEY-----\n"
	r := workspace.NewRedactor(key)
	if got := r.Redact("it says MIIEpAIBAAKCAQEA7s0x9q4k there"); got != "it says [secret] there" {
		t.Error(got)
	}
	if got := r.Redact(key); strings.Contains(got, "MII") {
		t.Error(got)
	}
}

func BenchmarkRedact(b *testing.B) {
	r := workspace.NewRedactor("sk-ant-api03-0123456789abcdefghijklmnopqrstuvwxyz", "123456789:AAH0123456789abcdefghijklmnopqrstuv", "xoxb-0123456789-abcdefghijkl",
		"0f1e2d3c4b5a69788796a5b4c3d2e1f0")
	for name, text := range map[string]string{"100B": strings.Repeat("plain words ", 9), "4KiB": strings.Repeat("plain words ", 341)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r.Redact(text)
			}
		})
		b.Run("stream/"+name, func(b *testing.B) { // one piece of an answer
			s := r.Stream()
			for b.Loop() {
				s.Next(text)
			}
		})
	}
}

// TestE52_ADisguisedSecretIsFound: escaped character by character, in another case, or with something in between that nobody
// sees or that Markdown takes away.
func TestE52_ADisguisedSecretIsFound(t *testing.T) {
	t.Parallel()
	each := func(format string) func(string) string {
		return func(s string) string {
			var b strings.Builder
			for _, c := range []byte(s) {
				fmt.Fprintf(&b, format, c)
			}
			return b.String()
		}
	}
	between := func(what string) func(string) string {
		return func(s string) string { return strings.Join(strings.Split(s, ""), what) }
	}
	twice := func(one, two *base64.Encoding) func(string) string {
		return func(s string) string { return two.EncodeToString([]byte(one.EncodeToString([]byte("x" + s + "y")))) }
	}
	disguises := map[string]func(string) string{
		"%xx": each("%%%02x"), "%XX": each("%%%02X"), `\u00xx`: each(`\u%04x`), `\U00XX`: each(`\u%04X`), `\xnn`: each(`\x%02x`), "&#n;": each("&#%d;"), "&#xn;": each("&#x%x;"), "&#Xn;": each("&#X%04X;"),
		"capitals": strings.ToUpper, "small": strings.ToLower, "hex with blanks": each("%02x "), "hex with colons": each("%02X:"), "utf-16 in hex": each("%02x00"), "utf-16, big end first": each("00%02X"),
		"base32":       func(s string) string { return base32.StdEncoding.EncodeToString([]byte("ab" + s + "c")) },
		"base64 twice": twice(base64.StdEncoding, base64.StdEncoding), "base64 twice, for URLs": twice(base64.URLEncoding, base64.RawURLEncoding),
		"zero-width space": between("\u200b"), "joiner": between("\u2060"), "soft hyphen": between("\u00ad"), "blanks": between(" "), "lines": between("\n"), "bold": between("**"), "code": between("`"), "emoji joiner": between("\u200d"),
		"full width": func(s string) string {
			return strings.Map(func(r rune) rune { return r + 0xfee0 }, s)
		},
		"mathematical": func(s string) string {
			return strings.Map(func(r rune) rune {
				if r >= 'a' && r <= 'z' {
					return 0x1d41a + r - 'a'
				}
				return r
			}, s)
		},
		"split by Markdown": func(s string) string { return "**" + s[:5] + "**" + s[5:9] + "_" + s[9:] + "_" },
		"mixed": func(s string) string {
			return "%" + fmt.Sprintf("%02x", s[0]) + "\u200b" + strings.ToUpper(s[1:6]) + "**" + s[6:]
		},
	}
	rapid.Check(t, func(rt *rapid.T) {
		secret := "k" + rapid.StringMatching(`[A-Za-z0-9_-]{23,60}`).Filter(func(s string) bool { return strings.Count(s, "_")+strings.Count(s, "-") < 5 }).Draw(rt, "secret")
		before, after := rapid.StringMatching(`[a-z é]{0,20}[.] `).Draw(rt, "before"), rapid.StringMatching(` [.][a-z 日]{0,20}`).Draw(rt, "after")
		r := workspace.NewRedactor("another-secret-0", secret)
		for name, disguise := range disguises {
			text := before + disguise(secret) + after
			got := r.Redact(text)
			if !strings.Contains(got, workspace.Masked) || !strings.HasPrefix(got, before) || !strings.HasSuffix(got, after) {
				rt.Fatalf("%s: %q becomes %q", name, text, got)
			}
		}
	})
}

func FuzzE52_RedactingKeepsTheRest(f *testing.F) {
	for _, s := range []string{"", "%", `\u00`, "&#x;", "&#99999999999;", "\xff\xf0\x9f", "\ufdfa", "㎯%41", "plain & simple &amp; 100%", "sk-0123456789-abcdefghij", "s**k**-0123456789-%61bcdefghij\u200b!"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := workspace.NewRedactor("sk-0123456789-abcdefghij").Redact(text)
		if got != text && !strings.Contains(got, workspace.Masked) {
			t.Errorf("%q becomes %q", text, got)
		}
		if again := workspace.NewRedactor("sk-0123456789-abcdefghij").Redact(got); again != got {
			t.Errorf("%q becomes %q, then %q", text, got, again)
		}
	})
}
