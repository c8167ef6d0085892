// The folders in which turns work, for verbs.

package turn

import (
	"fmt"
	"os"

	"parley/gateway/delivery"
	"parley/gateway/snapshot"
	"parley/workspace"
	"parley/workspace/disk"
)

// WorkFolders opens the folders in which turns work. All of its fields are needed.
type WorkFolders struct {
	Snapshot func() *snapshot.Snapshot
	Delivery *delivery.Outbox
	Disk     *disk.Rule
}

// Work is the work folder of a session, open.
type Work struct {
	Root     *workspace.Root
	Mounted  []string // names in it at which an owner's folder stands
	Shared   bool     // other sessions work in it too
	Everyone bool     // other people's as well
}

// Work opens the work folder that a turn of this session by this actor, asked for in this room, has; fs.ErrNotExist:
// nothing has worked there, and the rest of Work is told all the same. What owners have mounted there is told, and is not
// reached through it.
func (w WorkFolders) Work(key workspace.Key, actor workspace.Actor, room workspace.RoomID) (Work, error) {
	a, err := w.agent(key)
	if err != nil {
		return Work{}, err
	}
	at := addressOf(w.Delivery, room)
	out := Work{Everyone: a.Scope == workspace.WorkScopeAgent}
	out.Shared = out.Everyone || actor.Role == workspace.Owner && workspace.Private(key, actor, at)
	if workspace.Shares(key, actor, at) {
		for _, f := range a.Folders {
			out.Mounted = append(out.Mounted, f.As)
		}
	}
	dir := a.Files.WorkDir(a.Scope, key, actor, at)
	if _, err := os.Lstat(dir); err != nil {
		return out, fmt.Errorf("work folder: %w", err)
	}
	if out.Root, err = workspace.OpenWork(dir); err != nil {
		return out, err
	}
	out.Root.Under(w.Disk)
	return out, nil
}

// Output opens a file in the work folder that a turn of this session by this actor had.
func (w WorkFolders) Output(key workspace.Key, actor workspace.Actor, room workspace.RoomID, name string) (*os.File, error) {
	a, err := w.agent(key)
	if err != nil {
		return nil, err
	}
	root, err := workspace.OpenRoot(a.Files.WorkDir(a.Scope, key, actor, addressOf(w.Delivery, room)))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, _, err := root.Open(workspace.At(name))
	return f, err
}

func (w WorkFolders) agent(key workspace.Key) (*snapshot.Agent, error) {
	a, ok := w.Snapshot().Agents[key.Agent]
	if !ok {
		return nil, workspace.Say(fmt.Errorf("agent %s: %w", key.Agent, workspace.ErrNotFound),
			"The agent of this session is not configured any more.")
	}
	return a, nil
}
