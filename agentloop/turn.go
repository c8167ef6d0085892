// Package agentloop is the loop of an agent: it builds the prompt, asks the model, runs the tools that policy
// allows, and hands every step to a Recorder before it goes on. It has never heard of a network, a bus or a
// database: a Turn is a plain value, and all else that it may touch is a Recorder, an Emit and a Model.
//
// Goroutines: one for each tool call under way, waited for before the turn goes on.
package agentloop

import (
	"context"
	"errors"
	"time"

	"parley/agentloop/llm"
	"parley/tools"
	"parley/workspace"
)

// Causes with which the lane ends a turn's context (context.Cause).
var (
	ErrStopped     = errors.New("stopped by a person")
	ErrInterrupted = errors.New("interrupted by a newer message")
	ErrRestart     = errors.New("begun again") // with a further message, or since a person wants the model asked at once
	ErrTimeout     = errors.New("turn timed out")
	ErrShutdown    = errors.New("gateway is shutting down") // leave the run running: the next boot resumes it
)

// Turn is all that one pass of the loop knows. It can be serialised: the loop may run elsewhere.
type Turn struct {
	Run       workspace.RunID
	Session   workspace.Key
	SessionID workspace.SessionID
	Agent     workspace.AgentID
	Requester workspace.Actor // whose rights hold for the whole turn
	Network   string          // of the room; empty: local
	PeerKind  string
	Channel   string // configured name of the channel that the first input came through
	Route     string // label of the rule that chose the agent
	Started   time.Time

	System   string // byte-stable prefix
	Volatile string
	Summary  string             // stands for what came before History; empty: nothing did
	History  []workspace.Entry  // the transcript with this turn's inputs last; events are skipped
	Known    *Known             `json:"-"` // what earlier turns made of History; nil: nothing
	Journal  []workspace.Step   // of an earlier try of this run, in order
	Trouble  *workspace.Trouble // what the model failed with in an earlier try, and had not answered since; nil: nothing
	Think    string             // how hard to think: llm.Request.Think
	Models   []string           // primary, then fallbacks
	MaxSteps int                // model calls; reaching it ends the turn completed(step_limit)
	WorkDir  string             // folder that file tools are confined to; empty: none
	Folders  []workspace.Folder // an owner's own, inside WorkDir
	Control  string             // the agent's own folder, read-only in a sandbox
	MaxFile  int64              // bytes of a file that the conversation takes; 0: none
}

// Subject is whom tool policy judges in this turn.
func (t *Turn) Subject() tools.Subject {
	return tools.Subject{Actor: t.Requester, Agent: t.Agent, Session: t.Session, SessionID: t.SessionID, Network: t.Network,
		Channel: t.Channel, Route: t.Route}
}

// Recorder makes a turn durable. The lane implements it over the store.
type Recorder interface {
	// Step journals steps: the model's whole response with its planned calls, or results. It returns after the
	// commit when a step has state started and effect outside; else it only keeps the order. The boundary says
	// what waited: when Stop is set the loop ends with ErrStopped, Inputs are appended to the conversation.
	// boundary is false for a mere "started": nothing is handed over then.
	Step(ctx context.Context, boundary bool, steps ...workspace.Step) (Boundary, error)
	// Ask says whether a person has approved a call. A question that is not answered yet moves the run to waiting, in the
	// commit that stores it.
	Ask(ctx context.Context, w Wanted) (Answer, error)
	// Trouble notes that a model fails the run, or with nil that one answers again. It returns at once.
	Trouble(t *workspace.Trouble)
	// Finish ends the run, once, and returns after the commit.
	Finish(ctx context.Context, o Outcome) error
}

// Boundary is what waited when a step was recorded.
type Boundary struct {
	Inputs []workspace.Entry // steered in, already in the transcript
	Stop   bool
	Pause  bool // at a boundary: the run is to pause here
	Held   bool // with Stop: it was recorded first, and the steps were not stored
}

// Outcome is how a turn ended.
type Outcome struct {
	State  workspace.RunState // completed, failed, timeout, user_stopped
	Reason string             // step_limit, silent, model_auth, interrupted …
	// Content is the final answer as the transcript keeps it. Text is what the chat gets, in Markdown; empty with
	// Silent set means a recorded silence.
	Content []workspace.Content
	Text    string
	Silent  bool
	Partial bool // Text was cut, by a stop or for its length
	Usage   workspace.Usage
	Model   string // that answered
	Err     error  // for the operator
	// TooLong says that the model refused the conversation's length, and a part was left out.
	TooLong bool
	// Steps are journal rows that belong to the same commit: the final response.
	Steps []workspace.Step
}

// Event is watched live: by delivery (streaming), by SSE, by the lane (activity). It is never the record.
type Event struct {
	Run  workspace.RunID
	Type EventType
	Text string // of EventText: the whole answer text of this model call so far grows by it
	Tool string
	Call string
	Err  string
	// Lines is how many lines a command has written, and Text the last of them, of an EventOutput.
	Lines int64
	Note  string // of EventWait: why nothing happens: "Anthropic answers 500: `…`; next try in 4 s"
	// Who is, of an EventAsk, whom the model is asked of, and Model its name; Since is when.
	Who, Model string
	Since      time.Time
	// Trouble is, of an EventWait, the failure of a model that is behind it; nil: something else is.
	Trouble *workspace.Trouble
}

// EventType is the kind of a live event.
type EventType string

const (
	EventText       EventType = "text"    // a delta of the answer
	EventDiscard    EventType = "discard" // forget the deltas since the last model call began: it is asked again
	EventToolStart  EventType = "tool_start"
	EventToolEnd    EventType = "tool_end"
	EventOutput     EventType = "output"   // the newest end of what a command writes
	EventThinking   EventType = "thinking" // private reasoning goes on; no text
	EventWait       EventType = "wait"
	EventModelStart EventType = "model_start"
	EventAsk        EventType = "ask" // a model is asked, and has not begun to answer
)

// Emit receives events from the turn's goroutine; it must not block.
type Emit func(Event)

// Models finds the model chain of a turn.
type Models interface {
	// Chain is the primary with its fallbacks as one Model; onWait is told, from the calling goroutine, why a
	// call is delayed. An unknown name is an error.
	Chain(names []string, onWait func(note string)) (llm.Model, error)
}
