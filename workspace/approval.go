package workspace

import (
	"encoding/json"
	"errors"
	"time"

	"parley/workspace/rule"
)

// ApprovalID is a ULID.
type ApprovalID string

// ApprovalState is where a question to a person stands.
type ApprovalState string

const (
	ApprovalPending   ApprovalState = "pending"
	ApprovalApproved  ApprovalState = "approved"
	ApprovalConsumed  ApprovalState = "consumed" // its call was begun; that is the same commit
	ApprovalDenied    ApprovalState = "denied"
	ApprovalExpired   ApprovalState = "expired"   // nobody answered in time, which is a no
	ApprovalCancelled ApprovalState = "cancelled" // the turn ended or went another way, or the call is not the same any more
	// ApprovalUnknown is how one is told, never stored, whose call was begun and whose outcome nobody knows.
	ApprovalUnknown ApprovalState = "unknown"
)

// ErrDecided says that a question had been answered before. It comes with a sentence that says by whom and how.
var ErrDecided = errors.New("decided already")

// Approvals is the table of their states. The empty state stands for "not yet stored".
var Approvals = Table[ApprovalState]{
	"":               {ApprovalPending},
	ApprovalPending:  {ApprovalApproved, ApprovalDenied, ApprovalExpired, ApprovalCancelled},
	ApprovalApproved: {ApprovalConsumed, ApprovalCancelled},
}

// Approval is a durable question to a person, bound to one exact tool call by its hash. It is answered once.
type Approval struct {
	ID        ApprovalID
	RunID     RunID
	CallID    string
	SessionID SessionID // generation: a grant for the session ends with it
	Session   string    // key
	Agent     AgentID
	Tool      string
	Hash      string // tools.Hash
	Requester PersonID
	Role      Role // of the requester when it was asked
	RoomID    RoomID
	Domain    string // that owns the call; empty: owners decide
	Body      ApprovalBody
	State     ApprovalState
	Created   time.Time
	Expires   time.Time
	Decided   time.Time
	DecidedBy PersonID  // empty: no person (expiry, a domain's own system, the end of the turn)
	Via       string    // telegram … webchat, api, cli, webhook, command, expiry, message, stop, gateway
	Grant     Grant     // of an approved one
	Reason    string    // of a no
	External  string    // what the domain's own system calls it
	Revoked   time.Time // a grant for the session; the audit log says by whom
}

// ApprovalBody is what is asked. It never changes.
type ApprovalBody struct {
	Shown   string          `json:"shown"` // the whole of it
	Args    json.RawMessage `json:"args,omitempty"`
	Cwd     string          `json:"cwd,omitempty"`
	Env     []string        `json:"env,omitempty"`
	Sandbox string          `json:"sandbox,omitempty"`
	Asked   string          `json:"asked,omitempty"`   // label of the requester
	Grants  []Grant         `json:"grants"`            // what may be granted, most careful first
	Rule    *rule.Command   `json:"rule,omitempty"`    // what a grant for the session lets run, of a command
	Dangers []rule.Danger   `json:"dangers,omitempty"` // what to look at first
	Rooms   []AskedRoom     `json:"rooms,omitempty"`   // that hear the question
	// After is the newest input of the journal when it was asked: one with a larger number came later.
	After int64 `json:"after"`
}

// AskedRoom is a room that hears a question.
type AskedRoom struct {
	Room  RoomID `json:"room"`
	Whole bool   `json:"whole"` // all of the question is shown there, so that it can be answered there
}

// QuestionKey is the key of the message by which a room is asked.
func (a Approval) QuestionKey(room RoomID) string {
	return "approval:" + string(a.ID) + ":" + string(room)
}

// Grant is how much a yes is good for, Choice how a question is answered.
type Grant string
type Choice string

const (
	Once       Grant = "once"
	ForSession Grant = "session" // what the question says, asked for by this person, until the session begins again; never for a domain's call

	ChooseOnce    Choice = "once"
	ChooseSession Choice = "session"
	ChooseDeny    Choice = "deny"
)

// Press is an answer that names no question in words: a button's, or a yes or no to the very message that asked.
type Press struct {
	Approval ApprovalID `json:"approval"`
	Choice   Choice     `json:"choice"`
	Reason   string     `json:"reason,omitempty"` // behind a no
}
