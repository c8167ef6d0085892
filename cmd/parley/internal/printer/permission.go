// A question to people, and what it came to.

package printer

import (
	"fmt"
	"strings"

	"parley/cmd/parley/internal/cli"
)

// Permission is what an event tells of a question.
type Permission struct {
	ID     string   `json:"id"`
	Short  string   `json:"short"`
	Tool   string   `json:"tool"`
	Domain string   `json:"domain"`
	State  string   `json:"state"`
	Text   string   `json:"text"`
	Grant  string   `json:"grant"`
	Grants []string `json:"grants"`
	Allows string   `json:"allows"`
	By     string   `json:"decided_by"`
	Via    string   `json:"via"`
	Reason string   `json:"reason"`
}

// permission shows a question whole, with how to answer it, and later what it came to.
func (p *Printer) permission(kind string, q Permission) {
	if kind == "permission.requested" {
		owner := ""
		if q.Domain != "" {
			owner = " It belongs to " + cli.Visible(q.Domain) + "."
		}
		short, allows := cli.Visible(q.Short), ""
		if q.Allows != "" {
			allows = "\nsession allows " + cli.Visible(q.Allows)
		}
		p.Note(cli.Yellow, fmt.Sprintf("May I use %s?%s\n%s%s\nIt waits for an answer: /approve %s %s in another chat, or %s",
			cli.Visible(q.Tool), owner, cli.VisibleText(q.Text), allows, short, strings.Join(append(q.Grants, "deny"), "|"),
			cli.Hinted("parley approval approve "+short)))
		return
	}
	text := fmt.Sprintf("approval %s: %s", cli.Visible(q.Short), cli.Visible(q.State))
	for _, more := range []string{q.By, q.Via, q.Reason} {
		if more != "" {
			text += ", " + cli.Visible(more)
		}
	}
	p.Note(cli.Dim, text)
}
