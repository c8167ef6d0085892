package sandbox

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"parley/tools/sandbox/internal/cell"
	"parley/workspace"
	"parley/workspace/tree"
)

// how a call is run: what only Probe and the tests of this package choose.
type how struct {
	self    string     // show this program there
	weak    switches   // tests alone
	trial   bool       // the self-test, which writes next to nothing and must not fail for want of space
	inherit []*os.File // tests alone: more files for init
	stdin   *os.File   // tests alone: in place of nothing

	pins map[string][]workspace.Pin // by the folder's name: what the command may not write
}

// notBegun is why a sandbox could not be made: nothing of the command has run.
type notBegun struct{ why string }

func (e notBegun) Error() string { return "start a sandbox: " + e.why }

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
	if err := tree.HealPath(c.Work, tree.Write); err != nil { // the command before may have shut it
		n.log.Warn("work folder not healed", "folder", c.Work, "err", err)
	}
	select {
	case n.slots <- struct{}{}:
		defer func() { <-n.slots }()
	case <-ctx.Done():
		return out, context.Cause(ctx)
	}
	defer func() {
		if err == nil { // behind the command, not beside it: they would wait for each other in the kernel
			n.refill(h)
		}
	}()
	for range movedTries {
		if out, err = n.guarded(ctx, c, h); !errors.Is(err, errMoved) {
			return out, err
		}
	}
	return out, fmt.Errorf("%w: its folders change faster than they can be protected", ErrRefused)
}

// movedTries is how often a command is begun whose folders are changed by others meanwhile.
const movedTries = 5

// errMoved says that a control path was moved between the look at it and the sandbox.
var errMoved = errors.New("a control path has been moved")

// guarded runs a command with its writable folders guarded from before it begins until nothing of it is left.
func (n *ns) guarded(ctx context.Context, c Command, h how) (out Outcome, err error) {
	c.Folders, h.pins = slices.Clone(c.Folders), map[string][]workspace.Pin{}
	var closed []Closed
	for i, m := range c.Folders {
		switch {
		case !m.RW || h.weak.Has(cell.RWSystem):
			continue
		case m.Guard == nil:
			return out, fmt.Errorf("%w: nothing guards the folder %s", ErrRefused, m.As)
		}
		entry, err := m.Guard.Enter(ctx)
		if err != nil {
			return out, fmt.Errorf("guard the folder %s: %w", m.As, err)
		}
		defer func() { // behind the last process
			for _, held := range entry.Leave() {
				out.Held = append(out.Held, Held{m.As, held})
			}
		}()
		pins, why := entry.Pins()
		if why != "" {
			c.Folders[i].RW = false
			closed = append(closed, Closed{m.As, why})
		}
		h.pins[m.As] = pins
	}
	out, err = n.begin(ctx, c, h)
	out.Closed = closed
	return out, err
}

// begin runs a command in a sandbox that is ready, or in one that it makes.
func (n *ns) begin(ctx context.Context, c Command, h how) (out Outcome, err error) {
	n.within(&c)
	s, files, err := n.plan(&c, h)
	defer func() { closeAll(files) }()
	if err != nil {
		return out, err
	}
	number, began := n.calls.Add(1), time.Now()
	if b := n.take(ctx, h); b != nil {
		k := &call{n: n, c: &c, s: s, how: h, box: b, number: number, began: began}
		out, err = k.once(ctx, files)
		if _, again := errors.AsType[notBegun](err); !again {
			return out, err
		}
		// Somebody has ended the spare while it waited, say. Mounts that it was handed may be its own by now.
		closeAll(files)
		if s, files, err = n.plan(&c, h); err != nil {
			return out, err
		}
	}
	b, err := n.newBox(h)
	if err != nil {
		return out, err
	}
	k := &call{n: n, c: &c, s: s, how: h, box: b, number: number, began: began}
	return k.once(ctx, files)
}

// once runs the command in its box.
func (k *call) once(ctx context.Context, files []*os.File) (out Outcome, err error) {
	if !k.how.weak.Has(cell.NoCleanup) {
		defer k.cleanUp()
	}
	if err := k.open(); err != nil {
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

	box     *box
	work    *os.Root // for the output's file
	trees   []*writable
	unguard func() // ends the watch over the disk
	alarms  chan string
	out     *output
	outcome Outcome
	notice  []byte // what init has to say in place of the command
}

// open makes what belongs to the call.
func (k *call) open() (err error) {
	if k.work, err = os.OpenRoot(k.c.Work); err != nil {
		return fmt.Errorf("open the work folder: %w", err)
	}
	k.alarms = make(chan string, 1)
	if err = k.openTrees(); err == nil {
		err = k.guard()
	}
	if err != nil {
		return refusal(err)
	}
	if err := k.box.fit(k.c.Limits); err != nil {
		return err
	}
	name := strconv.FormatInt(k.began.UnixMilli(), 10) + "-" + strconv.FormatUint(k.number, 10) + ".txt"
	k.out = newOutput(k.c.Limits.Output, func() *spill {
		_ = tree.HealPath(filepath.Join(k.c.Work, outputDir), tree.Write) // where it is not there, it is made
		return openSpill(k.work, name, k.n.disk, k.c.Work)
	})
	k.out.whole, k.out.live = k.how.weak.Has(cell.NoCut), k.c.Output
	return nil
}

// cleanUp leaves nothing of the call.
func (k *call) cleanUp() {
	k.box.end()
	if k.work != nil {
		k.work.Close()
	}
	k.letGo()
}

// wait speaks with init, watches the command and ends it when it must end.
func (k *call) wait(ctx context.Context, files []*os.File) (Outcome, error) {
	var background sync.WaitGroup
	defer background.Wait()
	watching, stop := context.WithCancel(ctx)
	defer stop()

	reader := make(chan struct{})
	go func() { defer close(reader); k.out.drain(k.box.reading) }()
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	messages := make(chan message)
	go k.listen(messages)
	err := k.box.control.SetWriteDeadline(time.Now().Add(startWithin))
	if err == nil {
		err = sendSpec(k.box.control, k.s, fds)
		if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) {
			err = nil // init has ended, and may have said why
		}
	}
	if err == nil {
		err = k.follow(watching, messages, &background)
	}
	if err != nil || k.outcome.Killed != "" {
		_ = k.box.process.Kill() // it may be gone already
		switch k.outcome.Killed {
		case "disk", "files", "folder":
			strike(k.box.process.Pid, k.box.group)
		}
	}
	stop()
	_, werr := k.box.process.Wait() // its end is the end of all
	k.box.process = nil
	_ = k.box.control.SetReadDeadline(time.Now()) // a socket knows deadlines
	for m := range messages {                     // what it said last, if nobody has listened
		closeAll(m.files)
	}
	k.join(reader)
	k.out.take(k.notice)
	k.out.end(&k.outcome)
	k.outcome.Took = time.Since(k.began)
	if k.box.group != nil && k.box.group.killed() {
		k.outcome.Killed = "memory"
	}
	switch k.outcome.Killed {
	case "disk", "files", "folder":
		k.n.disk.Stopped(k.c.Work, k.outcome.Killed, k.outcome.Took)
	}
	return k.outcome, errors.Join(err, werr)
}

// join waits for the last of the output. Every process that could write is gone; in a sandbox that is weakened for a test
// one may be left, and then nobody waits for it.
func (k *call) join(reader <-chan struct{}) {
	select {
	case <-reader:
	case <-time.After(2 * time.Second):
		_ = k.box.reading.SetReadDeadline(time.Now()) // so does a pipe
		<-reader
	}
}

// listen hands on what init says until it ends.
func (k *call) listen(to chan<- message) {
	defer close(to)
	for {
		m, err := receive(k.box.control)
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
	ready := false
	for {
		select {
		case m, ok := <-messages:
			switch {
			case !ok && len(k.alarms) > 0:
				k.kill(<-k.alarms)
				return nil
			case !ok && !ready:
				return notBegun{"its first process ended early"}
			case !ok:
				k.kill("lost") // or for want of memory: wait knows
				return nil
			case m.kind == cell.SaidFailed:
				return notBegun{string(m.body)}
			case m.kind == cell.SaidMoved:
				return errMoved
			case m.kind == cell.SaidNoExec:
				k.outcome.Code, k.notice = 127, append(m.body, '\n')
				return nil
			case m.kind == cell.SaidEnded && len(m.body) == 4:
				k.ended(syscall.WaitStatus(binary.LittleEndian.Uint32(m.body)))
				return nil
			case m.kind == cell.SaidReady:
				ready = true
				if !k.how.weak.Has(cell.NoTimeout) {
					limit.Reset(k.c.Limits.Timeout)
				} else {
					limit.Stop()
				}
				k.watch(ctx, m.files, background)
			}
		case why := <-k.alarms:
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
