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

// link adds a link's or image's text and what must be seen of its target.
func (b *builder) link(n ast.Node, dest []byte, m *mark) {
	if m.within(linked) {
		b.inlines(n, m) // an image in a link: the outer link leads
		return
	}
	l := &link{}
	lm := &mark{up: m, kind: linked, link: l}
	first := len(b.leaf().runs)
	b.at = max(b.at, n.Pos())
	b.inlines(n, lm)
	seen, target := runText(b.leaf().runs[first:]), resolve(dest)
	if !misleads(seen, target) {
		l.href = href(target)
	}
	switch {
	case !visible(seen):
		b.destination(dest, target, lm, textRun)
	case target == "" || l.href != "" && sameAddress(seen, target):
	default:
		b.add(run{from: b.at, text: " (", kind: targetRun, whole: true, mark: lm})
		b.destination(dest, target, lm, targetRun)
		b.add(run{from: b.at, text: ")", kind: targetRun, whole: true, mark: lm})
	}
}

// destination adds a link's target, from the source where it stands there as it is seen, so that a long one
// can be cut; else as a whole, shortened.
func (b *builder) destination(raw []byte, target string, m *mark, k runKind) {
	shown := strings.TrimPrefix(target, mailto)
	at := b.find(raw)
	web := scheme(target) == "http" || scheme(target) == "https"
	if at >= 0 && target == string(raw) && (web || len(shown) <= maxJunk) {
		at += len(target) - len(shown)
		b.add(run{from: at, to: at + len(shown), text: shown, kind: k, mark: m})
		return
	}
	if len(shown) > maxJunk {
		shown = clip.Bytes(shown, maxJunk) + ellipsis
	}
	if shown == "" {
		return
	}
	b.add(run{from: b.at, text: shown, kind: k, whole: true, mark: m})
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
		l := &link{href: href(string(n.URL(b.src))), auto: true}
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

// misleads says whether a link's text holds an address of another host than the link leads to.
func misleads(seen, target string) bool {
	to := hostOf(target)
	for _, word := range strings.FieldsFunc(seen, unicode.IsSpace) {
		if h := hostOf(word); h != "" && h != to {
			return true
		}
	}
	return false
}

// hostOf is the host that a word would be taken to lead to, in lower case without "www."; empty if it does
// not look like an address. In doubt it does: the price is a target that is shown.
func hostOf(word string) string {
	word = strings.ToLower(strings.Map(plainRune, word))
	word = strings.TrimFunc(word, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '/' })
	word = strings.TrimPrefix(word, mailto)
	named := false
	if i := strings.Index(word, "://"); i >= 0 {
		word, named = word[i+3:], true
	}
	if i := strings.IndexAny(word, "/?#\\"); i >= 0 {
		word = word[:i]
	}
	if i := strings.LastIndexByte(word, '@'); i >= 0 {
		word = word[i+1:]
	}
	if i := strings.LastIndexByte(word, ':'); i >= 0 {
		word = word[:i]
	}
	word = strings.TrimPrefix(strings.TrimRight(word, "."), "www.")
	if named || isHost(word) {
		return word
	}
	return ""
}

// plainRune undoes the commonest disguises of an address.
func plainRune(r rune) rune {
	switch {
	case r == 0x3002 || r == 0xff0e || r == 0xff61:
		return '.'
	case r == 0xff0f || r == 0x2044 || r == 0x2215:
		return '/'
	case r == 0xff1a:
		return ':'
	case unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Cc, r):
		return -1
	default:
		return r
	}
}

// isHost says whether a word without scheme looks like a host. Names of files and products whose ending is
// no top-level domain do not.
func isHost(word string) bool {
	labels := strings.Split(word, ".")
	if len(labels) < 2 {
		return false
	}
	for _, l := range labels {
		if l == "" {
			return false
		}
		for _, r := range l {
			if !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' && r != '_' && !unicode.IsMark(r) {
				return false
			}
		}
	}
	last := labels[len(labels)-1]
	switch last {
	case "js", "ts", "jsx", "tsx", "go", "json", "yaml", "yml", "toml", "txt", "html", "css", "sql", "cpp", "rb", "xml", "csv", "pdf":
		return false
	}
	// Four numbers are an address, "v1.2" and "3.5" are not.
	if strings.IndexFunc(last, func(r rune) bool { return !unicode.IsDigit(r) }) < 0 {
		return len(labels) == 4
	}
	return utf8.RuneCountInString(last) >= 2
}
