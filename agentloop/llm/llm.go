// Package llm is the contract with language models: a request, a stream of deltas, a whole response, and errors
// that say what may be done about them. Providers live below it (llm/openai, llm/anthropic, llm/offline); Chain puts retry,
// cool-down and fallbacks in front of them. It starts no goroutine of its own.
package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"parley/workspace"
)

// Model is one configured model.
type Model interface {
	// Stream sends the request and calls onDelta, from the calling goroutine, for each piece as it arrives;
	// onDelta may be nil and must not block. It returns the whole response once the provider said that it is
	// complete. On failure the error is a *Error and nothing of a half response is returned, except that
	// Error.Partial holds the text so far. It returns promptly with ctx's cause when ctx ends.
	Stream(ctx context.Context, req Request, onDelta func(Delta)) (Response, error)
	// Info is what is known of the model without the network.
	Info() Info
}

// Info of a model.
type Info struct {
	Name          string // as configured
	Model         string // the provider's name for it
	Provider      string // by name, such as OpenAI; empty: it is not a known one
	ContextWindow int    // tokens; 0: unknown
	MaxOutput     int    // tokens; 0: the provider's default
	Offline       bool   // no model at all: the built-in responder
	// Thinks says whether Request.Think changes anything: it does, it does not, or only the server knows.
	Thinks Knowledge
}

// Knowledge is what is known of a model's ability.
type Knowledge string

const (
	Unknown Knowledge = ""
	Yes     Knowledge = "yes"
	No      Knowledge = "no"
)

// ThinkLevels are the values of Request.Think, from the least to the most.
func ThinkLevels() []string { return []string{"off", "minimal", "low", "medium", "high", "xhigh"} }

// Request is one call. System and Tools come first on the wire and are byte-stable over the turns of a session,
// so that provider caches hit; Volatile follows them.
type Request struct {
	System   string
	Volatile string // date, session, requester: after everything that is cached
	Messages []Message
	Tools    []Tool
	// MaxTokens of the answer; 0: the model's own.
	MaxTokens int
	// Think is how hard a model that reasons should do so: off, minimal, low, medium, high, xhigh; empty: as it does by
	// itself. A model that has no such thing is asked without it.
	Think string
	// CacheKey groups calls that share a prefix: the session. Failures of a model are counted by it.
	CacheKey string
	// Hold is the turn's part of the memory that long answers may have; nil: they are not counted.
	Hold *Hold
	// Trouble is what a call that is taken up again had failed with in an earlier try; nil: nothing. It is not sent. Its first try
	// goes out although the model cools down: somebody wants it, or the process is a new one.
	Trouble *workspace.Trouble
	// For is the person who asks. It is not sent: people share a model's places by it.
	For workspace.PersonID
}

// Role of a message.
type Role string

const (
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool"
)

// Message is one message of the conversation.
type Message struct {
	Role    Role
	Content []workspace.Content
}

// Plain is the text of a message that is nothing else, as nearly all of a long conversation are.
func (m *Message) Plain() (text string, ok bool) {
	if len(m.Content) != 1 || m.Content[0].Kind != workspace.Text {
		return "", false
	}
	return m.Content[0].Text, true
}

// Tool as shown to the model.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON Schema of the arguments, an object
}

// Delta is a piece of a streamed response: text of the answer, or of private reasoning.
type Delta struct {
	Text      string
	Reasoning string
	ToolName  string // a tool call has begun
	Discard   bool   // forget every delta of this call so far: the model is asked again. Nothing else is set
	// Trouble says that a model has failed, and what is waited for. Only a chain sends it. Nothing else is set.
	Trouble *workspace.Trouble
	// Asks says that a model is asked now, and has not begun to answer. Only a chain sends it. Nothing else is set.
	Asks *Info
}

// Stop says why a response ended.
type Stop string

const (
	StopEnd       Stop = "end"
	StopToolCalls Stop = "tool_calls"
	StopLength    Stop = "length"
	StopFiltered  Stop = "filtered"
)

// Response is a whole model response.
type Response struct {
	Content []workspace.Content // text, reasoning and tool calls in order
	Stop    Stop
	// Usage of this one call. InputTokens are those neither read from a cache nor written to one, whatever the wire
	// counts them in: the three are priced apart and their sum is the prompt. CostUSD is nil when it is unpriced.
	Usage workspace.Usage
	Model string // what answered, as configured
}

// Settled is what an adapter returns of what it has read. A model that refuses, or is filtered, has called nothing, whatever it had
// begun to write; one that ends with calls has stopped for them.
func (r Response) Settled() Response {
	if r.Stop == StopFiltered {
		r.Content = slices.DeleteFunc(r.Content, func(c workspace.Content) bool { return c.Kind == workspace.ToolCall })
	}
	if r.Stop == StopEnd && len(r.ToolCalls()) > 0 {
		r.Stop = StopToolCalls
	}
	return r
}

// ToolCalls of the response in order.
func (r Response) ToolCalls() []workspace.Content {
	var calls []workspace.Content
	for _, c := range r.Content {
		if c.Kind == workspace.ToolCall {
			calls = append(calls, c)
		}
	}
	return calls
}

// Kind classifies a failed call.
type Kind string

const (
	Auth      Kind = "auth"      // 401, 403: the key is refused
	Limited   Kind = "limited"   // 429
	Overload  Kind = "overload"  // 5xx, 529, connection refused, reset before an answer
	Cut       Kind = "cut"       // the stream ended half-way
	Overflow  Kind = "overflow"  // the prompt is longer than the context window
	Rejected  Kind = "rejected"  // 400, 404, 422: this request will never work
	Malformed Kind = "malformed" // the answer cannot be read
	TooLong   Kind = "too_long"  // the answer is longer than it may be, and nothing of it can be kept; it is not asked for again
	TimedOut  Kind = "timed_out" // no byte for too long
	Cancelled Kind = "cancelled" // ctx ended
	CoolDown  Kind = "cooling"   // not asked: too many failures just now
	NoneLeft  Kind = "none_left" // every model of the chain failed; Err is the last
	Crowded   Kind = "crowded"   // no place was free; only as Last
)

// Error is a failed call. Err never holds a credential.
type Error struct {
	Kind     Kind
	Model    string
	Provider string // as Info's
	Status   int
	After    time.Duration // for which the server asks to be left alone; 0: it does not say
	Said     string        // the server's words, or a plain reason, for people: no credential, of an address only its host
	Partial  string        // text that had been streamed when it failed
	Err      error
	// Last is what a call that was Cancelled had failed with before, and was waiting for; nil: nothing.
	Last *Error
	// Others are, of NoneLeft, what further models of the chain failed with last. Failures are the chain's, in a row.
	Others   []*Error
	Failures int
}

func (e *Error) Error() string {
	s := fmt.Sprintf("model %s: %s", e.Model, e.Kind)
	if e.Status != 0 {
		s += fmt.Sprintf(" (status %d)", e.Status)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}
func (e *Error) Unwrap() error { return e.Err }

// Cause is the kind of what a model failed with in the end: it looks through NoneLeft at the last model, through
// CoolDown at what began it, and through Cancelled at what was waited for. Empty when nothing of a model failed.
func Cause(err error) Kind {
	var e *Error
	if !errors.As(err, &e) {
		return ""
	}
	switch e.Kind {
	case Cancelled:
		if e.Last == nil {
			return ""
		}
		return Cause(e.Last)
	case NoneLeft, CoolDown:
		if kind := Cause(e.Err); kind != "" {
			return kind
		}
	}
	return e.Kind
}

// KindOf is the kind of err; empty when it is no *Error.
func KindOf(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}
