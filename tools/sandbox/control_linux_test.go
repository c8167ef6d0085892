package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"parley/tools/sandbox/internal/cell"
)

// A whiteout is a character device, which an owner's folder would keep.
func TestE27_NoWhiteoutIsLeft(t *testing.T) {
	t.Parallel()
	prove(t, escape{"E27", func(w *world) string {
		w.put("tree/f", "x")
		w.command.Folders = []Mount{{Host: filepath.Join(w.dir, "tree"), As: "tree", RW: true}}
		got := said(w.hostile("whiteout", "/folders/tree/f", "/folders/tree/g"))
		if fi, err := os.Lstat(filepath.Join(w.dir, "tree/f")); err == nil && fi.Mode()&os.ModeDevice != 0 {
			return "a device is left; " + got
		}
		return got
	}, []weakness{cell.NoSeccomp | cell.NoLandlock}})
}

// leaveWhiteout renames a file so that a device takes its place.
func leaveWhiteout(from, to string) string {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_WHITEOUT)
	if err == nil {
		return "it was renamed"
	}
	return ""
}

func TestProcTellsLittleOfTheHost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	out := w.sh(`cd /proc; for f in interrupts softirqs diskstats partitions misc devices vmstat zoneinfo schedstat swaps locks; do [ -e $f ] && [ -n "$(cat $f 2>/dev/null)" ] && echo $f; done; ls pressure 2>/dev/null; cat meminfo cpuinfo stat >/dev/null && echo fine`)
	if got := strings.TrimSpace(string(out.Output)); got != "fine" {
		t.Errorf("a command reads of the host: %s", got)
	}
}
