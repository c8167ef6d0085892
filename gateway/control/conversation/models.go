package conversation

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"parley/agentloop/llm"
	"parley/gateway/control"
	"parley/workspace"
	"parley/workspace/clip"
)

// ModelChoice is a model that a session may be switched to.
type ModelChoice struct {
	N       int           `json:"n"` // its number in the list, from 1
	Name    string        `json:"name"`
	Model   string        `json:"model"`
	Current bool          `json:"current"`
	Default bool          `json:"default"`
	Window  int           `json:"context_window,omitempty"` // tokens
	Thinks  llm.Knowledge `json:"thinks,omitempty"`
	Offline bool          `json:"offline,omitempty"`
	Down    bool          `json:"down,omitempty"`
	Error   string        `json:"error,omitempty"` // owners only
}

// ModelView is the session's model and what else there is.
type ModelView struct {
	Choices  []ModelChoice `json:"choices"`
	Chain    []string      `json:"chain"` // in the order in which they are asked
	Override string        `json:"override,omitempty"`
	Gone     bool          `json:"gone,omitempty"` // the override is configured no more: it is passed over
	Changed  bool          `json:"changed"`
	Detailed bool          `json:"-"`
}

// choices are the models of an agent: its own, then those that it may be switched to.
func (c *Conversations) choices(call control.Call, id workspace.AgentID, over workspace.Overrides) ModelView {
	agent, _ := c.Find.Agent(id)
	v := ModelView{Override: over.Model, Gone: over.Model != ""}
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
		m := ModelChoice{N: len(v.Choices) + 1, Name: name, Model: info.Model, Default: len(v.Choices) == 0,
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
	return v
}

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

// Models shows the session's models; detailed tells more of each.
func (c *Conversations) Models(_ context.Context, call control.Call, detailed bool) (ModelView, error) {
	if err := c.Allow(call, "models"); err != nil {
		return ModelView{}, err
	}
	over, err := c.overridesOf(call)
	if err != nil {
		return ModelView{}, err
	}
	v := c.choices(call, call.Session.Agent, over)
	v.Detailed = detailed
	return v, c.Answer(call, v)
}

// Model leads the session to another model of its agent, by name, number or the provider's name for it; "default" is
// the agent's own. The agent's models stay behind it as fallbacks.
func (c *Conversations) Model(_ context.Context, call control.Call, want string) (ModelView, error) {
	if err := c.Allow(call, "model"); err != nil {
		return ModelView{}, err
	}
	over, err := c.overridesOf(call)
	if err != nil {
		return ModelView{}, err
	}
	name := ""
	if want != "default" {
		found, ok := find(c.choices(call, call.Session.Agent, over).Choices, want, true)
		if !ok {
			return ModelView{}, workspace.Say(workspace.ErrNotFound, "There is no model %q for this agent. /models lists them.",
				clip.Runes(want, 80))
		}
		if name = found.Name; found.Default {
			name = ""
		}
	}
	over.Model = name
	v := c.choices(call, call.Session.Agent, over)
	v.Changed = true
	return v, c.override(call, func(o *workspace.Overrides) { o.Model = name }, func(workspace.Overrides) any { return v })
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
