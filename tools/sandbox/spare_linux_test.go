package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"parley/tools/sandbox/internal/cell"
)

// waiting is the process of the spare that stands; 0: none does.
func waiting(n *ns) int {
	n.spares.work.Wait()
	n.spares.mu.Lock()
	defer n.spares.mu.Unlock()
	if n.spares.ready == nil {
		return 0
	}
	return n.spares.ready.process.Pid
}

func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func TestSpareIsForOneCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	seen := map[int]bool{}
	for i := range 5 {
		out := w.sh("cat /tmp/x 2>/dev/null; echo secret >/tmp/x; echo " + strconv.Itoa(i))
		if got := strings.TrimSpace(string(out.Output)); got != strconv.Itoa(i) {
			t.Errorf("command %d found %q", i, got)
		}
		pid := waiting(w.n)
		if pid == 0 || seen[pid] {
			t.Fatalf("behind command %d waits process %d; so far %v", i, pid, seen)
		}
		for old := range seen {
			if !gone(old) {
				t.Errorf("process %d, whose command has ended, is there", old)
			}
		}
		seen[pid] = true
	}
	w.n.Close()
	for pid := range seen {
		if !gone(pid) {
			t.Errorf("process %d outlived Close", pid)
		}
	}
	if out := w.sh("echo still"); string(out.Output) != "still\n" || waiting(w.n) != 0 {
		t.Errorf("behind Close: %q, spare %d", out.Output, waiting(w.n))
	}
}

func TestSpareHoldsNothingOfTheGateway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sh("true")
	at := "/proc/" + strconv.Itoa(waiting(w.n))
	env, err := os.ReadFile(at + "/environ")
	if want := strings.Join(cell.Environ(), "\x00") + "\x00"; err != nil || string(env) != want {
		t.Errorf("its environment is %q (%v)", env, err)
	}
	got := ""
	if !eventually(t, func() bool { // once it has come to itself
		var files []string
		for _, fd := range list(at + "/fd") {
			to, _ := os.Readlink(at + "/fd/" + fd) // it may be closed just now
			kind, _, _ := strings.Cut(to, ":")
			files = append(files, fd+" "+kind)
		}
		slices.Sort(files)
		got = strings.Join(files, ", ")
		return got == "0 /dev/null, 1 pipe, 2 pipe, 3 socket"
	}) {
		t.Errorf("its files are %s", got)
	}
}

func TestSpareThatDiedCostsNoCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 5 {
		w.sh("true")
		if err := syscall.Kill(waiting(w.n), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if out := w.sh("echo ran >>log; echo ran"); string(out.Output) != "ran\n" {
			t.Errorf("%+v %s", out, out.Output)
		}
	}
	if got := w.read("agents/a/work/s1/log"); got != strings.Repeat("ran\n", 5) {
		t.Errorf("the commands ran so often: %q", got)
	}
}

func TestSpareEndsWhenNoCommandComes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.n.spares.keep = 200 * time.Millisecond
	w.sh("true")
	pid := waiting(w.n)
	eventually(t, func() bool { return pid == 0 || gone(pid) })
	w.n.spares.keep = -1
	if w.sh("true"); waiting(w.n) != 0 {
		t.Error("a spare was made where none is to be")
	}
}

func TestSpareTakesTheLimitsOfItsCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, files := range []int64{40, 20} {
		w.command.Limits.Memory, w.command.Limits.Disk = files<<21, files<<20
		w.spare = true
		out := w.sh("ulimit -f; df -k /tmp | tail -n 1 | awk '{print $2}'")
		if want := fmt.Sprintf("%d\n%d\n", files<<11, files<<9); string(out.Output) != want { // ulimit counts in 512 bytes, df in 1024
			t.Errorf("with %d MiB: %q, want %q", files, out.Output, want)
		}
	}
}

func TestSparesAreMadeWhileManyCommandsRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			c := w.command
			c.Line = "echo " + strconv.Itoa(i)
			ctx, cancel := context.WithCancel(w.Context())
			defer cancel()
			if i%5 == 4 {
				defer time.AfterFunc(time.Duration(i)*time.Millisecond, cancel).Stop()
			}
			if i%7 == 6 {
				w.n.drop()
			}
			out, err := w.n.run(ctx, c, w.how)
			if i%5 != 4 && (err != nil || string(out.Output) != c.Line[5:]+"\n") {
				t.Errorf("%s: %q %+v %v", c.Line, out.Output, out, err)
			}
		})
	}
	all.Wait()
}

// TestSelfTestHoldsInASpare is the same self-test, in a sandbox that was made ahead.
func TestSelfTestHoldsInASpare(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.spare = true
	w.prepare()
	w.n.cfg.Scratch = w.dir
	checks, err := w.n.try(t.Context())
	if err != nil || len(checks) < 80 || waiting(w.n) != 0 {
		t.Errorf("%d checks, %v", len(checks), err)
	}
	for _, c := range checks {
		if !c.OK {
			t.Errorf("%s: %s", c.Name, c.Why)
		}
	}
}

// gatewayThatMounts lives in mounts of its own, which change while its spare waits.
func gatewayThatMounts() {
	n := newNS(Config{Backend: "ns"}, Deps{})
	work := os.Args[1]
	c := Command{Line: "cat note", Work: work}
	show := func() {
		out, err := n.run(context.Background(), c, how{})
		n.spares.work.Wait()
		fmt.Printf("%s%v %t\n", out.Output, err, n.spares.ready != nil)
	}
	show()
	err := unix.Mount("tmpfs", work, "tmpfs", 0, "")
	if err == nil {
		err = os.WriteFile(filepath.Join(work, "note"), []byte("new "), 0o600)
	}
	fmt.Println(err)
	show()
	show()
	n.Close()
}

func TestSpareSeesTheHostsMountsAsTheyAre(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := os.WriteFile(filepath.Join(w.work, "note"), []byte("old "), 0o600); err != nil {
		t.Fatal(err)
	}
	c := again(w, roleMounter, w.work)
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}}
	out, err := c.Output()
	if want := "old <nil> true\n<nil>\nnew <nil> true\nnew <nil> true\n"; err != nil || string(out) != want {
		t.Errorf("%v\n%s", err, out)
	}
}

// gatewayWithoutFiles cannot make a sandbox for a while, at each step of making one.
func gatewayWithoutFiles() {
	n := newNS(Config{Backend: "ns"}, Deps{})
	c := Command{Line: "echo ran", Work: os.Args[1]}
	run := func() {
		out, err := n.run(context.Background(), c, how{})
		n.spares.work.Wait()
		fmt.Printf("%s%t %t; ", out.Output, err == nil, n.spares.ready != nil)
	}
	run()
	var all unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &all); err != nil {
		fmt.Println(err)
	}
	for open := range uint64(24) {
		n.drop()
		_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: open, Max: all.Max}) // it shows below
		n.refill(how{})
		n.spares.work.Wait()
	}
	n.drop()
	_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: all.Max})
	run()
	_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &all)
	run()
	n.Close()
	if n.groups != nil {
		for _, above := range n.groups.above {
			for _, name := range list(above) {
				if strings.HasPrefix(name, n.groups.prefix) {
					fmt.Print(name, " is left; ")
				}
			}
		}
	}
}

func TestWhatCannotBeMadeIsNotLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	out, err := again(w, rolePauper, w.work).Output()
	if want := "ran\ntrue true; false false; ran\ntrue true; "; err != nil || string(out) != want {
		t.Errorf("%v\n%s", err, out)
	}
}
