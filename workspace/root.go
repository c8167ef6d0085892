package workspace

import (
	"os"
)

// Root is a work folder that tools may read: the only type that opens a path which a model wrote. It is an
// os.Root, so that no name leads out of it.
type Root struct {
	root *os.Root
}
