package tools

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"parley/workspace/lazy"
)

// ExecRule is one command that needs no approval at level allowlist.
type ExecRule struct {
	Program string   // name, or absolute path
	Args    []string // word for word; "*" as the last stands for any rest
	Trusted bool     // the operator says of a program that is not known here that it takes no orders from files
}

// Literal are the words of a shell line that is one simple command and nothing else: no second command, redirection,
// assignment, substitution, pattern, escape or comment, so that what stands there is what runs, in every shell. It is
// false for any other line; such a line may still be fine, but is not read from its text.
func Literal(line string) (words []string, ok bool) {
	if strings.ContainsFunc(line, func(r rune) bool { return r < 0x20 && r != '\t' || r == 0x7f || r == '\uFFFD' }) {
		return nil, false
	}
	words, ok = literalIn(line, syntax.LangPOSIX)
	if !ok {
		return nil, false
	}
	again, ok := literalIn(line, syntax.LangBash) // sh is bash on some systems
	return words, ok && slices.Equal(words, again)
}

func literalIn(line string, lang syntax.LangVariant) (words []string, ok bool) {
	file, err := syntax.NewParser(syntax.Variant(lang)).Parse(strings.NewReader(line), "")
	if err != nil || len(file.Stmts) != 1 {
		return nil, false
	}
	st := file.Stmts[0]
	call, isCall := st.Cmd.(*syntax.CallExpr)
	if !isCall || st.Negated || st.Background || st.Coprocess || st.Semicolon.IsValid() || len(st.Redirs) > 0 || len(call.Assigns) > 0 || len(call.Args) == 0 {
		return nil, false
	}
	end := uint(0)
	for _, w := range call.Args {
		if strings.Trim(line[end:w.Pos().Offset()], " \t") != "" { // a line that goes on behind a backslash
			return nil, false
		}
		end = w.End().Offset()
		text, ok := literalWord(w)
		if !ok {
			return nil, false
		}
		words = append(words, text)
	}
	return words, strings.Trim(line[end:], " \t") == "" // a comment
}

// unsafe are characters that some shell acts upon outside of quotes.
const unsafe = "\\$`*?[]{}~!^"

func literalWord(w *syntax.Word) (string, bool) {
	var b strings.Builder
	for _, p := range w.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			if strings.ContainsAny(p.Value, unsafe) {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.SglQuoted:
			if p.Dollar {
				return "", false
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			if p.Dollar {
				return "", false
			}
			for _, in := range p.Parts {
				lit, ok := in.(*syntax.Lit)
				if !ok || strings.ContainsAny(lit.Value, "\\$`!") {
					return "", false
				}
				b.WriteString(lit.Value)
			}
		default:
			return "", false
		}
	}
	return b.String(), true
}

// Resolve finds a program as the sandbox will: by a name on its fixed path, or by an absolute one, with links in the
// folder followed. ok is false for what is not there, and for all that commands could put there themselves.
type Resolve func(program string) (abs string, ok bool)

// allowed is the number, from 1, of the rule by which the line runs unasked; 0: none. Then why says, of a line that a rule
// does cover, what speaks against it.
func allowed(rules []ExecRule, line string, resolve Resolve) (n int, why string) {
	words, ok := Literal(line)
	if !ok || resolve == nil || len(rules) == 0 {
		return 0, ""
	}
	program, ok := resolve(words[0])
	if !ok {
		return 0, ""
	}
	for i, r := range rules {
		want, ok := resolve(r.Program)
		if !ok || want != program || !argsMatch(r.Args, words[1:]) {
			continue
		}
		if why = asks(program, words[1:], r.Trusted); why == "" {
			return i + 1, ""
		}
	}
	return 0, why
}

func argsMatch(pattern, args []string) bool {
	if n := len(pattern); n > 0 && pattern[n-1] == "*" {
		return len(args) >= n-1 && slices.Equal(pattern[:n-1], args[:n-1])
	}
	return slices.Equal(pattern, args)
}

// starters are options by which programs are told what to start: find, git, tar, sort, split, rsync.
var starters = lazy.Regexp(`^(-exec|-ok|--exec|--to-command|--checkpoint-action|--use-compress-program|--compress-program|--rsh|--filter|--rsync-path|--upload-pack|--receive-pack|--config-env|--pager|--open-files-in-pager)`)

var tokens = lazy.Regexp(`[^\s'"` + "`" + `;&|<>()={},:\\$]+`)

// spoken is what a line may run, as far as its text tells.
type spoken struct {
	names  map[string]bool // base names of everything in it that could be a program
	opaque bool            // it computes a command, or runs what stands elsewhere
}

// read looks for programs anywhere in a line: as commands, in quotes, as arguments of others.
func read(line string) spoken {
	s := spoken{names: map[string]bool{}}
	for _, t := range tokens().FindAllString(line, -1) {
		s.names[path.Base(t)] = true
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	if err != nil {
		s.opaque = true
		return s
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Word:
			if text, whole := said(n); whole {
				for _, t := range tokens().FindAllString(text, -1) {
					s.names[path.Base(t)] = true
				}
			}
		case *syntax.CallExpr:
			s.call(n)
		case *syntax.FuncDecl:
			s.opaque = true
		case *syntax.DeclClause, *syntax.LetClause: // export PATH=
			s.opaque = true
		case *syntax.WordIter: // for PATH in
			s.opaque = s.opaque || strings.ToUpper(n.Name.Value) == n.Name.Value
		case *syntax.ParamExp: // ${PATH:=x}
			s.opaque = s.opaque || n.Exp != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull)
		case *syntax.BinaryArithm: // $((PATH=7))
			s.opaque = s.opaque || strings.HasSuffix(n.Op.String(), "=") && n.Op != syntax.Eql && n.Op != syntax.Neq && n.Op != syntax.Leq && n.Op != syntax.Geq
		case *syntax.UnaryArithm:
			s.opaque = s.opaque || n.Op == syntax.Inc || n.Op == syntax.Dec
		}
		return true
	})
	return s
}

func (s *spoken) call(c *syntax.CallExpr) {
	if len(c.Assigns) > 0 {
		s.opaque = true // PATH, LD_PRELOAD
	}
	if len(c.Args) == 0 {
		return
	}
	name, whole := said(c.Args[0])
	base := path.Base(name)
	switch {
	case !whole, runners().MatchString(base), shells().MatchString(base):
		s.opaque = true
	case strings.Contains(name, "/") && !strings.HasPrefix(name, "/usr/") && !strings.HasPrefix(name, "/bin/") && !strings.HasPrefix(name, "/sbin/"):
		s.opaque = true // a file of the work folder: whatever was written there
	}
	for _, w := range c.Args[1:] {
		text, _ := said(w)
		switch {
		case starters().MatchString(text), base == "git" && strings.HasPrefix(text, "-c"), base == "printf" && strings.HasPrefix(text, "-v"):
			s.opaque = true
		}
		for _, t := range tokens().FindAllString(text, -1) {
			s.opaque = s.opaque || shells().MatchString(path.Base(t))
		}
	}
}

// said is a word with its quotes and backslashes taken away; whole says that nothing in it is computed.
func said(w *syntax.Word) (text string, whole bool) {
	var b strings.Builder
	whole = true
	lit := func(v string) {
		if strings.ContainsAny(v, "*?[{") {
			whole = false
		}
		b.WriteString(strings.ReplaceAll(v, `\`, ""))
	}
	for _, p := range w.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			lit(p.Value)
		case *syntax.SglQuoted:
			whole = whole && !p.Dollar
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			for _, in := range p.Parts {
				if l, ok := in.(*syntax.Lit); ok {
					b.WriteString(strings.ReplaceAll(l.Value, `\`, ""))
				} else {
					whole = false
				}
			}
		default:
			whole = false
		}
	}
	return b.String(), whole
}
