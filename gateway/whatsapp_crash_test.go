//go:build !nowhatsapp

package gateway_test

import (
	"testing"
	"time"
)

// A daemon that is killed at any moment of work, on a network that loses three of ten receipts and offers those messages
// again: the message ids are made of our tokens, so that nothing comes twice.
func TestR01_R03_R05_KilledOnWhatsAppLosesAndRepeatsNothing(t *testing.T) {
	kills, rng := killsWanted(t, 6), dice(t)
	w := newWAWorld(t)
	w.prog = realProgram(t, w.config())
	for range kills {
		w.boot()
		before := len(w.answers())
		for i := range waPeople {
			w.says(i, "")
			w.says(i, " and more")
		}
		w.net.LoseReceipts(waPeople * 2 * 3 / 10)
		if rng.IntN(3) > 0 { // else while it takes up what was left
			w.until("work", 60*time.Second, func() bool { return len(w.answers()) > before+rng.IntN(waPeople) })
		}
		timer := time.NewTimer(time.Duration(rng.IntN(80_000)) * time.Microsecond)
		select {
		case <-timer.C:
		case <-w.d.exited:
			t.Fatal("the daemon ended by itself")
		}
		w.d.kill()
	}
	w.boot()
	w.judge()
}
