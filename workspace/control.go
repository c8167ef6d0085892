package workspace

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// A control path is a file or folder from which a program of the host takes orders unasked: git when somebody stands in its
// repository, a shell, an editor or direnv when somebody opens the folder. An agent may read one in an owner's folder and
// must never write it, by whatever way. What is one is said here and nowhere else.

// controlNames gives the names that are control paths at any depth, as a file or a folder.
func controlNames() []string {
	return []string{
		".git", ".hg", ".jj", ".sl", ".husky", ".githooks", ".gitconfig", ".pre-commit-config.yaml", "lefthook.yml", ".lefthook.yml", ".overcommit.yml", // version control
		".envrc", ".direnv", ".autoenv", ".autoenv.zsh", "mise.toml", ".mise.toml", ".mise", // what a shell reads when it enters
		".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".login", ".inputrc",
		".vscode", "*.code-workspace", ".idea", ".fleet", ".zed", ".vs", ".devcontainer", ".devcontainer.json", ".externalToolBuilders", // editors
		".exrc", ".vimrc", ".nvimrc", ".nvim.lua", ".lvimrc", ".dir-locals.el", ".dir-locals-2.el", ".gdbinit", ".lldbinit",
		".claude", ".cursor", ".codex", ".gemini", ".mcp.json", // coding agents
		".ssh", ".gnupg",
	}
}

// HeldPrefix is how a name begins that was given to a control path of a command: it is never one itself.
const HeldPrefix = "parley-held-"

// ControlRule says which names are control paths. It never changes and is safe for concurrent use.
type ControlRule struct {
	exact map[string]bool // folded
	globs []string        // folded
	short map[string]bool // beginnings of names as FAT and NTFS shorten them
}

// DefaultControl is the rule without anything added.
var DefaultControl = sync.OnceValue(func() *ControlRule { return NewControlRule(nil) })

// NewControlRule is the rule with an operator's names added; * in them stands for any characters.
func NewControlRule(more []string) *ControlRule {
	r := &ControlRule{exact: map[string]bool{}, short: map[string]bool{}}
	for _, n := range append(controlNames(), more...) {
		n = fold(n)
		if strings.ContainsAny(n, "*?[") {
			r.globs = append(r.globs, n)
			continue
		}
		r.exact[n] = true
		r.short[shortened(n)] = true
	}
	return r
}

// Name says whether a name in a folder is a control path, as any file system would read it.
func (r *ControlRule) Name(name string) bool {
	if strings.HasPrefix(name, HeldPrefix) {
		return false
	}
	f := fold(name)
	if r.exact[f] {
		return true
	}
	if begin, end, ok := strings.Cut(f, "~"); ok && end != "" && end[0] >= '0' && end[0] <= '9' && r.short[shortened(begin)] {
		return true
	}
	return slices.ContainsFunc(r.globs, func(g string) bool {
		ok, err := path.Match(g, f)
		return ok && err == nil
	})
}

// Path says whether any element of a slash path is one.
func (r *ControlRule) Path(p string) bool {
	for e := range strings.SplitSeq(p, "/") {
		if e != "" && e != "." && e != ".." && r.Name(e) {
			return true
		}
	}
	return false
}

// fold is a name as the most forgiving file system compares it: HFS+, APFS and casefolded ext4 ignore letter case and
// invisible characters, NTFS and FAT dots and blanks at the end, NTFS what stands behind a colon.
func fold(name string) string {
	ascii := true
	for i := range len(name) {
		if name[i] >= 0x80 {
			ascii = false
		}
	}
	if !ascii {
		name = strings.Map(func(r rune) rune {
			if unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
				return -1
			}
			return r
		}, name)
		name = cases.Fold().String(norm.NFKC.String(name))
	}
	name = strings.ToLower(name)
	if i := strings.IndexAny(name, ":\\"); i > 0 {
		name = name[:i]
	}
	return strings.TrimRight(name, " .")
}

// shortened is how a folded name begins in its 8.3 form, which has a ~ and a number behind it.
func shortened(name string) string {
	name = strings.TrimLeft(name, ".")
	if i := strings.LastIndexByte(name, '.'); i > 0 {
		name = name[:i]
	}
	name = strings.Map(func(r rune) rune {
		if r == ' ' || r == '.' {
			return -1
		}
		return r
	}, name)
	return name[:min(len(name), 6)]
}

// RepositoryParts gives the names that together make a folder a repository, whatever it is called: git obeys the config in it when
// somebody stands there.
func RepositoryParts() []string { return []string{"HEAD", "commondir", "objects", "refs"} }

// Repository says whether a folder with these names is one for git. It asks for less than git does.
func Repository(has func(name string) bool) bool {
	return has("HEAD") && (has("commondir") || has("objects") && has("refs"))
}

// InsideControl says whether a directory of the host is inside a control path, or is one: then all of it may only be read.
func InsideControl(rule *ControlRule, dir string) bool {
	if rule.Path(filepath.ToSlash(dir)) {
		return true
	}
	for ; ; dir = filepath.Dir(dir) {
		if Repository(func(name string) bool { _, err := os.Lstat(filepath.Join(dir, name)); return err == nil }) {
			return true
		}
		if dir == filepath.Dir(dir) {
			return false
		}
	}
}

// Guard looks after one writable folder: which of its paths are control paths, in addition to those whose name says so, and what
// commands make there. Package workspace/folder has the one there is.
type Guard interface {
	// Rule says which names are control paths in this folder.
	Rule() *ControlRule
	// Change runs one change by a tool while no other is made. ctx bounds the wait for the folder's first scan.
	Change(f func() error) error
	// Refuses says whether a path, slash-separated, relative and without links, is a control path that was found when the
	// folder was scanned.
	Refuses(path string) bool
	// Refused is told of a write that was refused.
	Refused(path string)
	// Enter is called before a command may write in the folder.
	Enter(ctx context.Context) (GuardEntry, error)
}

// GuardEntry is a command's time in a folder.
type GuardEntry interface {
	// Pins are the control paths that the command may not write. Closed is why the whole folder is shown read-only; empty:
	// it is not.
	Pins() (pins []Pin, closed string)
	// Leave is called once, when no process of the command is left. It gives what the command had made and what was renamed.
	Leave() []Held
}

// Pin is a control path as it was found.
type Pin struct {
	Path     string // relative to the folder, slash-separated
	Dev, Ino uint64
}

// Held is a control path that a command had made, and the harmless name that it got.
type Held struct {
	Path string `json:"path"` // relative to the folder
	Now  string `json:"now"`
}
