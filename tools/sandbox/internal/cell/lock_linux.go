package cell

import (
	"errors"
	"io/fs"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"
)

// lastCap is more than any kernel has; dropping one that does not exist ends the loop.
const lastCap = 63

// dropCaps takes every capability from the calling thread, and from whatever it starts: bounding set, ambient set, all
// three own sets; securebits keep them from coming back. Init's other threads run nothing but the Go
// scheduler, and lock does for them what can be done.
func dropCaps() error {
	for c := uintptr(0); c <= lastCap; c++ {
		if err := prctl(prCapBsetDrop, c); errors.Is(err, syscall.EINVAL) {
			break
		} else if err != nil {
			return wrap("bounding set", err)
		}
	}
	if err := prctl(prCapAmbient, prAmbientClear); err != nil {
		return wrap("ambient set", err)
	}
	const bits = 1<<0 | 1<<1 | // SECBIT_NOROOT and its lock
		1<<2 | 1<<3 | // SECBIT_NO_SETUID_FIXUP
		1<<5 | // SECBIT_KEEP_CAPS_LOCKED, off
		1<<6 | 1<<7 // SECBIT_NO_CAP_AMBIENT_RAISE
	if err := prctl(prSetSecurebits, bits); err != nil {
		return wrap("securebits", err)
	}
	head, none := capHeader{version: capVersion3}, [2]capData{}
	_, err := sys(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&none)))
	return err
}

// capHeader and capData are what capset(2) takes.
type capHeader struct {
	version uint32
	pid     int32
}

type capData [3]uint32 // effective, permitted, inheritable

// LandlockABI asks the kernel; 0: it has no Landlock, or it is off.
func LandlockABI() int {
	abi, err := sys(sysLandlockCreateRules, 0, 0, landlockVersion)
	if err != nil {
		return 0
	}
	return abi
}

// Sets of Landlock's rights over files (landlock(7)).
const (
	mayRead = fsExecute | fsReadFile | fsReadDir
	mayEdit = fsWriteFile | fsTruncate
	mayMake = mayRead | mayEdit | fsRemoveDir | fsRemoveFile | fsMakeDir |
		fsMakeReg | fsMakeSock | fsMakeFifo | fsMakeSym |
		fsRefer
	mayAll = mayMake | fsMakeChar | fsMakeBlock | fsIoctlDev
	onFile = fsExecute | fsReadFile | mayEdit | fsIoctlDev
)

// grant gives rights below one path.
type grant struct {
	path   string
	rights uint64
}

// landlockRules leaves who takes them, and whatever it starts, the granted rights over files and no others, and keeps
// its signals and abstract sockets inside. A path that is not there is passed over. The file of the rules closes when the
// command is executed.
func landlockRules(abi int, grants []grant) (set int, err error) {
	handled := uint64(mayAll)
	if abi < 2 {
		handled &^= fsRefer
	}
	if abi < 3 {
		handled &^= fsTruncate
	}
	if abi < 5 {
		handled &^= fsIoctlDev
	}
	attr := struct{ fs, net, scoped uint64 }{fs: handled}
	size := unsafe.Sizeof(attr.fs)
	if abi >= 4 {
		size += unsafe.Sizeof(attr.net) // nothing to restrict: the network is empty
	}
	if abi >= 6 {
		size += unsafe.Sizeof(attr.scoped)
		attr.scoped = scopeAbstract | scopeSignal
	}
	if set, err = sys(sysLandlockCreateRules, uintptr(unsafe.Pointer(&attr)), size, 0); err != nil {
		return -1, wrap("make the rules", err)
	}
	for _, g := range grants {
		if err := allowBelow(set, g.path, g.rights&handled); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return -1, wrap("rule for "+g.path, err)
		}
	}
	return set, nil
}

func allowBelow(set int, path string, rights uint64) error {
	fd, err := syscall.Open(path, oPath|syscall.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&syscall.S_IFMT != syscall.S_IFDIR {
		rights &= onFile
	}
	var rule [12]byte // struct landlock_path_beneath_attr: packed
	put32(rule[0:], uint32(rights))
	put32(rule[4:], uint32(rights>>32))
	put32(rule[8:], uint32(fd))
	_, err = sys(sysLandlockAddRule, uintptr(set), landlockBeneath, uintptr(unsafe.Pointer(&rule)), 0)
	return err
}

// restrictCalls puts the filter on every thread of the process. It needs no_new_privs.
func restrictCalls(filter []byte) error {
	const each = 8 // bytes of struct sock_filter
	if len(filter) == 0 || len(filter)%each != 0 {
		return errors.New("the filter is missing")
	}
	prog := struct {
		length uint16
		filter *byte
	}{uint16(len(filter) / each), &filter[0]}
	thread, err := sys(sysSeccomp, seccompFilter, seccompTsync, uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(filter)
	if err == nil && thread != 0 {
		err = errors.New("thread " + strconv.Itoa(thread) + " could not be restricted")
	}
	return err
}
