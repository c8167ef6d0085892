package builtin

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley/workspace"
)

// estate is an owner's folder as people have them, with every kind of repository in it, and the owner's own git.
type estate struct {
	testing.TB
	home   string // of the owner
	dir    string // the folder
	canary string // is made when git obeys what an agent wrote
}

// layout makes the folder. It is made once and copied: git init takes its time.
const layout = `set -e
cd "$1"
git init -q . && echo 'package main' >main.go && git add . && git commit -qm first
git init -q nested && cd nested && echo n >n && git add . && git commit -qm n && cd ..
git init -q deep/er/repo
git clone -q nested "$HOME/origin" && git submodule --quiet add "$HOME/origin" lib && git commit -qm lib
git worktree add -q wt
git init -q --separate-git-dir=gitdata sep
git init -q --bare bare.git && git init -q --bare store
mkdir -p .git/hooks .git/info store/info half/objects half/refs waits/refs plain .vscode .githooks hooks-mine old
echo 'ref: refs/heads/main' >waits/HEAD
echo '{}' >.vscode/tasks.json; echo 'echo hi' >.envrc; echo '#!/bin/sh' >.githooks/pre-commit
ln -s .git link; ln -s nested into; ln -s gitdata data; ln -s ../plain old/back; ln -s . loop; ln -s .envrc rc
`

// templates is the folder that TestMain removes: of the template, once there is one.
var templates string

var template = sync.OnceValues(func() (string, error) {
	base, err := os.MkdirTemp("", "parley-estate-")
	if err != nil {
		return "", err
	}
	templates = base
	e := estate{home: filepath.Join(base, "home"), dir: filepath.Join(base, "proj")}
	for _, d := range []string{e.home, e.dir} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return "", err
		}
	}
	text := "[user]\n\tname = ana\n\temail = ana@example.org\n[safe]\n\tdirectory = *\n[init]\n\tdefaultBranch = main\n\ttemplateDir = /var/empty\n[protocol \"file\"]\n\tallow = always\n[gc]\n\tauto = 0\n"
	if err := os.WriteFile(filepath.Join(e.home, ".gitconfig"), []byte(text), 0o644); err != nil {
		return "", err
	}
	if out, err := e.sh(layout, e.dir); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return base, nil
})

func newEstate(t testing.TB) estate {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git here")
	}
	from, err := template()
	if err != nil {
		t.Fatal(err)
	}
	base := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "cp", "-a", from+"/.", base).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	e := estate{TB: t, home: filepath.Join(base, "home"), dir: filepath.Join(base, "proj"), canary: filepath.Join(base, "CANARY")}
	// a worktree and its repository know each other by absolute names; so does a work folder its separate repository. git's own
	// repair would change the template too, which others copy at the same time
	if out, err := e.sh(`cd "$1" && echo "$1/wt/.git" >.git/worktrees/wt/gitdir && echo "gitdir: $1/.git/worktrees/wt" >wt/.git &&
		echo "gitdir: $1/gitdata" >sep/.git && rm -f "$2" && git -C wt rev-parse --git-dir >/dev/null`, e.dir, e.canary); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return e
}

// sh runs a script as the owner does, outside every sandbox.
func (e estate) sh(script string, args ...string) (string, error) {
	cmd := exec.Command("/bin/sh", append([]string{"-c", script, "sh"}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + e.home, "GIT_CONFIG_NOSYSTEM=1", "GIT_PAGER=cat", "GIT_ALLOW_PROTOCOL=file"}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// config is one that makes git run a program at every status, log and diff.
func (e estate) config() string {
	return fmt.Sprintf("[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = %[2]s\n\tfsmonitor = \"touch %[1]s; false\"\n\tpager = \"touch %[1]s; cat\"\n[diff]\n\texternal = \"touch %[1]s\"\n", e.canary, e.dir)
}

// obeyed has the owner use git everywhere in the folder, and says whether it ran what an agent wrote.
func (e estate) obeyed() bool {
	e.Helper()
	var at []string
	_ = filepath.WalkDir(e.dir, func(p string, d fs.DirEntry, err error) error { // what cannot be read is not a repository
		switch name := strings.ToLower(d.Name()); {
		case err != nil:
			return fs.SkipDir
		case name == ".git" || name == "head":
			at = append(at, filepath.Dir(p))
		case d.IsDir() && (name == "logs" || name == "objects"):
			return fs.SkipDir
		}
		return nil
	})
	_, _ = e.sh(`for d in "$@"; do git -C "$d" status; done; git -C "$d" log -1; git -C "$d" diff`, append(at, e.dir)...) // most are not repositories
	_, err := os.Lstat(e.canary)
	return err == nil
}

// hostileWrite is what an agent tries with the tools for files: each step is a path and what is written there.
type hostileWrite struct {
	name  string
	steps [][2]string
}

const (
	headText = "ref: refs/heads/main\n"
	evil     = "\x00config" // stands for estate.config
)

func hostileWrites() (list []hostileWrite) {
	one := func(paths ...string) {
		for _, p := range paths {
			list = append(list, hostileWrite{p, [][2]string{{p, evil}}})
		}
	}
	// what is there
	one(".git/config", "./.git/config", ".git//config", ".git/./config", ".git/hooks/post-index-change", ".git/info/attributes", ".git/config.worktree", ".git/worktrees/wt/config.worktree",
		".git/modules/lib/config", ".git/HEAD", ".git/commondir", ".git/objects/info/alternates", ".git/new/dir/file", ".git/index",
		"nested/.git/config", "nested/.git/hooks/pre-commit", "deep/er/repo/.git/config", "lib/.git", "wt/.git", "sep/.git", "gitdata/config", "gitdata/hooks/post-checkout", "gitdata/new",
		"bare.git/config", "bare.git/hooks/post-update", "store/config", "store/info/x/y", ".vscode/tasks.json", ".vscode/settings.json", ".envrc", ".githooks/pre-commit")
	// by links
	one("link/config", "link/hooks/x", "into/.git/config", "data/config", "loop/.git/config", "loop/loop/nested/.git/config", "loop/link/config", "old/back/.git/config", "old/back/../.git", "rc", "loop/rc", "loop/store/config")
	// what is not there yet
	one("plain/.git", "plain/.git/config", "fresh/.git/config", "a/b/c/.git/hooks/x", "plain/.husky/pre-commit", ".husky/_/husky.sh", "x.code-workspace", "plain/.envrc", ".idea/workspace.xml",
		".bashrc", ".zshenv", "plain/.profile", ".direnv/x", ".hg/hgrc", ".jj/repo/config.toml", ".pre-commit-config.yaml", ".claude/settings.json", ".gitconfig", ".dir-locals.el", ".exrc", ".devcontainer/devcontainer.json")
	// as other file systems read them
	one(".GIT/config", ".Git/config", ".gIt", ".git /config", ".git./config", ".git. . /config", ".git::$INDEX_ALLOCATION/config", ".git:x/config", "git~1/config", "GIT~1/config", "plain/git~2",
		".g\u200cit/config", ".gi\u200dt/config", "\ufeff.git/config", ".git\u2060/config", ".g\u00adit/config", ".\uff47it/config", ".EnvRC", ".HUS\u212aY/x", ".v\u017fcode/tasks.json", ".vscode./tasks.json", "VSCODE~1/tasks.json", "envrc~1", ".pro\ufb01le", "nested/.GIT/config")
	// a repository without its name, piece by piece
	part := func(name string, steps ...[2]string) { list = append(list, hostileWrite{name, steps}) }
	part("HEAD last", [2]string{"half/config", evil}, [2]string{"half/HEAD", headText})
	part("head last", [2]string{"half/config", evil}, [2]string{"half/head", headText})
	part("objects last", [2]string{"waits/config", evil}, [2]string{"waits/objects/x", "x"})
	part("commondir", [2]string{"waits/config", evil}, [2]string{"waits/commondir", "../gitdata\n"})
	part("from nothing", [2]string{"n/config", evil}, [2]string{"n/HEAD", headText}, [2]string{"n/objects/x", "x"}, [2]string{"n/refs/x", "x"})
	part("from nothing, otherwise", [2]string{"n/refs/heads/x", "x"}, [2]string{"n/objects/x", "x"}, [2]string{"n/config", evil}, [2]string{"n/HEAD", headText})
	part("the folder itself", [2]string{"config", evil}, [2]string{"HEAD", headText}, [2]string{"objects/x", "x"}, [2]string{"refs/x", "x"})
	part("by a link", [2]string{"into/config", evil}, [2]string{"into/HEAD", headText}, [2]string{"nested/objects/x", "x"}, [2]string{"loop/into/refs/x", "x"})
	return list
}

// try writes as far as the tools let it, and says whether one refused.
func (w hostileWrite) try(d desk, e estate, base string) (refused bool) {
	for _, s := range w.steps {
		text := s[1]
		if text == evil {
			text = e.config()
		}
		if _, err := d.call("write_file", argsOf(d, "path", base+s[0], "content", text)); err == nil {
			continue
		}
		refused = true
		if old, err := os.ReadFile(filepath.Join(e.dir, s[0])); err == nil && len(old) > 0 {
			if said, err := d.call("edit_file", argsOf(d, "path", base+s[0], "old_text", string(old[:1]), "new_text", text)); err == nil {
				d.Errorf("%s was refused to write_file, not to edit_file: %s", s[0], said)
			}
		}
	}
	return refused
}

func TestE63_FileToolsWriteNothingThatTheHostObeys(t *testing.T) {
	t.Parallel()
	e, d := newEstate(t), newDesk(t)
	if err := d.root.Mount(workspace.Folder{Dir: e.dir, As: "proj", Write: true}); err != nil {
		t.Fatal(err)
	}
	caught := 0
	harmful := []string{".git/config", "nested/.git/config", "gitdata/config", "store/config", "link/config", "into/.git/config", "HEAD last", "objects last", "from nothing", "the folder itself"}
	for _, w := range hostileWrites() {
		if !w.try(d, e, "proj/") {
			t.Errorf("%q: nothing was refused", w.name)
		}
		if e.obeyed() {
			t.Errorf("%q: git of the host obeyed the agent", w.name)
		}
		// the same in a folder that has no such rule, where it is the agent's own
		if slices.Contains(harmful, w.name) {
			e, d := newEstate(t), newDesk(t)
			if d.root, _ = workspace.OpenWork(e.dir); d.root == nil {
				t.Fatal("no folder")
			}
			w.try(d, e, "")
			if e.obeyed() {
				caught++
			} else {
				t.Logf("%q alone does no harm", w.name)
			}
			d.root.Close()
		}
	}
	if n := len(hostileWrites()); n < 80 {
		t.Errorf("only %d ways were tried", n)
	}
	if caught < len(harmful)-1 { // git may know that a piece is not a real one
		t.Errorf("without the rule git obeyed only %d of %d times: the test would not notice if it were gone", caught, len(harmful))
	}
	t.Logf("escape E63: broken rule caught (%d of %d ways)", caught, len(hostileWrites()))
}

func TestE63_FileToolsStillWriteTheRest(t *testing.T) {
	t.Parallel()
	e, d := newEstate(t), newDesk(t)
	if err := d.root.Mount(workspace.Folder{Dir: e.dir, As: "proj", Write: true}); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"main.go", ".gitignore", ".gitattributes", ".gitmodules", ".github/workflows/ci.yml", "new/deep/file.txt", "into/n2", "wt/main.go", "sep/x", "lib/x", "old/back/x", "loop/loop/y",
		"half/file", "git/config", "plain/HEAD", "git~x", "a.git/x", "parley-held-1/x"} {
		if said, err := d.call("write_file", argsOf(t, "path", "proj/"+p, "content", "fine")); err != nil {
			t.Errorf("%s: %s", p, said)
		} else if got, err := os.ReadFile(filepath.Join(e.dir, p)); err != nil || string(got) != "fine" {
			t.Errorf("%s: %q %v", p, got, err)
		}
	}
	for _, p := range []string{".git/config", "nested/.git/HEAD", ".envrc", ".vscode/tasks.json"} { // reading is another matter
		if said, err := d.call("read_file", argsOf(t, "path", "proj/"+p)); err != nil {
			t.Errorf("%s: %s", p, said)
		}
	}
	d.refuses("write_file", argsOf(t, "path", "proj/.git/config", "content", "x"), "take orders from it")
}

func TestE63_AFolderInsideARepositoryIsReadOnly(t *testing.T) {
	t.Parallel()
	e := newEstate(t)
	for i, dir := range []string{".git", ".git/hooks", "store", "store/info", "bare.git", "gitdata", ".vscode", "nested/.git/refs", "link", "data"} {
		d := newDesk(t)
		as := fmt.Sprintf("f%d", i)
		if err := d.root.Mount(workspace.Folder{Dir: filepath.Join(e.dir, dir), As: as, Write: true}); err != nil {
			t.Fatal(err)
		}
		d.refuses("write_file", argsOf(t, "path", as+"/config", "content", e.config()), "only be read")
		if _, folders, err := d.root.Host(); err != nil || folders[0].Write {
			t.Errorf("%s is shown to commands as writable: %v %v", dir, folders, err)
		}
	}
	if e.obeyed() {
		t.Error("git of the host obeyed")
	}
}
