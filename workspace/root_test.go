//go:build linux

package workspace

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const secret = "the host's secret"

// host is a work folder beside a folder that must stay unread.
type host struct {
	t       *testing.T
	work    string
	outside string
	root    *Root
}

func newHost(t *testing.T) *host {
	t.Helper()
	base := t.TempDir()
	h := &host{t: t, work: filepath.Join(base, "work"), outside: filepath.Join(base, "outside")}
	for _, dir := range []string{h.work, h.outside, filepath.Join(h.work, "dir")} {
		must(t, os.Mkdir(dir, 0o700))
	}
	h.write(h.outside, "f", secret)
	h.write(h.work, "f", "inside")
	h.write(h.work, "dir/f", "inside too")
	root, err := OpenRoot(h.work)
	must(t, err)
	t.Cleanup(func() { must(t, root.Close()) })
	h.root = root
	return h
}

func (h *host) write(dir, name, text string) {
	h.t.Helper()
	must(h.t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
}

func (h *host) link(target, name string) {
	h.t.Helper()
	must(h.t, os.Symlink(target, filepath.Join(h.work, name)))
}

// refused says that no way of looking at p tells anything, and that the error is short, typed and clean.
func (h *host) refused(p string, want error) {
	h.t.Helper()
	data, _, err := h.root.ReadFile(At(p), 1<<20)
	h.checkError("read", p, err, want)
	if len(data) != 0 {
		h.t.Errorf("read %.80q gave %q", p, data)
	}
	if entries, _, err := h.root.List(At(p), 100); err == nil {
		h.t.Errorf("list %.80q gave %v", p, entries)
	} else {
		h.checkError("list", p, err, nil)
	}
}

func (h *host) checkError(what, p string, err, want error) {
	h.t.Helper()
	var pe *PathError
	if !errors.As(err, &pe) {
		h.t.Errorf("%s %.80q: want a *PathError, got %v", what, p, err)
		return
	}
	if want != nil && !errors.Is(err, want) {
		h.t.Errorf("%s %.80q: want %v, got %v", what, p, want, err)
	}
	text := err.Error()
	if len(text) > 600 || strings.ContainsFunc(text, hidden) || strings.Contains(text, "\n") {
		h.t.Errorf("%s %.80q: error is long or not clean: %q", what, p, text)
	}
	if strings.Contains(text, h.outside) && !strings.Contains(p, h.outside) || strings.Contains(text, secret) {
		h.t.Errorf("%s %.80q: error tells of the host: %s", what, p, text)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestRootReadsWhatIsInside(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.link("dir", "inner")
	h.link("dir/f", "innerfile")
	for p, want := range map[string]string{
		"f": "inside", "./f": "inside", "f/": "inside", "f/.": "inside", "dir/f": "inside too", "dir//f": "inside too",
		"inner/f": "inside too", "innerfile": "inside too",
	} {
		data, info, err := h.root.ReadFile(At(p), 100)
		if err != nil || string(data) != want || info.Size != int64(len(want)) {
			t.Errorf("%s: got %q, %+v, %v", p, data, info, err)
		}
	}
	entries, more, err := h.root.List(At("."), 100)
	must(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name+":"+string(e.Kind))
	}
	if got := strings.Join(names, " "); got != "dir:folder f:file inner:link innerfile:link" || more {
		t.Errorf("list: %s, more %v", got, more)
	}
	if entries, more, err = h.root.List(At(""), 3); err == nil {
		t.Errorf("an empty path lists %v %v", entries, more)
	}
	if entries, more, err = h.root.List(At("."), 3); err != nil || len(entries) != 3 || !more {
		t.Errorf("list of three: %v, more %v, %v", entries, more, err)
	}
	if info, err := h.root.Stat(At("dir")); err != nil || info.Kind != KindDir {
		t.Errorf("stat dir: %+v %v", info, err)
	}
	if _, err := h.root.Stat(At("nothing")); !errors.Is(err, ErrNotFound) {
		t.Errorf("stat nothing: %v", err)
	}
}

func TestRootReadsNoMoreThanItsLimit(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	if _, _, err := h.root.ReadFile(At("f"), 6); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	if _, info, err := h.root.ReadFile(At("f"), 5); !errors.Is(err, ErrTooLarge) || info.Size != 6 {
		t.Errorf("over the limit: %+v %v", info, err)
	}
}

func TestE01_PathsThatClimbAreRefused(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	for _, p := range []string{
		"../outside/f", "..", "../", "dir/../../outside/f", "dir/../f", "./../f", "dir/..", "/etc/passwd", "//etc/passwd", "/",
		h.outside + "/f", "%2e%2e/outside/f", "%2E%2E%2Foutside%2ff", "..%2foutside", "%252e%252e%252fx", "dir%00", "%5c..%5cx",
		`..\outside\f`, `dir\..\..\x`, `C:\x`, `\\host\share`, "",
	} {
		h.refused(p, ErrInvalid)
	}
}

func TestE02_LinksThatLeadOutAreRefused(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.link(h.outside, "absdir")
	h.link("../outside", "reldir")
	h.link(h.outside+"/f", "absfile")
	h.link("../outside/f", "relfile")
	h.link("dir/../../outside/f", "viadir")
	h.link("reldir", "chain")
	h.link("relfile/", "slash")
	h.link("/nowhere", "dangling")
	for _, base := range []string{"absdir", "reldir", "absfile", "relfile", "viadir", "chain", "slash", "dangling"} {
		for _, end := range []string{"", "/", "/.", "/./", "//", "/f"} {
			h.refused(base+end, ErrDenied)
		}
		if info, err := h.root.Stat(At(base)); err == nil {
			t.Errorf("stat %s tells %+v", base, info)
		}
	}
}

// TestE03_SymlinkSwapRace exchanges a folder with a link to a host folder, as fast as the kernel can, while others
// read, list and look. It takes 4 s with PARLEY_FULL=1, else 300 ms.
func TestE03_SymlinkSwapRace(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.write(h.outside, "leak", secret)
	h.link(h.outside, "swapdir")
	h.link(h.outside+"/f", "swapfile")
	lasts := 300 * time.Millisecond
	if os.Getenv("PARLEY_FULL") != "" {
		lasts = 4 * time.Second
	}
	stop := make(chan struct{})
	var reads, inside, leaks, careless, swaps atomic.Int64
	began := time.Now()
	enough := sync.OnceFunc(func() { close(stop) })
	var wg sync.WaitGroup
	loop := func(f func()) {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					f()
				}
			}
		})
	}
	loop(func() {
		for _, pair := range [][2]string{{"dir", "swapdir"}, {"f", "swapfile"}} {
			must(t, unix.Renameat2(unix.AT_FDCWD, filepath.Join(h.work, pair[0]), unix.AT_FDCWD, filepath.Join(h.work, pair[1]), unix.RENAME_EXCHANGE))
			swaps.Add(1)
		}
	})
	for _, p := range []string{"f", "dir/f", "swapdir/f", "swapfile/."} {
		loop(func() {
			data, _, err := h.root.ReadFile(At(p), 100)
			reads.Add(1)
			switch {
			case strings.Contains(string(data), secret):
				leaks.Add(1)
			case err == nil:
				inside.Add(1)
			}
		})
	}
	// Who resolves, looks where that is, and opens then is led astray within moments: so the race is one.
	loop(func() {
		name := filepath.Join(h.work, "dir", "f")
		real, err := filepath.EvalSymlinks(name)
		if err == nil && strings.HasPrefix(real, h.work+"/") {
			if data, err := os.ReadFile(name); err == nil && strings.Contains(string(data), secret) {
				careless.Add(1)
			}
		}
		if past := time.Since(began); past > lasts && careless.Load() > 0 || past > 20*time.Second {
			enough()
		}
	})
	loop(func() {
		for _, p := range []string{"dir", "swapdir/"} {
			entries, _, _ := h.root.List(At(p), 10) // a refusal is fine; a foreign name is not
			reads.Add(1)
			for _, e := range entries {
				if e.Name == "leak" || e.Size == int64(len(secret)) {
					leaks.Add(1)
				}
			}
		}
	})
	wg.Wait()
	t.Logf("%d tries, %d read inside, %d leaks, %d swaps", reads.Load(), inside.Load(), leaks.Load(), swaps.Load())
	if careless.Load() == 0 {
		t.Error("a careless reader was not led astray: this race shows nothing")
	}
	t.Logf("escape E03: broken by a reader that looks before it opens: %d leaks", careless.Load())
	if leaks.Load() != 0 {
		t.Errorf("%d leaks in %d tries", leaks.Load(), reads.Load())
	}
	if swaps.Load() < 100 || inside.Load() == 0 || inside.Load() == reads.Load() {
		t.Errorf("the race did not happen: %d swaps, %d of %d reads were inside", swaps.Load(), inside.Load(), reads.Load())
	}
}

func TestE04_ProcLinksAreRefused(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	f, err := os.Open(filepath.Join(h.outside, "f"))
	must(t, err)
	defer f.Close()
	h.link("/proc/self/root", "root")
	h.link("/proc/1/root", "root1")
	h.link("/proc/self/cwd", "cwd")
	h.link("/proc/self/fd/"+itoa(int(f.Fd())), "fd")
	h.link("/proc/self/environ", "environ")
	h.link("/dev/stdin", "stdin")
	for _, p := range []string{"root", "root/etc/passwd", "root1/etc/passwd", "cwd", "cwd/root.go", "fd", "fd/", "environ", "stdin"} {
		h.refused(p, ErrDenied)
	}
	h.refused("/proc/self/environ", ErrInvalid)
}

func itoa(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + itoa(n%10)
}

func TestE05_HardLinksAreRefused(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	must(t, os.Link(filepath.Join(h.outside, "f"), filepath.Join(h.work, "hard")))
	h.link("hard", "tohard")
	h.refused("hard", ErrDenied)
	h.refused("tohard", ErrDenied)
	must(t, os.Remove(filepath.Join(h.work, "hard")))
	must(t, os.Link(filepath.Join(h.work, "f"), filepath.Join(h.work, "f2"))) // nobody can tell it from the one above
	h.refused("f", ErrDenied)
}

func TestE06_SpecialFilesAreRefusedAtOnce(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	at := func(name string) string { return filepath.Join(h.work, name) }
	must(t, syscall.Mkfifo(at("fifo"), 0o600))
	must(t, syscall.Mknod(at("socket"), syscall.S_IFSOCK|0o600, 0))
	big, err := os.Create(at("sparse"))
	must(t, err)
	must(t, big.Truncate(1<<40))
	must(t, big.Close())
	h.link("fifo", "tofifo")
	names := []string{"fifo", "socket", "tofifo", "dir", "."}
	if err := syscall.Mknod(at("null"), syscall.S_IFCHR|0o600, 1<<8|3); err == nil {
		names = append(names, "null")
	} else {
		t.Logf("no device node: %v", err)
	}
	began := time.Now()
	for _, p := range names {
		if _, _, err := h.root.ReadFile(At(p), 1<<20); !errors.Is(err, ErrDenied) {
			t.Errorf("%s: %v", p, err)
		}
		if p != "dir" && p != "." {
			if _, _, err := h.root.List(At(p), 1); !errors.Is(err, ErrDenied) {
				t.Errorf("list %s: %v", p, err)
			}
		}
	}
	if _, info, err := h.root.ReadFile(At("sparse"), 1<<20); !errors.Is(err, ErrTooLarge) || info.Size != 1<<40 {
		t.Errorf("sparse: %v", err)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("took %v", took)
	}
}

// TestE06_FIFOThatTakesTheNameAfterTheLook: even when the first look saw a file, the open does not block.
func TestE06_FIFOThatTakesTheNameAfterTheLook(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	must(t, syscall.Mkfifo(filepath.Join(h.work, "fifo"), 0o600))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				must(t, unix.Renameat2(unix.AT_FDCWD, filepath.Join(h.work, "f"), unix.AT_FDCWD, filepath.Join(h.work, "fifo"), unix.RENAME_EXCHANGE))
			}
		}
	})
	began := time.Now()
	for range 2000 {
		if data, _, err := h.root.ReadFile(At("f"), 100); err == nil && string(data) != "inside" {
			t.Errorf("read %q", data)
		}
	}
	close(stop)
	wg.Wait()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestE07_DeceivingPathsAreRefusedWithAShortError(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	for _, p := range []string{
		"f\x00", "f\x00.txt", "a\nb", "f\x1b[31m", "\xff\xfe", "dir/\xc0\xaff", "photo\u202egnp.exe", "x\u2066y", "tag\U000e0041",
		strings.Repeat("a", 6000), strings.Repeat("ab/", 2000), strings.Repeat("ü", 5000), strings.Repeat("n", 300),
	} {
		h.refused(p, ErrInvalid)
	}
	h.link("loop0", "loop40")
	for i := range 40 {
		h.link("loop"+itoa(i+1), "loop"+itoa(i))
	}
	h.refused("loop0", ErrDenied)
	h.link("self", "self")
	h.refused("self", ErrDenied)
	h.refused("self/f", ErrDenied)
}

func TestOpenRootRefusesALink(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.link("dir", "todir")
	for _, name := range []string{"todir", "todir/", "todir/.", "f"} {
		if r, err := OpenRoot(h.work + "/" + name); err == nil {
			r.Close()
			t.Errorf("%s was opened", name)
		}
	}
	r, err := OpenWork(filepath.Join(h.work, "new", "one"))
	must(t, err)
	must(t, r.Close())
	if fi, err := os.Stat(filepath.Join(h.work, "new", "one")); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("work folder: %v %v", fi, err)
	}
}

// FuzzRootPaths: whatever the path, nothing but the two files inside is ever read.
func FuzzRootPaths(f *testing.F) {
	base := f.TempDir()
	work, out := filepath.Join(base, "w"), filepath.Join(base, "o")
	for _, d := range []string{work, out, filepath.Join(work, "d")} {
		must(f, os.Mkdir(d, 0o700))
	}
	must(f, os.WriteFile(filepath.Join(out, "f"), []byte(secret), 0o600))
	must(f, os.WriteFile(filepath.Join(work, "f"), []byte("inside"), 0o600))
	must(f, os.Symlink("../o", filepath.Join(work, "l")))
	must(f, os.Symlink(out+"/f", filepath.Join(work, "d", "l")))
	root, err := OpenRoot(work)
	must(f, err)
	f.Cleanup(func() { root.Close() })
	for _, p := range []string{"f", "d/../f", "l/f", "d/l/", "../o/f", "/etc/passwd", "%2e%2e/o/f", `..\o\f`, "\x00", "d/./l/."} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p string) {
		data, _, err := root.ReadFile(At(p), 1<<20)
		if err == nil && string(data) != "inside" {
			t.Errorf("%q read %q", p, data)
		}
		if err != nil && (len(err.Error()) > 600 || strings.ContainsFunc(err.Error(), hidden)) {
			t.Errorf("%q: error %q", p, err)
		}
		entries, _, _ := root.List(At(p), 10)
		for _, e := range entries {
			if e.Size == int64(len(secret)) {
				t.Errorf("%q listed %v", p, e)
			}
		}
		if clean, err := root.Resolve(At(p)); err == nil && (filepath.IsAbs(clean) || !filepath.IsLocal(clean)) {
			t.Errorf("%q resolves to %q", p, clean)
		}
	})
}

func TestE41_VisibleShowsWhatATerminalWouldActOn(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain\ttext\n":                  "plain\ttext\n",
		"\x1b[31mred\x1b[0m":             "␛[31mred␛[0m",
		"\x1b]0;title\a":                 "␛]0;title␇",
		"a\r\nb\rc":                      "a\nb␍c",
		"\x7f\u009b2J":                   "␡⟦U+009B⟧2J",
		"user\u202etxt.exe":              "user⟦U+202E⟧txt.exe",
		"hi\U000e0041":                   "hi⟦U+E0041⟧",
		"bad\xff\xfeutf":                 "bad\ufffd\ufffdutf",
		"nul\x00":                        "nul␀",
		"grüße 👩‍💻 שלום":                 "grüße 👩‍💻 שלום",
		"\u2066isolate\u2069 \u200emark": "⟦U+2066⟧isolate⟦U+2069⟧ ⟦U+200E⟧mark",
	} {
		if got := Visible(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	if got := Line("one\ntwo\x1b three", 9); got != "one␊two␛ …" {
		t.Errorf("line: %q", got)
	}
}

// T11: nothing in what a person approves goes unseen.
func TestT11_ExactShowsWhatTakesNoRoom(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"grüße שלום 漢字\n\tx":       "grüße שלום 漢字\n\tx",
		"rm\u200b \ufeffx\u00ad":   "rm⟦U+200B⟧ ⟦U+FEFF⟧x⟦U+00AD⟧",
		"a\u00a0b\u3000c\u2028d":   "a⟦U+00A0⟧b⟦U+3000⟧c⟦U+2028⟧d",
		"\u3164\u115f\ufe0f\u202e": "⟦U+3164⟧⟦U+115F⟧⟦U+FE0F⟧⟦U+202E⟧",
	} {
		if got := Exact(in); got != want || Exact(got) != got {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func FuzzVisible(f *testing.F) {
	for _, s := range []string{"", "a", "\x1b[2J", "\xff", "a\r\n", "\u202e"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v := Visible(s)
		for _, r := range v {
			if hidden(r) {
				t.Fatalf("%q still holds %U", v, r)
			}
		}
		if Visible(v) != v {
			t.Fatalf("%q is changed twice", s)
		}
	})
}

func TestReadFileHoldsNoDescriptor(t *testing.T) {
	h := newHost(t)
	must(t, syscall.Mkfifo(filepath.Join(h.work, "fifo"), 0o600))
	count := func() int {
		d, err := os.Open("/proc/self/fd")
		must(t, err)
		defer d.Close()
		names, err := d.Readdirnames(-1)
		if err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		return len(names)
	}
	before := count()
	for range 100 {
		_, _, _ = h.root.ReadFile(At("f"), 3)    // refused: what counts is what stays open
		_, _, _ = h.root.ReadFile(At("fifo"), 3) // the same
		_, _, _ = h.root.List(At("dir"), 3)
	}
	if after := count(); after > before+5 {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}
