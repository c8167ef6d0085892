package builtin

import (
	"context"
	_ "embed"
	"fmt"

	"parley/tools"
	"parley/workspace"
)

//go:embed write_file.md
var writeFileText string

// writeFile puts a text into a file. Its effect class is outside: another process may have read the file, or changed it,
// between a crash and a second write.
type writeFile struct{}

type writeFileArgs struct {
	Path    workspace.Path `json:"path"`
	Content string         `json:"content"`
}

func (writeFile) Spec() tools.Spec {
	return fileSpec("write_file", writeFileText, `{"type":"object","properties":{`+
		`"path":{"type":"string","description":"file, relative to the work folder"},`+
		`"content":{"type":"string","description":"the whole new text"}},`+
		`"required":["path","content"],"additionalProperties":false}`, workspace.Outside)
}

func (writeFile) Call(_ context.Context, c tools.Call) (tools.Result, error) {
	args, err := tools.Decode[writeFileArgs](c.Args)
	if err != nil {
		return tools.Result{}, err
	}
	root, err := rootOf(c)
	if err != nil {
		return tools.Result{}, err
	}
	created, err := root.WriteFile(args.Path, []byte(args.Content))
	if err != nil {
		return tools.Result{}, sayFull(root, err)
	}
	did := "replaced"
	if created {
		did = "new"
	}
	return tools.TextResult(fmt.Sprintf("Wrote %s (%s, %d bytes).", args.Path, did, len(args.Content))), nil
}
