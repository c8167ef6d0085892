package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"parley/channels/all"
	"parley/configs"
	"parley/gateway"
	"parley/tools"
	"parley/tools/sandbox"
)

// What a test binary that runs as the daemon reads from its environment.
const (
	childConfig = "PARLEY_TEST_CHILD"       // the configuration; without it the binary runs tests
	childPoint  = "PARLEY_TEST_POINT"       // "name#n": the process kills itself at the n-th passage
	childPoints = "PARLEY_TEST_POINTS"      // a file that gets the name of each point that is passed
	childSync   = "PARLEY_TEST_SYNCHRONOUS" // SQLite's setting
	childAct    = "PARLEY_TEST_ACT"         // a file that gets a line each time the tool act runs; without it there is none

	childSandbox = "PARLEY_TEST_SANDBOX" // commands run; they do not where it is empty
)

func TestMain(m *testing.M) {
	sandbox.Init() // this binary is started again for each command
	if conf := os.Getenv(childConfig); conf != "" {
		os.Exit(childMain(conf))
	}
	goleak.VerifyTestMain(m) // a stopped gateway has left no goroutine
}

// childMain is cmd/parley's daemon with what only tests may ask for.
func childMain(conf string) int {
	var sections []configs.Section
	for _, f := range all.Factories() {
		sections = append(sections, configs.Section{Type: string(f.Network), Options: f.Options})
	}
	none := func(string) (string, bool) { return "", false }
	src := configs.NewSource(configs.LoadOptions{Path: conf, Sections: sections, Env: none})
	if _, err := src.Load(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	var box sandbox.Backend // nil: the real one
	if os.Getenv(childSandbox) == "" {
		box = sandbox.New(sandbox.Config{Backend: "none"}, sandbox.Deps{})
	}
	point := pointOf(os.Getenv(childPoint), os.Getenv(childPoints))
	var list []tools.Tool
	if file := os.Getenv(childAct); file != "" {
		list = append(list, fileTool{newAct(), file, point})
	}
	g := gateway.New(gateway.Options{Source: src, Tools: list, Sandbox: box, Channels: all.Factories(), Env: none, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Synchronous: os.Getenv(childSync), Point: point, MemoryLimit: 4 << 30})
	if err := g.Start(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Printf("Parley is ready: %s (a test binary)\n", g.URL())
	<-ctx.Done()
	stop()
	end, cancel := context.WithTimeout(context.Background(), 25*time.Second)
	defer cancel()
	if err := g.Stop(end); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return 0
}

// pointOf is the hook that kills its own process at a point, or writes down which points there are.
func pointOf(armed, list string) func(string) {
	if armed == "" && list == "" {
		return nil
	}
	name, nth, _ := strings.Cut(armed, "#")
	left, _ := strconv.Atoi(nth)
	var mu sync.Mutex
	seen := map[string]bool{}
	return func(point string) {
		mu.Lock()
		defer mu.Unlock()
		if list != "" && !seen[point] {
			seen[point] = true
			note(list, point)
		}
		if point != name {
			return
		}
		if left--; left == 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // nothing more is done while the signal comes
		}
	}
}

func note(file, line string) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(f, line)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// daemon is one process of Parley.
type daemon struct {
	cmd    *exec.Cmd
	began  time.Time
	exited chan struct{} // closed when it is gone and its log is read
	code   int           // of the exit, -1 after a signal; read after exited
}

// program says what to start.
type program struct {
	path string
	args []string
	env  []string
}

// realProgram builds the binary that people run, without the race detector.
func realProgram(t *testing.T, conf string) program {
	t.Helper()
	path := filepath.Join(t.TempDir(), "parley")
	build := exec.Command("go", "build", "-o", path, "parley/cmd/parley")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the binary: %v\n%s", err, out)
	}
	return program{path: path, args: []string{"gateway", "--config", conf}}
}

// testProgram is this test binary as the daemon.
func testProgram(t *testing.T, conf string) program {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return program{path: path, env: []string{childConfig + "=" + conf}}
}

// hookedProgram is a test binary as the daemon, built without the race detector: that slows a daemon down so much that
// ten answers are on their way at any moment, and each can come twice.
func hookedProgram(t *testing.T, conf string) program {
	t.Helper()
	p := testProgram(t, conf)
	p.path = filepath.Join(t.TempDir(), "hooked")
	if out, err := exec.Command("go", "test", "-c", "-o", p.path, "parley/gateway").CombinedOutput(); err != nil {
		t.Fatalf("build the test binary: %v\n%s", err, out)
	}
	return p
}

// start begins a process; over is called when it is gone. Its environment is empty but for env, so that no key of the
// developer's gets in.
func (p program) start(t *testing.T, log *logBuffer, over func(), env ...string) *daemon {
	t.Helper()
	d := &daemon{cmd: exec.Command(p.path, p.args...), exited: make(chan struct{})}
	d.cmd.Env = append(append([]string{"HOME=" + filepath.Dir(p.path), "PATH=" + os.Getenv("PATH")}, p.env...), env...)
	d.cmd.Stdout, d.cmd.Stderr = log, log
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	d.began = time.Now()
	started := make(chan error)
	go func() { // ends with the process
		runtime.LockOSThread() // Pdeathsig is of the thread that forks, and some threads of this process end: prctl(2)
		defer runtime.UnlockOSThread()
		err := d.cmd.Start()
		if started <- err; err != nil {
			return
		}
		_ = d.cmd.Wait() // a killed one says so in its state
		d.code = d.cmd.ProcessState.ExitCode()
		close(d.exited)
		over()
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	return d
}

// kill ends it as a crash would and returns when it is gone.
func (d *daemon) kill() {
	_ = d.cmd.Process.Signal(syscall.SIGKILL) // or it is gone already
	<-d.exited
}

func (d *daemon) term() { _ = d.cmd.Process.Signal(syscall.SIGTERM) } // as kill

func (d *daemon) gone() bool {
	select {
	case <-d.exited:
		return true
	default:
		return false
	}
}
