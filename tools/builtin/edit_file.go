package builtin

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"parley/tools"
	"parley/workspace"
)

//go:embed edit_file.md
var editFileText string

// editFile replaces a text in a file. Its effect class is outside, for done twice it would change the next occurrence.
type editFile struct{}

type editFileArgs struct {
	Path    workspace.Path `json:"path"`
	OldText string         `json:"old_text"`
	NewText string         `json:"new_text"`
}

func (editFile) Spec() tools.Spec {
	return fileSpec("edit_file", editFileText, `{"type":"object","properties":{`+
		`"path":{"type":"string","description":"file, relative to the work folder"},`+
		`"old_text":{"type":"string","description":"text that stands in the file"},`+
		`"new_text":{"type":"string","description":"what takes its place"}},`+
		`"required":["path","old_text","new_text"],"additionalProperties":false}`, workspace.Outside)
}

func (editFile) Call(_ context.Context, c tools.Call) (tools.Result, error) {
	args, err := tools.Decode[editFileArgs](c.Args)
	switch {
	case err != nil:
		return tools.Result{}, err
	case args.OldText == "":
		return tools.Result{}, workspace.Say(workspace.ErrInvalid, "old_text is empty; to write a whole file use write_file.")
	case args.OldText == args.NewText:
		return tools.Result{}, workspace.Say(workspace.ErrInvalid, "old_text and new_text are the same, so nothing would change.")
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
		return tools.Result{}, workspace.Say(workspace.ErrDenied, "%q is not text, so it cannot be edited.", args.Path.String())
	}
	text, old, next := string(data), args.OldText, args.NewText
	if strings.Contains(text, "\r\n") && !strings.Contains(text, old) { // read_file shows such lines without their CR
		old, next = withCR(old), withCR(next)
	} else if strings.Contains(text, "\r\n") && strings.Count(text, "\r\n") == strings.Count(text, "\n") {
		next = withCR(next) // all its lines end so, and the new ones too
	}
	at := strings.Index(text, old)
	if at < 0 {
		return tools.Result{}, workspace.Say(workspace.ErrNotFound, "old_text does not stand in %q, so nothing was changed%s.", args.Path.String(), near(text, args.OldText))
	}
	if _, err := root.WriteFile(args.Path, []byte(text[:at]+next+text[at+len(old):])); err != nil {
		return tools.Result{}, sayFull(root, err)
	}
	line := strings.Count(text[:at], "\n") + 1
	said := fmt.Sprintf("Changed %s at line %d.", args.Path, line)
	if n := strings.Count(text, old); n > 1 {
		said += fmt.Sprintf(" old_text stood there %d times; only the first was changed. To change another, give more of the text around it.", n)
	}
	return tools.TextResult(said), nil
}

func withCR(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n")
}

// near says where a text stands that differs in white space only.
func near(text, old string) string {
	want := strings.Fields(old)
	if len(want) == 0 || len(want) > 2000 {
		return "; read the file again"
	}
	first, _, _ := strings.Cut(strings.TrimLeft(old, " \t\r\n"), "\n")
	first = strings.Join(strings.Fields(first), " ")
	for i, line := range strings.Split(text, "\n") {
		if strings.Contains(strings.Join(strings.Fields(line), " "), first) {
			return fmt.Sprintf("; its first line stands at line %d, but white space or what follows differs: read it again and copy it exactly", i+1)
		}
	}
	return "; read the file again"
}
