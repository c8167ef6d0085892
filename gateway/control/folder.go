package control

import (
	"context"
	"errors"
	"path"
	"strings"

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

// ListFolders lists the folders that agents may write.
func (c *Control) ListFolders(_ context.Context, call Call) ([]FolderItem, error) {
	if err := c.may(call, "folder.list"); err != nil {
		return nil, err
	}
	list := []FolderItem{}
	for _, f := range c.Folders.Writable() {
		it := FolderItem{Name: f.As, Agent: string(f.Agent), Held: []workspace.Held{}}
		if s, err := c.Folders.Look(f.Dir); err != nil {
			it.ReadOnly = "it cannot be opened"
		} else {
			it.Control, it.ReadOnly, it.Held = s.Control, s.Closed, append(it.Held, s.Held...)
		}
		list = append(list, it)
	}
	return list, nil
}

// AcceptHeld makes a control path that a command made the owner's: programs of the host obey it from then on. which is its own
// path in the folder, or the one that it has now. agent says whose folder is meant; empty: there is one of that name.
func (c *Control) AcceptHeld(_ context.Context, call Call, name string, agent workspace.AgentID, which string) (workspace.Held, error) {
	if err := c.may(call, "folder.accept"); err != nil {
		return workspace.Held{}, err
	}
	var dir string
	for _, f := range c.Folders.Writable() {
		if f.As != name || agent != "" && f.Agent != agent {
			continue
		}
		if dir != "" && dir != f.Dir {
			return workspace.Held{}, workspace.Say(workspace.ErrInvalid, "Several agents have a folder %q; say which agent's.", workspace.Line(name, 60))
		}
		dir = f.Dir
	}
	if dir == "" {
		return workspace.Held{}, workspace.Say(workspace.ErrNotFound, "No agent may write a folder %q.", workspace.Line(name, 60))
	}
	held, err := c.Folders.Accept(dir, strings.TrimPrefix(path.Clean("/"+which), "/"))
	switch {
	case errors.Is(err, workspace.ErrNotFound):
		return held, workspace.Say(err, "Nothing at %q in folder %q was renamed.", workspace.Line(which, 200), name)
	case errors.Is(err, workspace.ErrConflict):
		return held, workspace.Say(err, "Something else has the name %q by now.", workspace.Line(which, 200))
	case err != nil:
		return held, err
	}
	return held, c.Store.Audit(c.auditRow(call, workspace.AuditControlAccepted, map[string]any{"folder": dir, "path": held.Path, "was": held.Now}))
}
