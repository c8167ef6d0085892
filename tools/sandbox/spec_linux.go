package sandbox

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"parley/tools/sandbox/internal/cell"
)

// roleProbe is the program name under which a process of Parley's is the self-test, inside.
const roleProbe = "parley-sandbox-probe"

// switches are set by the tests of this package alone, and hold nothing in a program that is not built for them.
type switches = cell.Switches

// sendSpec gives init its spec and the files that belong to it.
func sendSpec(c *net.UnixConn, s *cell.Spec, fds []int) error {
	msg := s.Message()
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	n, _, err := c.WriteMsgUnix(msg, rights, nil)
	for err == nil && n < len(msg) {
		var m int
		m, err = c.Write(msg[n:])
		n += m
	}
	return err
}

// message is one of init's.
type message struct {
	kind  byte
	body  []byte
	files []*os.File
}

// receive reads one message of init. io.EOF: it has ended.
func receive(c *net.UnixConn) (m message, err error) {
	head, rights := make([]byte, 5), make([]byte, unix.CmsgSpace(4*8))
	n, rn, _, _, err := c.ReadMsgUnix(head, rights)
	if err != nil {
		return m, err
	}
	if n == 0 {
		return m, io.EOF
	}
	fds, err := cell.Rights(rights[:rn])
	for _, fd := range fds {
		unix.CloseOnExec(fd)
		m.files = append(m.files, os.NewFile(uintptr(fd), "sandbox"))
	}
	if err != nil {
		return m, err
	}
	if _, err := io.ReadFull(c, head[n:]); err != nil {
		return m, err
	}
	size := binary.LittleEndian.Uint32(head[1:])
	if size > 64<<10 {
		return m, fmt.Errorf("a message of %d bytes", size)
	}
	m.kind, m.body = head[0], make([]byte, size)
	_, err = io.ReadFull(c, m.body)
	return m, err
}
