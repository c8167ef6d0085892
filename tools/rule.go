package tools

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"parley/workspace"
	"parley/workspace/rule"
)

// Stamp tells a program's file, by its absolute path, from one that takes its place; ok is false where there is none.
type Stamp func(abs string) (stamp string, ok bool)

// Rules by which a command runs unasked begin so: with the number of one of exec_allow behind it, or the id of an approval.
const (
	ExecAllowed = "exec_allow:"
	ExecGranted = "session:"
)

// RunsUnasked says of the rule of a verdict that a command runs by it without a person's yes.
func RunsUnasked(rule string) bool {
	return strings.HasPrefix(rule, ExecAllowed) || strings.HasPrefix(rule, ExecGranted)
}

// reads are plain programs that change nothing, whatever their arguments are: of those a rule for a session is about the
// program and its first argument. Of others it is about the whole line.
var reads = words(`arch b2sum base32 base64 basename cal cat cksum cmp column comm cut date df diff dir dirname du echo egrep expand
	expr factor false fgrep find fmt fold free git grep groups head hexdump id join jq logname ls lscpu md5sum nl nproc numfmt od
	paste pathchk printenv ps pwd readlink realpath rev rg seq sha1sum sha224sum sha256sum sha384sum sha512sum stat sum tac tail
	test tr true tsort uname unexpand uptime vdir wc whereis which who whoami zcat [`)

// writing are the options by which some of them write all the same, as their beginnings.
var writing = map[string][]string{"find": {"-delete", "-fprint", "-fls"}}

// Offer is the rule as which a command may be allowed for a session (T11); nil: only this once. It is one simple command of
// literal words, by a program that the sandbox has and that no command can have written, and none that takes its orders
// from files or is told by its arguments what to start (E64).
func Offer(line string, resolve Resolve, stamp Stamp) *rule.Command {
	program, args, ok := grantable(line, resolve)
	if !ok || stamp == nil {
		return nil
	}
	r := &rule.Command{Program: program, Args: args, Rest: onlyReads(program, args), For: rule.Most}
	if r.Rest {
		r.Args = args[:min(1, len(args))]
	}
	if r.Stamp, ok = stamp(program); !ok {
		return nil
	}
	r.Shown = workspace.Exact(r.Text())
	return r
}

// grantable reads a line that a rule for a session may be about.
func grantable(line string, resolve Resolve) (program string, args []string, ok bool) {
	words, ok := Literal(line)
	if !ok || resolve == nil || workspace.Exact(line) != line { // what cannot be seen is not a person's to allow again
		return "", nil, false
	}
	if program, ok = resolve(words[0]); !ok || asks(program, words[1:], false) != "" || len(Dangers(line)) > 0 {
		return "", nil, false
	}
	return program, words[1:], true
}

func onlyReads(program string, args []string) bool {
	base := path.Base(program)
	return reads[base] && !slices.ContainsFunc(args, func(a string) bool {
		return slices.ContainsFunc(writing[base], func(option string) bool { return strings.HasPrefix(a, option) })
	})
}

// granted is the approval by whose rule the call runs; empty: none. The line is judged anew: a rule covers no more than
// what could be given now.
func (p *policy) granted(t Subject, spec Spec, args json.RawMessage) string {
	line, _ := commandOf(spec, args)
	if line == "" || t.SessionID == "" || p.cfg.Granted == nil || p.cfg.Stamp == nil {
		return ""
	}
	program, rest, ok := grantable(line, p.cfg.Resolve)
	if !ok {
		return ""
	}
	for _, g := range p.cfg.Granted(t.SessionID, spec.Name, t.Agent, t.Actor.Person) {
		if g.Program != program || !matches(g.Command, program, rest) {
			continue
		}
		if stamp, ok := p.cfg.Stamp(program); ok && stamp == g.Stamp {
			return g.Approval
		}
	}
	return ""
}

func matches(r rule.Command, program string, args []string) bool {
	if !r.Rest {
		return slices.Equal(r.Args, args)
	}
	return onlyReads(program, args) && len(args) >= len(r.Args) && slices.Equal(r.Args, args[:len(r.Args)])
}
