package tools

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"parley/workspace/lazy"
)

// This file is the one table of programs by where they take their orders from. Every file of the work folder may have been
// written by an agent; a program that looks there for what to run (a hook, a pager, a Makefile, a plugin) turns a rule of
// exec_allow, which names one harmless line, into a yes to any command at all.

// plain are programs that do what their arguments say and look for no further orders.
var plain = words(`arch b2sum base32 base64 basename cal cat chmod cksum cmp column comm cp cut date df diff dir dirname du echo egrep expand expr
	factor false fgrep file find fmt fold free grep groups gzip head hexdump hostname iconv id join jq link ln logname ls lscpu md5sum
	mkdir mktemp mv nl nproc numfmt od paste pathchk pr printenv printf ps ptx pwd readlink realpath rev rg rm rmdir seq sha1sum sha224sum
	sha256sum sha384sum sha512sum shuf sleep sort stat sum tac tail tee test touch tr tree true truncate tsort tty uname unexpand uniq uptime
	uuidgen vdir wc whereis which who whoami xxd yes zcat [`)

// starting are the options by which some of them are told to start another program, as the beginning that tells them from
// others; GNU programs take long options abbreviated.
var starting = map[string][]string{
	"find": {"-exec", "-ok"},
	"sort": {"--co"}, // --compress-program
	"rg":   {"--pre", "--hostname-bin"},
}

// runners run what other text or a file tells them: what a line comes to with one of these in it cannot be read from it.
var runners = lazy.Regexp(`^(alias|ant|awk|builtin|bun|bunx|cargo|chroot|chrt|cmake|command|composer|dc|deno|doas|dotnet|ed|env|eval|ex|exec|expect|flock|gawk|gdb|getopts|go|gradle|groovy|guile|hash|ionice|java|julia|just|ld\.so|ld-linux.*|ltrace|lua.*|m4|make|mapfile|mawk|mvn|nice|ninja|nohup|npm|npx|nsenter|parallel|pipx?|pip3|pnpm|pnpx|pytest|rake|read|readarray|run-parts|script|sed|setsid|socat|source|ssh|start-stop-daemon|stdbuf|strace|su|sudo|taskset|tclsh.*|time|timeout|tox|trap|ts-node|tsx|unshare|uv|uvx|vim?|nvim|emacs|watch|xargs|yarn|\.)$`)

// shells are runners that count wherever in a line they are named, since other programs start them: git -c alias.x=!sh.
var shells = lazy.Regexp(`^!?(ash|bash|busybox|csh|dash|fish|ksh|mksh|node|perl[0-9.]*|php[0-9.]*|pypy[0-9.]*|python[0-9.]*|rbash|ruby[0-9.]*|sh|tcsh|yash|zsh)$`)

// obeys are further programs that find in files what to start: recipes, plugins, hooks, key bindings, configuration.
var obeys = lazy.Regexp(`^(ansible.*|bazel|bats|bsdtar|buck2?|buildah|bundler?|cc|c\+\+|clang.*|cvs|direnv|docker.*|dpkg.*|eslint|flake8|g\+\+|gcc.*|gem|git-.*|gmake|bmake|grunt|gulp|helm|hg|ipython3?|irb|` +
	`jest|jj|jupyter.*|ld|ld\..*|less|man|mage|meson|mix|mocha|more|most|mypy|nix.*|nox|patch|pdm|phpunit|podman.*|poetry|pre-commit|prettier|pulumi|pylint|rspec|rsync|rubocop|rustc|sbt|scons|screen|scp|sdiff|sftp|` +
	`sqlite3|stack|svn|systemd-run|tar|task|terraform|terragrunt|tofu|tig|tmux|tsc|vagrant|view|vimdiff|vite|vitest|waf|webpack|zip)$`)

func words(list string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(list) {
		m[w] = true
	}
	return m
}

// TakesOrders says that a program takes its orders from files, whatever its arguments are.
func TakesOrders(program string) bool {
	base := path.Base(program)
	return obeys().MatchString(base) || runners().MatchString(base) || shells().MatchString(base)
}

// Git is the program that runs unasked with its repository's orders taken away (tools/builtin/git.go); only what reads does.
const Git = "git"

// asks says why a command needs a person's yes although a rule of exec_allow covers it; empty: it runs. trusted says that
// the operator has looked at a program that is not known here.
func asks(program string, args []string, trusted bool) string {
	base := path.Base(program)
	switch {
	case base == Git:
		return gitAsks(args)
	case TakesOrders(base):
		return fmt.Sprintf("%s takes its orders from files, which an agent may have written, so a person must approve it.", base)
	case plain[base]:
		for _, a := range args {
			if slices.ContainsFunc(starting[base], func(option string) bool { return strings.HasPrefix(a, option) }) {
				return fmt.Sprintf("%s would start another program, so a person must approve it.", base)
			}
		}
		return ""
	case trusted && !slices.ContainsFunc(args, starters().MatchString):
		return ""
	case trusted:
		return fmt.Sprintf("%s would start another program, so a person must approve it.", base)
	}
	return fmt.Sprintf("It is not known whether %s takes orders from files of the folder, so a person must approve it.", base)
}

// Warning is what an operator should know of a rule: that, and why, some of what it seems to let run asks all the same;
// empty: nothing.
func (r ExecRule) Warning() string {
	base := path.Base(r.Program)
	switch {
	case base == Git:
		if args := slices.DeleteFunc(slices.Clone(r.Args), func(a string) bool { return a == "*" }); len(args) == 0 || gitAsks(args) != "" {
			return "lets git run unasked only where it reads (" + strings.Join(gitReads(), ", ") + "); what writes, or could start a program, asks"
		}
	case TakesOrders(base):
		return base + " takes its orders from files that an agent can write, so it asks all the same"
	case !plain[base] && !r.Trusted:
		return "asks all the same: it is not known whether " + base + " takes orders from files of the work folder; trusted: true says that you have looked and it does not"
	}
	return ""
}

// gitSub is a subcommand that only reads.
type gitSub struct {
	refused []string        // beginnings of options by which it would write or start something
	letters string          // the same, as letters of short options, which git takes in bundles
	only    map[string]bool // its only arguments; nil: any
	begins  []string        // beginnings of further arguments beside only
	listing map[string]bool // options with which it takes patterns too
}

// gitSubs are those that run unasked.
var gitSubs = map[string]gitSub{
	"status": {}, "log": {}, "diff": {}, "show": {}, "blame": {}, "annotate": {}, "ls-files": {}, "ls-tree": {}, "rev-parse": {}, "rev-list": {}, "shortlog": {},
	"show-ref": {}, "for-each-ref": {}, "merge-base": {}, "name-rev": {}, "cat-file": {}, "diff-tree": {}, "count-objects": {}, "cherry": {},
	"describe": {refused: []string{"--di", "--br"}}, // they start git in submodules
	"grep":     {refused: []string{"--op"}, letters: "O"},
	"remote":   {only: words("-v --verbose")},
	"branch":   {only: words("-a -r -v -vv -av -avv -rv --all --remotes --verbose --show-current --list -l"), begins: []string{"--sort=", "--format="}, listing: words("--list -l")},
	"tag":      {only: words("-n --list -l"), begins: []string{"--sort=", "--format="}, listing: words("--list -l")},
}

// gitRefused are beginnings of options with which any of them would write a file, start a program or another git in a
// submodule, which has a configuration of its own. Git takes long options abbreviated.
var gitRefused = []string{"--ou", "--sub", "--rec", "--ext", "--textc", "--show-si", "--ignore-su"}

func gitReads() []string {
	var list []string
	for name := range gitSubs {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// gitAsks is asks for git: which of its lines only read.
func gitAsks(args []string) string {
	const writes = "git runs unasked only where it reads and starts nothing, so a person must approve this."
	if len(args) == 0 {
		return writes
	}
	sub, known := gitSubs[args[0]]
	if !known {
		return writes
	}
	listing := false
	for _, a := range args[1:] {
		listing = listing || sub.listing[a]
		dashed := strings.HasPrefix(a, "-")
		begins := func(list []string) bool {
			return slices.ContainsFunc(list, func(s string) bool { return strings.HasPrefix(a, s) })
		}
		switch {
		case begins(gitRefused), begins(sub.refused), strings.Contains(a, "%G"): // the last checks a signature
			return writes
		case dashed && !strings.HasPrefix(a, "--") && strings.ContainsAny(a, sub.letters):
			return writes
		case sub.only != nil && !sub.only[a] && !begins(sub.begins) && (dashed || !listing):
			return writes
		}
	}
	return ""
}
