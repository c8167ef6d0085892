package sandbox

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"parley/tools/sandbox/internal/cell"
)

// box is the first process of a sandbox, started and waiting for its spec, with what belongs to it. It knows nothing yet of
// the command that it will have, and has only one. It is used by one goroutine at a time.
//
// It ends when its end of the control socket is closed, by whatever ends the gateway: also before it has its spec, and at
// every step behind that.
type box struct {
	n       *ns
	weak    switches
	group   *group   // nil: no cgroup; its limits are the command's, and are set when it comes
	reading *os.File // the command's output
	control *net.UnixConn
	process *os.Process
	mounts  int // a file that tells when the host's mounts change; below 0: that cannot be told
}

// newBox starts one. After an error nothing of it stands.
func (n *ns) newBox(h how) (*box, error) {
	n.look()
	b := &box{n: n, weak: h.weak, mounts: -1}
	if err := b.open(h); err != nil {
		b.end()
		return nil, err
	}
	return b, nil
}

// open makes what belongs to the box, and starts its process.
func (b *box) open(h how) (err error) {
	var theirs [3]*os.File // input, output, control
	defer func() { closeAll(theirs[:]) }()
	if b.n.groups != nil {
		if b.group, err = b.n.groups.make(); err != nil {
			return err
		}
	}
	// Before init gets its copy of them. No os.File: Go's own poller would take the news away.
	if b.mounts, err = unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		b.mounts = -1
	}
	if theirs[0], err = os.Open(os.DevNull); err != nil {
		return err
	}
	if b.reading, theirs[1], err = os.Pipe(); err != nil {
		return err
	}
	if b.n.root { // so that /dev/stderr can be opened by its name
		if err := theirs[1].Chown(sandboxID, sandboxID); err != nil {
			return err
		}
	}
	if b.control, theirs[2], err = socketPair(); err != nil {
		return err
	}
	stdin := theirs[0]
	if h.stdin != nil {
		stdin = h.stdin
	}
	w := cell.Walls{UID: insideID, Weak: h.weak, Nice: niceFor(h.weak)}
	if !h.weak.Has(cell.NoSeccomp) {
		if w.Filter, err = b.n.filter(b.n.groups != nil); err != nil {
			return err
		}
	}
	if err := b.start(append([]*os.File{stdin, theirs[1], theirs[1], theirs[2]}, h.inherit...)); err != nil {
		return err
	}
	_, _ = b.control.Write(w.Message()) // it fits into an empty socket; that init has ended is found when it is to say something
	return nil
}

func socketPair() (*net.UnixConn, *os.File, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	theirs := os.NewFile(uintptr(pair[1]), "init")
	mine := os.NewFile(uintptr(pair[0]), "gateway")
	defer mine.Close()
	conn, err := net.FileConn(mine)
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return conn.(*net.UnixConn), theirs, nil
}

// start starts init with its files.
func (b *box) start(files []*os.File) (err error) {
	attr := &os.ProcAttr{Dir: "/", Env: cell.Environ(), Files: files, Sys: b.attributes()}
	if b.weak.Has(cell.KeepEnv) {
		attr.Env = append(os.Environ(), attr.Env...)
	}
	launch := func() error {
		var err error
		b.process, err = os.StartProcess("/proc/self/exe", []string{cell.RoleInit}, attr)
		return err
	}
	switch {
	case b.group == nil:
		err = launch()
	case b.group.version == 2:
		dir, oerr := os.Open(b.group.dirs[0])
		if oerr != nil {
			return oerr
		}
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, int(dir.Fd())
		err = launch()
		dir.Close()
	default:
		err = fromGroup(b.group, launch)
	}
	if err != nil {
		return fmt.Errorf("start a sandbox: %w", err)
	}
	if nice := niceFor(b.weak); nice > 0 { // with autogroups niceness counts only inside a session: this is the session's own
		_ = os.WriteFile("/proc/"+strconv.Itoa(b.process.Pid)+"/autogroup", []byte(strconv.Itoa(nice)), 0) // best effort
	}
	return nil
}

// niceFor is the niceness that a box is told to take; 0: it keeps the gateway's.
func niceFor(weak switches) int {
	if weak.Has(cell.NoNice) {
		return 0
	}
	return niceness
}

// fit sets what the command has and the box did not know.
func (b *box) fit(l Limits) error {
	if b.group == nil {
		return nil
	}
	return b.group.limit(l, b.weak)
}

// stale says that the host's mounts have changed since the box was started: it has a copy of the old ones.
func (b *box) stale() bool {
	if b.mounts < 0 {
		return true
	}
	p := []unix.PollFd{{Fd: int32(b.mounts), Events: unix.POLLPRI}}
	n, err := unix.Poll(p, 0)
	return err != nil || n > 0 && p[0].Revents&(unix.POLLPRI|unix.POLLERR) != 0 // proc_pid_mounts(5)
}

// kill ends its processes, all of them, and waits until they have ended.
func (b *box) kill() error {
	if b.process == nil {
		return nil
	}
	_ = b.process.Kill() // it may be gone already
	_, err := b.process.Wait()
	b.process = nil
	return err
}

// end leaves nothing of it. Twice is fine.
func (b *box) end() {
	_ = b.kill() // what is left to say of it is said by wait
	if b.reading != nil {
		b.reading.Close()
	}
	if b.mounts >= 0 {
		unix.Close(b.mounts)
		b.mounts = -1
	}
	if b.control != nil {
		b.control.Close()
	}
	if b.group != nil {
		if err := b.group.remove(); err != nil {
			b.n.log.Warn("a cgroup could not be removed", "err", err)
		}
	}
}

// fromGroup runs f on a thread that is in the group and is thrown away afterwards. The first thread of the process cannot
// be: what the whole process takes is counted where that one is.
func fromGroup(g *group, f func() error) error {
	done := make(chan error)
	var on func()
	on = func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if unix.Gettid() == unix.Getpid() {
			next := make(chan struct{})
			go func() { defer close(next); on() }()
			<-next
			runtime.UnlockOSThread()
			return
		}
		err := g.join()
		if err == nil {
			err = f()
		}
		done <- err
	}
	go on()
	return <-done
}

// attributes says into which namespaces init is born, and as whom.
func (b *box) attributes() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true}
	weak := b.weak
	a.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
	if !weak.Has(cell.HostPID) {
		a.Cloneflags |= syscall.CLONE_NEWPID
	}
	if !weak.Has(cell.HostNet) {
		a.Cloneflags |= syscall.CLONE_NEWNET
	}
	if !weak.Has(cell.HostIPC) {
		a.Cloneflags |= syscall.CLONE_NEWIPC
	}
	uid, gid := os.Geteuid(), os.Getegid()
	if b.n.root {
		uid, gid = sandboxID, sandboxID
		a.Credential = &syscall.Credential{Uid: insideID, Gid: insideID}
		a.GidMappingsEnableSetgroups = true // to lose root's
	}
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: insideID, HostID: uid, Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: insideID, HostID: gid, Size: 1}}
	a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP, unix.CAP_NET_ADMIN, unix.CAP_SYS_RESOURCE}
	return a
}
