package file_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/channels"
	"parley/gateway/control"
	"parley/gateway/control/controltest"
	"parley/gateway/control/file"
	"parley/gateway/turn"
	"parley/workspace"
	"parley/workspace/disk"
	"parley/workspace/store"
)

// world is a gateway's nouns over a store.
type world struct{ *controltest.World }

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{controltest.New(t)}
}

func (w *world) remove(ctx context.Context, c control.Call, key control.SessionWord, path string, folder bool) (file.Removed, error) {
	return file.Remove.Call(ctx, w.Files, c, file.RemoveIn{Session: key, Path: path, Folder: folder})
}

// worked is a work folder with a few things in it, which the house opens for every session. The disk counts as full: its floor is
// more than there is.
func (w *world) worked(t *testing.T, change func(*turn.Work)) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "work")
	for name, size := range map[string]int{"big/a/large.bin": 900 << 10, "big/b.bin": 100 << 10, "small.txt": 10, ".git/config": 10} {
		name = filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, make([]byte, size), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	rule := disk.New(disk.Options{Floor: 1 << 60, Size: 8 << 20, Files: 100})
	t.Cleanup(rule.Close)
	w.Running.Opens = func(workspace.Key, workspace.Actor, workspace.RoomID) (turn.Work, error) {
		var v turn.Work
		root, err := workspace.OpenWork(dir)
		if err != nil {
			return v, err
		}
		root.Under(rule)
		v.Root = root
		if change != nil {
			change(&v)
		}
		return v, nil
	}
	return dir
}

// E65: a person sees what fills the work folder and clears it, also while nothing can be written to the disk.
func TestE65_APersonSeesAndClearsWhatFillsTheWorkFolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := w.worked(t, nil)
	ana := w.Call("ana", workspace.Guest, channels.DM)
	v, err := file.Show.Call(t.Context(), w.Files, ana, file.ShowIn{Session: "", Path: ""})
	if err != nil {
		t.Fatal(err)
	}
	if v.Bytes < 1000<<10 || v.Files != 7 || v.MaxBytes != 8<<20 || v.MaxFiles != 100 || !v.DiskLow {
		t.Errorf("the folder holds %+v", v)
	}
	if len(v.Items) != 3 || v.Items[0].Path != "big" || !v.Items[0].Folder || v.Items[0].Files != 3 || v.Largest[0].Path != "big/a/large.bin" {
		t.Errorf("items %+v, largest %+v", v.Items, v.Largest)
	}
	if v, err = file.Show.Call(t.Context(), w.Files, ana, file.ShowIn{Session: "", Path: "big"}); err != nil || v.Path != "big" || len(v.Items) != 2 || v.Items[0].Path != "big/a" || v.Files != 7 {
		t.Errorf("in big: %+v, %v", v, err)
	}
	if _, err := w.remove(t.Context(), ana, "", "big", false); !errors.Is(err, workspace.ErrDenied) && !errors.Is(err, workspace.ErrInvalid) {
		t.Errorf("a folder that was not called one: %v", err)
	}
	got, err := w.remove(t.Context(), ana, "", "big", true)
	if err != nil || got.Removed != 4 || !got.Audited || got.Left.Files != 3 {
		t.Errorf("removed %+v, %v", got, err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "big")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("big is there: %v", err)
	}
	rows := w.Audited(t, workspace.AuditFilesRemoved)
	if len(rows) != 1 || rows[0].Actor != "ana" || rows[0].What["path"] != "big" || rows[0].What["session"] != w.Key.String() {
		t.Errorf("audited: %+v", rows)
	}
	if got, err = w.remove(t.Context(), ana, "", ".", true); err != nil || got.Left.Files != 0 {
		t.Errorf("everything: %+v, %v", got, err)
	}
	if _, err := w.remove(t.Context(), ana, "", "small.txt", false); !errors.Is(err, workspace.ErrNotFound) {
		t.Errorf("what is gone: %v", err)
	}
}

// No path leads out of the work folder, whatever the way.
func TestFilesOfAPersonStayInTheWorkFolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := w.worked(t, nil)
	outside := filepath.Join(filepath.Dir(dir), "outside")
	if err := errors.Join(os.MkdirAll(filepath.Join(outside, "in"), 0o700), os.WriteFile(filepath.Join(outside, "in", "kept"), []byte("x"), 0o600),
		os.Symlink("../outside", filepath.Join(dir, "way")), os.Symlink(outside, filepath.Join(dir, "far"))); err != nil {
		t.Fatal(err)
	}
	boss := w.Call("boss", workspace.Owner, channels.DM)
	for _, path := range []string{"../outside/in/kept", "../outside", "/etc/passwd", "big/../../outside", "way/in/kept", "way/in", "far/in/kept", `..\outside`, "%2e%2e/outside", "a\nb", strings.Repeat("x", 5000), ""} {
		for _, folder := range []bool{false, true} {
			if _, err := w.remove(t.Context(), boss, "", path, folder); err == nil {
				t.Errorf("%.40q is removed", path)
			} else if _, ok := workspace.Sentence(err); !ok {
				t.Errorf("%.40q: %v has no sentence", path, err)
			}
		}
		if path == "" {
			continue
		}
		if v, err := file.Show.Call(t.Context(), w.Files, boss, file.ShowIn{Session: "", Path: path}); err == nil {
			t.Errorf("%.40q is shown: %+v", path, v)
		}
	}
	if _, err := os.Stat(filepath.Join(outside, "in", "kept")); err != nil {
		t.Error(err)
	}
	if _, err := w.remove(t.Context(), boss, "", "way", true); err != nil { // the link itself
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(outside, "in", "kept")); err != nil {
		t.Error(err)
	}
}

// E63: in an owner's folder nothing is removed here, control paths least of all; the folder is named, and not counted.
func TestE63_AnOwnersFolderIsNamedAndNotCleared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	proj := t.TempDir()
	if err := errors.Join(os.MkdirAll(filepath.Join(proj, ".git"), 0o700), os.WriteFile(filepath.Join(proj, "a.txt"), make([]byte, 2<<20), 0o600)); err != nil {
		t.Fatal(err)
	}
	dir := w.worked(t, func(v *turn.Work) {
		v.Mounted = []string{"proj"}
	})
	if err := os.Symlink(proj, filepath.Join(dir, "proj")); err != nil {
		t.Fatal(err)
	}
	boss := w.Call("boss", workspace.Owner, channels.DM)
	v, err := file.Show.Call(t.Context(), w.Files, boss, file.ShowIn{Session: "", Path: ""})
	if err != nil || len(v.Mounted) != 1 || v.Mounted[0] != "proj" || v.Bytes > 2<<20 {
		t.Errorf("%+v, %v", v, err)
	}
	for _, it := range append(v.Items, v.Largest...) {
		if strings.HasPrefix(it.Path, "proj") {
			t.Errorf("%s is listed", it.Path)
		}
	}
	for _, path := range []string{"proj", "proj/", "proj/a.txt", "proj/.git", "proj/.git/config", "./proj/a.txt", "big/proj/../x"} {
		if _, err := w.remove(t.Context(), boss, "", path, true); err == nil {
			t.Errorf("%s is removed", path)
		}
	}
	if _, err := file.Show.Call(t.Context(), w.Files, boss, file.ShowIn{Session: "", Path: "proj"}); !errors.Is(err, workspace.ErrDenied) {
		t.Errorf("the owner's folder is shown: %v", err)
	}
	if _, err := w.remove(t.Context(), boss, "", ".", true); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(proj, "a.txt")); err != nil {
		t.Errorf("clearing the work folder reached the owner's: %v", err)
	}
}

// T10: others than owners see and clear what is theirs alone; in a group nobody does.
func TestT10_FilesAreForThoseWhoseTheyAre(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	dir := w.worked(t, nil)
	for _, kind := range []channels.PeerKind{channels.Group, channels.Room} {
		_, err := w.remove(ctx, w.Call("boss", workspace.Owner, kind), "", "small.txt", false)
		if said, _ := workspace.Sentence(err); !errors.Is(err, workspace.ErrDenied) || said != "Not in a group. Write to me directly." {
			t.Errorf("in a %s: %v", kind, err)
		}
	}
	bens := control.SessionWord(w.Local(t, w.Call("ben", workspace.Member, channels.DM)))
	if _, err := file.Show.Call(ctx, w.Files, w.Call("ana", workspace.Member, channels.DM), file.ShowIn{Session: bens, Path: ""}); !errors.Is(err, workspace.ErrNotFound) {
		t.Errorf("ana sees ben's: %v", err)
	}
	if _, err := w.remove(ctx, w.Call("ana", workspace.Member, channels.DM), bens, "small.txt", false); !errors.Is(err, workspace.ErrNotFound) {
		t.Errorf("ana clears ben's: %v", err)
	}
	for _, c := range []control.Call{w.Call("ben", workspace.Member, channels.DM), w.Call("boss", workspace.Owner, channels.DM)} {
		if _, err := file.Show.Call(ctx, w.Files, c, file.ShowIn{Session: bens, Path: ""}); err != nil {
			t.Errorf("%s: %v", c.Actor.Person, err)
		}
	}
	open := w.Running.Opens
	w.Running.Opens = func(k workspace.Key, a workspace.Actor, r workspace.RoomID) (turn.Work, error) {
		v, err := open(k, a, r)
		v.Everyone, v.Shared = true, true
		return v, err
	}
	if _, err := file.Show.Call(ctx, w.Files, w.Call("ben", workspace.Member, channels.DM), file.ShowIn{Session: "", Path: ""}); !errors.Is(err, workspace.ErrDenied) {
		t.Errorf("a member sees everybody's folder: %v", err)
	}
	if _, err := w.remove(ctx, w.Call("ben", workspace.Member, channels.DM), "", "small.txt", false); !errors.Is(err, workspace.ErrDenied) {
		t.Errorf("a member clears everybody's folder: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "small.txt")); err != nil {
		t.Error(err)
	}
	if _, err := w.remove(ctx, w.Call("boss", workspace.Owner, channels.DM), "", "small.txt", false); err != nil {
		t.Error(err)
	}
}

// The folder of a session is the one of its last turn, by whomever an owner asks about it; others are who they are.
func TestFilesAreThoseOfTheLastTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.worked(t, nil)
	open := w.Running.Opens
	var asked workspace.Actor
	var room workspace.RoomID
	w.Running.Opens = func(k workspace.Key, a workspace.Actor, r workspace.RoomID) (turn.Work, error) {
		asked, room = a, r
		return open(k, a, r)
	}
	api := control.Call{Actor: workspace.Actor{Person: "boss", Role: workspace.Owner}, Kind: channels.DM}
	if _, err := file.Show.Call(t.Context(), w.Files, api, file.ShowIn{Session: control.SessionWord(w.Key.String()), Path: ""}); err != nil || asked.Person != "ana" || asked.Role != workspace.Member || room != w.Room {
		t.Errorf("the work of %+v in %q, %v", asked, room, err)
	}
	mine := w.Local(t, w.Call("ben", workspace.Member, channels.DM))
	if _, err := file.Show.Call(t.Context(), w.Files, w.Call("ben", workspace.Member, channels.DM), file.ShowIn{Session: control.SessionWord(mine), Path: ""}); err != nil || asked.Person != "ben" || room != "" {
		t.Errorf("the work of %+v in %q, %v", asked, room, err)
	}
}

// A name that no path can hold is shown, and is never taken for another's.
func TestFilesWithNamesThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := w.worked(t, nil)
	for _, name := range []string{"a\u202eb", "a\nb", "a\\b", "a\xffb", "%2e"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	v, err := file.Show.Call(t.Context(), w.Files, w.Call("ana", workspace.Guest, channels.DM), file.ShowIn{Session: "", Path: ""})
	if err != nil || len(v.Items) != 8 {
		t.Fatalf("%+v, %v", v.Items, err)
	}
	for _, it := range v.Items {
		if want := it.Path == "big" || it.Path == "small.txt" || it.Path == ".git"; it.Removable != want {
			t.Errorf("%q: removable is %v", it.Path, it.Removable)
		}
	}
	if _, err := json.Marshal(v); err != nil {
		t.Error(err)
	}
}

// E65: while the store takes nothing a removal is done and answered; the log has it, and its row is stored afterwards.
func TestE65_RemovingDoesNotWaitForTheStore(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	st, err := store.Open(t.Context(), store.Options{Dir: data, BallastBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	w := newWorld(t)
	dir := w.worked(t, nil)
	var log bytes.Buffer
	w.Store, w.Nouns = st, w.Over(t, st, slog.New(slog.NewTextHandler(&log, nil)))
	other, err := sql.Open("sqlite", "file:"+filepath.Join(data, "parley.db")+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	conn, err := other.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	call := w.Call("boss", workspace.Owner, channels.DM)
	call.Via = "cli"
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	got, err := w.remove(ctx, call, "", "big", true)
	if err != nil || got.Audited || got.Removed != 4 {
		t.Errorf("removed %+v, %v", got, err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "big")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("big is there: %v", err)
	}
	if text := log.String(); !strings.Contains(text, "kind=files.removed") || !strings.Contains(text, "actor=boss") || !strings.Contains(text, "path:big") {
		t.Errorf("the log says %s", text)
	}
	if _, err := conn.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := st.Audit(workspace.AuditRow{Kind: "behind"}); err != nil { // it is stored behind what waits
		t.Fatal(err)
	}
	if rows := w.Audited(t, workspace.AuditFilesRemoved); len(rows) != 1 || rows[0].Actor != "boss" || rows[0].Via != "cli" {
		t.Errorf("audited: %+v", rows)
	}
}
