package builtin

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"parley/tools"
	"parley/tools/sandbox"
	"parley/workspace"
)

func TestMain(m *testing.M) {
	sandbox.Init()
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(templates) // empty: there is none
		os.Exit(code)
	}))
}

// cell is the real sandbox; one is enough for all tests. It keeps nothing ready, which would outlive them.
var cell = sync.OnceValue(func() sandbox.Backend {
	b := sandbox.New(sandbox.Config{Backend: "ns", Keep: -1}, sandbox.Deps{})
	b.Probe(context.Background())
	return b
})

// ran is one command in a work folder, in the real sandbox.
func (d desk) ran(t *testing.T, line string, unasked bool) string {
	t.Helper()
	d.with = func(c *tools.Call) {
		c.Decision, c.Control = &workspace.ToolDecision{Allow: true, Rule: "level:allowlist"}, filepath.Dir(d.dir)
		if unasked {
			c.Decision.Rule = tools.ExecAllowed + "1"
		}
	}
	text, err := d.call("exec", argsOf(t, "command", line))
	if err != nil {
		return text + " (" + err.Error() + ")"
	}
	return text
}

// repositoryIn is a desk with the real sandbox and a repository with one commit of f, of a subfolder and of .gitattributes.
func repositoryIn(t *testing.T) desk {
	t.Helper()
	if r := cell().Last(); r.Tier != sandbox.TierNS {
		if os.Getenv("PARLEY_REQUIRE_SANDBOX") != "" {
			t.Fatalf("there must be a sandbox here: %v", r.Reasons)
		}
		t.Skipf("no sandbox: %v", r.Reasons)
	}
	if _, ok := FindProgram("git"); !ok {
		t.Skip("there is no git here")
	}
	d := newDesk(t)
	d.real = cell()
	d.write("f", "one\n")
	d.write("sub/g", "one\n")
	d.write(".gitattributes", "* filter=evil diff=evil\n")
	if text := d.ran(t, "git init -q . && git add -A && git commit -qm first && echo more >> f && echo made", false); !strings.Contains(text, "made") {
		t.Fatalf("no repository: %s", text)
	}
	return d
}

func (d desk) append(t *testing.T, name, text string) {
	t.Helper()
	old, err := os.ReadFile(filepath.Join(d.dir, name))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	d.write(name, string(old)+text)
}

func (d desk) program(t *testing.T, name string) {
	t.Helper()
	d.write(name, "#!/bin/sh\ntouch /work/PWNED\ncat\n")
	if err := os.Chmod(filepath.Join(d.dir, name), 0o755); err != nil {
		t.Fatal(err)
	}
}

// TestE64_GitRunsWithoutTheOrdersOfTheFolder: each way is first shown to be one, by git as a person's yes runs it; without a
// question it makes nothing, and git answers all the same.
func TestE64_GitRunsWithoutTheOrdersOfTheFolder(t *testing.T) {
	t.Parallel()
	touch := "touch /work/PWNED; cat"
	for name, c := range map[string]struct {
		set  func(t *testing.T, d desk)
		line string
		want string // of the answer
		tame bool   // git itself does not obey it here
	}{
		"fsmonitor": {func(t *testing.T, d desk) {
			d.append(t, ".git/config", "[core]\n\tfsmonitor = \"touch /work/PWNED; false\"\n")
		}, "git status -s", "M f", false},
		"clean filter": {func(t *testing.T, d desk) {
			d.write("f", "two\n") // of the same size, so that git must read it
			d.append(t, ".git/config", "[filter \"evil\"]\n\tclean = "+quoted(touch)+"\n")
		}, "git status -s", "M f", false},
		"process filter": {func(t *testing.T, d desk) {
			d.append(t, ".git/config", "[filter \"evil\"]\n\tprocess = "+quoted(touch)+"\n")
		}, "git diff", "+more", false},
		"textconv": {func(t *testing.T, d desk) {
			d.append(t, ".git/config", "[diff \"evil\"]\n\ttextconv = \"touch /work/PWNED; cat <\"\n")
		}, "git diff", "+more", false},
		"textconv in log": {func(t *testing.T, d desk) {
			d.append(t, ".git/config", "[diff \"evil\"]\n\ttextconv = \"touch /work/PWNED; cat <\"\n")
		}, "git log -p", "+one", false},
		"diff driver": {func(t *testing.T, d desk) {
			d.append(t, ".git/config", "[diff \"evil\"]\n\tcommand = \"touch /work/PWNED; true\"\n")
		}, "git diff", "+more", false},
		"external diff": {func(t *testing.T, d desk) {
			d.append(t, ".git/config", "[diff]\n\texternal = \"touch /work/PWNED; true\"\n")
		}, "git diff", "+more", false},
		"program file": {func(t *testing.T, d desk) {
			d.program(t, "evil")
			d.append(t, ".git/config", "[diff]\n\texternal = /work/evil\n")
		}, "git diff", "+more", false},
		"include": {func(t *testing.T, d desk) {
			d.write("more", "[core]\n\tfsmonitor = \"touch /work/PWNED; false\"\n")
			d.append(t, ".git/config", "[include]\n\tpath = ../more\n")
		}, "git status -s", "M f", false},
		"includeIf": {func(t *testing.T, d desk) {
			d.write("more", "[core]\n\tfsmonitor = \"touch /work/PWNED; false\"\n")
			d.append(t, ".git/config", "[includeIf \"gitdir:/work/\"]\n\tpath = ../more\n")
		}, "git status -s", "M f", false},
		"config.worktree": {func(t *testing.T, d desk) {
			d.write(".git/config.worktree", "[core]\n\tfsmonitor = \"touch /work/PWNED; false\"\n")
			d.append(t, ".git/config", "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tworktreeConfig = true\n")
		}, "git status -s", "M f", false},
		"core.worktree": {func(t *testing.T, d desk) {
			d.append(t, ".git/config", "[core]\n\tworktree = /tmp\n\tfsmonitor = \"touch /work/PWNED; false\"\n")
		}, "git status -s", "M f", false},
		"signature": {func(t *testing.T, d desk) {
			d.program(t, "evil")
			d.append(t, ".git/config", "[log]\n\tshowSignature = true\n[gpg]\n\tprogram = /work/evil\n")
			if text := d.ran(t, "printf 'tree %s\\nauthor a <a> 1 +0000\\ncommitter a <a> 1 +0000\\ngpgsig -----BEGIN PGP SIGNATURE-----\\n \\n x\\n -----END PGP SIGNATURE-----\\n\\nsigned\\n' $(git rev-parse HEAD^{tree}) > c && "+
				"git update-ref HEAD $(git hash-object -t commit -w c) && echo made", false); !strings.Contains(text, "made") {
				t.Fatal(text)
			}
		}, "git log", "signed", false},
		"submodule": {func(t *testing.T, d desk) {
			if text := d.ran(t, "git init -q m && git -C m commit -q --allow-empty -m x && git -c advice.addEmbeddedRepo=false add m && git -C m config core.fsmonitor 'touch /work/PWNED; false' && echo made", false); !strings.Contains(text, "made") {
				t.Fatal(text)
			}
			_ = os.Remove(filepath.Join(d.dir, "PWNED"))
		}, "git status -s", "M f", false},
		"hidden submodule": {func(t *testing.T, d desk) {
			d.write(".gitmodules", "[submodule \"m\"]\n\tpath = m\n\turl = ./m\n\tignore = none\n")
			if text := d.ran(t, "git init -q m && git -C m commit -q --allow-empty -m x && git -c advice.addEmbeddedRepo=false add m && git config submodule.m.ignore none && git config diff.ignoreSubmodules none && "+
				"git -C m config core.fsmonitor 'touch /work/PWNED; false' && echo made", false); !strings.Contains(text, "made") {
				t.Fatal(text)
			}
			_ = os.Remove(filepath.Join(d.dir, "PWNED"))
		}, "git diff", "+more", false},
		"lazy fetch": {func(t *testing.T, d desk) {
			d.append(t, ".git/config", "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tpartialClone = evil\n[remote \"evil\"]\n\turl = /work\n\tpromisor = true\n\tuploadpack = \"touch /work/PWNED; false\"\n")
			if text := d.ran(t, "rm -f .git/objects/$(git rev-parse HEAD:f | sed 's,^..,&/,') && echo made", false); !strings.Contains(text, "made") {
				t.Fatal(text)
			}
			_ = os.Remove(filepath.Join(d.dir, "PWNED"))
		}, "git cat-file -p HEAD:f", "exit code 128", false},
		"pager": {func(t *testing.T, d desk) {
			d.append(t, ".git/config", "[pager]\n\tlog = "+quoted(touch)+"\n[core]\n\tpager = "+quoted(touch)+"\n")
		}, "git log", "first", true},
		"alias": {func(t *testing.T, d desk) { d.append(t, ".git/config", "[alias]\n\tstatus = \"!touch /work/PWNED\"\n") }, "git status -s", "M f", true},
		"hook": {func(t *testing.T, d desk) {
			d.program(t, ".git/hooks/post-index-change")
			d.program(t, ".git/hooks/fsmonitor-watchman")
		}, "git status -s", "M f", true},
		"escape": {func(t *testing.T, d desk) {
			d.append(t, ".git/config", "[branch \"x\"]\n\tmerge = \"a\\n[core]\\n\\tfsmonitor = touch /work/PWNED\"\n[branch \"]\n[core]\n\tfsmonitor = \\\"touch /work/PWNED\\\"\n")
		}, "git status -s", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := repositoryIn(t)
			c.set(t, d)
			text := d.ran(t, c.line, true)
			if exists(d, "PWNED") {
				t.Errorf("it was obeyed: %s", text)
			}
			if !strings.Contains(text, c.want) {
				t.Errorf("git says %q, want %q", text, c.want)
			}
			text = d.ran(t, c.line, false)
			if exists(d, "PWNED") == c.tame {
				t.Errorf("git as a person's yes runs it obeys: %v, want %v; it says %s", !c.tame, c.tame, text)
			}
		})
	}
}

func exists(d desk, name string) bool {
	_, err := os.Lstat(filepath.Join(d.dir, name))
	return err == nil
}

func quoted(s string) string { return `"` + s + `"` }

// TestE64_GitTellsTheSameWithoutItsOrders: what git says of an honest repository does not change.
func TestE64_GitTellsTheSameWithoutItsOrders(t *testing.T) {
	t.Parallel()
	d := repositoryIn(t)
	if text := d.ran(t, "git branch -q side && git config branch.main.remote . && git config branch.main.merge refs/heads/side && git commit -qam second && git tag v1 && echo new > 'a b' && "+
		"git config core.quotepath false && echo y > ü && echo z >> sub/g && git stash -q && git stash apply -q && echo made", false); !strings.Contains(text, "made") {
		t.Fatal(text)
	}
	for _, line := range []string{"git status", "git status -sb", "git log --oneline", "git log -p --stat", "git diff", "git diff --cached", "git show HEAD", "git branch -vv", "git tag", "git blame f", "git grep -n one", "git ls-files -o",
		"git rev-parse HEAD", "git describe --tags", "git shortlog -s HEAD", "git for-each-ref", "git remote -v", "git status sub"} {
		if with, without := untimed(d.ran(t, line, false)), untimed(d.ran(t, line, true)); with != without {
			t.Errorf("%s says %q, and without orders %q", line, with, without)
		}
	}
	d.with = func(c *tools.Call) {
		c.Decision, c.Control = &workspace.ToolDecision{Allow: true, Rule: tools.ExecAllowed + "1"}, filepath.Dir(d.dir)
	}
	if text, err := d.call("exec", argsOf(t, "command", "git status -s", "working_dir", "sub")); err != nil || !strings.Contains(text, "?? ../a b") && !strings.Contains(text, `?? "../a b"`) {
		t.Errorf("below the top: %s %v", text, err)
	}
}

func untimed(text string) string {
	text, _, _ = strings.Cut(text, " after ")
	return text
}

// TestE64_GitRunsUnaskedInAPlainRepositoryOnly: a .git that leads elsewhere, and a folder that git would take for a repository
// by what is in it.
func TestE64_GitRunsUnaskedInAPlainRepositoryOnly(t *testing.T) {
	t.Parallel()
	d := repositoryIn(t)
	for _, line := range []string{"git init -q --bare bare && git -C bare config core.fsmonitor 'touch /work/PWNED; false'", "mkdir away && mv .git away/it && printf 'gitdir: away/it' > .git", "rm .git", "ln -s away/it .git"} {
		d.ran(t, line+"", false)
		text := d.ran(t, "git status", true)
		plain := strings.HasPrefix(line, "git init") || strings.HasPrefix(line, "ln")
		if plain == strings.Contains(text, "Begin the line with `env `") || exists(d, "PWNED") {
			t.Errorf("after %s: %s", line, text)
		}
	}
}

// TestE64_GitInAnOwnersFolder: shown to commands elsewhere than to file tools.
func TestE64_GitInAnOwnersFolder(t *testing.T) {
	t.Parallel()
	d, host := repositoryIn(t), filepath.Join(t.TempDir(), "proj")
	d.append(t, ".git/config", "[core]\n\tfsmonitor = \"touch /work/PWNED; false\"\n")
	if err := os.CopyFS(host, os.DirFS(d.dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(d.dir, ".git")); err != nil {
		t.Fatal(err)
	}
	if err := d.root.Mount(workspace.Folder{Dir: host, As: "proj"}); err != nil {
		t.Fatal(err)
	}
	d.with = func(c *tools.Call) {
		c.Decision, c.Control = &workspace.ToolDecision{Allow: true, Rule: tools.ExecAllowed + "1"}, filepath.Dir(d.dir)
	}
	for _, dir := range []string{"proj", "proj/sub"} {
		text, err := d.call("exec", argsOf(t, "command", "git status -s", "working_dir", dir))
		if err != nil || !strings.Contains(text, "M f") && !strings.Contains(text, "M ../f") || exists(d, "PWNED") {
			t.Errorf("in %s: %s %v", dir, text, err)
		}
	}
}
