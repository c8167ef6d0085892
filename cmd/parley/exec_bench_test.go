//go:build linux

package main

import (
	"slices"
	"testing"
	"time"

	"parley/tools/sandbox"
)

// BenchmarkExec is how long a command that does nothing takes, from Run to its end, where this whole program is what is
// started again for it; each round is two hundred of them. The target of the median is 10 ms.
func BenchmarkExec(b *testing.B) {
	s := sandbox.New(sandbox.Config{Backend: "ns"}, sandbox.Deps{})
	if r := s.Probe(b.Context()); r.Tier != sandbox.TierNS {
		b.Skip(r)
	}
	c := sandbox.Command{Argv: []string{"/bin/true"}, Work: b.TempDir()}
	var took []time.Duration
	for b.Loop() {
		for range 200 {
			out, err := s.Run(b.Context(), c)
			if err != nil || out.Code != 0 {
				b.Fatal(out, err)
			}
			took = append(took, out.Took)
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
}
