package control

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"parley/gateway/turn"
	"parley/workspace"
	"parley/workspace/disk"
	"parley/workspace/store"
)

// Files is what fills the work folder of a session.
type Files struct {
	Session  string     `json:"session"`
	Path     string     `json:"path"`  // the folder that is looked at, relative to the work folder; "." is all of it
	Bytes    int64      `json:"bytes"` // in the work folder: blocks on the disk, and 4 KiB for each file and folder
	Files    int64      `json:"files"` // and folders, in the work folder
	MaxBytes int64      `json:"max_bytes"`
	MaxFiles int64      `json:"max_files"`
	More     bool       `json:"more,omitempty"` // there is more than was counted
	Items    []FileItem `json:"items"`          // directly in the folder, the largest first, at most 20
	Largest  []FileItem `json:"largest"`        // files anywhere in the folder, the largest first, at most 20
	Mounted  []string   `json:"mounted"`        // owners' folders that are shown in it: neither counted nor removed here
	Shared   bool       `json:"shared"`         // other sessions work in this folder too
	DiskFree int64      `json:"disk_free"`      // bytes; 0: not known
	DiskKept int64      `json:"disk_kept"`      // bytes that stay free: below them nothing is written
	DiskLow  bool       `json:"disk_low"`       // nothing is written at the moment
}

// FileItem is a file or folder, as it can be removed.
type FileItem struct {
	Path      string `json:"path"` // relative to the work folder
	Folder    bool   `json:"folder"`
	Bytes     int64  `json:"bytes"`
	Files     int64  `json:"files"`     // in a folder
	Removable bool   `json:"removable"` // false: no path can name it, so that it goes with the folder that it is in
}

// FilesRemoved is what a person has removed.
type FilesRemoved struct {
	Path    string `json:"path"`
	Removed int64  `json:"removed"` // files and folders
	Audited bool   `json:"audited"` // false: the store takes nothing, so that only the daemon's log tells of it until it does
	Left    Files  `json:"left"`    // what the work folder holds now
}

// Files tells what fills the work folder of a session, or one folder in it. An empty key is the session that the chat writes into.
func (c *Control) Files(ctx context.Context, call Call, key SessionWord, path string) (Files, error) {
	if err := c.may(call, "files"); err != nil {
		return Files{}, err
	}
	k, work, err := c.workOf(call, key)
	if err != nil {
		return Files{}, err
	}
	defer work.close()
	v, err := work.view(k, path)
	if err != nil {
		return v, err
	}
	return v, c.answer(call, v)
}

// RemoveFile removes a file of a session's work folder, or with folder a folder with all that is in it; "." with folder is
// everything. It needs no space, and does not wait for a store that takes nothing.
func (c *Control) RemoveFile(ctx context.Context, call Call, key SessionWord, path string, folder bool) (FilesRemoved, error) {
	if err := c.may(call, "files.remove"); err != nil {
		return FilesRemoved{}, err
	}
	k, work, err := c.workOf(call, key)
	if err != nil {
		return FilesRemoved{}, err
	}
	defer work.close()
	if work.Root == nil {
		return FilesRemoved{}, workspace.Say(workspace.ErrNotFound, "The work folder of this session is empty.")
	}
	if _, err := work.inside(path); err != nil {
		return FilesRemoved{}, err
	}
	n, err := work.Root.Remove(ctx, workspace.At(path), folder)
	if n > 0 && err != nil { // a part of it is gone
		c.auditSoon(ctx, call, c.removedRow(call, k, path, n))
	}
	if err != nil {
		return FilesRemoved{}, work.refused(path, folder, err)
	}
	v := FilesRemoved{Path: path, Removed: n, Audited: true}
	if v.Left, err = work.view(k, "."); err != nil {
		c.auditSoon(ctx, call, c.removedRow(call, k, path, n))
		return v, err
	}
	row := c.removedRow(call, k, path, n)
	if call.Input != nil {
		_, err := c.commit(call, func(store.Did) any { return v }, store.AuditRows{row})
		return v, err
	}
	v.Audited = c.auditSoon(ctx, call, row)
	return v, nil
}

func (c *Control) removedRow(call Call, k workspace.Key, path string, n int64) workspace.AuditRow {
	return c.auditRow(call, workspace.AuditFilesRemoved, map[string]any{"session": k.String(), "agent": string(k.Agent), "path": workspace.Line(path, workspace.MaxPath), "removed": n})
}

// auditWithin is how long an act that is done waits for its row.
const auditWithin = 2 * time.Second

// auditSoon stores the row of an act that is done, and says whether it is stored. One that is not stored yet is kept in memory
// until the store can be written; the log has it in case the process ends before that.
func (c *Control) auditSoon(ctx context.Context, call Call, row workspace.AuditRow) bool {
	err := c.Store.AuditSoon(ctx, row, auditWithin)
	if err != nil && c.Logger != nil {
		c.Logger.Error("audit row is not stored yet", "kind", row.Kind, "actor", row.Actor, "via", call.via(), "what", row.What, "err", err)
	}
	return err == nil
}

// workOf opens the work folder of a session: in a chat the one that a turn of the caller works in; else the one of the session's
// last turn. Others than owners get to none that is not theirs alone.
func (c *Control) workOf(call Call, key SessionWord) (workspace.Key, *openWork, error) {
	k, actor, room := call.Session, call.Actor, call.Room
	if key != "" {
		ses, err := c.find(call, key)
		if err != nil {
			return k, nil, err
		}
		k, room = ses.Key, ""
		if owner(call) {
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
	if w.Everyone && !owner(call) {
		work.close()
		return k, nil, workspace.Say(workspace.ErrDenied, "All who write to this agent share its work folder, so only owners may look into it and clear it.")
	}
	return k, work, nil
}

// lastAsked is who asked for the last turn of a session, and where; the caller, while there was none.
func (c *Control) lastAsked(ses workspace.Session, caller workspace.Actor) (workspace.Actor, workspace.RoomID, error) {
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

// openWork is a work folder in use. Its root is nil while nothing has worked there.
type openWork struct{ turn.Work }

func (w *openWork) close() {
	if w.Root != nil {
		_ = w.Root.Close() // nothing was written through it
	}
}

// inside is a path in its clean form, if it is in the work folder itself. An owner's folder is the owner's to clear.
func (w *openWork) inside(path string) (string, error) {
	clean, err := w.Root.Resolve(workspace.At(path))
	if err != nil {
		return "", sayPath(err)
	}
	if first, _, _ := strings.Cut(clean, "/"); slices.Contains(w.Mounted, first) {
		return "", workspace.Say(workspace.ErrDenied, "%s is a folder of an owner that is shown in the work folder. It is not counted, and nothing in it is removed here.", workspace.Line(first, 60))
	}
	return clean, nil
}

// refused says why a thing was not removed.
func (w *openWork) refused(path string, folder bool, err error) error {
	if !folder {
		if info, serr := w.Root.Stat(workspace.At(path)); serr == nil && info.Kind == workspace.KindDir {
			name := workspace.Line(strings.TrimRight(path, "/"), 200)
			return workspace.Say(workspace.ErrInvalid, "%s is a folder. All that is in it goes too when you say so: /files rm %s/ in a chat, --folder on the command line, folder=true over HTTP.", name, name)
		}
	}
	return sayPath(err)
}

// sayPath makes the reason of a path's refusal a sentence.
func sayPath(err error) error {
	var pe *workspace.PathError
	if errors.As(err, &pe) {
		return workspace.Say(err, "%s.", pe.Error())
	}
	return err
}

// view counts what is there.
func (w *openWork) view(k workspace.Key, path string) (Files, error) {
	v := Files{Session: k.String(), Path: ".", Items: []FileItem{}, Largest: []FileItem{}, Mounted: append([]string{}, w.Mounted...), Shared: w.Shared}
	if w.Root == nil {
		return v, nil
	}
	if path != "" {
		var err error
		if v.Path, err = w.inside(path); err != nil {
			return v, err
		}
	}
	all, err := w.Root.Filled()
	if err != nil {
		return v, err
	}
	most := w.Root.Limits()
	v.Bytes, v.Files, v.More, v.MaxBytes, v.MaxFiles = all.Bytes, all.Used.Files, all.More, most.Bytes, most.Files
	shown := all
	if v.Path != "." {
		if shown, err = w.Root.FilledBelow(workspace.At(v.Path)); err != nil {
			return v, sayPath(err)
		}
	}
	v.Items, v.Largest = w.items(shown.Top), w.items(shown.Files)
	if s, ok := w.Root.Space(); ok {
		v.DiskFree, v.DiskKept, v.DiskLow = s.Free, s.Floor+s.Reserve, s.Low()
	}
	return v, nil
}

// items are those of the work folder itself: at the name of an owner's folder a link stands that commands follow.
func (w *openWork) items(list []disk.Item) []FileItem {
	out := []FileItem{}
	for _, it := range list {
		if slices.Contains(w.Mounted, it.Path) {
			continue
		}
		shown := workspace.Line(it.Path, workspace.MaxPath)
		_, err := w.Root.Resolve(workspace.At(it.Path))
		out = append(out, FileItem{Path: shown, Folder: it.Folder, Bytes: it.Bytes, Files: it.Files, Removable: err == nil && shown == it.Path})
	}
	return out
}
