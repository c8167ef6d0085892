package workspace

import (
	"time"

	"parley/channels"
)

// OutboundKind says what an answer is for.
type OutboundKind string

const (
	OutAnswer   OutboundKind = "answer"
	OutNotice   OutboundKind = "notice"
	OutReply    OutboundKind = "reply" // of a command
	OutRefusal  OutboundKind = "refusal"
	OutAway     OutboundKind = "away"
	OutApproval OutboundKind = "approval"
	OutMessage  OutboundKind = "message" // sent by an operator or tool
	OutFile     OutboundKind = "file"    // that an agent sends; its text is the file's name
)

// OnUnknown is what happens to a part that may have been sent and cannot be asked for.
type OnUnknown string

const (
	MarkUnknown OnUnknown = "mark" // send once more, marked
	DropUnknown OnUnknown = "drop"
)

// Outbound is one logical answer with a unique key.
type Outbound struct {
	ID        OutboundID
	Key       string // run:<id>:answer, input:<id>:reply …
	RoomID    RoomID
	N         int64 // order in the room
	RunID     RunID
	Kind      OutboundKind
	Text      string // Markdown; stored here, or in the entry that BodyRef names
	BodyRef   string // entry:<session>/<n>
	State     OutboundState
	NotAfter  time.Time
	OnUnknown OnUnknown
	ReplyTo   channels.MessageID
	Created   time.Time
	Parts     []Part
}

// What Part.Error says of a part that may have been sent, and that nobody can ask about.
const (
	DoubtMarked  = "sent once more, marked"                    // the one resend that a doubt allows
	DoubtDropped = "may have been sent; dropped as configured" // the parts behind it are sent all the same
	DoubtedTwice = "twice without an answer from the network"
)

// Doubted says that the part may have been sent: if it goes out again, it says so.
func (p Part) Doubted() bool {
	return p.State == PartUnknown || p.Error == DoubtMarked || p.Error == DoubtDropped || p.Error == DoubtedTwice
}

// Part is one network message of an outbound.
type Part struct {
	OutboundID OutboundID
	N          int
	Token      string // stable over retries
	From, To   int    // byte offsets into the outbound's rendered-once Markdown
	Blob       string // a file instead of text
	State      PartState
	Epoch      int64
	Tries      int
	NextAt     time.Time
	RemoteID   channels.MessageID
	Error      string
}
