package markup

import "parley/channels"

// look is how a dialect writes things.
type look struct {
	family  family
	dialect channels.Dialect
	bold    string // delimiters; empty: the look is not shown
	italic  string
	strike  string
	code    int  // longest run of backticks around code in a line; 0: such code is not marked
	fence   int  // longest run of backticks around a code block; 0: it is not marked
	levels  int  // headings are written as # down to this level, below as bold
	tables  bool // | tables | are understood; else they are code
	nested  bool // code blocks may stand inside list items
	shift   bool // no indentation for an item that is not open in this part: it would make code
	perLine bool // a look ends at the line's end
	bullet  string
	box     bool // "[x]" of a task list is understood
	boxOnly bool // a task has no bullet before its box
	rule    string
}

// family says which characters mean something.
type family uint8

const (
	bare family = iota // none
	html
	marked // those of Markdown
)

// lookOf is a dialect's look; an unknown dialect is plain.
func lookOf(d channels.Dialect) look {
	l := look{dialect: d, bullet: "- ", rule: "———"}
	switch d {
	case channels.Telegram:
		l.family, l.bullet, l.boxOnly, l.nested = html, "• ", true, true
		l.bold, l.italic, l.strike, l.code, l.fence = "b", "i", "s", 1, 3
	case channels.Markdown:
		l.family, l.bold, l.italic, l.strike, l.code, l.fence = marked, "**", "*", "~~", 16, 16
		l.levels, l.tables, l.nested, l.shift, l.box, l.rule = 6, true, true, true, true, "---"
	case channels.Slack:
		l.family, l.bold, l.italic, l.strike, l.code, l.fence = marked, "**", "*", "~~", 2, 3
		l.levels, l.shift, l.rule = 6, true, "---"
	case channels.Discord:
		l.family, l.bold, l.italic, l.strike, l.code, l.fence = marked, "**", "*", "~~", 2, 3
		l.levels, l.shift = 3, true
	case channels.WhatsApp:
		l.bold, l.italic, l.strike, l.code, l.fence, l.perLine = "*", "_", "~", 1, 3, true
	default:
		l.dialect, l.bullet, l.boxOnly, l.nested = channels.Plain, "• ", true, true
	}
	return l
}
