//go:build nowhatsapp

package gateway_test

import "go.uber.org/goleak"

// stuck are goroutines of libraries that nothing can free: of those that are built in, none has any.
var stuck []goleak.Option
