package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestT01_T02_T03_T04_T20_Browser walks through WebChat with a real Chromium, against the binary as it is built. The walks
// are in channels/webchat/ui/e2e; .ci/browser finds the Chromium. PARLEY_WALK names one walk to do alone.
func TestT01_T02_T03_T04_T20_Browser(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	args := []string{"walk.mjs"}
	if one := os.Getenv("PARLEY_WALK"); one != "" {
		args = append(args, one)
	}
	cmd := b.node(t, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	walked := 0
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var w struct {
			Walk, Error, Note string
			OK                bool
			MS                int
		}
		if err := json.Unmarshal(lines.Bytes(), &w); err != nil {
			t.Errorf("not a walk's line: %s", lines.Bytes())
			continue
		}
		walked++
		t.Run(w.Walk, func(t *testing.T) {
			t.Logf("%d ms. %s", w.MS, w.Note)
			if !w.OK {
				t.Errorf("%s\npictures: %s", w.Error, b.shots)
			}
		})
	}
	if err := cmd.Wait(); err != nil && !t.Failed() {
		t.Error(err)
	}
	if walked == 0 {
		t.Error("nobody walked")
	}
}

// TestShots makes the pictures that somebody has to look at; `make shots` runs it.
func TestShots(t *testing.T) {
	if os.Getenv("PARLEY_SHOOT") == "" {
		t.Skip("PARLEY_SHOOT is not set: run make shots")
	}
	cmd := newBrowser(t).node(t, "shots.mjs")
	cmd.Stdout = os.Stdout
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkWebChat prints the page's figures; `make bench` runs it.
func BenchmarkWebChat(b *testing.B) {
	br := newBrowser(b)
	var busy struct{ First, Stop, Frames []float64 }
	var slow struct{ Cold, Warm, Painted, ColdKB, WarmKB []float64 }
	figures(b, br, "bench.mjs", &busy)
	figures(b, br, "slow.mjs", &slow)
	size, err := pageSize()
	if err != nil {
		b.Fatal(err)
	}
	fmt.Printf("\n%d cores, Chromium, the driver and the model on the same cores.\n\n| WebChat | p50 | p95 | target | |\n| --- | --- | --- | --- | --- |\n", runtime.NumCPU())
	row := func(what, unit string, list []float64, most float64) {
		slices.Sort(list)
		p50, p95 := list[len(list)/2], list[len(list)*95/100]
		verdict := "ok"
		if p95 > most {
			verdict = "MISS"
		}
		fmt.Printf("| %s, %s | %.0f | %.0f | ≤ %.0f | %s |\n", what, unit, p50, p95, most, verdict)
	}
	row("the model's first token to the frame that shows it, 200 pages that each follow a session that streams", "ms", busy.First, 150)
	row("click on stop to the frame that says stopped", "ms", busy.Stop, 300)
	row("a frame while 10,000 entries are scrolled", "ms", busy.Frames, 100)
	row("400 kbit/s and 400 ms, empty cache: until one can write", "ms", slow.Cold, 6000)
	row("the same: until something is seen", "ms", slow.Painted, 3000)
	row("the same: what was sent until one could write", "kB", slow.ColdKB, 180)
	row("400 kbit/s and 400 ms, full cache: until one can write", "ms", slow.Warm, 1500)
	row("the same: what was sent until one could write", "kB", slow.WarmKB, 10)
	row("the whole page, as brotli has it", "kB", []float64{size}, 300)
}

// figures runs a script that prints one line of JSON.
func figures(b *testing.B, br browser, script string, into any) {
	out, err := br.node(b, script).Output()
	if err != nil {
		b.Fatal(err)
	}
	if err := json.Unmarshal(out, into); err != nil {
		b.Fatalf("%s: %v: %s", script, err, out)
	}
}

// pageSize is the embedded page in kB, as most browsers are sent it.
func pageSize() (float64, error) {
	var all int64
	dir := os.DirFS(filepath.Join("..", "..", "channels", "webchat", "ui", "dist"))
	err := fs.WalkDir(dir, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".br") {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		all += info.Size()
		return nil
	})
	return float64(all) / 1000, err
}

// browser is what the walks need: a Chromium, the binary, fakes of networks, data that is too much to be said by hand.
type browser struct{ bin, world, long, shots string }

func newBrowser(t testing.TB) browser {
	t.Helper()
	if os.Getenv("PARLEY_TEST_CHROMIUM") == "" {
		t.Skip("PARLEY_TEST_CHROMIUM is not set: run .ci/browser go test …")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	b := browser{bin: filepath.Join(dir, "parley"), world: filepath.Join(dir, "walktest"), long: filepath.Join(dir, "long"), shots: filepath.Join(root, "bin", "shots")}
	if s := os.Getenv("PARLEY_SHOTS"); s != "" {
		b.shots = s
	}
	for _, line := range [][]string{{"go", "build", "-o", dir, ".", "./internal/walktest"}, {b.world, "long", b.long}} {
		if out, err := exec.CommandContext(t.Context(), line[0], line[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", line, err, out)
		}
	}
	return b
}

func (b browser) node(t testing.TB, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), "node", args...)
	cmd.Dir = filepath.Join("..", "..", "channels", "webchat", "ui", "e2e")
	cmd.Env = append(os.Environ(), "PARLEY_BIN="+b.bin, "PARLEY_WORLD="+b.world, "PARLEY_LONG="+b.long, "PARLEY_SHOTS="+b.shots)
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it ends what it started
	cmd.WaitDelay = 10 * time.Second
	return cmd
}
