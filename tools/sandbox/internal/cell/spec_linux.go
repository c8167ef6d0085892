package cell

import (
	"errors"
	"io"
	"syscall"
)

// Names under which a process of Parley's is part of a sandbox. One that is started so by a person gets no spec and ends at once,
// so that nothing is gained by it.
const (
	RoleInit   = "parley-sandbox-init"
	RoleHolder = "parley-sandbox-holder"
)

// ControlFD is where init has its end of the control socket.
const ControlFD = 3

// Walls is what init is told first: what is the same for every command. It builds that much at once, and waits.
type Walls struct {
	UID    int // inside
	Nice   int
	Filter []byte   // of system calls: struct sock_filter, one after the other
	Weak   Switches // empty in the program that ships
}

// Spec is the rest: what to show, what to allow, what to run. The gateway makes both; nothing that a model writes is in them
// but Argv, Dir and the values of Env.
type Spec struct {
	Mounts    []Mount
	Pins      []Pin    // paths inside that are shown read-only, in this order
	Covers    []string // paths inside that are shown empty, in this order
	Tmp       int64    // bytes of /tmp
	Shm       int64    // bytes of /dev/shm
	Argv      []string
	Dir       string // inside
	Env       []string
	Rlimits   []Rlimit
	Processes int // on top of init's own threads; 0: no limit
	ProxyPort int // loopback port to listen on for the gateway; 0: none
}

// Mount is a folder or file of the host that is shown.
type Mount struct {
	Host string // path on the host; empty: the file descriptor FD, which came with the spec, is the mount itself
	FD   int    // index into those that came along
	As   string
	RW   bool
	File bool
}

// Pin is a file or folder inside a writable Mount that stays as it is. It must still be the one that was found: somebody else
// may move it meanwhile.
type Pin struct {
	At       string
	Dev, Ino uint64
}

// Rlimit is one resource limit, hard and soft.
type Rlimit struct {
	Resource int
	Value    uint64
}

// Messages of init to the gateway.
const (
	SaidReady  = 'r' // the sandbox stands; files come along: its /proc, /tmp and /dev/shm, then the listener if there is one
	SaidFailed = 'f' // it does not: the text says at which step and why
	SaidMoved  = 'm' // it does not: a pin is no longer where it was found
	SaidNoExec = 'x' // the program could not be started: the text says why
	SaidEnded  = 'e' // the wait status of the command, 4 bytes
)

// Messages of the gateway to init.
const (
	walls = 'w'
	room  = 's'
)

// maxMessage bounds a message of the gateway, in bytes.
const maxMessage = 4 << 20

// Pack frames a message: kind, length, body.
func Pack(kind byte, body []byte) []byte {
	b := make([]byte, 5, 5+len(body))
	b[0] = kind
	put32(b[1:], uint32(len(body)))
	return append(b, body...)
}

// Message is the walls as they go over the socket.
func (l *Walls) Message() []byte { return message(walls, l) }

// Message is the spec as it goes over the socket.
func (s *Spec) Message() []byte { return message(room, s) }

// fielded knows the order of its fields on the wire, for both directions.
type fielded interface{ fields(wire) }

func message(kind byte, f fielded) []byte {
	w := writer{}
	f.fields(&w)
	return Pack(kind, w.out)
}

// parse reads what message has framed.
func parse(body []byte, into fielded) error {
	r := reader{in: body}
	into.fields(&r)
	if r.short || len(r.in) > 0 {
		return errors.New("the spec is damaged")
	}
	return nil
}

// wire is one direction: writer takes what is pointed to, reader sets it.
type wire interface {
	number(*int64)
	bytes(*[]byte)
}

func (l *Walls) fields(w wire) {
	whole(w, &l.UID)
	whole(w, &l.Nice)
	w.bytes(&l.Filter)
	l.Weak.fields(w)
}

func (s *Spec) fields(w wire) {
	many(w, &s.Mounts, func(m *Mount) {
		text(w, &m.Host)
		whole(w, &m.FD)
		text(w, &m.As)
		flag(w, &m.RW)
		flag(w, &m.File)
	})
	many(w, &s.Pins, func(p *Pin) {
		text(w, &p.At)
		whole(w, &p.Dev)
		whole(w, &p.Ino)
	})
	many(w, &s.Covers, func(c *string) { text(w, c) })
	w.number(&s.Tmp)
	w.number(&s.Shm)
	many(w, &s.Argv, func(a *string) { text(w, a) })
	text(w, &s.Dir)
	many(w, &s.Env, func(e *string) { text(w, e) })
	many(w, &s.Rlimits, func(r *Rlimit) {
		whole(w, &r.Resource)
		whole(w, &r.Value)
	})
	whole(w, &s.Processes)
	whole(w, &s.ProxyPort)
}

func whole[T ~int | ~uint64](w wire, n *T) {
	v := int64(*n)
	w.number(&v)
	*n = T(v)
}

func flag(w wire, f *bool) {
	var v int64
	if *f {
		v = 1
	}
	w.number(&v)
	*f = v != 0
}

func text(w wire, s *string) {
	b := []byte(*s)
	w.bytes(&b)
	*s = string(b)
}

// many is a list: how long, then each.
func many[T any](w wire, list *[]T, each func(*T)) {
	n := len(*list)
	whole(w, &n)
	if r, ok := w.(*reader); ok {
		if n < 0 || n > len(r.in)/8 { // each has a number at least
			r.short = true
			return
		}
		*list = make([]T, n)
	}
	for i := range *list {
		each(&(*list)[i])
	}
}

type writer struct{ out []byte }

func (w *writer) number(n *int64) {
	for shift := 0; shift < 64; shift += 8 {
		w.out = append(w.out, byte(*n>>shift))
	}
}

func (w *writer) bytes(b *[]byte) {
	n := int64(len(*b))
	w.number(&n)
	w.out = append(w.out, *b...)
}

type reader struct {
	in    []byte
	short bool // there was less than was asked for
}

func (r *reader) number(n *int64) {
	if len(r.in) < 8 {
		r.short, r.in = true, nil
		return
	}
	*n = 0
	for i := range 8 {
		*n |= int64(r.in[i]) << (8 * i)
	}
	r.in = r.in[8:]
}

func (r *reader) bytes(b *[]byte) {
	var n int64
	if r.number(&n); n < 0 || n > int64(len(r.in)) {
		r.short, r.in = true, nil
		return
	}
	*b, r.in = r.in[:n:n], r.in[n:]
}

func put32(b []byte, n uint32) {
	b[0], b[1], b[2], b[3] = byte(n), byte(n>>8), byte(n>>16), byte(n>>24)
}

// receive waits for a message of the gateway and the files that belong to it. An error: the gateway has ended, or changed
// its mind.
func receive(kind byte, into fielded) (fds []int, err error) {
	head := make([]byte, 5)
	rights := make([]byte, syscall.CmsgSpace(4*64))
	n, rn, _, _, err := syscall.Recvmsg(ControlFD, head, rights, syscall.MSG_CMSG_CLOEXEC|syscall.MSG_WAITALL)
	switch {
	case err != nil:
		return nil, err
	case n != len(head):
		return nil, io.ErrUnexpectedEOF
	}
	if fds, err = Rights(rights[:rn]); err != nil {
		return nil, err
	}
	size := uint32(head[1]) | uint32(head[2])<<8 | uint32(head[3])<<16 | uint32(head[4])<<24
	if head[0] != kind || size > maxMessage {
		return nil, errors.New("this is not what was to come")
	}
	body := make([]byte, size)
	for at := 0; at < len(body); {
		n, err := syscall.Read(ControlFD, body[at:])
		if err == syscall.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return nil, io.ErrUnexpectedEOF
		}
		at += n
	}
	return fds, parse(body, into)
}

// Rights takes the file descriptors out of a control message.
func Rights(oob []byte) (fds []int, err error) {
	if len(oob) == 0 {
		return nil, nil
	}
	list, err := syscall.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	for i := range list {
		got, err := syscall.ParseUnixRights(&list[i])
		if err != nil {
			return nil, err
		}
		fds = append(fds, got...)
	}
	return fds, nil
}
