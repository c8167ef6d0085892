package cell

import (
	"syscall"
	"unsafe"
)

// What package syscall does not know. golang.org/x/sys/unix does, and cannot be imported here (see the package comment); a test
// compares every value with it. The numbers of system calls from 424 on are the same on all machines.
const (
	sysOpenTree             = 428
	sysMoveMount            = 429
	sysFsopen               = 430
	sysFsconfig             = 431
	sysFsmount              = 432
	sysPidfdOpen            = 434
	sysCloseRange           = 436
	sysOpenat2              = 437
	sysMountSetattr         = 442
	sysLandlockCreateRules  = 444
	sysLandlockAddRule      = 445
	sysLandlockRestrictSelf = 446

	atFDCWD     = -100
	atEmptyPath = 0x1000
	atRecursive = 0x8000
	oPath       = 0x200000

	openTreeClone     = 0x1
	openTreeCloexec   = syscall.O_CLOEXEC
	moveMountEmpty    = 0x4
	moveMountToOpen   = 0x40 // MOVE_MOUNT_T_EMPTY_PATH
	fsopenCloexec     = 0x1
	fsmountCloexec    = 0x1
	fsconfigSetString = 0x1
	fsconfigCreate    = 0x6
	resolveNoMagic    = 0x2
	resolveNoSymlinks = 0x4

	mountReadOnly = 0x1
	mountNoSuid   = 0x2
	mountNoDev    = 0x4
	mountNoExec   = 0x8

	prSetDumpable   = 4
	prCapBsetDrop   = 24
	prSetSecurebits = 28
	prNoNewPrivs    = 38
	prCapAmbient    = 47
	prAmbientClear  = 4

	rlimitNproc     = 6
	capVersion3     = 0x20080522
	seccompFilter   = 1 // SECCOMP_SET_MODE_FILTER
	seccompTsync    = 1 // SECCOMP_FILTER_FLAG_TSYNC
	pollIn          = 0x1
	pollRdhup       = 0x2000
	landlockVersion = 1 // LANDLOCK_CREATE_RULESET_VERSION
	landlockBeneath = 1 // LANDLOCK_RULE_PATH_BENEATH
	scopeAbstract   = 1 // LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	scopeSignal     = 2 // LANDLOCK_SCOPE_SIGNAL
)

// Landlock's rights over files (landlock(7)).
const (
	fsExecute = 1 << iota
	fsWriteFile
	fsReadFile
	fsReadDir
	fsRemoveDir
	fsRemoveFile
	fsMakeChar
	fsMakeDir
	fsMakeReg
	fsMakeSock
	fsMakeFifo
	fsMakeBlock
	fsMakeSym
	fsRefer
	fsTruncate
	fsIoctlDev
)

// sys makes a system call.
//
//go:uintptrescapes
func sys(number uintptr, args ...uintptr) (int, error) {
	var a [6]uintptr
	copy(a[:], args)
	r, _, errno := syscall.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
	if errno != 0 {
		return -1, errno
	}
	return int(r), nil
}

// onPath makes a system call whose second argument is a path.
//
//go:uintptrescapes
func onPath(number uintptr, dir int, path string, rest ...uintptr) (int, error) {
	p, err := syscall.BytePtrFromString(path)
	if err != nil {
		return -1, err
	}
	var a [4]uintptr
	copy(a[:], rest)
	r, _, errno := syscall.Syscall6(number, uintptr(dir), uintptr(unsafe.Pointer(p)), a[0], a[1], a[2], a[3])
	if errno != 0 {
		return -1, errno
	}
	return int(r), nil
}

// mountAttr is struct mount_attr.
type mountAttr struct{ set, clear, propagation, userns uint64 }

func setAttr(dir int, path string, flags int, set uint64) error {
	attr := mountAttr{set: set}
	_, err := onPath(sysMountSetattr, dir, path, uintptr(flags), uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	return err
}

// openHow is struct open_how.
type openHow struct{ flags, mode, resolve uint64 }

func openat2(dir int, path string, how openHow) (int, error) {
	return onPath(sysOpenat2, dir, path, uintptr(unsafe.Pointer(&how)), unsafe.Sizeof(how))
}

// moveMount puts a detached mount at a path below the current folder.
func moveMount(fd int, to string) error {
	from, err := syscall.BytePtrFromString("")
	if err != nil {
		return err
	}
	at, err := syscall.BytePtrFromString(to)
	if err != nil {
		return err
	}
	here := atFDCWD
	_, _, errno := syscall.Syscall6(sysMoveMount, uintptr(fd), uintptr(unsafe.Pointer(from)), uintptr(here), uintptr(unsafe.Pointer(at)), moveMountEmpty, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// moveMountOnto puts a detached mount onto what is open.
func moveMountOnto(fd, onto int) error {
	var none byte
	_, _, errno := syscall.Syscall6(sysMoveMount, uintptr(fd), uintptr(unsafe.Pointer(&none)), uintptr(onto), uintptr(unsafe.Pointer(&none)), moveMountEmpty|moveMountToOpen, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// fsSet sets an option of a file system that is being made.
func fsSet(fs int, key, value string) error {
	k, err := syscall.BytePtrFromString(key)
	if err != nil {
		return err
	}
	v, err := syscall.BytePtrFromString(value)
	if err != nil {
		return err
	}
	_, _, errno := syscall.Syscall6(sysFsconfig, uintptr(fs), fsconfigSetString, uintptr(unsafe.Pointer(k)), uintptr(unsafe.Pointer(v)), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

func prctl(option uintptr, args ...uintptr) error {
	_, err := sys(syscall.SYS_PRCTL, append([]uintptr{option}, args...)...)
	return err
}

// ifreq is struct ifreq with flags in it.
type ifreq struct {
	name  [16]byte
	flags uint16
	_     [22]byte
}

// wrap says at what an error arose.
func wrap(at string, err error) error { return &stepError{at, err} }

type stepError struct {
	at  string
	err error
}

func (e *stepError) Error() string { return e.at + ": " + e.err.Error() }
func (e *stepError) Unwrap() error { return e.err }

// cut is strings.Cut: package strings is initialised behind reflect.
func cut(s string, sep byte) (before, after string, found bool) {
	for i := range len(s) {
		if s[i] == sep {
			return s[:i], s[i+1:], true
		}
	}
	return s, "", false
}
