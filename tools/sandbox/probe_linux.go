package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"parley/tools/sandbox/internal/cell"
)

// probePath is where this program is shown to itself for the self-test.
const probePath = "/run/" + roleProbe

// probeWithin bounds the self-test: it takes 0.1 s on a quiet machine and was seen to take 12 s on one with fourteen times
// more to do than it has processors.
const probeWithin = time.Minute

// Probe tries to escape. One attempt that is not refused is enough for no exec: there is no weaker tier to fall to.
func (n *ns) Probe(ctx context.Context) Report {
	n.look()
	r := Report{Tier: TierNone, Done: true, Facts: n.facts()}
	var err error
	r.Checks, err = n.try(ctx)
	for _, c := range r.Failed() {
		r.Reasons = append(r.Reasons, fmt.Sprintf("%s was not refused: %s", c.Name, c.Why))
	}
	if err != nil {
		r.Reasons = append(r.Reasons, err.Error())
	}
	if len(r.Reasons) == 0 || n.weak.Has(cell.SkipProbe) {
		r.Tier, r.Reasons = TierNS, n.weaker()
	}
	n.mu.Lock()
	n.last = r
	n.mu.Unlock()
	return r
}

// facts says on what the tier rests.
func (n *ns) facts() []string {
	list := []string{"Landlock ABI " + strconv.Itoa(cell.LandlockABI())}
	if n.groups != nil {
		list = append(list, "cgroup v"+strconv.Itoa(n.groups.version))
	} else {
		list = append(list, "no cgroup")
	}
	if n.root {
		return append(list, "its own user "+strconv.Itoa(sandboxID))
	}
	return append(list, "user "+strconv.Itoa(os.Geteuid()))
}

// weaker says what could be better.
func (n *ns) weaker() []string {
	if n.groups != nil {
		return nil
	}
	return []string{fmt.Sprintf("memory is bounded by watching, not by the kernel: %v", n.whyNot)}
}

// try runs the probe. An error says that there was nothing to try.
func (n *ns) try(ctx context.Context) ([]Check, error) {
	if os.Geteuid() == 0 && !n.root {
		return nil, fmt.Errorf("root of a user namespace that has no user %d for sandboxes: run the gateway as an ordinary user", sandboxID)
	}
	if n.root && n.groups == nil {
		return nil, fmt.Errorf("as root a cgroup is needed, and there is none (%v): run the gateway as an ordinary user, or let it have one", n.whyNot)
	}
	l, err := newLures(n.cfg.Scratch)
	if err != nil {
		return nil, fmt.Errorf("prepare the self-test: %w", err)
	}
	defer l.close()
	ctx, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	c := Command{Argv: append([]string{probePath}, l.args()...), Work: l.work, Control: l.control, Limits: Limits{Timeout: probeWithin, Output: 256 << 10}}
	out, err := n.run(ctx, c, how{self: probePath, weak: n.weak, trial: true})
	if err != nil {
		return nil, hint(err)
	}
	checks := parseChecks(out.Output)
	if out.Code != 0 || len(checks) == 0 {
		return checks, fmt.Errorf("the self-test ended with code %d %s: %s", out.Code, out.Killed, lastLine(out.Output))
	}
	return checks, nil
}

// hint says what an operator can do about a machine that does not let a sandbox stand.
func hint(err error) error {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES), errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EINVAL):
		return fmt.Errorf("%w (user namespaces are off or restricted here: see kernel.unprivileged_userns_clone, user.max_user_namespaces, "+
			"kernel.apparmor_restrict_unprivileged_userns, or the container's own limits)", err)
	}
	return err
}

func parseChecks(out []byte) (checks []Check) {
	for line := range strings.Lines(string(out)) {
		how, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, why, _ := strings.Cut(rest, ": ")
		if how == "ok" || how == "bad" {
			checks = append(checks, Check{Name: name, OK: how == "ok", Why: why})
		}
	}
	return checks
}

func lastLine(out []byte) string {
	s := strings.TrimSpace(string(out))
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// lures are what a probe tries to reach: things of the host that stand open to any process of this user.
type lures struct {
	scratch            string
	dir, work, control string
	tcp                net.Listener
	abstract, path     net.Listener
}

func newLures(scratch string) (l *lures, err error) {
	l = &lures{}
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	if l.scratch = scratch; scratch != "" {
		switch err := os.Mkdir(scratch, 0o700); {
		case errors.Is(err, os.ErrNotExist):
			l.scratch = "" // before the first start there is no data directory
		case err != nil && !errors.Is(err, os.ErrExist):
			return nil, err
		}
	}
	if l.dir, err = os.MkdirTemp(l.scratch, "parley-probe-"); err != nil {
		return nil, err
	}
	if l.dir, err = filepath.EvalSymlinks(l.dir); err != nil {
		return nil, err
	}
	l.work, l.control = filepath.Join(l.dir, "work"), filepath.Join(l.dir, "agent")
	for _, d := range []string{l.work, l.control, filepath.Join(l.control, "work", "other")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, err
		}
	}
	for _, f := range []string{filepath.Join(l.dir, "secret"), filepath.Join(l.control, "AGENTS.md"), filepath.Join(l.control, "work", "other", "secret")} {
		if err := os.WriteFile(f, []byte("secret"), 0o600); err != nil {
			return nil, err
		}
	}
	if l.tcp, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	if l.abstract, err = net.Listen("unix", "@"+filepath.Base(l.dir)); err != nil {
		return nil, err
	}
	l.path, err = net.Listen("unix", filepath.Join(l.dir, "s"))
	return l, err
}

func (l *lures) args() []string {
	return []string{l.dir, l.tcp.Addr().String(), l.abstract.Addr().String(), strconv.Itoa(os.Getpid())}
}

func (l *lures) close() {
	for _, ln := range []net.Listener{l.tcp, l.abstract, l.path} {
		if ln != nil {
			ln.Close()
		}
	}
	if l.dir != "" {
		_ = os.RemoveAll(l.dir) // what the probe itself made
	}
	if l.scratch != "" {
		_ = os.Remove(l.scratch) // unless another probe is in it
	}
}

// list gives the names in a folder; none if it cannot be read.
func list(dir string) []string {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1) // what can be read of it
	return names
}

// probeInside is the self-test's other half, inside. It prints a line for each attempt.
func probeInside() int {
	if len(os.Args) != 5 {
		return 2
	}
	p := prober{dir: os.Args[1], tcp: os.Args[2], abstract: os.Args[3]}
	p.gateway, _ = strconv.Atoi(os.Args[4])
	for _, a := range p.attempts() {
		if why := a.try(); why != "" {
			fmt.Println("bad", a.name+":", strings.ReplaceAll(why, "\n", " "))
			continue
		}
		fmt.Println("ok", a.name)
	}
	return 0
}

// attempt is one escape. try says what it got; empty: it was refused.
type attempt struct {
	name string
	try  func() string
}

type prober struct {
	dir, tcp, abstract string
	gateway            int
}

func (p prober) attempts() []attempt {
	list := []attempt{
		{"read a file outside", cannotRead(filepath.Join(p.dir, "secret"))},
		{"write a control file", cannotWrite(ControlPath + "/AGENTS.md")},
		{"make a control file", cannotWrite(ControlPath + "/SOUL.md")},
		{"write /usr", cannotWrite("/usr/parley-probe")},
		{"write /etc", cannotWrite("/etc/parley-probe")},
		{"write /proc/sys", cannotWrite("/proc/sys/kernel/core_pattern")},
		{"read the disk", cannotRead("/dev/vda")},
		{"connect to the host over TCP", cannotDial("tcp", p.tcp)},
		{"connect to an abstract socket", cannotDial("unix", p.abstract)},
		{"connect to a socket's path", cannotDial("unix", filepath.Join(p.dir, "s"))},
		{"signal the gateway", func() string { return done(unix.Kill(p.gateway, 0)) }},
		{"keep a file of the gateway", keptFile},
		{"keep a capability", statusIs("CapEff", "0000000000000000")},
		{"gain a privilege", statusIs("NoNewPrivs", "1")},
		{"run without a filter", statusIs("Seccomp", "2")},
		{"open too many files", limitIs(unix.RLIMIT_NOFILE, 512)},
		{"fork without end", limitIs(unix.RLIMIT_NPROC, 1<<17)},
		{"fill the disk with one file", limitIs(unix.RLIMIT_FSIZE, 1<<40)},
		{"work in the work folder", func() string { return works(WorkPath) }},
		{"work in /tmp", func() string { return works("/tmp") }},
		{"read another session's folder", cannotRead(ControlPath + "/work/other/secret")},
		{"see the host's processes", crowd},
		{"read init's environment", cannotRead("/proc/1/environ")},
		{"go through init's root", cannotRead("/proc/1/root/etc/passwd")},
		{"keep a bounding capability", statusIs("CapBnd", "0000000000000000")},
	}
	for _, s := range []struct {
		name                string
		family, kind, proto int
	}{
		{"AF_NETLINK", unix.AF_NETLINK, unix.SOCK_RAW, 0}, {"AF_PACKET", unix.AF_PACKET, unix.SOCK_RAW, 0}, {"AF_VSOCK", unix.AF_VSOCK, unix.SOCK_STREAM, 0},
		{"AF_ALG", unix.AF_ALG, unix.SOCK_SEQPACKET, 0}, {"ICMP", unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP}, {"a raw IP", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_TCP},
	} {
		list = append(list, attempt{"open " + s.name + " socket", func() string {
			fd, err := unix.Socket(s.family, s.kind, s.proto)
			if err == nil {
				unix.Close(fd)
			}
			return done(err)
		}})
	}
	return append(list, callAttempts()...)
}

// done turns the error of an escape into its result.
func done(err error) string {
	if err == nil {
		return "it worked"
	}
	return ""
}

func cannotRead(name string) func() string {
	return func() string {
		fd, err := unix.Open(name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			return ""
		}
		defer unix.Close(fd)
		_, err = unix.Read(fd, make([]byte, 1))
		return done(err)
	}
}

func cannotWrite(name string) func() string {
	return func() string {
		fd, err := unix.Open(name, unix.O_WRONLY|unix.O_CREAT|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o600)
		if err == nil {
			unix.Close(fd)
		}
		return done(err)
	}
}

func cannotDial(network, address string) func() string {
	return func() string {
		c, err := net.DialTimeout(network, address, 2*time.Second)
		if err == nil {
			c.Close()
		}
		return done(err)
	}
}

// keptFile looks for descriptors that did not come with this process. Its own runtime opens some, but only an inherited one
// is not closed on exec.
func keptFile() string {
	for fd := 3; fd < 1024; fd++ {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err == nil && flags&unix.FD_CLOEXEC == 0 {
			return "file descriptor " + strconv.Itoa(fd) + " is open"
		}
	}
	return ""
}

func statusIs(key, want string) func() string {
	return func() string {
		data, err := os.ReadFile("/proc/thread-self/status")
		if err != nil {
			return err.Error()
		}
		for line := range strings.Lines(string(data)) {
			if k, v, _ := strings.Cut(line, ":"); k == key {
				if v = strings.TrimSpace(v); v != want {
					return v
				}
				return ""
			}
		}
		return "unknown"
	}
}

func limitIs(resource int, most uint64) func() string {
	return func() string {
		var l unix.Rlimit
		if err := unix.Getrlimit(resource, &l); err != nil || l.Max > most {
			return fmt.Sprintf("limit %d", l.Max)
		}
		return ""
	}
}

// works is the other side: a sandbox in which nothing can be done is broken too.
func works(dir string) string {
	name := filepath.Join(dir, "probe")
	if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
		return err.Error()
	}
	if err := os.Remove(name); err != nil {
		return err.Error()
	}
	return ""
}

func crowd() string {
	n := 0
	for _, name := range list("/proc") {
		if name[0] >= '1' && name[0] <= '9' {
			n++
		}
	}
	if n < 12 && n > 0 {
		return ""
	}
	return strconv.Itoa(n) + " processes"
}
