package workspace

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"parley/workspace/tree"
)

// heal makes a path of a work folder usable again that a command has shut: it gives the owner's rights back to the folder
// itself, to those on the way to the path, and to what it names, where its owner may not even read it. What a command has only
// protected from being written stays so. Folders of an owner are theirs to shut.
func (r *Root) heal(clean string, want uint32) {
	if !r.work {
		return
	}
	if err := tree.HealPath(r.dir, tree.Write); err != nil || os.Geteuid() == 0 || clean == "." { // the superuser may read all below
		return
	}
	at, err := unix.Open(r.dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	rest := clean
	for rest != "" {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		need := uint32(0o400)
		var st unix.Stat_t
		if unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
			break
		}
		if uint32(st.Mode)&unix.S_IFMT == unix.S_IFDIR {
			need = tree.Read
		}
		if rest == "" {
			need |= want
		}
		_, _ = tree.Heal(at, name, need) // what cannot be healed says so when it is opened
		if rest == "" {
			break
		}
		next, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			break // a link: what it leads to is left as it is
		}
		_ = unix.Close(at) // it was only read
		at = next
	}
	_ = unix.Close(at) // as above
}
