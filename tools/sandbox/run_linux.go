package sandbox

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"parley/tools/sandbox/internal/cell"
)

// how a call is run: what only Probe and the tests of this package choose.
type how struct {
	self    string     // show this program there
	weak    weakness   // tests alone
	inherit []*os.File // tests alone: more files for init
	stdin   *os.File   // tests alone: in place of nothing
}

// startWithin bounds how long a sandbox may take to stand.
const startWithin = 20 * time.Second

func (n *ns) Run(ctx context.Context, c Command) (Outcome, error) {
	r := n.Last()
	if r.Tier == TierNone {
		return Outcome{}, fmt.Errorf("%w: %s", ErrUnavailable, strings.TrimPrefix(r.String(), "no exec: "))
	}
	return n.run(ctx, c, how{weak: n.weak})
}

// run is Run without asking what was proven.
func (n *ns) run(ctx context.Context, c Command, h how) (out Outcome, err error) {
	n.look()
	c.Limits = c.Limits.or(n.cfg.Limits).or(DefaultLimits())
	select {
	case n.slots <- struct{}{}:
		defer func() { <-n.slots }()
	case <-ctx.Done():
		return out, context.Cause(ctx)
	}
	s, files, err := n.plan(&c, h)
	defer closeAll(files)
	if err != nil {
		return out, err
	}
	k := &call{n: n, c: &c, s: s, how: h, number: n.calls.Add(1), began: time.Now()}
	if !h.weak.NoCleanup {
		defer k.cleanUp(ctx)
	}
	if err := k.open(); err != nil {
		return out, err
	}
	if err := k.start(); err != nil {
		return out, err
	}
	return k.wait(ctx, files)
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// call is one command from its start to its end. It is used by one goroutine; those that it starts get what they need.
type call struct {
	n      *ns
	c      *Command
	s      *cell.Spec
	how    how
	number uint64
	began  time.Time

	work    *os.Root // for the output's file
	disks   []*disk
	group   *group // nil: no cgroup
	out     *output
	reading *os.File // the command's output
	control *net.UnixConn
	ours    [3]*os.File // init's ends, until it has them
	process *os.Process
	outcome Outcome
	notice  []byte // what init has to say in place of the command
}

// open makes what belongs to the call.
func (k *call) open() (err error) {
	if k.work, err = os.OpenRoot(k.c.Work); err != nil {
		return fmt.Errorf("open the work folder: %w", err)
	}
	k.disks = openDisks(k.c)
	if k.n.groups != nil {
		if k.group, err = k.n.groups.make(k.c.Limits, k.how.weak); err != nil {
			return err
		}
	}
	name := strconv.FormatInt(k.began.UnixMilli(), 10) + "-" + strconv.FormatUint(k.number, 10) + ".txt"
	k.out = newOutput(k.c.Limits.Output, func() *spill { return openSpill(k.work, name) })
	k.out.whole = k.how.weak.NoCut
	if k.ours[0], err = os.Open(os.DevNull); err != nil {
		return err
	}
	if k.reading, k.ours[1], err = os.Pipe(); err != nil {
		return err
	}
	if k.n.root { // so that /dev/stderr can be opened by its name
		if err := k.ours[1].Chown(sandboxID, sandboxID); err != nil {
			return err
		}
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	k.ours[2] = os.NewFile(uintptr(pair[1]), "init")
	mine := os.NewFile(uintptr(pair[0]), "gateway")
	defer mine.Close()
	conn, err := net.FileConn(mine)
	if err != nil {
		return err
	}
	k.control = conn.(*net.UnixConn)
	return nil
}

// cleanUp leaves nothing of the call.
func (k *call) cleanUp(ctx context.Context) {
	closeAll(k.ours[:])
	if k.reading != nil {
		k.reading.Close()
	}
	if k.control != nil {
		k.control.Close()
	}
	if k.work != nil {
		k.work.Close()
	}
	for _, d := range k.disks {
		d.dir.Close()
	}
	if k.group != nil {
		if err := k.group.remove(context.WithoutCancel(ctx)); err != nil {
			k.n.log.Warn("a cgroup could not be removed", "err", err)
		}
	}
}

// start starts init.
func (k *call) start() (err error) {
	stdin := k.ours[0]
	if k.how.stdin != nil {
		stdin = k.how.stdin
	}
	attr := &os.ProcAttr{Dir: "/", Env: cell.Environ(), Files: append([]*os.File{stdin, k.ours[1], k.ours[1], k.ours[2]}, k.how.inherit...), Sys: k.attributes()}
	if k.how.weak.KeepEnv {
		attr.Env = append(os.Environ(), attr.Env...)
	}
	launch := func() error {
		var err error
		k.process, err = os.StartProcess("/proc/self/exe", []string{cell.RoleInit}, attr)
		return err
	}
	switch {
	case k.group == nil:
		err = launch()
	case k.group.version == 2:
		dir, oerr := os.Open(k.group.dirs[0])
		if oerr != nil {
			return oerr
		}
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, int(dir.Fd())
		err = launch()
		dir.Close()
	default:
		err = fromGroup(k.group, launch)
	}
	closeAll(k.ours[:])
	if err != nil {
		return fmt.Errorf("start a sandbox: %w", err)
	}
	// with autogroups niceness counts only inside a session: this is the session's own
	_ = os.WriteFile("/proc/"+strconv.Itoa(k.process.Pid)+"/autogroup", []byte(strconv.Itoa(k.s.Nice)), 0) // best effort
	return nil
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
func (k *call) attributes() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true}
	weak := k.how.weak
	a.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
	if !weak.HostPID {
		a.Cloneflags |= syscall.CLONE_NEWPID
	}
	if !weak.HostNet {
		a.Cloneflags |= syscall.CLONE_NEWNET
	}
	if !weak.HostIPC {
		a.Cloneflags |= syscall.CLONE_NEWIPC
	}
	uid, gid := os.Geteuid(), os.Getegid()
	if k.n.root {
		uid, gid = sandboxID, sandboxID
		a.Credential = &syscall.Credential{Uid: insideID, Gid: insideID}
		a.GidMappingsEnableSetgroups = true // to lose root's
	}
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: insideID, HostID: uid, Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: insideID, HostID: gid, Size: 1}}
	a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP, unix.CAP_NET_ADMIN, unix.CAP_SYS_RESOURCE}
	return a
}

// wait speaks with init, watches the command and ends it when it must end.
func (k *call) wait(ctx context.Context, files []*os.File) (Outcome, error) {
	var background sync.WaitGroup
	defer background.Wait()
	watching, stop := context.WithCancel(ctx)
	defer stop()

	reader := make(chan struct{})
	go func() { defer close(reader); k.out.drain(k.reading) }()
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	messages := make(chan message)
	go k.listen(messages)
	err := k.control.SetWriteDeadline(time.Now().Add(startWithin))
	if err == nil {
		err = sendSpec(k.control, k.s, fds)
	}
	if err == nil {
		err = k.follow(watching, messages, &background)
	}
	if err != nil || k.outcome.Killed != "" {
		_ = k.process.Kill() // it may be gone already
	}
	stop()
	_, werr := k.process.Wait()               // its end is the end of all
	_ = k.control.SetReadDeadline(time.Now()) // a socket knows deadlines
	for m := range messages {                 // what it said last, if nobody has listened
		closeAll(m.files)
	}
	k.join(reader)
	k.out.take(k.notice)
	k.out.end(&k.outcome)
	k.outcome.Took = time.Since(k.began)
	if k.group != nil && k.group.killed() {
		k.outcome.Killed = "memory"
	}
	return k.outcome, errors.Join(err, werr)
}

// join waits for the last of the output. Every process that could write is gone; in a sandbox that is weakened for a test
// one may be left, and then nobody waits for it.
func (k *call) join(reader <-chan struct{}) {
	select {
	case <-reader:
	case <-time.After(2 * time.Second):
		_ = k.reading.SetReadDeadline(time.Now()) // so does a pipe
		<-reader
	}
}

// listen hands on what init says until it ends.
func (k *call) listen(to chan<- message) {
	defer close(to)
	for {
		m, err := receive(k.control)
		if err != nil {
			closeAll(m.files)
			return
		}
		to <- m
	}
}

// follow returns when the command has ended or must end; then outcome says how. An error: it did not run.
func (k *call) follow(ctx context.Context, messages <-chan message, background *sync.WaitGroup) error {
	limit := time.NewTimer(startWithin)
	defer limit.Stop()
	alarms := make(chan string, 1)
	ready := false
	for {
		select {
		case m, ok := <-messages:
			switch {
			case !ok && !ready:
				return errors.New("start a sandbox: its first process ended early")
			case !ok:
				k.kill("lost") // or for want of memory: wait knows
				return nil
			case m.kind == cell.SaidFailed:
				return fmt.Errorf("start a sandbox: %s", m.body)
			case m.kind == cell.SaidNoExec:
				k.outcome.Code, k.notice = 127, append(m.body, '\n')
				return nil
			case m.kind == cell.SaidEnded && len(m.body) == 4:
				k.ended(syscall.WaitStatus(binary.LittleEndian.Uint32(m.body)))
				return nil
			case m.kind == cell.SaidReady:
				ready = true
				if !k.how.weak.NoTimeout {
					limit.Reset(k.c.Limits.Timeout)
				} else {
					limit.Stop()
				}
				k.watch(ctx, m.files, alarms, background)
			}
		case why := <-alarms:
			k.kill(why)
			return nil
		case <-limit.C:
			if !ready {
				return errors.New("start a sandbox: it did not stand in time")
			}
			k.outcome.TimedOut = true
			k.kill("timeout")
			return nil
		case <-ctx.Done():
			if !ready {
				return context.Cause(ctx)
			}
			k.kill("stopped")
			return nil
		}
	}
}

func (k *call) kill(why string) {
	k.outcome.Killed, k.outcome.Code, k.outcome.Signal = why, 128+int(unix.SIGKILL), "SIGKILL"
}

func (k *call) ended(status syscall.WaitStatus) {
	if status.Signaled() {
		k.outcome.Code, k.outcome.Signal = 128+int(status.Signal()), unix.SignalName(status.Signal())
		return
	}
	k.outcome.Code = status.ExitStatus()
}
