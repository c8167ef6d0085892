//go:build !race

package crashtest

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/agentloop/llm/llmtest"
	"parley/channels/telegram/telegramtest"
)

// messagesPerKill is how much is said between two kills: one message of each chat, on average.
const messagesPerKill = 20

// luckless is how many further kills a run may take that has met nothing: they prove something only when they meet work.
const luckless = 40

// killedAtRandom kills the daemon while twenty people talk to it, at work and while it starts.
func killedAtRandom(t *testing.T, r row) {
	kills, rng := killsWanted(t, r.few), dice(t)
	w := newWorld(t, telegramtest.Options{})
	w.prog = realProgram(t, w.config())
	w.people()
	for i := 0; i < kills || !w.met() && i < kills+luckless; i++ {
		w.boot("", 0)
		at := "any moment of work"
		within := 60 * time.Millisecond
		if rng.IntN(4) == 0 { // while it starts and takes up what was left
			at, within = "any moment of the start", within/2
		} else {
			w.progress(messagesPerKill * 3 / 4)
		}
		w.killWithin(within, rng)
		w.died(at)
	}
	w.boot("", 0)
	w.progress(int64(kills*messagesPerKill) - w.answered.Load())
	w.settle()
	w.report(r)
}

// mustPass are units that every life of a loaded daemon commits; the test finds further ones by itself.
func mustPass() []string {
	return []string{"accept", "step", "finish", "receipt", "outbound", "move part", "command", "begin", "resume", "boot", "clean"}
}

// fewPoints is what is tried where there is no time for all.
func fewPoints() []string {
	return []string{"getUpdates ready", "getUpdates confirms", "commit accept", "committed accept", "model delta", "model asked with results",
		"committed step", "commit finish", "committed finish", "answer taken", "placeholder taken", "last edit taken", "commit receipt", "committed boot"}
}

// killedAtEveryPoint kills the daemon at each point that it passes: around every commit, and at every call to its network
// and its model.
func killedAtEveryPoint(t *testing.T, r row) {
	kills, rng := killsWanted(t, r.few), dice(t)
	w := newWorld(t, telegramtest.Options{})
	w.prog = testProgram(t, w.config())
	w.people()
	points := append(wirePoints(), w.learnPoints()...)
	for _, unit := range mustPass() {
		if !slices.Contains(points, "commit "+unit) || !slices.Contains(points, "committed "+unit) {
			t.Errorf("no daemon of this test commits the unit %q", unit)
		}
	}
	if kills == 0 {
		points = fewPoints()
	}
	for i := range max(kills, len(points)) {
		w.killAt(points[i%len(points)], rng)
	}
	w.boot("", 0)
	w.settle()
	w.report(r)
}

// learnPoints runs two lives, one that is killed and one that ends, and returns the store's points that they passed.
func (w *world) learnPoints() []string {
	w.t.Helper()
	list := filepath.Join(w.dir, "points")
	w.boot("", 0, childPoints+"="+list)
	w.progress(3 * messagesPerKill)
	w.d.kill()
	w.died("any moment of work")
	w.boot("", 0, childPoints+"="+list)
	w.progress(3 * messagesPerKill)
	w.end()
	text, err := os.ReadFile(list)
	if err != nil {
		w.t.Fatal(err)
	}
	points := strings.Split(strings.TrimSpace(string(text)), "\n")
	slices.Sort(points)
	return slices.Compact(points)
}

// killAt runs a life that ends at the point. What only a shutdown passes is reached by one.
func (w *world) killAt(point string, rng *rand.Rand) {
	w.t.Helper()
	nth := 1
	for _, often := range []string{"accept", "step", "finish", "receipt", "getUpdates", "answer", "model asked"} {
		if strings.Contains(point, often) {
			nth = 1 + rng.IntN(8)
		}
	}
	if onWire := slices.Contains(wirePoints(), point); onWire && point != "getMe arrived" {
		w.boot("", 0)
		w.progress(messagesPerKill / 2) // at work, and not only taking up what was left
		w.arm(point, nth)
		for range 6 { // what only a slow answer passes may need some luck
			if !w.d.gone() {
				w.progress(2 * messagesPerKill)
			}
		}
	} else {
		w.boot(point, nth)
		w.progress(4 * messagesPerKill)
	}
	if !w.d.gone() {
		w.d.term()
	}
	limit := time.NewTimer(35 * time.Second)
	defer limit.Stop()
	select {
	case <-w.d.exited:
	case <-limit.C:
		w.t.Fatalf("the daemon neither dies at %q nor ends", point)
	}
	if w.d.code >= 0 {
		_, unit, _ := strings.Cut(point, " ")
		if slices.Contains(mustPass(), unit) || slices.Contains(wirePoints(), point) {
			w.t.Errorf("point %q was not passed %d times by the end of a life", point, nth)
		}
		return
	}
	w.died(point)
}

// drained ends the daemon under load, once, and then twice in a row: the first signal drains, the second kills.
func drained(t *testing.T, r row) {
	w := newWorld(t, telegramtest.Options{})
	w.prog = realProgram(t, w.config())
	w.people()
	for range max(r.few, killsWanted(t, r.few)/10) {
		w.boot("", 0)
		w.progress(messagesPerKill)
		took := w.end()
		t.Logf("ended %v after SIGTERM, under load", took.Round(time.Millisecond))
		w.none("parts in doubt after a shutdown", `SELECT COUNT(*) FROM parts WHERE state IN ('sending', 'unknown')`)
		w.none("shutdowns that were not clean", `SELECT COUNT(*) FROM settings WHERE name = 'clean' AND value <> 'yes'`)
	}
	w.wire.script.Store(&llmtest.Reply{HangBefore: true})
	if full() { // it takes what a shutdown may take
		w.boot("", 0)
		<-w.wire.hung
		if took := w.end(); took > 30*time.Second {
			t.Errorf("the end took %v with a model that does not answer, the limit is 30 s", took)
		} else {
			t.Logf("ended %v after SIGTERM, with a model that does not answer", took.Round(time.Millisecond))
		}
	}
	w.boot("", 0)
	<-w.wire.hung
	w.d.term()
	w.died("a second SIGTERM")
	w.signalled(2 * time.Second)
	w.wire.script.Store(nil)
	w.boot("", 0)
	w.settle()
	if unknown := w.judged(r); unknown > r.mayRepeat() {
		t.Errorf("%d parts were in doubt; only the second signal may leave any", unknown)
	}
}

// signalled sends a second SIGTERM once the first was seen, and wants the end at once.
func (w *world) signalled(within time.Duration) {
	w.t.Helper()
	began := time.Now()
	for again := time.NewTicker(50 * time.Millisecond); ; { // the first may still be on its way
		select {
		case <-again.C:
			w.d.term()
			if time.Since(began) > within {
				again.Stop()
				w.t.Fatalf("the daemon lives %v after a second SIGTERM", within)
			}
		case <-w.d.exited:
			again.Stop()
			w.t.Logf("ended %v after the first signal, by the second", time.Since(began).Round(time.Millisecond))
			return
		}
	}
}

// redelivered gives every third update again, or twice, and kills nothing.
func redelivered(t *testing.T, r row) {
	messages := int64(r.few)
	if full() {
		messages *= 10
	}
	w := newWorld(t, telegramtest.Options{})
	w.prog = realProgram(t, w.config())
	w.wire.tg.Redeliver(telegramtest.Redelivery{Again: 0.3, Twice: 0.05})
	w.people()
	w.boot("", 0)
	w.progress(messages)
	w.settle()
	again := w.wire.again.Load()
	if again < messages/4 {
		t.Errorf("%d of %d updates were delivered again, want 30 of 100", again, messages)
	}
	v := w.judge(w.audit())
	t.Logf("messages %d, delivered again %d, answered twice %d, lost %d", v.messages, again, v.twice, v.lost)
	if v.twice+v.marked+v.lost+v.givenUp > 0 {
		t.Errorf("answered twice %d, marked %d, lost %d, given up %d; all must be 0", v.twice, v.marked, v.lost, v.givenUp)
	}
}
