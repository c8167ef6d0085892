package sandbox

import (
	"bytes"
	"context"
	"io/fs"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	tick      = 10 * time.Millisecond // between two looks; each is a few system calls
	diskFloor = 256 << 20             // bytes that stay free on a disk for the gateway's own state
	unseen    = 4                     // times the limit by which a disk may lose room without the folders showing why
	smallTree = 2_000                 // entries that are counted before the start
	bigTree   = 50_000                // a tree with more is judged by what its file system says alone
)

// watch looks after what no limit of the kernel bounds, until ctx ends: memory where there is no cgroup, and the disk. It
// also serves the proxy's port.
func (k *call) watch(ctx context.Context, files []*os.File, alarms chan<- string, background *sync.WaitGroup) {
	if len(files) < 3 {
		closeAll(files)
		return
	}
	proc := files[0]
	kernel := &kernelMemory{proc: proc, mem: files[1:3]}
	if k.how.weak.HostRoot {
		kernel.mem = nil // they are the host's
	}
	if len(files) > 3 {
		background.Go(func() { k.n.serve(ctx, files[3]) })
	}
	background.Go(func() {
		defer closeAll(files[:3])
		t := time.NewTicker(tick)
		defer t.Stop()
		for rest := 0; ; rest-- {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
			}
			if k.box.group != nil && k.box.group.killed() {
				alarms <- "memory"
				return
			}
			if k.box.group == nil && !k.how.weak.NoMemory && rest <= 0 {
				began := time.Now()
				held := resident(proc, k.c.Limits.Memory)
				if held+kernel.holds(held, k.c.Limits.Memory) > k.c.Limits.Memory {
					alarms <- "memory"
					return
				}
				rest = int(10 * time.Since(began) / tick) // a tenth of a processor at most
			}
			for _, d := range k.disks {
				if why := d.over(k.c.Limits); why != "" && !k.how.weak.NoDisk {
					alarms <- why
					return
				}
			}
		}
	})
}

// serve lets the proxy take what connects to the port inside.
func (n *ns) serve(ctx context.Context, port *os.File) {
	l, err := net.FileListener(port)
	port.Close()
	if err == nil {
		err = n.way.ServeListener(ctx, l)
	}
	if err != nil {
		n.log.Warn("a sandbox's way to the proxy has broken", "err", err)
	}
}

// resident sums what all processes of a sandbox hold in memory, in bytes, by its /proc. Pages that several share, such as
// those of libraries, do not count; below limit the sum may be too high, and is not looked at closely.
func resident(proc *os.File, limit int64) int64 {
	if _, err := proc.Seek(0, 0); err != nil {
		return 0
	}
	names, err := proc.Readdirnames(-1)
	if err != nil {
		return 0
	}
	var pids []string
	for _, name := range names {
		if name[0] >= '1' && name[0] <= '9' && name != "1" {
			pids = append(pids, name)
		}
	}
	page := int64(os.Getpagesize())
	sum := func(one func(pid string) int64) (all int64) {
		for _, pid := range pids {
			all += one(pid)
		}
		return all
	}
	rough := sum(func(pid string) int64 {
		f := bytes.Fields(readAt(proc, pid+"/statm"))
		if len(f) < 2 {
			return 0
		}
		n, err := strconv.ParseInt(string(f[1]), 10, 64)
		if err != nil {
			return 0
		}
		return n * page
	})
	if rough <= limit {
		return rough
	}
	return sum(func(pid string) (n int64) {
		for line := range bytes.Lines(readAt(proc, pid+"/status")) {
			if f := bytes.Fields(line); len(f) > 1 && (string(f[0]) == "RssAnon:" || string(f[0]) == "RssShmem:") {
				kib, err := strconv.ParseInt(string(f[1]), 10, 64)
				if err == nil {
					n += kib << 10
				}
			}
		}
		return n
	})
}

// readAt reads a small file of /proc; nil when the process has gone.
func readAt(dir *os.File, name string) []byte {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	buf := make([]byte, 4096)
	n, err := unix.Read(fd, buf)
	if err != nil {
		return nil
	}
	return buf[:n]
}

// disk is one writable folder and what it held at the beginning.
type disk struct {
	dir      *os.File
	free     int64 // of its file system, bytes, when it was last walked
	spare    int64 // files, likewise
	first    int64 // free at the beginning
	base     used
	next     time.Time // not to be walked before
	measured bool
}

// used is what a folder holds: bytes on the disk and entries.
type used struct {
	bytes, files int64
	big          bool // not walked to its end
}

// openDisks opens the writable folders and counts what a small one holds. A big one is counted while the command runs: the
// start does not wait for it.
func openDisks(c *Command) (list []*disk) {
	hosts := []string{c.Work}
	for _, f := range c.Folders {
		if f.RW {
			hosts = append(hosts, f.Host)
		}
	}
	for _, h := range hosts {
		fd, err := unix.Openat2(unix.AT_FDCWD, h, &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
		if err != nil {
			continue // a single file: RLIMIT_FSIZE bounds it
		}
		d := &disk{dir: os.NewFile(uintptr(fd), h)}
		d.free, d.spare, _ = d.room()
		d.first = d.free
		d.base = usage(d.dir, smallTree)
		d.measured = !d.base.big
		list = append(list, d)
	}
	return list
}

// room asks the file system what is free.
func (d *disk) room() (bytes, files int64, ok bool) {
	var st unix.Statfs_t
	if unix.Fstatfs(int(d.dir.Fd()), &st) != nil {
		return 0, 0, false
	}
	return int64(st.Bavail) * int64(st.Bsize), int64(st.Ffree), true
}

// over says which limit the folder has grown past; empty: none.
func (d *disk) over(l Limits) string {
	if !d.measured {
		d.measured, d.base = true, usage(d.dir, bigTree)
	}
	free, spare, ok := d.room()
	if !ok {
		return ""
	}
	if free < diskFloor && d.first-free > 1<<20 {
		return "space"
	}
	grown, more := d.first-free, d.spare-spare
	if grown > unseen*l.Disk {
		return "disk" // what has no name any more and is still open is in no folder to be walked
	}
	if d.base.big {
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
	if now.Before(d.next) && d.free-free < l.Disk/8 && more < l.Files/8 {
		return ""
	}
	u := usage(d.dir, d.base.files+l.Files)
	d.free, d.spare, d.next = free, spare, now.Add(max(time.Second, 20*time.Since(now)))
	switch {
	case u.big:
		return "files"
	case u.bytes-d.base.bytes > l.Disk:
		return "disk"
	}
	return ""
}

// usage walks a tree, up to most entries, that is being changed by somebody hostile: by file descriptors, following no link, on one file system.
func usage(dir *os.File, most int64) (u used) {
	var st unix.Stat_t
	if unix.Fstat(int(dir.Fd()), &st) != nil {
		return u
	}
	fd, err := unix.Openat(int(dir.Fd()), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return u
	}
	walk(fd, uint64(st.Dev), 0, most, &u)
	return u
}

// maxDepth bounds the open folders of a walk.
const maxDepth = 128

func walk(fd int, dev uint64, depth int, most int64, u *used) {
	dir := os.NewFile(uintptr(fd), "work")
	defer dir.Close()
	for {
		list, err := dir.ReadDir(512)
		for _, e := range list {
			if u.files++; u.files > most {
				u.big = true
				return
			}
			var st unix.Stat_t
			if unix.Fstatat(fd, e.Name(), &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
				continue
			}
			u.bytes += st.Blocks * 512
			if e.Type()&fs.ModeDir == 0 || uint64(st.Dev) != dev {
				continue
			}
			if depth == maxDepth {
				u.big = true
				return
			}
			sub, err := unix.Openat(fd, e.Name(), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
			if err == nil {
				walk(sub, dev, depth+1, most, u)
			}
			if u.big {
				return
			}
		}
		if err != nil || len(list) == 0 {
			return // the end, or what can be read of it
		}
	}
}
