package sandbox

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// What the kernel holds for a sandbox beside the pages of its processes, where no cgroup counts it. Sockets and pipes are taken as
// full: what is in them is told by nothing that is quick to read, and a bomb opens them before it fills them.
const (
	socketBytes = 256 << 10 // in one socket: net.core.wmem_default with what goes along; the filter keeps it from being raised
	freeSockets = 256       // that are taken as empty, unless that is more than an eighth of the limit
	pipeBytes   = 64 << 10  // in a pipe, pipe(7), while the user has few of them
	pipesBytes  = 64 << 20  // in all of those: fs.pipe-user-pages-soft
	pipeLate    = 8 << 10   // in each further one
)

// kernelMemory is what tells of it: folders of the sandbox, which its init has handed out.
type kernelMemory struct {
	proc *os.File
	mem  []*os.File // /tmp and /dev/shm
}

// holds sums it up, in bytes, when the processes themselves have so much. It may be too high, but not once it is beyond the limit.
func (m *kernelMemory) holds(processes, limit int64) int64 {
	sum := m.files() + m.sockets(limit)
	fds, pids := m.opened()
	if rough := pipesOf(fds); processes+sum+rough <= limit {
		return sum + rough
	}
	return sum + pipesOf(m.pipes(pids))
}

func pipesOf(n int64) int64 { return min(n*pipeBytes, pipesBytes+n*pipeLate) }

// files is what is in the folders that are in memory.
func (m *kernelMemory) files() (sum int64) {
	for _, dir := range m.mem {
		var st unix.Statfs_t
		if unix.Fstatfs(int(dir.Fd()), &st) == nil && st.Type == unix.TMPFS_MAGIC {
			sum += int64(st.Blocks-st.Bfree) * int64(st.Bsize)
		}
	}
	return sum
}

// sockets is what those of the sandbox's network may hold, also those that are on their way through another one.
func (m *kernelMemory) sockets(limit int64) int64 {
	for line := range bytes.Lines(readAt(m.proc, "1/net/sockstat")) {
		if f := bytes.Fields(line); len(f) == 3 && string(f[0]) == "sockets:" {
			n, err := strconv.ParseInt(string(f[2]), 10, 64)
			if err != nil {
				return 0
			}
			return max(0, n-min(freeSockets, limit/8/socketBytes)) * socketBytes
		}
	}
	return 0
}

// opened counts the open files of all processes, which the size of the folder tells from Linux 6.2 on. Before that they are looked at.
func (m *kernelMemory) opened() (sum int64, pids []string) {
	if _, err := m.proc.Seek(0, 0); err != nil {
		return 0, nil
	}
	names, err := m.proc.Readdirnames(-1)
	if err != nil {
		return 0, nil
	}
	for _, name := range names {
		if name[0] < '1' || name[0] > '9' || name == "1" {
			continue
		}
		pids = append(pids, name)
		var st unix.Stat_t
		if unix.Fstatat(int(m.proc.Fd()), name+"/fd", &st, 0) != nil {
			continue
		}
		if st.Size == 0 {
			st.Size = 512 // RLIMIT_NOFILE: not told
		}
		sum += st.Size
	}
	return sum, pids
}

// pipes counts them, each once however many have it open.
func (m *kernelMemory) pipes(pids []string) int64 {
	seen := map[string]bool{}
	for _, pid := range pids {
		fd, err := unix.Openat(int(m.proc.Fd()), pid+"/fd", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		dir := os.NewFile(uintptr(fd), "fd")
		names, _ := dir.Readdirnames(-1) // what could be read of a process that ends
		buf := make([]byte, 64)
		for _, name := range names {
			if n, err := unix.Readlinkat(fd, name, buf); err == nil && strings.HasPrefix(string(buf[:n]), "pipe:") {
				seen[string(buf[:n])] = true
			}
		}
		dir.Close()
	}
	return int64(len(seen))
}
