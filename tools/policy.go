package tools

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"parley/workspace"
)

// Rules of one layer. A pattern is a tool's name, a beginning with "*" behind it, "*" alone, or "group:NAME".
type Rules struct {
	Allow []string // nil: the layer does not narrow; empty: nothing is allowed
	Deny  []string // wins over Allow
}

// PolicyConfig is the operator's policy. Layers only narrow, in the order of Layers.
type PolicyConfig struct {
	Global Rules
	Agents map[workspace.AgentID]AgentPolicy
	Routes map[string]Rules // by network; empty key: local sessions
}

// AgentPolicy is what one agent's tools are.
type AgentPolicy struct {
	Rules
	ByRole map[workspace.Role]RoleRules
	Helper Rules // for its helpers
}

// RoleRules narrow for the people of one role.
type RoleRules struct {
	Rules
	Exec bool // the operator gave this role the exec group, which is else for owners alone
}

// Layers names the layers in the order in which they judge.
func Layers() []string { return []string{"built-in", "global", "agent", "route", "role", "depth"} }

// Groups of tools that built-in rules know.
const (
	GroupFiles  = "files"
	GroupExec   = "exec"
	GroupMemory = "memory"
)

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

// policy is the Set of a gateway. It is not changed once made.
type policy struct {
	cfg    PolicyConfig
	byName map[string]Tool
	specs  []Spec // sorted by name
}

func (p *policy) Lookup(name string) (Tool, bool) {
	t, ok := p.byName[name]
	return t, ok
}

func (p *policy) For(t Subject) []Spec {
	var seen []Spec
	for _, spec := range p.specs {
		if p.judge(t, spec).Allow {
			seen = append(seen, spec)
		}
	}
	return seen
}

func (p *policy) Decide(t Subject, name string, _ json.RawMessage) Verdict {
	i, ok := slices.BinarySearchFunc(p.specs, name, func(s Spec, n string) int { return strings.Compare(s.Name, n) })
	if !ok {
		return Verdict{Layer: "built-in", Rule: "exists", Reason: fmt.Sprintf("There is no tool %q.", workspace.Line(name, 40))}
	}
	return p.judge(t, p.specs[i])
}

// judge asks the layers in order; the first no is the answer.
func (p *policy) judge(t Subject, spec Spec) Verdict {
	agent := p.cfg.Agents[t.Agent]
	byRole := agent.ByRole[t.Actor.Role]
	if rule, ok := builtIn(t.Actor.Role, spec, byRole.Exec); !ok {
		return refusal("built-in", rule, spec.Name)
	}
	layers := []struct {
		name  string
		rules Rules
	}{
		{"global", p.cfg.Global},
		{"agent", agent.Rules},
		{"route", p.cfg.Routes[t.Network]},
		{"role", byRole.Rules},
	}
	if t.Depth > 0 {
		layers = append(layers, struct {
			name  string
			rules Rules
		}{"depth", agent.Helper})
	}
	for _, l := range layers {
		if rule, ok := l.rules.judge(spec); !ok {
			return refusal(l.name, rule, spec.Name)
		}
	}
	return Verdict{Allow: true, Rule: "allowed"}
}

func refusal(layer, rule, name string) Verdict {
	return Verdict{Layer: layer, Rule: rule, Reason: fmt.Sprintf("The tool %s is not allowed in this conversation (%s policy).", name, layer)}
}

// builtIn is what no configuration can widen, but for commands, which an operator may give to a role.
func builtIn(role workspace.Role, spec Spec, exec bool) (rule string, ok bool) {
	switch {
	case !role.AtLeast(workspace.Guest):
		return "known", false
	case !role.AtLeast(spec.MinRole):
		return "min_role:" + string(spec.MinRole), false
	case spec.Group == GroupExec && role != workspace.Owner && !exec:
		return "exec:owner", false
	case role == workspace.Guest && spec.Group != GroupFiles && spec.Group != GroupMemory && spec.Group != GroupExec:
		return "guest:files,memory", false
	}
	return "", true
}

func (r Rules) judge(spec Spec) (rule string, ok bool) {
	if p := match(r.Deny, spec); p != "" {
		return "deny:" + p, false
	}
	if r.Allow != nil && match(r.Allow, spec) == "" {
		return "not in allow", false
	}
	return "", true
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
