package main

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestTheProgramAsItShipsTakesNoSwitches tells the first process of its sandbox to do without defences (E46): with the one number
// that the tests' launchers take, and with a flag for each defence. It must not know what is meant.
func TestTheProgramAsItShipsTakesNoSwitches(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "parley")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, c := range map[string]struct {
		switches []uint64
		taken    bool
	}{"none": {nil, true}, "one number": {[]uint64{^uint64(0)}, false}, "flags": {[]uint64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, false}} {
		said := toldWalls(t, program, c.switches)
		if taken := strings.Contains(said, "name the host: "); taken != c.taken || !taken && said != "" {
			t.Errorf("%s: taken %v, said %q", name, taken, said)
		}
	}
}

// toldWalls starts the program as the first process of a sandbox and gives it walls, with more behind them than there is. It gives
// what the process says. That has a user namespace and no other: it fails at the first wall, if it takes them.
func toldWalls(t *testing.T, program string, more []uint64) (said string) {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	mine, theirs := os.NewFile(uintptr(pair[0]), "gateway"), os.NewFile(uintptr(pair[1]), "init")
	defer mine.Close()
	defer theirs.Close()
	id := []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
	group := []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	c := exec.CommandContext(t.Context(), program)
	c.Args, c.Env, c.ExtraFiles = []string{"parley-sandbox-init"}, []string{}, []*os.File{theirs}
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: id, GidMappings: group}
	if err := c.Start(); err != nil {
		if os.Getenv("PARLEY_REQUIRE_SANDBOX") != "" {
			t.Fatal(err)
		}
		t.Skipf("no user namespaces: %v", err)
	}
	theirs.Close()
	var body []byte
	for _, n := range append([]uint64{0, 0, 0}, more...) { // who, how nice, a filter of no system call
		body = binary.LittleEndian.AppendUint64(body, n)
	}
	message := binary.LittleEndian.AppendUint32([]byte{'w'}, uint32(len(body)))
	if _, err := mine.Write(append(message, body...)); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(20*time.Second, func() { _ = c.Process.Kill() })
	defer late.Stop()
	text, err := io.ReadAll(mine)
	if err != nil && !errors.Is(err, syscall.ECONNRESET) {
		t.Fatal(err)
	}
	_ = c.Wait() // it ends with 1 in every case
	return string(text)
}
