package tools

import (
	"strings"
	"testing"

	"parley/workspace"
	"parley/workspace/rule"
)

// stamps are the programs' files of a test, as they are now.
type stamps map[string]string

func (s stamps) of(abs string) (string, bool) {
	if v, changed := s[abs]; changed {
		return v, v != ""
	}
	return "1", true
}

// T11: a rule for a session is offered for one simple command of literal words by a program that is known to take no orders, and
// for nothing else.
func TestT11_ARuleForASessionIsOfferedForSimpleCommandsAlone(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"git status":                  "git status …",
		"git status --short":          "git status …",
		"/usr/bin/git log -3":         "git log …",
		"ls":                          "ls …",
		"ls -la src":                  "ls -la …",
		"cat 'my notes.txt'":          "cat 'my notes.txt' …",
		`grep "a b" x`:                "grep 'a b' …",
		"find . -name x":              "find . …",
		"mv a b":                      "mv a b", // it changes something: only the very line
		"touch x":                     "touch x",
		"find . -delete":              "",
		"rm x":                        "rm x",
		"git commit -m x":             "", // E64: hooks
		"git -c core.pager=x log":     "",
		"git":                         "",
		"git diff --ext-diff":         "",
		"find . -exec rm {} +":        "",
		"find . -ok rm x":             "",
		"sort --compress-program=x y": "",
		"rg --pre x y":                "",
		"make":                        "",
		"npm test":                    "",
		"python3 -c 'print(1)'":       "",
		"python3 x.py":                "",
		"sh -c ls":                    "",
		"bash x":                      "",
		"xargs ls":                    "",
		"env ls":                      "",
		"env A=1 ls":                  "",
		"sudo ls":                     "",
		"nice ls":                     "",
		"timeout 1 ls":                "",
		"perl -e 1":                   "",
		"awk 1 x":                     "",
		"sed -n p x":                  "",
		"tar xf x":                    "",
		"ssh host ls":                 "",
		"unheardof x":                 "",
		"./ls":                        "",
		"/work/ls":                    "",
		"src/ls":                      "",
		"ls $HOME":                    "",
		"ls ${X}":                     "",
		"ls *.go":                     "",
		"ls ?":                        "",
		"ls [a]":                      "",
		"ls {a,b}":                    "",
		"ls ~":                        "",
		`ls "$(id)"`:                  "",
		"ls `id`":                     "",
		"ls > x":                      "",
		"ls < x":                      "",
		"ls 2>&1":                     "",
		"ls; id":                      "",
		"ls && id":                    "",
		"ls || id":                    "",
		"ls | cat":                    "",
		"ls &":                        "",
		"ls\nid":                      "",
		"ls \\\n-l":                   "",
		"A=1 ls":                      "",
		"PATH=. ls":                   "",
		"ls # comment":                "",
		"ls $'\\x41'":                 "",
		"! ls":                        "",
		"(ls)":                        "",
		"{ ls; }":                     "",
		"if true; then ls; fi":        "",
		"":                            "",
		"ls\x00":                      "",
		"command ls":                  "",
		"exec ls":                     "",
		"eval ls":                     "",
		"time ls":                     "",
		"echo hello\u202e there":      "", // it reads otherwise than it is
		"echo a\u200bb":               "",
	} {
		got := ""
		if r := Offer(line, everywhere, stamps{}.of); r != nil {
			got = r.Shown
			if r.For != rule.Most || r.Stamp != "1" || !strings.HasPrefix(r.Program, "/usr/bin/") {
				t.Errorf("%q: %+v", line, r)
			}
		}
		if got != want {
			t.Errorf("%q is offered as %q, want %q", line, got, want)
		}
	}
	gone := stamps{"/usr/bin/ls": ""}
	if Offer("ls", nil, gone.of) != nil || Offer("ls", everywhere, nil) != nil || Offer("ls", everywhere, gone.of) != nil {
		t.Error("a rule is offered for a program that nobody can find")
	}
}

// T11: policy lets run what a rule of the session covers, for whom it was given, as long as the program is the same file, and
// judges the line anew.
func TestT11_PolicyDecidesByTheRulesOfTheSession(t *testing.T) {
	t.Parallel()
	files := stamps{}
	place := map[string]string{}
	resolve := func(program string) (string, bool) {
		if at, moved := place[program]; moved {
			return at, at != ""
		}
		return everywhere(program)
	}
	var rules []rule.Granted
	for _, line := range []string{"git status", "ls", "mv a b", "find . -name x"} {
		rules = append(rules, rule.Granted{Approval: "A" + line[:2], Command: *Offer(line, resolve, files.of)})
	}
	// what nobody may be given covers nothing either: neither a program that takes orders, nor an old rule about another line
	rules = append(rules, rule.Granted{Approval: "bad", Command: rule.Command{Program: "/usr/bin/make", Stamp: "1", Rest: true}})
	cfg := PolicyConfig{Resolve: resolve, Stamp: files.of, Agents: map[workspace.AgentID]AgentPolicy{"a": {Exec: ExecAsk}},
		Granted: func(s workspace.SessionID, tool string, agent workspace.AgentID, who workspace.PersonID) []rule.Granted {
			if s == "S1" && tool == "exec" && agent == "a" && who == "p" {
				return rules
			}
			return nil
		},
		Domains: []Domain{{Name: "house", Programs: []string{"ls"}}}}
	in := func(session workspace.SessionID) Subject {
		s := as(workspace.Owner)
		s.SessionID = session
		return s
	}
	check := func(what string, set Set, s Subject, line, by string) {
		t.Helper()
		v := set.Decide(s, "exec", commandArgs(t, line))
		if !v.Allow || v.Ask != (by == "") || by != "" && v.Rule != by || by != "" && !RunsUnasked(v.Rule) {
			t.Errorf("%s: %q: %+v, want %q", what, line, v, by)
		}
	}
	set := NewSet(allTools(), cfg)
	for line, by := range map[string]string{
		"git status": "session:Agi", "git status -s": "session:Agi", "git 'status'": "session:Agi", "mv a b": "session:Amv",
		"find . -type f": "session:Afi",
		"git log":        "", "git": "", "mv a c": "", "mv a b c": "", "find . -delete": "", "find . -exec rm {} +": "", "find /": "",
		"git status --output=x": "", "git status; rm x": "", "git status > x": "", "git $X": "", "make x": "", "A=1 git status": "",
		"./git status": "",
	} {
		check("ask", set, in("S1"), line, by)
	}
	check("another generation", set, in("S2"), "git status", "")
	check("no generation", set, in(""), "git status", "")
	other := in("S1")
	other.Actor.Person = "q"
	check("somebody else", set, other, "git status", "")
	if v := set.Decide(in("S1"), "exec", commandArgs(t, "ls")); !v.Ask || v.Domain != "house" || RunsUnasked(v.Rule) {
		t.Errorf("a domain's command: %+v", v)
	}
	files["/usr/bin/git"] = "2"
	check("the program was changed", set, in("S1"), "git status", "")
	files["/usr/bin/git"] = ""
	check("the program is gone", set, in("S1"), "git status", "")
	delete(files, "/usr/bin/git")
	place["git"] = "/usr/local/bin/git"
	check("the program is shadowed", set, in("S1"), "git status", "")
	delete(place, "git")
	check("as before", set, in("S1"), "git status", "session:Agi")

	listed := AgentPolicy{Exec: ExecAllowlist, ExecAllow: []ExecRule{{Program: "git", Args: []string{"log"}}}}
	cfg.Agents = map[workspace.AgentID]AgentPolicy{"a": listed}
	check("beside an allow-list", NewSet(allTools(), cfg), in("S1"), "git status", "session:Agi")
	check("beside an allow-list", NewSet(allTools(), cfg), in("S1"), "git log", "exec_allow:1")
	cfg.Agents = map[workspace.AgentID]AgentPolicy{"a": {Exec: ExecDeny}}
	if v := NewSet(allTools(), cfg).Decide(in("S1"), "exec", commandArgs(t, "git status")); v.Allow {
		t.Errorf("commands are switched off: %+v", v)
	}
}
