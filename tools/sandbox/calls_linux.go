package sandbox

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// dangerousCall is a system call with arguments under which it does nothing where it is refused, and says so in another
// way where it is not.
type dangerousCall struct {
	name   string
	number uintptr
	args   [6]uintptr
	made   bool // a result is something to close
}

// dangerousCalls is tried by the self-test and by the tests.
func dangerousCalls() []dangerousCall {
	const query = ^uintptr(0)         // an argument that none of them takes
	const addrNoRandomize = 0x0040000 // personality(2)
	list := []dangerousCall{
		{name: "ptrace", number: unix.SYS_PTRACE, args: [6]uintptr{unix.PTRACE_TRACEME}},
		{name: "process_vm_readv", number: unix.SYS_PROCESS_VM_READV, args: [6]uintptr{1}},
		{name: "pidfd_getfd", number: unix.SYS_PIDFD_GETFD, args: [6]uintptr{query}},
		{name: "kcmp", number: unix.SYS_KCMP, args: [6]uintptr{1, 1}},
		{name: "mount", number: unix.SYS_MOUNT},
		{name: "umount2", number: unix.SYS_UMOUNT2},
		{name: "pivot_root", number: unix.SYS_PIVOT_ROOT},
		{name: "move_mount", number: unix.SYS_MOVE_MOUNT, args: [6]uintptr{query, 0, query, 0, query}},
		{name: "open_tree", number: unix.SYS_OPEN_TREE, args: [6]uintptr{query, 0, query}},
		{name: "fsopen", number: unix.SYS_FSOPEN, args: [6]uintptr{0, query}},
		{name: "mount_setattr", number: unix.SYS_MOUNT_SETATTR, args: [6]uintptr{query, 0, query}},
		{name: "chroot", number: unix.SYS_CHROOT},
		{name: "setns", number: unix.SYS_SETNS, args: [6]uintptr{query}},
		{name: "unshare a user namespace", number: unix.SYS_UNSHARE, args: [6]uintptr{unix.CLONE_NEWUSER | unix.CLONE_NEWNS}},
		{name: "unshare a file table", number: unix.SYS_UNSHARE, args: [6]uintptr{unix.CLONE_FILES}},
		{name: "clone into a user namespace", number: unix.SYS_CLONE, args: [6]uintptr{unix.CLONE_NEWUSER | unix.CLONE_THREAD}},
		{name: "clone3", number: unix.SYS_CLONE3},
		{name: "keyctl", number: unix.SYS_KEYCTL, args: [6]uintptr{0, query}},
		{name: "add_key", number: unix.SYS_ADD_KEY},
		{name: "request_key", number: unix.SYS_REQUEST_KEY},
		{name: "bpf", number: unix.SYS_BPF, args: [6]uintptr{query}},
		{name: "perf_event_open", number: unix.SYS_PERF_EVENT_OPEN},
		{name: "io_uring_setup", number: unix.SYS_IO_URING_SETUP, args: [6]uintptr{1}},
		{name: "userfaultfd", number: unix.SYS_USERFAULTFD, args: [6]uintptr{1}, made: true}, // UFFD_USER_MODE_ONLY
		{name: "init_module", number: unix.SYS_INIT_MODULE},
		{name: "finit_module", number: unix.SYS_FINIT_MODULE, args: [6]uintptr{query}},
		{name: "delete_module", number: unix.SYS_DELETE_MODULE},
		{name: "kexec_load", number: unix.SYS_KEXEC_LOAD, args: [6]uintptr{0, 1, 0, query}},
		{name: "swapon", number: unix.SYS_SWAPON},
		{name: "personality", number: unix.SYS_PERSONALITY, args: [6]uintptr{addrNoRandomize}},
		{name: "clock_settime", number: unix.SYS_CLOCK_SETTIME},
		{name: "syslog", number: unix.SYS_SYSLOG, args: [6]uintptr{10}},
		{name: "open_by_handle_at", number: unix.SYS_OPEN_BY_HANDLE_AT, args: [6]uintptr{query}},
		{name: "name_to_handle_at", number: unix.SYS_NAME_TO_HANDLE_AT, args: [6]uintptr{query}},
		{name: "make a device", number: unix.SYS_MKNODAT, args: [6]uintptr{query, 0, unix.S_IFCHR | 0o600, 0x103}},
		{name: "chmod to setuid", number: unix.SYS_FCHMODAT, args: [6]uintptr{query, 0, 0o4755}},
		{name: "chmod to setgid", number: unix.SYS_FCHMOD, args: [6]uintptr{query, 0o2755}},
		{name: "make a setuid file", number: unix.SYS_OPENAT, args: [6]uintptr{query, 0, unix.O_CREAT | unix.O_WRONLY, 0o4755}},
		{name: "leave a whiteout", number: unix.SYS_RENAMEAT2, args: [6]uintptr{query, 0, query, 0, unix.RENAME_WHITEOUT}},
		{name: "make a setuid file without a name", number: unix.SYS_OPENAT, args: [6]uintptr{query, 0, unix.O_TMPFILE | unix.O_RDWR, 0o2755}},
		{name: "openat2", number: unix.SYS_OPENAT2, args: [6]uintptr{query}},
		{name: "fcntl lease", number: unix.SYS_FCNTL, args: [6]uintptr{query, unix.F_SETLEASE, unix.F_RDLCK}},
		{name: "inotify", number: unix.SYS_INOTIFY_INIT1, args: [6]uintptr{query}},
		{name: "quotactl", number: unix.SYS_QUOTACTL, args: [6]uintptr{query}},
		{name: "fanotify_init", number: unix.SYS_FANOTIFY_INIT, args: [6]uintptr{query}},
		{name: "memfd_secret", number: unix.SYS_MEMFD_SECRET, args: [6]uintptr{query}},
		{name: "mq_open", number: unix.SYS_MQ_OPEN},
		{name: "msgget", number: unix.SYS_MSGGET, args: [6]uintptr{0, 0o1600}},
		{name: "type into a terminal", number: unix.SYS_IOCTL, args: [6]uintptr{0, unix.TIOCSTI}},
		{name: "paste into a console", number: unix.SYS_IOCTL, args: [6]uintptr{0, 0x541c}},
		{name: "type, with high bits", number: unix.SYS_IOCTL, args: [6]uintptr{0, ^uintptr(0)&^0xffffffff | unix.TIOCSTI}},
		{name: "trace by prctl", number: unix.SYS_PRCTL, args: [6]uintptr{unix.PR_SET_PTRACER, query}},
		{name: "a call of the future", number: 1000},
		{name: "x32", number: 0x40000000 | unix.SYS_GETPID},
	}
	return list
}

// refusedCall says whether the filter answered: an errno that the call itself would not give.
func (d dangerousCall) refused() string {
	r, _, errno := unix.RawSyscall6(d.number, d.args[0], d.args[1], d.args[2], d.args[3], d.args[4], d.args[5])
	switch errno {
	case unix.EPERM, unix.ENOSYS, unix.EAFNOSUPPORT:
		return ""
	case 0:
		if d.made {
			unix.Close(int(r))
		}
		return "it worked"
	}
	return "the kernel looked at it (" + errno.Error() + ", " + strconv.Itoa(int(errno)) + ")"
}

func callAttempts() (all []attempt) {
	for _, d := range dangerousCalls() {
		all = append(all, attempt{"call " + d.name, d.refused})
	}
	return all
}
