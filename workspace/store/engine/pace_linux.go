package engine

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// standBack makes the goroutine that calls it stand behind all others for the processor and the disk, until it ends: its
// thread is its own, and ends with it.
func standBack() {
	runtime.LockOSThread()
	const idle = 3 << 13 // IOPRIO_CLASS_IDLE, see ioprio_set(2)
	id := unix.Gettid()
	_ = unix.Setpriority(unix.PRIO_PROCESS, id, 15) // as far as commands do; who may not, goes on as he is
	_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, 1, uintptr(id), idle)
}
