// What a command writes while it runs.

package printer

import (
	"fmt"
	"strings"

	"parley/cmd/parley/internal/cli"
)

// output is the end of what a command has written.
type output struct {
	ItemID string `json:"item_id"`
	Text   string `json:"text"`
	Lines  int64  `json:"lines"`
}

// output prints the lines that were ended since it was called last, as far as they are told.
func (p *Printer) output(o output) {
	if p.wrote.ItemID != o.ItemID {
		p.wrote = output{ItemID: o.ItemID}
	}
	fresh := o.Lines - p.wrote.Lines
	end := strings.LastIndexByte(o.Text, '\n')
	if fresh <= 0 || end < 0 {
		return
	}
	p.wrote.Lines = o.Lines
	lines := strings.Split(o.Text[:end], "\n")
	if more := fresh - int64(len(lines)); more > 0 {
		p.Note(cli.Dim, fmt.Sprintf("  … (%d lines more)", more))
	} else {
		lines = lines[-more:]
	}
	for _, l := range lines {
		p.Note(cli.Dim, "  "+l)
	}
}
