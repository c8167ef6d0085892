package benchtest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The subjects, in the order of a round.
const (
	parley = iota
	echo
	pooled
	base // another parley, see findBase
	subjects
)

var names = [subjects]string{"parley", "echo", "echo-pooled", "base"}

// binaries are what is measured, built once.
type binaries struct {
	dir  string
	base string // the other parley; empty: none
	tree string // the checkout that it was built from; empty: it was given
}

func build(b *testing.B, dir string) binaries {
	b.Helper()
	bin := binaries{dir: dir}
	for _, name := range []string{"parley", "echobot"} {
		compile(b, ".", filepath.Join(dir, name), name)
	}
	bin.findBase(b)
	return bin
}

// compile builds a program of the checkout that a folder is in.
func compile(b *testing.B, tree, to, name string) {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", to, "parley/cmd/"+name)
	cmd.Dir, cmd.Env = tree, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("build %s: %v\n%s", name, err, out)
	}
}

// path is a subject's program.
func (bin binaries) path(who int) string {
	switch who {
	case parley:
		return filepath.Join(bin.dir, "parley")
	case base:
		return bin.base
	}
	return filepath.Join(bin.dir, "echobot")
}

// home is one data folder with its configuration; nothing but the addresses and the open door differs from the defaults.
func home(b *testing.B, dir, telegram, token, llm, more string) string {
	b.Helper()
	path := filepath.Join(dir, "parley.yaml")
	text := fmt.Sprintf(`data_dir: %s/data
gateway: {listen: "127.0.0.1:0"}
models: [{name: m, api: openai, base_url: "%s", api_key: sk-bench, model: bench-1}]
channels: [{name: tg, type: telegram, token: "%s", api_url: "%s", access: {dm: open}}%s]
`, dir, llm, token, telegram, more)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	return path
}

// process is a running subject.
type process struct {
	b     *testing.B
	cmd   *exec.Cmd
	out   *bufio.Reader // of what it prints; nil: nobody reads
	log   string
	began time.Time
}

// start runs a subject against a world. dir keeps its data and its log.
func (bin binaries) start(b *testing.B, who int, w *world, dir string) *process {
	b.Helper()
	var cmd *exec.Cmd
	if who == parley || who == base {
		cmd = exec.Command(bin.path(who), "gateway", "--config", home(b, dir, w.tg.URL(), w.tg.Token(), w.llmURL(), w.channels))
	} else {
		cmd = exec.Command(bin.path(who), "-api", w.tg.URL(), "-token", w.tg.Token(), "-llm", w.llmURL(), fmt.Sprintf("-pooled=%t", who == pooled))
	}
	p := &process{b: b, cmd: cmd, log: filepath.Join(dir, "log")}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	cmd.Stderr, cmd.Dir, cmd.Env = log, dir, []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
	p.began = time.Now()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	return p
}

// run starts a program whose standard output is read.
func (bin binaries) run(b *testing.B, dir, name string, args ...string) *process {
	b.Helper()
	p := &process{b: b, cmd: exec.Command(name, args...), log: filepath.Join(dir, "log"), began: time.Now()}
	log, err := os.Create(p.log)
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	p.cmd.Stderr, p.cmd.Dir, p.cmd.Env = log, dir, []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	return p
}

// kill ends it without a warning and waits for its end.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended by itself
	_ = p.cmd.Wait()         // says that it was killed
}

// tail of the log, for a failure.
func (p *process) tail() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}

// usage is what the system has counted of a process.
type usage struct {
	cpu   time.Duration // in ticks of 10 ms
	disk  float64       // bytes that went towards the disk
	calls float64       // write calls, to files and sockets
	rss   float64       // MiB
	peak  float64       // MiB
}

// used reads /proc, see proc(5).
func (p *process) used() usage {
	p.b.Helper()
	var u usage
	stat := p.proc("stat")
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	ticks := p.number(fields[11]) + p.number(fields[12])
	u.cpu = time.Duration(ticks) * (time.Second / 100)
	for line := range strings.Lines(p.proc("io") + p.proc("status")) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		value = strings.TrimSpace(strings.TrimSuffix(value, "kB"))
		switch name {
		case "write_bytes":
			u.disk = p.number(value)
		case "syscw":
			u.calls = p.number(value)
		case "VmRSS":
			u.rss = p.number(value) / 1024
		case "VmHWM":
			u.peak = p.number(value) / 1024
		}
	}
	return u
}

func (p *process) proc(file string) string {
	p.b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.cmd.Process.Pid, file))
	if err != nil {
		p.b.Fatalf("%v; its log ends: %s", err, p.tail())
	}
	return string(text)
}

func (p *process) number(s string) float64 {
	p.b.Helper()
	n, err := strconv.ParseFloat(s, 64)
	if err != nil {
		p.b.Fatal(err)
	}
	return n
}

// ready waits for the first long poll and tells how long after the start it came.
func (p *process) ready(w *world) time.Duration {
	p.b.Helper()
	ctx, cancel := context.WithTimeout(p.b.Context(), 20*time.Second)
	defer cancel()
	select {
	case at := <-w.polled:
		return at.Sub(p.began)
	case <-ctx.Done():
		p.b.Fatalf("%s never polled; its log ends: %s", p.cmd.Path, p.tail())
		return 0
	}
}
