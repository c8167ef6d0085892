package sandbox

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hostilePath is where this test program is shown inside, to do what a hostile command would. What it says of a success
// begins with escaped.
const (
	hostilePath = "/run/hostile"
	escaped     = "ESCAPED "
	canary      = "canary-7f3a91"
)

func got(format string, args ...any) { fmt.Printf(escaped+format+"\n", args...) }

// hostile is the program; its first argument names the attempt.
func hostile(args []string) {
	arg := func(i int) string { return append(args, make([]string, 8)...)[i] }
	number := func(i int) int { n, _ := strconv.Atoi(arg(i)); return n }
	switch args[0] {
	case "files":
		inheritedFiles()
	case "environ":
		environments()
	case "sockets":
		foreignSockets(arg(1))
	case "dial":
		if why := cannotDial(arg(1), arg(2))(); why != "" {
			got("connected to %s", arg(2))
		}
	case "talk":
		c, err := net.Dial("tcp", arg(1))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Fprint(c, arg(2))
		_, _ = io.Copy(os.Stdout, c) // what was heard is looked at by the test
	case "signal":
		if err := unix.Kill(number(1), 0); err == nil {
			got("process %d can be signalled", number(1))
		}
		process(number(1))
	case "init":
		process(1)
		if arg(1) == "look" {
			return
		}
		for _, s := range []unix.Signal{unix.SIGTERM, unix.SIGQUIT, unix.SIGSEGV, unix.SIGURG, unix.SIGSTOP, unix.SIGKILL, unix.SIGUSR1, 33, 34, 64} {
			_ = unix.Kill(1, s) // it must be there afterwards, for the outcome to arrive
		}
	case "processes":
		if name, err := os.ReadFile("/proc/" + arg(1) + "/comm"); err == nil && strings.TrimSpace(string(name)) == arg(2) {
			got("the gateway is process %s", arg(1))
		}
		if why := crowd(); why != "" {
			got("%s", why)
		}
	case "calls":
		names := args[1:]
		for _, d := range dangerousCalls() {
			for _, n := range names {
				if strings.HasPrefix(d.name, n) {
					if why := d.refused(); why != "" {
						got("%s: %s", d.name, why)
					}
				}
			}
		}
	case "whiteout":
		if why := leaveWhiteout(arg(1), arg(2)); why != "" {
			got("%s", why)
		}
	case "privileges":
		privileges()
	case "open":
		openAll(args[1:])
	case "write":
		for _, name := range args[1:] {
			if why := cannotWrite(name)(); why != "" {
				got("%s can be written", name)
			}
		}
	case "shm":
		sharedMemory(number(1))
	case "forks":
		forks(number(1))
	case "memory":
		memory(number(1), number(2))
	case "buffered":
		buffered(number(1), number(2))
	case "pipes":
		pipes(number(1), number(2))
	case "buffers":
		buffers()
	case "fill":
		fill(arg(1), number(2), number(3), number(4))
	case "opens":
		for n := range 4900 {
			if _, err := unix.Open("/dev/null", unix.O_RDONLY, 0); err != nil {
				break
			}
			if n == 520 {
				got("%d files are open", n)
			}
		}
	case "spin":
		if nice, err := unix.Getpriority(unix.PRIO_PROCESS, 0); err != nil || 20-nice < 10 {
			got("niceness is %d", 20-nice)
		}
		for range 4 {
			go func() {
				for i := 0; i >= 0; i = (i + 1) & 0xffff {
				}
			}()
		}
		select {}
	case "late":
		if pid, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", "sleep 1; echo late"}, &syscall.ProcAttr{Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true}}); err != nil || pid == 0 {
			fmt.Println(err)
		}
	case "pause":
		fmt.Println("pausing")
		select {}
	}
}

func inheritedFiles() {
	for fd := 3; fd < 1024; fd++ {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err != nil || flags&unix.FD_CLOEXEC != 0 {
			continue
		}
		buf := make([]byte, 64)
		n, _ := unix.Pread(fd, buf, 0)
		got("file %d is open: %q", fd, buf[:max(n, 0)])
	}
}

func environments() {
	if all := strings.Join(os.Environ(), "\n"); strings.Contains(all, canary) {
		got("it is in the own environment")
	}
	for _, name := range list("/proc") {
		data, err := os.ReadFile("/proc/" + name + "/environ")
		if err == nil && strings.Contains(string(data), canary) {
			got("it is in the environment of %s", name)
		}
	}
}

func foreignSockets(abstract string) {
	if why := cannotDial("unix", abstract)(); why != "" {
		got("an abstract socket of the host answers")
	}
	for _, s := range [][3]int{{unix.AF_NETLINK, unix.SOCK_RAW, 0}, {unix.AF_NETLINK, unix.SOCK_DGRAM, unix.NETLINK_AUDIT}, {unix.AF_VSOCK, unix.SOCK_STREAM, 0},
		{unix.AF_PACKET, unix.SOCK_RAW, 0}, {unix.AF_ALG, unix.SOCK_SEQPACKET, 0}, {unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP}, {unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP},
		{unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_ICMPV6}, {unix.AF_BLUETOOTH, unix.SOCK_RAW, 0}, {unix.AF_XDP, unix.SOCK_RAW, 0}, {unix.AF_TIPC, unix.SOCK_STREAM, 0},
		{unix.AF_INET, unix.SOCK_STREAM, 262 /* MPTCP */}, {unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP}, {unix.AF_KEY, unix.SOCK_RAW, 2}} {
		if fd, err := unix.Socket(s[0], s[1], s[2]); err == nil {
			got("a socket of family %d, protocol %d opens", s[0], s[2])
			unix.Close(fd)
		}
	}
	if _, err := unix.Socketpair(unix.AF_TIPC, unix.SOCK_STREAM, 0); err == nil {
		got("a pair of TIPC sockets opens")
	}
}

// process tries to look into another one.
func process(pid int) {
	at := "/proc/" + strconv.Itoa(pid)
	for _, name := range []string{"mem", "maps", "environ", "auxv", "root/etc/passwd", "cwd/etc/passwd"} {
		if why := cannotRead(at + "/" + name)(); why != "" && name != "auxv" {
			got("%s of %d can be read", name, pid)
		}
	}
	if len(list(at+"/fd")) > 0 {
		got("the files of %d can be listed", pid)
	}
	if _, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(pid), 0, 0, 0, 0); errno == 0 {
		got("%d can be traced", pid)
	}
	var b [8]byte
	local := []unix.Iovec{{Base: &b[0], Len: 8}}
	remote := []unix.RemoteIovec{{Base: 0x400000, Len: 8}}
	if _, err := unix.ProcessVMReadv(pid, local, remote, 0); err == nil {
		got("the memory of %d can be read", pid)
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	for i := range 16 {
		if _, err := unix.PidfdGetfd(fd, i, 0); err == nil {
			got("file %d of %d can be taken", i, pid)
		}
	}
}

func sharedMemory(key int) {
	id, err := unix.SysvShmGet(key, 4096, 0)
	if err == nil {
		var b []byte
		if b, err = unix.SysvShmAttach(id, 0, unix.SHM_RDONLY); err == nil {
			got("the host's shared memory says %q", b[:len(canary)])
		}
	}
	for _, d := range []string{"/dev/shm", "/dev/mqueue"} {
		if names := list(d); strings.Contains(strings.Join(names, " "), canary) {
			got("%s of the host is seen", d)
		}
	}
	name := append([]byte("q"), 0)
	if _, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(&name[0])), unix.O_CREAT|unix.O_RDWR, 0o600, 0, 0, 0); errno == 0 {
		got("a message queue opens")
	}
}

func forks(n int) {
	started := 0
	for range n {
		if _, err := syscall.ForkExec("/bin/sleep", []string{"sleep", "30"}, &syscall.ProcAttr{Files: []uintptr{0, 1, 2}}); err != nil {
			break
		}
		if started++; started == 257 {
			got("%d processes run", started)
		}
	}
	fmt.Println("started", started)
}

// memory takes mib MiB in each of n processes and holds them.
func memory(mib, n int) {
	for range n - 1 {
		if _, err := syscall.ForkExec("/proc/self/exe", []string{hostilePath, "memory", strconv.Itoa(mib), "1"}, &syscall.ProcAttr{Files: []uintptr{0, 1, 2}, Env: os.Environ()}); err != nil {
			return
		}
	}
	b, err := unix.Mmap(-1, 0, mib<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return
	}
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	<-time.After(time.Second) // together with the others
	got("%d MiB are held", mib)
}

// more starts further processes of this program that do the same as this one.
func more(n int, args ...string) bool {
	for range n - 1 {
		if _, err := syscall.ForkExec("/proc/self/exe", append([]string{hostilePath}, args...), &syscall.ProcAttr{Files: []uintptr{0, 1, 2}, Env: os.Environ()}); err != nil {
			return false
		}
	}
	return true
}

// stuff writes to a file until it takes no more.
func stuff(fd int) (n int) {
	chunk := make([]byte, 64<<10)
	for {
		m, err := unix.Write(fd, chunk)
		if err != nil {
			return n
		}
		n += m
	}
}

// buffered fills socket pairs in both directions, half of them with larger buffers if that may be had.
func buffered(pairs, n int) {
	if !more(n, "buffered", strconv.Itoa(pairs), "1") {
		return
	}
	held := 0
	for i := range pairs {
		p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			break
		}
		for _, fd := range p {
			if i%2 == 0 {
				_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 4<<20) // it may be passed over
			}
			held += stuff(fd)
		}
	}
	<-time.After(time.Second) // together with the others
	got("%d MiB are held by sockets", held>>20)
}

// pipes fills pipes.
func pipes(count, n int) {
	if !more(n, "pipes", strconv.Itoa(count), "1") {
		return
	}
	held := 0
	for range count {
		var p [2]int
		if unix.Pipe2(p[:], unix.O_NONBLOCK) != nil {
			break
		}
		held += stuff(p[1])
		unix.Close(p[1])
	}
	<-time.After(time.Second) // together with the others
	got("%d MiB are held by pipes", held>>20)
}

// buffers asks for larger ones.
func buffers() {
	p, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		got("%v", err)
	}
	was, _ := unix.GetsockoptInt(p[0], unix.SOL_SOCKET, unix.SO_SNDBUF)
	for _, o := range []int{unix.SO_SNDBUF, unix.SO_RCVBUF} {
		if err := unix.SetsockoptInt(p[0], unix.SOL_SOCKET, o, 4<<20); err != nil {
			got("an honest program would fail: %v", err)
		}
	}
	if now, _ := unix.GetsockoptInt(p[0], unix.SOL_SOCKET, unix.SO_SNDBUF); now > was {
		got("a buffer of %d bytes is now one of %d", was, now)
	}
	var q [2]int
	if err := unix.Pipe2(q[:], 0); err == nil {
		if n, err := unix.FcntlInt(uintptr(q[0]), unix.F_SETPIPE_SZ, 1<<20); err == nil {
			got("a pipe has %d bytes", n)
		}
	}
}

// fill writes count files of mib MiB; past the bound, in MiB or in files, it has got out.
func fill(dir string, count, mib, bound int) {
	chunk := make([]byte, 1<<20)
	written := 0
	for i := range count {
		f, err := os.Create(filepath.Join(dir, "fill"+strconv.Itoa(i)))
		if err != nil {
			return
		}
		for range mib {
			if _, err := f.Write(chunk); err != nil {
				return
			}
			if written++; written == bound {
				got("%d MiB are in %s", written, dir)
			}
		}
		f.Close()
		if mib == 0 && i == bound {
			got("%d files are in %s", i, dir)
		}
	}
}

// openAll tries to open each for reading and for writing.
func openAll(names []string) {
	for _, name := range names {
		for _, mode := range []int{unix.O_RDONLY, unix.O_WRONLY} {
			fd, err := unix.Open(name, mode|unix.O_NONBLOCK, 0)
			if err != nil {
				continue
			}
			var st unix.Stat_t // what is covered is the null device
			if err := unix.Fstat(fd, &st); err != nil || st.Rdev != unix.Mkdev(1, 3) {
				got("%s opens", name)
			}
			unix.Close(fd)
		}
	}
}

// privileges looks for any that is left.
func privileges() {
	for key, want := range map[string]string{"NoNewPrivs": "1", "CapEff": strings.Repeat("0", 16), "CapBnd": strings.Repeat("0", 16), "CapPrm": strings.Repeat("0", 16), "CapInh": strings.Repeat("0", 16), "CapAmb": strings.Repeat("0", 16)} {
		if why := statusIs(key, want)(); why != "" {
			got("%s is %s", key, why)
		}
	}
}
