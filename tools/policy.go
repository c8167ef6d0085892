package tools

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"parley/workspace"
	"parley/workspace/rule"
)

// Rules of one layer. A pattern is a tool's name, a beginning with "*" behind it, "*" alone, or "group:NAME".
type Rules struct {
	Allow []string // nil: the layer does not narrow; empty: nothing is allowed
	Deny  []string // wins over Allow
}

// PolicyConfig is the operator's policy. Layers only narrow, in the order of Layers.
type PolicyConfig struct {
	Global   Rules
	Agents   map[workspace.AgentID]AgentPolicy
	Channels map[string]Rules // by configured name
	Routes   map[string]Rules // by the label of the route
	Domains  []Domain
	Resolve  Resolve // finds the programs of exec_allow; nil: none matches
	Network  bool    // commands reach hosts
	// Granted are the rules that people gave a session, and Stamp tells their programs; nil: there are none.
	Granted func(s workspace.SessionID, tool string, agent workspace.AgentID, who workspace.PersonID) []rule.Granted
	Stamp   Stamp
}

// AgentPolicy is what one agent's tools are.
type AgentPolicy struct {
	Rules
	Profile   string
	Exec      Level // empty: ask
	ExecAllow []ExecRule
	ByRole    map[workspace.Role]RoleRules
	Helper    Rules // for its helpers
}

// RoleRules narrow for the people of one role.
type RoleRules struct {
	Rules
	// Exec is the level of commands for the role, never wider than the agent's; empty: the agent's for owners, and no
	// commands for others.
	Exec Level
}

// Level is how far commands are let run.
type Level string

const (
	ExecDeny      Level = "deny"
	ExecAsk       Level = "ask"
	ExecAllowlist Level = "allowlist" // those of ExecAllow run, others ask
	ExecAllow     Level = "allow"
)

// Levels lists them, the narrowest first.
func Levels() []Level { return []Level{ExecDeny, ExecAsk, ExecAllowlist, ExecAllow} }

// narrower is the one of two levels that lets less run. What is not known lets nothing.
func narrower(a, b Level) Level {
	i, j := slices.Index(Levels(), a), slices.Index(Levels(), b)
	if min(i, j) < 0 {
		return ExecDeny
	}
	return Levels()[min(i, j)]
}

// Names of the layers.
const (
	layerBuiltIn = "built-in"
	layerGlobal  = "global"
	layerAgent   = "agent"
	layerChannel = "channel"
	layerRoute   = "route"
	layerRole    = "role"
	layerDepth   = "depth"
	layerExec    = "exec"
	layerDomain  = "domain"
)

// Layers names the layers in the order in which they judge.
func Layers() []string {
	return []string{layerBuiltIn, layerGlobal, layerAgent, layerChannel, layerRoute, layerRole, layerDepth, layerExec, layerDomain}
}

// NewSet is the set of all with the policy in front. When two tools have one name the first is kept: built-in
// ones come first, so that none from outside can take a name of theirs.
func NewSet(all []Tool, cfg PolicyConfig) Set {
	p := &policy{cfg: cfg, byName: make(map[string]Tool, len(all))}
	for _, t := range all {
		spec := t.Spec()
		if _, taken := p.byName[spec.Name]; taken {
			continue
		}
		p.byName[spec.Name] = t
		p.specs = append(p.specs, spec)
	}
	slices.SortFunc(p.specs, func(a, b Spec) int { return strings.Compare(a.Name, b.Name) })
	return p
}

// policy is the Set of a gateway. What it says does not change once it is made, but for tools that are out of work.
type policy struct {
	cfg    PolicyConfig
	byName map[string]Tool
	specs  []Spec // sorted by name

	mu   sync.Mutex
	seen map[place][]Spec // what a turn may see, whether it works or not: asked for with each message
}

// place is all of a Subject that policy looks at.
type place struct {
	agent          workspace.AgentID
	role           workspace.Role
	channel, route string
	depth          int
}

const maxPlaces = 1000 // routes that are gone live on in old messages

func (p *policy) Lookup(name string) (Tool, bool) {
	t, ok := p.byName[name]
	return t, ok
}

func (p *policy) For(t Subject) []Spec {
	list := p.mayBeSeen(t)
	out := make([]Spec, 0, len(list))
	for _, spec := range list {
		if p.available(t, spec, nil) == nil {
			out = append(out, spec)
		}
	}
	return out
}

// mayBeSeen are the tools that every layer lets through; the caller does not change the list.
func (p *policy) mayBeSeen(t Subject) []Spec {
	at := place{t.Agent, t.Actor.Role, t.Channel, t.Route, t.Depth}
	p.mu.Lock()
	defer p.mu.Unlock()
	list, ok := p.seen[at]
	if ok {
		return list
	}
	for _, spec := range p.specs {
		if p.judgeBy(t, spec, nil, p.builtIn, p.rules, p.execLevel).Allow {
			list = append(list, spec)
		}
	}
	if p.seen == nil || len(p.seen) >= maxPlaces {
		p.seen = map[place][]Spec{}
	}
	p.seen[at] = list
	return list
}

func (p *policy) Decide(t Subject, name string, args json.RawMessage) Verdict {
	i, ok := slices.BinarySearchFunc(p.specs, name, func(s Spec, n string) int { return strings.Compare(s.Name, n) })
	if !ok {
		v := Verdict{Layer: layerBuiltIn, Rule: "exists", Reason: fmt.Sprintf("There is no tool %q.", workspace.Line(name, 40))}
		v.Record = []Layer{{Layer: v.Layer, Rule: v.Rule, Outcome: workspace.LayerDeny, Reason: v.Reason}}
		return v
	}
	if args == nil {
		args = json.RawMessage("{}")
	}
	return p.judge(t, p.specs[i], args)
}

func (p *policy) All(t Subject) []Judged {
	out := make([]Judged, len(p.specs))
	for i, spec := range p.specs {
		out[i] = Judged{Spec: spec, Verdict: p.judge(t, spec, nil)}
	}
	return out
}

// judge asks the layers in order; the first no is the answer. Without args it says what is known before a call.
func (p *policy) judge(t Subject, spec Spec, args json.RawMessage) Verdict {
	return p.judgeBy(t, spec, args, p.builtIn, p.available, p.rules, p.execLevel)
}

func (p *policy) judgeBy(t Subject, spec Spec, args json.RawMessage, layers ...func(Subject, Spec, json.RawMessage) []Layer) Verdict {
	var v Verdict
	for _, ask := range layers {
		for _, l := range ask(t, spec, args) {
			v.Record = append(v.Record, l)
			if l.Outcome == workspace.LayerDeny {
				return v.decided(l, false)
			}
			if l.Outcome == workspace.LayerAsk {
				v.Ask, v.Layer, v.Rule, v.Reason = true, l.Layer, l.Rule, l.Reason
			}
		}
	}
	if l, name := p.domain(spec, args); l.Layer != "" {
		v.Record = append(v.Record, l)
		if l.Outcome == workspace.LayerDeny {
			return v.decided(l, false)
		}
		v.Ask, v.Domain = true, name
		return v.decided(l, true)
	}
	v.Allow = true
	if !v.Ask && len(v.Record) > 0 {
		last := v.Record[len(v.Record)-1]
		v.Layer, v.Rule = last.Layer, last.Rule
	}
	return v
}

// decided is the verdict that l has made.
func (v Verdict) decided(l Layer, allow bool) Verdict {
	v.Allow, v.Layer, v.Rule, v.Reason = allow, l.Layer, l.Rule, l.Reason
	if !allow {
		v.Ask, v.Domain = false, ""
	}
	return v
}

func pass(layer, rule string) Layer {
	return Layer{Layer: layer, Rule: rule, Outcome: workspace.LayerPass}
}

func deny(layer, rule, reason string) Layer {
	return Layer{Layer: layer, Rule: rule, Outcome: workspace.LayerDeny, Reason: reason}
}

// builtIn is what no configuration can widen, but for commands, which an operator may give to a role.
func (p *policy) builtIn(t Subject, spec Spec, _ json.RawMessage) []Layer {
	role := t.Actor.Role
	no := func(rule, format string, args ...any) []Layer {
		return []Layer{deny(layerBuiltIn, rule, fmt.Sprintf(format, args...))}
	}
	switch {
	case !role.AtLeast(workspace.Guest):
		return no("known", "Nobody who is not known here may use tools.")
	case !role.AtLeast(spec.MinRole):
		return no("min_role:"+string(spec.MinRole), "The tool %s is for %ss.", spec.Name, spec.MinRole)
	case spec.Group == GroupExec && role != workspace.Owner && p.cfg.Agents[t.Agent].ByRole[role].Exec == "":
		return no("exec:owner", "Commands are for owners here.")
	case role == workspace.Guest && !slices.Contains([]string{GroupFiles, GroupSend, GroupMemory, GroupExec}, spec.Group):
		return no("guest:files,send,memory", "The tool %s is not for guests.", spec.Name)
	}
	return []Layer{pass(layerBuiltIn, "role:"+string(role))}
}

// available refuses what is out of work at the moment; nil: it is not.
func (p *policy) available(_ Subject, spec Spec, _ json.RawMessage) []Layer {
	a, ok := p.byName[spec.Name].(Available)
	if !ok {
		return nil
	}
	why := a.Unavailable()
	if why == "" {
		return nil
	}
	return []Layer{deny(layerBuiltIn, "available", fmt.Sprintf("The tool %s does not work here: %s.", spec.Name, strings.TrimSuffix(why, ".")))}
}

// rules asks the layers that are lists.
func (p *policy) rules(t Subject, spec Spec, _ json.RawMessage) []Layer {
	agent := p.cfg.Agents[t.Agent]
	type layer struct {
		name, about string
		rules       Rules
	}
	layers := []layer{{layerGlobal, "", p.cfg.Global}}
	if agent.Profile != "" {
		layers = append(layers, layer{layerAgent, "profile:" + agent.Profile + " ", profile(agent.Profile)})
	}
	layers = append(layers,
		layer{layerAgent, "", agent.Rules},
		layer{layerChannel, t.Channel + " ", p.cfg.Channels[t.Channel]},
		layer{layerRoute, t.Route + " ", p.cfg.Routes[t.Route]},
		layer{layerRole, string(t.Actor.Role) + " ", agent.ByRole[t.Actor.Role].Rules})
	if t.Depth > 0 {
		layers = append(layers, layer{layerDepth, "", agent.Helper})
	}
	var out []Layer
	for _, l := range layers {
		if l.rules.Allow == nil && l.rules.Deny == nil {
			continue
		}
		rule, ok := l.rules.judge(spec)
		rule = l.about + rule
		if !ok {
			return append(out, deny(l.name, rule, fmt.Sprintf("The tool %s is not allowed in this conversation (%s policy).", spec.Name, l.name)))
		}
		out = append(out, pass(l.name, rule))
	}
	return out
}

// execLevel judges commands by their level, and by the allow-list where the level is that.
func (p *policy) execLevel(t Subject, spec Spec, args json.RawMessage) []Layer {
	if spec.Group != GroupExec {
		return nil
	}
	agent := p.cfg.Agents[t.Agent]
	level := agent.Exec
	if level == "" {
		level = ExecAsk
	}
	if own := agent.ByRole[t.Actor.Role].Exec; own != "" {
		level = narrower(level, own)
	}
	rule := "level:" + string(level)
	ask := Layer{Layer: layerExec, Rule: rule, Outcome: workspace.LayerAsk, Reason: "A person must approve each command here."}
	switch level {
	case ExecAllow:
		return []Layer{pass(layerExec, rule)}
	case ExecAsk:
	case ExecAllowlist:
		ask.Reason = "The command is not on the list of those that run unasked, so a person must approve it."
		if line, _ := commandOf(spec, args); args != nil {
			n, why := allowed(agent.ExecAllow, line, p.cfg.Resolve)
			if n > 0 {
				return []Layer{pass(layerExec, fmt.Sprintf("%s%d", ExecAllowed, n))}
			}
			ask.Reason = cmp.Or(why, ask.Reason)
		}
	default:
		return []Layer{deny(layerExec, rule, "Commands are switched off here.")}
	}
	if id := p.granted(t, spec, args); id != "" {
		return []Layer{pass(layerExec, ExecGranted+id)}
	}
	return []Layer{ask}
}

// domain says which configured domain owns the call.
func (p *policy) domain(spec Spec, args json.RawMessage) (Layer, string) {
	d, clash := p.domainOf(spec, args)
	switch {
	case d == nil:
		return Layer{}, ""
	case d.Disabled:
		return deny(layerDomain, d.Name+" disabled", fmt.Sprintf("What belongs to %s is switched off here.", d.Name)), ""
	case clash != "":
		return deny(layerDomain, d.Name+" and "+clash, fmt.Sprintf("This belongs to %s and to %s at once, so nobody can approve it alone. Do it in separate calls.", d.Name, clash)), ""
	}
	return Layer{Layer: layerDomain, Rule: d.Name, Outcome: workspace.LayerAsk, Reason: fmt.Sprintf("This belongs to %s, whose owner decides each time.", d.Name)}, d.Name
}

func (r Rules) judge(spec Spec) (rule string, ok bool) {
	if p := match(r.Deny, spec); p != "" {
		return "deny:" + p, false
	}
	if r.Allow == nil {
		return "not in deny", true
	}
	if p := match(r.Allow, spec); p != "" {
		return "allow:" + p, true
	}
	return "not in allow", false
}

// match is the first pattern that covers the tool; empty: none.
func match(patterns []string, spec Spec) string {
	for _, p := range patterns {
		if p == spec.Name || p == "group:"+spec.Group {
			return p
		}
		if begin, ok := strings.CutSuffix(p, "*"); ok && strings.HasPrefix(spec.Name, begin) {
			return p
		}
	}
	return ""
}
