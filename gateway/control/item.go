package control

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"parley/channels/markup"
	"parley/workspace"
	"parley/workspace/clip"
)

// How many rows a page of a list may look at: one that finds few among many ends early, and says where to go on. LookAt are read
// at a time.
const (
	LookAt   = 500
	LookMost = 10_000
)

// ByID names one thing of a kind.
type ByID struct {
	ID string `path:"id"`
}

// Done says what was done, or begun.
type Done struct {
	Status string `json:"status"`
}

// Usage of model calls, in the words of the contract.
type Usage struct {
	InputTokens      int      `json:"inputTokens"`
	OutputTokens     int      `json:"outputTokens"`
	CacheReadTokens  int      `json:"cacheReadTokens"`
	CacheWriteTokens int      `json:"cacheWriteTokens"`
	TotalCostUSD     *float64 `json:"totalCostUsd"` // null: a model without a known price was asked
	DurationMS       int64    `json:"durationMs"`
	Calls            int      `json:"-"` // of models
}

// UsageOf is what was measured, as people read it.
func UsageOf(u workspace.Usage) Usage {
	return Usage{u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens, u.CostUSD, u.DurationMS, u.Calls}
}

// Text is what was used, for people.
func (u Usage) Text() string {
	if u.Calls == 0 {
		return "no model was asked yet"
	}
	in := u.InputTokens + u.CacheReadTokens + u.CacheWriteTokens
	return fmt.Sprintf("%d tokens in, %d out", in, u.OutputTokens) + Cost(u.TotalCostUSD)
}

// Cost is an amount of money as it stands behind tokens; nil, nobody knows it: nothing.
func Cost(usd *float64) string {
	if usd == nil {
		return ""
	}
	return fmt.Sprintf(", $%.4f", *usd)
}

// Ending is how a run is or has ended, in words.
func Ending(state, reason string) string {
	words := map[string]string{string(workspace.RunStopped): "stopped", string(workspace.RunTimeout): "took too long"}
	if w := words[state]; w != "" {
		state = w
	}
	if reason == "" || reason == state {
		return state
	}
	return state + " (" + reason + ")"
}

// PolicyOutcome is a verdict of tool policy in one word.
func PolicyOutcome(d workspace.ToolDecision) string {
	switch {
	case !d.Allow:
		return "deny"
	case d.Ask:
		return "ask"
	}
	return "allow"
}

// Moment is a time that may be missing.
func Moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// AsJSON is what may be shown as JSON of a call's arguments: where they are not, they are shown as a text.
func AsJSON(args json.RawMessage) json.RawMessage {
	if len(args) == 0 || json.Valid(args) {
		return args
	}
	text, err := json.Marshal(string(args))
	if err != nil { // a string always marshals
		return nil
	}
	return text
}

// SourceOf is where a session lives: a network, or here.
func SourceOf(k workspace.Key) string {
	if k.Network != "" {
		return string(k.Network)
	}
	return "local"
}

// PreviewLength is how many characters lists show of what was said.
const PreviewLength = 140

// longPreview is how much of a text is read for its preview, in bytes.
const longPreview = 4000

// Preview is what a text in Markdown says, on one line of at most n characters.
func Preview(md string, n int) string { return clip.Runes(markup.Line(clip.First(md, longPreview)), n) }

// OneLine is the first line of a text with something in it, in at most n characters.
func OneLine(s string, n int) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return clip.Runes(strings.TrimSpace(s), n)
}

// ConfigFile is how the configuration in force and its file stand to one another.
type ConfigFile struct {
	Path      string     `json:"path"`                 // the file; empty: there is none, all is default
	Since     time.Time  `json:"since"`                // when what is in force was taken
	Problem   string     `json:"problem,omitempty"`    // why what the file holds now is not in force; empty: it is
	ProblemAt *time.Time `json:"problem_at,omitempty"` // when that was found
	Waits     []string   `json:"waits,omitempty"`      // keys whose change waits for a restart
}
