package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// armed is set by Init. Without it a program that starts itself as a sandbox would start as what it is, and again. It is
// a fact about the process, as os.Args is.
var armed atomic.Bool

// Init takes over the process when it was started as part of a sandbox, and then never returns. Every program that
// calls New, tests included, calls it before anything else: it must find no goroutine of the program's own.
func Init() {
	armed.Store(true)
	if len(os.Args) == 0 {
		return
	}
	switch path.Base(os.Args[0]) {
	case roleInit:
		beInit()
	case roleHolder:
		// The gateway reads this process's user namespace while it waits here for the end of its input.
		_, _ = unix.Read(0, make([]byte, 1)) // whatever ends the wait ends the process
		leave(0)
	case roleProbe:
		leave(uintptr(probeInside()))
	}
}

// beInit is the life of a sandbox's first process: build the walls, lock itself in, start the command, reap what is left,
// say how it ended. Its own end takes every process of the call along.
func beInit() {
	runtime.LockOSThread() // what is dropped below belongs to a thread, and the command is started from this one
	runtime.GOMAXPROCS(4)  // so that raw system calls below never hold the only place to run
	debug.SetGCPercent(-1) // it lives short and must not need a thread once the processes are counted
	s, fds, err := receiveSpec()
	if err != nil {
		os.Exit(1)
	}
	step, err := prepare(s, fds)
	if err != nil {
		fail(step, err)
	}
	watch := make(chan int)
	locked := make(chan error)
	go reap(s, watch, locked)
	if err := <-locked; err != nil {
		fail("lock the watch", err)
	}
	if step, err := lock(s); err != nil {
		fail(step, err)
	}
	pid, err := start(s)
	if err != nil {
		say(saidNoExec, []byte(err.Error()))
		os.Exit(0)
	}
	defaultSignals()
	watch <- pid
	select {} // the thread stays: init must not lose the one that the command's parent is
}

// say gives the gateway a message; what cannot be said shows there as an early end.
func say(kind byte, body []byte, fds ...int) {
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	_ = unix.Sendmsg(controlFD, pack(kind, body), rights, nil, unix.MSG_NOSIGNAL)
}

func fail(step string, err error) {
	say(saidFailed, []byte(step+": "+err.Error()))
	os.Exit(1)
}

// prepare does what needs the rights that init begins with: the view of files, the network, the limits.
func prepare(s *spec, fds []int) (step string, err error) {
	score, err := unix.Open("/proc/self/oom_score_adj", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		_, _ = unix.Write(score, []byte("1000")) // best effort: then the kernel chooses by size
	}
	handed := []int(nil)
	if err := unix.Sethostname([]byte("sandbox")); err != nil {
		return "name the host", err
	}
	if !s.Weak.HostRoot {
		if step, err := buildRoot(s, fds); err != nil {
			return step, err
		}
	}
	if err := loopback(s); err != nil {
		return "bring up the loopback", err
	}
	// a second fence behind the filter: no user namespace in here
	if fd, err := unix.Open("/proc/sys/user/max_user_namespaces", unix.O_WRONLY|unix.O_CLOEXEC, 0); err == nil && !s.Weak.NoSeccomp {
		_, _ = unix.Write(fd, []byte("0")) // best effort: the filter refuses them too
	}
	proc, err := unix.Open("/proc", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "open /proc", err
	}
	handed = append(handed, proc)
	if s.ProxyPort != 0 {
		l, err := listen(s.ProxyPort)
		if err != nil {
			return "listen for the proxy", err
		}
		handed = append(handed, l)
	}
	say(saidReady, nil, handed...)
	return limit(s)
}

// limit sets the resource limits and closes what a command must not inherit.
func limit(s *spec) (step string, err error) {
	for _, r := range s.Rlimits {
		if err := unix.Setrlimit(r.Resource, &unix.Rlimit{Cur: r.Value, Max: r.Value}); err != nil {
			return fmt.Sprintf("set limit %d", r.Resource), err
		}
	}
	if s.Weak.KeepFDs {
		return "", nil
	}
	if err := closeOthers(); err != nil {
		return "close files", err
	}
	unix.CloseOnExec(controlFD)
	return "", nil
}

// closeOthers closes every descriptor behind the control pipe but those of the runtime's own poller, which some package
// may have started before main: the runtime ends a process whose poller is gone. They are this process's, made by it,
// and end when the command is executed.
func closeOthers() error {
	from := uint(controlFD + 1)
	for fd := from; fd < 64; fd++ {
		link := make([]byte, 64)
		n, err := unix.Readlink("/proc/self/fd/"+strconv.Itoa(int(fd)), link)
		if name := string(link[:max(n, 0)]); err != nil || name != "anon_inode:[eventpoll]" && name != "anon_inode:[eventfd]" {
			continue
		}
		unix.CloseOnExec(int(fd))
		if fd > from {
			if err := unix.CloseRange(from, fd-1, 0); err != nil {
				return err
			}
		}
		from = fd + 1
	}
	return unix.CloseRange(from, ^uint(0)>>1&0xffffffff, 0)
}

// lock gives up what is left, in the order that each step allows the next.
func lock(s *spec) (step string, err error) {
	if err := limitProcesses(s); err != nil {
		return "limit processes", err
	}
	if s.Nice != 0 {
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, s.Nice) // best effort; higher is always allowed
	}
	if err := lockThread(s); err != nil {
		return "lock the thread", err
	}
	if !s.Weak.KeepCaps {
		head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		// The threads that do nothing need nothing either; a program that is linked with C does not let go of theirs.
		_, _, _ = syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&none)), 0)
	}
	if !s.Weak.Dumpable {
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
			return "become undumpable", err
		}
	}
	if !s.Weak.NoSeccomp {
		if err := restrictCalls(s.Bounded); err != nil {
			return "filter system calls", err
		}
	}
	return "", nil
}

// lockThread is the part of lock that counts for one thread: both threads of init that do anything go through it.
func lockThread(s *spec) error {
	if !s.Weak.KeepCaps {
		if err := dropCaps(); err != nil {
			return fmt.Errorf("capabilities: %w", err)
		}
	}
	if !s.Weak.NoNewPrivOff {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("no_new_privs: %w", err)
		}
	}
	if s.Weak.NoLandlock {
		return nil
	}
	abi := landlockABI()
	if abi == 0 {
		return errors.New("landlock: the kernel has none")
	}
	if err := restrictFiles(abi, grantsOf(s)); err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	return nil
}

// grantsOf lists what Landlock allows.
func grantsOf(s *spec) []grant {
	if s.Weak.HostRoot || s.Weak.RWSystem {
		return []grant{{"/", mayAll}}
	}
	list := []grant{{"/", mayRead}, {"/tmp", mayMake}, {"/dev/shm", mayMake}}
	for _, dev := range devices() {
		list = append(list, grant{"/dev/" + dev, unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV})
	}
	for _, m := range s.Mounts {
		if m.RW {
			list = append(list, grant{m.As, mayMake})
		}
	}
	return list
}

// limitProcesses counts init's own threads on top of what the command may have: they belong to the same user.
func limitProcesses(s *spec) error {
	if s.Processes == 0 {
		return nil
	}
	threads := uint64(16)
	if fd, err := unix.Open("/proc/self/task", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err == nil {
		buf := make([]byte, 8<<10)
		if n, err := unix.ReadDirent(fd, buf); err == nil {
			_, count, _ := unix.ParseDirent(buf[:n], -1, nil)
			threads = uint64(count)
		}
		unix.Close(fd)
	}
	n := uint64(s.Processes) + threads
	return unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: n, Max: n})
}

// start runs the command from the locked thread.
func start(s *spec) (pid int, err error) {
	file, err := lookPath(s.Argv[0], s.Env)
	if err != nil {
		return 0, err
	}
	pid, err = syscall.ForkExec(file, s.Argv, &syscall.ProcAttr{Dir: s.Dir, Env: s.Env, Files: []uintptr{0, 1, 2}})
	if err != nil {
		return 0, fmt.Errorf("%s: %w", s.Argv[0], err)
	}
	return pid, nil
}

// lookPath finds a program in the PATH that the command will have.
func lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	dirs := ""
	for _, e := range env {
		if p, ok := strings.CutPrefix(e, "PATH="); ok {
			dirs = p
		}
	}
	for d := range strings.SplitSeq(dirs, ":") {
		if p := d + "/" + name; strings.HasPrefix(d, "/") && unix.Access(p, unix.X_OK) == nil {
			return p, nil
		}
	}
	return "", fmt.Errorf("%s: not found", name)
}

// defaultSignals takes the Go runtime's handlers away: what has the default action does not reach the first process of a
// PID namespace from inside (pid_namespaces(7)), and a handler would let a command make init dump its stacks or end.
func defaultSignals() {
	var action [4]uint64 // struct sigaction of the kernel: SIG_DFL, no flags, nothing blocked
	for sig := uintptr(1); sig <= 64; sig++ {
		_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0) // KILL and STOP cannot be set
	}
}

// pollFd is struct pollfd.
type pollFd struct {
	fd      int32
	events  int16
	revents int16
}

// reap waits for the command and whatever it left behind, on a thread of its own that keeps init's priority, and ends
// init. From the moment the command runs it allocates nothing and enters no system call through the scheduler, since a
// command that has taken all processes would keep the runtime from starting a thread.
func reap(s *spec, watch <-chan int, locked chan<- error) {
	runtime.LockOSThread()
	locked <- lockThread(s)
	pid := <-watch
	fd, _, errno := unix.RawSyscall(unix.SYS_PIDFD_OPEN, uintptr(pid), 0, 0)
	if errno != 0 {
		fd = ^uintptr(0) // poll passes over it: then the tick finds the end
	}
	polled := [2]pollFd{{fd: controlFD, events: unix.POLLIN | unix.POLLRDHUP}, {fd: int32(fd), events: unix.POLLIN}}
	tick := unix.Timespec{Nsec: 20e6}
	message := [9]byte{saidEnded, 4}
	ended := false
	for {
		wait := tick // the kernel writes what is left into it
		_, _, _ = unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&polled)), 2, uintptr(unsafe.Pointer(&wait)), 0, 0, 0)
		if polled[0].revents != 0 && !s.Weak.NoParent {
			leave(1) // the gateway has ended
		}
		for {
			var status uint32
			got, _, errno := unix.RawSyscall6(unix.SYS_WAIT4, ^uintptr(0), uintptr(unsafe.Pointer(&status)), unix.WNOHANG, 0, 0, 0)
			if errno == unix.ECHILD && ended {
				leave(0)
			}
			if errno != 0 || int(got) <= 0 {
				break
			}
			if int(got) != pid {
				continue
			}
			binary.LittleEndian.PutUint32(message[5:], status)
			_, _, _ = unix.RawSyscall(unix.SYS_WRITE, controlFD, uintptr(unsafe.Pointer(&message)), uintptr(len(message)))
			if !s.Weak.NoReap {
				leave(0)
			}
			ended, polled[1].fd = true, -1
		}
	}
}

// leave ends the process without the runtime.
func leave(code uintptr) {
	for {
		_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, code, 0, 0)
	}
}
