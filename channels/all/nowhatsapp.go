//go:build nowhatsapp

package all

import "parley/channels"

// linked has nothing in this build.
func linked() []channels.Factory { return nil }
