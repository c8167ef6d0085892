package run

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"parley/gateway/control"
	"parley/gateway/control/approval"
	"parley/gateway/control/view"
	"parley/workspace"
	"parley/workspace/clip"
)

// Run is a run as people and programs see it. State is the run's, or the input's while no run has taken it.
type Run struct {
	ID        string         `json:"id"`
	RunID     string         `json:"run_id,omitempty"`
	InputID   string         `json:"input_id,omitempty"`
	Session   string         `json:"session"`
	State     string         `json:"state"`
	Reason    string         `json:"reason,omitempty"`
	Text      string         `json:"text"`
	Model     string         `json:"model,omitempty"`
	Requester string         `json:"requester,omitempty"`
	Started   *time.Time     `json:"started,omitempty"`
	Ended     *time.Time     `json:"ended,omitempty"`
	Tries     int            `json:"tries,omitempty"`
	Inputs    []string       `json:"inputs"`
	Usage     control.Usage  `json:"usage"`
	Log       []view.LogLine `json:"log,omitempty"`
	// Trouble is what a model fails the run with now, or failed it with at its end.
	Trouble *view.Trouble `json:"trouble,omitempty"`
}

// item shows a run that was asked for by an id of its own or of an input.
func (v View) item(id string) Run {
	out := Run{ID: string(v.Run.ID), RunID: string(v.Run.ID), Session: v.Key, State: string(v.Run.State), Reason: v.Run.Reason,
		Text: v.Text, Model: v.Run.Model, Requester: string(v.Run.Requester),
		Started: control.Moment(v.Run.Started), Ended: control.Moment(v.Run.Ended), Tries: v.Run.Tries,
		Usage: control.UsageOf(v.Run.Usage), Inputs: []string{}, Trouble: view.TroubleOf(v.Run.Trouble, v.Run.State.Live())}
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

// Detail is a run with why it was, what it did and when.
type Detail struct {
	Run
	Agent         string          `json:"agent"`
	Title         string          `json:"session_title,omitempty"` // left out: the caller does not reach the session
	Generation    int             `json:"generation,omitempty"`
	Source        string          `json:"source"` // the network, or local
	RequesterName string          `json:"requester_name"`
	AskedBy       string          `json:"asked_by"` // id, role and, in quotes, the name of the requester: what to show
	Role          string          `json:"role"`
	Error         string          `json:"error,omitempty"` // for the operator
	TaskID        string          `json:"task_id,omitempty"`
	ParentRun     string          `json:"parent_run,omitempty"`
	Approvals     []approval.Item `json:"approvals"` // that it asked for, oldest first
	Delivery      string          `json:"delivery"`  // delivered, not_delivered, unknown, not_requested
	Messages      []Message       `json:"messages"`
	Steps         []Step          `json:"steps"`
	Timeline      []Moment        `json:"timeline"`
}

// Message is an input of a run, with why it was taken and went there.
type Message struct {
	ID       string    `json:"id"`
	Source   string    `json:"source"`
	Channel  string    `json:"channel,omitempty"`
	Person   string    `json:"person"`
	Sender   string    `json:"sender"` // a label
	AskedBy  string    `json:"asked_by"`
	Role     string    `json:"role"`
	Text     string    `json:"text"`
	State    string    `json:"state"`
	Reason   string    `json:"reason,omitempty"`
	Received time.Time `json:"received"`
	Decision Decision  `json:"decision"`
	Route    Route     `json:"route"`
}

// Decision is what the gate said.
type Decision struct {
	Allow  bool     `json:"allow"`
	Rule   string   `json:"rule"`
	Gates  []string `json:"gates"` // those passed, in order
	Reason string   `json:"reason,omitempty"`
}

// Route is where routes sent the message.
type Route struct {
	Agent    string `json:"agent"`
	Session  string `json:"session"`
	Rule     string `json:"rule"`
	Fallback bool   `json:"fallback"` // the default agent, where no rule matched
}

// Step is one row of a run's journal: a call of the model, or of a tool.
type Step struct {
	N    int    `json:"n"`
	Kind string `json:"kind"` // model or tool
	// done; of a tool also planned, started, failed, unknown, refused, cancelled; of the last call the end of its run
	State      string          `json:"state"`
	Model      string          `json:"model,omitempty"`
	Tool       string          `json:"tool,omitempty"`
	CallID     string          `json:"call_id,omitempty"`
	Effect     string          `json:"effect,omitempty"`   // pure, store, outside: what a crash may repeat
	Decision   string          `json:"decision,omitempty"` // of a tool: allowed, refused, waiting, cancelled
	Policy     *PolicyDecision `json:"policy,omitempty"`   // of a tool: what each layer of its policy said
	Reason     string          `json:"reason,omitempty"`   // of a refusal: layer and rule
	Sandbox    string          `json:"sandbox,omitempty"`  // of a command: what it ran in
	Args       string          `json:"args,omitempty"`     // JSON as the model wrote it
	Text       string          `json:"text,omitempty"`     // what the model said, or the tool's result
	Cut        bool            `json:"cut"`                // Args or Text is longer; the log has it whole
	Failed     bool            `json:"failed"`             // the tool's result is an error
	Started    time.Time       `json:"started"`
	Ended      *time.Time      `json:"ended,omitempty"`
	DurationMS int64           `json:"duration_ms"`
	Usage      *control.Usage  `json:"usage,omitempty"` // of a model's call
}

// Moment is one line of a run's timeline.
type Moment struct {
	Time       time.Time `json:"time"`
	Type       string    `json:"type"` // received, started, model, tool, trouble, ended
	Name       string    `json:"name,omitempty"`
	Text       string    `json:"text,omitempty"`
	DurationMS int64     `json:"duration_ms"`
	Step       int       `json:"step,omitempty"` // its number in steps
}

// maxStep is how much of one step's text a page gets, in bytes.
const maxStep = 16 << 10

// item shows a run that was asked for by an id of its own or of an input, with all that is known of it.
func (d detailed) item(id string) Detail {
	key, _ := workspace.ParseKey(d.Key) // zero when nothing is known of it yet
	v := Detail{Run: d.View.item(id), Agent: string(key.Agent), Title: d.Title, Generation: d.Generation, Source: control.SourceOf(key),
		RequesterName: d.Name, Role: string(d.Run.Role), Error: d.Run.Error, TaskID: d.Run.TaskID, ParentRun: string(d.Run.ParentRun),
		Delivery: d.Delivery, Approvals: []approval.Item{}, Messages: []Message{}, Timeline: []Moment{},
		Steps: lastCall(stepsOf(d.Steps), d.View)}
	for _, in := range d.Inputs {
		v.Messages = append(v.Messages, messageOf(in))
		if v.Role == "" {
			v.Role = string(in.Role)
		}
	}
	v.AskedBy = workspace.Who(workspace.PersonID(v.Requester), workspace.Role(v.Role), d.Name)
	for _, ap := range d.Approvals {
		v.Approvals = append(v.Approvals, ap.Item())
	}
	v.Timeline = timeline(v)
	return v
}

func messageOf(in workspace.Input) Message {
	return Message{ID: string(in.ID), Source: in.Source, Channel: in.Data.Channel, Person: string(in.Person), Sender: in.Sender,
		AskedBy: workspace.Who(in.Person, in.Role, in.Sender), Role: string(in.Role), Text: in.Text,
		State: string(in.State), Reason: in.Reason, Received: in.Received.UTC(),
		Decision: Decision{in.Decision.Allow, in.Decision.Rule, append([]string{}, in.Decision.Gates...), in.Decision.Reason},
		Route:    Route{string(in.Binding.Agent), in.Binding.Key, in.Binding.Rule, in.Binding.Fallback}}
}

func stepsOf(steps []workspace.Step) []Step {
	out := []Step{}
	args := map[string]string{}
	for _, st := range steps {
		v := Step{N: st.N, Kind: string(st.Kind), State: string(st.State), Tool: st.Tool, CallID: st.CallID, Effect: string(st.Effect),
			Model: st.Body.Model, Reason: st.Body.Reason, Started: st.Started.UTC(), Ended: control.Moment(st.Ended)}
		began := st.Started
		if st.Body.Began != nil { // a wait for people is none of its time
			began = *st.Body.Began
		}
		if !st.Ended.IsZero() {
			v.DurationMS = max(0, st.Ended.Sub(began).Milliseconds())
		}
		for _, c := range st.Body.Content {
			switch c.Kind {
			case workspace.Text, workspace.ToolResult:
				v.Text += c.Text
				v.Failed = v.Failed || c.Error
			case workspace.ToolCall:
				args[c.CallID] = string(c.Args)
			}
		}
		if st.Kind == workspace.StepTool {
			v.Args, v.Decision, v.Policy, v.Sandbox = args[st.CallID], decisionOf(st.State), policyOf(st.Body.Decision), st.Body.Sandbox
		}
		if u := st.Body.Usage; u != nil {
			sum := control.UsageOf(*u)
			v.Usage = &sum
			if v.DurationMS == 0 {
				v.DurationMS = u.DurationMS
			}
		}
		for _, text := range []*string{&v.Args, &v.Text} {
			if len(*text) > maxStep {
				*text, v.Cut = clip.Bytes(*text, maxStep), true
			}
		}
		out = append(out, v)
	}
	return out
}

// lastCall adds the model's call that ended a run: it commits with the run and not as a step, so that it is what the
// run cost beyond its steps.
func lastCall(steps []Step, v View) []Step {
	rest := v.Run.Usage
	n, ended := 0, v.Run.Started
	for _, st := range v.Steps {
		n = max(n, st.N)
		if !st.Ended.IsZero() {
			ended = st.Ended
		}
		if u := st.Body.Usage; u != nil {
			rest.Calls -= u.Calls
			rest.InputTokens -= u.InputTokens
			rest.OutputTokens -= u.OutputTokens
			rest.CacheReadTokens -= u.CacheReadTokens
			rest.CacheWriteTokens -= u.CacheWriteTokens
			rest.DurationMS -= u.DurationMS
			if rest.CostUSD != nil && u.CostUSD != nil {
				cost := max(0, *rest.CostUSD-*u.CostUSD)
				rest.CostUSD = &cost
			}
		}
	}
	if v.Run.Ended.IsZero() || rest.Calls <= 0 && rest.OutputTokens <= 0 {
		return steps
	}
	sum := control.UsageOf(rest)
	last := Step{N: n + 1, Kind: string(workspace.StepModel), State: string(workspace.StepDone), Model: v.Run.Model, Text: v.Text,
		Started: ended.UTC(), Ended: control.Moment(v.Run.Ended), DurationMS: max(0, rest.DurationMS), Usage: &sum}
	if v.Run.State != workspace.RunCompleted {
		last.State, last.Text = string(v.Run.State), ""
	}
	if len(last.Text) > maxStep {
		last.Text, last.Cut = clip.Bytes(last.Text, maxStep), true
	}
	return append(steps, last)
}

// decisionOf is what became of the wish to call a tool.
func decisionOf(st workspace.StepState) string {
	switch st {
	case workspace.StepRefused:
		return "refused"
	case workspace.StepCancelled:
		return "cancelled"
	case workspace.StepPlanned:
		return "waiting"
	}
	return "allowed"
}

// timeline puts what happened in the order of time.
func timeline(v Detail) []Moment {
	out := []Moment{}
	for _, m := range v.Messages {
		out = append(out, Moment{Time: m.Received, Type: "received", Name: m.Source, Text: m.AskedBy})
	}
	if v.Started != nil {
		out = append(out, Moment{Time: *v.Started, Type: "started"})
	}
	for _, st := range v.Steps {
		m := Moment{Time: st.Started, Type: st.Kind, Name: st.Model + st.Tool, Text: st.State, DurationMS: st.DurationMS, Step: st.N}
		if st.Kind == string(workspace.StepModel) && st.Ended != nil && st.DurationMS > 0 { // it is journalled when it has answered
			m.Time = st.Ended.Add(-time.Duration(st.DurationMS) * time.Millisecond)
		}
		out = append(out, m)
	}
	if t := v.Trouble; t != nil {
		at := t.Time
		if v.Ended != nil && at.After(*v.Ended) { // which is kept less exactly
			at = *v.Ended
		}
		m := Moment{Time: at, Type: "trouble", Name: cmp.Or(t.Provider, t.Model), Text: t.Cause}
		if t.Failures > 1 {
			m.Text += fmt.Sprintf(" (%d tries)", t.Failures)
		}
		out = append(out, m)
	}
	if v.Ended != nil {
		end := Moment{Time: *v.Ended, Type: "ended", Name: v.State, Text: v.Reason}
		if v.Started != nil {
			end.DurationMS = v.Ended.Sub(*v.Started).Milliseconds()
		}
		out = append(out, end)
	}
	slices.SortStableFunc(out, func(a, b Moment) int { return a.Time.Compare(b.Time) })
	return out
}

// PolicyDecision is what tool policy said of a call.
type PolicyDecision struct {
	Outcome string            `json:"outcome"`          // allow, ask, deny
	Domain  string            `json:"domain,omitempty"` // whose owner is asked
	Layer   string            `json:"layer,omitempty"`  // that decided
	Rule    string            `json:"rule,omitempty"`
	Reason  string            `json:"reason,omitempty"`
	Record  []workspace.Layer `json:"record"` // what each layer said, in order
}

func policyOf(d *workspace.ToolDecision) *PolicyDecision {
	if d == nil {
		return nil
	}
	return &PolicyDecision{control.PolicyOutcome(*d), d.Domain, d.Layer, d.Rule, d.Reason, append([]workspace.Layer{}, d.Record...)}
}
