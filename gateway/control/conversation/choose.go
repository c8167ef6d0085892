// The model of a session and how hard it thinks, as pages and programs look at them and change them.

package conversation

import (
	"context"
	"fmt"
	"strings"

	"parley/gateway/control"
	"parley/gateway/rights"
	"parley/gateway/spec"
	"parley/workspace"
	"parley/workspace/clip"
)

// InSession names a session.
type InSession struct {
	Session control.SessionWord `path:"key"`
}

// SessionModels shows the models that a session may have, and which it asks.
var SessionModels = control.Verb[*Conversations, InSession, ModelView]{
	Name: "models", Help: "List the models that a session may have", Rights: mayLook,
	HTTP: "GET /v1/sessions/{key}/models", Group: "sessions", CLI: "session models <key>",
	Do: func(_ context.Context, c *Conversations, call control.Call, in InSession) (ModelView, error) {
		call, err := c.at(call, in.Session)
		if err != nil {
			return ModelView{}, err
		}
		over, err := c.overridesOf(call)
		return c.offered(call, over), err
	},
	Show: func(_ InSession, v ModelView) spec.Shown { return v.shown() },
}

// InAgent names an agent.
type InAgent struct {
	Agent workspace.AgentID `path:"agent"`
}

// AgentModels shows the models that a new session of an agent may have.
var AgentModels = control.Verb[*Conversations, InAgent, ModelView]{
	Name: "models", Help: "List the models that a new session of an agent may have", Rights: mayLook,
	HTTP: "GET /v1/agents/{agent}/models", Group: "agents",
	Do: func(_ context.Context, c *Conversations, call control.Call, in InAgent) (ModelView, error) {
		if _, ok := c.Find.Agent(in.Agent); !ok {
			return ModelView{}, workspace.Say(workspace.ErrNotFound, "There is no agent %q.", clip.Runes(string(in.Agent), 80))
		}
		call.Session = rights.LocalKey(call.Actor, in.Agent, "new")
		v := c.offered(call, workspace.Overrides{})
		v.Running = false
		return v, nil
	},
}

// ChooseIn is what is chosen for a session. What is left out stays as it is.
type ChooseIn struct {
	InSession
	Model string `json:"model,omitempty" help:"its *name*, or the provider's name for it; default: the agent's own"`
	Think string `json:"think,omitempty" enum:"off,minimal,low,medium,high,xhigh,default" help:"how hard it thinks"`
}

// Choose sets a session's model, and how hard it thinks. A turn that is being answered ends as it began.
var Choose = control.Verb[*Conversations, ChooseIn, ModelView]{
	Name: "model", Help: "Choose a session's model and how hard it thinks", Rights: mayMembers,
	HTTP: "PATCH /v1/sessions/{key}/models", Group: "sessions", CLI: "session model <key> [model]",
	Do: func(_ context.Context, c *Conversations, call control.Call, in ChooseIn) (ModelView, error) {
		call, err := c.at(call, in.Session)
		if err != nil {
			return ModelView{}, err
		}
		if in.Think != "" {
			if err := c.Allow(call, SetThink.Name); err != nil {
				return ModelView{}, err
			}
		}
		over, err := c.overridesOf(call)
		if err != nil {
			return ModelView{}, err
		}
		model, err := c.named(call, over, in.Model)
		if err != nil {
			return ModelView{}, err
		}
		set := func(o *workspace.Overrides) {
			if in.Model != "" {
				o.Model = model
			}
			if in.Think != "" {
				v := Setting{Name: "think"}
				v.set(in.Think)
				o.Think = v.Value
			}
		}
		set(&over)
		v := c.offered(call, over)
		v.Changed = true
		return v, c.switched(call, set, v)
	},
	Show: func(_ ChooseIn, v ModelView) spec.Shown { return v.shown() },
}

// at is the call about a session that the caller reaches.
func (c *Conversations) at(call control.Call, word control.SessionWord) (control.Call, error) {
	ses, err := c.Find.Session(call, word)
	call.Session = ses.Key
	return call, err
}

// offered is choices with what the caller may do with them.
func (c *Conversations) offered(call control.Call, over workspace.Overrides) ModelView {
	v := c.choices(call, call.Session.Agent, over)
	key := call.Session.String()
	v.May, v.Anew = c.May(call, SetModel.Name), c.Lanes.Stuck(key)
	v.Running = c.Lanes.Lane(key).Running && !v.Anew
	return v
}

// named is the model that a word means, as overrides have it: the agent's own is nothing.
func (c *Conversations) named(call control.Call, over workspace.Overrides, word string) (string, error) {
	if word == "" || strings.EqualFold(word, "default") {
		return "", nil
	}
	m, ok := find(c.choices(call, call.Session.Agent, over).Choices, word, true)
	if !ok {
		return "", workspace.Say(workspace.ErrNotFound, "There is no model %q for this agent. /models lists them.", clip.Runes(word, 80))
	}
	if m.Default {
		return "", nil
	}
	return m.Name, nil
}

// shown is the choices for a terminal.
func (v ModelView) shown() spec.Shown {
	s := spec.Shown{Heads: []string{"MODEL", "PROVIDER'S NAME", "WINDOW", "STATE"}}
	for _, m := range v.Choices {
		state := "ready"
		switch {
		case m.Down:
			state = "unavailable, retrying"
		case m.Current:
			state = "in use"
		}
		s.Rows = append(s.Rows, []any{m.Name, m.Model, m.Window, state})
	}
	if len(v.Efforts) > 0 {
		s.Text = fmt.Sprintf("\nIt thinks as hard as: %s", orDefault(v.Think))
	}
	return s
}

func orDefault(think string) string {
	if think == "" {
		return "the model's own default"
	}
	return think
}
