//go:build linux

package folder

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"parley/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ground is a folder of an owner with a Warden.
type ground struct {
	testing.TB
	dir, state string
	w          *Warden
	notices    *[]Notice
}

func newGround(t testing.TB, more ...string) *ground {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	g := &ground{TB: t, dir: filepath.Join(base, "proj"), state: filepath.Join(base, "state")}
	g.repo(".git")
	g.repo("nested/.git")
	g.put("main.go", "")
	g.start(more...)
	return g
}

func (g *ground) start(more ...string) {
	g.notices = new([]Notice)
	g.w = New(Options{Dir: g.state, More: more})
	g.Cleanup(g.w.Close)
}

func (g *ground) put(name, text string) {
	g.Helper()
	p := filepath.Join(g.dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		g.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		g.Fatal(err)
	}
}

// repo moves in what git takes for a repository, as a whole: what is made piece by piece is renamed under its maker's hands.
func (g *ground) repo(name string) {
	g.Helper()
	if name == "." {
		g.parts(g.dir)
		return
	}
	made := g.TempDir()
	g.parts(filepath.Join(made, "r"))
	to := filepath.Join(g.dir, name)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		g.Fatal(err)
	}
	if err := os.Rename(filepath.Join(made, "r"), to); err != nil {
		g.Fatal(err)
	}
}

func (g *ground) parts(dir string) {
	g.Helper()
	for _, d := range []string{"objects", "refs", "modules/sub/objects", "modules/sub/refs"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			g.Fatal(err)
		}
	}
	for name, text := range map[string]string{"HEAD": "ref: refs/heads/main\n", "modules/sub/HEAD": "ref: refs/heads/main\n", "config": "[core]\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			g.Fatal(err)
		}
	}
}

func (g *ground) enter() workspace.GuardEntry {
	g.Helper()
	e, err := g.guard().Enter(g.Context())
	if err != nil {
		g.Fatal(err)
	}
	return e
}

func (g *ground) guard() workspace.Guard {
	g.Helper()
	guard, err := g.w.Guard(g.dir)
	if err != nil {
		g.Fatal(err)
	}
	return guard
}

func (g *ground) pins(e workspace.GuardEntry) (list []string) {
	pins, closed := e.Pins()
	if closed != "" {
		return []string{"closed: " + closed}
	}
	for _, p := range pins {
		list = append(list, p.Path)
	}
	return list
}

func (g *ground) there(name string) bool {
	_, err := os.Lstat(filepath.Join(g.dir, name))
	return err == nil
}

func paths(held []workspace.Held) (list []string) {
	for _, h := range held {
		list = append(list, h.Path)
	}
	slices.Sort(list)
	return list
}

func TestE63_WhatACommandMakesIsRenamedAndWhatTheOwnerMakesStays(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	g.repo("mine/.git") // before the first look
	g.guard()
	e := g.enter()
	if got := g.pins(e); !slices.Equal(got, []string{".git", "mine/.git", "nested/.git"}) {
		t.Fatalf("pinned: %v", got)
	}
	g.repo("evil/.git")
	g.put(".envrc", "x")
	g.repo("bare")
	held := e.Leave()
	if got := paths(held); !slices.Equal(got, []string{".envrc", "bare/HEAD", "evil/.git"}) {
		t.Errorf("renamed: %v", held)
	}
	for _, gone := range []string{"evil/.git", ".envrc", "bare/HEAD"} {
		if g.there(gone) {
			t.Errorf("%s is there", gone)
		}
	}
	if len(g.heads()) != 3 {
		t.Errorf("repositories: %v", g.heads())
	}
	g.repo("later/.git") // no command runs
	g.put("later/.envrc", "")
	e = g.enter()
	if got := g.pins(e); !slices.Equal(got, []string{".git", "later/.envrc", "later/.git", "mine/.git", "nested/.git"}) {
		t.Errorf("pinned: %v", got)
	}
	if held := e.Leave(); held != nil {
		t.Errorf("renamed: %v", held)
	}
}

// heads lists all that git takes for a repository in the folder, wherever somebody stands.
func (g *ground) heads() (list []string) {
	_ = filepath.WalkDir(g.dir, func(p string, d os.DirEntry, err error) error { // what cannot be read is none
		if err == nil && d.IsDir() && workspace.Repository(func(name string) bool { _, err := os.Lstat(filepath.Join(p, name)); return err == nil }) {
			list = append(list, p)
			return fs.SkipDir
		}
		return nil
	})
	return list
}

func TestE63_AnAcceptedPathIsTheOwnersAgain(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	e := g.enter()
	g.repo("evil/.git")
	g.repo("bare")
	held := e.Leave()
	if len(g.heads()) != 2 || len(held) != 2 {
		t.Fatalf("%v, left %v", held, g.heads())
	}
	if _, err := g.w.Accept(g.dir, "nowhere"); err == nil {
		t.Error("what was not renamed is accepted")
	}
	for _, h := range held {
		if _, err := g.w.Accept(g.dir, h.Now); err != nil {
			t.Error(err)
		}
	}
	if len(g.heads()) != 4 || !g.there("evil/.git/modules/sub/HEAD") || !g.there("bare/HEAD") {
		t.Errorf("accepted: %v", g.heads())
	}
	e = g.enter()
	if got := g.pins(e); !slices.Equal(got, []string{".git", "bare", "evil/.git", "nested/.git"}) {
		t.Errorf("pinned: %v", got)
	}
	if held := e.Leave(); held != nil {
		t.Errorf("renamed again: %v", held)
	}
}

func TestE63_AKilledGatewaysLeavingsAreFoundAtTheNextStart(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	g.put(".git/config", "[core]\n\thooksPath = hooks\n")
	g.enter() // and never left: the gateway is killed
	g.kill()
	g.repo("evil/.git")
	g.put("hooks/pre-commit", "x")
	g.start()
	e := g.enter()
	if got := g.pins(e); !slices.Equal(got, []string{".git", "nested/.git"}) {
		t.Errorf("pinned: %v", got)
	}
	e.Leave()
	f, err := g.w.Look(g.dir)
	if err != nil || !slices.Equal(paths(f.Held), []string{"evil/.git", "hooks"}) {
		t.Errorf("%+v %v", f, err)
	}
	g.w.Close() // clean
	g.repo("own/.git")
	g.start()
	e = g.enter()
	if got := g.pins(e); !slices.Equal(got, []string{".git", "nested/.git", "own/.git"}) {
		t.Errorf("behind a clean end pinned: %v", got)
	}
	if f, err = g.w.Look(g.dir); err != nil || len(f.Held) != 2 {
		t.Errorf("what was renamed is forgotten: %+v %v", f, err)
	}
	e.Leave()
}

// kill ends the Warden as a killed process does: nothing is written any more.
func (g *ground) kill() {
	g.w.mu.Lock()
	for _, guard := range g.w.guards {
		guard.mu.Lock()
		guard.noted = false
		guard.active++
		guard.mu.Unlock()
	}
	g.w.mu.Unlock()
	g.w.Close()
}

func TestE63_AFolderThatCannotBeProtectedIsReadOnly(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(g *ground){
		"more than 200 control paths": func(g *ground) {
			for i := range 200 {
				g.put(fmt.Sprintf("d%d/.envrc", i), "")
			}
		},
		"is a link": func(g *ground) {
			if err := os.Symlink("main.go", filepath.Join(g.dir, ".envrc")); err != nil {
				g.Fatal(err)
			}
		},
		"a second name": func(g *ground) {
			g.put(".envrc", "")
			if err := os.Link(filepath.Join(g.dir, ".envrc"), filepath.Join(g.dir, "other")); err != nil {
				g.Fatal(err)
			}
		},
		"a repository itself": func(g *ground) { g.repo(".") },
	} {
		g := newGround(t)
		make(g)
		e := g.enter()
		if got := strings.Join(g.pins(e), " "); !strings.HasPrefix(got, "closed: ") || !strings.Contains(got, name) {
			t.Errorf("%s: %s", name, got)
		}
		e.Leave()
		g.w.Close()
	}
}

func TestE63_WhatGitIsToldToObeyIsAControlPathToo(t *testing.T) {
	t.Parallel()
	g := newGround(t, "Justfile", "*.mk")
	g.put(".git/config", "[core]\n\thooksPath = \"tools/hooks\"\n[include]\n\tpath = ../shared.cfg\n[includeIf \"gitdir:x\"] path=../when.cfg\n")
	g.put("shared.cfg", "")
	g.put("tools/hooks/pre-commit", "")
	guard := g.guard()
	e := g.enter()
	if got := g.pins(e); !slices.Equal(got, []string{".git", "nested/.git", "shared.cfg", "tools/hooks"}) {
		t.Errorf("pinned: %v", got)
	}
	for p, want := range map[string]bool{"shared.cfg": true, "when.cfg": true, "tools/hooks/pre-push": true, "TOOLS/Hooks/x": true, "tools/other": false, "main.go": false, "nested/.git/config": true} {
		if guard.Refuses(p) != want {
			t.Errorf("%s is refused: %v", p, !want)
		}
	}
	g.put("when.cfg", "") // by the command
	g.put("sub/justfile", "")
	g.put("x.MK", "")
	if got := paths(e.Leave()); !slices.Equal(got, []string{"sub/justfile", "when.cfg", "x.MK"}) {
		t.Errorf("renamed: %v", got)
	}
}

func TestE63_FoldersThatOverlapAreOne(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	g.put("inner/f", "")
	inner, err := g.w.Guard(filepath.Join(g.dir, "inner"))
	if err != nil {
		t.Fatal(err)
	}
	e := g.enter() // in the outer one
	g.repo("inner/.git")
	if got := paths(e.Leave()); !slices.Equal(got, []string{"inner/.git"}) {
		t.Errorf("by the outer one: %v", got)
	}
	e, err = inner.Enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	g.repo("inner/deep/.git")
	third, err := g.w.Guard(filepath.Join(g.dir, "inner", "deep")) // loaded while a command runs
	if err != nil {
		t.Fatal(err)
	}
	g.repo("inner/deep/er/.git")
	if got := paths(e.Leave()); !slices.Contains(got, "deep/.git") || !slices.Contains(got, "deep/er/.git") {
		t.Errorf("by the inner one: %v", got)
	}
	last, err := third.Enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := g.pins(last); got != nil {
		t.Errorf("pinned: %v", got)
	}
	last.Leave()
	if len(g.heads()) != 2 {
		t.Errorf("left: %v", g.heads())
	}
}

// TestE63_AFightForAName: a process renames back what was renamed for as long as it can.
func TestE63_AFightForAName(t *testing.T) {
	t.Parallel()
	for _, watched := range []bool{true, false} {
		g := newGround(t)
		guard := g.guard().(*Guard)
		<-guard.ready
		if !watched {
			guard.mu.Lock()
			guard.stay.close()
			guard.stay = nil
			guard.mu.Unlock()
		}
		e := g.enter()
		ctx, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
		g.repo("evil/.git")
		back := 0
		for ctx.Err() == nil {
			list, err := os.ReadDir(filepath.Join(g.dir, "evil"))
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range list {
				if strings.HasPrefix(d.Name(), workspace.HeldPrefix) && os.Rename(filepath.Join(g.dir, "evil", d.Name()), filepath.Join(g.dir, "evil", ".git")) == nil {
					back++
				}
			}
		}
		stop()
		e.Leave()
		if back == 0 || g.there("evil/.git") || len(g.heads()) != 2 {
			t.Errorf("watched %v: renamed back %d times, left: %v", watched, back, g.heads())
		}
	}
}

// TestE63_WithinATenthOfASecond is how long what a command makes stands under its name.
func TestE63_WithinATenthOfASecond(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	for i := range 300 {
		g.put(fmt.Sprintf("src/%d/f", i), "")
	}
	e := g.enter()
	var took []time.Duration
	for i := range 20 {
		began := time.Now()
		g.repo(fmt.Sprintf("src/%d/a/b/.git", i))
		for g.there(fmt.Sprintf("src/%d/a/b/.git", i)) && time.Since(began) < 10*time.Second {
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	if took[10] > 2*time.Second { // 100 ms on a machine that has nothing else to do
		t.Errorf("it stood for %s", took)
	}
	t.Logf("median %s, longest %s", took[10], took[19])
	if held := e.Leave(); len(held) != 20 {
		t.Errorf("%d were renamed", len(held))
	}
}

func TestE63_WhatACommandClosesIsOpened(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	e := g.enter()
	g.repo("shut/a/.git")
	g.repo("tight/.git")
	for p, mode := range map[string]os.FileMode{"shut/a": 0, "shut": 0, "tight": 0o500} {
		if err := os.Chmod(filepath.Join(g.dir, p), mode); err != nil && !os.IsPermission(err) {
			t.Fatal(err)
		}
	}
	e.Leave()
	if len(g.heads()) != 2 {
		t.Errorf("left: %v", g.heads())
	}
}
