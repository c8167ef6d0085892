package markup

import "strings"

// Line is what Markdown says, on one line and without any mark: what a list shows of a message.
func Line(md string) (s string) {
	for _, l := range Parse(md).leaves {
		for _, r := range append(l.runs, run{kind: breakRun}) {
			if s += r.text; r.kind != textRun {
				s += " "
			}
		}
	}
	return strings.Join(strings.Fields(s), " ")
}
