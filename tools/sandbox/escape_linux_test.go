package sandbox

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"parley/tools/sandbox/internal/cell"
	"parley/workspace/disk"
)

func TestE08_FilesOfTheGatewayAreClosed(t *testing.T) {
	t.Parallel()
	prove(t, escape{"E08", func(w *world) string {
		f, err := os.Open(filepath.Join(w.dir, "data/parley.db"))
		if err != nil {
			w.Fatal(err)
		}
		defer f.Close()
		w.how.inherit = []*os.File{f}
		return said(w.hostile("files"))
	}, []weakness{cell.KeepFDs}})
}

func TestE09_SecretsAreInNoEnvironment(t *testing.T) {
	t.Parallel()
	prove(t, escape{"E09", func(w *world) string { return said(w.hostile("environ")) }, []weakness{cell.KeepEnv}})
}

func TestE10_TheGatewaysFilesCannotBeReached(t *testing.T) {
	t.Parallel()
	prove(t, escape{"E10", func(w *world) string {
		line := ""
		for _, name := range []string{"secret", "parley.yaml", "data/parley.db", "data/token", "agents/b/work/s9/note", "agents/a/work/s2/note"} {
			line += "cat '" + filepath.Join(w.dir, name) + "'; "
		}
		line += "cat /agent/work/s2/note /agent/work/*/note ../s2/note /agent/work/s1/../s2/note; "
		if !w.how.weak.Has(cell.HostRoot) {
			line += "grep -rs " + canary + " / --exclude-dir=proc --exclude-dir=usr | head -c 999"
		}
		out := w.sh(line)
		if strings.Contains(string(out.Output), canary) {
			return string(out.Output)
		}
		return ""
	}, []weakness{cell.HostRoot}})
}

func TestE12_ControlFilesCannotBeWritten(t *testing.T) {
	t.Parallel()
	prove(t, escape{"E12", func(w *world) string {
		w.sh(`cd /agent; echo evil >>AGENTS.md; : >SOUL.md; echo evil >/tmp/x; mv /tmp/x SOUL.md; cp /tmp/x AGENTS.md; rm -f AGENTS.md; truncate -s 0 AGENTS.md; ` +
			`chmod 777 AGENTS.md; ln -f /work/own SOUL.md; mkdir -p skills; echo evil >skills/evil.md; echo evil >policy.yaml; touch HEARTBEAT.md`)
		return changed(w)
	}, []weakness{cell.RWControl}})
}

// changed says what of the agent's files is not as it was.
func changed(w *world) string {
	for name, want := range map[string]string{"AGENTS.md": "be good", "SOUL.md": "be kind", "memory/MEMORY.md": "facts"} {
		if got := w.read("agents/a/" + name); got != want {
			return name + " is " + got
		}
	}
	list, err := os.ReadDir(w.control)
	if err != nil || len(list) != 4 {
		return fmt.Sprint(list, err)
	}
	return ""
}

func TestE13_ControlFilesCannotBeReplacedByTheirFolder(t *testing.T) {
	t.Parallel()
	prove(t, escape{"E13", func(w *world) string {
		w.sh(`mv /agent/memory /agent/memory2; mkdir /agent/memory; echo evil >/agent/memory/MEMORY.md; mv /agent /agent2; mkdir /agent; echo evil >/agent/AGENTS.md; ` +
			`mkdir -p /work/agent; mv /agent/memory /work/; echo evil >/agent/USER.md; ln -s /work/own /agent/TOOLS.md`)
		return changed(w)
	}, []weakness{cell.RWControl}})
}

func TestE14_WhatTheOperatorRunsCannotBeWritten(t *testing.T) {
	t.Parallel()
	prove(t, escape{"E14", func(w *world) string {
		w.put("tree/.git/config", "[core]\n")
		w.put("tree/.git/hooks/sample", "")
		w.put("tree/main.c", "")
		w.command.Folders = []Mount{{Host: filepath.Join(w.dir, "tree"), As: "tree", RW: true}}
		mark := "parley-" + filepath.Base(w.dir)
		out := w.sh(`for d in /usr /usr/bin /usr/local/bin /etc /etc/cron.d /var/spool/cron /root /home /lib /bin / /boot /opt; do echo evil >$d/` + mark + `; done 2>/dev/null; ` +
			`cd /folders/tree || exit 9; echo evil >.git/hooks/pre-commit; echo '[core] fsmonitor = evil' >>.git/config; echo ../evil >.git/commondir; mv .git .git2; rm -rf .git; ` +
			`mkdir -p .git/hooks; echo evil >.git/hooks/post-checkout; echo fine >main.c`)
		if out.Code == 9 || w.read("tree/main.c") != "fine\n" {
			w.Errorf("the folder cannot be used: %s", out.Output)
		}
		for _, name := range []string{"/usr/", "/usr/bin/", "/usr/local/bin/", "/etc/", "/etc/cron.d/", "/root/", "/", "/opt/"} {
			if _, err := os.Stat(name + mark); err == nil {
				return name + mark + " was made"
			}
		}
		hooks, err := os.ReadDir(filepath.Join(w.dir, "tree/.git/hooks"))
		if got := w.read("tree/.git/config"); err != nil || len(hooks) != 1 || got != "[core]\n" {
			return fmt.Sprint("the repository was changed: ", hooks, err, got)
		}
		if list, err := os.ReadDir(filepath.Join(w.dir, "tree/.git")); err != nil || len(list) != 2 {
			return fmt.Sprint("the repository was changed: ", list, err)
		}
		return ""
	}, []weakness{cell.RWSystem}})
}

func TestE15_E17_TheHostsNetworkIsElsewhere(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"E15", "E17"} {
		prove(t, escape{id, func(w *world) string {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				w.Fatal(err)
			}
			defer l.Close()
			return said(w.hostile("dial", "tcp", l.Addr().String())) + said(w.hostile("dial", "tcp", "169.254.169.254:80")) + said(w.hostile("dial", "tcp", "[fd00:ec2::254]:80"))
		}, []weakness{cell.HostNet}})
	}
}

func TestE20_SocketsOfTheHostHaveNoPath(t *testing.T) {
	t.Parallel()
	prove(t, escape{"E20", func(w *world) string {
		at := filepath.Join(w.dir, "docker.sock")
		l, err := net.Listen("unix", at)
		if err != nil {
			w.Fatal(err)
		}
		defer l.Close()
		if err := os.Chmod(at, 0o777); err != nil {
			w.Fatal(err)
		}
		if w.how.weak.Has(cell.HostRoot) { // this program cannot be shown there; the host's shell and its path have to do
			if out := w.sh("test -S '" + at + "' && echo " + escaped + "there"); said(out) != "" {
				return said(out)
			}
			return ""
		}
		for _, name := range []string{at, "/run/docker.sock", "/var/run/docker.sock", "/run/user/0/bus", "/run/dbus/system_bus_socket", "/tmp/.X11-unix/X0", "/run/systemd/private"} {
			if s := said(w.hostile("dial", "unix", name)); s != "" {
				return s
			}
		}
		return ""
	}, []weakness{cell.HostRoot}})
}

func TestE21_OddSocketsDoNotOpen(t *testing.T) {
	t.Parallel()
	prove(t, escape{"E21", func(w *world) string {
		l, err := net.Listen("unix", "@parley-"+filepath.Base(w.dir))
		if err != nil {
			w.Fatal(err)
		}
		defer l.Close()
		return said(w.hostile("sockets", l.Addr().String()))
	}, []weakness{cell.NoSeccomp, cell.HostNet | cell.NoLandlock}})
}

// victim is a process of the host that belongs to the very user that sandboxes have.
func victim(w *world) *os.Process {
	sys := &syscall.SysProcAttr{}
	if w.n.root {
		sys.Credential = &syscall.Credential{Uid: sandboxID, Gid: sandboxID}
	}
	p, err := os.StartProcess("/bin/sleep", []string{"sleep", "1000"}, &os.ProcAttr{Sys: sys})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		_ = p.Kill()
		_, _ = p.Wait()
	})
	return p
}

func TestE22_OtherProcessesAreOutOfReach(t *testing.T) {
	t.Parallel()
	prove(t, escape{"E22", func(w *world) string {
		if w.how.weak.Has(cell.Dumpable) {
			return said(w.hostile("init", "look"))
		}
		got := said(w.hostile("signal", strconv.Itoa(victim(w).Pid)))
		if w.how.weak == (switches{}) {
			out := w.hostile("init")
			if got += said(out); out.Code != 0 || out.Killed != "" {
				got += fmt.Sprintf("init could be signalled: %+v", out)
			}
		}
		return got
	}, []weakness{cell.HostPID | cell.NoLandlock | cell.NoSeccomp, cell.Dumpable | cell.NoLandlock | cell.NoSeccomp}})
}

func TestE23_ProcessesOfTheHostAreNotSeen(t *testing.T) {
	t.Parallel()
	prove(t, escape{"E23", func(w *world) string {
		comm, err := os.ReadFile("/proc/self/comm")
		if err != nil {
			w.Fatal(err)
		}
		return said(w.hostile("processes", strconv.Itoa(os.Getpid()), strings.TrimSpace(string(comm))))
	}, []weakness{cell.HostPID}})
}

func TestE24_NoMountsAndNoNamespaces(t *testing.T) {
	t.Parallel()
	prove(t, escape{"E24", func(w *world) string {
		return said(w.hostile("calls", "mount", "umount2", "pivot_root", "move_mount", "open_tree", "fsopen", "chroot", "setns", "unshare", "clone"))
	}, []weakness{cell.NoSeccomp}})
}

func TestE25_NoPrivilegeIsKeptOrGained(t *testing.T) {
	t.Parallel()
	prove(t, escape{"E25", func(w *world) string {
		out := w.sh(`for p in /usr/bin/su /usr/bin/passwd /usr/bin/mount /usr/bin/newgrp; do [ -u $p ] && find $(findmnt -no TARGET /usr 2>/dev/null || echo /usr) -maxdepth 0 -prune; done; ` +
			`grep -E '^(NoNewPrivs|CapEff|CapBnd):' /proc/self/status | tr -d '\t\n '; id -u`)
		w.sh("cp /bin/sh s && chmod 4755 s; cp /bin/sh g && chmod g+s g; install -m 6755 /bin/sh i; umask 0; touch plain && chmod 755 plain; mkdir -m 2777 d; true")
		for _, name := range list(w.work) {
			if info, err := os.Lstat(filepath.Join(w.work, name)); err == nil && info.Mode().IsRegular() && info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 && !w.how.weak.Has(cell.KeepCaps) {
				return name + " has " + info.Mode().String() + " on the host"
			}
		}
		got := said(w.hostile("privileges"))
		if s := string(out.Output); got == "" && !strings.Contains(s, "CapEff:0000000000000000CapBnd:0000000000000000NoNewPrivs:1"+strconv.Itoa(insideID)) {
			got = s
		}
		return got
	}, []weakness{cell.NoSeccomp, cell.KeepCaps, cell.NoNewPrivOff | cell.NoSeccomp | cell.NoLandlock | cell.KeepCaps}})
}

func TestE26_TheKernelsOddCallsAreRefused(t *testing.T) {
	t.Parallel()
	prove(t, escape{"E26", func(w *world) string {
		return said(w.hostile("calls", "keyctl", "add_key", "request_key", "bpf", "perf", "io_uring", "userfaultfd", "init_module", "finit_module", "delete_module", "kexec",
			"swapon", "personality", "clock_settime", "syslog", "memfd_secret", "fcntl", "inotify", "quotactl", "fanotify", "a call of the future", "x32", "kcmp"))
	}, []weakness{cell.NoSeccomp}})
}

func TestE27_DevicesAndHandlesAreOutOfReach(t *testing.T) {
	t.Parallel()
	prove(t, escape{"E27", func(w *world) string {
		got := said(w.hostile("calls", "open_by_handle_at", "name_to_handle_at", "make a device"))
		devices := []string{"/dev/mem", "/dev/kmem", "/dev/port", "/dev/kmsg", "/dev/kvm", "/dev/fuse", "/dev/net/tun", "/dev/sda", "/dev/vda", "/dev/nvme0n1", "/dev/loop0", "/dev/loop-control",
			"/dev/tty", "/dev/console", "/dev/ptmx", "/dev/vsock", "/dev/vhost-vsock", "/dev/userfaultfd", "/dev/uinput", "/dev/rtc0", "/proc/kcore", "/proc/kmsg", "/sys/kernel/debug"}
		return got + said(w.hostile(append([]string{"open"}, devices...)...))
	}, []weakness{cell.NoSeccomp}})
}

func TestE28_KernelSettingsCannotBeWritten(t *testing.T) {
	t.Parallel()
	prove(t, escape{"E28", func(w *world) string {
		return said(w.hostile("write", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sysrq-trigger", "/proc/sys/net/ipv4/ip_forward", "/proc/sys/user/max_user_namespaces",
			"/proc/sys/vm/drop_caches", "/proc/sys/fs/binfmt_misc/register", "/proc/self/oom_score_adj", "/proc/self/uid_map", "/proc/1/oom_score_adj", "/sys/fs/cgroup/release_agent",
			"/sys/fs/cgroup/memory/release_agent", "/sys/fs/cgroup/cgroup.procs", "/sys/kernel/uevent_helper", "/proc/self/clear_refs", "/proc/self/coredump_filter"))
	}, []weakness{cell.KeepCaps | cell.NoLandlock}})
}

func TestE29_SharedMemoryOfTheHostIsElsewhere(t *testing.T) {
	t.Parallel()
	prove(t, escape{"E29", func(w *world) string {
		key := int(time.Now().UnixNano() & 0x7fffffff)
		id, err := unix.SysvShmGet(key, 4096, unix.IPC_CREAT|unix.IPC_EXCL|0o666)
		if err != nil {
			w.Fatal(err)
		}
		defer unix.SysvShmCtl(id, unix.IPC_RMID, nil) //nolint:errcheck // gone with the test
		b, err := unix.SysvShmAttach(id, 0, 0)
		if err != nil {
			w.Fatal(err)
		}
		copy(b, canary)
		defer unix.SysvShmDetach(b) //nolint:errcheck // likewise
		if f, err := os.CreateTemp("/dev/shm", canary); err == nil {
			defer os.Remove(f.Name())
			f.Close()
		}
		return said(w.hostile("shm", strconv.Itoa(key)))
	}, []weakness{cell.HostIPC | cell.NoSeccomp}})
}

func TestE30_TerminalsTakeNoTypingFromInside(t *testing.T) {
	t.Parallel()
	prove(t, escape{"E30", func(w *world) string {
		out := w.sh("tty && echo " + escaped + "a terminal; echo x >/dev/tty && echo " + escaped + "a controlling terminal; ps -o tty= -p $$ 2>/dev/null")
		return said(out) + said(w.hostile("calls", "type", "paste"))
	}, []weakness{cell.NoSeccomp}})
}

func TestE31_ForkBombIsBounded(t *testing.T) {
	t.Parallel()
	prove(t, escape{"E31", func(w *world) string {
		tries := "1500"
		if w.how.weak.Has(cell.NoProcesses) {
			tries = "300"
		}
		w.command.Limits.Memory = 1 << 30
		return said(w.hostile("forks", tries))
	}, []weakness{cell.NoProcesses}})
}

func TestE32_MemoryBombIsKilled(t *testing.T) {
	t.Parallel()
	for _, bomb := range []struct{ mib, processes string }{{"240", "1"}, {"40", "8"}} {
		t.Run(bomb.mib+"x"+bomb.processes, func(t *testing.T) {
			prove(t, escape{"E32", func(w *world) string {
				w.command.Limits.Memory = 128 << 20
				out := w.hostile("memory", bomb.mib, bomb.processes)
				if got := said(out); got != "" || out.Killed == "memory" {
					return got
				}
				w.Logf("%+v", out)
				return ""
			}, []weakness{cell.NoMemory}})
		})
	}
}

// E67: what the kernel holds for a command in sockets and pipes is memory too. Where there is a cgroup the kernel counts it itself.
func TestE67_KernelMemoryIsCounted(t *testing.T) {
	t.Parallel()
	n := proven(t)
	if n.look(); n.groups != nil {
		t.Log("a cgroup counts it")
		return
	}
	for name, bomb := range map[string][]string{
		"sockets": {"buffered", "150", "4"}, // some 250 MiB
		"pipes":   {"pipes", "500", "80"},   // some 350 MiB, or as much as the kernel gives one user in pipes
	} {
		var weak []weakness
		if name == "sockets" { // other processes of the user may have taken what there is of pipes: then there is nothing to escape with
			weak = []weakness{cell.NoMemory}
		}
		t.Run(name, func(t *testing.T) {
			prove(t, escape{"E67", func(w *world) string {
				w.command.Limits.Memory = 128 << 20
				out := w.hostile(bomb...)
				if got := said(out); got != "" || out.Killed == "memory" {
					return got
				}
				w.Logf("%+v", out)
				return ""
			}, weak})
		})
	}
}

// E67: files in memory count with the rest.
func TestE67_FilesInMemoryCount(t *testing.T) {
	t.Parallel()
	prove(t, escape{"E67", func(w *world) string {
		w.command.Limits.Memory = 128 << 20
		out := w.sh("head -c 30M /dev/zero >/tmp/a; head -c 15M /dev/zero >/dev/shm/b; head -c 160M /dev/zero | tail -c 160M >/dev/null; echo " + escaped + "all of it")
		if out.Killed == "memory" || strings.Contains(string(out.Output), "Killed") || strings.Contains(string(out.Output), "emory") {
			return ""
		}
		return said(out)
	}, []weakness{cell.NoMemory}})
}

// E67: buffers keep the size that they are counted with, and honest programs that ask for more run all the same.
func TestE67_BuffersAreNotRaised(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got := said(w.hostile("buffers"))
	if w.n.groups != nil {
		return // a cgroup counts what is in them
	}
	if got != "" {
		t.Error(got)
	}
}

func TestE33_MemoryFoldersHaveASize(t *testing.T) {
	t.Parallel()
	prove(t, escape{"E33", func(w *world) string {
		w.command.Limits.Memory = 128 << 20 // a quarter of it is /tmp, an eighth /dev/shm
		w.command.Limits.Disk = 1 << 30
		return said(w.hostile("fill", "/tmp", "50", "1", "34")) + said(w.hostile("fill", "/dev/shm", "50", "1", "18")) + said(w.hostile("fill", "/tmp", "9000", "0", "4100"))
	}, []weakness{cell.NoTmpSize}})
}

func TestE34_WorkFolderFillIsStopped(t *testing.T) {
	t.Parallel()
	const limit = 50 << 20
	prove(t, escape{"E34", func(w *world) string {
		w.command.Limits.Disk, w.command.Limits.Files = limit, 2000
		for _, args := range [][]string{{"1", "400", "9999"}, {"100", "4", "9999"}, {"20000", "0", "99999"}} { // one file, many, empty ones
			for _, old := range list(w.work) {
				if strings.HasPrefix(old, "fill") {
					_ = os.Remove(filepath.Join(w.work, old)) // what was made in there belongs to this user
				}
			}
			out := w.hostile(append([]string{"fill", "/work"}, args...)...)
			dir, err := os.Open(w.work)
			if err != nil {
				w.Fatal(err)
			}
			u := disk.Measure(dir, 1<<20, false)
			dir.Close()
			w.Logf("%v: %d MiB, %d files, %q", args, u.Bytes>>20, u.Files, out.Killed)
			if u.Bytes > 6*limit || u.Files > 15000 { // make bench has the 20 %; this machine may be busy
				return fmt.Sprintf("%v: %d MiB and %d files stay", args, u.Bytes>>20, u.Files)
			}
		}
		return ""
	}, []weakness{cell.NoDisk}})
}

func TestE35_OpenFilesAreBounded(t *testing.T) {
	t.Parallel()
	prove(t, escape{"E35", func(w *world) string { return said(w.hostile("opens")) }, []weakness{cell.NoFiles}})
}

func TestE36_SpinningStandsBackAndEnds(t *testing.T) {
	t.Parallel()
	prove(t, escape{"E36", func(w *world) string {
		w.command.Limits.Timeout = 300 * time.Millisecond
		ctx, cancel := context.WithTimeout(w.Context(), 5*time.Second)
		defer cancel()
		w.command.Argv, w.how.self = []string{hostilePath, "spin"}, hostilePath
		w.prepare()
		out, err := w.n.run(ctx, w.command, w.how)
		if err != nil {
			w.Fatal(err)
		}
		switch got := said(out); {
		case got != "":
			return got
		case out.Killed != "timeout" || !out.TimedOut:
			return fmt.Sprintf("it went on: %+v", out)
		case standsBack(w) && niceFor(w.how.weak) < niceness: // who tests stands back so far that a command does in any case
			return "it is told to keep the niceness of the gateway"
		}
		return ""
	}, []weakness{cell.NoNice, cell.NoTimeout}})
}

// standsBack says that this test runs at a niceness that would be enough for a command.
func standsBack(t testing.TB) bool {
	got, err := unix.Getpriority(unix.PRIO_PROCESS, 0) // 20 less the niceness
	if err != nil {
		t.Fatal(err)
	}
	return 20-got >= 10
}

func TestE37_DaemonsEndWithTheirCall(t *testing.T) {
	t.Parallel()
	prove(t, escape{"E37", func(w *world) string {
		mark := unique(w)
		defer end(w, mark)
		w.sh(`i=0; while [ $i -lt 60 ]; do (trap "" TERM HUP INT; setsid sleep ` + mark + ` >/dev/null 2>&1 </dev/null &) ; i=$((i+1)); done; ` +
			`(setsid sh -c '(trap "" TERM; sleep ` + mark + `) & exit' >/dev/null 2>&1 &); nohup sleep ` + mark + ` >/dev/null 2>&1 & exit 0`)
		if left := processesWith(mark); len(left) > 0 {
			return fmt.Sprint(len(left), " processes are left")
		}
		return ""
	}, []weakness{cell.HostPID}})
}

// gatewayToKill runs one command in a spare, with another spare beside it whose process it tells, until it is killed: work
// folder, mark, "weak" for an init that does not look after it.
func gatewayToKill() {
	n := newNS(Config{Backend: "ns"}, Deps{})
	n.look()
	h := how{}
	if os.Args[3] == "weak" {
		h.weak = cell.Weaken(cell.NoParent)
	}
	n.refill(h)
	n.spares.work.Wait()
	first := n.take(context.Background(), h)
	n.refill(h)
	n.spares.work.Wait()
	fmt.Println(n.spares.ready.process.Pid)
	n.spares.mu.Lock()
	n.spares.ready, first = first, n.spares.ready
	n.spares.mu.Unlock()
	_, err := n.run(context.Background(), Command{Line: "sleep " + os.Args[2], Work: os.Args[1]}, h)
	fmt.Println("ended", err, first.process.Pid)
}

func TestE38_NothingOutlivesAKilledGateway(t *testing.T) {
	t.Parallel()
	prove(t, escape{"E38", func(w *world) string {
		mark, how := unique(w), "strong"
		if w.how.weak.Has(cell.NoParent) {
			how = "weak"
		}
		defer end(w, mark)
		g := again(w, roleGateway, w.work, mark, how)
		told, err := g.StdoutPipe()
		if err != nil {
			w.Fatal(err)
		}
		if err := g.Start(); err != nil {
			w.Fatal(err)
		}
		spare := 0
		if _, err := fmt.Fscan(told, &spare); err != nil || spare == 0 {
			w.Fatal("no spare: ", err)
		}
		if !eventually(w, func() bool { // the shell's command, not the gateway whose argument it is
			for _, pid := range processesWith("sleep\x00" + mark) {
				if pid != g.Process.Pid {
					return true
				}
			}
			return false
		}) {
			return ""
		}
		if err := g.Process.Kill(); err != nil {
			w.Fatal(err)
		}
		_ = g.Wait() // it says that it was killed
		gone := time.After(10 * time.Second)
		if how == "weak" {
			gone = time.After(500 * time.Millisecond)
		}
		for len(processesWith(mark)) > 0 || syscall.Kill(spare, 0) == nil {
			select {
			case <-gone:
				return fmt.Sprint(len(processesWith(mark)), " processes are left, or the spare")
			case <-time.After(5 * time.Millisecond):
			}
		}
		return ""
	}, []weakness{cell.NoParent}})
}

func TestE40_FloodIsCutAndCostsNoMemory(t *testing.T) {
	prove(t, escape{"E40", func(w *world) string {
		w.command.Limits.Timeout, w.command.Limits.Output = time.Second, 64<<10
		runtime.GC()
		before := residentSelf(w)
		out := w.sh("yes | tr -d '\\n'")
		grown := residentSelf(w) - before
		w.Logf("%d bytes came, memory grew by %d KiB, file %q", out.OutputSize, grown>>10, out.OutputFile)
		if len(out.Output) > 66<<10 || grown > 8<<20+raceMemory {
			return fmt.Sprintf("%d bytes of output, memory grew by %d MiB", len(out.Output), grown>>20)
		}
		if w.how.weak == (switches{}) {
			info, err := os.Stat(filepath.Join(w.work, filepath.FromSlash(out.OutputFile)))
			if err != nil || out.OutputFile == "" || info.Size() > maxKept || info.Size() < 64<<10 || info.Size() != out.OutputKept {
				w.Errorf("the rest is in %q: %v %v", out.OutputFile, info, err)
			}
		}
		if late := w.hostile("late"); strings.Contains(string(late.Output), "late") {
			return "it wrote after its end"
		}
		return ""
	}, []weakness{cell.NoCut}})
}

func residentSelf(t testing.TB) int64 {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), "VmRSS:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(rest, "kB")), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatal("no VmRSS")
	return 0
}

func TestE42_EndsInTime(t *testing.T) {
	t.Parallel()
	prove(t, escape{"E42", func(w *world) string {
		for _, line := range []string{"setsid sleep 6 & exit 3", "sleep 6 & exit 0", "sleep 6", "trap '' TERM INT HUP; sleep 6; sleep 6"} {
			w.command.Limits.Timeout = 500 * time.Millisecond
			if out := w.sh(line); out.Took > 5*time.Second { // 750 ms where nothing else runs
				return fmt.Sprintf("%q took %v", line, out.Took)
			}
		}
		return ""
	}, []weakness{cell.NoTimeout, cell.NoReap | cell.NoTimeout}})
}

func TestE43_NothingIsAskedFor(t *testing.T) {
	t.Parallel()
	prove(t, escape{"E43", func(w *world) string {
		if w.how.weak.Has(cell.NoTimeout) { // the launcher that passes on what it reads from itself
			r, keep, err := os.Pipe()
			if err != nil {
				w.Fatal(err)
			}
			defer keep.Close()
			defer r.Close()
			w.how.stdin, w.how.weak = r, switches{}
		}
		w.command.Limits.Timeout = 15 * time.Second
		if w.how.stdin != nil {
			w.command.Limits.Timeout = 2 * time.Second
		}
		for _, line := range []string{"cat", "read x; echo $?", "read -r p </dev/tty", "command -v git >/dev/null && cd /tmp && git init -q && git commit --allow-empty", "command -v less >/dev/null && less /etc/passwd",
			"$EDITOR /tmp/x", "$VISUAL /tmp/x", "command -v su >/dev/null && su -c true", "command -v ssh >/dev/null && ssh -o StrictHostKeyChecking=ask localhost"} {
			if out := w.sh(line); out.TimedOut {
				return line + " waits"
			}
		}
		return ""
	}, []weakness{cell.NoTimeout}})
}

// gatewayWithoutSpaces forbids user namespaces to itself and tries a sandbox.
func gatewayWithoutSpaces() {
	err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0)
	n := newNS(Config{Backend: "ns"}, Deps{})
	r := n.Probe(context.Background())
	_, rerr := n.Run(context.Background(), Command{Line: "true", Work: os.TempDir()})
	fmt.Println(r.Tier, r.Reasons, rerr, err)
}

func TestE54_WithoutDefencesThereIsNoExec(t *testing.T) {
	t.Parallel()
	prove(t, escape{"E54", func(w *world) string {
		for name, weak := range map[string]weakness{
			"seccomp": cell.NoSeccomp, "the namespaces of the network": cell.HostNet | cell.NoLandlock, "the view of files": cell.HostRoot, "the read-only agent": cell.RWControl,
			"the namespace of processes": cell.HostPID, "the dropped capabilities": cell.KeepCaps, "the limit of files": cell.NoFiles,
		} {
			if !cell.CanWeaken {
				break // every launcher here is whole
			}
			if w.how.weak.Has(cell.SkipProbe) {
				weak |= cell.SkipProbe
			}
			n := newNS(Config{Backend: "ns"}, Deps{})
			n.weak = cell.Weaken(weak)
			r := n.Probe(w.Context())
			if _, err := n.Run(w.Context(), Command{Line: "true", Work: w.work}); r.Tier != TierNone || err == nil || len(r.Reasons) == 0 {
				return fmt.Sprintf("without %s the tier is %s", name, r.Tier)
			}
		}
		return noSpaces(w)
	}, []weakness{cell.SkipProbe}})
}

// noSpaces tries a machine without user namespaces: a namespace of its own in which there may be no more.
func noSpaces(w *world) string {
	c := again(w, roleNoSpace)
	id := []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
	group := []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: id, GidMappings: group}
	out, err := c.Output()
	if err != nil {
		w.Fatal(err)
	}
	if !strings.HasPrefix(string(out), "none [") || !strings.Contains(string(out), ErrUnavailable.Error()) {
		return "without user namespaces: " + string(out)
	}
	w.Logf("without user namespaces: %s", out)
	return ""
}
