package cli

import (
	"testing"
	"time"
)

// Text of strangers moves no cursor, turns nothing around and hides nothing.
func TestTextOfStrangersIsSafeForATerminal(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"plain\ttext\n日本": "plain\ttext\n日本", "a\x1b[2Jb": "a␛[2Jb", "one\r\ntwo": "one\ntwo", "x\u202ey": "x\ufffdy", "c\u0085d": "c\ufffdd",
		"e\u2028f": "e\ufffdf", "tag\U000E0041": "tag\ufffd",
	} {
		if got := Visible(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestTextIsCutByColumns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text    string
		columns int
		want    string
	}{{"short", 10, "short"}, {"exactly10!", 10, "exactly10!"}, {"longer than that", 6, "longer…"}, {"日本語", 4, "日本…"}, {"one\ntwo", 10, "one …"}, {"a\tb", 5, "a b"}} {
		if got := Cut(c.text, c.columns); got != c.want {
			t.Errorf("%q in %d: %q, want %q", c.text, c.columns, got, c.want)
		}
	}
}

func TestTimesReadWell(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{20 * time.Millisecond: "20 ms", 1200 * time.Millisecond: "1.2 s", 2 * time.Minute: "2m0s"} {
		if got := Length(d); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
	now := time.Now()
	for at, want := range map[time.Time]string{{}: "", now.Add(-90 * time.Second): "1m ago", now.Add(-3*time.Hour - time.Minute): "3h ago", now.Add(-50 * time.Hour): "2d ago"} {
		if got := Ago(at); got != want {
			t.Errorf("%s: %q, want %q", at, got, want)
		}
	}
}

// An answer of a tool is shown without the lines that mark it as data for the model.
func TestResultsAreBare(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"<outside>\na\nb\n</outside>": "a\nb", "<outside>\n</outside>": "", "no mark": "no mark", "<a> b\nc": "<a> b\nc"} {
		if got := Bare(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
