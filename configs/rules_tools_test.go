package configs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func loadText(t *testing.T, text string) (*Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "parley.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(LoadOptions{Path: path, Env: func(string) (string, bool) { return "", false }})
}

func TestToolsThatCannotBeMeantAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`agents: [{id: a, tools: {exec: allowlist, exec_allow: [{program: "git status"}]}}]`:                                                                       "agents[0].tools.exec_allow[0].program: must be one program",
		`agents: [{id: a, tools: {exec: allowlist, exec_allow: [{program: ./git}]}}]`:                                                                              "exec_allow[0].program: must be a name or an absolute path",
		`agents: [{id: a, tools: {exec: allowlist, exec_allow: [{program: "git*"}]}}]`:                                                                             "exec_allow[0].program: must name one program",
		`agents: [{id: a, tools: {exec: allowlist, exec_allow: [{program: git, args: ["*", push]}]}}]`:                                                             "exec_allow[0].args[0]: * stands for any rest",
		`agents: [{id: a, folders: [{path: /srv/a, as: inbox}]}]`:                                                                                                  "agents[0].folders[0].as: is where files that people send",
		`agents: [{id: a, folders: [{path: /srv/a, as: x}, {path: /srv/b, as: X}]}]`:                                                                               "agents[0].folders[1].as",
		`agents: [{id: a, folders: [{path: /srv, as: x}]}, {id: b, default: true, workspace: /srv/b}]`:                                                             "agents[0].folders[0].path: overlaps the workspace of agents[1]",
		`{people: [{id: ana, role: owner}, {id: ben, role: member}], domains: [{name: d, match: {tools: [exec]}, owner: {people: [ben], surfaces: [cli, http]}}]}`: "domains[0].owner.surfaces: let nobody decide: http and cli speak for ana",
		`domains: [{name: d, match: {programs: ["terraform apply"]}}]`:                                                                                             "domains[0].match.programs[0]: must be the name of one program",
	} {
		if _, err := loadText(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestWarningsNameWhatDoesNothing(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`agents: [{id: a, tools: {exec_allow: [{program: git}]}}]`:                                         "agents[0].tools.exec_allow does nothing: exec is ask, not allowlist",
		`agents: [{id: a, tools: {exec: allowlist}}]`:                                                      "agents[0].tools.exec is allowlist, and exec_allow is empty",
		`agents: [{id: a, tools: {by_role: {member: {exec: allow}}}}]`:                                     "agents[0].tools.by_role.member.exec is wider than exec of the agent, ask",
		`agents: [{id: a, tools: {deny: [reed_file]}}]`:                                                    "agents[0].tools.deny[0] names no tool that is built in",
		`agents: [{id: a, tools: {deny: ["group:file"]}}]`:                                                 "agents[0].tools.deny[0] names no group of tools",
		`tools: {deny: ["exce*"]}`:                                                                         "tools.deny[0] covers no tool",
		`sandbox: {network: egress}`:                                                                       "sandbox.egress is empty",
		`{sandbox: {network: egress, egress: ["a.example:443"]}, agents: [{id: a, tools: {exec: allow}}]}`: "agents[0].tools.exec is allow, and commands reach 1 hosts",
		`agents: [{id: a, tools: {exec: allowlist, exec_allow: [{program: git}], deny: ["web_*", "mcp_x", "group:memory", exec], by_role: {member: {exec: ask}}}}]`: "",
		`agents: [{id: a, tools: {exec: allowlist, exec_allow: [{program: ls}, {program: make}]}}]`:                                                                 "agents[0].tools.exec_allow[1] asks",
		``: "",
	} {
		c, err := loadText(t, text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var got []string
		for _, p := range c.Warnings(func(r ExecRule) string { return map[string]string{"make": "asks"}[r.Program] }) {
			got = append(got, p.Path+" "+p.Text)
		}
		if want == "" && len(got) > 0 || want != "" && !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, want) }) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
