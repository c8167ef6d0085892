// Package view is what is shown of a transcript as JSON: events, the log of a run, troubles of models. It reads nothing and
// decides nothing.
package view

import (
	"time"

	"parley/agentloop/llm"
	"parley/gateway/control"
	"parley/workspace"
)

// Trouble is how a model fails a run.
type Trouble struct {
	Model    string     `json:"model"`
	Kind     string     `json:"kind"`               // overload, limited, timed_out, cut, malformed, auth, rejected …
	Status   int        `json:"status,omitempty"`   // of HTTP; absent: there was no answer
	Provider string     `json:"provider,omitempty"` // by name; absent: it is not a known one
	Message  string     `json:"message,omitempty"`  // the server's words, cut
	Cause    string     `json:"cause"`              // all of it in words
	Sentence string     `json:"sentence"`           // the cause, and what is waited for
	Failures int        `json:"failures,omitempty"` // of all models of the chain, in a row
	Time     time.Time  `json:"time"`
	NextTry  *time.Time `json:"next_try,omitempty"`
	Stated   bool       `json:"stated,omitempty"` // the server asked for this wait
}

// TroubleOf is nil for none. While the run goes on, the sentence says what is waited for.
func TroubleOf(t *workspace.Trouble, goesOn bool) *Trouble {
	if t == nil {
		return nil
	}
	v := &Trouble{Model: t.Model, Provider: t.Provider, Kind: t.Kind, Status: t.Status, Message: t.Said,
		Failures: t.Failures, Time: t.At.UTC(), Stated: t.Stated, Cause: llm.Problem(*t), Sentence: llm.Problem(*t)}
	if goesOn && t.Wait > 0 {
		v.Sentence, v.NextTry = llm.Progress(*t), control.Moment(t.At.Add(t.Wait))
	}
	return v
}

// LogLine is one line of a run's log.
type LogLine struct {
	N    int       `json:"n"` // from 0
	Time time.Time `json:"time"`
	Type string    `json:"type"` // turn.started, message, tool_call, tool_result, error, turn.ended …
	Role string    `json:"role,omitempty"`
	Name string    `json:"name,omitempty"` // of the tool
	Text string    `json:"text,omitempty"`
}

// LogOf is what happened in a run, one line a piece.
func LogOf(entries []workspace.Entry) []LogLine {
	lines := []LogLine{}
	add := func(l LogLine, at time.Time) {
		l.N, l.Time = len(lines), at.UTC()
		lines = append(lines, l)
	}
	for _, e := range entries {
		switch d := Stored(e).Data.(type) {
		case ItemData:
			for _, p := range d.Item.Parts {
				l := LogLine{Type: p.Type, Role: d.Item.Role, Name: p.Name, Text: p.Text}
				if p.Type == "text" {
					l.Type = d.Item.Type
				}
				if len(p.Args) > 0 {
					l.Text = string(p.Args)
				}
				add(l, e.At)
			}
		case EndData:
			add(LogLine{Type: e.Body.Type, Text: e.Body.Reason}, e.At)
		case ErrorData:
			add(LogLine{Type: "error", Name: d.Code, Text: d.Message}, e.At)
		default:
			add(LogLine{Type: e.Body.Type}, e.At)
		}
	}
	return lines
}
