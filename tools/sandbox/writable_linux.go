package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"parley/tools/sandbox/internal/cell"
	"parley/workspace/disk"
)

const (
	unseen    = 4      // times the limit by which a disk may lose room without the folders showing why
	smallTree = 2_000  // entries that are counted before the start
	bigTree   = 50_000 // an owner's folder with more is judged by what its file system says alone
)

// writable is one writable folder and what it held at the beginning.
type writable struct {
	dir      *os.File
	total    disk.Used // that it may hold; zero: there is no bound, it is an owner's folder
	free     int64     // of its file system, bytes, when it was last walked
	spare    int64     // files, likewise
	first    int64     // free at the beginning
	base     disk.Used
	next     time.Time // not to be walked before
	measured bool
}

// openTrees opens the writable folders. What the work folder holds is known from earlier, or counted now if that is little;
// more is counted while the command runs: the start does not wait for it. A work folder that is full is refused.
func (k *call) openTrees() error {
	rule := k.n.disk
	hosts := []string{k.c.Work}
	for _, f := range k.c.Folders {
		if f.RW {
			hosts = append(hosts, f.Host)
		}
	}
	for i, h := range hosts {
		fd, err := unix.Openat2(unix.AT_FDCWD, h, &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
		if err != nil {
			continue // a single file: RLIMIT_FSIZE bounds it
		}
		t := &writable{dir: os.NewFile(uintptr(fd), h)}
		k.trees = append(k.trees, t)
		t.free, t.spare, _ = t.room()
		t.first = t.free
		if i > 0 {
			t.base = disk.Measure(t.dir, smallTree, false)
			t.measured = !t.base.More
			continue
		}
		t.total = rule.Limits()
		if t.base, t.measured = rule.Known(h); !t.measured {
			t.base = disk.Measure(t.dir, smallTree, true)
			t.measured = !t.base.More
		}
		if t.measured && !k.how.weak.Has(cell.NoDisk) {
			if err := rule.Full(t.base); err != nil {
				return err
			}
		}
	}
	return nil
}

// guard has the command stopped when the disk fills, or refuses to begin it.
func (k *call) guard() (err error) {
	if k.how.weak.Has(cell.NoDisk) || k.how.trial {
		return nil
	}
	var dirs []*os.File
	for _, t := range k.trees {
		dirs = append(dirs, t.dir)
	}
	process, group := k.box.process, k.box.group
	k.unguard, err = k.n.disk.Start(dirs, func() {
		k.alarm("space")
		_ = process.Kill() // it may be gone already
		strike(process.Pid, group)
	})
	return err
}

// strike kills the processes of a sandbox beside its first one, whose end is the end of all: on a busy machine that one may
// wait long for its turn to end, and each millisecond of the others costs megabytes. What is not found here ends with it.
func strike(first int, g *group) {
	var pids []int
	if g != nil {
		if g.version == 2 && os.WriteFile(filepath.Join(g.dirs[0], "cgroup.kill"), []byte("1"), 0) == nil {
			return
		}
		pids = numbers(filepath.Join(g.dirs[0], "cgroup.procs"))
	} else {
		pids = children(first)
		for i := 0; i < len(pids) && len(pids) < struck; i++ {
			pids = append(pids, children(pids[i])...)
		}
	}
	for _, pid := range pids {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// struck bounds how many processes strike looks for.
const struck = 512

func children(pid int) (list []int) {
	tasks := fmt.Sprintf("/proc/%d/task", pid)
	for _, t := range directory(tasks) {
		list = append(list, numbers(filepath.Join(tasks, t, "children"))...)
	}
	return list
}

func directory(name string) []string {
	d, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(struck) // what can be read of it
	return names
}

func numbers(name string) (list []int) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	for _, f := range strings.Fields(string(data)) {
		if n, err := strconv.Atoi(f); err == nil && n > 1 {
			list = append(list, n)
		}
	}
	return list
}

// alarm says why the command must end; the first one counts.
func (k *call) alarm(why string) {
	select {
	case k.alarms <- why:
	default:
	}
}

// letGo ends the watch over the disk, and has the work folder counted behind the command.
func (k *call) letGo() {
	if k.unguard != nil {
		k.unguard()
		k.n.disk.Changed(k.c.Work)
	}
	for _, t := range k.trees {
		t.dir.Close()
	}
}

// within lowers what a single file may grow to where the disk has little room: the kernel itself keeps that.
func (n *ns) within(c *Command) {
	if s, ok := n.disk.Space(c.Work); ok {
		c.Limits.Disk = min(c.Limits.Disk, max(1<<20, s.Free-s.Floor-s.Reserve/2))
	}
}

// room asks the file system what is free.
func (t *writable) room() (bytes, files int64, ok bool) {
	var st unix.Statfs_t
	if unix.Fstatfs(int(t.dir.Fd()), &st) != nil {
		return 0, 0, false
	}
	return int64(st.Bavail) * int64(st.Bsize), int64(st.Ffree), true
}

// over says which limit the folder has grown past; empty: none.
func (t *writable) over(l Limits) string {
	if !t.measured {
		t.measured, t.base = true, t.measure(l)
	}
	free, spare, ok := t.room()
	if !ok {
		return ""
	}
	grown, more := t.first-free, t.spare-spare
	if grown > unseen*l.Disk {
		return "disk" // what has no name any more and is still open is in no folder to be walked
	}
	if t.full(t.base) {
		return "folder"
	}
	if t.base.More {
		switch {
		case grown > l.Disk:
			return "disk"
		case more > l.Files:
			return "files"
		}
		return ""
	}
	// Walk when the file system has lost enough to matter since the last walk, else once a second: others write there too.
	now := time.Now()
	if now.Before(t.next) && t.free-free < l.Disk/8 && more < l.Files/8 {
		return ""
	}
	u := t.measure(l)
	t.free, t.spare, t.next = free, spare, now.Add(max(time.Second, 20*time.Since(now)))
	switch {
	case t.full(u):
		return "folder"
	case u.More, u.Files-t.base.Files > l.Files:
		return "files"
	case u.Bytes-t.base.Bytes > l.Disk:
		return "disk"
	}
	return ""
}

// measure counts what the folder holds, as far as that matters.
func (t *writable) measure(l Limits) disk.Used {
	most := t.base.Files + l.Files
	switch {
	case t.total.Files > 0:
		most = t.total.Files
	case t.base.More:
		most = bigTree
	}
	return disk.Measure(t.dir, most, false)
}

func (t *writable) full(u disk.Used) bool {
	return t.total.Files > 0 && (u.More || u.Bytes > t.total.Bytes)
}

// refusal is why a command does not begin.
func refusal(err error) error { return fmt.Errorf("start a command: %w", err) }
