package conversation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"parley/agentloop/llm"
	"parley/channels"
	"parley/gateway/control"
	"parley/gateway/rights"
	"parley/gateway/spec"
	"parley/workspace"
	"parley/workspace/store"
)

// What settings need: to be looked at, to be changed by whoever talks in a session, by its members alone, by owners.
var (
	mayLook    = rights.Row{Owner: rights.Yes, Member: rights.Own, Guest: rights.Own}
	mayChange  = rights.Row{Owner: rights.Yes, Member: rights.OwnDirect, Guest: rights.OwnDirect}
	mayMembers = rights.Row{Owner: rights.Yes, Member: rights.OwnDirect}
	mayOwners  = rights.Row{Owner: rights.Yes}
)

// Setting is what is set for a session, or for a room, after it was looked at or changed.
type Setting struct {
	Name    string
	Value   string // empty: the configured default
	Changed bool
	Note    string // what the person should know of it
	// Usage has what the session has cost so far, of the setting usage.
	Usage *workspace.Usage
}

// What each setting may be. The word of its default is stored as nothing.
type (
	ThinkIn struct {
		Value string `json:"value" enum:"off,minimal,low,medium,high,xhigh,default" help:"how hard it thinks"`
	}
	VerboseIn struct {
		Value string `json:"value" enum:"off,on,full,default" help:"which steps are shown"`
	}
	ReasoningIn struct {
		Value string `json:"value" enum:"off,on,default" help:"whether it is shown"`
	}
	UsageIn struct {
		Value string `json:"value" enum:"off,tokens,cost,full,default" help:"what stands under each answer"`
	}
	SendIn struct {
		Value string `json:"value" enum:"on,off,inherit,default" help:"whether answers are sent"`
	}
	ActivationIn struct {
		Value string `json:"value" enum:"mention,always,default" help:"what wakes the agent"`
	}
)

// The settings as they are: to look at one needs no more than /status does.
var (
	ShowThink      = look("think", "Show how hard a session's model thinks")
	ShowVerbose    = look("verbose", "Show which steps are shown")
	ShowReasoning  = look("reasoning", "Show whether it is shown that the model thinks")
	ShowUsage      = look("usage", "Show what a session has used")
	ShowSend       = look("send", "Show whether answers are sent")
	ShowActivation = look("activation", "Show what wakes the agent in a group")
)

func look(name, help string) control.Verb[*Conversations, struct{}, Setting] {
	return control.Verb[*Conversations, struct{}, Setting]{
		Name: "status", Help: help, Rights: mayLook, Chat: name, Say: Setting.say,
		Do: func(_ context.Context, c *Conversations, call control.Call, _ struct{}) (Setting, error) {
			v, err := c.setting(call, name)
			if err != nil {
				return v, err
			}
			return v, c.Answer(call, v)
		},
	}
}

// The settings as they are changed, each in its place among the session's messages.
var (
	SetThink = change("think", "off|minimal|low|medium|high|xhigh|default", "Say how hard a session's model thinks", mayMembers,
		func(in ThinkIn) string { return in.Value })
	SetVerbose = change("verbose", "off|on|full", "Say which steps are shown", mayMembers,
		func(in VerboseIn) string { return in.Value })
	SetReasoning = change("reasoning", "off|on", "Say whether it is shown that the model thinks", mayChange,
		func(in ReasoningIn) string { return in.Value })
	SetUsage = change("usage", "off|tokens|cost|full", "Put what was used under each answer", mayChange,
		func(in UsageIn) string { return in.Value })
	SetSend = change("send", "on|off|inherit", "Send answers, or keep them in the transcript alone", mayOwners,
		func(in SendIn) string { return in.Value })
)

func change[In any](name, shown, help string, row rights.Row, value func(In) string) control.Verb[*Conversations, In, Setting] {
	return control.Verb[*Conversations, In, Setting]{
		Name: name, Help: help, Rights: row, Chat: name + " [" + shown + "]", Order: spec.InOrder, Say: Setting.say,
		Do: func(_ context.Context, c *Conversations, call control.Call, in In) (Setting, error) {
			v, err := c.setting(call, name)
			if err != nil {
				return Setting{}, err
			}
			v.set(value(in))
			return v, c.override(call, func(o *workspace.Overrides) { *overridden(o, name) = v.Value },
				func(workspace.Overrides) any { return v })
		},
	}
}

// SetActivation says what wakes the agent in a group: a mention, or everything.
var SetActivation = control.Verb[*Conversations, ActivationIn, Setting]{
	Name: "activation", Help: "Say what wakes the agent in a group", Rights: mayOwners,
	Chat: "activation [mention|always|default]", Order: spec.BeforeRouting, Say: Setting.say,
	Do: func(_ context.Context, c *Conversations, call control.Call, in ActivationIn) (Setting, error) {
		if err := inGroup(call); err != nil {
			return Setting{}, err
		}
		v := Setting{Name: "activation"}
		v.set(in.Value)
		_, err := c.Commit(call, func(store.Did) any { return v }, store.SetPlace{Room: call.Room, Activation: &v.Value})
		if err == nil {
			c.Intake.RoomsChanged()
		}
		return v, err
	},
}

// inGroup refuses where everything is answered.
func inGroup(call control.Call) error {
	if !call.FromRoom() || call.Kind == channels.DM || call.Kind == "" {
		return workspace.Say(workspace.ErrInvalid, "Here I answer everything. /activation is for groups.")
	}
	return nil
}

// standards are the words of the settings' defaults, where they have one beside "default".
var standards = map[string]string{"verbose": "off", "reasoning": "off", "usage": "off", "send": "inherit"}

// set gives it a new value.
func (v *Setting) set(value string) {
	v.Value, v.Changed = value, true
	if value == "default" || value == standards[v.Name] {
		v.Value = ""
	}
}

// overridden is the field of a setting.
func overridden(o *workspace.Overrides, name string) *string {
	return map[string]*string{"think": &o.Think, "verbose": &o.Verbose, "reasoning": &o.Reasoning, "usage": &o.Usage,
		"send": &o.Send}[name]
}

// setting is one as it stands.
func (c *Conversations) setting(call control.Call, name string) (Setting, error) {
	v := Setting{Name: name}
	if name == "activation" {
		if err := inGroup(call); err != nil {
			return v, err
		}
		place, err := c.Store.PlaceIn(call.Room)
		v.Value = place.Activation
		return v, err
	}
	over, err := c.overridesOf(call)
	if err != nil {
		return v, err
	}
	v.Value = *overridden(&over, name)
	switch name {
	case "usage":
		v.Usage, err = c.spentBy(call.Session)
	case "think":
		v.Note = thinking(c.primary(call.Session.Agent, over))
	}
	return v, err
}

// thinking is what to know of a model that is told how hard to think.
func thinking(model llm.Info) string {
	switch {
	case model.Offline || model.Thinks == llm.No:
		return fmt.Sprintf("The model `%s` has no such thing: it answers without being asked to think.", model.Name)
	case model.Thinks == llm.Unknown:
		return fmt.Sprintf("Whether the model `%s` minds is for its server to say; if it refuses, I ask without it.", model.Name)
	}
	return ""
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

func (v Setting) say() string {
	value := v.Value
	names := map[string]string{"send": "inherit: answers are sent", "activation": "as configured", "think": "the model's own"}
	if value == "" {
		value = cmp.Or(names[v.Name], standards[v.Name])
	}
	is := "is"
	if v.Changed {
		is = "is now"
	}
	s := fmt.Sprintf("%s %s **%s**.", strings.ToUpper(v.Name[:1])+v.Name[1:], is, value)
	if more := v.means(); more != "" {
		s += " " + more
	}
	if v.Note != "" {
		s += "\n" + v.Note
	}
	if v.Usage != nil && !v.Changed {
		s += "\nThis session so far: " + control.UsageOf(*v.Usage).Text() + "."
	}
	return s
}

// means is what follows from a value, where its word does not say it.
func (v Setting) means() string {
	switch v.Name + " " + v.Value {
	case "verbose on":
		return "Each answer begins with the tools that I used, in one line that grows while I work."
	case "verbose full":
		return "Each answer begins with the tools that I used, what with and to what end."
	case "reasoning on":
		return "You see that the model thinks. What it thinks stays private: it never leaves the gateway."
	case "reasoning ":
		return "What a model thinks stays private either way; on shows only that it does."
	case "send off":
		return "Answers stay in the transcript; commands are still answered here."
	case "activation always":
		return "I answer every message here."
	case "activation mention":
		return "I answer here when I am mentioned or answered to."
	}
	return ""
}
