package conversation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"parley/agentloop/llm"
	"parley/channels"
	"parley/gateway/control"
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
func (c *Conversations) override(call control.Call, change func(*workspace.Overrides), value func(workspace.Overrides) any) error {
	for tries := 0; ; tries++ {
		ses, err := c.Store.SessionByKey(call.Session)
		if err != nil {
			return workspace.Say(err, "Nothing was said here yet, so there is nothing to change.")
		}
		was, now := ses.Overrides, ses.Overrides
		change(&now)
		_, err = c.Commit(call, func(store.Did) any { return value(now) }, store.SetOverrides{Session: ses.ID, Overrides: now, Was: &was})
		if err == nil || !errors.Is(err, workspace.ErrConflict) || tries == 3 {
			c.Changed(call.Session.String())
			return err
		}
	}
}

// overridesOf are those of the chat's session; none while nothing was said in it.
func (c *Conversations) overridesOf(call control.Call) (workspace.Overrides, error) {
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
func (c *Conversations) Setting(_ context.Context, call control.Call, name, value string) (Setting, error) {
	verb := name
	if value == "" {
		verb = "status"
	}
	if err := c.Allow(call, verb); err != nil {
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
		return v, c.Answer(call, v)
	}
	if value == "default" {
		value = values[0]
	}
	if !slices.Contains(values, value) {
		return v, workspace.Say(workspace.ErrInvalid, "“%s” is not a value of %s: %s.",
			clip.Runes(value, 32), name, strings.Join(values, ", "))
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
func (c *Conversations) spentBy(key workspace.Key) (*workspace.Usage, error) {
	ses, err := c.Store.SessionByKey(key)
	if errors.Is(err, workspace.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	u, err := c.Spent.Of(ses.ID)
	return &u, err
}

// Think shows or changes how hard the session's model thinks; level "default" leaves it to the model.
func (c *Conversations) Think(_ context.Context, call control.Call, level string) (Setting, error) {
	verb := "think"
	if level == "" {
		verb = "status"
	}
	if err := c.Allow(call, verb); err != nil {
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
		return v, c.Answer(call, v)
	}
	if level != "default" && !slices.Contains(llm.ThinkLevels(), level) {
		return v, workspace.Say(workspace.ErrInvalid, "“%s” is not a level: %s or default.",
			clip.Runes(level, 32), strings.Join(llm.ThinkLevels(), ", "))
	}
	v.Value, v.Changed = level, true
	if level == "default" {
		v.Value = ""
	}
	return v, c.override(call, func(o *workspace.Overrides) { o.Think = v.Value }, func(workspace.Overrides) any { return v })
}

// Activation shows or changes what wakes the agent in a group: a mention, or always; "default" is as configured.
func (c *Conversations) Activation(_ context.Context, call control.Call, value string) (Setting, error) {
	verb := "activation"
	if value == "" {
		verb = "status"
	}
	if err := c.Allow(call, verb); err != nil {
		return Setting{}, err
	}
	if !call.FromRoom() || call.Kind == channels.DM || call.Kind == "" {
		return Setting{}, workspace.Say(workspace.ErrInvalid, "Here I answer everything. /activation is for groups.")
	}
	v := Setting{Name: "activation"}
	if value == "" {
		place, err := c.Store.PlaceIn(call.Room)
		if err != nil {
			return v, err
		}
		v.Value = place.Activation
		return v, c.Answer(call, v)
	}
	if !slices.Contains([]string{routes.ActivateMention, routes.ActivateAlways, "default"}, value) {
		return v, workspace.Say(workspace.ErrInvalid, "“%s” is not an activation: mention, always or default.", clip.Runes(value, 32))
	}
	v.Value, v.Changed = value, true
	if value == "default" {
		v.Value = ""
	}
	_, err := c.Commit(call, func(store.Did) any { return v }, store.SetPlace{Room: call.Room, Activation: &v.Value})
	if err == nil {
		c.Intake.RoomsChanged()
	}
	return v, err
}
