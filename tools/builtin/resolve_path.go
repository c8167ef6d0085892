package builtin

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"parley/tools"
	"parley/workspace"
)

//go:embed resolve_path.md
var resolvePathText string

// resolvePath says where a document belongs.
type resolvePath struct{}

type resolvePathArgs struct {
	Kind     string         `json:"kind"`
	Filename workspace.Path `json:"filename"`
}

func (resolvePath) Spec() tools.Spec {
	s := fileSpec("resolve_path", resolvePathText, `{"type":"object","properties":{`+
		`"kind":{"type":"string","enum":["requirements","tasks","docs"]},`+
		`"filename":{"type":"string","description":"file name without folders"}},`+
		`"required":["kind","filename"],"additionalProperties":false}`, workspace.Pure)
	s.Roots = []string{"filename"}
	return s
}

func (resolvePath) Call(_ context.Context, c tools.Call) (tools.Result, error) {
	args, err := tools.Decode[resolvePathArgs](c.Args)
	if err != nil {
		return tools.Result{}, err
	}
	switch args.Kind {
	case "requirements", "tasks", "docs":
	default:
		return tools.Result{}, workspace.Say(workspace.ErrInvalid, "kind must be requirements, tasks or docs.")
	}
	root, err := rootOf(c)
	if err != nil {
		return tools.Result{}, err
	}
	clean, err := root.Resolve(args.Filename)
	if err != nil {
		return tools.Result{}, err
	}
	if clean == "." || !args.Filename.Plain() {
		return tools.Result{}, workspace.Say(workspace.ErrInvalid, "filename must be a plain name without folders.")
	}
	at := args.Kind + "/" + clean
	info, err := root.Stat(workspace.At(at))
	switch {
	case errors.Is(err, workspace.ErrNotFound):
		return tools.TextResult(at + "\n(does not exist yet)"), nil
	case err != nil:
		return tools.Result{}, err
	case info.Kind != workspace.KindFile:
		return tools.Result{}, workspace.Say(workspace.ErrDenied, "%q is taken by something that is not a file.", at)
	}
	return tools.TextResult(fmt.Sprintf("%s\n(exists, %d bytes)", at, info.Size)), nil
}
