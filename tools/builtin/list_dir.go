package builtin

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"parley/tools"
	"parley/workspace"
)

//go:embed list_dir.md
var listDirText string

const maxEntries = 500

// listDir names what a folder holds.
type listDir struct{}

type listDirArgs struct {
	Path workspace.Path `json:"path"`
}

func (listDir) Spec() tools.Spec {
	return fileSpec("list_dir", listDirText, `{"type":"object","properties":{`+
		`"path":{"type":"string","description":"folder, relative to the work folder; . is the work folder"}},`+
		`"required":["path"],"additionalProperties":false}`, workspace.Pure)
}

func (listDir) Call(_ context.Context, c tools.Call) (tools.Result, error) {
	args, err := tools.Decode[listDirArgs](c.Args)
	if err != nil {
		return tools.Result{}, err
	}
	root, err := rootOf(c)
	if err != nil {
		return tools.Result{}, err
	}
	entries, more, err := root.List(args.Path, maxEntries)
	if err != nil {
		return tools.Result{}, err
	}
	if len(entries) == 0 {
		return tools.TextResult("(the folder is empty)"), nil
	}
	var b strings.Builder
	for _, e := range entries {
		name := workspace.Line(e.Name, 255)
		switch e.Kind {
		case workspace.KindDir:
			fmt.Fprintf(&b, "%s/\n", name)
		case workspace.KindLink:
			fmt.Fprintf(&b, "%s@\n", name)
		case workspace.KindFile:
			fmt.Fprintf(&b, "%s  %d\n", name, e.Size)
		default:
			fmt.Fprintf(&b, "%s  (special file)\n", name)
		}
	}
	if more {
		fmt.Fprintf(&b, "(there are more; %d are shown)\n", len(entries))
	}
	return tools.TextResult(b.String()), nil
}
