package workspace

import (
	"encoding/json"
	"time"

	"parley/channels"
)

// Person is a human behind one or more network users.
type Person struct {
	ID   PersonID
	Role Role
	Name string
	TZ   string // IANA name; empty: the gateway's
	// Vouched says that the configuration names this person, or an owner approved the account that was looked up. A
	// guest who merely came through an open door, or speaks in an allowed group, has a record too, and is not.
	Vouched bool
}

// Known says whether this is more than a guest of an open door. Roles above guest are only ever given by the
// configuration or an owner's approval.
func (p Person) Known() bool { return p.ID != "" && (p.Vouched || p.Role.AtLeast(Member)) }

// Account is a network user that belongs to a person.
type Account struct {
	Network channels.Network
	Account channels.AccountID
	User    channels.UserID
	Person  PersonID
}

// Room is an address as stored.
type Room struct {
	ID RoomID
	channels.Address
	Title string
}

// Session is one generation of a working context under one agent.
type Session struct {
	ID        SessionID
	Key       Key
	Gen       int
	Agent     AgentID
	Name      string
	Created   time.Time
	Ended     time.Time // zero: the newest generation
	Overrides Overrides
	Tokens    Usage // summed over its runs
	// Hidden says that it was deleted: it is shown to nobody until something is said in it again. The record stays.
	Hidden bool
	// Compacted is the number of the entry whose summary stands for what came before; 0: none.
	Compacted int64
	// ForkedFrom is the generation that this one began as a copy of, up to the entry ForkedBefore; empty: of none.
	ForkedFrom   SessionID
	ForkedBefore int64
}

// Overrides are what people changed for one session; zero values mean the configured default.
type Overrides struct {
	Queue     string `json:"queue,omitempty"`
	Debounce  string `json:"debounce,omitempty"` // a duration, such as 2s
	Cap       int    `json:"cap,omitempty"`
	Drop      string `json:"drop,omitempty"` // summarize, old, new
	Model     string `json:"model,omitempty"`
	Think     string `json:"think,omitempty"`     // off, minimal, low, medium, high, xhigh
	Verbose   string `json:"verbose,omitempty"`   // on, full
	Reasoning string `json:"reasoning,omitempty"` // on: it is shown that the model thinks, never what
	Usage     string `json:"usage,omitempty"`     // tokens, cost, full: a footer under each answer
	Send      string `json:"send,omitempty"`      // off: answers stay in the transcript
}

// Partition of a key: FNV-1a-32 of its text, modulo 256.
func (k Key) Partition() int {
	h := uint32(2166136261)
	for _, c := range []byte(k.String()) {
		h = (h ^ uint32(c)) * 16777619
	}
	return int(h % 256)
}

// Input is one row of the journal: anything that can start or change a turn.
type Input struct {
	Seq       int64 // order of arrival in this journal
	ID        InputID
	Source    string // a network, or api task helper approval system
	Account   string // the network account; for api and webchat the person's id
	Key       string
	Kind      channels.Kind
	TargetKey string // key of the message that an edit, delete or reaction is about
	RoomID    RoomID // empty for api, task, helper
	Person    PersonID
	Role      Role
	Sender    string // a label
	SessionID SessionID
	Agent     AgentID
	Partition int
	Decision  Decision
	Binding   Binding
	Mode      Mode
	State     InputState
	Reason    string // of a state that ended it
	RunID     RunID
	Deadline  time.Time // zero: none
	Received  time.Time
	Sent      time.Time // the network's own time
	Text      string
	Data      InputData
}

// InputData is what came with the text.
type InputData struct {
	Message     channels.MessageID    `json:"message,omitempty"`
	Target      channels.MessageID    `json:"target,omitempty"` // what an edit, delete, reaction or press is about
	ReplyTo     channels.MessageID    `json:"reply_to,omitempty"`
	Quote       *channels.Quote       `json:"quote,omitempty"`
	Album       string                `json:"album,omitempty"`
	Attachments []channels.Attachment `json:"attachments,omitempty"`
	User        channels.UserID       `json:"user,omitempty"`
	Channel     string                `json:"channel,omitempty"` // the configured name it came through
	Context     []ContextLine         `json:"context,omitempty"` // what others said before, as text
	BodyHash    string                `json:"body_hash,omitempty"`
	Borrowed    bool                  `json:"borrowed,omitempty"` // by a sign-in that may be a copy
	Heard       map[int]string        `json:"heard,omitempty"`    // transcripts of attachments, by their place
	Press       *Press                `json:"press,omitempty"`    // what it decides, which is then all that it does
}

// ContextLine is somebody else's text that a turn may quote. It adds no rights.
type ContextLine struct {
	Name  string `json:"name"`
	Text  string `json:"text"`
	Quote Quote  `json:"quote,omitempty"`
}

// Label names a line for people.
func (l ContextLine) Label() string {
	switch l.Quote {
	case QuoteOther:
		if l.Name == "" {
			return "quoted"
		}
		return "quoted from " + l.Name
	case QuoteOwn:
		return "quoted from you"
	}
	return l.Name
}

// Quote says whose words a message quotes.
type Quote string

const (
	QuoteOther Quote = "other" // those of Name
	QuoteOwn   Quote = "own"   // the agent's
)

// Mode says how an input wants to be handled.
type Mode string

const (
	ModeTurn    Mode = "turn"
	ModeCommand Mode = "command"
	ModeNote    Mode = "note" // kept as context, starts nothing
)

// Decision is what the gate said, and by which rule.
type Decision struct {
	Allow  bool     `json:"allow"`
	Rule   string   `json:"rule"`             // e.g. dm:pairing, group:allow, mention
	Gates  []string `json:"gates,omitempty"`  // those passed, in order
	Reason string   `json:"reason,omitempty"` // of a refusal
}

// Binding is where routes sent an input, and by which rule.
type Binding struct {
	Agent    AgentID `json:"agent"`
	Key      string  `json:"key"`
	Rule     string  `json:"rule"`               // e.g. peer:tg/123, network:telegram, fallback
	Fallback bool    `json:"fallback,omitempty"` // the default agent, not an assignment
	// Home is the session that the route itself names, where the chat was switched to another; empty: Key is.
	Home string `json:"home,omitempty"`
}

// Usage of model calls. Cost is nil while any call was of an unpriced model.
type Usage struct {
	InputTokens      int      `json:"inputTokens"`
	OutputTokens     int      `json:"outputTokens"`
	CacheReadTokens  int      `json:"cacheReadTokens"`
	CacheWriteTokens int      `json:"cacheWriteTokens"`
	Calls            int      `json:"calls"`
	CostUSD          *float64 `json:"totalCostUsd"`
	DurationMS       int64    `json:"durationMs"`
}

// Add sums two usages; an unpriced part makes the sum unpriced.
func (u Usage) Add(v Usage) Usage {
	sum := Usage{
		InputTokens: u.InputTokens + v.InputTokens, OutputTokens: u.OutputTokens + v.OutputTokens,
		CacheReadTokens: u.CacheReadTokens + v.CacheReadTokens, CacheWriteTokens: u.CacheWriteTokens + v.CacheWriteTokens,
		Calls: u.Calls + v.Calls, DurationMS: u.DurationMS + v.DurationMS,
	}
	switch {
	case u.Calls == 0:
		sum.CostUSD = v.CostUSD
	case v.Calls == 0:
		sum.CostUSD = u.CostUSD
	case u.CostUSD != nil && v.CostUSD != nil:
		c := *u.CostUSD + *v.CostUSD
		sum.CostUSD = &c
	}
	return sum
}

// Run is the recorded life of one turn.
type Run struct {
	ID         RunID
	SessionID  SessionID
	ParentRun  RunID
	ParentCall string
	TaskID     string
	Requester  PersonID
	Role       Role
	RoomID     RoomID // where its answer goes; empty: nowhere but the transcript
	State      RunState
	Reason     string // why it ended as it did: step_limit, interrupted, model_auth …
	Error      string // for the operator
	Epoch      int64  // the gateway boot that owns it
	Tries      int    // begins after a crash
	StopBy     PersonID
	PauseBy    PersonID // who wants it to pause, or has paused it; empty: nobody
	Model      string
	Usage      Usage
	Started    time.Time
	Ended      time.Time
	Deadline   time.Time // when it has used its time; a wait for people moves it. Zero: it was begun before there was one
	Trouble    *Trouble  // what its model fails with now, or failed with at its end; nil: nothing
}

// Trouble is how models fail a run. It holds no credential.
type Trouble struct {
	Model    string        `json:"model"`              // as configured
	Provider string        `json:"provider,omitempty"` // by name; empty: it is not a known one
	Kind     string        `json:"kind"`               // of the failure: overload, limited …
	Status   int           `json:"status,omitempty"`   // of HTTP; 0: there was no answer
	Said     string        `json:"said,omitempty"`     // the server's words: one line, cut
	Failures int           `json:"failures"`           // of all models of the chain, in a row
	Failing  time.Duration `json:"failing"`            // since the first of them, without waits that servers asked for
	Wait     time.Duration `json:"wait,omitempty"`     // until the next try
	Stated   bool          `json:"stated,omitempty"`   // the server asked for this wait
	Next     string        `json:"next,omitempty"`     // the model that is asked instead
	At       time.Time     `json:"at"`                 // of the failure
}

// Content is one piece of an entry or of a model message. Kind decides which fields count.
type Content struct {
	Kind   ContentKind     `json:"kind"`
	Text   string          `json:"text,omitempty"`
	CallID string          `json:"call_id,omitempty"`
	Name   string          `json:"name,omitempty"` // tool or file name
	Args   json.RawMessage `json:"args,omitempty"` // of a tool call: the exact JSON that the model wrote
	Error  bool            `json:"error,omitempty"`
	MIME   string          `json:"mime,omitempty"`
	Blob   string          `json:"blob,omitempty"` // reference into the blob store
	Size   int64           `json:"size,omitempty"` // bytes of Blob
	// Nth counts what a session showed to models, from 1: by it older pictures are left out, always the same ones.
	Nth int `json:"nth,omitempty"`
	// Opaque is provider state (a reasoning signature) that must go back unchanged. It never leaves the gateway.
	Opaque json.RawMessage `json:"opaque,omitempty"`
}

// ContentKind is the kind of one piece.
type ContentKind string

const (
	Text       ContentKind = "text"
	JSON       ContentKind = "json"
	ToolCall   ContentKind = "tool_call"
	ToolResult ContentKind = "tool_result"
	FileRef    ContentKind = "file_ref"
	Image      ContentKind = "image"
	Reasoning  ContentKind = "reasoning" // private: never shown, never sent
)

// Step is one row of a run's journal.
type Step struct {
	RunID    RunID
	N        int
	Kind     StepKind
	CallID   string // of a tool step
	Tool     string
	ArgsHash string
	Effect   Effect
	State    StepState
	Body     StepBody
	// Approval is of a call that was approved, in the step that starts it: both are one commit. It is not stored here.
	Approval ApprovalID
	Started  time.Time
	Ended    time.Time
}

// StepBody is what a step holds: the model's whole response, or a call with its result.
type StepBody struct {
	Content  []Content     `json:"content,omitempty"`
	Usage    *Usage        `json:"usage,omitempty"`
	Model    string        `json:"model,omitempty"`
	Reason   string        `json:"reason,omitempty"`   // of a refusal: layer and rule
	Files    []Content     `json:"files,omitempty"`    // what a call sends to the conversation; their outbound is stored with this row
	Decision *ToolDecision `json:"decision,omitempty"` // what tool policy said about a call; nil: it was not judged yet
	Sandbox  string        `json:"sandbox,omitempty"`  // names what a call ran in; empty: in the gateway itself
	Began    *time.Time    `json:"began,omitempty"`    // when a call began to run, behind all waits; nil: with its row
}

// ToolDecision is the answer of tool policy to one call, with what each layer said.
type ToolDecision struct {
	Allow  bool    `json:"allow"`
	Ask    bool    `json:"ask,omitempty"`    // allowed, once a person has approved it
	Domain string  `json:"domain,omitempty"` // the configured domain whose owner decides; implies Ask
	Layer  string  `json:"layer,omitempty"`  // that decided
	Rule   string  `json:"rule,omitempty"`
	Reason string  `json:"reason,omitempty"` // one sentence
	Record []Layer `json:"record,omitempty"` // all layers that judged, in order
}

// Layer is what one layer of tool policy said about a call.
type Layer struct {
	Layer   string       `json:"layer"` // built-in, global, agent, route, role, depth, exec, domain
	Rule    string       `json:"rule"`  // what in it matched: allow:*, deny:web_*, level:ask …
	Outcome LayerOutcome `json:"outcome"`
	Reason  string       `json:"reason,omitempty"` // one sentence, where the rule alone does not say it
}

// LayerOutcome is how one layer of tool policy judged.
type LayerOutcome string

const (
	LayerPass LayerOutcome = "pass" // it does not narrow here
	LayerAsk  LayerOutcome = "ask"  // a person must approve first
	LayerDeny LayerOutcome = "deny"
)

// StepKind is model or tool.
type StepKind string

const (
	StepModel StepKind = "model"
	StepTool  StepKind = "tool"
)

// Effect is a tool's effect class; it decides what a crash may repeat.
type Effect string

const (
	Pure    Effect = "pure"    // run again freely
	Store   Effect = "store"   // its effect commits with its result
	Outside Effect = "outside" // never silently run again
)

// Entry is one line of a session's transcript; N is also the sequence of the session's events.
type Entry struct {
	SessionID SessionID
	N         int64
	RunID     RunID
	StepN     int
	InputID   InputID
	Role      EntryRole
	At        time.Time
	Body      EntryBody
}

// EntryRole says who speaks.
type EntryRole string

const (
	RoleUser      EntryRole = "user"
	RoleAssistant EntryRole = "assistant"
	RoleTool      EntryRole = "tool"
	RoleEvent     EntryRole = "event" // turn, permission, error; the prompt skips it
)

// EntryBody is the stored form of an entry.
type EntryBody struct {
	Type string `json:"type,omitempty"` // of an event: turn.started, turn.ended, error …
	// Text of a user's entry is kept once, in its input; readers put it into Content.
	Context []ContextLine `json:"context,omitempty"` // what others said before, quoted as data
	Content []Content     `json:"content,omitempty"`
	Files   []Content     `json:"files,omitempty"` // that a call sent to the conversation; no part of the prompt
	Name    string        `json:"name,omitempty"`  // label of the speaker
	Reason  string        `json:"reason,omitempty"`
	Partial bool          `json:"partial,omitempty"` // cut by a stop
	// Approval is what an event of EventAsked or EventResolved is about; its Content is then the whole question, or nothing.
	Approval *ApprovalEvent `json:"approval,omitempty"`
	// From and To are the first and last number of what an event is about: EventCompacted, EventUndone.
	From int64 `json:"from,omitempty"`
	To   int64 `json:"to,omitempty"`
	// Usage is what an event has cost that belongs to no run: a summary that a command asked for.
	Usage *Usage `json:"usage,omitempty"`
}

// Types of events that change what the prompt holds of the entries before them. The record stays as it is.
const (
	EventCompacted = "compacted" // Content is a summary that stands for everything up to To
	EventUndone    = "undone"    // the entries From … To are left out
	UndoneToRetry  = "retried"   // reason of an EventUndone: the exchange failed, and is asked again right behind it
)

// Types of events that tell of an approval, and of a run that pauses.
const (
	EventAsked    = "permission.requested"
	EventResolved = "permission.resolved"
	EventPaused   = "turn.paused"
	EventResumed  = "turn.resumed"
)

// ApprovalEvent is an approval as the transcript tells of it.
type ApprovalEvent struct {
	ID      ApprovalID    `json:"id"`
	CallID  string        `json:"call_id"`
	Tool    string        `json:"tool"`
	Domain  string        `json:"domain,omitempty"`
	State   ApprovalState `json:"state"`
	Expires time.Time     `json:"expires"`
	By      PersonID      `json:"by,omitempty"`
	Via     string        `json:"via,omitempty"`
	Grant   Grant         `json:"grant,omitempty"`
	Grants  []Grant       `json:"grants,omitempty"` // of a question: what may be granted
	Allows  string        `json:"allows,omitempty"` // of a command: what a grant for the session lets run
}

// Plain joins the text pieces.
func (b EntryBody) Plain() string { return PlainText(b.Content) }

// PlainText joins the text pieces of a message.
func PlainText(content []Content) string {
	var s string
	for _, c := range content {
		if c.Kind == Text {
			s += c.Text
		}
	}
	return s
}
