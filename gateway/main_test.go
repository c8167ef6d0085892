package gateway_test

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain holds every test of the package to it: a stopped gateway has left no goroutine.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
