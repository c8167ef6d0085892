package source_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/configs/source"
)

// refusedTurns is what prepare never takes.
const refusedTurns = 1313

var errRefused = errors.New("nobody has so many")

func (w *watched) replaceWith(base, text string) error {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	return w.Replace(ctx, base, []byte(text))
}

func (w *watched) file() source.File {
	w.t.Helper()
	f, err := w.File()
	if err != nil {
		w.t.Fatal(err)
	}
	return f
}

// A text that is written by the gateway is in force when Replace returns, and the file's own event changes nothing more.
func TestReplaceIsInForceAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "parley.yaml")
	save(t, path, "# mine\n"+turns(2))
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	w := watch(t, path)
	if err := w.replaceWith(w.file().Revision, "# mine\n"+turns(3)); err != nil {
		t.Fatal(err)
	}
	if got := w.Current().Concurrency.Turns; got != 3 {
		t.Errorf("%d turns are in force", got)
	}
	w.turn(3)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	list, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(list) != 1 {
		t.Errorf("%d files are left, %v", len(list), err)
	}
	save(t, path, turns(4)) // still watched
	w.turn(4)
}

// What does not load, is not taken, or was made of another text leaves the file byte by byte.
func TestReplaceAsAWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "parley.yaml")
	save(t, path, turns(2))
	w := watch(t, path)
	base := w.file().Revision
	for name, c := range map[string]struct {
		base, text string
		want       error
		says       string
	}{
		"not YAML":          {base, "concurrency: [\n", nil, "not valid YAML"},
		"a wrong key":       {base, "concurency: {turns: 3}\n", nil, "concurency"},
		"nothing":           {base, "# nothing\n", source.ErrEmpty, ""},
		"another text":      {"0000", turns(3), source.ErrChanged, ""},
		"no file was there": {"", turns(3), source.ErrChanged, ""},
		"it is not taken":   {base, turns(refusedTurns), errRefused, ""},
	} {
		err := w.replaceWith(c.base, c.text)
		if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		if got := string(w.file().Text); got != turns(2) || w.Current().Concurrency.Turns != 2 {
			t.Errorf("%s: the file is %q, %d turns are in force", name, got, w.Current().Concurrency.Turns)
		}
	}
	if err := w.replaceWith(base, turns(5)); err != nil || w.Current().Concurrency.Turns != 5 {
		t.Errorf("after all of them: %v", err)
	}
}

// Without a file one is made where it is looked for, readable by its owner only.
func TestReplaceMakesTheFirstFile(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	w := watch(t, "", "XDG_CONFIG_HOME="+home, "HOME="+home)
	f := w.file()
	if want := filepath.Join(home, "parley", "parley.yaml"); f.Path != want || f.Revision != "" {
		t.Fatalf("%+v, want %s", f, want)
	}
	if err := w.replaceWith("", turns(7)); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(f.Path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info, err)
	}
	w.turn(7)
	save(t, f.Path, turns(8))
	w.turn(8)
}

// A link stays a link.
func TestReplaceWritesThroughALink(t *testing.T) {
	t.Parallel()
	real, link := filepath.Join(t.TempDir(), "real.yaml"), filepath.Join(t.TempDir(), "parley.yaml")
	save(t, real, turns(2))
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	w := watch(t, link)
	if err := w.replaceWith(w.file().Revision, turns(3)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(real)
	if err != nil || string(text) != turns(3) {
		t.Errorf("%q, %v", text, err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link became %v, %v", info, err)
	}
}
