package agentloop

import (
	"strings"

	"parley/workspace"
	"parley/workspace/lazy"
)

// The tag that marks text of others in a prompt. Its name is rare, so that making it harmless in the text changes
// next to no file.
const (
	outsideOpen  = "<outside-text from="
	outsideClose = "</outside-text>"
)

var outsideTag = lazy.Regexp(`(?i)<([\s/]*outside-text)`)

// Outside wraps text that is data and never an instruction (a tool's result, a file, a quoted message) so that the
// model sees where it begins and ends. The text cannot forge the marks: an occurrence in it loses its "<".
func Outside(from, text string) string {
	from = strings.NewReplacer(`"`, "'", "<", "‹", ">", "›").Replace(workspace.Line(from, 80))
	text = outsideTag().ReplaceAllString(text, "‹$1")
	return outsideOpen + `"` + from + "\">\n" + text + "\n" + outsideClose
}

// Quoted is what others said, as a turn may quote it: one block a line, in order. It adds no rights.
func Quoted(lines []workspace.ContextLine) string {
	blocks := make([]string, len(lines))
	for i, l := range lines {
		from := "message of " + l.Name
		switch l.Quote {
		case workspace.QuoteOther:
			if from = "quoted message"; l.Name != "" {
				from += " of " + l.Name
			}
		case workspace.QuoteOwn:
			from = "quoted from you" // which no name makes: theirs stand behind other words
		}
		blocks[i] = Outside(from, workspace.Visible(l.Text))
	}
	return strings.Join(blocks, "\n")
}
