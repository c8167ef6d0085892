//go:build linux

package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestSandboxBeginsBeforeTheLibraries holds what a command's start rests on: the first process of a sandbox takes over before
// the tables of the libraries are made. An import that leads to package reflect, or to another that sorts late, undoes it
// (language specification, "Program initialization").
func TestSandboxBeginsBeforeTheLibraries(t *testing.T) {
	t.Parallel()
	c := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run", "^$")
	c.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var before []string
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] != "init" {
			continue
		}
		if f[1] == "parley/tools/sandbox/internal/cell" {
			if len(before) > 60 {
				t.Errorf("%d packages are initialised first: %s", len(before), strings.Join(before, " "))
			}
			return
		}
		if before = append(before, f[1]); f[1] == "reflect" || strings.HasPrefix(f[1], "parley/") {
			t.Errorf("%s is initialised first", f[1])
		}
	}
	t.Errorf("it is not told of among %d packages", len(before))
}
