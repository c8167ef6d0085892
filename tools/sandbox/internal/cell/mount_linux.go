package cell

import (
	"errors"
	"path"
	"strconv"
	"syscall"
	"unsafe"
)

// Attributes of mounts (mount_setattr(2)).
const (
	attrRO   = mountReadOnly
	attrSafe = mountNoSuid | mountNoDev
)

// systemDirs gives the folders with programs and libraries. Where they are links into /usr, as on most systems, the link is made.
func systemDirs() []string {
	return []string{"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"}
}

// etcNames gives what programs need of /etc: how to find libraries, names, zones, certificates. Nothing that tells of the
// host's people, network or secrets: passwd, group and hosts are made up.
func etcNames() []string {
	return []string{
		"alternatives", "ca-certificates", "ssl/certs", "ssl/openssl.cnf", "ssl/cert.pem", "pki/tls/certs", "pki/tls/openssl.cnf", "pki/ca-trust/extracted", "crypto-policies",
		"ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "timezone", "nsswitch.conf", "protocols", "services", "mime.types", "magic", "locale.alias",
		"os-release", "debian_version", "fonts", "perl", "terminfo", "python3*", "java-*", "maven", "ImageMagick-*", "texmf",
	}
}

func devices() []string { return []string{"null", "zero", "full", "random", "urandom"} }

// hidden gives what of /proc tells about the host or its kernel more than a command needs.
func hidden() []string {
	return []string{"kcore", "keys", "key-users", "kmsg", "kallsyms", "modules", "sysrq-trigger", "timer_list", "cmdline", "config.gz", "iomem", "ioports", "sched_debug", "vmallocinfo", "slabinfo",
		"interrupts", "softirqs", "diskstats", "partitions", "misc", "devices", "vmstat", "zoneinfo", "buddyinfo", "pagetypeinfo", "pressure", "schedstat", "locks", "swaps", "consoles", "fb", "dma", "bus", "irq", "driver", "tty", "scsi", "mdstat", "acpi"}
}

// made gives the files of /etc that are made up.
func made(uid int) map[string]string {
	id := strconv.Itoa(uid)
	return map[string]string{
		"etc/passwd": "root:x:0:0:root:/:/usr/sbin/nologin\nagent:x:" + id + ":" + id + ":agent:/tmp:/bin/sh\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
		"etc/group":  "root:x:0:\nagent:x:" + id + ":\nnogroup:x:65534:\n",
		"etc/hosts":  "127.0.0.1 localhost sandbox\n::1 localhost\n", "etc/hostname": "sandbox\n", "etc/resolv.conf": "",
		"etc/gitconfig": "[safe]\n\tdirectory = *\n[init]\n\tdefaultBranch = main\n[user]\n\tname = agent\n\temail = agent@localhost\n",
	}
}

// inRoot is a path of the new root while it is being built, from there.
func inRoot(p string) string {
	if p != "" && p[0] == '/' {
		return p[1:]
	}
	return p
}

// tree is a detached mount with its place inside.
type tree struct {
	fd   int
	at   string // relative to the root
	file bool
}

// open takes a copy of a mount and narrows it before it can be seen anywhere. Symbolic links in path are followed: it is
// for places that no command can write.
func open(path string, attr uint64) (fd int, dir bool, err error) {
	at, err := syscall.Open(path, oPath|syscall.O_CLOEXEC, 0)
	if err != nil {
		return -1, false, err
	}
	defer syscall.Close(at)
	return openAt(at, attr)
}

// openStrictly is open for a place below which a command may have made links: it follows none.
func openStrictly(path string, attr uint64) (fd int, dir bool, err error) {
	at, err := openat2(atFDCWD, path, openHow{flags: oPath | syscall.O_CLOEXEC, resolve: resolveNoSymlinks | resolveNoMagic})
	if err != nil {
		return -1, false, err
	}
	defer syscall.Close(at)
	return openAt(at, attr)
}

func openAt(at int, attr uint64) (fd int, dir bool, err error) {
	var st syscall.Stat_t
	if err := syscall.Fstat(at, &st); err != nil {
		return -1, false, err
	}
	fd, err = onPath(sysOpenTree, at, "", openTreeClone|openTreeCloexec|atEmptyPath|atRecursive)
	if err != nil {
		return -1, false, wrap("copy the mount", err)
	}
	if attr != 0 {
		if err := setAttr(fd, "", atEmptyPath|atRecursive, attr); err != nil {
			syscall.Close(fd)
			return -1, false, wrap("narrow the mount", err)
		}
	}
	return fd, st.Mode&syscall.S_IFMT == syscall.S_IFDIR, nil
}

// fresh makes a detached mount of a file system that has no device.
func fresh(kind string, attr int, options ...string) (int, error) {
	name, err := syscall.BytePtrFromString(kind)
	if err != nil {
		return -1, err
	}
	fs, err := sys(sysFsopen, uintptr(unsafe.Pointer(name)), fsopenCloexec)
	if err != nil {
		return -1, err
	}
	defer syscall.Close(fs)
	for _, o := range options {
		k, v, _ := cut(o, '=')
		if err := fsSet(fs, k, v); err != nil {
			return -1, wrap(o+" of "+kind, err)
		}
	}
	if _, err := sys(sysFsconfig, uintptr(fs), fsconfigCreate); err != nil {
		return -1, err
	}
	return sys(sysFsmount, uintptr(fs), fsmountCloexec, uintptr(attr))
}

// buildRoot makes the part of the view of files that every command has. The host's is still the root: the command's folders
// come from there.
func buildRoot(w *Walls) (step string, err error) {
	// What the host unmounts while init waits goes here too; nothing goes the other way.
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_SLAVE, ""); err != nil {
		return "make the mounts its own", err
	}
	trees, err := system(w)
	if err != nil {
		return "open the system", err
	}
	proc, err := openProc(w)
	if err != nil {
		return "make /proc", err
	}
	if err := enterEmpty(); err != nil {
		return "make the root", err
	}
	for name, text := range made(w.UID) {
		if err := writeFile(name, text); err != nil {
			return "make " + name, err
		}
	}
	for _, t := range append(trees, proc) {
		if err := attach(t); err != nil {
			return "show /" + t.at, err
		}
	}
	if w.Weak.Has(HostPID) {
		return "", nil
	}
	var empty covers
	for _, name := range hidden() {
		if err := empty.over("proc/" + name); err != nil {
			return "hide /proc/" + name, err
		}
	}
	return "", nil
}

// furnish adds what this command has, and enters. Nothing of the host's is reachable afterwards.
func (c *inside) furnish(fds []int) (step string, err error) {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return "make the mounts private", err
	}
	shown, err := wanted(&c.Spec, fds)
	if err != nil {
		return "open the folders", err
	}
	if err := c.memoryFolders(); err != nil {
		return "make /tmp", err
	}
	for _, t := range shown {
		if err := attach(t); err != nil {
			return "show /" + t.at, err
		}
	}
	for _, p := range c.Pins {
		if err := pin(p); err != nil {
			return "protect " + p.At, err
		}
	}
	var empty covers
	for _, p := range c.Covers {
		if err := empty.over(inRoot(p)); err != nil {
			return "cover " + p, err
		}
	}
	return turn(&c.Walls)
}

// system opens what every command sees of the host.
func system(w *Walls) (trees []tree, err error) {
	attr := uint64(attrRO | attrSafe)
	if w.Weak.Has(RWSystem) {
		attr = attrSafe
	}
	if w.Weak.Has(NoNewPrivOff) {
		attr &^= mountNoSuid
	}
	for _, d := range systemDirs() {
		var st syscall.Stat_t
		if syscall.Lstat("/"+d, &st) != nil || st.Mode&syscall.S_IFMT == syscall.S_IFLNK {
			continue // enterEmpty makes the links
		}
		fd, _, err := open("/"+d, attr)
		if err != nil {
			return nil, wrap("/"+d, err)
		}
		trees = append(trees, tree{fd: fd, at: d})
	}
	for _, name := range matching("/etc", etcNames()) {
		if fd, dir, err := open("/etc/"+name, attr); err == nil { // what this system lacks is not shown
			trees = append(trees, tree{fd: fd, at: "etc/" + name, file: !dir})
		}
	}
	for _, d := range devices() {
		fd, _, err := open("/dev/"+d, mountNoSuid|mountNoExec)
		if err != nil {
			return nil, wrap("/dev/"+d, err)
		}
		trees = append(trees, tree{fd: fd, at: "dev/" + d, file: true})
	}
	return trees, nil
}

// matching resolves the patterns in names; those without a star are taken as they are.
func matching(dir string, names []string) (found []string) {
	var listing []string
	for _, n := range names {
		if _, _, pattern := cut(n, '*'); !pattern {
			found = append(found, n)
			continue
		}
		if listing == nil {
			listing = list(dir)
		}
		for _, have := range listing {
			if ok, err := path.Match(n, have); ok && err == nil {
				found = append(found, have)
			}
		}
	}
	return found
}

// list gives the names in a folder; none if it cannot be read.
func list(dir string) (names []string) {
	fd, err := syscall.Open(dir, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer syscall.Close(fd)
	for buf := make([]byte, 16<<10); ; {
		n, err := syscall.ReadDirent(fd, buf)
		if err != nil || n <= 0 {
			return names
		}
		_, _, names = syscall.ParseDirent(buf[:n], -1, names)
	}
}

// wanted opens the folders of this call.
func wanted(s *Spec, fds []int) (trees []tree, err error) {
	for _, m := range s.Mounts {
		at := inRoot(m.As)
		if m.Host == "" {
			if m.FD >= len(fds) {
				return nil, errors.New(m.As + ": its file did not come")
			}
			trees = append(trees, tree{fd: fds[m.FD], at: at, file: m.File})
			continue
		}
		attr := uint64(attrSafe)
		if !m.RW {
			attr |= attrRO
		}
		fd, dir, err := openStrictly(m.Host, attr)
		if err != nil {
			return nil, wrap(m.As, err)
		}
		trees = append(trees, tree{fd: fd, at: at, file: !dir})
	}
	return trees, nil
}

// enterEmpty puts an empty file system over /proc, which every system has and no folder of a command is in, and goes there.
func enterEmpty() error {
	root, err := fresh("tmpfs", attrSafe, "size=4194304", "nr_inodes=4096", "mode=0755")
	if err != nil {
		return err
	}
	defer syscall.Close(root)
	links := map[string]string{}
	for _, d := range systemDirs() {
		buf := make([]byte, 256)
		if n, err := syscall.Readlink("/"+d, buf); err == nil {
			links[d] = string(buf[:n])
		}
	}
	if err := moveMount(root, "/proc"); err != nil {
		return err
	}
	if err := syscall.Chdir("/proc"); err != nil { // now the new one
		return err
	}
	for _, d := range []string{"etc", "dev", "proc", "tmp", "var", "run"} {
		if err := syscall.Mkdir(d, 0o755); err != nil {
			return err
		}
	}
	links["var/tmp"], links["dev/fd"] = "/tmp", "/proc/self/fd"
	links["dev/stdin"], links["dev/stdout"], links["dev/stderr"] = "/proc/self/fd/0", "/proc/self/fd/1", "/proc/self/fd/2"
	links["etc/mtab"] = "/proc/self/mounts"
	for at, to := range links {
		if err := syscall.Symlink(to, at); err != nil {
			return err
		}
	}
	return nil
}

// errMoved says that a pin is no longer where it was found.
var errMoved = errors.New("it has been moved")

// pin shows what is there read-only. The mount goes over the very file that was looked at, whatever it is called by then.
func pin(p Pin) error {
	at, err := openat2(atFDCWD, inRoot(p.At), openHow{flags: oPath | syscall.O_CLOEXEC | syscall.O_NOFOLLOW, resolve: resolveNoSymlinks | resolveNoMagic})
	switch {
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENOTDIR):
		return errMoved
	case err != nil:
		return err
	}
	defer syscall.Close(at)
	var st syscall.Stat_t
	if err := syscall.Fstat(at, &st); err != nil {
		return err
	}
	if uint64(st.Dev) != p.Dev || st.Ino != p.Ino {
		return errMoved
	}
	fd, _, err := openAt(at, attrRO|attrSafe)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	return moveMountOnto(fd, at)
}

// memoryFolders makes /tmp and /dev/shm, which are memory and therefore have a size and a number of files.
func (c *inside) memoryFolders() error {
	for at, size := range map[string]int64{"tmp": c.Tmp, "dev/shm": c.Shm} {
		options := []string{"mode=1777", "size=" + strconv.FormatInt(size, 10), "nr_inodes=" + strconv.FormatInt(max(size>>13, 1024), 10)}
		attr := attrSafe
		if at == "dev/shm" {
			attr |= mountNoExec
		}
		if c.Weak.Has(NoTmpSize) {
			options = options[:1]
		}
		fd, err := fresh("tmpfs", attr, options...)
		if err != nil {
			return err
		}
		if err := attach(tree{fd: fd, at: at}); err != nil {
			return err
		}
	}
	return nil
}

// attach puts a detached mount at its place, which it makes.
func attach(t tree) error {
	if t.file {
		if err := writeFile(t.at, ""); err != nil {
			return err
		}
	} else if err := mkdirs(t.at); err != nil {
		return err
	}
	defer syscall.Close(t.fd)
	return moveMount(t.fd, t.at)
}

func mkdirs(dir string) error {
	if dir == "." || dir == "/" {
		return nil
	}
	if err := syscall.Mkdir(dir, 0o755); err == nil || errors.Is(err, syscall.EEXIST) {
		return nil
	}
	if err := mkdirs(path.Dir(dir)); err != nil {
		return err
	}
	if err := syscall.Mkdir(dir, 0o755); err != nil && !errors.Is(err, syscall.EEXIST) {
		return err
	}
	return nil
}

// writeFile leaves one that is there as it is.
func writeFile(name, text string) error {
	const flags = syscall.O_WRONLY | syscall.O_CREAT | syscall.O_EXCL | syscall.O_CLOEXEC | syscall.O_NOFOLLOW
	fd, err := syscall.Open(name, flags, 0o644)
	if errors.Is(err, syscall.ENOENT) {
		if err = mkdirs(path.Dir(name)); err == nil {
			fd, err = syscall.Open(name, flags, 0o644)
		}
	}
	if errors.Is(err, syscall.EEXIST) {
		return nil
	}
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	if text == "" {
		return nil
	}
	_, err = syscall.Write(fd, []byte(text))
	return err
}

// openProc makes the /proc that shows the processes of this sandbox.
func openProc(w *Walls) (tree, error) {
	if w.Weak.Has(HostPID) {
		fd, _, err := open("/proc", 0)
		return tree{fd: fd, at: "proc"}, err
	}
	fd, err := fresh("proc", attrSafe|mountNoExec)
	if err != nil {
		err = wrap("a container that hides parts of /proc does not allow it", err)
	}
	return tree{fd: fd, at: "proc"}, err
}

// covers puts an empty folder, or nothing, over what is not to be seen. Each further one is a copy of the first, which a start
// has no time to open and narrow again.
type covers struct{ folder, file string } // where there is one already

// over covers what is there, if anything is; at is relative to the root that is being built.
func (c *covers) over(at string) error {
	var st syscall.Stat_t
	if err := syscall.Lstat(at, &st); errors.Is(err, syscall.ENOENT) {
		return nil
	} else if err != nil {
		return err
	}
	first := &c.file
	if st.Mode&syscall.S_IFMT == syscall.S_IFDIR {
		first = &c.folder
	}
	var fd int
	var err error
	switch {
	case *first != "":
		fd, err = onPath(sysOpenTree, atFDCWD, *first, openTreeClone|openTreeCloexec)
	case first == &c.folder:
		fd, _, err = open("run", attrRO|attrSafe|mountNoExec) // enterEmpty makes it, and nothing is ever in it
	default:
		fd, _, err = open("dev/null", attrRO|mountNoSuid|mountNoExec)
	}
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	if err := moveMount(fd, at); err != nil {
		return err
	}
	*first = at
	return nil
}

// turn makes the new root the root, lets go of the old one, and closes the new one to writing.
func turn(w *Walls) (step string, err error) {
	if err := syscall.PivotRoot(".", "."); err != nil {
		return "turn the root", err
	}
	if err := syscall.Unmount(".", syscall.MNT_DETACH); err != nil {
		return "let go of the old root", err
	}
	if err := syscall.Chdir("/"); err != nil {
		return "enter the root", err
	}
	if w.Weak.Has(RWSystem) {
		return "", nil
	}
	if err := setAttr(atFDCWD, "/", 0, attrRO); err != nil {
		return "close the root", err
	}
	return "", nil
}

// loopback brings up lo in the sandbox's own network, for programs that talk to themselves.
func loopback(w *Walls) error {
	if w.Weak.Has(HostNet) {
		return nil
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	r := ifreq{name: [16]byte{'l', 'o'}, flags: syscall.IFF_UP | syscall.IFF_RUNNING}
	_, err = sys(syscall.SYS_IOCTL, uintptr(fd), syscall.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&r)))
	return err
}

// boundSockets keeps the buffers of TCP as small as those of other sockets: here it talks over the loopback alone. Best effort: a kernel
// that does not let a network have its own keeps the machine's.
func boundSockets(w *Walls) {
	if w.Weak.Has(HostNet) || w.Weak.Has(HostRoot) {
		return
	}
	for _, name := range []string{"tcp_rmem", "tcp_wmem"} {
		if fd, err := syscall.Open("/proc/sys/net/ipv4/"+name, syscall.O_WRONLY|syscall.O_CLOEXEC, 0); err == nil {
			_, _ = syscall.Write(fd, []byte("4096 65536 131072"))
			syscall.Close(fd)
		}
	}
}

// listen opens the one port behind which the proxy is; the gateway accepts from it.
func listen(port int) (int, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return -1, err
	}
	return fd, syscall.Listen(fd, 64)
}
