package command

import (
	_ "embed"
	"strings"
)

// moreText is what else there is to know of commands, one section each: for /help with a name, and for docs/commands.md.
//
//go:embed more.md
var moreText string

// more is the command's section, as one paragraph.
func (c Command) more() string {
	_, text, found := strings.Cut("\n"+moreText, "\n## "+c.Name+"\n")
	if !found {
		return ""
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return strings.Join(strings.Fields(text), " ")
}
