package builtin

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"parley/tools"
	"parley/tools/sandbox"
	"parley/workspace"
	"parley/workspace/folder"
)

// yard is an estate with a real sandbox: the payload is in the agent's own folder, /work.
type yard struct {
	estate
	desk
	exec   tools.Tool
	warden *folder.Warden
}

func newYard(t *testing.T, box sandbox.Backend, guarded bool) *yard {
	t.Helper()
	y := &yard{estate: newEstate(t), desk: newDesk(t)}
	for _, p := range []string{filepath.Dir(y.estate.dir), filepath.Dir(y.desk.dir), filepath.Dir(filepath.Dir(y.desk.dir))} {
		if err := os.Chmod(p, 0o755); err != nil { // for a sandbox of another user
			t.Fatal(err)
		}
	}
	y.exec = Exec(ExecOptions{Sandbox: box})
	f := workspace.Folder{Dir: y.estate.dir, As: "proj", Write: true, Guard: open{}}
	if guarded {
		y.warden = folder.New(folder.Options{Dir: filepath.Join(filepath.Dir(y.estate.dir), "state")})
		t.Cleanup(y.warden.Close)
		f.Guard, f.Guards = nil, y.warden.Guard
	}
	if err := y.root.Mount(f); err != nil {
		t.Fatal(err)
	}
	y.desk.write("config", y.config())
	return y
}

// open guards nothing.
type open struct{}

func (open) Rule() *workspace.ControlRule                        { return workspace.DefaultControl() }
func (open) Change(f func() error) error                         { return f() }
func (open) Refuses(string) bool                                 { return false }
func (open) Refused(string)                                      {}
func (open) Enter(context.Context) (workspace.GuardEntry, error) { return open{}, nil }
func (open) Pins() ([]workspace.Pin, string)                     { return nil, "" }
func (open) Leave() []workspace.Held                             { return nil }

func (y *yard) run(t *testing.T, line string) string {
	t.Helper()
	res, err := y.exec.Call(t.Context(), tools.Call{Args: []byte(argsOf(t, "command", prelude+line)), Root: y.root, Control: filepath.Join(filepath.Dir(y.estate.dir), "home")})
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return workspace.PlainText(res.Content)
}

// prelude gives the lines below words: evil DIR makes DIR a repository that obeys the agent.
const prelude = `cd /folders/proj || exit 9; export HOME=/tmp; C=/work/config
evil() { git init -q "$1" 2>/dev/null; cp $C "$1/.git/config"; }
bare() { mkdir -p "$1/objects" "$1/refs"; cp $C "$1/config"; echo 'ref: refs/heads/main' >"$1/HEAD"; }
`

// hostileLines are what a command tries; each is run in a folder as the owner has it.
var hostileLines = []string{
	// what is there
	`cp $C .git/config`, `cat $C >>.git/config`, `cp $C nested/.git/config`, `cp $C deep/er/repo/.git/config`, `cp $C gitdata/config`, `cp $C store/config`, `cp $C bare.git/config`, `cp $C .git/modules/lib/config`,
	`cp $C .git/config.worktree; git config extensions.worktreeConfig true`, `git config core.fsmonitor "touch $0"`, `cp $C link/config; cp $C into/.git/config; cp $C data/config`,
	`mv .git old.git; mkdir .git; cp -r old.git/. .git/; cp $C .git/config`, `rm -rf nested/.git; evil nested`, `echo 'gitdir: ../x' >sep/.git; bare x`, `rm -f lib/.git; evil lib`, `rm -f wt/.git; evil wt`,
	`ln -sf /work/config .git/config`, `ln -f /work/config .git/config`, `chmod -R 777 .git; cp $C .git/config`, `mount --bind /work .git; cp $C .git/config`, `umount .git; cp $C .git/config`,
	`echo ../x >.git/commondir; bare x`, `printf '[include]\n\tpath = /work/config\n' >>.git/config`, `mkdir -p .git/hooks && cp $C .git/hooks/post-index-change`,
	// what is moved
	`mv nested n2; cp $C n2/.git/config; evil nested`, `mv deep d2; evil deep/er/repo`, `mv wt wt2; evil wt`, `mkdir a; mv nested sep a/; bare a/gitdata; cp $C a/gitdata/config`, `mv store s2; cp $C s2/config; bare store`,
	`mv nested x; ln -s /work nested; cp $C x/.git/config`, `mv gitdata g2; bare gitdata`, `cp -r .git copy.git; cp $C copy.git/config`, `cp -r nested fresh; cp $C fresh/.git/config`,
	// what is new
	`evil fresh`, `evil a/b/c/d/e/f`, `for i in 1 2 3 4 5 6 7 8 9; do evil many/$i; done`, `git init -q --bare new.git; cp $C new.git/config`, `bare anything`, `bare .`, `bare src/../src/x`, `git clone -q nested cloned; cp $C cloned/.git/config`,
	`evil x; mv x/.git y; mkdir z; mv y z/.git`, `evil /tmp/r; cp -r /tmp/r in`, `evil /work/r; cp -r /work/r in; mv in/.git in2`, `mkdir w; echo 'gitdir: ../b' >w/.git; bare b`, `mkdir w; bare b; ln -s ../b w/.git`, `mkdir w; ln -s /work/r w/.git; evil /work/r`,
	`mkdir d; evil d; mv d d2; mv d2 d3; mv d3 "d 4"`, `evil "a b"; mv "a b/.git" "a b/.GIT"; mv "a b/.GIT" "a b/.git"`, `printf 'new\nline' | xargs -0 -I{} mkdir {}; cd new*; git init -q .; cp $C .git/config`,
	`mkdir one; bare one/.git`, `bare c; mkdir c/wt; echo .. >c/wt/commondir; echo 'ref: refs/heads/main' >c/wt/HEAD`, `git init -q sub1 && git init -q sub1/sub2 && cp $C sub1/sub2/.git/config`, `git worktree add -q --detach w3 2>/dev/null; evil w3`,
	`git submodule add -q ./nested sm 2>/dev/null; evil sm`, `git init -q --separate-git-dir=sgd sw; cp $C sgd/config`,
	// out of an archive
	`evil /tmp/r; tar -C /tmp -cf /tmp/r.tar r; tar xf /tmp/r.tar`, `evil /tmp/r; cd /tmp; zip -qr r.zip r; cd /folders/proj; unzip -q /tmp/r.zip`, `evil /tmp/r; tar -C /tmp/r -cf - . | (mkdir t; cd t; tar xf -)`, `evil /tmp/r; (cd /tmp/r; find . | cpio -o 2>/dev/null) | (mkdir t; cd t; cpio -id 2>/dev/null)`,
	`evil /tmp/r; cp -a /tmp/r/. plain/`, `evil /tmp/r; rsync -a /tmp/r/ plain/ 2>/dev/null || cp -a /tmp/r/.git plain/`, `bare /tmp/b; for i in config refs objects HEAD; do cp -r /tmp/b/$i half2/ 2>/dev/null || { mkdir -p half2; cp -r /tmp/b/$i half2/; }; done`,
	`echo 'ref: refs/heads/main' >half/HEAD; cp $C half/config`, `mkdir waits/objects; cp $C waits/config`, `ln -s ../gitdata/objects half/o; ln -s objects half/refs2; cp $C half/config; echo 'ref: refs/heads/x' >half/HEAD`,
	// in time
	`evil late & sleep 0.05; wait`, `(sleep 0.1; evil behind) & sleep 0.3`, `setsid sh -c "sleep 0.05; mkdir bg; cp -r /work/r/.git bg/" & evil /work/r; sleep 0.3`, `evil x; for i in $(seq 40); do mv x/parley-held-* x/.git 2>/dev/null; done`,
	`evil /work/r; for i in $(seq 30); do mkdir -p q$i; cp -r /work/r/.git q$i/; mv q$i r$i; done`, `evil /work/r; mkdir v; for i in $(seq 40); do ln -sfn /work/r l; rm -f l; cp -r /work/r l; rm -rf l; done; cp -r /work/r l`,
	`(while :; do mv x y; mv y x; done) & evil x; sleep 0.2`, `(while :; do ln -sfn nested sw; rm -f sw; mkdir -p sw/.git; cp $C sw/.git/config; done) & sleep 0.3`, `mkdir -p $(printf 'd/%.0s' $(seq 120)); cd $(printf 'd/%.0s' $(seq 120)); git init -q .; cp $C .git/config`,
	`for i in $(seq 400); do mkdir -p t$i/a/b/c; done; evil t399/a/b/c/d`, `timeout -s KILL 0.2 sh -c 'while :; do :; done'; evil x; kill -9 $$`,
	// closed to others
	`evil shut; chmod 000 shut`, `mkdir -p s1/s2; evil s1/s2/r; chmod 000 s1/s2/r/.git s1/s2/r s1/s2 s1`, `evil ro; chmod 555 ro`, `evil ro; chmod -R a-w ro`, `umask 777; mkdir u; chmod 700 u; umask 022; evil u; chmod 0 u`,
	// other than git's
	`echo "touch $C" >plain/.envrc`, `mkdir plain/.vscode; echo {} >plain/.vscode/tasks.json`, `echo x >.envrc`, `mkdir .husky; echo x >.husky/pre-commit`, `echo x >.git/x; echo x >.githooks/pre-commit`, `mv .vscode v2; mkdir .vscode; echo {} >.vscode/tasks.json`, `echo x >plain/.bashrc; echo x >a.code-workspace`,
}

func TestE63_CommandsLeaveNothingThatTheHostObeys(t *testing.T) {
	box := cell()
	if box.Tier() != sandbox.TierNS {
		if os.Getenv("PARLEY_REQUIRE_SANDBOX") != "" {
			t.Fatal(box.Last())
		}
		t.Skip(box.Last())
	}
	if len(hostileLines) < 80 {
		t.Errorf("only %d lines", len(hostileLines))
	}
	const together = 4
	var caught atomic.Int64
	t.Run("lines", func(t *testing.T) {
		for part := range together {
			t.Run(strconv.Itoa(part), func(t *testing.T) {
				t.Parallel()
				for i := part; i < len(hostileLines); i += together {
					if tryLine(t, box, hostileLines[i]) {
						caught.Add(1)
					}
				}
			})
		}
	})
	t.Logf("escape E63: broken guard caught (%d of %d lines)", caught.Load(), len(hostileLines))
}

// harmful are lines whose harm is shown without a guard.
var harmful = []string{`cp $C nested/.git/config`, `evil fresh`, `bare anything`, `rm -rf nested/.git; evil nested`, `evil /tmp/r; cp -r /tmp/r in`, `echo 'ref: refs/heads/main' >half/HEAD; cp $C half/config`}

// tryLine runs a line in a folder as its owner has it, and says whether it did harm in one that nothing guards.
func tryLine(t *testing.T, box sandbox.Backend, line string) (caught bool) {
	t.Helper()
	y := newYard(t, box, true)
	before := y.controls()
	said := y.run(t, line)
	if strings.Contains(said, "exit code 9") {
		t.Fatalf("the folder is not there: %s", said)
	}
	_, _ = y.sh(`chmod -R u+rwX "$1"`, y.estate.dir) // the owner opens what was closed
	if y.obeyed() {
		t.Errorf("%s\ngit of the host obeyed the agent; the tool said:\n%s", line, said)
	}
	for inode, p := range y.controls() {
		if before[inode] == "" {
			t.Errorf("%s\nleft %s; the tool said:\n%s", line, p, said)
		}
	}
	if line == "evil fresh" && !strings.Contains(said, "(proj/fresh/.git was renamed to fresh/parley-held-") && !strings.Contains(said, "parley folder accept proj fresh/.git)") {
		t.Errorf("the tool said:\n%s", said)
	}
	y.warden.Close()
	if !slices.Contains(harmful, line) {
		return false
	}
	y = newYard(t, box, false)
	y.run(t, line)
	if caught = y.obeyed(); !caught {
		t.Errorf("%s\ndoes no harm without the rule", line)
	}
	return caught
}

// controls are the inodes of what has a control path's name.
func (y *yard) controls() map[uint64]string {
	found := map[uint64]string{}
	_ = filepath.WalkDir(y.estate.dir, func(p string, d os.DirEntry, err error) error { // what cannot be read is told of by obeyed
		if err != nil || p == y.estate.dir || !workspace.DefaultControl().Name(d.Name()) {
			return nil
		}
		var st syscall.Stat_t
		if syscall.Lstat(p, &st) == nil {
			found[st.Ino] = p
		}
		if d.IsDir() {
			return filepath.SkipDir
		}
		return nil
	})
	return found
}
