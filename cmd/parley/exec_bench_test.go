//go:build linux

package main

import (
	"slices"
	"testing"
	"time"

	"parley/tools/sandbox"
)

// BenchmarkExec is how long a command that does nothing takes, from Run to its return, where this whole program is what is
// started again for it; each round is two hundred of them. Cold: nothing is kept ready. Warm: there was time since the command
// before it, as between two steps of an agent. Hurried: one right behind the other. The target of the median is 10 ms.
func BenchmarkExec(b *testing.B) {
	for _, way := range []struct {
		name        string
		keep, pause time.Duration
	}{{"Cold", -1, 0}, {"Warm", 0, 50 * time.Millisecond}, {"Hurried", 0, 0}} {
		b.Run(way.name, func(b *testing.B) {
			s := sandbox.New(sandbox.Config{Backend: "ns", Keep: way.keep}, sandbox.Deps{})
			defer s.Close()
			if r := s.Probe(b.Context()); r.Tier != sandbox.TierNS {
				b.Skip(r)
			}
			c := sandbox.Command{Argv: []string{"/bin/true"}, Work: b.TempDir()}
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
