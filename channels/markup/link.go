package markup

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/util"

	"parley/workspace/clip"
)

const (
	maxHref  = 1024 // bytes: a longer address is text, so that a link always fits a message
	maxJunk  = 256  // bytes: how much is shown of a target that is no web address (data: holds whole files)
	mailto   = "mailto:"
	ellipsis = "…"
)

// link adds a link's or image's text and its target. A text that is not the target itself never leads anywhere: nobody
// can see where, and what a model writes may have been put into its mouth, with something secret in the address. So the
// target stands behind the text, and only what shows whole where it leads is a link.
func (b *builder) link(n ast.Node, dest []byte, m *mark) {
	if m.within(linked) {
		b.inlines(n, m) // an image in a link: the outer link leads
		return
	}
	first := len(b.leaf().runs)
	b.at = max(b.at, n.Pos())
	b.inlines(n, &mark{up: m, kind: linked})
	seen, target := runText(b.leaf().runs[first:]), resolve(dest)
	switch {
	case target == "":
	case !visible(seen), sameAddress(seen, target):
		b.leaf().runs = b.leaf().runs[:first] // a part of it, where a message is cut, would not be the target any more
		b.destination(dest, target, m)
	default:
		b.add(run{from: b.at, text: " (", whole: true, mark: m})
		b.destination(dest, target, m)
		b.add(run{from: b.at, text: ")", whole: true, mark: m})
	}
}

// destination adds a link's target, from the source where it stands there as it is seen, so that a long one
// can be cut; else as a whole, shortened.
func (b *builder) destination(raw []byte, target string, m *mark) {
	shown := strings.TrimPrefix(target, mailto)
	at := b.find(raw)
	web := scheme(target) == "http" || scheme(target) == "https"
	if at >= 0 && target == string(raw) && (web || len(shown) <= maxJunk) {
		at += len(target) - len(shown)
		b.add(run{from: at, to: at + len(shown), text: shown, mark: b.leading(shown, target, m)})
		return
	}
	if len(shown) > maxJunk {
		shown = clip.Bytes(shown, maxJunk) + ellipsis
	}
	if shown == "" {
		return
	}
	b.add(run{from: b.at, text: shown, whole: true, mark: b.leading(shown, target, m)})
}

// leading is the mark of a target that is shown: where all of it is seen, it is a link.
func (b *builder) leading(shown, target string, m *mark) *mark {
	if h := href(target); h == shown {
		return &mark{up: m, kind: linked, link: &link{href: h}}
	}
	return m
}

// find is where a link's destination stands behind its text: "](", spaces, perhaps "<". It is -1 if it is
// not found there.
func (b *builder) find(raw []byte) int {
	i := strings.Index(b.doc.md[b.at:], "](")
	if i < 0 || len(raw) == 0 {
		return -1
	}
	at := b.at + i + 2
	for at < len(b.src) && (util.IsSpace(b.src[at]) || b.src[at] == '<') {
		at++
	}
	if !strings.HasPrefix(b.doc.md[at:], string(raw)) {
		return -1
	}
	return at
}

// autoLink adds an address that is its own text.
func (b *builder) autoLink(n *ast.AutoLink, m *mark) {
	label := n.Label(b.src)
	at := n.Pos()
	if !strings.HasPrefix(b.doc.md[at:], string(label)) {
		at++
	}
	if !m.within(linked) {
		l := &link{href: href(string(n.URL(b.src)))}
		m = &mark{up: m, kind: linked, link: l}
	}
	b.raw(at, at+len(label), m)
}

// resolve is a destination with its escapes and entities resolved.
func resolve(dest []byte) string {
	return string(util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(dest))))
}

func runText(runs []run) string {
	var s strings.Builder
	for _, r := range runs {
		s.WriteString(r.text)
	}
	return s.String()
}

func scheme(target string) string {
	i := strings.IndexByte(target, ':')
	if i < 0 {
		return ""
	}
	return strings.ToLower(target[:i])
}

// href is target as the address of a link, with everything that could end an attribute, a bracket or a line
// percent-encoded; empty if it may not be a link. "https://bank.example@other.example" is none.
func href(target string) string {
	switch scheme(target) {
	case "http", "https":
		u, err := url.Parse(strings.Map(printable, target))
		if err != nil || u.Host == "" || u.User != nil {
			return ""
		}
	case "mailto":
	default:
		return ""
	}
	var s strings.Builder
	for i := 0; i < len(target); {
		r, size := utf8.DecodeRuneInString(target[i:])
		if r > ' ' && r < 0x7f && strings.IndexByte("\"'<>\\^`{|}", byte(r)) < 0 || r >= 0xa0 && unicode.IsPrint(r) && r != utf8.RuneError {
			s.WriteString(target[i : i+size])
		} else {
			for _, c := range []byte(target[i : i+size]) {
				writeHex(&s, c)
			}
		}
		i += size
	}
	if s.Len() > maxHref {
		return ""
	}
	return s.String()
}

// printable replaces what url.Parse would refuse although it is encoded afterwards.
func printable(r rune) rune {
	if r <= ' ' || r == 0x7f {
		return '_'
	}
	return r
}

func writeHex(s *strings.Builder, c byte) {
	const hex = "0123456789ABCDEF"
	s.WriteByte('%')
	s.WriteByte(hex[c>>4])
	s.WriteByte(hex[c&15])
}

// sameAddress says whether a link's text tells its whole target.
func sameAddress(seen, target string) bool {
	norm := func(s string) string {
		s = strings.TrimSpace(s)
		s = strings.TrimPrefix(s, mailto)
		s = strings.TrimPrefix(s, "https://")
		s = strings.TrimPrefix(s, "http://")
		return strings.TrimSuffix(s, "/")
	}
	return norm(seen) == norm(target)
}
