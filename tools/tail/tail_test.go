package tail

import (
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/workspace"
)

const secret = "hunter2-correct-horse-battery"

func freed(secrets ...string) Free {
	hide := workspace.NewRedactor(secrets...)
	return Free{Text: func(s string) string { return workspace.Visible(hide.Redact(s)) }, Hide: hide}
}

// followed shows what comes into a tail while do writes to it, in a bubble of its own time.
func followed(t *testing.T, do func(*Tail), show func(View)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		tail := New()
		stop := tail.Watch(t.Context(), slog.New(slog.DiscardHandler), freed(secret), func(_ context.Context, v View) { show(v) })
		defer stop()
		do(tail)
	})
}

// pass lets time pass in a bubble.
func pass(d time.Duration) { <-time.After(d) }

func TestTheEndIsShownAFewTimesASecond(t *testing.T) {
	t.Parallel()
	var seen []View
	var at []time.Time
	followed(t, func(tail *Tail) {
		for i := range 1000 { // two seconds and a bit
			fmt.Fprintf(tail, "line %d\n", i)
			pass(2*time.Millisecond + time.Microsecond)
		}
		pass(Every)
		pass(time.Minute) // nothing comes, nothing is shown
	}, func(v View) { seen, at = append(seen, v), append(at, time.Now()) })
	if len(seen) < 6 || len(seen) > 8 {
		t.Fatalf("shown %d times", len(seen))
	}
	for i := range at[1:] {
		if at[i+1].Sub(at[i]) < Every {
			t.Errorf("shown again after %s", at[i+1].Sub(at[i]))
		}
	}
	last := seen[len(seen)-1]
	if last.Lines != 1000 || !strings.HasSuffix(last.Text, "\nline 999\n") || strings.Count(last.Text, "\n") != Lines {
		t.Errorf("the end is %+v", last)
	}
}

func TestAQuickCommandShowsNothing(t *testing.T) {
	t.Parallel()
	followed(t, func(tail *Tail) {
		_, _ = tail.Write([]byte("done\n"))
		pass(Every / 2)
	}, func(v View) { t.Errorf("shown: %+v", v) })
}

// Who does not take what is shown holds nobody up, and gets the newest when they go on.
func TestASlowReaderNeverHoldsTheWriterUp(t *testing.T) {
	t.Parallel()
	var release chan struct{}
	var seen []View
	followed(t, func(tail *Tail) {
		release = make(chan struct{}) // in the bubble
		_, _ = tail.Write([]byte("first\n"))
		pass(2 * Every)
		began := time.Now()
		for range 1000 {
			_, _ = tail.Write([]byte(strings.Repeat("x", 10_000) + "\n"))
		}
		_, _ = tail.Write([]byte("newest\n"))
		if took := time.Since(began); took != 0 {
			t.Errorf("it waited %s", took)
		}
		if n := cap(tail.buf); n > 8*window {
			t.Errorf("%d bytes are kept", n)
		}
		close(release)
		pass(2 * Every)
	}, func(v View) { seen = append(seen, v); <-release })
	if len(seen) != 2 || seen[0].Text != "first\n" || seen[1].Lines != 1002 || !strings.HasSuffix(seen[1].Text, "newest\n") {
		t.Errorf("seen %d times", len(seen))
	}
}

// However a secret is cut, by pieces, by lines or by the beginning of what is kept, no half of it is shown.
func TestNoHalfOfASecretIsShown(t *testing.T) {
	t.Parallel()
	wrapped := base64.StdEncoding.EncodeToString([]byte("user:" + secret))
	wrapped = wrapped[:20] + "\n" + wrapped[20:] + "\n"
	for name, text := range map[string]string{"plain": "token " + secret + " end\n", "wrapped": "data:\n" + wrapped + "end\n"} {
		f := freed(secret)
		tail := New()
		for i := range text {
			_, _ = tail.Write([]byte{text[i]})
			raw, cut, _ := tail.end()
			got := f.last(raw, cut)
			for _, half := range []string{secret[:3], secret[10:], wrapped[8:16], wrapped[22:36]} {
				if strings.Contains(got, half) {
					t.Fatalf("%s, after %d bytes: %q", name, i, got)
				}
			}
		}
		if raw, _, _ := tail.end(); !strings.Contains(f.last(raw, false), workspace.Masked) || !strings.HasSuffix(f.last(raw, false), "end\n") {
			t.Errorf("%s: %q", name, f.last(raw, false))
		}
	}
	f := freed(secret)
	for shift := 0; shift < 2*len(secret); shift += 11 { // the beginning of what is kept moves over secrets alone, which get shorter by being hidden
		tail := New()
		_, _ = tail.Write([]byte(strings.Repeat("x", shift) + strings.Repeat(secret+"\n", 3*window/len(secret))))
		raw, cut, _ := tail.end()
		got := f.last(raw, cut)
		left := strings.Trim(strings.ReplaceAll(got, workspace.Masked, ""), "\n")
		if !cut || left != "" || !strings.Contains(got, workspace.Masked) {
			t.Fatalf("moved by %d: %q", shift, got)
		}
	}
	for shift := 0; shift < 2*len(wrapped); shift += 7 { // and over one that is broken into lines, with next to nothing to be seen behind it
		raw := strings.Repeat("f", before-2*len(wrapped)+shift) + "\n" + wrapped + strings.Repeat("x\r", before/2) + "\nend\n"
		if got := f.last(raw, true); !strings.HasSuffix(got, "\nend\n") || strings.Contains(got, wrapped[22:36]) {
			t.Fatalf("moved by %d: %q", shift, got)
		}
	}
	long := New()
	_, _ = long.Write([]byte(strings.Repeat("x", before-4) + secret + strings.Repeat("y", before+10)))
	if raw, cut, _ := long.end(); !cut || f.last(raw, cut) != "" {
		t.Errorf("of a line without an end: %q", f.last(raw, cut))
	}
}

func TestTheEndIsShownAsATerminalDoes(t *testing.T) {
	t.Parallel()
	f := freed()
	for raw, want := range map[string]string{
		"":                               "",
		"one\r\ntwo\r\n":                 "one\ntwo\n",
		" 10%\r 50%\r100%\nnext":         "100%\nnext",
		" 10%\r 50%\r":                   " 50%",
		"a\x1b[2J\u202eb\n":              "a␛[2J⟦U+202E⟧b\n",
		"caf\xc3":                        "caf",
		"\x7fELF\x00\x01":                notText,
		strings.Repeat("z", Bytes+9):     strings.Repeat("z", Bytes),
		strings.Repeat("é\n", Lines+9):   strings.Repeat("é\n", Lines),
		strings.Repeat("é", Bytes) + "x": strings.Repeat("é", Bytes/2-1) + "x",
	} {
		if got := f.last(raw, false); got != want {
			t.Errorf("%.40q: %.80q, want %.80q", raw, got, want)
		}
	}
	var none *Tail
	if n, err := none.Write([]byte("x")); n != 1 || err != nil {
		t.Error(n, err)
	}
}
