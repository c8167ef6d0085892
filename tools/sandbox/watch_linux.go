package sandbox

import (
	"bytes"
	"context"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"parley/tools/sandbox/internal/cell"
)

const (
	tick = 10 * time.Millisecond // between two looks; each is a few system calls
)

// watch looks after what no limit of the kernel bounds, until ctx ends: memory where there is no cgroup, and what the
// writable folders grow by. It also serves the proxy's port.
func (k *call) watch(ctx context.Context, files []*os.File, background *sync.WaitGroup) {
	if len(files) < 3 {
		closeAll(files)
		return
	}
	proc := files[0]
	kernel := &kernelMemory{proc: proc, mem: files[1:3]}
	if k.how.weak.Has(cell.HostRoot) {
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
				k.alarm("memory")
				return
			}
			if k.box.group == nil && !k.how.weak.Has(cell.NoMemory) && rest <= 0 {
				began := time.Now()
				held := resident(proc, k.c.Limits.Memory)
				if held+kernel.holds(held, k.c.Limits.Memory) > k.c.Limits.Memory {
					k.alarm("memory")
					return
				}
				rest = int(10 * time.Since(began) / tick) // a tenth of a processor at most
			}
			for _, t := range k.trees {
				if why := t.over(k.c.Limits); why != "" && !k.how.weak.Has(cell.NoDisk) {
					k.alarm(why)
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
		n.log.Warn("sandbox proxy connection broken", "err", err)
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
