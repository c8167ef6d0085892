// Package lazy makes at its first use what a start does not need: sixty regular expressions took a tenth of its time.
package lazy

import (
	"regexp"
	"sync"
)

// Regexp compiles an expression at its first use, and panics there if it is none.
func Regexp(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
