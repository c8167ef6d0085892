package webchat

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"parley/channels"
)

// unreadable is the type of a frame that could not be read.
const unreadable = "unreadable"

const (
	maxRaw   = 4 << 10 // bytes kept of what cannot be read
	maxID    = 100
	maxText  = 256 << 10
	maxFiles = 10
)

// Errors of a frame; Desk.Problem words them.
var (
	ErrUnreadable = errors.New("the frame cannot be read")
	ErrNoID       = errors.New("a message needs an id of its own, of at most 100 bytes")
	ErrEmpty      = errors.New("the message says nothing")
	ErrTooLong    = errors.New("the message is too long")
	ErrTooMany    = errors.New("too many files in one message")
	errPanic      = errors.New("the gateway could not take it")
)

// said journals what the person did and tells the page what became of it.
func (l *line) said(f frame) {
	in, err := l.inbound(f)
	if err == nil {
		err = l.c.receive(in)
	}
	var got Stored
	if err == nil && f.Type != unreadable {
		got, err = l.c.opt.Desk.Stored(l.who, in.ID)
	}
	if err == nil && in.Kind == channels.KindUnparsed {
		err = ErrUnreadable
	}
	if err != nil {
		_ = l.put(refusedFrame{"refused", f.ID, l.c.opt.Desk.Problem(err)}) // the line has ended: the page asks again
		return
	}
	_ = l.put(storedFrame{"stored", f.ID, got}) // as above
}

// receive offers one event to the gateway. It ends with Run, not with the line: who leaves takes nothing back.
func (c *Channel) receive(in channels.Inbound) (err error) {
	ctx, intake, err := c.intake()
	if err != nil {
		return err
	}
	defer func() {
		if p := recover(); p != nil {
			c.opt.Log.Error("receive panicked", "key", in.Key, "panic", p, "stack", string(debug.Stack()))
			err = errPanic
		}
	}()
	return intake.Receive(ctx, in)
}

// inbound is a frame as the journal takes it. Two deliveries of one frame are equal.
func (l *line) inbound(f frame) (channels.Inbound, error) {
	if f.Type == unreadable {
		return l.unparsed(f), nil
	}
	kind, ok := kinds(f.Type)
	switch {
	case !ok:
		return l.unparsed(frame{Type: unreadable, ID: f.ID, Text: f.Type}), nil
	case f.ID == "" || len(f.ID) > maxID || len(f.Target) > maxID || !utf8.ValidString(f.ID):
		return channels.Inbound{}, ErrNoID
	case len(f.Text) > maxText:
		return channels.Inbound{}, ErrTooLong
	case kind == channels.KindMessage && strings.TrimSpace(f.Text) == "" && len(f.Files) == 0, kind != channels.KindMessage && f.Target == "":
		return channels.Inbound{}, ErrEmpty
	case len(f.Files) > maxFiles:
		return channels.Inbound{}, ErrTooMany
	}
	peer, err := l.c.opt.Desk.Place(l.who, f.Agent, f.Session)
	if err != nil {
		return channels.Inbound{}, err
	}
	to := l.address(peer)
	in := channels.Inbound{Key: channels.MessageKey(to, channels.MessageID(f.ID)), Kind: kind, From: l.sender(), To: to, ID: channels.MessageID(f.ID), Target: channels.MessageID(f.Target),
		Time: l.c.when(f.At), Text: f.Text, Command: kind == channels.KindMessage && command(f.Text)}
	for _, ref := range f.Files {
		a, err := l.c.opt.Desk.File(l.who, ref.Ref)
		if err != nil {
			return channels.Inbound{}, err
		}
		in.Attachments = append(in.Attachments, a)
	}
	return in, nil
}

func kinds(name string) (channels.Kind, bool) {
	switch name {
	case "message":
		return channels.KindMessage, true
	case "edit":
		return channels.KindEdit, true
	case "delete":
		return channels.KindDelete, true
	case "press":
		return channels.KindButton, true
	}
	return "", false
}

func (l *line) sender() channels.Sender {
	return channels.Sender{User: channels.UserID(l.who.ID), Name: l.who.Name}
}

// address of a conversation: the account is the person, so that two people's message ids do not meet.
func (l *line) address(peer channels.PeerID) channels.Address {
	return channels.Address{Network: Network, Account: channels.AccountID(l.who.ID), Kind: channels.DM, Peer: peer}
}

// command says whether a text is a slash command of Parley's and not of somebody else's ("/stop@other").
func command(text string) bool {
	word, _, _ := strings.Cut(text, " ")
	return strings.HasPrefix(word, "/") && !strings.Contains(word, "@")
}

// when is the page's time where it can be right.
func (c *Channel) when(ms int64) time.Time {
	now := c.opt.Now()
	if at := time.UnixMilli(ms); ms > 0 && !at.After(now.Add(time.Minute)) {
		return at
	}
	return now
}

// unparsed keeps the beginning of what cannot be read: the operator may want to know why.
func (l *line) unparsed(f frame) channels.Inbound {
	sum := sha256.Sum256([]byte(f.ID + "\x00" + f.Text))
	peer, err := l.c.opt.Desk.Place(l.who, "", "")
	if err != nil {
		peer = "unknown"
	}
	return channels.Inbound{Key: "u:" + hex.EncodeToString(sum[:16]), Kind: channels.KindUnparsed, From: l.sender(), To: l.address(peer), Time: l.c.opt.Now(),
		Data: []byte(f.Text)}
}

// Open implements channels.Opener.
func (c *Channel) Open(ctx context.Context, a channels.Attachment) (io.ReadCloser, error) {
	return c.opt.Desk.Open(ctx, a)
}
