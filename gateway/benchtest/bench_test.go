// Package benchtest holds the numbers: one benchmark that prints the gateway's figures beside those of a bare echo bot on
// the same SDK, and beside their targets. `make bench` runs it. Nothing here is a test: what is slow is not wrong.
//
// It builds both programs, and plays Telegram and the model in its own process, which shares the processors with what it
// measures: figures of two runs, or of two machines, cannot be compared, only the columns of one table.
package benchtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/channels/discord/discordtest"
	"parley/channels/slack/slacktest"
)

// BenchmarkTable takes about nine minutes for five rounds. PARLEY_BENCH_ROUNDS sets how many, PARLEY_BENCH_ROWS which rows by
// a part of their scene's name, PARLEY_BENCH_DIR where the data is kept: it must be a disk. With PARLEY_BENCH_BASE, see findBase,
// it takes about 28 minutes, and ends with a table that compares this gateway with another.
func BenchmarkTable(b *testing.B) {
	r := newBench(b)
	for _, s := range scenes {
		if only := os.Getenv("PARLEY_BENCH_ROWS"); only != "" && !strings.Contains(s.name, only) {
			continue
		}
		s.run(r)
	}
	r.print()
}

// bench is one run of the benchmark.
type bench struct {
	b      *testing.B
	rounds int
	root   string // of all data folders
	bin    binaries
	n      int                             // data folders made so far
	seen   map[string]*[subjects][]float64 // by figure
	lost   map[string]int64
}

// scenes are measured one after the other, each in rounds that alternate between the subjects.
var scenes = []struct {
	name string
	run  func(*bench)
}{
	{"small", (*bench).small},
	{"chats1", func(r *bench) { r.loads("chats1", 1, 0, 500*time.Millisecond, 6*time.Second) }},
	{"chats100", func(r *bench) { r.loads("chats100", 100, 0, time.Second, 8*time.Second) }},
	{"chats1000", func(r *bench) { r.loads("chats1000", 1000, 0, 2*time.Second, 6*time.Second) }},
	{"slow30", func(r *bench) { r.loads("slow30", 30, time.Second, 1500*time.Millisecond, 4*time.Second) }},
	{"line", func(r *bench) { r.inProcess("gateway", "^BenchmarkLine$", "3s") }},
	{"exec", (*bench).execs},
	{"pages", (*bench).pages},
	{"kill", (*bench).kills},
	{"burn", (*bench).burn},
	{"failing", (*bench).failing},
	{"fill", (*bench).fill},
	{"memory", (*bench).memory},
	{"networks", (*bench).networks},
	{"overload", (*bench).overload},
}

func newBench(b *testing.B) *bench {
	b.Helper()
	r := &bench{b: b, rounds: 5, seen: map[string]*[subjects][]float64{}, lost: map[string]int64{}}
	if n, err := strconv.Atoi(os.Getenv("PARLEY_BENCH_ROUNDS")); err == nil && n > 0 {
		r.rounds = n
	}
	root, err := os.MkdirTemp(os.Getenv("PARLEY_BENCH_DIR"), "parley-bench-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(root) }) // only data of this run
	r.root, r.bin = root, build(b, root)
	r.fsync()
	return r
}

// dir is a fresh data folder.
func (r *bench) dir() string {
	r.n++
	dir := filepath.Join(r.root, fmt.Sprint(r.n))
	if err := os.Mkdir(dir, 0o700); err != nil {
		r.b.Fatal(err)
	}
	return dir
}

func (r *bench) note(figure string, who int, value float64) {
	if r.seen[figure] == nil {
		r.seen[figure] = &[subjects][]float64{}
	}
	r.seen[figure][who] = append(r.seen[figure][who], value)
}

func (r *bench) say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// loads is a closed loop of n chats, for each subject in turn.
func (r *bench) loads(scene string, n int, latency, warm, window time.Duration) {
	for round := range r.rounds {
		for _, who := range r.order(round) {
			l := r.load(who, n, latency, warm, window)
			r.note(scene+" rate", who, l.rate)
			r.note(scene+" p50", who, l.p50)
			r.note(scene+" p99", who, l.p99)
			r.note(scene+" cpu", who, l.cpu)
			r.note(scene+" disk", who, l.disk)
			r.note(scene+" calls", who, l.calls)
			r.note(scene+" peak", who, l.peak)
			r.lost[scene+" "+names[who]] += l.lost
			r.say("%s, round %d, %s: %.0f/s, p50 %.2f, p99 %.2f ms, CPU %.3f ms", scene, round+1, names[who], l.rate, l.p50, l.p99, l.cpu)
		}
	}
}

func (r *bench) load(who, n int, latency, warm, window time.Duration) load {
	w := newWorld(n, latency)
	defer w.close()
	w.watchPolls(r.b.Context())
	p := r.bin.start(r.b, who, w, r.dir())
	defer p.kill()
	p.ready(w)
	return drive(r.b, w, p, warm, window)
}

// small is what needs no load: the time to be ready, the time of help, the size of the binary, the disk.
func (r *bench) small() {
	var dirs [subjects]string
	for i := range 11 {
		for _, who := range r.order(i) {
			if i == 0 {
				dirs[who] = r.dir()
			}
			w := newWorld(1, 0)
			w.watchPolls(r.b.Context())
			p := r.bin.start(r.b, who, w, dirs[who])
			took := millis(p.ready(w))
			p.kill()
			w.close()
			if i == 0 {
				r.note("first ready", who, took)
			} else {
				r.note("ready", who, took)
			}
		}
	}
	for _, who := range append(r.gateways(0), echo) {
		info, err := os.Stat(r.bin.path(who))
		if err != nil {
			r.b.Fatal(err)
		}
		r.note("binary", who, float64(info.Size())/1e6)
	}
	for i := range 10 {
		for _, who := range r.gateways(i) {
			ctx, cancel := context.WithTimeout(r.b.Context(), 5*time.Second)
			cmd := exec.CommandContext(ctx, r.bin.path(who), "help")
			cmd.Env = []string{"HOME=" + r.root}
			began := time.Now()
			if err := cmd.Run(); err == nil {
				r.note("help", who, millis(time.Since(began)))
			}
			cancel()
		}
	}
}

// fsync measures the disk with what a small commit writes.
func (r *bench) fsync() {
	f, err := os.Create(filepath.Join(r.root, "fsync"))
	if err != nil {
		r.b.Fatal(err)
	}
	defer f.Close()
	page := make([]byte, 8192)
	for range 200 {
		began := time.Now()
		if _, err := f.Write(page); err != nil {
			r.b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			r.b.Fatal(err)
		}
		r.note("fsync", parley, millis(time.Since(began)))
	}
}

// kills ends the gateway ten times while 20 chats write, and waits for the next answer to anybody.
func (r *bench) kills() {
	for round := range r.plays() {
		for _, who := range r.gateways(round) {
			r.killed(who, 10)
		}
	}
}

func (r *bench) killed(who, times int) {
	w := newWorld(20, 0)
	defer w.close()
	ctx, cancel := context.WithCancel(r.b.Context())
	answered := make(chan time.Time, 1)
	var armed atomic.Bool
	seen := func() {
		if armed.CompareAndSwap(true, false) {
			answered <- time.Now()
		}
	}
	w.sent.Store(&seen)
	dir := r.dir()
	w.watchPolls(ctx)
	p := r.bin.start(r.b, who, w, dir)
	defer func() { p.kill() }()
	p.ready(w)
	done := make(chan struct{})
	for _, c := range w.chats {
		go func() {
			for n := 0; ctx.Err() == nil; n++ {
				w.say(ctx, c, fmt.Sprint("ping ", n))
			}
			done <- struct{}{}
		}()
	}
	for range times {
		pause(r.b, 500*time.Millisecond)
		began := time.Now()
		p.kill()
		armed.Store(true)
		p = r.bin.start(r.b, who, w, dir)
		select {
		case at := <-answered:
			r.note("kill", who, millis(at.Sub(began)))
		case <-time.After(30 * time.Second):
			r.b.Fatalf("no answer after a kill; the log ends: %s", p.tail())
		}
	}
	cancel()
	for range w.chats {
		<-done
	}
	r.lost["kill "+names[who]] += w.lost.Load()
	r.say("%d kills, %s: median %.1f ms", times, names[who], median(r.seen["kill"][who]))
}

// settle is how long a process idles before its memory is read.
const settle = 30 * time.Second

// memory reads the resident set after idling, and again after 1,000 people have written at once. The subjects idle together.
func (r *bench) memory() {
	for round := range r.plays() {
		r.resident(r.order(round))
	}
}

func (r *bench) resident(list []int) {
	var w [subjects]*world
	var p [subjects]*process
	for _, who := range list {
		w[who] = newWorld(1000, 0)
		defer w[who].close()
		w[who].watchPolls(r.b.Context())
		p[who] = r.bin.start(r.b, who, w[who], r.dir())
		defer p[who].kill()
		p[who].ready(w[who])
	}
	pause(r.b, settle)
	for _, who := range list {
		r.note("idle", who, p[who].used().rss)
		w[who].burst(r.b)
		r.note("burst peak", who, p[who].used().peak)
	}
	pause(r.b, settle)
	for _, who := range list {
		r.note("after 1000", who, p[who].used().rss)
	}
}

// networks reads the resident set after idling with every network in the configuration: Telegram, Slack and Discord are
// connected, WebChat listens, and WhatsApp waits for a phone, since only a test's own build can be led to a server of its own.
func (r *bench) networks() {
	for round := range r.plays() {
		for _, who := range r.gateways(round) {
			r.allNetworks(who)
		}
	}
}

func (r *bench) allNetworks(who int) {
	w := newWorld(1, 0)
	defer w.close()
	sl, dc := slacktest.Start(r.b, slacktest.Options{}), discordtest.Start(r.b, discordtest.Options{})
	w.watchPolls(r.b.Context())
	w.channels = fmt.Sprintf(`, {name: work, type: slack, bot_token: "%s", app_token: "%s", api_url: "%s"}, {name: dc, type: discord, token: "%s", api_url: "%s"}, {name: wa, type: whatsapp}`,
		sl.Team(0).Token, sl.App().Token, sl.APIURL(), dc.Token(), dc.URL())
	p := r.bin.start(r.b, who, w, r.dir())
	defer p.kill()
	p.ready(w)
	pause(r.b, settle)
	if n := sl.View().Sockets(); n != 1 {
		r.b.Errorf("Slack has %d connections\n%s", n, p.tail())
	}
	r.note("idle all", who, p.used().rss)
}

// burst has every chat write once, all at once, and waits for all answers.
func (w *world) burst(b *testing.B) {
	b.Helper()
	done := make(chan bool)
	for _, c := range w.chats {
		go func() {
			_, ok := w.say(b.Context(), c, "hello")
			done <- ok
		}()
	}
	for range w.chats {
		if !<-done {
			b.Error("an answer was lost")
		}
	}
}

// overload writes ten times as much as was answered at 1,000 chats, for five seconds, and watches the peak for fifteen.
func (r *bench) overload() {
	for round := range r.plays() {
		for _, who := range r.gateways(round) {
			r.overloaded(who)
		}
	}
}

func (r *bench) overloaded(who int) {
	rate := 3000.0
	if got := r.seen["chats1000 rate"]; got != nil {
		rate = median(got[parley])
	}
	w := newWorld(1000, 0)
	defer w.close()
	w.watchPolls(r.b.Context())
	p := r.bin.start(r.b, who, w, r.dir())
	defer p.kill()
	p.ready(w)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for n := range 500 {
		<-tick.C
		for i := range int(rate / 10) { // a hundredth of a second at ten times the rate
			c := w.chats[(n*int(rate/10)+i)%len(w.chats)]
			w.write(c, fmt.Sprint("flood ", n))
		}
	}
	pause(r.b, 10*time.Second)
	r.note("overload", who, p.used().peak)
}

func median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	if n := len(sorted); n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[len(sorted)/2]
}
