package command

import (
	_ "embed"
	"fmt"
	"strings"

	"parley/gateway/control"
	"parley/gateway/control/all"
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

func helpText(c *all.Nouns, call control.Call) string {
	return "Write to me as you would to a person. During an answer you can write on, or send /stop.\n\n" + list(c, call) +
		"\n\n/help and a command's name tell more about it."
}

func list(c *all.Nouns, call control.Call) string {
	var b strings.Builder
	for _, cmd := range Shown(c, call) {
		name := "/" + cmd.Name
		if cmd.Args != "" {
			name += " " + cmd.Args
		}
		fmt.Fprintf(&b, "- `%s` — %s\n", name, cmd.Help)
	}
	return strings.TrimRight(b.String(), "\n")
}

func explain(c Command) string {
	s := fmt.Sprintf("`/%s` — %s.\nExample: `%s`", strings.TrimSpace(c.Name+" "+c.Args), c.Help, c.Example)
	if len(c.Aliases) > 0 {
		s += "\nAlso: /" + strings.Join(c.Aliases, ", /")
	}
	if text := c.more(); text != "" {
		s += "\n\n" + text
	}
	return s
}
