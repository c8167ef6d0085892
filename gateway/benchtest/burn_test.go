package benchtest

import (
	"context"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"parley/tools/sandbox"
)

// TestMain lets this program be its own sandbox.
func TestMain(m *testing.M) {
	sandbox.Init()
	os.Exit(m.Run())
}

// burn is threat E36: what people wait for an answer, first by themselves, then while hostile commands, as many as may run at
// once, spin with four processes on each core. The commands are in sandboxes as the gateway makes them, with the default limits.
func (r *bench) burn() {
	s := sandbox.New(sandbox.Config{Backend: "ns"}, sandbox.Deps{})
	defer s.Close()
	if report := s.Probe(r.b.Context()); report.Tier != sandbox.TierNS {
		r.say("no sandbox, nothing burns: %s", report)
		return
	}
	load := func(who int) load { return r.load(who, 20, 20*time.Millisecond, 500*time.Millisecond, 3*time.Second) }
	for round := range r.rounds {
		for _, who := range r.gateways(round) {
			quiet := load(who)
			ctx, stop := context.WithCancel(r.b.Context())
			var burning sync.WaitGroup
			for range 2 * runtime.NumCPU() {
				work := r.dir()
				burning.Go(func() {
					out, err := s.Run(ctx, sandbox.Command{Line: "for i in 1 2 3 4; do while :; do :; done & done; wait", Work: work})
					if err != nil || out.Killed != "stopped" {
						r.b.Errorf("what was to burn ended: %+v %v", out, err)
					}
				})
			}
			busy := load(who)
			stop()
			burning.Wait()
			r.note("burn quiet", who, quiet.p95)
			r.note("burn busy", who, busy.p95)
			r.note("burn ratio", who, busy.p95/quiet.p95)
			r.lost["burn "+names[who]] += busy.lost
			r.say("burn, round %d, %s: p95 %.1f ms alone, %.1f ms beside", round+1, names[who], quiet.p95, busy.p95)
		}
	}
}

// fill is threat E34: what a command that fills its work folder with many files leaves there, where 100 MiB are allowed.
func (r *bench) fill() {
	s := sandbox.New(sandbox.Config{Backend: "ns"}, sandbox.Deps{})
	defer s.Close()
	if report := s.Probe(r.b.Context()); report.Tier != sandbox.TierNS {
		r.say("no sandbox, nothing is filled: %s", report)
		return
	}
	for range 3 * r.rounds {
		work := r.dir()
		out, err := s.Run(r.b.Context(), sandbox.Command{Line: "i=0; while head -c 4194304 /dev/zero >f$i; do i=$((i+1)); done", Work: work, Limits: sandbox.Limits{Disk: 100 << 20}})
		if err != nil || out.Killed != "disk" {
			r.b.Errorf("what was to fill the folder ended: %+v %v", out, err)
		}
		var stays int64
		files, err := os.ReadDir(work)
		for _, f := range files {
			if info, ierr := f.Info(); ierr == nil {
				stays += info.Size()
			}
		}
		if err != nil {
			r.b.Error(err)
		}
		r.note("fill", parley, float64(stays)/(1<<20))
		if err := os.RemoveAll(work); err != nil {
			r.b.Error(err)
		}
	}
}
