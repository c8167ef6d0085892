package sandbox

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"parley/tools/sandbox/internal/cell"
	"parley/workspace/lazy"
)

// proxyPort is where the proxy is inside.
const proxyPort = 3128

// Bounds of what a command may be, beside the kernel's own.
const (
	maxLine    = 120 << 10 // bytes: one argument cannot be longer than 128 KiB (execve(2))
	maxArgs    = 512 << 10 // bytes of all arguments and the environment
	maxFolders = 32
)

var (
	envName    = lazy.Regexp(`^[A-Za-z_][A-Za-z0-9_]*$`)
	folderName = lazy.Regexp(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	// forbiddenEnv changes what a program loads, runs or asks before it does what it was started for.
	forbiddenEnv = lazy.Regexp(`(?i)^(LD_.*|DYLD_.*|PATH|IFS|ENV|BASH_.*|SHELLOPTS|PS4|PROMPT_COMMAND|GIT_.*|NODE_.*|NPM_.*|PYTHON.*|PERL.*|RUBY.*|JAVA_TOOL_.*|_JAVA_OPTIONS|` +
		`JDK_.*|GCONV_PATH|LOCPATH|NLSPATH|MALLOC_.*|GLIBC_.*|HOSTALIASES|RES_OPTIONS|LESS.*|PAGER|EDITOR|VISUAL|SHELL|HOME|TMPDIR|.*_PROXY|PARLEY_.*)$`)
)

// plan makes of a command what init is told, and opens the folders that the gateway must open itself. The files are the
// caller's to close, also after an error.
func (n *ns) plan(c *Command, h how) (*cell.Spec, []*os.File, error) {
	s := &cell.Spec{Processes: c.Limits.Processes}
	if h.weak.Has(cell.NoProcesses) {
		s.Processes = 0
	}
	if s.Argv = c.Argv; len(s.Argv) == 0 {
		s.Argv = []string{"/bin/sh", "-c", c.Line}
	}
	if err := checkArgs(c, s.Argv); err != nil {
		return nil, nil, err
	}
	files, err := n.folders(c, s, h)
	if err != nil {
		return nil, files, err
	}
	start, err := startDir(c.Dir)
	if err != nil {
		return nil, files, err
	}
	s.Dir = start
	if c.Egress && n.way != nil {
		s.ProxyPort = proxyPort
	}
	if s.Env, err = environ(c.Env, s); err != nil {
		return nil, files, err
	}
	if h.weak.Has(cell.KeepEnv) {
		s.Env = append(s.Env, os.Environ()...)
	}
	s.Tmp, s.Shm = min(c.Limits.Memory/4, 256<<20), min(c.Limits.Memory/8, 64<<20)
	s.Rlimits = rlimits(c.Limits, n.groups != nil || h.self != "", h.weak) // this program may be built with a detector that maps terabytes
	return s, files, nil
}

func checkArgs(c *Command, argv []string) error {
	total := 0
	for _, a := range append(argv[:len(argv):len(argv)], c.Env...) {
		if strings.ContainsRune(a, 0) {
			return fmt.Errorf("%w: the command holds a NUL", ErrRefused)
		}
		if len(a) > maxLine {
			return fmt.Errorf("%w: the command is longer than %d bytes", ErrRefused, maxLine)
		}
		total += len(a) + 1
	}
	switch {
	case total > maxArgs:
		return fmt.Errorf("%w: the command is longer than %d bytes", ErrRefused, maxArgs)
	case argv[0] == "" || len(c.Argv) == 0 && c.Line == "":
		return fmt.Errorf("%w: the command is empty", ErrRefused)
	case len(c.Argv) > 0 && c.Line != "":
		return fmt.Errorf("%w: the command has both a line and arguments", ErrRefused)
	case len(c.Folders) > maxFolders:
		return fmt.Errorf("%w: more than %d folders", ErrRefused, maxFolders)
	}
	return nil
}

// startDir is where the command begins.
func startDir(dir string) (string, error) {
	if !strings.HasPrefix(dir, "/") {
		dir = WorkPath + "/" + dir
	}
	if strings.ContainsRune(dir, 0) {
		return "", fmt.Errorf("%w: the folder holds a NUL", ErrRefused)
	}
	for e := range strings.SplitSeq(dir, "/") {
		if e == ".." {
			return "", fmt.Errorf("%w: no .. in the folder to start in", ErrRefused)
		}
	}
	dir = path.Clean(dir)
	if below(dir, WorkPath) || below(dir, FoldersPath) {
		return dir, nil
	}
	return "", fmt.Errorf("%w: a command starts below %s or %s", ErrRefused, WorkPath, FoldersPath)
}

// below says whether p is dir or inside it, by text; both are clean.
func below(p, dir string) bool {
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

// folders fills in the mounts and what of them is covered.
func (n *ns) folders(c *Command, s *cell.Spec, h how) (files []*os.File, err error) {
	show := func(host, as string, rw bool) error {
		if !filepath.IsAbs(host) || filepath.Clean(host) != host || host == "/" {
			return fmt.Errorf("%w: %s is not an absolute clean path of a folder", ErrRefused, as)
		}
		if !n.root || h.weak.Has(cell.HostRoot) {
			s.Mounts = append(s.Mounts, cell.Mount{Host: host, As: as, RW: rw})
			return nil
		}
		f, dir, err := n.maps.mapped(host, rw)
		if err != nil {
			return fmt.Errorf("show %s: %w", as, err)
		}
		s.Mounts = append(s.Mounts, cell.Mount{FD: len(files), As: as, RW: rw, File: !dir})
		files = append(files, f)
		return nil
	}
	if err := show(c.Work, WorkPath, true); err != nil {
		return files, err
	}
	if c.Control != "" {
		if err := show(c.Control, ControlPath, h.weak.Has(cell.RWControl)); err != nil {
			return files, err
		}
		s.Covers = append(s.Covers, ControlPath+"/work")
		if rel, err := filepath.Rel(c.Control, c.Work); err == nil && filepath.IsLocal(rel) && rel != "." {
			first, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
			s.Covers = append(s.Covers, ControlPath+"/"+first)
		}
	}
	for _, m := range c.Folders {
		as := FoldersPath + "/" + m.As
		if !folderName().MatchString(m.As) {
			return files, fmt.Errorf("%w: %q is not a name for a folder", ErrRefused, m.As)
		}
		if err := n.mayShow(m); err != nil {
			return files, err
		}
		if err := show(m.Host, as, m.RW); err != nil {
			return files, err
		}
		for _, p := range h.pins[m.As] { // a mount cannot be moved away
			s.Pins = append(s.Pins, cell.Pin{At: as + "/" + p.Path, Dev: p.Dev, Ino: p.Ino})
		}
	}
	if h.self != "" {
		exe, err := os.Executable()
		if err != nil {
			return files, err
		}
		if err := show(exe, h.self, false); err != nil {
			return files, fmt.Errorf("show this program to itself: %w", err)
		}
	}
	if !h.weak.Has(cell.HostRoot) {
		n.coverHidden(s, c)
	}
	return files, nil
}

// mayShow refuses to give write access to a folder that holds the gateway's own things, or the whole of somebody's home:
// what starts with the next login would be theirs to write.
func (n *ns) mayShow(m Mount) error {
	if !m.RW {
		return nil
	}
	for _, h := range n.hide {
		if below(h, m.Host) || below(m.Host, h) {
			return fmt.Errorf("%w: folder %s holds or is inside the gateway's own files and cannot be writable", ErrRefused, m.As)
		}
	}
	if home, err := os.UserHomeDir(); err == nil && below(filepath.Clean(home), m.Host) {
		return fmt.Errorf("%w: folder %s is a whole home and cannot be writable; name a folder inside it", ErrRefused, m.As)
	}
	return nil
}

// coverHidden covers the gateway's own files wherever a shown folder holds them.
func (n *ns) coverHidden(s *cell.Spec, c *Command) {
	shown := []Mount{{Host: "/usr", As: "/usr"}, {Host: c.Control, As: ControlPath}}
	for _, f := range c.Folders {
		shown = append(shown, Mount{Host: f.Host, As: FoldersPath + "/" + f.As})
	}
	for _, h := range n.hide {
		for _, m := range shown {
			if m.Host == "" || !below(h, m.Host) {
				continue
			}
			if at := m.As + strings.TrimPrefix(h, m.Host); at != WorkPath {
				s.Covers = append(s.Covers, at)
			}
		}
	}
}

// environ is the whole environment of a command: what is set here, and what of add is harmless.
func environ(add []string, s *cell.Spec) ([]string, error) {
	env := []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/tmp", "TMPDIR=/tmp", "SHELL=/bin/sh", "USER=agent", "LOGNAME=agent",
		"LANG=C.UTF-8", "TERM=dumb", "PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "EDITOR=/bin/false", "VISUAL=/bin/false", "DEBIAN_FRONTEND=noninteractive",
	}
	if s.ProxyPort != 0 {
		at := fmt.Sprintf("http://127.0.0.1:%d", s.ProxyPort)
		for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
			env = append(env, name+"="+at)
		}
		env = append(env, "NO_PROXY=localhost,127.0.0.1,::1", "no_proxy=localhost,127.0.0.1,::1")
	}
	for _, e := range add {
		name, _, ok := strings.Cut(e, "=")
		if !ok || !envName().MatchString(name) || forbiddenEnv().MatchString(name) {
			return nil, fmt.Errorf("%w: the environment may not set %q", ErrRefused, name)
		}
		env = append(env, e)
	}
	return env, nil
}

// rlimits bounds each process. Without a cgroup they bound memory too: each process by itself, and all together by the watch.
func rlimits(l Limits, bounded bool, weak switches) []cell.Rlimit {
	list := []cell.Rlimit{
		{Resource: unix.RLIMIT_CORE, Value: 0}, {Resource: unix.RLIMIT_MEMLOCK, Value: 64 << 10}, {Resource: unix.RLIMIT_MSGQUEUE, Value: 0}, {Resource: unix.RLIMIT_NICE, Value: 0}, {Resource: unix.RLIMIT_RTPRIO, Value: 0},
		{Resource: unix.RLIMIT_SIGPENDING, Value: 1024},
	}
	if !weak.Has(cell.NoTimeout) {
		list = append(list, cell.Rlimit{Resource: unix.RLIMIT_CPU, Value: uint64(l.Timeout.Seconds()*4) + 60})
	}
	if !weak.Has(cell.NoFiles) {
		list = append(list, cell.Rlimit{Resource: unix.RLIMIT_NOFILE, Value: 512})
	}
	if !weak.Has(cell.NoDisk) {
		list = append(list, cell.Rlimit{Resource: unix.RLIMIT_FSIZE, Value: uint64(l.Disk)})
	}
	if !bounded && !weak.Has(cell.NoMemory) {
		list = append(list, cell.Rlimit{Resource: unix.RLIMIT_DATA, Value: uint64(max(l.Memory, 192<<20))}, cell.Rlimit{Resource: unix.RLIMIT_AS, Value: uint64(max(8*l.Memory, 8<<30))})
	}
	return list
}
