package sandbox

import (
	"slices"
	"testing"
	"time"
)

// BenchmarkStart is how long a command that does nothing takes, from Run to its end; each round is two hundred of them. The
// target of the median is 10 ms.
func BenchmarkStart(b *testing.B) {
	n := newNS(Config{Backend: "ns"}, Deps{})
	if r := n.Probe(b.Context()); r.Tier != TierNS {
		b.Skip(r)
	}
	c := Command{Argv: []string{"/bin/true"}, Work: b.TempDir()}
	var took []time.Duration
	for b.Loop() {
		for range 200 {
			out, err := n.Run(b.Context(), c)
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
