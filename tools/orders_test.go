package tools

import (
	"encoding/json"
	"path"
	"strings"
	"testing"

	"parley/workspace"
)

// everywhere finds every program that has a plain name.
func everywhere(program string) (string, bool) {
	return "/usr/bin/" + path.Base(program), !strings.Contains(program, "/") || strings.HasPrefix(program, "/usr/bin/")
}

// TestE64_WhatTakesOrdersFromFilesAsks: a rule that covers the line is not a yes to what stands in a file.
func TestE64_WhatTakesOrdersFromFilesAsks(t *testing.T) {
	t.Parallel()
	for line, runs := range map[string]bool{
		"ls -la": true, "cat x": true, "find . -name x": true, "sort -u x": true, "rg x": true, "grep -rn x .": true, "/usr/bin/wc -l x": true,
		"find . -exec sh x ';'": false, "find . -execdir ./x ';'": false, "find . -ok x ';'": false, "sort --compress-program=./x y": false, "sort --comp ./x y": false, "rg --pre ./x y": false,

		"make test": false, "gmake": false, "npm test": false, "npx x": false, "yarn": false, "pnpm i": false, "bun x": false, "node x.js": false, "tsc": false, "eslint .": false, "go test ./...": false,
		"go version": false, "cargo build": false, "rustc x.rs": false, "pytest": false, "python3 -m x": false, "python x.py": false, "tox": false, "gradle": false, "mvn test": false, "rake": false, "bundle exec x": false,
		"composer i": false, "just": false, "docker ps": false, "ssh x": false, "tar -tf x": false, "xargs ls": false, "env ls": false, "sh x": false, "bash x": false, "awk x y": false, "sed -n p x": false,
		"vim x": false, "less x": false, "man ls": false, "perl x": false, "cmake .": false, "ninja": false, "gcc x.c": false, "terraform plan": false, "hg status": false, "svn st": false, "busybox ls": false,
		"nobody-knows-this": false, "git-status": false,

		"git status": true, "git status -sb": true, "git log --oneline -n 3": true, "git log -p": true, "git diff --cached --stat": true, "git show HEAD": true, "git grep -n x": true, "git branch -vv": true,
		"git branch --list 'fix'": true, "git tag -l v1": true, "git remote -v": true, "git ls-files -o": true, "git blame x": true, "git describe --tags": true, "git cat-file -p HEAD": true,
		"git log --objects --oneline": true, "git diff --summary --ignore-space-change": true, "git log -Oorder": true,
		"git": false, "git --version": false, "git -c core.pager=x status": false, "git -C sub status": false, "git --git-dir=x status": false, "git --exec-path=. status": false, "git --config-env=x=y status": false,
		"git --no-pager status": false, "git -p status": false, "git add .": false, "git commit -m x": false, "git checkout x": false, "git fetch": false, "git pull": false, "git push": false, "git clone x": false,
		"git submodule status": false, "git stash": false, "git config -l": false, "git evil": false, "git difftool": false, "git help log": false, "git gc": false, "git archive HEAD": false, "git apply x": false,
		"git log --ext-diff": false, "git diff --ext": false, "git log --textconv": false, "git diff --output=x": false, "git diff --outp x": false, "git log -p --submodule=diff": false, "git diff --subm": false,
		"git grep --recurse-submodules x": false, "git ls-files --recurse-sub": false, "git status --ignore-submodules=none": false, "git log --show-signature": false, "git log --format=%GG": false,
		"git grep -Oless x": false, "git grep -nOx y": false, "git grep --open-files-in-pager=x y": false, "git describe --dirty": false, "git describe --broken": false,
		"git branch new": false, "git branch -D main": false, "git branch -l -D main": false, "git branch main -l": false, "git tag v2": false, "git tag -d v1": false, "git tag -l -d v1": false, "git remote add x y": false,
	} {
		words := strings.Fields(line)
		set := NewSet(allTools(), PolicyConfig{Resolve: everywhere, Agents: map[workspace.AgentID]AgentPolicy{"a": {Exec: ExecAllowlist,
			ExecAllow: []ExecRule{{Program: words[0], Args: []string{"*"}}, {Program: words[0], Args: words[1:]}}}}})
		v := set.Decide(as(workspace.Owner), "exec", commandArgs(t, line))
		if !v.Allow || v.Ask == runs || v.Reason == "The command is not on the list of those that run unasked, so a person must approve it." {
			t.Errorf("%q: %+v, want it to run unasked: %v", line, v, runs)
		}
	}
}

func TestE64_ATrustedProgramRunsIfItIsNotKnownToTakeOrders(t *testing.T) {
	t.Parallel()
	for line, runs := range map[string]bool{"report -v": true, "report --checkpoint-action=exec=x": false, "make test": false, "sh x": false, "git push": false} {
		program, _, _ := strings.Cut(line, " ")
		set := NewSet(allTools(), PolicyConfig{Resolve: everywhere, Agents: map[workspace.AgentID]AgentPolicy{"a": {Exec: ExecAllowlist,
			ExecAllow: []ExecRule{{Program: program, Args: []string{"*"}, Trusted: true}}}}})
		if v := set.Decide(as(workspace.Owner), "exec", json.RawMessage(commandArgs(t, line))); v.Ask == runs {
			t.Errorf("%q: %+v", line, v)
		}
	}
}

func TestExecRulesWarn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule ExecRule
		want string
	}{
		{ExecRule{Program: "ls", Args: []string{"*"}}, ""},
		{ExecRule{Program: "git", Args: []string{"status", "*"}}, ""},
		{ExecRule{Program: "/usr/bin/git", Args: []string{"*"}}, "only where it reads"},
		{ExecRule{Program: "git", Args: []string{"push"}}, "only where it reads"},
		{ExecRule{Program: "make", Args: []string{"test"}}, "make takes its orders from files"},
		{ExecRule{Program: "/usr/bin/python3.12", Trusted: true}, "python3.12 takes its orders from files"},
		{ExecRule{Program: "report"}, "not known whether report"},
		{ExecRule{Program: "report", Trusted: true}, ""},
	} {
		if got := c.rule.Warning(); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.rule, got, c.want)
		}
	}
}
