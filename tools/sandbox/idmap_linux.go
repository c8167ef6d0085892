package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"parley/tools/sandbox/internal/cell"
)

// As root the gateway gives its sandboxes a user of their own on the host, and shows them its folders through mounts that
// map the owner of the folder to that user and back (mount_setattr(2), "ID-mapped mounts"): on disk everything stays the
// owner's. Otherwise a sandbox belongs to the gateway's own user.

// sandboxID is the user and group of sandboxes on the host when the gateway is root; systemd leaves the numbers from
// 65520 to 65533 to nobody (UIDS-GIDS.md), and a container that maps 65,536 ids has it.
const sandboxID = 65530

// insideID is the user and group inside.
const insideID = 1000

// mapper keeps the user namespaces that ID-mapped mounts take their map from, one for each owner met.
type mapper struct {
	mu   sync.Mutex
	have map[[2]int]*os.File
}

// space is the namespace that maps an owner to the sandbox's user.
func (m *mapper) space(uid, gid int) (*os.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	owner := [2]int{uid, gid}
	if f := m.have[owner]; f != nil {
		return f, nil
	}
	f, err := newSpace(uid, gid)
	if err != nil {
		return nil, err
	}
	if m.have == nil {
		m.have = map[[2]int]*os.File{}
	}
	m.have[owner] = f
	return f, nil
}

// newSpace takes the namespace of a process that lives only as long as that needs.
func newSpace(uid, gid int) (f *os.File, err error) {
	in, hold, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer hold.Close()
	defer in.Close()
	p, err := os.StartProcess("/proc/self/exe", []string{cell.RoleHolder}, &os.ProcAttr{Files: []*os.File{in}, Env: cell.Environ(), Sys: &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: sandboxID, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: gid, HostID: sandboxID, Size: 1}},
	}})
	if err != nil {
		return nil, fmt.Errorf("make a user namespace: %w", err)
	}
	f, err = os.Open("/proc/" + strconv.Itoa(p.Pid) + "/ns/user")
	hold.Close()
	_, werr := p.Wait()
	return f, errors.Join(err, werr)
}

// mapped opens a folder as a detached mount that the sandbox's user may use as its owner would. It follows no link.
func (m *mapper) mapped(host string, rw bool) (f *os.File, dir bool, err error) {
	at, err := unix.Openat2(unix.AT_FDCWD, host, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS})
	if err != nil {
		return nil, false, err
	}
	defer unix.Close(at)
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return nil, false, err
	}
	fd, err := unix.OpenTree(at, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	if err != nil {
		return nil, false, fmt.Errorf("copy the mount: %w", err)
	}
	f = os.NewFile(uintptr(fd), host)
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if !rw {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	if st.Uid != sandboxID {
		space, err := m.space(int(st.Uid), int(st.Gid))
		if err != nil {
			f.Close()
			return nil, false, err
		}
		attr.Attr_set |= unix.MOUNT_ATTR_IDMAP
		attr.Userns_fd = uint64(space.Fd())
	}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		f.Close()
		return nil, false, fmt.Errorf("map the owner of the folder (its file system may not know how): %w", err)
	}
	return f, st.Mode&unix.S_IFMT == unix.S_IFDIR, nil
}

// privileged says whether the gateway is root over all of the machine's mounts: root of the first user namespace, or of
// one that maps the sandbox's own user.
func privileged() bool {
	if os.Geteuid() != 0 {
		return false
	}
	data, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) != 3 {
			continue
		}
		first, err1 := strconv.Atoi(f[0])
		count, err2 := strconv.Atoi(f[2])
		if err1 == nil && err2 == nil && first <= sandboxID && sandboxID < first+count {
			return true
		}
	}
	return false
}
