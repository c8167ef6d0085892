package builtin

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"parley/tools/sandbox"
	"parley/workspace"
	"parley/workspace/lazy"
)

// A repository tells git what to run: its configuration names hooks, pagers, filters, other configurations, its attributes
// say which filter is for which file. Names in it are free, so that they cannot be overridden one by one; and who reads
// it first can be told something else than git is told later. So git that runs unasked never reads it: it gets a folder of
// its own in place of .git, with a configuration and no hooks made here, in which what is data (objects, refs, index) is
// linked to the repository's. The configuration takes over, from a list, what says how files look.

const (
	gitView   = "/tmp/.parley-git"
	maxGitCfg = 256 << 10 // bytes of a configuration that is looked at
	maxTaken  = 32 << 10  // bytes that are taken over
)

// errNoRepository is told with what to do.
var errNoRepository = errors.New("no plain repository")

// gitArgv is the command that runs git, with words behind it, in the folder dir of the work folder.
func gitArgv(root *workspace.Root, dir, program string, words []string) ([]string, error) {
	top, err := repository(root, dir)
	if err != nil {
		return nil, err
	}
	cfg := "[core]\n\trepositoryformatversion = 0\n"
	data, _, err := root.ReadFile(workspace.At(path.Join(top, ".git/config")), maxGitCfg)
	if err == nil { // else git says what is wrong
		cfg += harmless(string(data))
	}
	args := []string{"/bin/sh", "-c", gitScript, "git", path.Join(sandbox.WorkPath, top), cfg, program, "--no-pager", words[0]}
	if words[0] == "status" || words[0] == "diff" {
		args = append(args, "--ignore-submodules=all") // each has a configuration of its own, and git would run in it
	}
	return append(args, words[1:]...), nil
}

// repository is the folder at or above dir that holds .git.
func repository(root *workspace.Root, dir string) (string, error) {
	for at := dir; ; at = path.Dir(at) {
		info, err := root.Stat(workspace.At(path.Join(at, ".git")))
		switch {
		case err == nil && info.Kind == workspace.KindDir:
			return at, nil
		case err == nil:
			return "", workspace.Say(errNoRepository, "The .git of this folder is not a plain one, so git does not run unasked here. Begin the line with `env ` to have a person asked.")
		case !errors.Is(err, workspace.ErrNotFound):
			return "", workspace.Say(err, "The .git of this folder cannot be looked at, so git does not run unasked here. Begin the line with `env ` to have a person asked.")
		case at == ".":
			return "", workspace.Say(errNoRepository, "There is no .git at or above this folder. Begin the line with `env ` to have a person asked, and git run as it is.")
		}
	}
}

// gitScript makes the folder and runs git. Its arguments: the top folder, the configuration, git and what git gets.
var gitScript = `g=$1/.git v=` + gitView + ` l=
mkdir $v && ln -s "$g" $v.d && printf %s "$2" >$v/config || exit
h=; read -r h <$v.d/HEAD; printf '%s\n' "$h" >$v/HEAD
for f in objects refs reftable packed-refs logs info index shallow ORIG_HEAD FETCH_HEAD MERGE_HEAD MERGE_MSG MERGE_MODE CHERRY_PICK_HEAD REVERT_HEAD BISECT_LOG sequencer rebase-merge rebase-apply; do
	[ -e $v.d/$f ] && l="$l $v.d/$f"
done
for f in $v.d/sharedindex.*; do
	case ${f##*/sharedindex.} in *[!0-9a-f]*) ;; *) l="$l $f" ;; esac
done
[ -z "$l" ] || ln -s $l $v/ || exit
export GIT_DIR=$v GIT_WORK_TREE="$1"
shift 2
` + gitEnviron() + `
exec "$@"`

// gitEnviron closes what is not in the folder: the system's and the user's settings, transports, and, for a git that this one
// might start elsewhere, whatever has a name that is known.
func gitEnviron() string {
	var b strings.Builder
	b.WriteString("export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_ATTR_NOSYSTEM=1 GIT_PAGER=cat GIT_TERMINAL_PROMPT=0 GIT_OPTIONAL_LOCKS=0 GIT_ALLOW_PROTOCOL=none GIT_NO_LAZY_FETCH=1 " +
		"GIT_TEST_ASSUME_DIFFERENT_OWNER=1") // the last lets every git refuse every other repository: /etc/gitconfig, which trusts all, is not read
	set := [][2]string{{"core.fsmonitor", "false"}, {"core.hooksPath", "/dev/null"}, {"core.pager", "cat"}, {"core.editor", "false"}, {"core.sshCommand", "false"}, {"core.attributesFile", "/dev/null"},
		{"core.excludesFile", "/dev/null"}, {"core.alternateRefsCommand", "false"}, {"core.askPass", "false"}, {"diff.submodule", "short"}, {"diff.ignoreSubmodules", "all"},
		{"status.submoduleSummary", "false"}, {"submodule.recurse", "false"}, {"protocol.allow", "never"}, {"credential.helper", ""}, {"gpg.program", "false"}, {"log.showSignature", "false"},
		{"safe.bareRepository", "explicit"}, {"uploadpack.packObjectsHook", "false"}}
	for i, kv := range set {
		fmt.Fprintf(&b, " GIT_CONFIG_KEY_%d=%s GIT_CONFIG_VALUE_%d=%s", i, kv[0], i, kv[1])
	}
	fmt.Fprintf(&b, " GIT_CONFIG_COUNT=%d", len(set))
	return b.String()
}

var (
	gitSection = lazy.Regexp(`^[ \t]*\[([A-Za-z0-9-]+)(?:[ \t]+"([A-Za-z0-9._/-]+)")?\][ \t\r]*$`)
	gitKey     = lazy.Regexp(`^[ \t]*([A-Za-z][A-Za-z0-9-]*)[ \t]*=[ \t]*([A-Za-z0-9._/:+@*~-]+)[ \t\r]*$`)
	// gitTaken are keys whose values say how files look or what branches follow, and that name nothing to run.
	gitTaken = lazy.Regexp(`^(core\.(repositoryformatversion|ignorecase|filemode|symlinks|autocrlf|eol|safecrlf|quotepath|abbrev|precomposeunicode)|` +
		`extensions\.(objectformat|refstorage)|branch\.\*\.(remote|merge|rebase)|remote\.\*\.(url|fetch))$`)
)

// harmless is what is taken over of a configuration: lines that can be read in one way only, with keys that are known.
func harmless(cfg string) string {
	var b strings.Builder
	section, sub := "", ""
	for line := range strings.Lines(cfg) {
		line = strings.TrimSuffix(line, "\n")
		if m := gitSection().FindStringSubmatch(line); m != nil {
			section, sub = strings.ToLower(m[1]), m[2]
			continue
		}
		m := gitKey().FindStringSubmatch(line)
		if m == nil {
			if strings.Contains(line, "[") {
				section = "" // perhaps another section
			}
			continue
		}
		name, head := section+"."+strings.ToLower(m[1]), "["+section+"]"
		if sub != "" {
			name, head = section+".*."+strings.ToLower(m[1]), "["+section+` "`+sub+`"]`
		}
		if gitTaken().MatchString(name) && b.Len() < maxTaken {
			fmt.Fprintf(&b, "%s\n\t%s = %s\n", head, m[1], m[2])
		}
	}
	return b.String()
}
