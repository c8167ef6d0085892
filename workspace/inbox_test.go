package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func keep(t *testing.T, r *Root, name, text string) string {
	t.Helper()
	p, err := r.Keep(Inbox, name, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestKeepNeverReplacesAndNeverDoubles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, err := OpenWork(filepath.Join(dir, "work"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, c := range []struct{ text, want string }{
		{"one", "inbox/a.txt"}, {"two", "inbox/a-2.txt"}, {"one", "inbox/a.txt"}, {"two", "inbox/a-2.txt"}, {"three", "inbox/a-3.txt"},
	} {
		if got := keep(t, r, "a.txt", c.text); got != c.want {
			t.Errorf("%s went to %s, want %s", c.text, got, c.want)
		}
		if data, _, err := r.ReadFile(At(c.want), 100); err != nil || string(data) != c.text {
			t.Errorf("%s holds %q, %v", c.want, data, err)
		}
	}
	if list, _, err := r.List(At(Inbox), 10); err != nil || len(list) != 3 {
		t.Errorf("%+v, %v", list, err)
	}
}

// A crash leaves half a file under another name, or the whole one with two names. The next try mends both.
func TestKeepMendsWhatACrashLeft(t *testing.T) {
	t.Parallel()
	work := filepath.Join(t.TempDir(), "work")
	r, err := OpenWork(work)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := os.Mkdir(filepath.Join(work, Inbox), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(work, "inbox/.a.txt.part"), []byte("ha"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := keep(t, r, "a.txt", "half"); got != "inbox/a.txt" {
		t.Error(got)
	}
	if err := os.Link(filepath.Join(work, "inbox/a.txt"), filepath.Join(work, "inbox/.a.txt.part")); err != nil {
		t.Fatal(err)
	}
	if got := keep(t, r, "a.txt", "half"); got != "inbox/a.txt" {
		t.Error(got)
	}
	if data, _, err := r.ReadFile(At("inbox/a.txt"), 100); err != nil || string(data) != "half" {
		t.Errorf("%q, %v", data, err)
	}
	if list, _, err := r.List(At(Inbox), 10); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestE48_KeepIsNotLedOutByLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	work, outside := filepath.Join(dir, "work"), filepath.Join(dir, "outside")
	r, err := OpenWork(work)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := os.Mkdir(outside, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(work, Inbox)); err != nil {
		t.Fatal(err)
	}
	if p, err := r.Keep(Inbox, "a.txt", strings.NewReader("x")); err == nil {
		t.Errorf("kept through a link as %s", p)
	}
	if err := os.Remove(filepath.Join(work, Inbox)); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(work, Inbox), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, link := range []string{"a.txt", ".b.txt.part"} {
		if err := os.Symlink(filepath.Join(outside, "victim"), filepath.Join(work, Inbox, link)); err != nil {
			t.Fatal(err)
		}
	}
	if got := keep(t, r, "a.txt", "x"); got != "inbox/a-2.txt" {
		t.Errorf("kept as %s over a link", got)
	}
	if got := keep(t, r, "b.txt", "x"); got != "inbox/b.txt" {
		t.Error(got)
	}
	if list, err := os.ReadDir(outside); err != nil || len(list) != 0 {
		t.Errorf("outside: %v, %v", list, err)
	}
}
