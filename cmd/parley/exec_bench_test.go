//go:build linux

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"parley/tools/sandbox"
	folderguard "parley/workspace/folder"
)

// BenchmarkExec is how long a command that does nothing takes, from Run to its return, where this whole program is what is
// started again for it; each round is two hundred of them. Cold: nothing is kept ready. Warm: there was time since the command
// before it, as between two steps of an agent. Hurried: one right behind the other. Folder: warm, with an owner's
// folder that holds two repositories and 1,000 files. The target of the median is 10 ms.
func BenchmarkExec(b *testing.B) {
	for _, way := range []struct {
		name        string
		keep, pause time.Duration
		folder      bool
	}{{"Cold", -1, 0, false}, {"Warm", 0, 50 * time.Millisecond, false}, {"Hurried", 0, 0, false}, {"Folder", 0, 50 * time.Millisecond, true}} {
		b.Run(way.name, func(b *testing.B) {
			s := sandbox.New(sandbox.Config{Backend: "ns", Keep: way.keep}, sandbox.Deps{})
			defer s.Close()
			if r := s.Probe(b.Context()); r.Tier != sandbox.TierNS {
				b.Skip(r)
			}
			c := sandbox.Command{Argv: []string{"/bin/true"}, Work: b.TempDir()}
			if way.folder {
				w := folderguard.New(folderguard.Options{Dir: b.TempDir()})
				defer w.Close()
				c.Folders = []sandbox.Mount{ownersFolder(b, w)}
			}
			var took []time.Duration
			for b.Loop() {
				for range 200 {
					began := time.Now()
					out, err := s.Run(b.Context(), c)
					if err != nil || out.Code != 0 {
						b.Fatal(out, err)
					}
					took = append(took, time.Since(began))
					if way.pause > 0 {
						<-time.After(way.pause)
					}
				}
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
		})
	}
}

// ownersFolder makes a folder as owners have them.
func ownersFolder(b *testing.B, w *folderguard.Warden) sandbox.Mount {
	b.Helper()
	dir := b.TempDir()
	for i := range 1000 {
		name := filepath.Join(dir, "src", strconv.Itoa(i/50), strconv.Itoa(i))
		if i < 2 {
			name = filepath.Join(dir, "repo", strconv.Itoa(i), ".git", "config")
		}
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	g, err := w.Guard(dir)
	if err != nil {
		b.Fatal(err)
	}
	return sandbox.Mount{Host: dir, As: "proj", RW: true, Guard: g}
}
