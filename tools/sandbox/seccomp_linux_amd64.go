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

func byArgumentHere() []argRule {
	return []argRule{{number: unix.SYS_MKNOD, refuse: []condition{{1, unix.S_IFMT, unix.S_IFCHR}, {1, unix.S_IFMT, unix.S_IFBLK}}, errno: unix.EPERM}}
}
