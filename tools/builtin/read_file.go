package builtin

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"parley/tools"
	"parley/workspace"
	"parley/workspace/clip"
)

//go:embed read_file.md
var readFileText string

// Limits of read_file.
const (
	maxFile  = 8 << 20  // bytes of a file that may be opened at all
	maxShown = 30 << 10 // bytes of one result: below the loop's own cut, so that this tool says how to go on
	maxLine  = 2000     // characters of one line
)

// readFile shows a text file by lines.
type readFile struct{}

type readFileArgs struct {
	Path   workspace.Path `json:"path"`
	Offset int            `json:"offset,omitempty"` // first line, from 1; 0: the first
	Limit  int            `json:"limit,omitempty"`  // lines; 0: as many as fit
}

func (readFile) Spec() tools.Spec {
	return fileSpec("read_file", readFileText, `{"type":"object","properties":{`+
		`"path":{"type":"string","description":"file, relative to the work folder"},`+
		`"offset":{"type":"integer","minimum":1,"description":"first line"},`+
		`"limit":{"type":"integer","minimum":1,"description":"number of lines"}},`+
		`"required":["path"],"additionalProperties":false}`, workspace.Pure)
}

func (readFile) Call(_ context.Context, c tools.Call) (tools.Result, error) {
	args, err := tools.Decode[readFileArgs](c.Args)
	if err != nil {
		return tools.Result{}, err
	}
	if args.Offset < 0 || args.Limit < 0 {
		return tools.Result{}, workspace.Say(workspace.ErrInvalid, "offset and limit must be 1 or more.")
	}
	root, err := rootOf(c)
	if err != nil {
		return tools.Result{}, err
	}
	data, _, err := root.ReadFile(args.Path, maxFile)
	if err != nil {
		return tools.Result{}, err
	}
	if isBinary(data) {
		return tools.Result{}, workspace.Say(workspace.ErrDenied, "%q is not text: %d bytes of %s.",
			args.Path.String(), len(data), http.DetectContentType(data))
	}
	return tools.TextResult(page(string(data), max(args.Offset, 1), args.Limit)), nil
}

// isBinary looks at the first 8 KiB: a NUL, or more than a tenth of bytes that no text holds.
func isBinary(data []byte) bool {
	head := data[:min(len(data), 8<<10)]
	if bytes.IndexByte(head, 0) >= 0 {
		return true
	}
	odd := 0
	for i := 0; i < len(head); {
		r, n := utf8.DecodeRune(head[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			odd++
		case r < 0x20 && r != '\n' && r != '\r' && r != '\t' && r != '\f' && r != 0x1b:
			odd++
		}
		i += n
	}
	return odd*10 > len(head)
}

// page shows the lines from first on, at most limit of them (0: all), as far as they fit, and says what is left.
func page(text string, first, limit int) string {
	if text == "" {
		return "(the file is empty)"
	}
	if body, ok := strings.CutSuffix(text, "\r\n"); ok { // the CR belongs to the line feed
		text = body
	}
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	if first > len(lines) {
		return fmt.Sprintf("(the file ends at line %d)", len(lines))
	}
	var b strings.Builder
	next := first
	for ; next <= len(lines) && (limit == 0 || next-first < limit); next++ {
		line := workspace.Visible(cutLine(lines[next-1]))
		if b.Len() > 0 && b.Len()+len(line) > maxShown {
			break
		}
		b.WriteString(line)
	}
	if next > len(lines) {
		return b.String()
	}
	return fmt.Sprintf("%s\n(lines %d to %d of %d; go on with offset %d)", strings.TrimSuffix(b.String(), "\n"), first, next-1, len(lines), next)
}

// cutLine keeps the line's end.
func cutLine(line string) string {
	body := strings.TrimSuffix(line, "\n")
	if len(body) <= maxLine || utf8.RuneCountInString(body) <= maxLine {
		return line
	}
	head := clip.First(body, maxLine)
	return fmt.Sprintf("%s… (%d more bytes in this line)%s", head, len(body)-len(head), line[len(body):])
}
