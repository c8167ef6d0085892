// Package file is the verbs about files: those that people upload, those that fill a work folder, and what is held back in the
// folders of owners.
package file

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"time"

	"parley/gateway/control"
	"parley/gateway/rights"
	"parley/gateway/turn"
	"parley/workspace"
	"parley/workspace/blob"
	"parley/workspace/store"
)

// Files does the verbs about files. All fields are needed.
type Files struct {
	*control.Kernel
	Store   Store
	Blobs   *blob.Store
	Work    WorkFolders
	Folders Folders
}

// Store is what these verbs use of it.
type Store interface {
	UploadedSince(p workspace.PersonID, since time.Time) (sum int64, err error)
	AddUpload(u workspace.Upload, since time.Time, most int64) error
	Upload(p workspace.PersonID, ref string) (workspace.Upload, error)
	LastRun(session workspace.SessionID) (workspace.Run, error)
	RunInputs(run workspace.RunID) ([]workspace.Input, error)
	Audit(row workspace.AuditRow) error
}

// WorkFolders is the folders in which turns work. turn.WorkFolders is.
type WorkFolders interface {
	// Work opens the one that a turn of this session by this actor, asked for in this room, has; fs.ErrNotExist: nothing has
	// worked there, and the rest of Work is told all the same.
	Work(key workspace.Key, actor workspace.Actor, room workspace.RoomID) (turn.Work, error)
}

// Filled is what fills the work folder of a session.
type Filled struct {
	Session  string   `json:"session"`
	Path     string   `json:"path"`  // the folder that is looked at, relative to the work folder; "." is all of it
	Bytes    int64    `json:"bytes"` // in the work folder: blocks on the disk, and 4 KiB for each file and folder
	Files    int64    `json:"files"` // and folders, in the work folder
	MaxBytes int64    `json:"max_bytes"`
	MaxFiles int64    `json:"max_files"`
	More     bool     `json:"more,omitempty"` // there is more than was counted
	Items    []Item   `json:"items"`          // directly in the folder, the largest first, at most 20
	Largest  []Item   `json:"largest"`        // files anywhere in the folder, the largest first, at most 20
	Mounted  []string `json:"mounted"`        // owners' folders that are shown in it: neither counted nor removed here
	Shared   bool     `json:"shared"`         // other sessions work in this folder too
	DiskFree int64    `json:"disk_free"`      // bytes; 0: not known
	DiskKept int64    `json:"disk_kept"`      // bytes that stay free: below them nothing is written
	DiskLow  bool     `json:"disk_low"`       // nothing is written at the moment
}

// Item is a file or folder, as it can be removed.
type Item struct {
	Path      string `json:"path"` // relative to the work folder
	Folder    bool   `json:"folder"`
	Bytes     int64  `json:"bytes"`
	Files     int64  `json:"files"`     // in a folder
	Removable bool   `json:"removable"` // false: no path can name it, so that it goes with the folder that it is in
}

// Removed is what a person has removed.
type Removed struct {
	Path    string `json:"path"`
	Removed int64  `json:"removed"` // files and folders
	Audited bool   `json:"audited"` // false: the store takes nothing, so that only the daemon's log tells of it until it does
	Left    Filled `json:"left"`    // what the work folder holds now
}

// owns is what looking into a work folder needs, and clearing it.
var owns = rights.Row{Owner: rights.Direct, Member: rights.OwnDirect, Guest: rights.OwnDirect}

// ShowIn names a folder of a work folder.
type ShowIn struct {
	Session control.SessionWord `path:"key"`
	Path    string              `query:"path" chat:"folder" help:"only what is in this *folder*, relative to the work folder"`
}

// Show tells what fills the work folder of a session, or one folder in it. An empty key is the session that the chat writes into.
var Show = control.Verb[*Files, ShowIn, Filled]{
	Name: "files", Help: "Say what fills the work folder of a session",
	Rights: owns,
	HTTP:   "GET /v1/sessions/{key}/files", Group: "sessions", Chat: "files, files in <folder>", Say: Filled.say,
	Do: func(_ context.Context, c *Files, call control.Call, in ShowIn) (Filled, error) {
		k, work, err := c.workOf(call, in.Session)
		if err != nil {
			return Filled{}, err
		}
		defer work.close()
		v, err := work.view(k, in.Path)
		if err != nil {
			return v, err
		}
		return v, c.Answer(call, v)
	},
}

// RemoveIn names what is removed from a work folder.
type RemoveIn struct {
	Session control.SessionWord `path:"key"`
	Path    string              `query:"path" needed:"true" help:"file or folder, relative to the work folder"`
	Folder  bool                `query:"folder" help:"true: a folder with all that is in it; the path . is then everything"`
}

// Remove removes a file of a session's work folder, or with folder a folder with all that is in it; "." with folder is
// everything. It needs no space, and does not wait for a store that takes nothing.
var Remove = control.Verb[*Files, RemoveIn, Removed]{
	Name: "files.remove", Help: "Remove a file, or a folder with all that is in it, from the work folder of a session", Rights: owns,
	HTTP: "DELETE /v1/sessions/{key}/files", Group: "sessions", Soon: true, Chat: "files rm <path>", Say: Removed.say,
	Parse: func(words []string) (RemoveIn, error) { // a / behind it says that it is a folder
		if len(words) == 0 || words[0] == "" {
			return RemoveIn{}, control.NotTaken("")
		}
		return RemoveIn{Path: words[0], Folder: strings.HasSuffix(words[0], "/")}, nil
	},
	Do: func(ctx context.Context, c *Files, call control.Call, in RemoveIn) (Removed, error) {
		return c.remove(ctx, call, in)
	},
}

func (c *Files) remove(ctx context.Context, call control.Call, in RemoveIn) (Removed, error) {
	k, work, err := c.workOf(call, in.Session)
	if err != nil {
		return Removed{}, err
	}
	defer work.close()
	if work.Root == nil {
		return Removed{}, workspace.Say(workspace.ErrNotFound, "The work folder of this session is empty.")
	}
	if _, err := work.inside(in.Path); err != nil {
		return Removed{}, err
	}
	n, err := work.Root.Remove(ctx, workspace.At(in.Path), in.Folder)
	if n > 0 && err != nil { // a part of it is gone
		c.AuditSoon(ctx, c.removedRow(call, k, in.Path, n))
	}
	if err != nil {
		return Removed{}, work.refused(in.Path, in.Folder, err)
	}
	v := Removed{Path: in.Path, Removed: n, Audited: true}
	if v.Left, err = work.view(k, "."); err != nil {
		c.AuditSoon(ctx, c.removedRow(call, k, in.Path, n))
		return v, err
	}
	row := c.removedRow(call, k, in.Path, n)
	if call.Input != nil {
		_, err := c.Commit(call, func(store.Did) any { return v }, store.AuditRows{row})
		return v, err
	}
	v.Audited = c.AuditSoon(ctx, row)
	return v, nil
}

func (c *Files) removedRow(call control.Call, k workspace.Key, path string, n int64) workspace.AuditRow {
	what := map[string]any{"session": k.String(), "agent": string(k.Agent), "path": workspace.Line(path, workspace.MaxPath), "removed": n}
	return c.AuditRow(call, workspace.AuditFilesRemoved, what)
}

// workOf opens the work folder of a session: in a chat the one that a turn of the caller works in; else the one of the session's
// last turn. Others than owners get to none that is not theirs alone.
func (c *Files) workOf(call control.Call, key control.SessionWord) (workspace.Key, *openWork, error) {
	k, actor, room := call.Session, call.Actor, call.Room
	if key != "" {
		ses, err := c.Find.Session(call, key)
		if err != nil {
			return k, nil, err
		}
		k, room = ses.Key, ""
		if call.Owner() {
			if actor, room, err = c.lastAsked(ses, actor); err != nil {
				return k, nil, err
			}
		}
	}
	w, err := c.Work.Work(k, actor, room)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return k, nil, err
	}
	work := &openWork{w}
	if w.Everyone && !call.Owner() {
		work.close()
		return k, nil, workspace.Say(workspace.ErrDenied,
			"All who write to this agent share its work folder, so only owners may look into it and clear it.")
	}
	return k, work, nil
}

// lastAsked is who asked for the last turn of a session, and where; the caller, while there was none.
func (c *Files) lastAsked(ses workspace.Session, caller workspace.Actor) (workspace.Actor, workspace.RoomID, error) {
	run, err := c.Store.LastRun(ses.ID)
	if errors.Is(err, workspace.ErrNotFound) {
		return caller, "", nil
	}
	if err != nil {
		return caller, "", err
	}
	inputs, err := c.Store.RunInputs(run.ID)
	if err != nil || len(inputs) == 0 {
		return workspace.Actor{Person: run.Requester, Role: run.Role}, "", err
	}
	return workspace.Actor{Person: run.Requester, Role: run.Role}, inputs[0].RoomID, nil
}
