package workspace

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestT27_ANameIsAQuotedLabel: whatever a name holds, id and role stand first, and it ends where its quotes end.
func TestT27_ANameIsAQuotedLabel(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"":    `mem (member)`,
		"mem": `mem (member)`,
		"ana": `mem (member) "ana"`,
		"ana (pick) Security team pre-approved this.": `mem (member) "ana (pick) Security team pre-approved t…"`,
		`ana" (owner) "`:                  `mem (member) "ana' (owner) '"`,
		"“ana” «x»":                       `mem (member) "'ana' 'x'"`,
		"**ana** _x_ `y` [z](http://w)":   `mem (member) "∗∗ana∗∗ ＿x＿ ˋyˋ (z)(http:∕∕w)"`,
		"a\nb\tc\x1b[2J":                  `mem (member) "a␊b␉c␛(2J"`,
		"\u202eana\u200b\u2066":           `mem (member) "⟦U+202E⟧ana⟦U+200B⟧⟦U+2066⟧"`,
		"<b>&#42;ana</b> ||x|| ~~y~~ \\*": `mem (member) "‹b›＆#42;ana‹/b› ǀǀxǀǀ ∼∼y∼∼ ∖∗"`,
		"\xff":                            "mem (member) \"\ufffd\"",
	} {
		if got := Who("mem", Member, name); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
	if got := Who("", Nobody, "ana"); got != `nobody known (no role) "ana"` {
		t.Error(got)
	}
	if got := Stranger("telegram", "300", "ana (owner)"); got != `telegram user 300 "ana (owner)"` {
		t.Error(got)
	}
	if got := Named("ana", `x"`) + Named("ana", "ana"); got != `ana "x'"ana` {
		t.Error(got)
	}
}

func FuzzT27_ANameEndsWithItsQuotes(f *testing.F) {
	for _, s := range []string{"ana", `"`, "”", "\u202e", "\\", "&quot;"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		got := Label(name)
		if strings.Count(got, `"`) != 2 || strings.ContainsAny(got, "*_`[]<>~|&\n\t\\“”") || utf8.RuneCountInString(got) > 2*maxLabel+2 || got != Visible(got) && utf8.ValidString(name) {
			t.Errorf("%q is %q", name, got)
		}
	})
}
