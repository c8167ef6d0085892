package sandbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"parley/tools"
	"parley/tools/builtin"
	"parley/tools/sandbox"
	"parley/workspace"
	"parley/workspace/blob"
	"parley/workspace/disk"
	"parley/workspace/store"
)

const spaceFloor = 256 << 20

// ownDisk runs the test on a small file system of its own: in its own mount namespace, and where that needs rights that this
// user has not, in a user namespace as the same user. It is false in the process that only waits.
func ownDisk(t *testing.T, size string, inodes int) (dir string, inside bool) {
	t.Helper()
	const mark = "PARLEY_TEST_OWN_DISK"
	if os.Getenv(mark) == "" && os.Geteuid() != 0 {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), mark+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS, AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN},
			UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}}
		out, err := cmd.CombinedOutput()
		t.Logf("%s", out)
		switch {
		case bytes.Contains(out, []byte("--- SKIP")):
			t.Skip("SKIPPED: no small disk can be mounted here")
		case err != nil:
			t.Fatal(err)
		}
		return "", false
	}
	dir, err := os.MkdirTemp("", "parley-space-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%s,nr_inodes=%d,mode=0755", size, inodes)); err != nil {
		t.Skipf("SKIPPED: no small disk can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir, true
}

// place is an agent's work folder on the disk of the gateway's own store, with everything that writes there.
type place struct {
	testing.TB
	dir, work string
	rule      *disk.Rule
	box       sandbox.Backend
	root      *workspace.Root
	store     *store.Store
	blobs     *blob.Store
	limits    sandbox.Limits
}

func newPlace(t testing.TB, dir string, o disk.Options) *place {
	t.Helper()
	p := &place{TB: t, dir: dir, work: filepath.Join(dir, "agents/a/work/s1"), rule: disk.New(o), limits: sandbox.Limits{Disk: 1 << 30, Files: 1 << 30, Timeout: 30 * time.Second}}
	p.box = sandbox.New(sandbox.Config{Backend: "ns", Concurrent: 8, Disk: p.rule, Hide: []string{dir}}, sandbox.Deps{})
	t.Cleanup(p.box.Close)
	if r := p.box.Probe(t.Context()); r.Tier != sandbox.TierNS {
		if os.Getenv("PARLEY_REQUIRE_SANDBOX") != "" {
			t.Fatalf("there must be a sandbox here: %v", r.Reasons)
		}
		t.Skipf("no sandbox: %v", r.Reasons)
	}
	var err error
	if p.root, err = workspace.OpenWork(p.work); err != nil {
		t.Fatal(err)
	}
	p.root.Under(p.rule)
	if p.store, err = store.Open(t.Context(), store.Options{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	p.blobs = blob.New(filepath.Join(dir, "blobs")).Under(p.rule)
	t.Cleanup(func() {
		if err := errors.Join(p.root.Close(), p.store.Close()); err != nil {
			t.Error(err)
		}
	})
	return p
}

// call runs a tool; what it refuses comes as text too.
func (p *place) call(name string, args map[string]any) (text string, failed bool) {
	p.Helper()
	data, err := json.Marshal(args)
	if err != nil {
		p.Fatal(err)
	}
	for _, t := range append(builtin.Files(), builtin.Exec(builtin.ExecOptions{Sandbox: p.box, Limits: p.limits})) {
		if t.Spec().Name != name {
			continue
		}
		res, err := t.Call(p.Context(), tools.Call{Args: data, Root: p.root, Control: filepath.Join(p.dir, "agents/a")})
		if err != nil {
			said, ok := workspace.Sentence(err)
			if !ok {
				p.Errorf("%s: no sentence for %v", name, err)
			}
			return said, true
		}
		return res.Content[0].Text, res.Error
	}
	p.Fatalf("no tool %s", name)
	return "", false
}

// sh runs a line; refused says that it was not begun.
func (p *place) sh(line string) (text string, refused bool) {
	text, _ = p.call("exec", map[string]any{"command": line})
	return text, strings.HasPrefix(text, "The command was not begun: ")
}

// free is what the disk has, the moment it is asked.
func (p *place) free() (bytes, files int64) {
	var st unix.Statfs_t
	if err := unix.Statfs(p.dir, &st); err != nil {
		p.Error(err)
	}
	return int64(st.Bavail) * st.Bsize, int64(st.Ffree)
}

// seen watches the disk from outside while f fills it, and writes to the store as chats do. It gives the least that was free.
func (p *place) seen(f func()) (bytes, files int64) {
	ctx, stop := context.WithCancel(p.Context())
	var wg sync.WaitGroup
	bytes, files = math.MaxInt64, math.MaxInt64
	wg.Go(func() {
		for tick := time.NewTicker(time.Millisecond); ctx.Err() == nil; <-tick.C {
			b, n := p.free()
			bytes, files = min(bytes, b), min(files, n)
		}
	})
	var wrote atomic.Int64
	wg.Go(func() {
		for tick := time.NewTicker(5 * time.Millisecond); ctx.Err() == nil; <-tick.C {
			if err := p.store.SetSetting("chat", strings.Repeat("x", 4000)); err != nil {
				p.Errorf("the store does not write: %v", err)
				return
			}
			wrote.Add(1)
		}
	})
	f()
	stop()
	wg.Wait()
	if wrote.Load() == 0 {
		p.Error("the store wrote nothing meanwhile")
	}
	return bytes, files
}

// again repeats a way of filling until it is refused, and then some: each call may take a little more.
func again(fill func(i int) (string, bool)) (last string) {
	refused := 0
	for i := 0; i < 400 && refused < 3; i++ {
		text, failed := fill(i)
		last = text
		if failed {
			refused++
		}
	}
	return last
}

var fills = map[string]func(p *place) string{
	"big": func(p *place) string {
		return again(func(i int) (string, bool) { return p.sh(fmt.Sprintf("dd if=/dev/zero of=big%d bs=1M count=120", i)) })
	},
	"ratchet": func(p *place) string {
		return again(func(i int) (string, bool) { return p.sh(fmt.Sprintf("dd if=/dev/zero of=r%d bs=64k count=320", i)) })
	},
	"small": func(p *place) string {
		return again(func(i int) (string, bool) {
			return p.sh(fmt.Sprintf("mkdir s%d; head -c 40M /dev/zero | split -b 4096 -a 4 - s%d/", i, i))
		})
	},
	"sparse": func(p *place) string {
		return again(func(i int) (string, bool) {
			return p.sh(fmt.Sprintf("truncate -s 120M sp%d; fallocate -l 120M sp%d; dd if=/dev/zero of=sp%d bs=4M count=30 conv=notrunc", i, i, i))
		})
	},
	"folders": func(p *place) string {
		return again(func(i int) (string, bool) {
			return p.sh(fmt.Sprintf("mkdir f%d; cd f%d; seq 1 9999 | xargs mkdir", i, i))
		})
	},
	"tools": func(p *place) string {
		text := strings.Repeat("y", 900<<10)
		name := ""
		return again(func(i int) (string, bool) {
			if i%2 == 1 && name != "" {
				defer func() { name = "" }()
				return p.call("edit_file", map[string]any{"path": name, "old_text": "yyy", "new_text": text})
			}
			path := fmt.Sprintf("t%d", i)
			said, failed := p.call("write_file", map[string]any{"path": path, "content": text})
			if !failed {
				name = path
			}
			return said, failed
		})
	},
	"uploads": func(p *place) string {
		var n atomic.Int64
		return again(func(int) (string, bool) {
			var wg sync.WaitGroup
			var bad atomic.Pointer[string]
			for range 8 {
				wg.Go(func() {
					_, err := p.blobs.Take(io.LimitReader(&numbered{n.Add(1)}, 20<<20), 20<<20)
					if err != nil {
						text, ok := workspace.Sentence(err)
						if !ok || !errors.Is(err, workspace.ErrSpace) {
							p.Errorf("an upload ends with %v", err)
						}
						bad.Store(&text)
					}
				})
			}
			wg.Wait()
			if text := bad.Load(); text != nil {
				return *text, true
			}
			return "", false
		})
	},
	"at once": func(p *place) string {
		var last atomic.Pointer[string]
		var wg sync.WaitGroup
		for k := range 4 {
			wg.Go(func() {
				text := again(func(i int) (string, bool) { return p.sh(fmt.Sprintf("cat /dev/zero | head -c 100M >o%d-%d", k, i)) })
				last.Store(&text)
			})
		}
		wg.Wait()
		return *last.Load()
	},
}

// numbered is an endless file that no other is equal to.
type numbered struct{ n int64 }

func (r *numbered) Read(p []byte) (int, error) {
	clear(p)
	copy(p, strconv.FormatInt(r.n, 10)) // into each part, so that it is another file
	return len(p), nil
}

func TestE65_TheFloorOfFreeSpaceHolds(t *testing.T) {
	dir, inside := ownDisk(t, "420m", 60_000)
	if !inside {
		return
	}
	const most = 1 << 40 // of a work folder: this is about the disk
	p := newPlace(t, dir, disk.Options{Floor: spaceFloor, Size: most, Files: most})
	for name, fill := range fills {
		t.Run("E65_"+strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			p := *p
			p.TB = t
			var last string
			bytes, files := p.seen(func() { last = fill(&p) })
			t.Logf("least free: %d MiB, %d files; last: %.300q", bytes>>20, files, last)
			if bytes < spaceFloor || files < 4096 {
				t.Errorf("only %d MiB and %d files stayed free", bytes>>20, files)
			}
			for _, want := range []string{"the disk of this machine has", "remove_file"} {
				if name != "uploads" && !strings.Contains(last, want) {
					t.Errorf("it is told %q, which does not hold %q", last, want)
				}
			}
			p.writesAgain()
		})
	}
	t.Run("E65_without_the_rule", func(t *testing.T) {
		p := newPlace(t, filepath.Join(dir, "weak"), disk.Options{Floor: 1, Size: most, Files: most})
		if bytes, _ := p.seen(func() { fills["big"](p) }); bytes >= spaceFloor {
			t.Errorf("with a floor of one byte %d MiB stayed free: the test shows nothing", bytes>>20)
		}
		t.Log("escape E65: broken launcher caught")
	})
}

// writesAgain shows that removing works where nothing may be written, and that then everything does.
func (p *place) writesAgain() {
	p.Helper()
	if text, failed := p.call("remove_file", map[string]any{"path": ".", "folder": true}); failed {
		p.Errorf("removing: %s", text)
	}
	if err := os.RemoveAll(filepath.Join(p.dir, "blobs")); err != nil {
		p.Error(err)
	}
	for tick := time.NewTicker(time.Millisecond); ; <-tick.C { // what was written a moment ago is kept in reserve
		if s, ok := p.rule.Space(p.work); !ok || !s.Low() && s.Reserve <= 64<<20 {
			break
		}
	}
	if text, failed := p.call("write_file", map[string]any{"path": "w", "content": "works"}); failed {
		p.Errorf("writing behind it: %s", text)
	}
	if text, failed := p.sh("cat w; dd if=/dev/zero of=n bs=1M count=10 2>/dev/null; rm n"); failed || !strings.HasPrefix(text, "works\n(exit code 0") {
		p.Errorf("a command behind it: %s", text)
	}
	if h, why := p.store.Health(); h != store.Well {
		p.Errorf("the store is %s: %s", h, why)
	}
}

func TestE65_AWorkFolderHasATotal(t *testing.T) {
	t.Parallel()
	const size, files = 50 << 20, 1500
	p := newPlace(t, t.TempDir(), disk.Options{Floor: 1 << 20, Size: size, Files: files})
	p.limits = sandbox.Limits{Disk: 20 << 20, Files: 900, Timeout: 30 * time.Second}
	for name, fill := range map[string]func(i int) (string, bool){
		"bytes": func(i int) (string, bool) { return p.sh(fmt.Sprintf("dd if=/dev/urandom of=big%d bs=1M count=15", i)) },
		"files": func(i int) (string, bool) {
			return p.sh(fmt.Sprintf("mkdir d%d; cd d%d; seq 1 500 | xargs touch", i, i))
		},
		"deep": func(i int) (string, bool) { return p.sh(deep(i, 400)) },
		"hidden": func(i int) (string, bool) {
			return p.sh(fmt.Sprintf("mkdir h%d; cd h%d; seq 1 500 | xargs mkdir; cd ..; chmod 000 h%d", i, i, i))
		},
		"tools": func(i int) (string, bool) {
			return p.call("write_file", map[string]any{"path": fmt.Sprintf("t%d", i), "content": strings.Repeat("x", 1<<20-500)})
		},
		"folders": func(i int) (string, bool) {
			return p.call("write_file", map[string]any{"path": strings.Repeat(fmt.Sprintf("f%d/", i), 200) + "x", "content": ""})
		},
	} {
		last := again(fill)
		if !strings.Contains(last, "the work folder holds") || !strings.Contains(last, "remove_file") {
			t.Errorf("%s: it is told %q", name, last)
		}
		d, err := os.Open(p.work)
		if err != nil {
			t.Fatal(err)
		}
		u := disk.Measure(d, 1<<30, true)
		d.Close()
		t.Logf("%s: %d MiB, %d files; %.200q", name, u.Bytes>>20, u.Files, last)
		if u.Bytes > size+25<<20 || u.Files > files+1000 { // by what one call may take at most
			t.Errorf("%s: it holds %d MiB and %d files", name, u.Bytes>>20, u.Files)
		}
		p.writesAgain()
	}
	// A link to a file is not a second file.
	if text, _ := p.sh("dd if=/dev/urandom of=one bs=1M count=15 2>/dev/null; for i in 1 2 3 4 5 6 7 8 9; do ln one l$i; done"); !strings.Contains(text, "(exit code 0") {
		t.Error(text)
	}
	if text, failed := p.call("write_file", map[string]any{"path": "more", "content": "x"}); failed {
		t.Errorf("links count as files: %s", text)
	}
}

// deep is a line that makes n folders, one in the other.
func deep(i, n int) string {
	return fmt.Sprintf("mkdir p%d; cd p%d; mkdir -p $(yes d | head -n %d | tr '\\n' /)", i, i, n)
}
