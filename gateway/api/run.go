package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"parley/agentloop/llm"
	"parley/gateway/control"
	"parley/gateway/spec"
	"parley/workspace"
)

// runView is a run as people and programs see it. State is the run's, or the input's while no run has taken it.
type runView struct {
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
	Log       []logLine     `json:"log,omitempty"`
	// Trouble is what a model fails the run with now, or failed it with at its end.
	Trouble *troubleView `json:"trouble,omitempty"`
}

// troubleView is how a model fails a run.
type troubleView struct {
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

// troubleOf is nil for none. While the run goes on, the sentence says what is waited for.
func troubleOf(t *workspace.Trouble, goesOn bool) *troubleView {
	if t == nil {
		return nil
	}
	v := &troubleView{Model: t.Model, Kind: t.Kind, Status: t.Status, Message: t.Said, Failures: t.Failures, Time: t.At.UTC(), Stated: t.Stated, Sentence: llm.Problem(*t)}
	if goesOn && t.Wait > 0 {
		v.Sentence, v.NextTry = llm.Progress(*t), control.Moment(t.At.Add(t.Wait))
	}
	return v
}

// logLine is one line of a run's log.
type logLine struct {
	N    int       `json:"n"` // from 0
	Time time.Time `json:"time"`
	Type string    `json:"type"` // turn.started, message, tool_call, tool_result, error, turn.ended …
	Role string    `json:"role,omitempty"`
	Name string    `json:"name,omitempty"` // of the tool
	Text string    `json:"text,omitempty"`
}

// view reads a run with its log.
func (s *server) view(ctx context.Context, call control.Call, id string) (runView, error) {
	v, err := s.opt.Control.Run(ctx, call, control.RunWord(id))
	if err != nil {
		return runView{}, err
	}
	out := viewOfRun(v, id)
	found := control.Found{Run: v.Run}
	if v.Run.ID == "" && len(v.Inputs) > 0 {
		found.Input = v.Inputs[0]
	}
	out.Log, err = s.log(found)
	return out, err
}

// viewOfRun shows a run that was asked for by an id of its own or of an input.
func viewOfRun(v control.RunView, id string) runView {
	out := runView{ID: string(v.Run.ID), RunID: string(v.Run.ID), Session: v.Key, State: string(v.Run.State), Reason: v.Run.Reason, Text: v.Text, Model: v.Run.Model,
		Requester: string(v.Run.Requester), Started: control.Moment(v.Run.Started), Ended: control.Moment(v.Run.Ended), Tries: v.Run.Tries, Usage: control.UsageOf(v.Run.Usage), Inputs: []string{},
		Trouble: troubleOf(v.Run.Trouble, v.Run.State.Live())}
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

// log is what happened in a run, one line a piece.
func (s *server) log(f control.Found) ([]logLine, error) {
	entries, err := s.opt.Control.Lines(f)
	if err != nil {
		return nil, err
	}
	lines := []logLine{}
	add := func(l logLine, at time.Time) {
		l.N, l.Time = len(lines), at.UTC()
		lines = append(lines, l)
	}
	for _, e := range entries {
		switch d := stored(e).Data.(type) {
		case itemData:
			for _, p := range d.Item.Parts {
				l := logLine{Type: p.Type, Role: d.Item.Role, Name: p.Name, Text: p.Text}
				if p.Type == "text" {
					l.Type = d.Item.Type
				}
				if len(p.Args) > 0 {
					l.Text = string(p.Args)
				}
				add(l, e.At)
			}
		case endData:
			add(logLine{Type: e.Body.Type, Text: e.Body.Reason}, e.At)
		case errorData:
			add(logLine{Type: "error", Name: d.Code, Text: d.Message}, e.At)
		default:
			add(logLine{Type: e.Body.Type}, e.At)
		}
	}
	return lines, nil
}

func (s *server) runLog(w http.ResponseWriter, r *http.Request) error {
	p, err := pageOf(r)
	if err != nil {
		return err
	}
	offset, err := number(r, "offset")
	if err != nil {
		return err
	}
	f, err := s.opt.Control.Find(r.Context(), s.call(r), control.RunWord(r.PathValue("id")))
	if err != nil {
		return err
	}
	lines, err := s.log(f)
	if err != nil {
		return err
	}
	lines = lines[min(int(offset), len(lines)):]
	reply(w, http.StatusOK, spec.PageOf(lines, p.limit, func(l logLine) string { return strconv.Itoa(l.N + 1) }))
	return nil
}
