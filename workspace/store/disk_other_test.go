//go:build !linux

package store_test

import "testing"

func smallDisk(t *testing.T, _ string) string {
	t.Helper()
	t.Skip("SKIPPED: no small disk can be mounted here, so a full disk is not tried")
	return ""
}
