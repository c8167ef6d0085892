package configs

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// toolNames are those that are built in, now or by a part that can be switched on; what else a pattern names may be an MCP
// server's.
var toolNames = []string{"read_file", "write_file", "edit_file", "remove_file", "list_dir", "resolve_path", "exec", "send_file", "sessions_spawn", "subagents", "agents_list",
	"remember", "recall", "tasks", "runs", "sessions_list", "sessions_history", "sessions_send", "web_fetch", "web_search"}

var toolGroups = []string{"files", "exec", "send", "memory", "helpers", "tasks", "session", "web", "mcp"}

// tools checks what is exact: programs and their arguments.
func (x rules) tools() {
	for i, a := range x.Agents {
		for j, r := range a.Tools.ExecAllow {
			x.execRule(item(key(key(item("agents", i), "tools"), "exec_allow"), j), r)
		}
	}
	for i, d := range x.Domains {
		for j, p := range d.Match.Programs {
			if strings.ContainsAny(p, " \t*?") || filepath.Base(p) == "." || strings.HasSuffix(p, "/") {
				x.add(item(key(item("domains", i), "match.programs"), j), "must be the name of one program, not %s", quote(p))
			}
		}
	}
}

// toolPatterns speaks of those that cover nothing: a typing error in deny lets through what it should stop.
func (x rules) toolPatterns() {
	x.filter("tools", x.Tools)
	for i, a := range x.Agents {
		at := key(item("agents", i), "tools")
		x.patterns(key(at, "allow"), a.Tools.Allow)
		x.patterns(key(at, "deny"), a.Tools.Deny)
		x.filter(key(at, "subagents.tools"), a.Tools.Subagents.Tools)
		for _, role := range slices.Sorted(maps.Keys(a.Tools.ByRole)) {
			x.patterns(key(at, "by_role."+role+".allow"), a.Tools.ByRole[role].Allow)
			x.patterns(key(at, "by_role."+role+".deny"), a.Tools.ByRole[role].Deny)
		}
	}
	for i, c := range x.Channels {
		x.filter(key(item("channels", i), "tools"), c.Tools)
	}
	for i, r := range x.Routes {
		x.filter(key(item("routes", i), "tools"), r.Tools)
	}
	for i, d := range x.Domains {
		x.patterns(key(item("domains", i), "match.tools"), d.Match.Tools)
	}
}

func (x rules) filter(at string, f ToolFilter) {
	x.patterns(key(at, "allow"), f.Allow)
	x.patterns(key(at, "deny"), f.Deny)
}

func (x rules) patterns(at string, list []string) {
	for i, p := range list {
		group, isGroup := strings.CutPrefix(p, "group:")
		begin, open := strings.CutSuffix(p, "*")
		switch {
		case p == "" || strings.HasPrefix(p, "mcp_"):
		case isGroup:
			if !slices.Contains(toolGroups, group) {
				x.add(item(at, i), "names no group of tools: %s; %s", quote(group), didYouMean(group, toolGroups))
			}
		case open:
			if strings.Contains(begin, "*") || !slices.ContainsFunc(append([]string{"mcp_"}, toolNames...), func(n string) bool { return strings.HasPrefix(n, begin) }) {
				x.add(item(at, i), "covers no tool that is built in: * stands at the end of the beginning of a name")
			}
		case !slices.Contains(toolNames, p):
			x.add(item(at, i), "names no tool that is built in: %s; %s", quote(p), didYouMean(p, toolNames))
		}
	}
}

func (x rules) execRule(at string, r ExecRule) {
	switch {
	case r.Program == "":
	case strings.ContainsAny(r.Program, " \t"):
		x.add(key(at, "program"), "must be one program; its arguments go into args")
	case strings.Contains(r.Program, "/") && !filepath.IsAbs(r.Program):
		x.add(key(at, "program"), "must be a name or an absolute path: a relative one would be a file that the agent can write")
	case strings.ContainsAny(r.Program, `*?[`):
		x.add(key(at, "program"), "must name one program; patterns are for its last argument")
	}
	for i, arg := range r.Args {
		if arg == "*" && i < len(r.Args)-1 {
			x.add(item(key(at, "args"), i), "* stands for any rest and must be the last")
		}
	}
}

// Warnings are what is allowed, and probably not what was meant. Each names its key. ofRule says what is to be said of a rule
// of exec_allow by what its program is; empty: nothing.
func (c *Config) Warnings(ofRule func(ExecRule) string) []Problem {
	r := newReport(c.Path, false)
	rules{r, c}.toolPatterns()
	levels := []string{"deny", "ask", "allowlist", "allow"}
	for i, a := range c.Agents {
		at := key(item("agents", i), "tools")
		listed := a.Tools.Exec == "allowlist"
		for _, role := range slices.Sorted(maps.Keys(a.Tools.ByRole)) {
			t := a.Tools.ByRole[role]
			if slices.Index(levels, t.Exec) > slices.Index(levels, a.Tools.Exec) {
				r.add(key(at, "by_role."+role+".exec"), "is wider than exec of the agent, %s, which holds", a.Tools.Exec)
			}
			listed = listed || t.Exec == "allowlist" && a.Tools.Exec == "allow"
		}
		if len(a.Tools.ExecAllow) > 0 && !listed {
			r.add(key(at, "exec_allow"), "does nothing: exec is %s, not allowlist", a.Tools.Exec)
		}
		for j, rule := range a.Tools.ExecAllow {
			if text := ofRule(rule); listed && text != "" {
				r.add(item(key(at, "exec_allow"), j), "%s", text)
			}
		}
		if listed && len(a.Tools.ExecAllow) == 0 {
			r.add(key(at, "exec"), "is allowlist, and exec_allow is empty: every command asks")
		}
		if a.Tools.Exec == "allow" && c.Sandbox.Network == "egress" && len(c.Sandbox.Egress) > 0 {
			r.add(key(at, "exec"), "is allow, and commands reach %d hosts: what the agent reads can be sent there unasked", len(c.Sandbox.Egress))
		}
		if a.WorkspaceScope == "agent" && len(c.Channels) > 0 {
			r.add(key(item("agents", i), "workspace_scope"), "is agent: everybody who may speak to it reads and changes the same files")
		}
	}
	if c.Sandbox.Backend == "none" && slices.ContainsFunc(c.Agents, func(a Agent) bool { return len(a.Tools.ExecAllow) > 0 }) {
		r.add("sandbox.backend", "is none, so that there is no exec")
	}
	if c.Sandbox.Network == "egress" && len(c.Sandbox.Egress) == 0 {
		r.add("sandbox.egress", "is empty: network is egress, and no host can be reached")
	}
	return append(r.problems, c.unread...)
}
