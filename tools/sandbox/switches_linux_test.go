package sandbox

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"parley/tools/sandbox/internal/cell"
)

// E46: a launcher that is told to do without its defences. One that is built for the tests obeys; that of the program that ships
// finds nothing that could mean it, and ends before it has built a wall.
func TestE46_TheLauncherHasNoSwitches(t *testing.T) {
	t.Parallel()
	proven(t)
	var plain []byte
	for range 3 { // who, how nice, a filter of no system call
		plain = binary.LittleEndian.AppendUint64(plain, 0)
	}
	one := binary.LittleEndian.AppendUint64(plain[:len(plain):len(plain)], ^uint64(0))
	each := plain[:len(plain):len(plain)]
	for range 25 {
		each = binary.LittleEndian.AppendUint64(each, 1)
	}
	if got := toldWalls(t, plain); got == cell.CanWeaken {
		t.Errorf("walls without a word of switches were taken: %v", got)
	}
	if got := toldWalls(t, one); got != cell.CanWeaken {
		t.Errorf("walls with every defence switched off were taken: %v", got)
	}
	if toldWalls(t, each) {
		t.Error("walls with a flag for each defence were taken")
	}
	if cell.CanWeaken && !t.Failed() {
		t.Log("escape E46: broken launcher caught") // .ci/escapes counts these lines
	}
}

// toldWalls says whether this program, started as the first process of a sandbox, takes these walls. It has a user namespace and
// no other, so that it fails at the first of them, and says so; it ends without a word when it does not take them.
func toldWalls(t *testing.T, body []byte) (taken bool) {
	t.Helper()
	control, theirs, err := socketPair()
	if err != nil {
		t.Fatal(err)
	}
	defer control.Close()
	id := []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
	group := []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	c := exec.CommandContext(t.Context(), "/proc/self/exe")
	c.Args, c.Env, c.ExtraFiles = []string{cell.RoleInit}, cell.Environ(), []*os.File{theirs}
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: id, GidMappings: group}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	if _, err := control.Write(cell.Pack('w', body)); err != nil {
		t.Fatal(err)
	}
	m, err := receive(control)
	_ = c.Wait() // it ends with 1 in both cases
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return false
	case err != nil:
		t.Fatal(err)
	case m.kind != cell.SaidFailed || !strings.HasPrefix(string(m.body), "name the host: "):
		t.Fatalf("it said %c %s", m.kind, m.body)
	}
	return true
}
