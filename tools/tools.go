// Package tools is what an agent may do: the contract of a tool, the set of those that exist, and the policy
// that says which of them a turn may use. Deciding is kept apart from doing; a refusal is a value, not an error.
// It owns no goroutine.
package tools

import (
	"context"
	"encoding/json"
	"time"

	"parley/tools/tail"
	"parley/workspace"
)

// Tool is one thing an agent can do. Implementations are safe for concurrent use.
type Tool interface {
	Spec() Spec
	// Call runs it. An error means that the tool could not do it and is told to the model in one sentence
	// (workspace.Say) or as "the tool failed"; the turn goes on. Args were checked against Spec().Schema's
	// names: an unknown key never reaches Call. It returns when ctx ends.
	Call(ctx context.Context, c Call) (Result, error)
}

// TimeLimited is a Tool with a time limit of its own, in place of the loop's.
type TimeLimited interface {
	TimeLimit() time.Duration
}

// Available is a Tool that may be out of work: exec without a sandbox. Then it is neither shown nor run.
type Available interface {
	// Unavailable says why, as the end of a sentence; empty: it works. It is asked for each turn and must not block.
	Unavailable() string
}

// Settling is an Available of which it turns out only after the start whether it is out of work: until then it is shown,
// and a call of it waits before anybody is asked about it and before it is begun.
type Settling interface {
	Available
	// Settled is closed when it has turned out; nil: it has. why is what is waited for, as a sentence's beginning.
	Settled() (done <-chan struct{}, why string)
}

// Spec describes a tool to the model and to policy.
type Spec struct {
	Name        string
	Description string          // from an embedded .md file
	Schema      json.RawMessage // JSON Schema, an object with additionalProperties false
	Effect      workspace.Effect
	Group       string         // files, exec, memory … for policy
	Roots       []string       // argument names that hold a path
	MinRole     workspace.Role // below it the tool is neither shown nor run
}

// Call is one call with the facts that decide about it. Actor and Session come from the turn, never from Args.
type Call struct {
	ID      string
	Args    json.RawMessage
	Run     workspace.RunID
	Session workspace.Key
	Agent   workspace.AgentID
	Actor   workspace.Actor
	Root    *workspace.Root // the turn's work folder; nil: the turn has none
	Control string          // the agent's own folder on the host, which a sandbox shows read-only; empty: none
	MaxFile int64           // bytes of a file that the conversation takes; 0: it takes none
	Output  *tail.Tail      // what a command writes, while it runs, for who watches; nil: nobody does
	// Decision is what policy said about this very call; nil: it is only looked at.
	Decision *workspace.ToolDecision
}

// Result is what the model is told. Text is cut by the loop at its limit.
type Result struct {
	Content []workspace.Content
	Error   bool // the tool ran and says that it did not work
	// Files go to the conversation that the call came from, and only there: their outbound is stored in the commit of
	// this result. Each is a FileRef with a name, a type and a blob that is durable already.
	Files []workspace.Content
	// Sandbox names what it ran in, for people; the model is not told. Empty: in the gateway itself.
	Sandbox string
}

// TextResult is a plain text result.
func TextResult(s string) Result {
	return Result{Content: []workspace.Content{{Kind: workspace.Text, Text: s}}}
}

// Set is the tools that exist in this gateway, by name.
type Set interface {
	// For lists what the policy lets this turn see, in a stable order.
	For(t Subject) []Spec
	// Decide judges one call of the turn.
	Decide(t Subject, name string, args json.RawMessage) Verdict
	// Lookup finds a tool by name.
	Lookup(name string) (Tool, bool)
	// All judges every tool for a subject, as far as is known before a call: what is refused too.
	All(t Subject) []Judged
}

// Judged is a tool with what policy says of it.
type Judged struct {
	Spec    Spec
	Verdict Verdict
}

// Subject is whom policy judges.
type Subject struct {
	Actor     workspace.Actor
	Agent     workspace.AgentID
	Session   workspace.Key
	SessionID workspace.SessionID // the generation, which rules of a session are bound to; empty: none of them holds
	Network   string              // of the room; empty: local
	Channel   string              // configured name of the channel that the message came through
	Route     string              // label of the rule that chose the agent
	Depth     int                 // of helpers
}

// Verdict is a decision with its reason.
type Verdict struct {
	Allow  bool
	Ask    bool   // allowed, but a person must approve this very call first
	Domain string // the configured domain whose owner decides; implies Ask
	Layer  string // that decided, one of Layers
	Rule   string
	Reason string // one sentence for the model
	Record []Layer
}

// Layer is what one layer said. A verdict's record holds one for each that judged, in order.
type Layer = workspace.Layer

// Decision is the verdict as the journal keeps it.
func (v Verdict) Decision() *workspace.ToolDecision {
	return &workspace.ToolDecision{
		Allow: v.Allow, Ask: v.Ask, Domain: v.Domain, Layer: v.Layer, Rule: v.Rule, Reason: v.Reason, Record: v.Record,
	}
}
