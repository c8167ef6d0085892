package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/agentloop/lane"
	"parley/agentloop/llm"
	"parley/channels"
	"parley/routes"
	"parley/workspace"
	"parley/workspace/clip"
	"parley/workspace/store"
)

// Setting is what is set for a session, or for a room, after it was looked at or changed.
type Setting struct {
	Name    string `json:"name"`
	Value   string `json:"value"` // empty: the configured default
	Changed bool   `json:"changed"`
	Note    string `json:"note,omitempty"` // what the person should know of it
	// Usage has what the session has cost so far, of the setting usage.
	Usage *workspace.Usage `json:"usage,omitempty"`
}

// override changes the overrides of the chat's session by a compare-and-set, and tries again when somebody else was
// quicker.
func (c *Control) override(call Call, change func(*workspace.Overrides), value func(workspace.Overrides) any) error {
	for tries := 0; ; tries++ {
		ses, err := c.Store.SessionByKey(call.Session)
		if err != nil {
			return workspace.Say(err, "Nothing was said here yet, so there is nothing to change.")
		}
		was, now := ses.Overrides, ses.Overrides
		change(&now)
		_, err = c.commit(call, func(store.Did) any { return value(now) }, store.SetOverrides{Session: ses.ID, Overrides: now, Was: &was})
		if err == nil || !errors.Is(err, workspace.ErrConflict) || tries == 3 {
			c.Changed(call.Session.String())
			return err
		}
	}
}

// overridesOf are those of the chat's session; none while nothing was said in it.
func (c *Control) overridesOf(call Call) (workspace.Overrides, error) {
	ses, err := c.Store.SessionByKey(call.Session)
	if errors.Is(err, workspace.ErrNotFound) {
		return workspace.Overrides{}, nil
	}
	return ses.Overrides, err
}

// setting finds the field of a setting that is one word, with the values that it may have; the first is the default's
// name and is stored as nothing.
func setting(o *workspace.Overrides, name string) (field *string, values []string) {
	switch name {
	case "verbose":
		return &o.Verbose, []string{"off", "on", "full"}
	case "reasoning":
		return &o.Reasoning, []string{"off", "on"}
	case "usage":
		return &o.Usage, []string{"off", "tokens", "cost", "full"}
	case "send":
		return &o.Send, []string{"inherit", "off", "on"}
	}
	return nil, nil
}

// Setting shows or changes one of verbose, reasoning, usage and send; value "default" forgets the change.
func (c *Control) Setting(_ context.Context, call Call, name, value string) (Setting, error) {
	verb := verb(name)
	if value == "" {
		verb = "status"
	}
	if err := c.may(call, verb); err != nil {
		return Setting{}, err
	}
	over, err := c.overridesOf(call)
	if err != nil {
		return Setting{}, err
	}
	field, values := setting(&over, name)
	if field == nil {
		return Setting{}, workspace.Say(workspace.ErrInvalid, "There is no setting %q.", name)
	}
	v := Setting{Name: name, Value: *field}
	if name == "usage" {
		if v.Usage, err = c.spentBy(call.Session); err != nil {
			return v, err
		}
	}
	if value == "" {
		return v, c.answer(call, v)
	}
	if value == "default" {
		value = values[0]
	}
	if !slices.Contains(values, value) {
		return v, workspace.Say(workspace.ErrInvalid, "“%s” is not a value of %s: %s.", clip.Runes(value, 32), name, strings.Join(values, ", "))
	}
	v.Value, v.Changed = value, true
	if value == values[0] {
		v.Value = ""
	}
	return v, c.override(call, func(o *workspace.Overrides) {
		field, _ := setting(o, name)
		*field = v.Value
	}, func(workspace.Overrides) any { return v })
}

// spentBy is what a session's present generation has cost; nil: there is none.
func (c *Control) spentBy(key workspace.Key) (*workspace.Usage, error) {
	ses, err := c.Store.SessionByKey(key)
	if errors.Is(err, workspace.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	u, err := c.usage.of(c.Store, ses.ID)
	return &u, err
}

// Think shows or changes how hard the session's model thinks; level "default" leaves it to the model.
func (c *Control) Think(_ context.Context, call Call, level string) (Setting, error) {
	verb := verb("think")
	if level == "" {
		verb = "status"
	}
	if err := c.may(call, verb); err != nil {
		return Setting{}, err
	}
	over, err := c.overridesOf(call)
	if err != nil {
		return Setting{}, err
	}
	model := c.primary(call.Session.Agent, over)
	v := Setting{Name: "think", Value: over.Think}
	switch {
	case model.Offline || model.Thinks == llm.No:
		v.Note = fmt.Sprintf("The model `%s` has no such thing: it answers without being asked to think.", model.Name)
	case model.Thinks == llm.Unknown:
		v.Note = fmt.Sprintf("Whether the model `%s` minds is for its server to say; if it refuses, I ask without it.", model.Name)
	}
	if level == "" {
		return v, c.answer(call, v)
	}
	if level != "default" && !slices.Contains(llm.ThinkLevels(), level) {
		return v, workspace.Say(workspace.ErrInvalid, "“%s” is not a level: %s or default.", clip.Runes(level, 32), strings.Join(llm.ThinkLevels(), ", "))
	}
	v.Value, v.Changed = level, true
	if level == "default" {
		v.Value = ""
	}
	return v, c.override(call, func(o *workspace.Overrides) { o.Think = v.Value }, func(workspace.Overrides) any { return v })
}

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
func (c *Control) choices(call Call, id workspace.AgentID, over workspace.Overrides) ModelView {
	agent, _ := c.agent(id)
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
		m := ModelChoice{N: len(v.Choices) + 1, Name: name, Model: info.Model, Default: len(v.Choices) == 0, Window: info.ContextWindow, Thinks: info.Thinks,
			Offline: info.Offline, Down: h.Down, Current: name == over.Model}
		if owner(call) {
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
func (c *Control) primary(id workspace.AgentID, over workspace.Overrides) llm.Info {
	v := c.choices(Call{}, id, over)
	if len(v.Chain) == 0 {
		return llm.Info{}
	}
	info, _ := c.Snapshot().Models.Info(v.Chain[0])
	info.Name = v.Chain[0]
	return info
}

// Models shows the session's models; detailed tells more of each.
func (c *Control) Models(_ context.Context, call Call, detailed bool) (ModelView, error) {
	if err := c.may(call, "models"); err != nil {
		return ModelView{}, err
	}
	over, err := c.overridesOf(call)
	if err != nil {
		return ModelView{}, err
	}
	v := c.choices(call, call.Session.Agent, over)
	v.Detailed = detailed
	return v, c.answer(call, v)
}

// Model leads the session to another model of its agent, by name, number or the provider's name for it; "default" is
// the agent's own. The agent's models stay behind it as fallbacks.
func (c *Control) Model(_ context.Context, call Call, want string) (ModelView, error) {
	if err := c.may(call, "model"); err != nil {
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
			return ModelView{}, workspace.Say(workspace.ErrNotFound, "There is no model %q for this agent. /models lists them.", clip.Runes(want, 80))
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
		if strings.EqualFold(m.Name, want) || m.Model != "" && (strings.EqualFold(m.Model, want) || short != "" && strings.EqualFold(m.Model, short)) {
			return m, true
		}
	}
	return ModelChoice{}, false
}

// QueueChange is what /queue changes; zero fields stay as they are.
type QueueChange struct {
	Mode     string // steer, followup, collect, interrupt; default: forget all changes
	Debounce string // a duration up to a minute
	Cap      int    // messages that may wait; 1 to 1,000
	Drop     string // summarize, old, new
}

// maxDebounce and maxCap bound what a person may set.
const (
	maxDebounce = time.Minute
	maxCap      = 1000
)

// Check says in one sentence what cannot be.
func (q QueueChange) Check() error {
	switch q.Mode {
	case "", lane.Steer, lane.Followup, lane.Collect, lane.Interrupt, "default":
	default:
		return workspace.Say(workspace.ErrInvalid, "There is no queue mode %q. Modes are steer, followup, collect, interrupt and default.", clip.Runes(q.Mode, 40))
	}
	if d, err := time.ParseDuration(q.Debounce); q.Debounce != "" && (err != nil || d < 0 || d > maxDebounce) {
		return workspace.Say(workspace.ErrInvalid, "debounce is a time such as 700ms or 2s, at most %s.", maxDebounce)
	}
	if q.Cap < 0 || q.Cap > maxCap {
		return workspace.Say(workspace.ErrInvalid, "cap is a number of messages from 1 to %d.", maxCap)
	}
	if q.Drop != "" && !slices.Contains([]string{"summarize", "old", "new"}, q.Drop) {
		return workspace.Say(workspace.ErrInvalid, "drop is summarize, old or new.")
	}
	return nil
}

func (q QueueChange) apply(o *workspace.Overrides) {
	if q.Mode == "default" {
		o.Queue, o.Debounce, o.Cap, o.Drop = "", "", 0, ""
	} else if q.Mode != "" {
		o.Queue = q.Mode
	}
	if q.Debounce != "" {
		o.Debounce = q.Debounce
	}
	if q.Cap > 0 {
		o.Cap = q.Cap
	}
	if q.Drop != "" {
		o.Drop = q.Drop
	}
}

// Activation shows or changes what wakes the agent in a group: a mention, or always; "default" is as configured.
func (c *Control) Activation(_ context.Context, call Call, value string) (Setting, error) {
	verb := verb("activation")
	if value == "" {
		verb = "status"
	}
	if err := c.may(call, verb); err != nil {
		return Setting{}, err
	}
	if !call.placed() || call.Kind == channels.DM || call.Kind == "" {
		return Setting{}, workspace.Say(workspace.ErrInvalid, "Here I answer everything. /activation is for groups.")
	}
	v := Setting{Name: "activation"}
	if value == "" {
		place, err := c.Store.PlaceIn(call.Room)
		if err != nil {
			return v, err
		}
		v.Value = place.Activation
		return v, c.answer(call, v)
	}
	if !slices.Contains([]string{routes.ActivateMention, routes.ActivateAlways, "default"}, value) {
		return v, workspace.Say(workspace.ErrInvalid, "“%s” is not an activation: mention, always or default.", clip.Runes(value, 32))
	}
	v.Value, v.Changed = value, true
	if value == "default" {
		v.Value = ""
	}
	_, err := c.commit(call, func(store.Did) any { return v }, store.SetPlace{Room: call.Room, Activation: &v.Value})
	if err == nil {
		c.Intake.RoomsChanged()
	}
	return v, err
}
