package workspace

import (
	"cmp"
	"strings"

	"parley/workspace/clip"
)

// maxLabel is how many characters of a name are shown where somebody decides by it.
const maxLabel = 40

// Who names a person to whoever decides or judges by it: the id and the role first, which that person cannot choose, and
// behind them, in quotes that it cannot end, the name by which the person goes. All that shows who asked for something
// shows it so. The text is plain and stays so where it is read as Markdown.
func Who(id PersonID, role Role, name string) string {
	s := cmp.Or(idOf(string(id)), "nobody known") + " (" + cmp.Or(string(role), "no role") + ")"
	if name != "" && name != string(id) {
		s += " " + Label(name)
	}
	return s
}

// Named is Who where the role that held then is not known any more.
func Named(id PersonID, name string) string {
	if name == "" || name == string(id) {
		return idOf(string(id))
	}
	return idOf(string(id)) + " " + Label(name)
}

// Stranger names somebody who is not known here: the network's own id of them, which does not change, then the name.
func Stranger(network, user, name string) string {
	s := idOf(network) + " user " + idOf(user)
	if name != "" && name != user {
		s += " " + Label(name)
	}
	return s
}

// Label is a name that somebody chose, in quotes: no quote, markup or line in it, and what is not to be seen made visible.
func Label(name string) string { return `"` + plainly(name, maxLabel) + `"` }

// markup has what a name could write for quotes, or that Markdown would act upon, and what stands for it.
var markup = strings.NewReplacer(`"`, "'", "“", "'", "”", "'", "„", "'", "‟", "'", "«", "'", "»", "'", "＂", "'", "″", "'", "〝", "'", "〞", "'",
	"*", "∗", "_", "＿", "`", "ˋ", "[", "(", "]", ")", "~", "∼", "<", "‹", ">", "›", "\\", "∖", "|", "ǀ", "&", "＆", "://", ":∕∕", "\n", "␊", "\t", "␉")

func plainly(s string, most int) string {
	return clip.Runes(markup.Replace(Exact(clip.Runes(s, most))), 2*most)
}

// idOf is an id that the network or the operator gave.
func idOf(s string) string { return Line(Exact(s), 80) }
