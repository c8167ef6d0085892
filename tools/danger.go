package tools

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"parley/workspace"
	"parley/workspace/clip"
	"parley/workspace/lazy"
	"parley/workspace/rule"
)

// This file reads from a shell line what a person should look at twice before they allow it. It is a hint and no wall: a line
// without a mark is not harmless, and what it may do is the sandbox's to say.

const (
	maxDangers = 8   // of one line; more are not read
	maxWhat    = 120 // characters of the piece that is shown
	maxNested  = 3   // lines within lines: sh -c 'sh -c …'
)

// seenAs is where commands see the work folder.
const seenAs = "/work"

// Dangers are what of a line is dangerous, in its order.
func Dangers(line string) []rule.Danger {
	d := &dangers{}
	d.read(line, 0)
	return d.list
}

type dangers struct {
	list []rule.Danger
	line string
	deep int
}

func (d *dangers) add(kind, why string, n syntax.Node) {
	if len(d.list) == maxDangers || slices.ContainsFunc(d.list, func(x rule.Danger) bool { return x.Kind == kind && x.Why == why }) {
		return
	}
	what := ""
	if n != nil {
		if from, to := int(n.Pos().Offset()), int(n.End().Offset()); from <= to && to <= len(d.line) {
			what = d.line[from:to]
		}
	}
	what = clip.Runes(strings.ReplaceAll(what, "\n", " "), maxWhat)
	d.list = append(d.list, rule.Danger{Kind: kind, What: workspace.Exact(what), Why: why})
}

// read walks a line, or one that a shell is given inside another.
func (d *dangers) read(line string, deep int) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	was, wasDeep := d.line, d.deep
	d.line, d.deep = line, deep
	defer func() { d.line, d.deep = was, wasDeep }()
	if err != nil {
		d.add("unreadable", "cannot be read as a shell would read it", nil)
		return
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.BinaryCmd:
			d.pipe(n)
		case *syntax.Redirect:
			d.redirect(n)
		case *syntax.CallExpr:
			d.call(n)
		case *syntax.FuncDecl:
			if calls(n.Body, n.Name.Value) {
				d.add("bomb", "starts copies of itself", n)
			}
		}
		return true
	})
}

// calls says whether a function calls itself.
func calls(body syntax.Node, name string) (found bool) {
	syntax.Walk(body, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.CallExpr); ok && len(c.Args) > 0 {
			text, _ := said(c.Args[0])
			found = found || text == name
		}
		return !found
	})
	return found
}

// interpreters run what comes to them as text.
var interpreters = lazy.Regexp(`^(ash|awk|bash|bun|csh|dash|deno|fish|gawk|ksh|lua[0-9.]*|mawk|mksh|node|perl[0-9.]*|php[0-9.]*|` +
	`pypy[0-9.]*|python[0-9.]*|rbash|ruby[0-9.]*|sh|tclsh.*|tcsh|yash|zsh)$`)

// pipe marks what is run as it comes through a pipe.
func (d *dangers) pipe(n *syntax.BinaryCmd) {
	if n.Op != syntax.Pipe && n.Op != syntax.PipeAll {
		return
	}
	c, ok := n.Y.Cmd.(*syntax.CallExpr)
	if !ok {
		return
	}
	for _, words := range commands(texts(c.Args)) {
		if base := path.Base(words[0]); interpreters().MatchString(base) && !hasScript(words[1:]) {
			d.add("pipe", "has "+workspace.Line(base, 20)+" run what comes through a pipe", n)
		}
	}
}

// hasScript says that an interpreter is given what to run otherwise than by its input.
func hasScript(args []string) bool {
	for _, a := range args {
		if a == "-" || a == "-s" || a == "/dev/stdin" {
			return false
		}
		if !strings.HasPrefix(a, "-") || a == "-c" || a == "-e" {
			return true
		}
	}
	return false
}

// redirect marks what is written outside the folder.
func (d *dangers) redirect(n *syntax.Redirect) {
	switch n.Op {
	case syntax.RdrOut, syntax.AppOut, syntax.RdrInOut, syntax.ClbOut, syntax.RdrAll, syntax.AppAll:
	default:
		return
	}
	text, whole := said(n.Word)
	switch {
	case devices().MatchString(text):
		d.add("disk", "writes to a disk directly", n)
	case strings.HasPrefix(text, "/dev/"):
		if strings.HasPrefix(text, "/dev/tcp/") || strings.HasPrefix(text, "/dev/udp/") {
			d.add("network", "uses the network", n)
		}
	case outside(text) || !whole && text == "":
		d.add("outside", "writes outside the work folder", n)
	}
}

var devices = lazy.Regexp(`^/dev/(sd|hd|vd|xvd|nvme|mmcblk|disk|mapper|dm-|mem|kmem|port)`)

// outside says that a path leads out of the folder: an absolute one elsewhere, upwards, or to a home.
func outside(p string) bool {
	if strings.HasPrefix(p, "~") || strings.HasPrefix(p, "$HOME") {
		return true
	}
	if path.IsAbs(p) {
		p = path.Clean(p) + "/"
		return !slices.ContainsFunc([]string{seenAs + "/", "/dev/", "/tmp/"}, func(in string) bool { return strings.HasPrefix(p, in) })
	}
	p = path.Clean(p)
	return p == ".." || strings.HasPrefix(p, "../")
}

// texts are the words of a call, without quotes; of a computed word what is literal in it.
func texts(words []*syntax.Word) (list []string) {
	for _, w := range words {
		text, _ := said(w)
		if text == "" {
			if home, ok := homeOf(w); ok {
				text = home
			}
		}
		list = append(list, text)
	}
	return list
}

// homeOf reads $HOME/x, which said leaves out.
func homeOf(w *syntax.Word) (string, bool) {
	for _, p := range w.Parts {
		if v, ok := p.(*syntax.ParamExp); ok && v.Param != nil && v.Param.Value == "HOME" {
			return "$HOME", true
		}
	}
	return "", false
}

// wrappers start the command that stands among their arguments.
var wrappers = lazy.Regexp(`^(builtin|busybox|chroot|chrt|command|doas|env|exec|flock|ionice|nice|nohup|parallel|pkexec|setsid|` +
	`stdbuf|strace|sudo|time|timeout|unshare|watch|xargs)$`)

// execs are the options of find behind which a command stands.
var execs = []string{"-exec", "-execdir", "-ok", "-okdir"}

// commands are a command and those that it starts by its arguments, as far as they can be told.
func commands(words []string) (list [][]string) {
	if len(words) == 0 {
		return nil
	}
	list = [][]string{words}
	base := path.Base(words[0])
	for i, w := range words[1:] {
		switch {
		case wrappers().MatchString(base) && starts(path.Base(w)):
			return append(list, commands(words[i+1:])...)
		case base == "find" && slices.Contains(execs, w) && i+2 < len(words):
			list = append(list, commands(words[i+2:])...)
		}
	}
	return list
}

// starts says of a word behind a wrapper that it is the command which it starts.
func starts(base string) bool {
	return programs[base] != nil || strings.HasPrefix(base, "mkfs") || interpreters().MatchString(base) || wrappers().MatchString(base)
}

// call marks a command, and those that it starts.
func (d *dangers) call(c *syntax.CallExpr) {
	for _, a := range c.Assigns {
		if name := a.Name.Value; name == "PATH" || strings.HasPrefix(name, "LD_") || name == "BASH_ENV" || name == "IFS" {
			d.add("environment", "changes which programs or libraries are used", a)
		}
	}
	if len(c.Args) == 0 {
		return
	}
	if text, whole := said(c.Args[0]); !whole || text == "" {
		d.add("computed", "computes which program it runs", c.Args[0])
	}
	for _, words := range commands(texts(c.Args)) {
		d.judge(words, c)
	}
	d.given(c)
}

// given marks what an interpreter, eval or source is given to run.
func (d *dangers) given(c *syntax.CallExpr) {
	words := texts(c.Args)
	base := path.Base(words[0])
	runs := base == "eval" || base == "source" || base == "."
	for _, argv := range commands(words) {
		runs = runs || interpreters().MatchString(path.Base(argv[0]))
	}
	if !runs {
		return
	}
	for i, w := range c.Args[1:] {
		text, whole := said(w)
		if whole && d.deep < maxNested && (base == "eval" || i > 0 && shellCode(words[i])) {
			d.read(text, d.deep+1)
		}
		syntax.Walk(w, func(n syntax.Node) bool {
			switch n.(type) {
			case *syntax.CmdSubst, *syntax.ProcSubst:
				d.add("pipe", "runs what another command prints", c)
			}
			return true
		})
	}
}

// shellCode says that the argument behind an option is a line for a shell.
func shellCode(option string) bool { return codeOption().MatchString(option) }

var codeOption = lazy.Regexp(`^-[a-z]*c$`)

// judge marks one command by the table of programs.
func (d *dangers) judge(words []string, n syntax.Node) {
	base, args := path.Base(words[0]), words[1:]
	if strings.HasPrefix(base, "mkfs") {
		base = "mkfs"
	}
	if f := programs[base]; f != nil {
		if kind, why := f(args); kind != "" {
			d.add(kind, why, n)
		}
	}
	if writes[base] && slices.ContainsFunc(args, outside) {
		d.add("outside", "changes what is outside the work folder", n)
	}
	if slices.ContainsFunc(args, urls().MatchString) && base != "echo" && base != "printf" {
		d.add("network", "uses the network", n)
	}
}

var urls = lazy.Regexp(`(?i)^['"]?(https?|ftp|ssh|git|wss?)://`)

// writes are programs that write what their arguments name.
var writes = words(`chmod chown chgrp cp dd install ln mkdir mv rm rmdir rsync sed shred tar tee touch truncate unzip`)

// short says whether some short option, alone or in a bundle, or the beginning of a long one is among the arguments.
func short(args []string, letters string, long ...string) bool {
	for _, a := range args {
		switch {
		case strings.HasPrefix(a, "--"):
			name, _, _ := strings.Cut(a, "=")
			if slices.ContainsFunc(long, func(l string) bool { return len(name) > 3 && strings.HasPrefix(l, name) }) {
				return true
			}
		case strings.HasPrefix(a, "-") && strings.ContainsAny(a, letters):
			return true
		}
	}
	return false
}

type mark = func(args []string) (kind, why string)

func always(kind, why string) mark { return func([]string) (string, string) { return kind, why } }

func when(test func([]string) bool, kind, why string) mark {
	return func(args []string) (string, string) {
		if test(args) {
			return kind, why
		}
		return "", ""
	}
}

// programs is what is dangerous of which program.
var programs = func() map[string]mark {
	table := map[string]mark{
		"rm": when(func(a []string) bool { return short(a, "rR", "--recursive", "--no-preserve-root") }, "remove",
			"removes folders with all that is in them"),
		"shred": always("remove", "destroys files for good"),
		"find":  when(func(a []string) bool { return slices.Contains(a, "-delete") }, "remove", "removes all that it finds"),
		"chmod": when(openToAll, "rights", "lets everybody change files, or a program run as its owner"),
		"dd": when(func(a []string) bool {
			return slices.ContainsFunc(a, func(s string) bool { return strings.HasPrefix(s, "of=/dev/") })
		}, "disk", "writes to a disk directly"),
		"git":   gitDanger,
		"rsync": when(func(a []string) bool { return slices.ContainsFunc(a, remote) }, "network", "uses the network"),
	}
	for _, g := range []struct{ names, kind, why string }{
		{"sudo doas su pkexec", "root", "runs as another user"},
		{"mkfs fdisk sfdisk parted wipefs mkswap blkdiscard", "disk", "formats or parts a disk"},
		{"shutdown reboot poweroff halt", "machine", "stops the machine"},
		{"curl wget ssh scp sftp ftp nc ncat netcat socat telnet aria2c http https lynx w3m", "network", "uses the network"},
		{"pip pip3 npm npx pnpm yarn apt apt-get dnf yum apk brew gem cargo", "network", "may load programs from the network"},
	} {
		for name := range words(g.names) {
			table[name] = always(g.kind, g.why)
		}
	}
	return table
}()

// remote says that a path of rsync is on another machine.
func remote(s string) bool {
	host, _, colon := strings.Cut(s, ":")
	return colon && host != "" && !strings.HasPrefix(s, "-") && !strings.Contains(host, "/")
}

var openModes = lazy.Regexp(`^([0-7]?[0-7][0-7][2367]|[24-7][0-7]{3}|[augo,rwxX+=-]*[ao][ugo]*[+=][rxX]*w.*|[ugoa]*[+=][rwxX]*s.*)$`)

// openToAll are modes by which everybody may write, or a program runs as its owner.
func openToAll(args []string) bool { return slices.ContainsFunc(args, openModes().MatchString) }

func gitDanger(args []string) (kind, why string) {
	args = slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "--no-pager" })
	if len(args) == 0 {
		return "", ""
	}
	switch sub, rest := args[0], args[1:]; {
	case sub == "push" && short(rest, "f", "--force", "--force-with-lease", "--mirror", "--delete"):
		return "network", "overwrites what is on the other side"
	case slices.Contains([]string{"clone", "fetch", "pull", "push", "ls-remote"}, sub):
		return "network", "uses the network"
	case sub == "clean" && short(rest, "f", "--force"), sub == "reset" && slices.Contains(rest, "--hard"):
		return "remove", "throws away what is not committed"
	}
	return "", ""
}
