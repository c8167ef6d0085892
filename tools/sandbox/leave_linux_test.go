package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"parley/tools/sandbox/internal/cell"
)

// traces is what calls could leave on the host, by kind.
func traces(t testing.TB, n *ns) map[string]int {
	found := map[string]int{"goroutines": runtime.NumGoroutine(), "files": len(list("/proc/self/fd")), "temporary files": 0}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	found["mounts"] = strings.Count(string(mounts), "\n")
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		data, _ := os.ReadFile(task) // a thread that has just ended has no children
		found["children"] += len(strings.Fields(string(data)))
	}
	if n.groups != nil {
		for _, above := range n.groups.above {
			for _, name := range list(above) {
				if strings.HasPrefix(name, n.groups.prefix) {
					found["cgroups"]++
				}
			}
		}
	}
	return found
}

// settle ends the spare, and waits until nothing is made or ended any more.
func settle(n *ns) {
	n.spares.work.Wait()
	n.drop()
}

// TestE39 runs alone: it counts what belongs to the whole process.
func TestE39_ThousandCallsLeaveNothing(t *testing.T) {
	prove(t, escape{"E39", func(w *world) string {
		calls := 60
		if n, err := strconv.Atoi(os.Getenv("PARLEY_CALLS")); err == nil && w.how.weak == (switches{}) {
			calls = n // .ci/escapes makes it a thousand
		}
		w.sh("true") // what is made once is made now
		settle(w.n)
		before := traces(w, w.n)
		w.command.Line, w.command.Argv = "echo x >/tmp/x; echo y >own; sleep 9 &", nil
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range calls / 4 {
					if _, err := w.n.run(w.Context(), w.command, w.how); err != nil {
						w.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		settle(w.n)
		var got string
		quiet := func() bool {
			got = ""
			after := traces(w, w.n)
			for kind, n := range before {
				if after[kind] > n+map[string]int{"goroutines": 2, "files": 2}[kind] {
					got += fmt.Sprintf("%d %s were %d; ", after[kind], kind, n)
				}
			}
			if after["cgroups"] > before["cgroups"] {
				got += "cgroups are left; "
			}
			return got == ""
		}
		if w.how.weak.Has(cell.NoCleanup) {
			quiet()
			cleanAfter(w)
			return got
		}
		eventually(w, quiet)
		if left := list(w.work); len(left) != 1 {
			return fmt.Sprint("the work folder holds ", left)
		}
		return got
	}, []weakness{cell.NoCleanup}})
}

// cleanAfter removes the groups that a launcher which does not clean up has left.
func cleanAfter(w *world) {
	runtime.GC() // its files are closed by their finalizers
	if w.n.groups == nil {
		return
	}
	for _, above := range w.n.groups.above {
		for _, name := range list(above) {
			if strings.HasPrefix(name, w.n.groups.prefix) {
				_ = os.Remove(filepath.Join(above, name)) // one that is in use belongs to another test
			}
		}
	}
}

// E66: the command after one that has shut its own folder runs, and what it says is kept.
func TestE66_AShutWorkFolderIsHealedForTheNextCommand(t *testing.T) {
	t.Parallel()
	for _, spare := range []bool{false, true} {
		w := newWorld(t)
		w.spare = spare
		w.command.Limits.Output = 1 << 10
		if out := w.sh("mkdir -p .output; chmod 000 .output /work"); out.Code != 0 {
			t.Fatalf("%+v %s", out, out.Output)
		}
		out := w.sh("echo x >made && yes | head -n 9999")
		if out.Code != 0 || out.OutputFile == "" {
			t.Errorf("spare %v: %+v", spare, out)
		}
		if got, err := os.ReadFile(filepath.Join(w.command.Work, out.OutputFile)); err != nil || len(got) != 2*9999 {
			t.Errorf("%d bytes were kept: %v", len(got), err)
		}
	}
}
