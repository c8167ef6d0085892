package sandbox

import "golang.org/x/sys/unix"

// auditArch is how the kernel names this machine to a filter.
const auditArch = unix.AUDIT_ARCH_X86_64

// refusedHere gives the calls that only this machine has.
func refusedHere() []uintptr {
	return []uintptr{
		unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_USELIB, unix.SYS_USTAT, unix.SYS_SYSFS, unix.SYS__SYSCTL,
		unix.SYS_CREATE_MODULE, unix.SYS_GET_KERNEL_SYMS, unix.SYS_QUERY_MODULE,
	}
}

func absentHere() []uint32 { return []uint32{unix.SYS_INOTIFY_INIT} }

func byArgumentHere() []argRule {
	return []argRule{
		{number: unix.SYS_MKNOD, refuse: append(special(1), condition{arg: 1, mask: unix.S_IFMT, value: unix.S_IFCHR}, condition{arg: 1, mask: unix.S_IFMT, value: unix.S_IFBLK}), errno: unix.EPERM},
		{number: unix.SYS_CHMOD, refuse: special(1), errno: unix.EPERM},
		{number: unix.SYS_CREAT, refuse: special(1), errno: unix.EPERM},
		{number: unix.SYS_OPEN, refuse: created(1, special(2)), errno: unix.EPERM},
	}
}
