package builtin

import (
	"context"
	_ "embed"
	"fmt"

	"parley/tools"
	"parley/workspace"
)

// RemoveName is what the tool that removes files is called.
const RemoveName = "remove_file"

//go:embed remove_file.md
var removeFileText string

// removeFile removes a file or a folder. Its effect class is outside: what has the name by then may be another file.
type removeFile struct{}

type removeFileArgs struct {
	Path   workspace.Path `json:"path"`
	Folder bool           `json:"folder,omitempty"`
}

func (removeFile) Spec() tools.Spec {
	return fileSpec(RemoveName, removeFileText, `{"type":"object","properties":{`+
		`"path":{"type":"string","description":"file or folder, relative to the work folder"},`+
		`"folder":{"type":"boolean","description":"remove a folder with all that is in it; left out: files only"}},`+
		`"required":["path"],"additionalProperties":false}`, workspace.Outside)
}

func (removeFile) Call(ctx context.Context, c tools.Call) (tools.Result, error) {
	args, err := tools.Decode[removeFileArgs](c.Args)
	if err != nil {
		return tools.Result{}, err
	}
	root, err := rootOf(c)
	if err != nil {
		return tools.Result{}, err
	}
	removed, err := root.Remove(ctx, args.Path, args.Folder)
	if err != nil {
		return tools.Result{}, err
	}
	if removed == 1 {
		return tools.TextResult(fmt.Sprintf("Removed %s.", args.Path)), nil
	}
	return tools.TextResult(fmt.Sprintf("Removed %s (%d files and folders).", args.Path, removed)), nil
}
