package sandbox

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Attributes of mounts (mount_setattr(2)).
const (
	attrRO   = unix.MOUNT_ATTR_RDONLY
	attrSafe = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
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
	return []string{"kcore", "keys", "key-users", "kmsg", "kallsyms", "modules", "sysrq-trigger", "timer_list", "cmdline", "config.gz", "iomem", "ioports", "sched_debug", "vmallocinfo", "slabinfo"}
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

// tree is a detached mount with its place inside.
type tree struct {
	fd   int
	at   string // relative to the root
	file bool
}

// open takes a copy of a mount and narrows it before it can be seen anywhere. Symbolic links in path are followed: it is
// for places that no command can write.
func open(path string, attr uint64) (fd int, dir bool, err error) {
	at, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, false, err
	}
	defer unix.Close(at)
	return openAt(at, attr)
}

// openStrictly is open for a place below which a command may have made links: it follows none.
func openStrictly(path string, attr uint64) (fd int, dir bool, err error) {
	at, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS})
	if err != nil {
		return -1, false, err
	}
	defer unix.Close(at)
	return openAt(at, attr)
}

func openAt(at int, attr uint64) (fd int, dir bool, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return -1, false, err
	}
	fd, err = unix.OpenTree(at, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	if err != nil {
		return -1, false, fmt.Errorf("copy the mount: %w", err)
	}
	if attr != 0 {
		if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: attr}); err != nil {
			unix.Close(fd)
			return -1, false, fmt.Errorf("narrow the mount: %w", err)
		}
	}
	return fd, st.Mode&unix.S_IFMT == unix.S_IFDIR, nil
}

// fresh makes a detached mount of a file system that has no device.
func fresh(kind string, attr int, options ...string) (int, error) {
	fs, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fs)
	for _, o := range options {
		k, v, _ := strings.Cut(o, "=")
		if err := unix.FsconfigSetString(fs, k, v); err != nil {
			return -1, fmt.Errorf("%s of %s: %w", o, kind, err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, err
	}
	return unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, attr)
}

// buildRoot makes the view of files that the command has and enters it. Nothing of the host's is reachable afterwards.
func buildRoot(s *spec, fds []int) (step string, err error) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return "make the mounts private", err
	}
	trees, err := system(s)
	if err != nil {
		return "open the system", err
	}
	shown, err := wanted(s, fds)
	if err != nil {
		return "open the folders", err
	}
	if err := enterEmpty(); err != nil {
		return "make the root", err
	}
	for name, text := range made(s.UID) {
		if err := writeFile(name, text); err != nil {
			return "make " + name, err
		}
	}
	if err := memoryFolders(s); err != nil {
		return "make /tmp", err
	}
	for _, t := range append(trees, shown...) {
		if err := attach(t); err != nil {
			return "show /" + t.at, err
		}
	}
	if err := showProc(s); err != nil {
		return "make /proc", err
	}
	for _, c := range s.Covers {
		if err := cover(strings.TrimPrefix(c, "/")); err != nil {
			return "cover " + c, err
		}
	}
	return turn(s)
}

// system opens what every command sees of the host.
func system(s *spec) (trees []tree, err error) {
	attr := uint64(attrRO | attrSafe)
	if s.Weak.RWSystem {
		attr = attrSafe
	}
	if s.Weak.NoNewPrivOff {
		attr &^= unix.MOUNT_ATTR_NOSUID
	}
	for _, d := range systemDirs() {
		var st unix.Stat_t
		if unix.Lstat("/"+d, &st) != nil || st.Mode&unix.S_IFMT == unix.S_IFLNK {
			continue // enterEmpty makes the links
		}
		fd, _, err := open("/"+d, attr)
		if err != nil {
			return nil, fmt.Errorf("/%s: %w", d, err)
		}
		trees = append(trees, tree{fd: fd, at: d})
	}
	for _, name := range matching("/etc", etcNames()) {
		if fd, dir, err := open("/etc/"+name, attr); err == nil { // what this system lacks is not shown
			trees = append(trees, tree{fd: fd, at: "etc/" + name, file: !dir})
		}
	}
	for _, d := range devices() {
		fd, _, err := open("/dev/"+d, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC)
		if err != nil {
			return nil, fmt.Errorf("/dev/%s: %w", d, err)
		}
		trees = append(trees, tree{fd: fd, at: "dev/" + d, file: true})
	}
	return trees, nil
}

// matching resolves the patterns in names; those without a star are taken as they are.
func matching(dir string, names []string) (found []string) {
	var listing []string
	for _, n := range names {
		if !strings.Contains(n, "*") {
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
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	for buf := make([]byte, 16<<10); ; {
		n, err := unix.ReadDirent(fd, buf)
		if err != nil || n <= 0 {
			return names
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
}

// wanted opens the folders of this call.
func wanted(s *spec, fds []int) (trees []tree, err error) {
	for _, m := range s.Mounts {
		at := strings.TrimPrefix(m.As, "/")
		if m.Host == "" {
			if m.FD >= len(fds) {
				return nil, fmt.Errorf("%s: its file did not come", m.As)
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
			return nil, fmt.Errorf("%s: %w", m.As, err)
		}
		trees = append(trees, tree{fd: fd, at: at, file: !dir})
	}
	return trees, nil
}

// enterEmpty puts an empty file system over /tmp, which every system has, and goes there.
func enterEmpty() error {
	root, err := fresh("tmpfs", attrSafe, "size=4194304", "nr_inodes=4096", "mode=0755")
	if err != nil {
		return err
	}
	defer unix.Close(root)
	links := map[string]string{}
	for _, d := range systemDirs() {
		buf := make([]byte, 256)
		if n, err := unix.Readlink("/"+d, buf); err == nil {
			links[d] = string(buf[:n])
		}
	}
	if err := unix.MoveMount(root, "", unix.AT_FDCWD, "/tmp", unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return err
	}
	if err := unix.Chdir("/tmp"); err != nil { // now the new one
		return err
	}
	for _, d := range []string{"etc", "dev", "proc", "tmp", "var", "run"} {
		if err := unix.Mkdir(d, 0o755); err != nil {
			return err
		}
	}
	links["var/tmp"], links["dev/fd"] = "/tmp", "/proc/self/fd"
	links["dev/stdin"], links["dev/stdout"], links["dev/stderr"] = "/proc/self/fd/0", "/proc/self/fd/1", "/proc/self/fd/2"
	links["etc/mtab"] = "/proc/self/mounts"
	for at, to := range links {
		if err := unix.Symlink(to, at); err != nil {
			return err
		}
	}
	return nil
}

// memoryFolders makes /tmp and /dev/shm, which are memory and therefore have a size and a number of files.
func memoryFolders(s *spec) error {
	for at, size := range map[string]int64{"tmp": s.Tmp, "dev/shm": s.Shm} {
		options := []string{"mode=1777", "size=" + strconv.FormatInt(size, 10), "nr_inodes=" + strconv.FormatInt(max(size>>13, 1024), 10)}
		attr := attrSafe
		if at == "dev/shm" {
			attr |= unix.MOUNT_ATTR_NOEXEC
		}
		if s.Weak.NoTmpSize {
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
	if err := mkdirs(path.Dir(t.at)); err != nil {
		return err
	}
	if t.file {
		if err := writeFile(t.at, ""); err != nil {
			return err
		}
	} else if err := mkdirs(t.at); err != nil {
		return err
	}
	defer unix.Close(t.fd)
	return unix.MoveMount(t.fd, "", unix.AT_FDCWD, t.at, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

func mkdirs(dir string) error {
	if dir == "." || dir == "/" {
		return nil
	}
	if err := unix.Mkdir(dir, 0o755); err == nil || errors.Is(err, unix.EEXIST) {
		return nil
	}
	if err := mkdirs(path.Dir(dir)); err != nil {
		return err
	}
	if err := unix.Mkdir(dir, 0o755); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	return nil
}

// writeFile leaves one that is there as it is.
func writeFile(name, text string) error {
	if err := mkdirs(path.Dir(name)); err != nil {
		return err
	}
	fd, err := unix.Open(name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o644)
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if text == "" {
		return nil
	}
	_, err = unix.Write(fd, []byte(text))
	return err
}

// showProc mounts the processes of this sandbox and hides what /proc tells of the host.
func showProc(s *spec) error {
	if s.Weak.HostPID {
		fd, _, err := open("/proc", 0) // of the host: the mounts outside are still there
		if err != nil {
			return err
		}
		return attach(tree{fd: fd, at: "proc"})
	}
	fd, err := fresh("proc", attrSafe|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return fmt.Errorf("%w (a container that hides parts of /proc does not allow it)", err)
	}
	if err := attach(tree{fd: fd, at: "proc"}); err != nil {
		return err
	}
	for _, name := range hidden() {
		if err := cover("proc/" + name); err != nil {
			return fmt.Errorf("hide %s: %w", name, err)
		}
	}
	return nil
}

// cover puts an empty folder, or nothing, over what is there; relative to the root that is being built.
func cover(at string) error {
	var st unix.Stat_t
	if err := unix.Lstat(at, &st); errors.Is(err, unix.ENOENT) {
		return nil
	} else if err != nil {
		return err
	}
	var fd int
	var err error
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		fd, err = fresh("tmpfs", attrRO|attrSafe, "size=4096", "nr_inodes=2", "mode=0555")
	} else {
		fd, _, err = open("dev/null", attrRO|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC)
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.MoveMount(fd, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// turn makes the new root the root, lets go of the old one, and closes the new one to writing.
func turn(s *spec) (step string, err error) {
	if err := unix.PivotRoot(".", "."); err != nil {
		return "turn the root", err
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return "let go of the old root", err
	}
	if err := unix.Chdir("/"); err != nil {
		return "enter the root", err
	}
	if s.Weak.RWSystem {
		return "", nil
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", 0, &unix.MountAttr{Attr_set: attrRO}); err != nil {
		return "close the root", err
	}
	return "", nil
}

// loopback brings up lo in the sandbox's own network, for programs that talk to themselves.
func loopback(s *spec) error {
	if s.Weak.HostNet {
		return nil
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r)
}

// listen opens the one port behind which the proxy is; the gateway accepts from it.
func listen(port int) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return -1, err
	}
	return fd, unix.Listen(fd, 64)
}
