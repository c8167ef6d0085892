// Package builtin holds the tools that come with the gateway, a file each, with the text that the model reads of
// it beside it. They see the host through the turn's workspace.Root alone. It is not the place for policy: who
// may use a tool is decided before it is called. It starts no goroutine.
package builtin

import (
	"encoding/json"
	"errors"
	"strings"

	"parley/tools"
	"parley/workspace"
)

// Files lists the tools that need nothing but the work folder.
func Files() []tools.Tool {
	return []tools.Tool{readFile{}, writeFile{}, editFile{}, removeFile{}, listDir{}, resolvePath{}}
}

// fileSpec describes a tool of the work folder that takes its path as "path".
func fileSpec(name, description, schema string, effect workspace.Effect) tools.Spec {
	return tools.Spec{
		Name: name, Description: strings.TrimSpace(description), Schema: json.RawMessage(schema),
		Effect: effect, Group: tools.GroupFiles, Roots: []string{"path"},
	}
}

var errNoRoot = errors.New("the turn has no work folder")

// rootOf is the turn's work folder.
func rootOf(c tools.Call) (*workspace.Root, error) {
	if c.Root == nil {
		return nil, workspace.Say(errNoRoot, "There is no work folder in this conversation.")
	}
	return c.Root, nil
}
