package sandbox

import (
	"os"
	"path"
	"sync/atomic"
)

// armed is set by Init. Without it a program that starts itself as a self-test would start as what it is, and again. It is
// a fact about the process, as os.Args is.
var armed atomic.Bool

// Init takes over the process when it was started as the self-test of a sandbox, and then never returns. Every program that
// calls New, tests included, calls it before anything else. The first process of a sandbox never comes so far: see package cell.
func Init() {
	armed.Store(true)
	if len(os.Args) > 0 && path.Base(os.Args[0]) == roleProbe {
		os.Exit(probeInside())
	}
}
