package gateway

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"time"

	"parley/configs"
	"parley/gateway/control"
	"parley/gateway/control/all"
	"parley/gateway/control/approval"
	"parley/gateway/control/config"
	"parley/gateway/control/conversation"
	"parley/gateway/control/file"
	"parley/gateway/control/operator"
	"parley/gateway/control/outbound"
	"parley/gateway/control/person"
	"parley/gateway/control/run"
	"parley/gateway/control/session"
	"parley/gateway/snapshot"
	"parley/gateway/turn"
	"parley/tools"
	"parley/tools/builtin"
	"parley/workspace"
	"parley/workspace/blob"
	"parley/workspace/disk"
	"parley/workspace/folder"
	"parley/workspace/media"
)

// tools are those that exist in this gateway.
func (g *Gateway) tools() []tools.Tool {
	return append(append(builtin.Files(), builtin.SendFile(g.keepSent), g.sandbox.Exec), g.opt.Tools...)
}

// openDisk makes the rule of disk space, and tells where the disk is too small for the usual one.
func (g *Gateway) openDisk(c *configs.Config) {
	g.disk = diskOf(c, g.log)
	g.stops.push("disk", func(context.Context) error {
		g.disk.Close()
		return nil
	})
	switch s, ok := g.disk.Space(c.DataDir); {
	case !ok:
	case s.Useless():
		g.log.Error("disk is too small for its floor: nothing of agents and people is written", "data_dir", c.DataDir, "total", s.Total, "floor", s.Floor, "reserve", s.Reserve, "key", "sandbox.disk_floor")
	case s.Small:
		g.log.Warn("disk is small: its floor is lower than usual", "data_dir", c.DataDir, "total", s.Total, "floor", s.Floor, "reserve", s.Reserve, "key", "sandbox.disk_floor")
	}
}

// diskOf is the rule that a configuration asks for.
func diskOf(c *configs.Config, log *slog.Logger) *disk.Rule {
	return disk.New(disk.Options{Floor: int64(c.Sandbox.DiskFloor), Size: int64(c.Sandbox.WorkSize), Files: int64(c.Sandbox.WorkFiles), Log: log})
}

// Warnings are what a configuration allows and probably does not mean, with what is known of its programs.
func Warnings(c *configs.Config) []configs.Problem { return snapshot.Warnings(c) }

// warn tells the log what a configuration says that does nothing, as config check does.
func (g *Gateway) warn(c *configs.Config) {
	for _, p := range Warnings(c) {
		g.log.Warn("configuration warning", "key", p.Path, "line", p.Line, "why", p.Text)
	}
}

// nouns are the verbs over the stations.
func (g *Gateway) nouns() *all.Nouns {
	kernel := control.New(control.Options{Store: g.store, Outbox: g.deliver, Find: &control.Finder{Records: g.store, Snapshot: g.snapshot},
		Verbs: all.Verbs(), Now: g.opt.Now, Log: g.log, Hide: g.hide()})
	work := turn.WorkFolders{Snapshot: g.snapshot, Delivery: g.deliver, Disk: g.disk}
	prompts := turn.NewPrompts(turn.PromptOptions{Store: g.store, Transcripts: g.transcripts, Snapshot: g.snapshot,
		Typing: g.turns.ShowTyping})
	spent := &control.Spent{Store: g.store}
	approvals := &approval.Approvals{Kernel: kernel, Store: g.store, Questions: g.questions}
	return &all.Nouns{Kernel: kernel, Approvals: approvals, Answers: &control.Answers{Kernel: kernel, Store: g.store},
		Conversations: &conversation.Conversations{Kernel: kernel, Store: conversation.Over(g.store), Snapshot: g.snapshot,
			Intake: g.intake, Lanes: g.turns, Prompts: prompts, Channels: g.channels, Spent: spent, Changed: g.changed,
			Process: conversation.Process{Began: g.began, ConfigFile: g.conf.view}},
		Sessions: &session.Sessions{Kernel: kernel, Store: session.Over(g.store), Lanes: g.turns, Channels: g.channels,
			Outbox: g.deliver, Spent: spent, Moved: g.intake.RoomsChanged, Changed: g.changed, Seen: g.feed.Seen},
		Runs:     &run.Runs{Kernel: kernel, Store: run.Over(g.store), Turns: g.turns, Summaries: prompts, Work: work, Approvals: approvals},
		People:   &person.People{Kernel: kernel, Store: g.store, Version: g.opt.Version, Changed: g.intake.PeopleChanged},
		Files:    &file.Files{Kernel: kernel, Store: g.store, Blobs: g.blobs, Work: work, Folders: ownFolders{g}},
		Outbound: &outbound.Outbound{Kernel: kernel, Store: g.store},
		Config:   &config.Config{Kernel: kernel, Setup: g.setup},
		Operator: &operator.Operator{Kernel: kernel, Store: g.store, Snapshot: g.snapshot, Channels: g.channels,
			Logins: g.logins, Models: g.snapshots, Networks: g.opt.Channels, Dry: g.intake,
			Process: operator.Process{Book: g.opt.Book, ConfigFile: g.conf.view, Reload: g.Reload}},
	}
}

// ownFolders are the folders of owners that agents may write, for the verbs.
type ownFolders struct{ g *Gateway }

func (o ownFolders) Writable() (list []file.OwnerFolder) {
	snap := o.g.snapshot()
	for _, id := range snap.Order {
		for _, f := range snap.Agents[id].Folders {
			if f.Write {
				list = append(list, file.OwnerFolder{Agent: id, Folder: f})
			}
		}
	}
	return list
}

func (o ownFolders) Look(dir string) (file.FolderState, error) {
	f, err := o.g.warden.Look(dir)
	return file.FolderState{Control: f.Control, Closed: f.Closed, Held: f.Held}, err
}

func (o ownFolders) Accept(dir, path string) (workspace.Held, error) {
	return o.g.warden.Accept(dir, path)
}

// openWarden makes who looks after the writable folders; loadFolders has those of a configuration looked through.
func (g *Gateway) openWarden(c *configs.Config) {
	g.warden = folder.New(folder.Options{Dir: filepath.Join(c.DataDir, "folders"), More: c.Sandbox.ControlPaths, Log: g.log, Notice: g.auditFolder()})
}

func (g *Gateway) loadFolders(c *configs.Config) {
	for _, a := range c.Agents {
		for _, f := range a.Folders {
			if f.Mode == "rw" {
				g.warden.Load([]string{f.Path})
			}
		}
	}
}

// keepSent copies a file that an agent sends. What it is, is read from its bytes; its name is made harmless.
func (g *Gateway) keepSent(r io.Reader, name string, limit int64) (builtin.Kept, error) {
	watch := g.hide().Watch()
	kept, err := g.blobs.Take(io.TeeReader(r, watch), limit)
	if errors.Is(err, blob.ErrTooLarge) {
		return builtin.Kept{}, builtin.ErrTooLarge
	}
	if err != nil {
		return builtin.Kept{}, err
	}
	if watch.Found {
		return builtin.Kept{}, workspace.Say(workspace.ErrDenied, "This file holds a credential of this gateway, so it is not sent.")
	}
	mime := media.Type(kept.Head)
	return builtin.Kept{Ref: kept.Ref, Name: media.Name(name, "file", mime), MIME: mime, Size: kept.Size}, nil
}

// readBlob is for models. They are told that a picture cannot be shown, the operator why.
func (g *Gateway) readBlob(ref string) ([]byte, error) {
	data, err := g.blobs.Read(ref)
	if err != nil {
		g.log.Error("kept file cannot be read", "err", err)
	}
	return data, err
}

// missAfter is how long after a start kept files are looked for.
const missAfter = 3 * time.Second

// missBlobs tells the operator once of kept files that are not there any more. What is in the others, doctor looks at.
// What was left over a restart is answered first.
func (g *Gateway) missBlobs(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(missAfter):
	}
	refs, err := g.store.BlobRefs(ctx)
	if err != nil {
		if ctx.Err() == nil {
			g.log.Warn("kept files not checked", "err", err)
		}
		return
	}
	if missing := g.blobs.Missing(refs); len(missing) > 0 {
		g.log.Error("kept files are missing", "files", len(missing), "first", missing[0], "hint", "parley doctor lists them while no gateway runs; put them back into blobs/ from a backup")
	}
}
