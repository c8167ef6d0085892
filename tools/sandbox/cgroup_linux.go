package sandbox

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"parley/tools/sandbox/internal/cell"
)

// cgroups is where the gateway may make a control group for each call: below its own, never beside it unless it is root
// and the tree wants it so. Version 1 has a folder for memory and one for processes, version 2 one for both.
type cgroups struct {
	version int
	above   []string // folders in which a call's are made
	prefix  string
	count   atomic.Uint64
}

// extraMemory is what init itself takes, in bytes; extraTasks are its threads.
const (
	extraMemory = 24 << 20
	extraTasks  = 32
)

// cgroupMount is one line of mountinfo that is a control group tree.
type cgroupMount struct {
	v2      bool
	root    string // the part of the tree that is mounted
	at      string
	options string // of the file system: the controllers, in version 1
}

// findCgroups looks for a place in which groups with both limits can be made, and tries it. sys is "/", but in tests.
func findCgroups(sys string) (*cgroups, error) {
	mountinfo, err := os.ReadFile(filepath.Join(sys, "proc/self/mountinfo"))
	if err != nil {
		return nil, err
	}
	own, err := os.ReadFile(filepath.Join(sys, "proc/self/cgroup"))
	if err != nil {
		return nil, err
	}
	mounts := cgroupMounts(string(mountinfo))
	var why []error
	for _, find := range []func(string, []cgroupMount, string) (*cgroups, error){findV2, findV1} {
		g, err := find(sys, mounts, string(own))
		if err == nil {
			g.prefix = fmt.Sprintf("parley-%d-%x-", os.Getpid(), rand.Uint32()) // one process may have several backends
			g.sweep()
			return g, nil
		}
		why = append(why, err)
	}
	return nil, errors.Join(why...)
}

func cgroupMounts(mountinfo string) (list []cgroupMount) {
	for line := range strings.Lines(mountinfo) {
		before, after, ok := strings.Cut(line, " - ") // proc_pid_mountinfo(5)
		f, g := strings.Fields(before), strings.Fields(after)
		if !ok || len(f) < 5 || len(g) < 3 {
			continue
		}
		if g[0] == "cgroup" || g[0] == "cgroup2" {
			list = append(list, cgroupMount{v2: g[0] == "cgroup2", root: f[3], at: f[4], options: g[2]})
		}
	}
	return list
}

// ownGroup is the gateway's group in the tree of one controller; the empty one is version 2's.
func ownGroup(own, controller string) (string, bool) {
	for line := range strings.Lines(own) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		for c := range strings.SplitSeq(f[1], ",") {
			if c == controller && (controller != "" || f[0] == "0") {
				return f[2], true
			}
		}
	}
	return "", false
}

// folder is where a group is under a mount that shows the tree from root on.
func (m cgroupMount) folder(sys, group string) string {
	if rest, ok := strings.CutPrefix(group, m.root); ok && m.root != "/" {
		group = rest
	} else if m.root != "/" {
		group = "/" // a container that shows its own part as the whole
	}
	return filepath.Join(sys, m.at, group)
}

func findV1(sys string, mounts []cgroupMount, own string) (*cgroups, error) {
	g := &cgroups{version: 1}
	for _, controller := range []string{"memory", "pids"} {
		group, ok := ownGroup(own, controller)
		if !ok {
			return nil, fmt.Errorf("cgroup v1 has no %s controller", controller)
		}
		found := false
		for _, m := range mounts {
			if m.v2 || !strings.Contains(","+m.options+",", ","+controller+",") {
				continue
			}
			dir := m.folder(sys, group)
			if err := tryFolder(dir); err != nil {
				return nil, fmt.Errorf("cgroup v1: %w", err)
			}
			g.above, found = append(g.above, dir), true
			break
		}
		if !found {
			return nil, fmt.Errorf("cgroup v1: %s is not mounted", controller)
		}
	}
	return g, nil
}

// findV2 takes the nearest group, from the gateway's own upwards, that hands memory and processes down; if its own is
// delegated and does not yet, the gateway moves into a group below it and lets it (cgroups(7), "no internal processes").
func findV2(sys string, mounts []cgroupMount, own string) (*cgroups, error) {
	group, ok := ownGroup(own, "")
	if !ok {
		return nil, errors.New("no cgroup v2")
	}
	for _, m := range mounts {
		if !m.v2 {
			continue
		}
		top, dir := filepath.Join(sys, m.at), m.folder(sys, group)
		if !hands(dir, "cgroup.controllers") && dir != top {
			return nil, errors.New("cgroup v2 does not give this service memory and pids: set Delegate=yes in its unit")
		}
		err := delegate(dir)
		if err == nil {
			return &cgroups{version: 2, above: []string{dir}}, nil
		}
		for up := dir; strings.HasPrefix(up, top); up = filepath.Dir(up) {
			if hands(up, "cgroup.subtree_control") && tryFolder(up) == nil {
				return &cgroups{version: 2, above: []string{up}}, nil
			}
		}
		return nil, fmt.Errorf("cgroup v2 is not delegated: %w", err)
	}
	return nil, errors.New("cgroup v2 is not mounted")
}

// hands says whether memory and pids are listed in a file of the group.
func hands(dir, file string) bool {
	data, err := os.ReadFile(filepath.Join(dir, file))
	list := " " + strings.TrimSpace(string(data)) + " "
	return err == nil && strings.Contains(list, " memory ") && strings.Contains(list, " pids ")
}

// delegate lets the groups below dir have limits.
func delegate(dir string) error {
	if hands(dir, "cgroup.subtree_control") {
		return tryFolder(dir)
	}
	control := filepath.Join(dir, "cgroup.subtree_control")
	err := os.WriteFile(control, []byte("+memory +pids"), 0)
	if err == nil {
		return tryFolder(dir)
	}
	procs, rerr := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if rerr != nil || strings.TrimSpace(string(procs)) != strconv.Itoa(os.Getpid()) {
		return err // others are in it: they are not ours to move
	}
	leaf := filepath.Join(dir, "gateway")
	if err := os.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if err := os.WriteFile(filepath.Join(leaf, "cgroup.procs"), []byte("0"), 0); err != nil {
		return err
	}
	if err := os.WriteFile(control, []byte("+memory +pids"), 0); err != nil {
		return err
	}
	_ = os.WriteFile(control, []byte("+cpu"), 0) // a share of the processor is welcome, not needed
	return tryFolder(dir)
}

func tryFolder(dir string) error {
	name, err := os.MkdirTemp(dir, "parley-try-")
	if err != nil {
		return err
	}
	return os.Remove(name)
}

// sweep removes the empty groups of gateways that were killed. One that is in use cannot be removed.
func (g *cgroups) sweep() {
	for _, above := range g.above {
		old, _ := filepath.Glob(filepath.Join(above, "parley-*")) // the pattern is sound
		for _, dir := range old {
			pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), "parley-"), "-")
			if _, err := os.Stat("/proc/" + pid); errors.Is(err, os.ErrNotExist) {
				_ = os.Remove(dir)
			}
		}
	}
}

// group is the group of one call.
type group struct {
	version int
	dirs    []string // memory and pids; one folder in version 2
}

// setting is one value of a group; what must be set and cannot stops the call.
type setting struct {
	dir, file, value string
	must             bool
}

// make makes a group. It has no limits yet.
func (g *cgroups) make() (*group, error) {
	name := g.prefix + strconv.FormatUint(g.count.Add(1), 10)
	c := &group{version: g.version}
	for _, above := range g.above {
		dir := filepath.Join(above, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, errors.Join(fmt.Errorf("make a cgroup: %w", err), c.removeNow())
		}
		c.dirs = append(c.dirs, dir)
	}
	return c, nil
}

// limit gives the group the limits of a command.
func (c *group) limit(l Limits, weak switches) error {
	memory, tasks := strconv.FormatInt(l.Memory+extraMemory, 10), strconv.Itoa(l.Processes+extraTasks)
	if weak.Has(cell.NoMemory) {
		memory = strconv.FormatInt(1<<40, 10)
	}
	if weak.Has(cell.NoProcesses) {
		tasks = "max"
	}
	first, last := c.dirs[0], c.dirs[len(c.dirs)-1]
	set := []setting{{first, "memory.limit_in_bytes", memory, true}, {first, "memory.swappiness", "0", false}, {last, "pids.max", tasks, true}}
	if c.version == 2 {
		set = []setting{{first, "memory.max", memory, true}, {first, "memory.swap.max", "0", false}, {first, "memory.oom.group", "1", false},
			{first, "cpu.weight", "20", false}, {first, "pids.max", tasks, true}}
	}
	for _, s := range set {
		if err := os.WriteFile(filepath.Join(s.dir, s.file), []byte(s.value), 0o600); err != nil && s.must {
			return fmt.Errorf("limit a cgroup: %w", err)
		}
	}
	return nil
}

// join puts the calling thread, and it alone, into a group of version 1: what it starts begins there. Moving a process
// afterwards would wait for every thread of the machine to rest.
func (c *group) join() error {
	for _, dir := range c.dirs {
		if err := os.WriteFile(filepath.Join(dir, "tasks"), []byte("0"), 0); err != nil {
			return fmt.Errorf("join a cgroup: %w", err)
		}
	}
	return nil
}

// killed says whether the kernel has ended a process of the group for want of memory.
func (c *group) killed() bool {
	file := "memory.events"
	if c.version == 1 {
		file = "memory.oom_control"
	}
	data, err := os.ReadFile(filepath.Join(c.dirs[0], file))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(data)) {
		if n, ok := strings.CutPrefix(line, "oom_kill "); ok {
			return strings.TrimSpace(n) != "0"
		}
	}
	return false
}

func (c *group) removeNow() error {
	var errs []error
	for _, dir := range c.dirs {
		if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// remove waits, up to two seconds, until the kernel has let go of the last process.
func (c *group) remove() error {
	err := c.removeNow()
	for wait := time.Millisecond; err != nil && wait < time.Second; wait *= 2 {
		<-time.After(wait)
		err = c.removeNow()
	}
	return err
}
