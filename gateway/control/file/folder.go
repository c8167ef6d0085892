package file

import (
	"cmp"
	"context"
	"errors"
	"path"
	"strconv"
	"strings"

	"parley/gateway/control"
	"parley/gateway/rights"
	"parley/gateway/spec"
	"parley/workspace"
)

// OwnerFolder is a directory of an owner that an agent may write.
type OwnerFolder struct {
	Agent workspace.AgentID
	workspace.Folder
}

// FolderState is how a folder is.
type FolderState struct {
	Control int    // paths that agents may not write
	Closed  string // why commands get it read-only; empty: they may write
	Held    []workspace.Held
}

// Folders is what looks after owners' folders.
type Folders interface {
	// Writable lists those that agents may write.
	Writable() []OwnerFolder
	Look(dir string) (FolderState, error)
	// Accept gives what was renamed its own name again; workspace.ErrNotFound: nothing of that path was renamed;
	// workspace.ErrConflict: something else has the name.
	Accept(dir, path string) (workspace.Held, error)
}

// FolderItem is a folder that an agent may write, as owners see it.
type FolderItem struct {
	Name     string           `json:"name"` // in the work folder
	Agent    string           `json:"agent"`
	Control  int              `json:"control"`             // paths in it that agents may not write
	ReadOnly string           `json:"read_only,omitempty"` // why commands may not write it at all
	Held     []workspace.Held `json:"held"`                // what commands made, under another name until it is accepted
}

var ListFolders = control.Verb[*Files, struct{}, spec.List[FolderItem]]{
	Name: "folder.list", Help: "List the folders of owners that agents may write, and what is held back in them", Rights: rights.Owners,
	HTTP: "GET /v1/folders", Group: "agents", CLI: "folder list",
	Do: func(_ context.Context, c *Files, _ control.Call, _ struct{}) (spec.List[FolderItem], error) {
		var list []FolderItem
		for _, f := range c.Folders.Writable() {
			it := FolderItem{Name: f.As, Agent: string(f.Agent), Held: []workspace.Held{}}
			if s, err := c.Folders.Look(f.Dir); err != nil {
				it.ReadOnly = "it cannot be opened"
			} else {
				it.Control, it.ReadOnly, it.Held = s.Control, s.Closed, append(it.Held, s.Held...)
			}
			list = append(list, it)
		}
		return spec.Whole(list), nil
	},
	Show: func(_ struct{}, l spec.List[FolderItem]) spec.Shown {
		s := spec.Shown{Heads: []string{"FOLDER", "AGENT", "STATE OR PATH", "RENAMED TO"}}
		for _, f := range l.Items {
			s.Rows = append(s.Rows, []any{f.Name, f.Agent, cmp.Or(f.ReadOnly, strconv.Itoa(f.Control)+" protected"), ""})
			for _, h := range f.Held {
				s.Rows = append(s.Rows, []any{f.Name, f.Agent, h.Path, h.Now})
			}
		}
		return s
	},
}

// AcceptIn names what a command made in a folder.
type AcceptIn struct {
	Name  string            `path:"name"`
	Path  string            `json:"path" help:"in the folder: its own, or the one that it has now"`
	Agent workspace.AgentID `json:"agent,omitempty" help:"*id* of the agent whose folder it is; left out: there is one of that name"`
}

// AcceptHeld makes a control path that a command made the owner's: programs of the host obey it from then on.
var AcceptHeld = control.Verb[*Files, AcceptIn, workspace.Held]{
	Name: "folder.accept", Help: "Give what a command made in a folder its own name again", Rights: rights.Owners,
	Long: "Give what a command made in the folder NAME, and was renamed since programs of this machine take orders from it, its own name " +
		"again.\nLook at it first: from then on git, shells and editors obey it.",
	HTTP: "POST /v1/folders/{name}/accept", Group: "agents", CLI: "folder accept <name> <path>",
	Do: func(_ context.Context, c *Files, call control.Call, in AcceptIn) (workspace.Held, error) {
		dir, err := c.ownFolder(in.Name, in.Agent)
		if err != nil {
			return workspace.Held{}, err
		}
		held, err := c.Folders.Accept(dir, strings.TrimPrefix(path.Clean("/"+in.Path), "/"))
		switch {
		case errors.Is(err, workspace.ErrNotFound):
			return held, workspace.Say(err, "Nothing at %q in folder %q was renamed.", workspace.Line(in.Path, 200), in.Name)
		case errors.Is(err, workspace.ErrConflict):
			return held, workspace.Say(err, "Something else has the name %q by now.", workspace.Line(in.Path, 200))
		case err != nil:
			return held, err
		}
		what := map[string]any{"folder": dir, "path": held.Path, "was": held.Now}
		return held, c.Store.Audit(c.AuditRow(call, workspace.AuditControlAccepted, what))
	},
	Show: func(_ AcceptIn, h workspace.Held) spec.Shown { return spec.Shown{Line: h.Path + " has its name again"} },
}

// ownFolder is where an owner's folder is. agent says whose is meant; empty: there is one of that name.
func (c *Files) ownFolder(name string, agent workspace.AgentID) (dir string, err error) {
	for _, f := range c.Folders.Writable() {
		if f.As != name || agent != "" && f.Agent != agent {
			continue
		}
		if dir != "" && dir != f.Dir {
			return "", workspace.Say(workspace.ErrInvalid, "Several agents have a folder %q; say which agent's.", workspace.Line(name, 60))
		}
		dir = f.Dir
	}
	if dir == "" {
		return "", workspace.Say(workspace.ErrNotFound, "No agent may write a folder %q.", workspace.Line(name, 60))
	}
	return dir, nil
}
