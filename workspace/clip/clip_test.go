package clip

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rivo/uniseg"
	"pgregory.net/rapid"
)

func TestTextIsCutBetweenCharacters(t *testing.T) {
	t.Parallel()
	const family, flag, e = "👩‍👩‍👧‍👦", "🇦🇹", "e\u0301"
	for _, c := range []struct {
		text string
		n    int
		want string
	}{
		{"", 0, ""}, {"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"abc", 0, ""}, {"abc", -1, ""}, {"ééé", 3, "ééé"}, {"éééé", 3, "éé…"},
		{"a" + family + "b", 5, "a…"}, {"a" + family + "bc", 9, "a" + family + "…"}, {flag + flag + flag, 4, flag + "…"},
		{e + e + e, 4, e + "…"}, {"a\r\nb", 3, "a…"},
	} {
		if got := Runes(c.text, c.n); got != c.want {
			t.Errorf("Runes(%q, %d) = %q, want %q", c.text, c.n, got, c.want)
		}
	}
	for _, c := range []struct {
		text string
		n    int
		want string
	}{
		{"abc", 2, "ab"}, {"abc", 0, ""}, {"abc", -3, ""}, {"é", 1, ""}, {"aé", 2, "a"}, {"€€", 5, "€"}, {"a" + family, 20, "a"}, {flag + flag, 12, flag},
		{strings.Repeat("x", 1000) + family, 1010, strings.Repeat("x", 1000)},
		{"a" + strings.Repeat("\u0301", 4000), 5001, "a" + strings.Repeat("\u0301", 2500)}, // no character that anybody writes
		{"ab\xff\xff\xff\xff\xff\xff\xff", 5, "ab\xff\xff\xff"},
	} {
		if got := Bytes(c.text, c.n); got != c.want {
			t.Errorf("Bytes(%q, %d) = %q, want %q", c.text, c.n, got, c.want)
		}
	}
}

func TestWhatIsCutIsABeginningThatFits(t *testing.T) {
	t.Parallel()
	piece := rapid.SampledFrom([]string{"a", " ", "é", "e\u0301", "漢", "👍🏽", "👩‍👩‍👧‍👦", "🇦🇹", "\r\n", "\n", "ก็", "한"})
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOfN(piece, 0, 200).Draw(t, "text"), "")
		n := rapid.IntRange(0, 400).Draw(t, "n")
		b, r := Bytes(s, n), Runes(s, n)
		if len(b) > n || utf8.RuneCountInString(r) > n || !utf8.ValidString(b) || !utf8.ValidString(r) {
			t.Fatalf("%q %q in %d of %q", b, r, n, s)
		}
		for _, cut := range []string{b, strings.TrimSuffix(r, "…")} {
			if !strings.HasPrefix(s, cut) {
				t.Fatalf("%q is not a beginning of %q", cut, s)
			}
			if whole := uniseg.GraphemeClusterCount(cut) + uniseg.GraphemeClusterCount(s[len(cut):]); whole != uniseg.GraphemeClusterCount(s) && !strings.Contains(s, "🇦🇹") {
				t.Fatalf("%q cuts a character of %q", cut, s)
			}
		}
	})
}

func FuzzCut(f *testing.F) {
	f.Add("a👩‍👩‍👧‍👦b\xff", 5)
	f.Add("", -27)
	f.Fuzz(func(t *testing.T, s string, n int) {
		n = min(n, 1<<20)
		if b := Bytes(s, n); len(b) > max(n, 0) || !strings.HasPrefix(s, b) {
			t.Errorf("Bytes(%q, %d) = %q", s, n, b)
		}
		if r := Runes(s, n); utf8.RuneCountInString(r) > max(n, 0) {
			t.Errorf("Runes(%q, %d) = %q", s, n, r)
		}
	})
}
