package storetest

import (
	"fmt"
	"testing"

	"parley/workspace"
	"parley/workspace/store"
)

// BenchmarkThousandSessions lists 1,000 sessions of 40 lines each: "heads" is what a list costs before its page is
// read, "page" what 50 sessions of it cost in addition, "search" a text that is nowhere.
func BenchmarkThousandSessions(b *testing.B) {
	s := SQLite(b).Open(b, func(o *store.Options) { o.Synchronous = "OFF" })
	for i := range 1000 {
		c := NewChat(i)
		a := accept(b, s, c.Begun(s, fmt.Sprintf("m:%d:1", i), "a question that somebody asked"))
		f := Answer(a.Begun.Run, "an answer of some length, as answers are", a.Input)
		for len(f.Entries) < 37 {
			f.Entries = append(f.Entries, workspace.Entry{RunID: a.Begun.Run.ID, Role: workspace.RoleAssistant,
				Body: workspace.EntryBody{Content: []workspace.Content{{Kind: workspace.Text, Text: "more words of an answer"}}}})
		}
		finish(b, s, f)
	}
	heads, err := s.Heads()
	if err != nil || len(heads) != 1000 {
		b.Fatal(len(heads), err)
	}
	b.Run("heads", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Heads(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("page", func(b *testing.B) {
		for b.Loop() {
			for _, h := range heads[:50] {
				if _, _, err := s.Glimpse(h.ID); err != nil {
					b.Fatal(err)
				}
				if _, _, err := s.SessionUsage(h.ID, 0); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("search", func(b *testing.B) {
		for b.Loop() {
			for _, h := range heads {
				if found, err := s.Mentions(h.ID, h.Last, "nowhere"); err != nil || found {
					b.Fatal(found, err)
				}
			}
		}
	})
}
