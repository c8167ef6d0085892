package store_test

import (
	"testing"
	"time"

	"parley/workspace/store"
)

// BenchmarkOpen prints the time of a usual start, and of the first one.
func BenchmarkOpen(b *testing.B) {
	open := func(b *testing.B, dir string) {
		s, err := store.Open(b.Context(), store.Options{Dir: dir, Now: time.Now})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			open(b, b.TempDir())
		}
	})
	b.Run("again", func(b *testing.B) {
		dir := b.TempDir()
		open(b, dir)
		b.ResetTimer()
		for b.Loop() {
			open(b, dir)
		}
	})
}
