package cell

import (
	"errors"
	"os"
	"path"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"
)

// init takes over the process when it was started as part of a sandbox, and then never returns. That it is an init is the
// point of the package: main would be too late, as its comment says.
func init() {
	if len(os.Args) == 0 {
		return
	}
	switch path.Base(os.Args[0]) {
	case RoleInit:
		beInit()
	case RoleHolder:
		// The gateway reads this process's user namespace while it waits here for the end of its input.
		_, _ = syscall.Read(0, make([]byte, 1)) // whatever ends the wait ends the process
		leave(0)
	}
}

// Environ is what the gateway gives init as its whole environment: settings of the Go runtime. It collects no garbage, since
// it lives short and must not need a thread once the processes are counted; and has as many places to run as it needs, so
// that raw system calls never hold the only one.
func Environ() []string { return []string{"GOGC=off", "GOMAXPROCS=4"} }

// beInit is the life of a sandbox's first process: build the walls, lock itself in, start the command, reap what is left,
// say how it ended. Its own end takes every process of the call along.
func beInit() {
	runtime.LockOSThread() // what is dropped below belongs to a thread, and the command is started from this one
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
		say(SaidNoExec, []byte(err.Error()))
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
		rights = syscall.UnixRights(fds...)
	}
	_ = syscall.Sendmsg(ControlFD, Pack(kind, body), rights, nil, syscall.MSG_NOSIGNAL)
}

func fail(step string, err error) {
	say(SaidFailed, []byte(step+": "+err.Error()))
	os.Exit(1)
}

// prepare does what needs the rights that init begins with: the view of files, the network, the limits.
func prepare(s *Spec, fds []int) (step string, err error) {
	score, err := syscall.Open("/proc/self/oom_score_adj", syscall.O_WRONLY|syscall.O_CLOEXEC, 0)
	if err == nil {
		_, _ = syscall.Write(score, []byte("1000")) // best effort: then the kernel chooses by size
	}
	handed := []int(nil)
	if err := syscall.Sethostname([]byte("sandbox")); err != nil {
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
	if fd, err := syscall.Open("/proc/sys/user/max_user_namespaces", syscall.O_WRONLY|syscall.O_CLOEXEC, 0); err == nil && !s.Weak.NoSeccomp {
		_, _ = syscall.Write(fd, []byte("0")) // best effort: the filter refuses them too
	}
	proc, err := syscall.Open("/proc", syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
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
	say(SaidReady, nil, handed...)
	return limit(s)
}

// limit sets the resource limits and closes what a command must not inherit.
func limit(s *Spec) (step string, err error) {
	for _, r := range s.Rlimits {
		if err := syscall.Setrlimit(r.Resource, &syscall.Rlimit{Cur: r.Value, Max: r.Value}); err != nil {
			return "set limit " + strconv.Itoa(r.Resource), err
		}
	}
	if s.Weak.KeepFDs {
		return "", nil
	}
	if err := closeOthers(); err != nil {
		return "close files", err
	}
	syscall.CloseOnExec(ControlFD)
	return "", nil
}

// closeOthers closes every descriptor behind the control socket. The runtime has none of its own there: nothing has run yet
// that would have started its poller.
func closeOthers() error {
	_, err := sys(sysCloseRange, ControlFD+1, 0xffffffff, 0)
	return err
}

// lock gives up what is left, in the order that each step allows the next.
func lock(s *Spec) (step string, err error) {
	if err := limitProcesses(s); err != nil {
		return "limit processes", err
	}
	if s.Nice != 0 {
		_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, s.Nice) // best effort; higher is always allowed
	}
	if err := lockThread(s); err != nil {
		return "lock the thread", err
	}
	if !s.Weak.KeepCaps {
		head, none := capHeader{version: capVersion3}, [2]capData{}
		// The threads that do nothing need nothing either; a program that is linked with C does not let go of theirs.
		_, _, _ = syscall.AllThreadsSyscall(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&none)), 0)
	}
	if !s.Weak.Dumpable {
		if err := prctl(prSetDumpable, 0); err != nil {
			return "become undumpable", err
		}
	}
	if !s.Weak.NoSeccomp {
		if err := restrictCalls(s.Filter); err != nil {
			return "filter system calls", err
		}
	}
	return "", nil
}

// lockThread is the part of lock that counts for one thread: both threads of init that do anything go through it.
func lockThread(s *Spec) error {
	if !s.Weak.KeepCaps {
		if err := dropCaps(); err != nil {
			return wrap("capabilities", err)
		}
	}
	if !s.Weak.NoNewPrivOff {
		if err := prctl(prNoNewPrivs, 1); err != nil {
			return wrap("no_new_privs", err)
		}
	}
	if s.Weak.NoLandlock {
		return nil
	}
	abi := LandlockABI()
	if abi == 0 {
		return errors.New("landlock: the kernel has none")
	}
	if err := restrictFiles(abi, grantsOf(s)); err != nil {
		return wrap("landlock", err)
	}
	return nil
}

// grantsOf lists what Landlock allows.
func grantsOf(s *Spec) []grant {
	if s.Weak.HostRoot || s.Weak.RWSystem {
		return []grant{{"/", mayAll}}
	}
	list := []grant{{"/", mayRead}, {"/tmp", mayMake}, {"/dev/shm", mayMake}}
	for _, dev := range devices() {
		list = append(list, grant{"/dev/" + dev, fsReadFile | fsWriteFile | fsTruncate | fsIoctlDev})
	}
	for _, m := range s.Mounts {
		if m.RW {
			list = append(list, grant{m.As, mayMake})
		}
	}
	return list
}

// limitProcesses counts init's own threads on top of what the command may have: they belong to the same user.
func limitProcesses(s *Spec) error {
	if s.Processes == 0 {
		return nil
	}
	threads := uint64(16)
	if fd, err := syscall.Open("/proc/self/task", syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0); err == nil {
		buf := make([]byte, 8<<10)
		if n, err := syscall.ReadDirent(fd, buf); err == nil {
			_, count, _ := syscall.ParseDirent(buf[:n], -1, nil)
			threads = uint64(count)
		}
		syscall.Close(fd)
	}
	n := uint64(s.Processes) + threads
	return syscall.Setrlimit(rlimitNproc, &syscall.Rlimit{Cur: n, Max: n})
}

// start runs the command from the locked thread.
func start(s *Spec) (pid int, err error) {
	file, err := lookPath(s.Argv[0], s.Env)
	if err != nil {
		return 0, err
	}
	pid, err = syscall.ForkExec(file, s.Argv, &syscall.ProcAttr{Dir: s.Dir, Env: s.Env, Files: []uintptr{0, 1, 2}})
	if err != nil {
		return 0, wrap(s.Argv[0], err)
	}
	return pid, nil
}

// lookPath finds a program in the PATH that the command will have.
func lookPath(name string, env []string) (string, error) {
	if _, _, is := cut(name, '/'); is {
		return name, nil
	}
	dirs := ""
	for _, e := range env {
		if k, v, ok := cut(e, '='); ok && k == "PATH" {
			dirs = v
		}
	}
	for more := true; more; {
		var d string
		d, dirs, more = cut(dirs, ':')
		if p := d + "/" + name; d != "" && d[0] == '/' && syscall.Access(p, 1) == nil {
			return p, nil
		}
	}
	return "", errors.New(name + ": not found")
}

// defaultSignals takes the Go runtime's handlers away: what has the default action does not reach the first process of a
// PID namespace from inside (pid_namespaces(7)), and a handler would let a command make init dump its stacks or end.
func defaultSignals() {
	var action [4]uint64 // struct sigaction of the kernel: SIG_DFL, no flags, nothing blocked
	for sig := uintptr(1); sig <= 64; sig++ {
		_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0) // KILL and STOP cannot be set
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
func reap(s *Spec, watch <-chan int, locked chan<- error) {
	runtime.LockOSThread()
	locked <- lockThread(s)
	pid := <-watch
	fd, _, errno := syscall.RawSyscall(sysPidfdOpen, uintptr(pid), 0, 0)
	if errno != 0 {
		fd = ^uintptr(0) // poll passes over it: then the tick finds the end
	}
	polled := [2]pollFd{{fd: ControlFD, events: pollIn | pollRdhup}, {fd: int32(fd), events: pollIn}}
	tick := syscall.Timespec{Nsec: 20e6}
	message := [9]byte{SaidEnded, 4}
	ended := false
	for {
		wait := tick // the kernel writes what is left into it
		_, _, _ = syscall.RawSyscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&polled)), 2, uintptr(unsafe.Pointer(&wait)), 0, 0, 0)
		if polled[0].revents != 0 && !s.Weak.NoParent {
			leave(1) // the gateway has ended
		}
		for {
			var status uint32
			got, _, errno := syscall.RawSyscall6(syscall.SYS_WAIT4, ^uintptr(0), uintptr(unsafe.Pointer(&status)), syscall.WNOHANG, 0, 0, 0)
			if errno == syscall.ECHILD && ended {
				leave(0)
			}
			if errno != 0 || int(got) <= 0 {
				break
			}
			if int(got) != pid {
				continue
			}
			put32(message[5:], status)
			_, _, _ = syscall.RawSyscall(syscall.SYS_WRITE, ControlFD, uintptr(unsafe.Pointer(&message)), uintptr(len(message)))
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
		_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, code, 0, 0)
	}
}
