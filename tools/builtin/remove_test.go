package builtin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/workspace"
)

func TestRemoveFileRemovesFilesAndWhatItIsTold(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, name := range []string{"a", "d/x", "d/e/y", "keep/z"} {
		d.write(name, "text")
	}
	outside := filepath.Join(t.TempDir(), "theirs")
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{outside: "out", filepath.Dir(outside): "outdir", "keep": "in"} {
		if err := os.Symlink(from, filepath.Join(d.dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	d.gives("remove_file", `{"path":"a"}`, "Removed a.")
	d.gives("remove_file", `{"path":"out"}`, "Removed out.")
	d.gives("remove_file", `{"path":"outdir","folder":true}`, "Removed outdir.")
	d.gives("remove_file", `{"path":"in","folder":true}`, "Removed in.")
	d.refuses("remove_file", `{"path":"a"}`, "no such file")
	d.refuses("remove_file", `{"path":"d"}`, "it is a folder")
	d.refuses("remove_file", `{"path":"."}`, "whole folder")
	d.refuses("remove_file", `{"path":"../x","folder":true}`, `".."`)
	d.refuses("remove_file", `{"path":"keep/z/","folder":true}`, "not a folder")
	d.gives("remove_file", `{"path":"d","folder":true}`, "Removed d (4 files and folders).")
	if _, err := os.Stat(outside); err != nil {
		t.Errorf("what a link led to: %v", err)
	}
	if _, err := os.Stat(filepath.Join(d.dir, "keep/z")); err != nil {
		t.Errorf("what a link inside led to: %v", err)
	}
	if err := os.Chmod(filepath.Join(d.dir, "keep"), 0); err != nil {
		t.Fatal(err)
	}
	d.gives("remove_file", `{"path":".","folder":true}`, "Removed . (2 files and folders).")
	if left, err := os.ReadDir(d.dir); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestE63_ControlPathsOfAFolderAreNotRemoved(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	d := newDesk(t)
	if err := d.root.Mount(workspace.Folder{Dir: e.dir, As: "proj", Write: true}); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{".git", ".git/config", ".GIT", "nested", "nested/.git", "deep", "deep/er", "lib/.git", "wt", "sep/.git", "bare.git", "bare.git/config", "bare.git/HEAD", "store", ".vscode",
		".envrc", ".githooks/pre-commit", "link/config", "into/.git", "loop/nested", "data/config", "."} {
		d.refuses("remove_file", `{"path":"proj/`+p+`","folder":true}`, "")
	}
	d.refuses("remove_file", `{"path":"proj","folder":true}`, "whole folder")
	d.gives("remove_file", `{"path":"proj/main.go"}`, "Removed proj/main.go.")
	d.gives("remove_file", `{"path":"proj/plain","folder":true}`, "Removed proj/plain.")
	if out, err := e.sh(`cd "$1" && git status --short && git -C nested log -1 --format=%s`, e.dir); err != nil || strings.TrimSpace(out) == "" {
		t.Errorf("the owner's git: %v: %s", err, out)
	}
}
