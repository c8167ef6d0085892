// Package view is what the API shows: the JSON of runs, questions, events and decisions, made of what control returns. It reads
// nothing and decides nothing.
package view

import (
	"time"

	"parley/agentloop/llm"
	"parley/gateway/control"
	"parley/gateway/control/run"
	"parley/workspace"
)

// Run is a run as people and programs see it. State is the run's, or the input's while no run has taken it.
type Run struct {
	ID        string        `json:"id"`
	RunID     string        `json:"run_id,omitempty"`
	InputID   string        `json:"input_id,omitempty"`
	Session   string        `json:"session"`
	State     string        `json:"state"`
	Reason    string        `json:"reason,omitempty"`
	Text      string        `json:"text"`
	Model     string        `json:"model,omitempty"`
	Requester string        `json:"requester,omitempty"`
	Started   *time.Time    `json:"started,omitempty"`
	Ended     *time.Time    `json:"ended,omitempty"`
	Tries     int           `json:"tries,omitempty"`
	Inputs    []string      `json:"inputs"`
	Usage     control.Usage `json:"usage"`
	Log       []LogLine     `json:"log,omitempty"`
	// Trouble is what a model fails the run with now, or failed it with at its end.
	Trouble *Trouble `json:"trouble,omitempty"`
}

// Trouble is how a model fails a run.
type Trouble struct {
	Model    string     `json:"model"`
	Kind     string     `json:"kind"`               // overload, limited, timed_out, cut, malformed, auth, rejected …
	Status   int        `json:"status,omitempty"`   // of HTTP; absent: there was no answer
	Message  string     `json:"message,omitempty"`  // the server's words, cut
	Sentence string     `json:"sentence"`           // all of it in words
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
	v := &Trouble{Model: t.Model, Kind: t.Kind, Status: t.Status, Message: t.Said, Failures: t.Failures, Time: t.At.UTC(), Stated: t.Stated,
		Sentence: llm.Problem(*t)}
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

// RunOf shows a run that was asked for by an id of its own or of an input.
func RunOf(v run.View, id string) Run {
	out := Run{ID: string(v.Run.ID), RunID: string(v.Run.ID), Session: v.Key, State: string(v.Run.State), Reason: v.Run.Reason,
		Text: v.Text, Model: v.Run.Model,
		Requester: string(v.Run.Requester), Started: control.Moment(v.Run.Started), Ended: control.Moment(v.Run.Ended), Tries: v.Run.Tries,
		Usage: control.UsageOf(v.Run.Usage), Inputs: []string{},
		Trouble: TroubleOf(v.Run.Trouble, v.Run.State.Live())}
	for _, in := range v.Inputs {
		out.Inputs = append(out.Inputs, string(in.ID))
		if string(in.ID) == id || out.InputID == "" {
			out.InputID = string(in.ID)
		}
	}
	if v.Run.ID == "" && len(v.Inputs) > 0 {
		in := v.Inputs[0]
		out.ID, out.State, out.Reason, out.Requester = string(in.ID), string(in.State), in.Reason, string(in.Person)
	}
	return out
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
