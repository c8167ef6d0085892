//go:build unix

package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"parley/workspace/tree"
)

const needed = "parley.db"

// scratch is a folder in memory where there is such a file system, with what every archive must hold.
func scratch(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "archive-")
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() {
		up, err := os.Open(filepath.Dir(dir))
		if err == nil {
			_, err = tree.Remove(context.Background(), up, filepath.Base(dir), nil)
			up.Close()
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	})
	put(t, dir, needed, "rows")
	return dir
}

func put(t testing.TB, dir, name, text string) {
	t.Helper()
	full := filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(full), 0o700), os.WriteFile(full, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func written(t testing.TB, dir string) (*bytes.Buffer, Manifest) {
	t.Helper()
	var out bytes.Buffer
	m, err := Write(t.Context(), &out, dir, Options{Scratch: t.TempDir(), Created: time.Unix(1, 0)})
	if err != nil {
		t.Fatal(err)
	}
	return &out, m
}

// restored puts an archive back.
func restored(t testing.TB, from io.Reader) (string, Manifest) {
	t.Helper()
	to := scratch(t)
	if err := os.Remove(filepath.Join(to, needed)); err != nil {
		t.Fatal(err)
	}
	m, err := Read(t.Context(), from, to, needed)
	if err != nil {
		t.Fatal(err)
	}
	return to, m
}

func read(t testing.TB, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

// E66: what a command may leave is kept and put back, or left out and listed; nothing ends a backup.
func TestE66_WhatACommandLeavesIsSavedOrListed(t *testing.T) {
	t.Parallel()
	dir := scratch(t)
	keep := map[string]string{"plain": "text", "a\nb": "newline", "\xff\xfe": "no text", "base64:x": "looks coded", strings.Repeat("n", 255): "long", "-rf": "", "manifest": "x", "w/manifest.json": "y",
		"w/x/y/z": "deep", "shut/file": "in a shut folder", "mute": "unreadable", "späße/☃": "utf-8"}
	for name, text := range keep {
		put(t, dir, name, text)
	}
	work := func(name string) string { return filepath.Join(dir, "w", name) }
	if err := errors.Join(os.Mkdir(work("empty"), 0o700), unix.Mkfifo(work("fifo"), 0o600), os.Symlink("/etc/passwd", work("link")),
		os.Link(work("x/y/z"), work("second name")), os.Link(work("x/y/z"), work("third")), os.Chmod(filepath.Join(dir, "plain"), 0o700),
		os.Chmod(filepath.Join(dir, "mute"), 0), os.Chmod(filepath.Join(dir, "shut"), 0)); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mknod(work("socket"), unix.S_IFSOCK|0o600, 0); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := unix.Mknod(work("whiteout"), unix.S_IFCHR, 0); err != nil {
			t.Log(err)
		}
	}
	packed, m := written(t, dir)
	for _, l := range m.Left {
		if !slices.Contains([]string{"w/fifo", "w/link", "w/socket", "w/whiteout"}, l.Name) || l.Reason == "" {
			t.Errorf("left out: %+v", l)
		}
	}
	if m.LeftOut < 3 || m.Files != int64(len(keep))+1 {
		t.Errorf("%+v", m)
	}
	to, back := restored(t, packed)
	for name, text := range keep {
		if got := read(t, to, name); got != text {
			t.Errorf("%q holds %q, want %q", name, got, text)
		}
	}
	if back.Files != m.Files || back.LeftOut != m.LeftOut || back.Created != 1000 {
		t.Errorf("read %+v, wrote %+v", back, m)
	}
	one, err1 := os.Stat(filepath.Join(to, "w/x/y/z"))
	two, err2 := os.Stat(filepath.Join(to, "w/third"))
	if err1 != nil || err2 != nil || !os.SameFile(one, two) {
		t.Errorf("hard links: %v %v", err1, err2)
	}
	if info, err := os.Stat(filepath.Join(to, "w/empty")); err != nil || !info.IsDir() {
		t.Errorf("an empty folder: %v", err)
	}
	if info, err := os.Stat(filepath.Join(to, "plain")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("a program: %v %v", info.Mode(), err)
	}
}

// E66: holes cost nothing, in neither direction.
func TestE66_FilesWithHolesStaySmall(t *testing.T) {
	t.Parallel()
	dir := scratch(t)
	const files, size = 40, int64(256 << 20)
	for i := range files {
		f, err := os.Create(filepath.Join(dir, fmt.Sprint("hole", i)))
		if err == nil {
			_, err = f.WriteAt([]byte("data"), int64(i)<<20)
			err = errors.Join(err, f.Truncate(size), f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(dir, "hole1"), &st); err != nil || st.Blocks*512 > 1<<20 {
		t.Skipf("no holes on this file system: %d blocks, %v", st.Blocks, err)
	}
	began := time.Now()
	packed, m := written(t, dir)
	if m.Bytes > files<<20 || packed.Len() > 1<<20 {
		t.Errorf("%d bytes were read, %d written", m.Bytes, packed.Len())
	}
	saved := time.Since(began)
	to, _ := restored(t, packed)
	t.Logf("saved in %s, put back in %s", saved, time.Since(began)-saved)
	for i := range files {
		if err := unix.Stat(filepath.Join(to, fmt.Sprint("hole", i)), &st); err != nil || st.Size != size || st.Blocks*512 > 1<<20 {
			t.Fatalf("%d bytes in %d blocks, %v", st.Size, st.Blocks, err)
		}
	}
	f, err := os.Open(filepath.Join(to, "hole7"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 6)
	if _, err := f.ReadAt(b, 7<<20-1); err != nil || string(b) != "\x00data\x00" {
		t.Errorf("%q %v", b, err)
	}
}

// E66: one file under thousands of names is kept once.
func TestE66_ManyNamesOfOneFileAreOneFile(t *testing.T) {
	t.Parallel()
	dir := scratch(t)
	put(t, dir, "w/0", strings.Repeat("x", 1<<20))
	const links = 5000
	for i := range links {
		if err := os.Link(filepath.Join(dir, "w", "0"), filepath.Join(dir, "w", fmt.Sprint(i+1))); err != nil {
			t.Skip(err)
		}
	}
	packed, m := written(t, dir)
	if m.Bytes > 2<<20 {
		t.Errorf("%d bytes", m.Bytes)
	}
	to, _ := restored(t, packed)
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(to, "w", "77"), &st); err != nil || st.Nlink != links+1 {
		t.Errorf("%d names, %v", st.Nlink, err)
	}
}

// nested makes folders inside one another, each with a file, and says how they are called.
func nested(t testing.TB, dir, name string, depth int) {
	t.Helper()
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	for range depth {
		next := -1
		if err == nil {
			err = unix.Mkdirat(fd, name, 0o700)
		}
		if err == nil {
			next, err = unix.Openat(fd, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		}
		unix.Close(fd)
		if err != nil {
			t.Fatal(err)
		}
		fd = next
		f, ferr := unix.Openat(fd, "f", unix.O_CREAT|unix.O_WRONLY, 0o600)
		if err = ferr; err == nil {
			_, err = unix.Write(f, []byte("x"))
			unix.Close(f)
		}
	}
	unix.Close(fd)
}

// E66: a folder's depth costs a backup no more than its files do, in time and in memory, and it comes back whole.
func TestE66_DeepFoldersAreSavedAndRestored(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		depth int
	}{{"d", 10_000}, {strings.Repeat("n", 250), 1000}} {
		dir := scratch(t)
		nested(t, dir, c.name, c.depth)
		began := time.Now()
		packed, m := written(t, dir)
		saved, size := time.Since(began), packed.Len()
		if m.LeftOut != 0 || m.Files < int64(c.depth)+1 {
			t.Errorf("%+v", m)
		}
		to, _ := restored(t, packed)
		t.Logf("%d folders of %d letters: saved in %s, %d bytes; put back in %s", c.depth, len(c.name), saved, size, time.Since(began)-saved)
		files, deepest := 0, 0
		top, err := os.Open(to)
		if err != nil {
			t.Fatal(err)
		}
		see := tree.Walker{Visit: func(e *tree.Entry) error {
			if e.Name == "f" && e.Stat.Size == 1 {
				files++
			}
			deepest = max(deepest, e.Depth)
			return nil
		}}
		if err := see.Walk(t.Context(), top); err != nil || files != c.depth || deepest != c.depth+1 {
			t.Errorf("%d files down to %d came back: %v", files, deepest, err)
		}
		top.Close()
	}
}

// E66: a file that is changed while it is read ends nothing.
func TestE66_AFileThatShrinksIsSavedInPart(t *testing.T) {
	t.Parallel()
	dir := scratch(t)
	put(t, dir, "log", strings.Repeat("x", 1<<20))
	f, err := os.Open(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := &pieceReader{ctx: t.Context(), file: f, pieces: []piece{{0, 1 << 20}}}
	half := make([]byte, 1<<19)
	if _, err := io.ReadFull(r, half); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "log"), 10); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(r)
	if err != nil || len(rest) != 1<<19 || !errors.Is(r.short, errShrank) {
		t.Errorf("%d bytes, %v, %v", len(rest), err, r.short)
	}
}

func TestABackupEndsWithItsContext(t *testing.T) {
	t.Parallel()
	dir := scratch(t)
	for i := range 2000 {
		put(t, dir, fmt.Sprintf("w/%d", i), "x")
	}
	ctx, cancel := context.WithCancel(t.Context())
	w := &slow{after: 1, then: cancel}
	if _, err := Write(ctx, w, dir, Options{Scratch: t.TempDir()}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// slow calls then at its nth write.
type slow struct {
	after int
	then  func()
}

func (w *slow) Write(b []byte) (int, error) {
	if w.after--; w.after == 0 {
		w.then()
	}
	return len(b), nil
}

// old is an archive of format 1.
func old(t testing.TB, files [][2]string) *bytes.Buffer {
	t.Helper()
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	list := tar.NewWriter(packed)
	var rows []map[string]any
	add := func(name, text string) {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(text)), Mode: 0o600, ModTime: time.Unix(0, 0), Format: tar.FormatPAX}
		_, err := list.Write(nil)
		if err = errors.Join(err, list.WriteHeader(h)); err == nil {
			_, err = io.WriteString(list, text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range files {
		add(f[0], f[1])
		sum := sha256.Sum256([]byte(f[1]))
		rows = append(rows, map[string]any{"name": f[0], "size": len(f[1]), "sha256": hex.EncodeToString(sum[:])})
	}
	text, err := json.MarshalIndent(map[string]any{"format": 1, "created": 5, "epoch": 7, "files": rows, "left_out": []string{"agents/a/link"}}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	add(manifestName, string(text))
	if err := errors.Join(list.Close(), packed.Close()); err != nil {
		t.Fatal(err)
	}
	return &out
}

func TestFormat1IsRead(t *testing.T) {
	t.Parallel()
	to, m := restored(t, old(t, [][2]string{{"agents/a/SOUL.md", "kind"}, {needed, "rows"}, {"zeros", strings.Repeat("\x00", 1<<20)}}))
	if read(t, to, "agents/a/SOUL.md") != "kind" || len(read(t, to, "zeros")) != 1<<20 || m.Files != 3 || m.Epoch != 7 || m.Left[0].Name != "agents/a/link" {
		t.Errorf("%+v", m)
	}
}

// R12, E48: an archive that its maker did not write puts nothing outside the folder, and is not a backup.
func TestE48_AHostileArchiveIsRefused(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("p/", 10)
	for what, list := range map[string][]tar.Header{
		"a path that climbs":         {{Name: "../evil"}},
		"an absolute path":           {{Name: "/evil"}},
		"a path that climbs within":  {{Name: "a/../../evil"}},
		"a dot":                      {{Name: "."}},
		"an empty name":              {{Name: ""}},
		"a symbolic link":            {{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "/etc"}},
		"a device":                   {{Name: "d", Typeflag: tar.TypeChar}},
		"a link out":                 {{Name: "l", Typeflag: tar.TypeLink, Linkname: "../../etc/passwd"}},
		"a link to nothing":          {{Name: "l", Typeflag: tar.TypeLink, Linkname: "nothing"}},
		"a folder that climbs":       {{Name: "../d/", Typeflag: tar.TypeDir}},
		"the same file twice":        {{Name: "x"}, {Name: "x"}},
		"a file as a folder":         {{Name: "x"}, {Name: "x/y"}},
		"a cut that is not there":    {{Name: deepPrefix + "1/x"}},
		"a cut out of turn":          {{Name: deepPrefix + "2", Size: 2}},
		"a cut that climbs":          {{Name: deepPrefix + "1", Size: 5, Linkname: "../ev"}},
		"a cut below itself":         {{Name: deepPrefix + "1", Size: int64(len(deepPrefix + "1/x")), Linkname: deepPrefix + "1/x"}},
		"a cut without number":       {{Name: deepPrefix + "x"}},
		"a cut of a negative number": {{Name: deepPrefix + "-1/x"}},
		"a cut that is a link":       {{Name: deepPrefix + "1", Typeflag: tar.TypeLink, Linkname: needed}},
		"a long cut":                 {{Name: deepPrefix + "1", Size: 1 << 20}},
		"a negative size":            {{Name: "h", PAXRecords: map[string]string{recordSize: "-1"}}},
		"a size of words":            {{Name: "h", PAXRecords: map[string]string{recordSize: "x"}}},
		"pieces cut short":           {{Name: "h", Size: 7, PAXRecords: map[string]string{recordSize: "100"}}},
		"pieces past the end":        {{Name: "h", Size: 20, Linkname: "\x00\x00\x00\x00\x00\x00\x00\x63\x00\x00\x00\x00\x00\x00\x00\x04abcd", PAXRecords: map[string]string{recordSize: "100"}}},
		"pieces of negative length":  {{Name: "h", Size: 16, Linkname: "\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff", PAXRecords: map[string]string{recordSize: "100"}}},
		"pieces out of order":        {{Name: "h", Size: 34, Linkname: "\x00\x00\x00\x00\x00\x00\x00\x09\x00\x00\x00\x00\x00\x00\x00\x01a\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01b", PAXRecords: map[string]string{recordSize: "100"}}},
		"too little":                 {{Name: long + "x", Size: 5}},
	} {
		var out bytes.Buffer
		packed := gzip.NewWriter(&out)
		w := tar.NewWriter(packed)
		text := func(h tar.Header) string {
			if h.Typeflag == tar.TypeReg || h.Typeflag == 0 {
				return (h.Linkname + strings.Repeat("\x00", int(h.Size)))[:h.Size]
			}
			return ""
		}
		rows := newTally()
		var listed []saved
		for _, h := range append([]tar.Header{{Name: needed}}, list...) {
			content := text(h)
			if h.Typeflag == 0 {
				h.Typeflag, h.Linkname = tar.TypeReg, ""
			}
			h.Mode, h.Format = 0o600, tar.FormatPAX
			if err := w.WriteHeader(&h); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if _, err := io.WriteString(w, content); err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256([]byte(content))
			s := saved{Name: name(h.Name), Size: h.Size, SHA256: hex.EncodeToString(sum[:])}
			if h.Typeflag != tar.TypeReg {
				s.SHA256 = ""
			}
			if what == "too little" {
				s.Size++
			}
			rows.add(s)
			listed = append(listed, s)
		}
		doc, err := json.Marshal(map[string]any{"format": format, "files": listed})
		if err != nil {
			t.Fatal(err)
		}
		_ = w.WriteHeader(header(manifestName, int64(len(doc)), 0o600)) // a buffer takes all
		_, _ = w.Write(doc)
		_, _ = w.Close(), packed.Close()
		up := t.TempDir()
		to := filepath.Join(up, "a", "b")
		if err := os.MkdirAll(to, 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(t.Context(), &out, to, needed); err == nil {
			t.Errorf("%s was taken", what)
		}
		for _, dir := range []string{up, filepath.Join(up, "a")} {
			if found, err := os.ReadDir(dir); err != nil || len(found) != 1 {
				t.Errorf("%s: beside the folder there is %v %v", what, found, err)
			}
		}
	}
}

// Whatever tree is packed comes back the same.
func TestAnyTreeComesBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		dir := scratch(t)
		part := rapid.OneOf(rapid.StringMatching(`[a-z]{1,4}`), rapid.SampledFrom([]string{"\xff", "\n", strings.Repeat("q", 240), "é", ".x"}))
		want := map[string]string{needed: "rows"}
		for range rapid.IntRange(0, 12).Draw(rt, "files") {
			n := filepath.Join(rapid.SliceOfN(part, 1, 9).Draw(rt, "name")...)
			text := rapid.StringN(0, 40, 200).Draw(rt, "text")
			full := filepath.Join(dir, n)
			if os.MkdirAll(filepath.Dir(full), 0o700) != nil || os.WriteFile(full, []byte(text), 0o600) != nil {
				continue // it is a folder already, or below a file
			}
			want[n] = text
		}
		packed, _ := written(t, dir)
		to, _ := restored(t, packed)
		for n, text := range want {
			if got := read(t, to, n); got != text {
				rt.Errorf("%q: %q, want %q", n, got, text)
			}
		}
	})
}
