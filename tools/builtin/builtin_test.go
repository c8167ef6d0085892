package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"parley/tools"
	"parley/tools/sandbox"
	"parley/workspace"
)

// desk is a work folder and the tools on it.
type desk struct {
	testing.TB
	dir  string
	root *workspace.Root
	box  *box            // behind exec
	real sandbox.Backend // in its place
	kept *[]byte         // by send_file
	with func(*tools.Call)
}

func newDesk(t testing.TB) desk {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "work")
	root, err := workspace.OpenWork(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return desk{TB: t, dir: dir, root: root, box: &box{tier: sandbox.TierNS}, kept: new([]byte)}
}

// tools are all of the package.
func (d desk) tools() []tools.Tool {
	keep := func(r io.Reader, name string, limit int64) (Kept, error) {
		data, err := io.ReadAll(io.LimitReader(r, limit+1))
		if err != nil {
			return Kept{}, err
		}
		if int64(len(data)) > limit {
			return Kept{}, ErrTooLarge
		}
		*d.kept = data
		return Kept{Ref: "ref", Name: name, MIME: "text/plain", Size: int64(len(data))}, nil
	}
	var b sandbox.Backend = d.box
	if d.real != nil {
		b = d.real
	}
	return append(Files(), SendFile(keep), Exec(ExecOptions{Sandbox: b, Profile: "test", Resolve: FindProgram}))
}

// box is a sandbox that notes what it is asked to run.
type box struct {
	mu   sync.Mutex
	tier sandbox.Tier
	ran  []sandbox.Command
	out  sandbox.Outcome
	err  error
}

func (b *box) Run(_ context.Context, c sandbox.Command) (sandbox.Outcome, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ran = append(b.ran, c)
	return b.out, b.err
}
func (b *box) Tier() sandbox.Tier { return b.tier }
func (b *box) Close()             {}

func (b *box) Probe(context.Context) sandbox.Report { return b.Last() }
func (b *box) Last() sandbox.Report {
	return sandbox.Report{Done: true, Tier: b.tier, Reasons: []string{"there are no namespaces"}}
}

func (d desk) write(name, text string) {
	d.Helper()
	p := filepath.Join(d.dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
		d.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
		d.Fatal(err)
	}
}

// call runs a tool as the loop does; an error is given by its sentence.
func (d desk) call(name, args string) (text string, err error) {
	d.Helper()
	for _, t := range d.tools() {
		if t.Spec().Name != name {
			continue
		}
		c := tools.Call{Args: json.RawMessage(args), Root: d.root, MaxFile: 100}
		if d.with != nil {
			d.with(&c)
		}
		res, err := t.Call(d.Context(), c)
		if err != nil {
			said, ok := workspace.Sentence(err)
			if !ok {
				d.Errorf("%s %s: no sentence for %v", name, args, err)
			}
			return said, err
		}
		return workspace.PlainText(res.Content), nil
	}
	d.Fatalf("no tool %s", name)
	return "", nil
}

func (d desk) gives(name, args, want string) {
	d.Helper()
	if got, err := d.call(name, args); err != nil || got != want {
		d.Errorf("%s %s: got %q, %v, want %q", name, args, got, err, want)
	}
}

func (d desk) refuses(name, args, want string) {
	d.Helper()
	if got, err := d.call(name, args); err == nil || !strings.Contains(got, want) {
		d.Errorf("%s %s: got %q, %v, want a refusal with %q", name, args, got, err, want)
	}
}

func TestSpecsAreStrictAndDescribed(t *testing.T) {
	t.Parallel()
	var names []string
	for _, tool := range newDesk(t).tools() {
		s := tool.Spec()
		var schema struct {
			Type                 string                     `json:"type"`
			Properties           map[string]json.RawMessage `json:"properties"`
			AdditionalProperties *bool                      `json:"additionalProperties"`
		}
		if err := json.Unmarshal(s.Schema, &schema); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
		if schema.Type != "object" || schema.AdditionalProperties == nil || *schema.AdditionalProperties {
			t.Errorf("%s: the schema is open", s.Name)
		}
		for arg := range schema.Properties {
			if !strings.Contains(s.Description, "`"+arg+"`") {
				t.Errorf("%s: argument %s is not described", s.Name, arg)
			}
		}
		names = append(names, fmt.Sprintf("%s:%s:%s", s.Name, s.Group, s.Effect))
		if s.MinRole != "" {
			t.Errorf("%s is for %s: policy says who may use it", s.Name, s.MinRole)
		}
	}
	want := "read_file:files:pure write_file:files:outside edit_file:files:outside remove_file:files:outside list_dir:files:pure resolve_path:files:pure send_file:send:store exec:exec:outside"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("tools: %s, want %s", got, want)
	}
}

func TestReadFilePagesByLines(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("poem", "one\ntwo\r\nthree\nfour\n")
	d.write("empty", "")
	d.gives("read_file", `{"path":"poem"}`, "one\ntwo\nthree\nfour")
	d.gives("read_file", `{"path":"poem","offset":2,"limit":2}`, "two\nthree\n(lines 2 to 3 of 4; go on with offset 4)")
	d.gives("read_file", `{"path":"poem","offset":4}`, "four")
	d.gives("read_file", `{"path":"poem","offset":5}`, "(the file ends at line 4)")
	d.gives("read_file", `{"path":"empty"}`, "(the file is empty)")
	d.write("dos", "one\r\ntwo\r\n")
	d.gives("read_file", `{"path":"dos"}`, "one\ntwo")
	d.refuses("read_file", `{"path":"poem","offset":-1}`, "1 or more")
	d.refuses("read_file", `{"path":"none"}`, "no such file")
	d.refuses("read_file", `{"path":"."}`, "a folder")
}

// TestReadFilePagesMeet: following the offsets of a large file shows every line exactly once.
func TestReadFilePagesMeet(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var whole strings.Builder
	for i := range 9000 {
		fmt.Fprintf(&whole, "line %d %s\n", i+1, strings.Repeat("x", i%90))
	}
	d.write("big", whole.String())
	var got strings.Builder
	pages := 0
	for next := 1; next > 0; pages++ {
		text, err := d.call("read_file", fmt.Sprintf(`{"path":"big","offset":%d}`, next))
		if err != nil || len(text) > maxShown+200 {
			t.Fatalf("page at %d has %d bytes, %v", next, len(text), err)
		}
		body, note, cut := strings.Cut(text, "\n(lines ")
		got.WriteString(body + "\n")
		next = 0
		if cut {
			var from, to, all int
			if _, err := fmt.Sscanf(note, "%d to %d of %d; go on with offset %d)", &from, &to, &all, &next); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got.String() != whole.String() || pages < 10 {
		t.Errorf("%d pages give %d bytes of %d", pages, got.Len(), whole.Len())
	}
}

func TestReadFileCutsALongLine(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("long", strings.Repeat("ü", 100_000)+"\nend\n")
	text, err := d.call("read_file", `{"path":"long"}`)
	if err != nil || !strings.HasSuffix(text, "(196000 more bytes in this line)\nend") || len(text) > 5000 {
		t.Errorf("%d bytes, %v: %.40q … %q", len(text), err, text, text[max(0, len(text)-60):])
	}
}

func TestE41_BinaryAndEscapesAreNeutralised(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("png", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
	d.write("noise", strings.Repeat("\xfe\x81", 400))
	d.write("term", "\x1b[31mred\x1b]0;own\a \u202egnp\n")
	d.write("latin", "gr\xfc\xdfe aus der alten Zeit, als Texte noch kurz waren\n")
	d.refuses("read_file", `{"path":"png"}`, "16 bytes of image/png")
	d.refuses("read_file", `{"path":"noise"}`, "800 bytes of ")
	d.gives("read_file", `{"path":"term"}`, "␛[31mred␛]0;own␇ ⟦U+202E⟧gnp")
	d.gives("read_file", `{"path":"latin"}`, "gr\ufffd\ufffde aus der alten Zeit, als Texte noch kurz waren")
	d.write("dir/evil\x1b[2J\nname\u202e", "x")
	d.gives("list_dir", `{"path":"dir"}`, "evil␛[2J␊name⟦U+202E⟧  1\n")
}

func TestListDirShowsKinds(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.gives("list_dir", `{"path":"."}`, "(the folder is empty)")
	d.write("b.txt", "12345")
	d.write("a/x", "")
	if err := os.Symlink("/etc", filepath.Join(d.dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(d.dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.gives("list_dir", `{"path":"."}`, "a/\nb.txt  5\nlink@\npipe  (special file)\n")
	d.refuses("list_dir", `{"path":"b.txt"}`, "it is a file, not a folder")
	d.refuses("list_dir", `{"path":"pipe"}`, "it is a file, not a folder")
	d.refuses("list_dir", `{"path":"b.txt/x"}`, "a part of the path is not a folder")
	for i := range maxEntries + 1 {
		d.write(fmt.Sprintf("many/%04d", i), "")
	}
	text, err := d.call("list_dir", `{"path":"many"}`)
	if err != nil || !strings.HasSuffix(text, "(there are more; 500 are shown)\n") {
		t.Errorf("%v: %.200s", err, text)
	}
}

func TestResolvePathNamesTheCanonicalPlace(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("docs/plan.md", "12")
	d.write("tasks/dir/x", "")
	d.gives("resolve_path", `{"kind":"docs","filename":"plan.md"}`, "docs/plan.md\n(exists, 2 bytes)")
	d.gives("resolve_path", `{"kind":"requirements","filename":"plan.md"}`, "requirements/plan.md\n(does not exist yet)")
	d.refuses("resolve_path", `{"kind":"tasks","filename":"dir"}`, "not a file")
	d.refuses("resolve_path", `{"kind":"secrets","filename":"a"}`, "kind must be")
	for _, name := range []string{"a/b", "a/", ".", "./a", "..", "../a", "/etc/passwd", `a\\b`, "%2e%2e"} {
		d.refuses("resolve_path", `{"kind":"docs","filename":"`+name+`"}`, "")
	}
}

// TestE10_FileToolsReachNothingOutside tries every tool with every way out that the escape list names.
func TestE10_FileToolsReachNothingOutside(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	outside := filepath.Join(filepath.Dir(d.dir), "config.yaml")
	if err := os.WriteFile(outside, []byte("token: hush"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"l": outside, "up": "..", "docs": "..", "proc": "/proc/self/root"} {
		if err := os.Symlink(target, filepath.Join(d.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(outside, filepath.Join(d.dir, "hard")); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{
		"l", "l/", "l/.", "up", "up/config.yaml", "up/.", "docs/config.yaml", "../config.yaml", outside, "proc/etc/passwd",
		"hard", "%2e%2e/config.yaml", `..\config.yaml`, "config.yaml\x00", "", strings.Repeat("a/", 4000),
	} {
		args, err := json.Marshal(map[string]string{"path": p})
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range []string{"read_file", "list_dir"} {
			got, err := d.call(tool, string(args))
			if err == nil || strings.Contains(got, "hush") || len(got) > 400 {
				t.Errorf("%s %.60q: %q", tool, p, got)
			}
		}
	}
	d.refuses("resolve_path", `{"kind":"docs","filename":"config.yaml"}`, "leads out")
}

func TestT17_UnknownArgumentsAndNoFolderAreRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("f", "x")
	d.refuses("read_file", `{"path":"f","root":"/"}`, `no argument "root"`)
	d.refuses("list_dir", `{"path":".","sandbox":"off"}`, `no argument "sandbox"`)
	d.refuses("resolve_path", `{"kind":"docs","filename":"f","Kind":"x"}`, `no argument "Kind"`)
	d.refuses("read_file", `{"path":["f"]}`, `must be text`)
	bare := desk{TB: t}
	if _, err := bare.call("read_file", `{"path":"f"}`); !errors.Is(err, errNoRoot) {
		t.Errorf("without a folder: %v", err)
	}
}

// FuzzReadFileArgs: no arguments make read_file panic, answer without a sentence, or leave the folder.
func FuzzReadFileArgs(f *testing.F) {
	d := newDesk(f)
	d.write("f", "one\ntwo\n")
	if err := os.Symlink("/etc/passwd", filepath.Join(d.dir, "l")); err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{`{"path":"f"}`, `{"path":"f","offset":2,"limit":1}`, `{"path":"l"}`, `{"path":"f","limit":9223372036854775807,"offset":2}`, `{}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, args string) {
		text, err := desk{TB: t, root: d.root}.call("read_file", args)
		if err == nil && !strings.HasPrefix(text, "one") && !strings.HasPrefix(text, "two") && !strings.HasPrefix(text, "(the file ends") {
			t.Errorf("%q gave %q", args, text)
		}
	})
}
