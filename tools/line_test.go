package tools

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/workspace"
)

func TestLiteralTakesOneSimpleCommandOnly(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`git status`:                  "git|status",
		"  git\tstatus  ":             "git|status",
		`git log --format=%h -n 3`:    "git|log|--format=%h|-n|3",
		`grep 'a*b $HOME \n' "x y"`:   `grep|a*b $HOME \n|x y`,
		`/usr/bin/git sta"tu"s`:       "/usr/bin/git|status",
		`echo ''`:                     "echo|",
		`date +%Y`:                    "date|+%Y",
		`ls a@b:c,d`:                  "ls|a@b:c,d",
		`git status; rm x`:            "",
		`git status;`:                 "",
		`git status &`:                "",
		`git status && rm x`:          "",
		`git status || rm x`:          "",
		`git status | sh`:             "",
		"git status\nrm x":            "",
		"git \\\nstatus":              "",
		`git status # fine`:           "",
		`git status > f`:              "",
		`git status 2>&1`:             "",
		`git status <<< x`:            "",
		`PATH=. git status`:           "",
		`A=1`:                         "",
		`! git status`:                "",
		`git $(rm x)`:                 "",
		"git `rm x`":                  "",
		`git "$(rm x)"`:               "",
		`git $HOME`:                   "",
		`git ${HOME}`:                 "",
		`git $((1+1))`:                "",
		`git $'a'`:                    "",
		`git $"a"`:                    "",
		`git ~/x`:                     "",
		`git --x=~`:                   "",
		`git *`:                       "",
		`git a?`:                      "",
		`git [ab]`:                    "",
		`git {a,b}`:                   "",
		`git @(a|b)`:                  "",
		`git <(ls)`:                   "",
		`g\it status`:                 "",
		`git "a\"b"`:                  "",
		`(git status)`:                "",
		`{ git status; }`:             "",
		`if true; then git; fi`:       "",
		`time git status`:             "",
		`function git { rm x; }`:      "",
		`git() { rm x; }`:             "",
		`[[ -f x ]]`:                  "",
		`((1))`:                       "",
		`let x=1`:                     "",
		`export A=1`:                  "",
		`declare -x A=1`:              "",
		`alias git=rm`:                "alias|git=rm", // no program of this name is found
		`coproc git`:                  "",
		``:                            "",
		`   `:                         "",
		`# git status`:                "",
		"git status\x00":              "",
		"git sta\x1btus":              "",
		"git\u202estatus":             "git\u202estatus",
		`"unclosed`:                   "",
		"git\xffstatus":               "",
		`!! x`:                        "",
		`git ^a^b`:                    "",
		`select x in a; do git; done`: "",
	} {
		words, ok := Literal(line)
		if got := strings.Join(words, "|"); ok != (want != "") || ok && got != want {
			t.Errorf("%q: %q %v, want %q", line, got, ok, want)
		}
	}
}

// paths finds programs as on a system with these.
func paths(program string) (string, bool) {
	have := []string{"/usr/bin/git", "/usr/bin/ls", "/usr/bin/sh", "/usr/bin/terraform"}
	if strings.HasPrefix(program, "/bin/") { // a link to /usr/bin
		program = "/usr" + program
	}
	if !strings.Contains(program, "/") {
		program = "/usr/bin/" + program
	}
	return program, slices.Contains(have, program)
}

func execSet(level Level, rules []ExecRule, domains ...Domain) Set {
	return NewSet(allTools(), PolicyConfig{Resolve: paths, Domains: domains,
		Agents: map[workspace.AgentID]AgentPolicy{"a": {Exec: level, ExecAllow: rules}}})
}

func commandArgs(t interface{ Fatal(...any) }, line string) json.RawMessage {
	args, err := json.Marshal(map[string]string{"command": line})
	if err != nil {
		t.Fatal(err)
	}
	return args
}

func TestAllowlistMatchesProgramAndArgumentsNotText(t *testing.T) {
	t.Parallel()
	set := execSet(ExecAllowlist, []ExecRule{{Program: "git", Args: []string{"status", "*"}}, {Program: "/usr/bin/ls"}, {Program: "gone", Args: []string{"*"}}, {Program: "./x", Args: []string{"*"}}})
	for line, rule := range map[string]string{
		"git status":            "exec_allow:1",
		"git status -s":         "exec_allow:1",
		"/usr/bin/git status":   "exec_allow:1",
		"/bin/git status":       "exec_allow:1",
		"git 'status'":          "exec_allow:1",
		"ls":                    "exec_allow:2",
		"ls -l":                 "",
		"git":                   "",
		"git statusx":           "",
		"git push":              "",
		"git -c x status":       "",
		"git status; ls":        "",
		"gitstatus":             "",
		"./git status":          "",
		"../usr/bin/git status": "",
		"/work/git status":      "",
		"gone x":                "",
		"./x":                   "",
		"GIT_DIR=. git status":  "",
		"git status $(ls)":      "",
		"git status > x":        "",
		"eval git status":       "",
		"":                      "",
	} {
		v := set.Decide(as(workspace.Owner), "exec", commandArgs(t, line))
		if !v.Allow || v.Ask != (rule == "") || rule != "" && v.Rule != rule || v.Layer != "exec" {
			t.Errorf("%q: %+v, want %q", line, v, rule)
		}
	}
	for _, args := range []string{`{}`, `{"command":["git","status"]}`, `[`, `{"command":"git push","Command":"git status"}`, `{"Command":"git status"}`} {
		if v := set.Decide(as(workspace.Owner), "exec", json.RawMessage(args)); !v.Ask {
			t.Errorf("%s runs unasked: %+v", args, v)
		}
	}
}

// TestAllowlistTakesNothingButItsOwn: whatever is put around an allowed line, what still runs unasked is that line.
func TestAllowlistTakesNothingButItsOwn(t *testing.T) {
	t.Parallel()
	set := execSet(ExecAllowlist, []ExecRule{{Program: "git", Args: []string{"status"}}})
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SampledFrom([]string{"git", "status", " ", "\t", ";", "&", "|", "'", `"`, "$", "(", ")", "`", "\\", "\n", "#", "x", "=", ">", "<", "{", "}", "!", "*", "~", "/usr/bin/", ".", "-"})
		line := strings.Join(rapid.SliceOfN(piece, 1, 9).Draw(t, "line"), "")
		if v := set.Decide(as(workspace.Owner), "exec", commandArgs(t, line)); v.Ask {
			return
		}
		plain := strings.NewReplacer("'", "", `"`, "", "\t", " ").Replace(line)
		switch strings.Join(strings.Fields(plain), " ") {
		case "git status", "/usr/bin/git status":
		default:
			t.Fatalf("%q runs unasked", line)
		}
	})
}

func TestExecLevelsOnlyNarrow(t *testing.T) {
	t.Parallel()
	for _, agent := range append(Levels(), "", "nonsense") {
		for _, own := range append(Levels(), "", "nonsense") {
			set := NewSet(allTools(), PolicyConfig{Resolve: paths, Agents: map[workspace.AgentID]AgentPolicy{"a": {Exec: agent, ExecAllow: []ExecRule{{Program: "git", Args: []string{"status"}}},
				ByRole: map[workspace.Role]RoleRules{workspace.Owner: {Exec: own}, workspace.Guest: {Exec: own}}}}})
			want := agent
			if want == "" {
				want = ExecAsk
			}
			if own != "" {
				want = narrower(want, own)
			}
			for line, asks := range map[string]Level{"git status": ExecAsk, "ls": ExecAllowlist} {
				v := set.Decide(as(workspace.Owner), "exec", commandArgs(t, line))
				runs := want == ExecAllow || want == ExecAllowlist && asks == ExecAsk
				if v.Allow != (slices.Index(Levels(), want) > 0) || v.Allow && v.Ask == runs {
					t.Errorf("agent %q, role %q, %s: %+v", agent, own, line, v)
				}
			}
			if v := set.Decide(as(workspace.Guest), "exec", commandArgs(t, "git")); v.Allow && own == "" {
				t.Errorf("a guest may run commands: %+v", v)
			}
		}
	}
}

func TestDomainOwnsWhatNamesItAnywhere(t *testing.T) {
	t.Parallel()
	set := NewSet(allTools(), PolicyConfig{Resolve: paths, Network: true, Domains: []Domain{
		{Name: "infra", Tools: []string{"exec"}, Programs: []string{"terraform"}},
		{Name: "bank", Hosts: []string{"api.bank.example", "*.pay.example"}},
		{Name: "mail", MCP: []string{"mail"}},
	}, Agents: map[workspace.AgentID]AgentPolicy{"a": {Exec: ExecAllow}}})
	for line, want := range map[string]string{
		"ls":                                  "",
		"echo hello":                          "",
		"terraform apply":                     "infra",
		"/opt/x/terraform":                    "infra",
		"cd x && terraform apply":             "infra",
		"ls | xargs terraform":                "infra",
		`sh -c "terraform apply"`:             "infra",
		"t'erraf'orm apply":                   "infra",
		`te\rraform apply`:                    "infra",
		"(cd x; exec terraform)":              "infra",
		"T=terraform; $T apply":               "infra",
		"$(echo terra)form":                   "infra",
		"./deploy.sh":                         "infra",
		"bash deploy.sh":                      "infra",
		"python3 x.py":                        "infra",
		"find . -exec foo {} +":               "infra",
		"ls 'unclosed":                        "infra",
		"PATH=.; ls":                          "infra",
		"PATH=/work:$PATH\nls":                "infra",
		"export PATH=/work; ls":               "infra",
		"readonly PATH=/work; ls":             "infra",
		"for PATH in /work; do ls; done":      "infra",
		"for f in a b; do ls $f; done":        "",
		"read PATH < x; ls":                   "infra",
		"printf -v PATH /work; ls":            "infra",
		": ${PATH:=/work}; ls":                "infra",
		": $((PATH=7)); ls":                   "infra",
		"test $((a<=7)) = 1":                  "",
		"alias l=\"$(cat x)\"\nl":             "infra",
		`trap "$(cat x)" EXIT`:                "infra",
		"flock x ./y":                         "infra",
		"npm run x":                           "infra",
		"git -c alias.x='!sh y' x":            "infra",
		"git -c core.pager=./y log":           "infra",
		"git status":                          "",
		"tar --to-command=./y -xf z":          "infra",
		"sort --compress-program=./y z":       "infra",
		"find . -okdir ./y +":                 "infra",
		"terraforms":                          "",
		"curl https://api.bank.example":       "bank",
		"curl https://eu.pay.example/x":       "bank",
		"curl https://API.BANK.EXAMPLE.":      "bank",
		"curl http://u@api.bank.example:443/": "bank",
		"curl https://bank.example":           "",
		"curl https://notpay.example":         "",
	} {
		v := set.Decide(as(workspace.Owner), "exec", commandArgs(t, line))
		got := v.Domain
		if got == "" && !v.Allow && v.Rule == "infra and bank" { // what cannot be read belongs to both
			got = "infra"
		}
		if got != want || v.Domain != "" && (!v.Ask || !v.Allow || v.Layer != "domain") {
			t.Errorf("%q: domain %q, want %q: %+v", line, v.Domain, want, v)
		}
	}
	v := set.Decide(as(workspace.Owner), "web_fetch", json.RawMessage(`{"url":"https://api%2ebank.example/pay"}`))
	if v.Domain != "bank" || !v.Ask {
		t.Errorf("an address in other letters: %+v", v)
	}
	if v = set.Decide(as(workspace.Owner), "exec", commandArgs(t, "terraform; curl api.bank.example")); v.Allow || v.Layer != "domain" {
		t.Errorf("what belongs to two: %+v", v)
	}
	off := execSet(ExecAllow, nil, Domain{Name: "infra", Programs: []string{"terraform"}, Disabled: true})
	if v = off.Decide(as(workspace.Owner), "exec", commandArgs(t, "terraform")); v.Allow || v.Layer != "domain" {
		t.Errorf("a domain that is switched off: %+v", v)
	}
	shut := execSet(ExecAllow, nil, Domain{Name: "web", Tools: []string{"web_*"}, Disabled: true})
	if strings.Contains(names(shut.For(as(workspace.Owner))), "web_") {
		t.Error("tools of a domain that is switched off are shown")
	}
}

func TestProfilesGrow(t *testing.T) {
	t.Parallel()
	list := append(allTools(), tool("send_file", GroupSend, ""), tool("list_dir", GroupFiles, ""), tool("mcp_x_y", GroupMCP, ""), tool("recall", GroupMemory, ""))
	for name, want := range map[string]string{
		"minimal":   "list_dir read_file recall",
		"messaging": "list_dir read_file recall remember send_file",
		"coding":    "exec list_dir read_file recall remember send_file web_fetch web_search write_file",
		"full":      "exec list_dir mcp_x_y read_file recall remember send_file sessions_send web_fetch web_search write_file",
		"":          "exec list_dir mcp_x_y read_file recall remember send_file sessions_send web_fetch web_search write_file",
		"typo":      "",
	} {
		set := NewSet(list, PolicyConfig{Agents: map[workspace.AgentID]AgentPolicy{"a": {Profile: name}}})
		if got := names(set.For(as(workspace.Owner))); got != want {
			t.Errorf("profile %q: %s, want %s", name, got, want)
		}
	}
}

func FuzzLiteral(f *testing.F) {
	for _, s := range []string{"git status", "a 'b' \"c\"", "a;b", "a $(b)", "a \\\nb", "a #b", "a{b,c}", "a=b c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words, ok := Literal(line)
		if ok && (len(words) == 0 || strings.ContainsAny(line, "\n\\`") && !strings.ContainsAny(line, "'")) {
			t.Errorf("%q became %q", line, words)
		}
		read(line)
	})
}
