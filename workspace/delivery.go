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
	Key       string // made by AnswerKey and its like, compared and never taken apart
	RoomID    RoomID
	N         int64 // order in the room
	RunID     RunID
	InputID   InputID // that it answers, perhaps through its reply handle; empty: none
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

// AnswerKey is the key of a run's answer.
func AnswerKey(run RunID) string { return "run:" + string(run) + ":answer" }

// InputKey is the key of what an input is told: its reply, or why it is refused.
func InputKey(in InputID, what string) string { return "input:" + string(in) + ":" + what }

// Doubt is why it is not known whether a part was sent, or what became of it for that reason. It alone decides whether a
// message goes out again. The empty one is none.
type Doubt string

const (
	DoubtUnanswered Doubt = "unanswered" // the network did not say whether it took it
	DoubtEnded      Doubt = "ended"      // the gateway ended while it was being sent: no network is to blame
	DoubtMarked     Doubt = "marked"     // it goes out once more, marked: the one repeat that a doubt allows
	DoubtDropped    Doubt = "dropped"    // it goes out no more, as configured; the parts behind it do
	DoubtTwice      Doubt = "twice"      // neither it nor its marked repeat was answered
	// DoubtPlaceholder: its placeholder may have been sent, which has the same token. A network that knows the token again then keeps
	// the placeholder, and takes the text by an edit alone.
	DoubtPlaceholder Doubt = "placeholder"
)

var doubts = map[Doubt]string{
	DoubtUnanswered:  "may have been sent",
	DoubtEnded:       "the gateway ended while it was being sent",
	DoubtMarked:      "sent once more, marked",
	DoubtDropped:     "may have been sent; dropped as configured",
	DoubtTwice:       "twice without an answer from the network",
	DoubtPlaceholder: "its placeholder may have been sent",
}

// Error is its sentence, for people and logs.
func (d Doubt) Error() string { return doubts[d] }

// Why is what people are told of a part that was not sent as it should be; empty: nothing is wrong.
func (p Part) Why() string {
	if p.Error != "" {
		return p.Error
	}
	return p.Doubt.Error()
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
	Doubt      Doubt  // whether it was sent is, or was, not known
	Error      string // what went wrong last, in words that decide nothing
}
