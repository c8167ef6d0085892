//go:build linux && !amd64 && !arm64

package sandbox

import (
	"fmt"
	"runtime"
)

// program fails: nobody wrote the table of this machine, and so there is no exec on it.
func program(bool) ([]byte, error) {
	return nil, fmt.Errorf("no table of system calls for %s", runtime.GOARCH)
}
