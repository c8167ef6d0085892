package telegramtest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// parser reads the HTML subset of https://core.telegram.org/bots/api#html-style. It fails where the public server fails,
// with its words; offsets in errors are bytes.
type parser struct {
	src   string
	i     int
	loose bool // a bare "&" is text
	out   []byte
	units int // length of out in UTF-16 units
	open  []openTag
	ents  []Entity
}

type openTag struct {
	name, arg string
	offset    int // in UTF-16 units
	at        int // in bytes of out
}

// ParseHTML turns HTML into text and entities. The error is what follows "can't parse entities: ".
func ParseHTML(src string, loose bool) (string, []Entity, error) {
	p := &parser{src: src, loose: loose, out: make([]byte, 0, len(src))}
	for p.i < len(src) {
		var err error
		switch {
		case src[p.i] == '&':
			err = p.reference()
		case strings.HasPrefix(src[p.i:], "</"):
			err = p.endTag()
		case src[p.i] == '<':
			err = p.startTag()
		default:
			r, size := utf8.DecodeRuneInString(src[p.i:])
			p.put(r)
			p.i += size
		}
		if err != nil {
			return "", nil, err
		}
	}
	if n := len(p.open); n > 0 {
		return "", nil, fmt.Errorf("Can't find end tag corresponding to start tag %q", p.open[n-1].name)
	}
	slices.SortStableFunc(p.ents, func(a, b Entity) int {
		if a.Offset != b.Offset {
			return a.Offset - b.Offset
		}
		return b.Length - a.Length
	})
	return string(p.out), p.ents, nil
}

func (p *parser) put(r rune) {
	p.out = utf8.AppendRune(p.out, r)
	p.units++
	if r > 0xffff {
		p.units++
	}
}

func (p *parser) reference() error {
	at := p.i
	r, n := decodeReference(p.src[p.i:])
	if n > 0 {
		p.put(r)
		p.i += n
		return nil
	}
	if !p.loose {
		return fmt.Errorf("Character '&' is reserved and must be escaped at byte offset %d", at)
	}
	p.put('&')
	p.i++
	return nil
}

// decodeReference reads &lt; &gt; &amp; &quot; and numeric ones; the semicolon may be missing. n is 0 for others.
func decodeReference(s string) (r rune, n int) {
	end := 1
	if strings.HasPrefix(s, "&#") {
		base, from := 10, 2
		if len(s) > 2 && (s[2] == 'x' || s[2] == 'X') {
			base, from = 16, 3
		}
		end = from
		for end < len(s) && end < 10 && strings.IndexByte("0123456789abcdefABCDEF"[:base+6*(base/16)], s[end]) >= 0 {
			end++
		}
		code, err := strconv.ParseUint(s[from:end], base, 32)
		if err != nil || code == 0 || code >= 0x10ffff || (code >= 0xd800 && code < 0xe000) {
			return 0, 0
		}
		r = rune(code)
	} else {
		for end < len(s) && isAlpha(s[end]) {
			end++
		}
		switch s[1:end] {
		case "lt":
			r = '<'
		case "gt":
			r = '>'
		case "amp":
			r = '&'
		case "quot":
			r = '"'
		default:
			return 0, 0
		}
	}
	if end < len(s) && s[end] == ';' {
		end++
	}
	return r, end
}

func (p *parser) startTag() error {
	at := p.i
	p.i++
	name := strings.ToLower(p.until(func(c byte) bool { return isSpace(c) || c == '>' }))
	if p.i >= len(p.src) {
		return fmt.Errorf("Unclosed start tag at byte offset %d", at)
	}
	if entityOf(name) == "" {
		return fmt.Errorf("Unsupported start tag %q at byte offset %d", name, at)
	}
	tag := openTag{name: name, offset: p.units, at: len(p.out)}
	for {
		p.until(func(c byte) bool { return !isSpace(c) })
		if p.i >= len(p.src) {
			return fmt.Errorf("Unclosed start tag at byte offset %d", at)
		}
		if p.src[p.i] == '>' {
			p.i++
			break
		}
		if err := p.attribute(&tag, at); err != nil {
			return err
		}
	}
	if name == "span" && tag.arg != "spoiler" {
		return fmt.Errorf("Tag \"span\" must have class \"tg-spoiler\" at byte offset %d", at)
	}
	p.open = append(p.open, tag)
	return nil
}

func (p *parser) attribute(tag *openTag, at int) error {
	name := p.until(func(c byte) bool { return isSpace(c) || c == '=' || c == '>' })
	if name == "" {
		return fmt.Errorf("Empty attribute name in the tag %q at byte offset %d", tag.name, at)
	}
	p.until(func(c byte) bool { return !isSpace(c) })
	if p.i >= len(p.src) {
		return fmt.Errorf("Unclosed start tag %q at byte offset %d", tag.name, at)
	}
	if p.src[p.i] != '=' {
		if tag.name == "blockquote" && name == "expandable" {
			tag.arg = name
			return nil
		}
		return fmt.Errorf("Expected equal sign in declaration of an attribute of the tag %q at byte offset %d", tag.name, at)
	}
	p.i++
	p.until(func(c byte) bool { return !isSpace(c) })
	if p.i >= len(p.src) {
		return fmt.Errorf("Unclosed start tag %q at byte offset %d", tag.name, at)
	}
	value, err := p.value(at)
	if err != nil {
		return err
	}
	class, isClass := strings.CutPrefix(value, "language-")
	switch {
	case tag.name == "a" && name == "href", tag.name == "tg-emoji" && name == "emoji-id":
		tag.arg = value
	case tag.name == "code" && name == "class" && isClass:
		tag.arg = class
	case tag.name == "span" && name == "class":
		tag.arg = strings.TrimPrefix(value, "tg-")
	}
	return nil
}

func (p *parser) value(at int) (string, error) {
	quote := p.src[p.i]
	if quote != '"' && quote != '\'' {
		from := p.i
		v := p.until(func(c byte) bool { return !isAlpha(c) && (c < '0' || c > '9') && c != '.' && c != '-' })
		if p.i >= len(p.src) || (!isSpace(p.src[p.i]) && p.src[p.i] != '>') {
			return "", fmt.Errorf("Unexpected end of name token at byte offset %d", from)
		}
		return strings.ToLower(v), nil
	}
	p.i++
	var v []byte
	for p.i < len(p.src) && p.src[p.i] != quote {
		if p.src[p.i] == '&' {
			if r, n := decodeReference(p.src[p.i:]); n > 0 {
				v = utf8.AppendRune(v, r)
				p.i += n
				continue
			}
		}
		v = append(v, p.src[p.i])
		p.i++
	}
	if p.i >= len(p.src) {
		return "", fmt.Errorf("Unclosed start tag at byte offset %d", at)
	}
	p.i++
	return string(v), nil
}

func (p *parser) endTag() error {
	at := p.i
	if len(p.open) == 0 {
		return fmt.Errorf("Unexpected end tag at byte offset %d", at)
	}
	p.i += 2
	name := strings.ToLower(p.until(func(c byte) bool { return isSpace(c) || c == '>' }))
	p.until(func(c byte) bool { return !isSpace(c) })
	if p.i >= len(p.src) || p.src[p.i] != '>' {
		return fmt.Errorf("Unclosed end tag at byte offset %d", at)
	}
	p.i++
	tag := p.open[len(p.open)-1]
	if name != "" && name != tag.name {
		return fmt.Errorf("Unmatched end tag at byte offset %d, expected \"</%s>\", found \"</%s>\"", at, tag.name, name)
	}
	p.open = p.open[:len(p.open)-1]
	if p.units > tag.offset {
		return p.entity(tag)
	}
	return nil
}

// entity adds what tag stood for; tags around nothing mean nothing.
func (p *parser) entity(tag openTag) error {
	e := Entity{Type: entityOf(tag.name), Offset: tag.offset, Length: p.units - tag.offset}
	var last *Entity
	if n := len(p.ents); n > 0 && p.ents[n-1].Offset == e.Offset && p.ents[n-1].Length == e.Length {
		last = &p.ents[n-1]
	}
	switch e.Type {
	case "text_link":
		e.URL = tag.arg
		if e.URL == "" {
			e.URL = string(p.out[tag.at:])
		}
		if id, ok := strings.CutPrefix(e.URL, "tg://user?id="); ok {
			n, err := strconv.ParseInt(id, 10, 64)
			if err != nil {
				return nil
			}
			e.Type, e.URL, e.User = "text_mention", "", &User{ID: n}
		} else if !strings.Contains(e.URL, ".") && !strings.Contains(e.URL, ":") {
			return nil // no link: the text stays, the entity goes
		}
	case "custom_emoji":
		if _, err := strconv.ParseUint(tag.arg, 10, 63); err != nil {
			return fmt.Errorf("Invalid custom emoji identifier specified")
		}
		e.Emoji = tag.arg
	case "pre":
		if last != nil && last.Type == "code" {
			last.Type = "pre"
			return nil
		}
	case "code":
		e.Language = tag.arg
	case "blockquote":
		if tag.arg != "" {
			e.Type = "expandable_blockquote"
		}
	}
	p.ents = append(p.ents, e)
	return nil
}

func entityOf(tag string) string {
	switch tag {
	case "b", "strong":
		return "bold"
	case "i", "em":
		return "italic"
	case "u", "ins":
		return "underline"
	case "s", "strike", "del":
		return "strikethrough"
	case "tg-spoiler", "span":
		return "spoiler"
	case "tg-emoji":
		return "custom_emoji"
	case "a":
		return "text_link"
	case "pre", "code", "blockquote":
		return tag
	}
	return ""
}

func (p *parser) until(stop func(byte) bool) string {
	from := p.i
	for p.i < len(p.src) && !stop(p.src[p.i]) {
		p.i++
	}
	return p.src[from:p.i]
}

func isSpace(c byte) bool { return c == ' ' || (c >= '\t' && c <= '\r') || c == 0 }
func isAlpha(c byte) bool { return (c|0x20) >= 'a' && (c|0x20) <= 'z' }
