package conversation

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"parley/agentloop/llm"
	"parley/gateway/control"
	"parley/gateway/spec"
	"parley/workspace"
)

// ModelChoice is a model that a session may be switched to.
type ModelChoice struct {
	N       int           `json:"n"`                  // its number in the list, from 1
	Name    string        `json:"name"`               // as the configuration calls it
	Model   string        `json:"model"`              // as its provider calls it
	By      string        `json:"provider,omitempty"` // by name; left out: it is not a known one
	Current bool          `json:"current"`            // it is asked first
	Default bool          `json:"default"`            // the agent's own
	Window  int           `json:"context_window"`     // tokens; 0: unknown
	Thinks  llm.Knowledge `json:"thinks,omitempty"`   // whether it is told how hard to think: yes, no; left out: its server decides
	Offline bool          `json:"offline,omitempty"`  // the built-in responder
	Down    bool          `json:"down,omitempty"`     // it has failed, and is passed over for a moment
	Error   string        `json:"error,omitempty"`    // its last failure; owners only
}

// ModelView is the session's model and what else there is.
type ModelView struct {
	Choices  []ModelChoice `json:"items"`
	Chain    []string      `json:"chain"`            // in the order in which they are asked
	Override string        `json:"chosen,omitempty"` // that somebody chose for this session; left out: the agent's own is asked
	Gone     bool          `json:"gone,omitempty"`   // the chosen one is configured no more: it is passed over
	Think    string        `json:"think,omitempty"`  // how hard it thinks; left out: the model's own
	Efforts  []string      `json:"efforts"`          // what think may be; empty: the model has no such thing
	May      bool          `json:"may_change"`       // the caller may choose
	Running  bool          `json:"running"`          // a turn runs that is being answered: what is changed holds from the next
	Anew     bool          `json:"anew,omitempty"`   // a turn waits for its model: it goes on with what is changed, at once
	Changed  bool          `json:"-"`
	Detailed bool          `json:"-"`
}

// choices are the models of an agent: its own, then those that it may be switched to.
func (c *Conversations) choices(call control.Call, id workspace.AgentID, over workspace.Overrides) ModelView {
	agent, _ := c.Find.Agent(id)
	v := ModelView{Override: over.Model, Gone: over.Model != "", Think: over.Think, Efforts: []string{}}
	health := map[string]llm.ModelHealth{}
	for _, h := range c.Snapshot().Models.Health() {
		health[h.Name] = h
	}
	for _, name := range append(slices.Clone(agent.Models), agent.Choices...) {
		if slices.ContainsFunc(v.Choices, func(m ModelChoice) bool { return m.Name == name }) {
			continue
		}
		info, _ := c.Snapshot().Models.Info(name)
		h := health[name]
		m := ModelChoice{N: len(v.Choices) + 1, Name: name, Model: info.Model, By: info.Provider, Default: len(v.Choices) == 0,
			Window: info.ContextWindow, Thinks: info.Thinks, Offline: info.Offline, Down: h.Down, Current: name == over.Model}
		if call.Owner() {
			m.Error = h.LastError
		}
		v.Gone = v.Gone && name != over.Model
		v.Choices = append(v.Choices, m)
	}
	if over.Model == "" || v.Gone {
		for i := range v.Choices {
			v.Choices[i].Current = i == 0
		}
	} else {
		v.Chain = append(v.Chain, over.Model)
	}
	for _, name := range agent.Models {
		if !slices.Contains(v.Chain, name) {
			v.Chain = append(v.Chain, name)
		}
	}
	for _, m := range v.Choices {
		if len(v.Chain) > 0 && m.Name == v.Chain[0] && !m.Offline && m.Thinks != llm.No {
			v.Efforts = efforts
		}
	}
	return v
}

// efforts are how hard a model may be told to think.
var efforts = []string{"off", "minimal", "low", "medium", "high", "xhigh"}

// primary is what is known of the model that a session asks first.
func (c *Conversations) primary(id workspace.AgentID, over workspace.Overrides) llm.Info {
	v := c.choices(control.Call{}, id, over)
	if len(v.Chain) == 0 {
		return llm.Info{}
	}
	info, _ := c.Snapshot().Models.Info(v.Chain[0])
	info.Name = v.Chain[0]
	return info
}

// ModelsIn says how much is told of each.
type ModelsIn struct {
	Form string `json:"form,omitempty" enum:"list,status" help:"how much is told of each"`
}

// Models shows the session's models.
var Models = control.Verb[*Conversations, ModelsIn, ModelView]{
	Name: "models", Help: "List the models that a session may have", Rights: mayLook,
	Chat: "model [list|status], models", Say: ModelView.say,
	Do: func(_ context.Context, c *Conversations, call control.Call, in ModelsIn) (ModelView, error) {
		over, err := c.overridesOf(call)
		if err != nil {
			return ModelView{}, err
		}
		v := c.choices(call, call.Session.Agent, over)
		v.Detailed = in.Form == "status"
		return v, c.Answer(call, v)
	},
}

// ModelIn names a model.
type ModelIn struct {
	Model string `json:"model" help:"its *name*, its number in the list, or the provider's name for it; default: the agent's own"`
}

// SetModel leads the session to another model of its agent. The agent's models stay behind it as fallbacks.
var SetModel = control.Verb[*Conversations, ModelIn, ModelView]{
	Name: "model", Help: "Choose the model of a session", Rights: mayMembers,
	Chat: "model <number>|<name>|default", Order: spec.AheadOfWait, Say: ModelView.say,
	Parse: func(words []string) (ModelIn, error) {
		if len(words) == 0 {
			return ModelIn{}, control.NotTaken("")
		}
		return ModelIn{Model: words[0]}, nil
	},
	Do: func(_ context.Context, c *Conversations, call control.Call, in ModelIn) (ModelView, error) {
		over, err := c.overridesOf(call)
		if err != nil {
			return ModelView{}, err
		}
		name, err := c.named(call, over, in.Model)
		if err != nil {
			return ModelView{}, err
		}
		over.Model = name
		v := c.choices(call, call.Session.Agent, over)
		v.Changed, v.Anew = true, c.Lanes.Stuck(call.Session.String())
		return v, c.switched(call, func(o *workspace.Overrides) { o.Model = name }, v)
	},
}

// switched sets what a session's model is. A turn that does nothing but wait for another one goes on with it at once: what is set
// is stored first, so that the turn finds it after a crash as well.
func (c *Conversations) switched(call control.Call, set func(*workspace.Overrides), v ModelView) error {
	err := c.override(call, set, func(workspace.Overrides) any { return v })
	if err == nil {
		c.Lanes.Anew(call.Session.String(), func(workspace.Input) bool { return true })
	}
	return err
}

func (v ModelView) say() string {
	var b strings.Builder
	switch {
	case v.Changed && len(v.Chain) > 0:
		fmt.Fprintf(&b, "From now on this session asks **%s**.", v.Chain[0])
		if v.Anew {
			b.WriteString(" What it works on goes on with it.")
		}
		if len(v.Chain) > 1 {
			fmt.Fprintf(&b, " If it does not answer: %s.", strings.Join(v.Chain[1:], ", "))
		}
		return b.String()
	case v.Gone:
		fmt.Fprintf(&b, "The model `%s`, which was chosen here, is not configured any more; I ask the agent's own.\n", v.Override)
	}
	for _, m := range v.Choices {
		mark := ""
		if m.Current {
			mark = " ← in use"
		}
		if m.Default {
			mark += " (default)"
		}
		fmt.Fprintf(&b, "%d. **%s**%s", m.N, m.Name, mark)
		if v.Detailed {
			b.WriteString(m.detail())
		} else if m.Down {
			b.WriteString(", unavailable, retrying")
		}
		b.WriteByte('\n')
	}
	b.WriteString("/model and a number or name chooses; /model default goes back.")
	return b.String()
}

// detail is what else is known of it.
func (m ModelChoice) detail() string {
	var list []string
	if m.Model != "" && m.Model != m.Name {
		list = append(list, "`"+m.Model+"`")
	}
	if m.Window > 0 {
		list = append(list, fmt.Sprintf("window of %d tokens", m.Window))
	}
	switch {
	case m.Offline:
		list = append(list, "no model at all: the built-in responder")
	case m.Thinks == llm.Yes:
		list = append(list, "can be told how hard to think")
	case m.Thinks == llm.No:
		list = append(list, "cannot be told how hard to think")
	}
	switch {
	case m.Down && m.Error != "":
		list = append(list, "unavailable ("+m.Error+"), retrying")
	case m.Down:
		list = append(list, "unavailable, retrying")
	case m.Error != "":
		list = append(list, "last error: "+m.Error)
	}
	if len(list) == 0 {
		return ""
	}
	return ": " + strings.Join(list, ", ")
}

// find is the choice that a word means.
func find(list []ModelChoice, want string, numbers bool) (ModelChoice, bool) {
	if n, err := strconv.Atoi(want); err == nil && numbers {
		if n < 1 || n > len(list) {
			return ModelChoice{}, false
		}
		return list[n-1], true
	}
	_, short, _ := strings.Cut(want, "/") // provider/model
	for _, m := range list {
		provided := m.Model != "" && (strings.EqualFold(m.Model, want) || short != "" && strings.EqualFold(m.Model, short))
		if strings.EqualFold(m.Name, want) || provided {
			return m, true
		}
	}
	return ModelChoice{}, false
}
