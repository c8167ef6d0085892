package channels

import (
	"context"
	"io"
	"strconv"
	"strings"
	"time"
)

// Identifiers are the network's own, opaque to everybody but the adapter that made them.
type (
	Network   string // telegram, slack, discord, whatsapp, webchat
	AccountID string // the network's immutable id of the bot
	PeerID    string // the network's chat id
	ThreadID  string // a thread or forum topic inside a peer; empty: none
	UserID    string // the network's immutable id of a human or bot
	MessageID string // unique inside its room
)

// PeerKind says what sort of conversation a peer is.
type PeerKind string

const (
	DM    PeerKind = "dm"
	Group PeerKind = "group" // a small closed group
	Room  PeerKind = "room"  // a channel of a server or workspace
)

// Address is where a message came from and the only thing an answer can be sent to.
type Address struct {
	Network Network   `json:"network"`
	Account AccountID `json:"account"`
	Kind    PeerKind  `json:"kind"`
	Peer    PeerID    `json:"peer"`
	Thread  ThreadID  `json:"thread,omitempty"`
}

// String is for logs: network/account/kind/peer[/thread].
func (a Address) String() string {
	parts := []string{string(a.Network), string(a.Account), string(a.Kind), string(a.Peer)}
	if a.Thread != "" {
		parts = append(parts, string(a.Thread))
	}
	return strings.Join(parts, "/")
}

// Kind says what an Inbound is.
type Kind string

const (
	KindMessage  Kind = "message"
	KindEdit     Kind = "edit"     // Target is the edited message, Text its new text
	KindDelete   Kind = "delete"   // Target is the deleted message
	KindReaction Kind = "reaction" // Target is the message, Text the emoji
	KindButton   Kind = "button"   // Target is the message, Text the action's value
	KindMoved    Kind = "moved"    // the room got a new id: Text is the new PeerID
	KindUnparsed Kind = "unparsed" // the network sent what this adapter cannot read; Data is the raw event
)

// Sender is who wrote. Only User is an identity; names are labels.
type Sender struct {
	User  UserID   `json:"user"`
	Name  string   `json:"name,omitempty"`
	Alt   []UserID `json:"alt,omitempty"`   // other ids of the same human on this network
	Roles []string `json:"roles,omitempty"` // server roles, for routing
	Bot   bool     `json:"bot,omitempty"`
}

// Inbound is one event of a network, normalised. Two deliveries of one event are equal.
type Inbound struct {
	Key    string    `json:"key"` // unique per (network, account), stable over redelivery; of messages and what is about them by key.go
	Kind   Kind      `json:"kind"`
	From   Sender    `json:"from"`
	To     Address   `json:"to"` // the conversation it was written in
	ID     MessageID `json:"id,omitempty"`
	Target MessageID `json:"target,omitempty"`
	Time   time.Time `json:"time"` // the network's own time, for staleness only

	Text      string `json:"text,omitempty"` // plain or Markdown; mentions of the bot itself removed
	Mentioned bool   `json:"mentioned,omitempty"`
	// Command is set for a native command menu entry or a text that begins with "/" and is addressed to us.
	Command bool `json:"command,omitempty"`

	ReplyTo     MessageID    `json:"reply_to,omitempty"`
	Quote       *Quote       `json:"quote,omitempty"`
	Album       string       `json:"album,omitempty"` // items with one album id are one message
	Attachments []Attachment `json:"attachments,omitempty"`

	Server string      `json:"server,omitempty"` // Discord guild
	Team   string      `json:"team,omitempty"`   // Slack workspace
	Title  string      `json:"title,omitempty"`  // of the room; a label
	Handle ReplyHandle `json:"-"`                // a secret with an expiry; kept apart from the text
	Data   []byte      `json:"data,omitempty"`   // of KindUnparsed
	// Hash is of the whole request, where clients choose the keys: a key that comes again with another hash is a mistake.
	Hash string `json:"hash,omitempty"`
	// Borrowed says that it came by a sign-in that may be somebody else's copy: what would outlive the sign-in is not done for it.
	Borrowed bool `json:"borrowed,omitempty"`
}

// Quote is the text that a message answers, with its writer. It adds no rights.
type Quote struct {
	From Sender `json:"from"`
	Text string `json:"text"`
	Own  bool   `json:"own,omitempty"` // it was ours
	// Attachments are its files; they are fetched when the message that quotes them is answered.
	Attachments []Attachment `json:"attachments,omitempty"`
}

// Attachment is a file that came with a message. ID is issued by the adapter and means nothing elsewhere.
type Attachment struct {
	ID   string `json:"id"`
	Kind string `json:"kind"` // image, audio, voice, video, file
	Name string `json:"name,omitempty"`
	MIME string `json:"mime,omitempty"`
	Size int64  `json:"size,omitempty"` // bytes as the network says; 0: unknown
}

// ReplyHandle answers one event for a short time (Slack's response_url, Discord's interaction token).
type ReplyHandle struct {
	Secret  string
	Expires time.Time // zero: not known
}

// Pack is the handle as the journal keeps it; empty: there is none.
func (h ReplyHandle) Pack() string {
	if h.Secret == "" {
		return ""
	}
	ms := int64(0)
	if !h.Expires.IsZero() {
		ms = h.Expires.UnixMilli()
	}
	return strconv.FormatInt(ms, 10) + " " + h.Secret
}

// UnpackHandle reads what Pack wrote; anything else is not a handle.
func UnpackHandle(packed string) (h ReplyHandle) {
	at, secret, ok := strings.Cut(packed, " ")
	ms, err := strconv.ParseInt(at, 10, 64)
	if !ok || err != nil {
		return h
	}
	if h.Secret = secret; ms > 0 {
		h.Expires = time.UnixMilli(ms).UTC()
	}
	return h
}

// Holds says whether the handle can still be answered through.
func (h ReplyHandle) Holds(now time.Time) bool {
	return h.Secret != "" && (h.Expires.IsZero() || now.Before(h.Expires))
}

// Post is one network message to send, rendered in the network's dialect.
type Post struct {
	To      Address
	Token   string // stable across retries: nonce, message id or metadata where the network has one
	Text    string
	Plain   string // the same without markup, for when the network refuses ours
	Files   []File
	Actions [][]Action // rows of buttons
	ReplyTo MessageID
	Handle  ReplyHandle
	Private bool   // visible to one person where the network can
	For     UserID // of a streamed answer: who asked, for networks that want to know; empty: unknown
	Silent  bool
}

// File is a file to send. It has no path: what is kept may lie anywhere.
type File struct {
	Name string
	MIME string
	Size int64  // bytes that Open gives, exactly
	Ref  string // what the gateway calls it; no network is told
	// Open reads it from its beginning. It is called once for each try, and whoever called it closes what it gives.
	Open func(ctx context.Context) (io.ReadCloser, error)
}

// Action is a button. Value is opaque to the network and at most 64 bytes.
type Action struct {
	Label string
	Value string
}

// MenuItem is a command for the network's own menu.
type MenuItem struct {
	Name string // without "/"
	Help string
}

// Unit is what a network counts a text's length in.
type Unit string

const (
	UTF16 Unit = "utf16"
	Bytes Unit = "bytes"
	Runes Unit = "runes"
)

// Dialect is the markup that a network renders.
type Dialect string

const (
	Plain    Dialect = "plain"
	Markdown Dialect = "markdown"
	Telegram Dialect = "telegram" // HTML subset of the Bot API
	Slack    Dialect = "slack"
	Discord  Dialect = "discord"
	WhatsApp Dialect = "whatsapp"
)

// Traits are a network's limits.
type Traits struct {
	Idempotent  bool          // a second Send with one Token is the same message
	SameFor     time.Duration // … for so long after the first; later a Finder is asked. 0: for ever
	Unit        Unit
	MaxUnits    int // per message, after rendering; 0: no limit
	Dialect     Dialect
	Threads     bool
	Branches    bool // in a room a reply begins a thread: all that answers one message is a reply to it
	Buttons     bool
	Handles     bool          // some events (native commands) are answered through a handle of theirs: Inbound.Handle, Post.Handle
	Ack         string        // emoji put on a message while it is worked on, where typing cannot be shown; empty: none
	Whole       bool          // answers come whole: edits cost too much there to show how one grows
	EditEvery   time.Duration // pace of streamed edits in a DM
	EditGroup   time.Duration // … and in a group; 0: as in a DM
	SendEvery   time.Duration // pace of the second and later parts of one answer
	TypingEvery time.Duration // how often typing must be repeated; 0: no typing
	MaxFile     int64         // bytes; 0: no files
	MaxParts    int           // above this many, the answer goes as a file; 0: never
	Backfill    bool          // what was missed in a gap is fetched, from what Intake.Newest tells on
	Local       bool          // its people are signed in at the gateway: a user is a person's id, a peer a session's key, and transcripts are read as they are
}

// State of a connection.
type State string

const (
	Connecting State = "connecting"
	Ready      State = "ready"
	Idle       State = "idle"  // nobody is there, and nothing is wrong: it waits for them to come
	Deaf       State = "deaf"  // connected, but nothing can arrive
	Needs      State = "needs" // a person must do something: Hint says what
	Failed     State = "fatal"
)

// Status is a connection's state with what to do about it.
type Status struct {
	State State
	Cause string // for the operator
	Hint  string // one sentence: what to do
	Err   error
}

// LoginHow chooses how to link an account.
type LoginHow struct {
	Phone string // empty: QR
}

// LoginStep is what to show while linking.
type LoginStep struct {
	QR, Code, Note string
	Expires        time.Time
}

// Finding is one thing that was looked at: a line of `parley doctor` and of a channel's test.
type Finding struct {
	OK   bool   `json:"ok"`
	Warn bool   `json:"warn,omitempty"` // it works, and is probably not what was meant
	Todo bool   `json:"todo,omitempty"` // nothing is wrong, and something is to be done before Parley is of use
	What string `json:"what"`
	Hint string `json:"hint,omitempty"` // what to do
}
