//go:build linux && (amd64 || arm64)

package sandbox

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Offsets into struct seccomp_data (linux/seccomp.h), little-endian machines.
const (
	dataNumber = 0
	dataArch   = 4
	dataArgs   = 16
)

// lastKnown is the newest system call that was looked at when the lists below were written: removexattrat (Linux 6.13).
// A newer one gets ENOSYS, as on an older kernel. The numbers are the same on all machines from 424 on.
const lastKnown = 466

// condition is one test of an argument's low 32 bits: its high ones do not reach the kernel's int parameters. It holds
// when arg & mask == value.
type condition struct {
	arg         int
	mask, value uint32
	and         *condition // holds too
}

// argRule refuses a system call depending on its arguments.
type argRule struct {
	number    uintptr
	refuse    []condition // any of them holds; or
	allowOnly []condition // none of them holds
	errno     unix.Errno
}

// refused gives the system calls that no command needs and that reach past the namespaces: into the kernel's less
// walked paths, other processes, mounts, keys, clocks. The list of threat E20 to E30. They answer EPERM.
func refused() []uintptr {
	return append([]uintptr{
		// other processes
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE, unix.SYS_PROCESS_MRELEASE,
		unix.SYS_PIDFD_GETFD, unix.SYS_KCMP, unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES,
		// mounts and namespaces
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_SETNS, unix.SYS_UNSHARE,
		unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
		unix.SYS_MOUNT_SETATTR, unix.SYS_STATMOUNT, unix.SYS_LISTMOUNT,
		unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_FANOTIFY_INIT, unix.SYS_FANOTIFY_MARK,
		// keys, programs in the kernel, tracing
		unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
		unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_MEMFD_SECRET, unix.SYS_CACHESTAT,
		unix.SYS_LSM_GET_SELF_ATTR, unix.SYS_LSM_SET_SELF_ATTR, unix.SYS_LSM_LIST_MODULES, unix.SYS_LOOKUP_DCOOKIE,
		// the machine
		unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD,
		unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME,
		unix.SYS_ADJTIMEX, unix.SYS_SYSLOG, unix.SYS_ACCT, unix.SYS_VHANGUP, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_NFSSERVCTL,
		// message queues that nobody counts
		unix.SYS_MQ_OPEN, unix.SYS_MSGGET,
	}, refusedHere()...)
}

// hidesMemory gives those that hold memory which no count of resident pages shows. They are refused where no cgroup counts.
func hidesMemory() []uintptr {
	return []uintptr{unix.SYS_MEMFD_CREATE, unix.SYS_SHMGET, unix.SYS_SEMGET}
}

// raisesBuffers gives what makes the buffers of sockets and pipes larger than they begin, where no cgroup counts them. Of a socket it is
// passed over, as the kernel passes over what is beyond its own bound; of a pipe it is refused, as beyond that of pipes.
func raisesBuffers() []argRule {
	level := condition{arg: 1, mask: ^uint32(0), value: unix.SOL_SOCKET}
	var options []condition
	for _, o := range []uint32{unix.SO_SNDBUF, unix.SO_RCVBUF, unix.SO_SNDBUFFORCE, unix.SO_RCVBUFFORCE} {
		options = append(options, condition{arg: 2, mask: ^uint32(0), value: o, and: &level})
	}
	return []argRule{{number: unix.SYS_SETSOCKOPT, refuse: options, errno: 0},
		{number: unix.SYS_FCNTL, refuse: []condition{{arg: 1, mask: ^uint32(0), value: unix.F_SETPIPE_SZ}}, errno: unix.EPERM}}
}

// newNamespace is every CLONE_NEW flag of clone(2).
const newNamespace = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
	unix.CLONE_NEWPID | unix.CLONE_NEWNET

// special holds when a file's mode has the setuid or setgid bit.
func special(arg int) []condition {
	return []condition{{arg: arg, mask: unix.S_ISUID, value: unix.S_ISUID}, {arg: arg, mask: unix.S_ISGID, value: unix.S_ISGID}}
}

// created holds when mode does and the call makes a file: without these flags it is not given a mode.
func created(flags int, mode []condition) (list []condition) {
	const temporary = unix.O_TMPFILE &^ unix.O_DIRECTORY
	for _, m := range mode {
		for _, bit := range []uint32{unix.O_CREAT, temporary} {
			list = append(list, condition{arg: m.arg, mask: m.mask, value: m.value, and: &condition{arg: flags, mask: bit, value: bit}})
		}
	}
	return list
}

// byArgument gives the system calls whose arguments decide.
func byArgument() []argRule {
	const tioclinux = 0x541c // ioctl_console(2); x/sys does not name it
	var flags []condition
	for bit := uint32(1); bit != 0; bit <<= 1 {
		if bit&newNamespace != 0 {
			flags = append(flags, condition{mask: bit, value: bit})
		}
	}
	is := func(arg int, value uint32) condition { return condition{arg: arg, mask: ^uint32(0), value: value} }
	rules := []argRule{
		{number: unix.SYS_CLONE, refuse: flags, errno: unix.EPERM},
		{number: unix.SYS_IOCTL, refuse: []condition{is(1, unix.TIOCSTI), is(1, tioclinux), is(1, unix.TIOCSCTTY), is(1, unix.TIOCCONS), is(1, unix.TIOCSETD)}, errno: unix.EPERM},
		// only what personality(2) calls a question, and Linux itself
		{number: unix.SYS_PERSONALITY, allowOnly: []condition{is(0, 0xffffffff), is(0, 0)}, errno: unix.EPERM},
		{number: unix.SYS_MKNODAT, refuse: append(special(2), condition{arg: 2, mask: unix.S_IFMT, value: unix.S_IFCHR}, condition{arg: 2, mask: unix.S_IFMT, value: unix.S_IFBLK}), errno: unix.EPERM},
		// a setuid program in a folder would keep its bit on the host's disk, where no sandbox is around it
		{number: unix.SYS_FCHMOD, refuse: special(1), errno: unix.EPERM},
		{number: unix.SYS_FCHMODAT, refuse: special(2), errno: unix.EPERM},
		{number: unix.SYS_FCHMODAT2, refuse: special(2), errno: unix.EPERM},
		{number: unix.SYS_OPENAT, refuse: created(2, special(3)), errno: unix.EPERM},
		// what it leaves in place of the old name is a device, which overlay file systems take for a deletion
		{number: unix.SYS_RENAMEAT2, refuse: []condition{{arg: 4, mask: unix.RENAME_WHITEOUT, value: unix.RENAME_WHITEOUT}}, errno: unix.EPERM},
		// a lease would keep the gateway waiting that opens the file (fcntl(2): 45 s)
		{number: unix.SYS_FCNTL, refuse: []condition{is(1, unix.F_SETLEASE)}, errno: unix.EPERM},
		{number: unix.SYS_SOCKETPAIR, allowOnly: []condition{is(0, unix.AF_UNIX)}, errno: unix.EAFNOSUPPORT},
		{number: unix.SYS_PRCTL, refuse: []condition{is(0, unix.PR_SET_MM), is(0, unix.PR_SET_PTRACER)}, errno: unix.EPERM},
	}
	rules = append(rules,
		argRule{number: unix.SYS_SOCKET, allowOnly: []condition{is(0, unix.AF_UNIX), is(0, unix.AF_INET), is(0, unix.AF_INET6)}, errno: unix.EAFNOSUPPORT},
		argRule{number: unix.SYS_SOCKET, allowOnly: []condition{{arg: 1, mask: 0xf, value: unix.SOCK_STREAM}, {arg: 1, mask: 0xf, value: unix.SOCK_DGRAM}, {arg: 1, mask: 0xf, value: unix.SOCK_SEQPACKET}}, errno: unix.EPERM},
		argRule{number: unix.SYS_SOCKET, allowOnly: []condition{is(2, 0), is(2, unix.IPPROTO_TCP), is(2, unix.IPPROTO_UDP)}, errno: unix.EPERM})
	return append(rules, byArgumentHere()...)
}

// filter assembles the program. Every test that refuses stands alone and falls through to the next, so that no jump is long.
func filter(arch uint32, bounded bool) ([]bpf.Instruction, error) {
	load := func(at uint32) bpf.Instruction { return bpf.LoadAbsolute{Off: at, Size: 4} }
	answer := func(e unix.Errno) bpf.Instruction { return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(e)} }
	p := []bpf.Instruction{
		load(dataArch),
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: arch, SkipTrue: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS}, // 32-bit calls have other numbers
		load(dataNumber),
		bpf.JumpIf{Cond: bpf.JumpLessOrEqual, Val: lastKnown, SkipTrue: 1}, // also x32 (bit 30)
		answer(unix.ENOSYS),
	}
	p = append(p, refusals(bounded)...)
	rules := byArgument()
	if !bounded {
		rules = append(rules, raisesBuffers()...)
	}
	for _, r := range rules {
		block := r.block(load, answer)
		if len(block) > 255 {
			return nil, fmt.Errorf("the rule for system call %d is too long", r.number)
		}
		p = append(p, bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(r.number), SkipFalse: uint8(len(block))})
		p = append(p, block...)
	}
	return append(p, bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}), nil
}

// refusals answers the calls that are refused whatever their arguments are. They stand in the order of their numbers, and one test
// passes over some at once: the kernel walks the filter for each number that it knows when the filter is set, which a start waits for.
func refusals(bounded bool) (p []bpf.Instruction) {
	const atOnce = 8
	errnos := map[uint32]unix.Errno{
		// It takes any amount of the disk in no time, before anybody could stop it. Libraries write instead.
		unix.SYS_FALLOCATE: unix.EOPNOTSUPP,
	}
	list := refused()
	if !bounded {
		list = append(list, hidesMemory()...)
	}
	for _, nr := range list {
		errnos[uint32(nr)] = unix.EPERM
	}
	// What the first two are to do is in memory: libraries fall back to clone and openat. Watching /usr would tell which
	// programs the host runs: tools fall back to looking now and then.
	for _, nr := range append([]uint32{unix.SYS_CLONE3, unix.SYS_OPENAT2, unix.SYS_INOTIFY_INIT1}, absentHere()...) {
		errnos[nr] = unix.ENOSYS
	}
	for some := range slices.Chunk(slices.Sorted(maps.Keys(errnos)), atOnce) {
		p = append(p, bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: some[len(some)-1], SkipTrue: uint8(2 * len(some))})
		for _, nr := range some {
			p = append(p, bpf.JumpIf{Cond: bpf.JumpEqual, Val: nr, SkipFalse: 1},
				bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(errnos[nr])})
		}
	}
	return p
}

// block tests the conditions of one call; at its end the accumulator holds the call's number again.
func (r argRule) block(load func(uint32) bpf.Instruction, answer func(unix.Errno) bpf.Instruction) (b []bpf.Instruction) {
	conds, positive := r.refuse, true
	if r.allowOnly != nil {
		conds, positive = r.allowOnly, false
	}
	test := func(c condition) []bpf.Instruction {
		return []bpf.Instruction{load(dataArgs + 8*uint32(c.arg)), bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: c.mask}}
	}
	for i, c := range conds {
		if c.and != nil {
			b = append(b, test(*c.and)...)
			b = append(b, bpf.JumpIf{Cond: bpf.JumpEqual, Val: c.and.value, SkipFalse: 4}) // over the rest of this condition
		}
		b = append(b, test(c)...)
		if positive {
			b = append(b, bpf.JumpIf{Cond: bpf.JumpEqual, Val: c.value, SkipFalse: 1}, answer(r.errno))
			continue
		}
		// behind it are the tests that are left, four instructions each but for the jump of the last, and the refusal
		skip := 3*(len(conds)-1-i) + 1
		b = append(b, bpf.JumpIf{Cond: bpf.JumpEqual, Val: c.value, SkipTrue: uint8(skip)})
	}
	if !positive {
		b = append(b, answer(r.errno))
	}
	return append(b, load(dataNumber))
}

// program is the filter as the kernel takes it: struct sock_filter, one after the other.
func program(bounded bool) ([]byte, error) {
	list, err := filter(auditArch, bounded)
	if err != nil {
		return nil, err
	}
	raw, err := bpf.Assemble(list)
	if err != nil {
		return nil, err
	}
	var code []byte
	for _, r := range raw {
		code = binary.LittleEndian.AppendUint16(code, r.Op)
		code = append(code, r.Jt, r.Jf)
		code = binary.LittleEndian.AppendUint32(code, r.K)
	}
	return code, nil
}
