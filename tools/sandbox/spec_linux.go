package sandbox

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// roleName is the program name under which a process of ours is part of a sandbox: it is what Init looks at. A process
// that is started so and gets no spec ends at once, so that a person who does the same gains nothing.
const (
	roleInit   = "parley-sandbox-init"
	roleHolder = "parley-sandbox-holder"
	roleProbe  = "parley-sandbox-probe"
)

// controlFD is where init has its end of the control socket.
const controlFD = 3

// spec is all that init is told: what to show, what to allow, what to run. The gateway makes it; nothing that a model
// writes is in it but Argv, Dir and the values of Env.
type spec struct {
	UID       int // inside
	Mounts    []mountSpec
	Covers    []string // paths inside that are shown empty, in this order
	Tmp       int64    // bytes of /tmp
	Shm       int64    // bytes of /dev/shm
	Argv      []string
	Dir       string // inside
	Env       []string
	Rlimits   []rlimitSpec
	Processes int  // on top of init's own threads
	Bounded   bool // a cgroup bounds the memory; else system calls that hide memory are refused
	Nice      int
	ProxyPort int // loopback port to listen on for the gateway; 0: none
	Weak      weakness
}

// mountSpec is a folder or file of the host that is shown.
type mountSpec struct {
	Host string // path on the host; empty: the file descriptor FD, which came with the spec, is the mount itself
	FD   int    // index into those that came along
	As   string
	RW   bool
	File bool
}

// rlimitSpec is one resource limit, hard and soft.
type rlimitSpec struct {
	Resource int
	Value    uint64
}

// weakness switches one defence off each. It is unexported and set by the tests of this package alone: they show that
// an attempt which is refused succeeds without its defence, so that the refusal is the defence's work.
type weakness struct {
	KeepFDs      bool `json:",omitempty"` // inherited file descriptors reach the command
	KeepEnv      bool `json:",omitempty"` // so does the gateway's environment
	HostRoot     bool `json:",omitempty"` // the host's file system stays visible
	RWControl    bool `json:",omitempty"` // the agent's files can be written
	RWSystem     bool `json:",omitempty"` // so can /usr where its owner may, and what git would run
	HostNet      bool `json:",omitempty"`
	HostPID      bool `json:",omitempty"`
	HostIPC      bool `json:",omitempty"`
	NoSeccomp    bool `json:",omitempty"`
	NoLandlock   bool `json:",omitempty"`
	KeepCaps     bool `json:",omitempty"`
	NoNewPrivOff bool `json:",omitempty"`
	Dumpable     bool `json:",omitempty"` // init can be looked into
	NoProcesses  bool `json:",omitempty"`
	NoMemory     bool `json:",omitempty"`
	NoTmpSize    bool `json:",omitempty"`
	NoDisk       bool `json:",omitempty"`
	NoFiles      bool `json:",omitempty"` // of RLIMIT_NOFILE
	NoNice       bool `json:",omitempty"`
	NoTimeout    bool `json:",omitempty"`
	NoReap       bool `json:",omitempty"` // init stays until the last process has ended by itself
	NoParent     bool `json:",omitempty"` // init does not end with the gateway
	NoCleanup    bool `json:",omitempty"` // what a call needs is left behind
	NoCut        bool `json:",omitempty"` // output is kept whole
	SkipProbe    bool `json:",omitempty"` // whatever the self-test finds is taken for good
}

// Messages of init to the gateway.
const (
	saidReady  = 'r' // the sandbox stands; files come along: /proc of the sandbox, then the listener if there is one
	saidFailed = 'f' // it does not: the text says at which step and why
	saidNoExec = 'x' // the program could not be started: the text says why
	saidEnded  = 'e' // the wait status of the command, 4 bytes
)

// maxMessage bounds one message of the control socket, in bytes.
const maxMessage = 4 << 20

// pack frames a message: kind, length, body.
func pack(kind byte, body []byte) []byte {
	b := make([]byte, 5, 5+len(body))
	b[0] = kind
	binary.LittleEndian.PutUint32(b[1:], uint32(len(body)))
	return append(b, body...)
}

// sendSpec gives init its spec and the files that belong to it.
func sendSpec(c *net.UnixConn, s *spec, fds []int) error {
	body, err := json.Marshal(s)
	if err != nil {
		return err
	}
	msg := pack('s', body)
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

// receiveSpec is the other end of sendSpec. It uses plain system calls: init keeps away from the poller.
func receiveSpec() (*spec, []int, error) {
	head := make([]byte, 5)
	rights := make([]byte, unix.CmsgSpace(4*64))
	n, rn, _, _, err := unix.Recvmsg(controlFD, head, rights, unix.MSG_CMSG_CLOEXEC|unix.MSG_WAITALL)
	switch {
	case err != nil:
		return nil, nil, err
	case n != len(head):
		return nil, nil, io.ErrUnexpectedEOF
	}
	fds, err := rightsOf(rights[:rn])
	if err != nil {
		return nil, nil, err
	}
	size := binary.LittleEndian.Uint32(head[1:])
	if size > maxMessage {
		return nil, nil, errors.New("the spec is too large")
	}
	body := make([]byte, size)
	for at := 0; at < len(body); {
		n, err := unix.Read(controlFD, body[at:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return nil, nil, errors.Join(err, io.ErrUnexpectedEOF)
		}
		at += n
	}
	var s spec
	return &s, fds, json.Unmarshal(body, &s)
}

func rightsOf(oob []byte) (fds []int, err error) {
	if len(oob) == 0 {
		return nil, nil
	}
	list, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	for i := range list {
		got, err := unix.ParseUnixRights(&list[i])
		if err != nil {
			return nil, err
		}
		fds = append(fds, got...)
	}
	return fds, nil
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
	fds, err := rightsOf(rights[:rn])
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
