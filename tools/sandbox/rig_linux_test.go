package sandbox

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"parley/tools/sandbox/internal/cell"
	"parley/workspace/folder"
)

// What this test program is when it is started again.
const (
	roleGateway = "parley-test-gateway" // a gateway that is killed
	roleNoSpace = "parley-test-nospace" // one on a machine that has no user namespaces
	roleMounter = "parley-test-mounter" // one on a machine whose mounts change
	rolePauper  = "parley-test-pauper"  // one that may open no more files for a while
)

func TestMain(m *testing.M) {
	switch path.Base(os.Args[0]) {
	case path.Base(hostilePath):
		hostile(os.Args[1:])
		os.Exit(0)
	case roleGateway:
		armed.Store(true)
		gatewayToKill()
		os.Exit(0)
	case rolePauper:
		armed.Store(true)
		gatewayWithoutFiles()
		os.Exit(0)
	case roleMounter:
		armed.Store(true)
		gatewayThatMounts()
		os.Exit(0)
	case roleNoSpace:
		armed.Store(true)
		gatewayWithoutSpaces()
		os.Exit(0)
	}
	Init()
	os.Setenv("PARLEY_TEST_SECRET", canary) // for E09
	goleak.VerifyTestMain(m)
}

// world is a host with a gateway, an agent and things that must stay theirs.
type world struct {
	testing.TB
	n *ns
	// Folders that any user of the host may enter, so that nothing but the sandbox keeps a command out.
	dir, work, control string
	command            Command
	how                how
	warden             *folder.Warden
	spare              bool // every command finds a sandbox that was made ahead
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{TB: t, n: proven(t), warden: folder.New(folder.Options{})}
	t.Cleanup(w.warden.Close)
	t.Cleanup(w.n.Close)
	dir, err := os.MkdirTemp("", "parley-escape-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // a sandbox that was weakened may have left what this user cannot remove
	w.dir = dir
	w.work, w.control = filepath.Join(dir, "agents/a/work/s1"), filepath.Join(dir, "agents/a")
	for name, text := range map[string]string{"secret": canary, "parley.yaml": canary, "data/parley.db": canary, "data/token": canary, "agents/b/work/s9/note": canary,
		"agents/a/work/s2/note": canary, "agents/a/AGENTS.md": "be good", "agents/a/SOUL.md": "be kind", "agents/a/memory/MEMORY.md": "facts", "agents/a/work/s1/own": "mine"} {
		w.put(name, text)
	}
	w.open(dir)
	w.command = Command{Work: w.work, Control: w.control, Limits: Limits{Timeout: 20 * time.Second}}
	return w
}

// first is what the self-test says; one is enough for all tests.
var first = sync.OnceValue(func() Report { return newNS(Config{Backend: "ns"}, Deps{}).Probe(context.Background()) })

// proven gives a backend that stands; without one the test is skipped, and where it must stand fails.
func proven(t testing.TB) *ns {
	t.Helper()
	n := newNS(Config{Backend: "ns", Concurrent: 8}, Deps{})
	if n.last = first(); n.last.Tier != TierNS {
		if os.Getenv("PARLEY_REQUIRE_SANDBOX") != "" {
			t.Fatalf("there must be a sandbox here: %v", n.last.Reasons)
		}
		t.Skipf("no sandbox: %v", n.last.Reasons)
	}
	return n
}

// put writes a file that anyone may read and write.
func (w *world) put(name, text string) string {
	w.Helper()
	name = filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		w.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		w.Fatal(err)
	}
	w.open(filepath.Dir(name))
	return name
}

func (w *world) open(dir string) {
	w.Helper()
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.Chmod(p, 0o777)
		}
		return os.Chmod(p, 0o666)
	})
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) read(name string) string {
	w.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// hostile runs an attempt of this program inside.
func (w *world) hostile(args ...string) Outcome {
	w.Helper()
	w.command.Argv, w.command.Line, w.how.self = append([]string{hostilePath}, args...), "", hostilePath
	return w.run()
}

func (w *world) sh(line string) Outcome {
	w.Helper()
	w.command.Argv, w.command.Line, w.how.self = nil, line, ""
	return w.run()
}

func (w *world) run() Outcome {
	w.Helper()
	w.prepare()
	for i, m := range w.command.Folders {
		if m.RW && m.Guard == nil {
			g, err := w.warden.Guard(m.Host)
			if err != nil {
				w.Fatal(err)
			}
			w.command.Folders[i].Guard = g
		}
	}
	out, err := w.n.run(w.Context(), w.command, w.how)
	if err != nil {
		w.Fatalf("with %+v: %v", w.how.weak, err)
	}
	return out
}

// prepare makes a spare, weakened like the command's own sandbox, where the test wants one.
func (w *world) prepare() {
	w.Helper()
	if !w.spare || w.how.inherit != nil || w.how.stdin != nil {
		return
	}
	w.n.refill(how{weak: w.how.weak})
	w.n.spares.work.Wait()
	if w.n.spares.ready == nil {
		w.Fatal("no spare was made")
	}
}

// weakness names the defences that a broken launcher does without.
type weakness = cell.Weakness

// escape is one line of the threat model's list: an attempt that gets nowhere, and launchers without a defence in which it
// does, so that its failure is known to be the defence's work.
type escape struct {
	id     string
	try    func(w *world) (escaped string) // what it got; empty: nothing
	broken []weakness
}

// prove tries an escape as it is and then in each broken launcher.
func prove(t *testing.T, e escape) {
	t.Helper()
	t.Run("refused", func(t *testing.T) {
		if got := e.try(newWorld(t)); got != "" {
			t.Errorf("%s: it escaped: %s", e.id, got)
		}
	})
	t.Run("refused in a spare", func(t *testing.T) {
		if raceMemory > 0 {
			return // the same code; .ci/escapes runs it
		}
		w := newWorld(t)
		w.spare = true
		if got := e.try(w); got != "" {
			t.Errorf("%s: it escaped from a sandbox that was made ahead: %s", e.id, got)
		}
	})
	t.Run("broken", func(t *testing.T) {
		if raceMemory > 0 {
			return // the race detector has nothing to find in them; .ci/escapes runs them
		}
		if !cell.CanWeaken {
			t.Skip("this program has no broken launchers: they need -tags sandboxweak, with which .ci/escapes runs them")
		}
		for i, weak := range e.broken {
			var got string
			for range 3 { // on a busy machine an attempt may fail for want of time or processes, which is no defence
				w := newWorld(t)
				w.spare = i == 0
				w.how.weak = cell.Weaken(weak)
				if got = e.try(w); got != "" {
					break
				}
			}
			if got == "" {
				t.Fatalf("%s: it did not escape from a launcher with %v: the test would not notice if the defence were gone", e.id, weak)
			}
			t.Logf("it escaped: %s", got)
		}
		t.Logf("escape %s: broken launcher caught", e.id) // .ci/escapes counts these lines
	})
}

// said is what the hostile program boasts of.
func said(out Outcome) string {
	var list []string
	for line := range strings.Lines(string(out.Output)) {
		if s, ok := strings.CutPrefix(line, escaped); ok {
			list = append(list, strings.TrimSpace(s))
		}
	}
	if out.Code == 127 {
		list = append(list, "it never ran: "+string(out.Output))
	}
	return strings.Join(list, "; ")
}

// processesWith finds processes of the host by a part of their command line.
func processesWith(mark string) (pids []int) {
	for _, name := range list("/proc") {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == os.Getpid() {
			continue
		}
		data, err := os.ReadFile("/proc/" + name + "/cmdline")
		if err == nil && strings.Contains(string(data), mark) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// end kills what a broken launcher has left, and what that was just about to start.
func end(t testing.TB, mark string) {
	eventually(t, func() bool {
		left := processesWith(mark)
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have gone by itself
		}
		return len(left) == 0
	})
}

// eventually waits up to twenty seconds.
func eventually(t testing.TB, holds func() bool) bool {
	t.Helper()
	end := time.After(20 * time.Second)
	for !holds() {
		select {
		case <-end:
			t.Error("it did not come to pass in 20 s")
			return false
		case <-time.After(5 * time.Millisecond):
		}
	}
	return true
}

// unique is a number of seconds to sleep by which a process can be known.
func unique(t testing.TB) string {
	return fmt.Sprintf("86400.%d%d", os.Getpid(), time.Now().UnixNano()%1_000_000_007)
}

// again starts this test program in a role.
func again(t testing.TB, role string, args ...string) *exec.Cmd {
	c := exec.CommandContext(t.Context(), "/proc/self/exe")
	c.Args = append([]string{role}, args...)
	c.Stderr = os.Stderr
	return c
}

func ownedBySelf(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
