package builtin

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/tools"
	"parley/workspace"
)

func (d desk) holds(name, want string) {
	d.Helper()
	data, err := os.ReadFile(filepath.Join(d.dir, name))
	if err != nil || string(data) != want {
		d.Errorf("%s holds %q, %v, want %q", name, data, err, want)
	}
}

func argsOf(t testing.TB, pairs ...string) string {
	t.Helper()
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestWriteFileReplacesAsAWhole(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.gives("write_file", argsOf(t, "path", "a/b/c.txt", "content", "one\n"), "Wrote a/b/c.txt (new, 4 bytes).")
	d.holds("a/b/c.txt", "one\n")
	d.gives("write_file", argsOf(t, "path", "a/b/c.txt", "content", ""), "Wrote a/b/c.txt (replaced, 0 bytes).")
	d.holds("a/b/c.txt", "")
	if err := os.Chmod(filepath.Join(d.dir, "a/b/c.txt"), 0o700); err != nil {
		t.Fatal(err)
	}
	d.gives("write_file", argsOf(t, "path", "a/b/c.txt", "content", "#!/bin/sh\n"), "Wrote a/b/c.txt (replaced, 10 bytes).")
	if fi, err := os.Stat(filepath.Join(d.dir, "a/b/c.txt")); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("its mode is %v, %v", fi.Mode(), err)
	}
	d.refuses("write_file", argsOf(t, "path", "a/b", "content", "x"), "a folder, not a file")
	d.refuses("write_file", argsOf(t, "path", "a/b/c.txt/d", "content", "x"), "not a folder")
	d.refuses("write_file", argsOf(t, "path", "new/", "content", "x"), "names a folder")
	d.refuses("write_file", argsOf(t, "path", ".", "content", "x"), "names a folder")
	left, err := filepath.Glob(filepath.Join(d.dir, "a/b/.*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestEditFileSaysWhatItDid(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("f", "one\ntwo\ntwo\nthree\n")
	d.gives("edit_file", argsOf(t, "path", "f", "old_text", "three", "new_text", "3"), "Changed f at line 4.")
	d.gives("edit_file", argsOf(t, "path", "f", "old_text", "two\n", "new_text", ""),
		"Changed f at line 2. old_text stood there 2 times; only the first was changed. To change another, give more of the text around it.")
	d.holds("f", "one\ntwo\n3\n")
	d.refuses("edit_file", argsOf(t, "path", "f", "old_text", "four", "new_text", "4"), "nothing was changed; read the file again")
	d.refuses("edit_file", argsOf(t, "path", "f", "old_text", "", "new_text", "4"), "use write_file")
	d.refuses("edit_file", argsOf(t, "path", "f", "old_text", "3", "new_text", "3"), "the same")
	d.refuses("edit_file", argsOf(t, "path", "g", "old_text", "3", "new_text", "4"), "no such file")
	d.write("tabs", "if x {\n\treturn  1\n}\n")
	d.refuses("edit_file", argsOf(t, "path", "tabs", "old_text", "    return 1\n}", "new_text", "x"), "its first line stands at line 2")
	d.write("dos", "a\r\nb\r\nc\r\n")
	d.gives("edit_file", argsOf(t, "path", "dos", "old_text", "a\nb\n", "new_text", "x\ny\nz\n"), "Changed dos at line 1.")
	d.holds("dos", "x\r\ny\r\nz\r\nc\r\n")
	d.gives("edit_file", argsOf(t, "path", "dos", "old_text", "z", "new_text", "1\n2"), "Changed dos at line 3.")
	d.holds("dos", "x\r\ny\r\n1\r\n2\r\nc\r\n")
	d.write("bin", "\x00\x01")
	d.refuses("edit_file", argsOf(t, "path", "bin", "old_text", "\x01", "new_text", "x"), "is not text")
	d.holds("tabs", "if x {\n\treturn  1\n}\n")
}

func TestOwnersFoldersAreReadAndWrittenUnderTheirNames(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	base := t.TempDir()
	for name, write := range map[string]bool{"notes": false, "code": true} {
		dir := filepath.Join(base, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "f"), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := d.root.Mount(workspace.Folder{Dir: dir, As: name, Write: write}); err != nil {
			t.Fatal(err)
		}
	}
	d.write("code/f", "hidden by the owner's folder")
	d.gives("list_dir", `{"path":"."}`, "code/\nnotes/\n")
	d.gives("read_file", `{"path":"code/f"}`, "code")
	d.gives("read_file", `{"path":"notes/f"}`, "notes")
	d.gives("write_file", argsOf(t, "path", "code/x/y", "content", "z"), "Wrote code/x/y (new, 1 bytes).")
	if data, err := os.ReadFile(filepath.Join(base, "code/x/y")); err != nil || string(data) != "z" {
		t.Errorf("%q %v", data, err)
	}
	for _, p := range []string{"notes/f", "notes/new", "notes"} {
		d.refuses("write_file", argsOf(t, "path", p, "content", "z"), "may only be read")
	}
	d.refuses("edit_file", argsOf(t, "path", "notes/f", "old_text", "notes", "new_text", "z"), "may only be read")
	if err := os.Symlink("../notes/f", filepath.Join(base, "code", "l")); err != nil {
		t.Fatal(err)
	}
	d.refuses("read_file", `{"path":"code/l"}`, "leads out")
	d.refuses("write_file", argsOf(t, "path", "code/l", "content", "z"), "is a link")
	d.refuses("read_file", `{"path":"code/../notes/f"}`, `may not hold ".."`)
}

func TestSendFileCopiesWhatTheConversationTakes(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("out/r.csv", "a,b\n1,2\n")
	d.gives("send_file", `{"path":"out/r.csv"}`, "r.csv (text/plain, 8 bytes) is on its way to this conversation.")
	if string(*d.kept) != "a,b\n1,2\n" {
		t.Errorf("kept %q", *d.kept)
	}
	d.write("big", strings.Repeat("x", 101))
	d.refuses("send_file", `{"path":"big"}`, "takes at most 100")
	d.write("empty", "")
	d.refuses("send_file", `{"path":"empty"}`, "is empty")
	d.refuses("send_file", `{"path":"out"}`, "a folder")
	d.with = func(c *tools.Call) { c.MaxFile = 0 }
	d.refuses("send_file", `{"path":"out/r.csv"}`, "takes no files")
}

func TestConcurrentWritesLeaveOneWholeFile(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	done := make(chan error)
	const n = 16
	for i := range n {
		go func() {
			root, err := workspace.OpenRoot(d.dir)
			if err == nil {
				_, err = root.WriteFile(workspace.At("same/f"), []byte(strings.Repeat(fmt.Sprintf("%x", i), 10_000)))
				root.Close()
			}
			done <- err
		}()
	}
	for range n {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	data, err := os.ReadFile(filepath.Join(d.dir, "same/f"))
	if err != nil || len(data) != 10_000 || strings.Trim(string(data), string(data[:1])) != "" {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}
