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

// beInit is the life of a sandbox's first process: build the walls, wait for the command, make room for it, lock itself in,
// start it, reap what is left, say how it ended. Its own end takes every process of the call along. When the gateway ends,
// whatever ended it, the control socket is at its end: then init ends too, while it waits here, or as soon as reap looks.
func beInit() {
	runtime.LockOSThread() // what is dropped below belongs to a thread, and the command is started from this one
	c := &inside{}
	if _, err := receive(walls, &c.Walls); err != nil {
		os.Exit(1)
	}
	if err := c.closeOthers(); err != nil { // what the gateway itself may have been started with
		fail("close files", err)
	}
	if step, err := c.build(); err != nil {
		fail(step, err)
	}
	fds, err := receive(room, &c.Spec)
	if err != nil {
		os.Exit(1)
	}
	if step, err := c.prepare(fds); errors.Is(err, errMoved) {
		say(SaidMoved, []byte(step))
		os.Exit(1)
	} else if err != nil {
		fail(step, err)
	}
	rules, err := c.rules()
	if err != nil {
		fail("landlock", err)
	}
	watch, locked := make(chan int), make(chan error)
	go c.reap(rules, watch, locked)
	if step, err := c.lock(rules, locked); err != nil {
		fail(step, err)
	}
	defaultSignals() // before there is anybody who could send one
	pid, err := c.start()
	if err != nil {
		say(SaidNoExec, []byte(err.Error()))
		os.Exit(0)
	}
	watch <- pid
	select {} // the thread stays: init must not lose the one that the command's parent is
}

// inside is a sandbox as its first process has it.
type inside struct {
	Walls
	Spec
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

// build makes what every command sees, with the rights that init begins with.
func (c *inside) build() (step string, err error) {
	if score, err := syscall.Open("/proc/self/oom_score_adj", syscall.O_WRONLY|syscall.O_CLOEXEC, 0); err == nil {
		_, _ = syscall.Write(score, []byte("1000")) // best effort: then the kernel chooses by size
		syscall.Close(score)
	}
	if err := syscall.Sethostname([]byte("sandbox")); err != nil {
		return "name the host", err
	}
	if !c.Weak.Has(HostRoot) {
		if step, err := buildRoot(&c.Walls); err != nil {
			return step, err
		}
	}
	if err := loopback(&c.Walls); err != nil {
		return "bring up the loopback", err
	}
	boundSockets(&c.Walls)
	return "", nil
}

// prepare adds what this command has of its own: its folders, its limits, its way to the proxy.
func (c *inside) prepare(fds []int) (step string, err error) {
	if !c.Weak.Has(HostRoot) {
		if step, err := c.furnish(fds); err != nil {
			return step, err
		}
	}
	// a second fence behind the filter: no user namespace in here
	if fd, err := syscall.Open("/proc/sys/user/max_user_namespaces", syscall.O_WRONLY|syscall.O_CLOEXEC, 0); err == nil && !c.Weak.Has(NoSeccomp) {
		_, _ = syscall.Write(fd, []byte("0")) // best effort: the filter refuses them too
	}
	proc, err := syscall.Open("/proc", syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return "open /proc", err
	}
	handed := []int{proc}
	for _, dir := range []string{"/tmp", "/dev/shm"} {
		fd, err := syscall.Open(dir, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
		if err != nil {
			return "open " + dir, err
		}
		handed = append(handed, fd)
	}
	if c.ProxyPort != 0 {
		l, err := listen(c.ProxyPort)
		if err != nil {
			return "listen for the proxy", err
		}
		handed = append(handed, l)
	}
	say(SaidReady, nil, handed...)
	return c.limit()
}

// limit sets the resource limits and closes what a command must not inherit.
func (c *inside) limit() (step string, err error) {
	for _, r := range c.Rlimits {
		if err := syscall.Setrlimit(r.Resource, &syscall.Rlimit{Cur: r.Value, Max: r.Value}); err != nil {
			return "set limit " + strconv.Itoa(r.Resource), err
		}
	}
	if err := c.closeOthers(); err != nil {
		return "close files", err
	}
	syscall.CloseOnExec(ControlFD)
	return "", nil
}

// closeOthers closes every descriptor behind the control socket. The runtime has none of its own there: nothing has run yet
// that would have started its poller.
func (c *inside) closeOthers() error {
	if c.Weak.Has(KeepFDs) {
		return nil
	}
	_, err := sys(sysCloseRange, ControlFD+1, 0xffffffff, 0)
	return err
}

// lock gives up what is left, in the order that each step allows the next.
func (c *inside) lock(rules int, locked <-chan error) (step string, err error) {
	if err := c.lockThread(rules); err != nil {
		return "lock the thread", err
	}
	if err := <-locked; err != nil {
		return "lock the watch", err
	}
	if err := c.limitProcesses(); err != nil { // now that the threads are there
		return "limit processes", err
	}
	if c.Nice != 0 {
		_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, c.Nice) // best effort; higher is always allowed
	}
	if !c.Weak.Has(KeepCaps) {
		head, none := capHeader{version: capVersion3}, [2]capData{}
		// The threads that do nothing need nothing either; a program that is linked with C does not let go of theirs.
		_, _, _ = syscall.AllThreadsSyscall(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&none)), 0)
	}
	if !c.Weak.Has(Dumpable) {
		if err := prctl(prSetDumpable, 0); err != nil {
			return "become undumpable", err
		}
	}
	if !c.Weak.Has(NoSeccomp) {
		if err := restrictCalls(c.Filter); err != nil {
			return "filter system calls", err
		}
	}
	return "", nil
}

// rules makes what Landlock allows.
func (c *inside) rules() (int, error) {
	if c.Weak.Has(NoLandlock) {
		return -1, nil
	}
	abi := LandlockABI()
	if abi == 0 {
		return -1, errors.New("the kernel has none")
	}
	return landlockRules(abi, c.grants())
}

// lockThread is the part of lock that counts for one thread: both threads of init that do anything go through it.
func (c *inside) lockThread(rules int) error {
	if !c.Weak.Has(KeepCaps) {
		if err := dropCaps(); err != nil {
			return wrap("capabilities", err)
		}
	}
	if !c.Weak.Has(NoNewPrivOff) {
		if err := prctl(prNoNewPrivs, 1); err != nil {
			return wrap("no_new_privs", err)
		}
	}
	if c.Weak.Has(NoLandlock) {
		return nil
	}
	if _, err := sys(sysLandlockRestrictSelf, uintptr(rules), 0); err != nil {
		return wrap("landlock", err)
	}
	return nil
}

// grants lists what Landlock allows.
func (c *inside) grants() []grant {
	if c.Weak.Has(HostRoot) || c.Weak.Has(RWSystem) {
		return []grant{{"/", mayAll}}
	}
	list := []grant{{"/", mayRead}, {"/tmp", mayMake}, {"/dev/shm", mayMake}}
	for _, dev := range devices() {
		list = append(list, grant{"/dev/" + dev, fsReadFile | fsWriteFile | fsTruncate | fsIoctlDev})
	}
	for _, m := range c.Mounts {
		if m.RW {
			list = append(list, grant{m.As, mayMake})
		}
	}
	return list
}

// limitProcesses counts init's own threads on top of what the command may have: they belong to the same user.
func (c *inside) limitProcesses() error {
	if c.Processes == 0 {
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
	n := uint64(c.Processes) + threads
	return syscall.Setrlimit(rlimitNproc, &syscall.Rlimit{Cur: n, Max: n})
}

// start runs the command from the locked thread.
func (c *inside) start() (pid int, err error) {
	file, err := lookPath(c.Argv[0], c.Env)
	if err != nil {
		return 0, err
	}
	pid, err = syscall.ForkExec(file, c.Argv, &syscall.ProcAttr{Dir: c.Dir, Env: c.Env, Files: []uintptr{0, 1, 2}})
	if err != nil {
		return 0, wrap(c.Argv[0], err)
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
func (c *inside) reap(rules int, watch <-chan int, locked chan<- error) {
	runtime.LockOSThread()
	locked <- c.lockThread(rules)
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
		if polled[0].revents != 0 && !c.Weak.Has(NoParent) {
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
			if !c.Weak.Has(NoReap) {
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
