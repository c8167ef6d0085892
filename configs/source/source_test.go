package source_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"parley/configs"
	"parley/configs/source"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// watched is a source that is watched until the test ends. Its channels get what was called back.
type watched struct {
	*source.Source
	t       *testing.T
	refuse  atomic.Pointer[error] // what prepare says; nil: all is fine
	changes chan [2]*configs.Config
	errors  chan error
}

func (w *watched) prepare(old, new *configs.Config) (func(), error) {
	if err := w.refuse.Load(); err != nil {
		return nil, *err
	}
	if new.Concurrency.Turns == refusedTurns {
		return nil, errRefused
	}
	return func() { w.changes <- [2]*configs.Config{old, new} }, nil
}

func watch(t *testing.T, path string, vars ...string) *watched {
	t.Helper()
	w := &watched{Source: source.New(configs.LoadOptions{Path: path, Env: env(vars...), Sections: sections()}), t: t,
		changes: make(chan [2]*configs.Config, 100), errors: make(chan error, 100)}
	if _, err := w.Load(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	ended.Go(func() {
		w.Watch(ctx, w.prepare, func(err error) { w.errors <- err })
	})
	t.Cleanup(func() { stop(); ended.Wait() })
	return w
}

// turn waits until the configuration is that of turn n. What else was called back before is let go, errors only if okay.
func (w *watched) turn(n int, okay ...error) {
	w.t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		select {
		case c := <-w.changes:
			if c[0] == c[1] || c[1] != w.Current() && len(w.changes) == 0 {
				w.t.Fatal("the change is not the one in force")
			}
			if c[1].Concurrency.Turns == n {
				return
			}
			w.t.Fatalf("turns became %d, want %d", c[1].Concurrency.Turns, n)
		case err := <-w.errors:
			if !slices.ContainsFunc(okay, func(want error) bool { return errors.Is(err, want) }) {
				w.t.Fatalf("error on the way to %d: %v", n, err)
			}
		case <-deadline:
			w.t.Fatalf("turns never became %d; in force is %d", n, w.Current().Concurrency.Turns)
		}
	}
}

// refused waits for an error that says why, and checks that the old configuration stays.
func (w *watched) refused(why string, turns int) {
	w.t.Helper()
	select {
	case err := <-w.errors:
		if !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), "in force stays") {
			w.t.Errorf("it says %v, want %q", err, why)
		}
	case c := <-w.changes:
		w.t.Fatalf("it was taken: %+v", c[1].Concurrency)
	case <-time.After(20 * time.Second):
		w.t.Fatalf("nobody said %q", why)
	}
	if got := w.Current().Concurrency.Turns; got != turns {
		w.t.Errorf("in force is %d, want %d", got, turns)
	}
}

func turns(n int) string { return fmt.Sprintf("concurrency: {turns: %d}\n", n) }

// save writes beside the file and renames over it, as editors do.
func save(t *testing.T, path, text string) {
	t.Helper()
	write(t, path+"~", text)
	if err := os.Rename(path+"~", path); err != nil {
		t.Fatal(err)
	}
}

func TestReloadAfterEachWayToSave(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "parley.yaml")
	write(t, path, turns(1))
	w := watch(t, path)
	for n := 2; n < 8; n += 2 {
		write(t, path, turns(n)) // in place
		w.turn(n)
		save(t, path, turns(n+1)) // rename over
		w.turn(n + 1)
	}
}

// TestHalfWrittenFileIsNotRead: a slow writer begins with an empty file and adds line by line.
func TestHalfWrittenFileIsNotRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "parley.yaml")
	write(t, path, turns(1))
	w := watch(t, path)
	write(t, path, turns(2))
	w.turn(2) // the folder is surely watched
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	slowest := time.Duration(0)
	begun := time.Now()
	text := "{concurrency:\n" + strings.Repeat("# a line\n", 20) + "{turns: 3}}\n"
	for i := range strings.Count(text, "\n") + 1 {
		write(t, path, strings.Join(strings.SplitAfter(text, "\n")[:i], ""))
		<-tick.C
		slowest, begun = max(slowest, time.Since(begun)), time.Now()
	}
	if slowest > 100*time.Millisecond {
		t.Skipf("this machine let the writer rest for %v", slowest)
	}
	w.turn(3) // fails on any error before
}

func TestReloadAfterRemoveAndRecreate(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "etc")
	path := filepath.Join(dir, "parley.yaml")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, path, turns(1))
	w := watch(t, path)
	for n := 2; n < 4; n++ {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		w.refused("no such file", n-1)
		write(t, path, turns(n))
		w.turn(n)
	}
	if err := os.RemoveAll(dir); err != nil { // the folder as well
		t.Fatal(err)
	}
	w.refused("no such file", 3)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	w.refused("no such file", 3)
	write(t, path, turns(4))
	w.turn(4, fs.ErrNotExist)
}

// TestReloadAfterSymlinkSwap is how Kubernetes replaces a mounted file: parley.yaml -> ..data/parley.yaml, ..data -> a folder.
func TestReloadAfterSymlinkSwap(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	version := func(n int) string {
		name := fmt.Sprintf("..v%d", n)
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name, "parley.yaml"), turns(n))
		return name
	}
	link := func(target, name string) {
		if err := os.Symlink(target, filepath.Join(dir, "new")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	link(version(1), "..data")
	link("..data/parley.yaml", "parley.yaml")
	w := watch(t, filepath.Join(dir, "parley.yaml"))
	for n := 2; n < 5; n++ {
		link(version(n), "..data")
		w.turn(n)
	}
	write(t, filepath.Join(dir, "..v4", "parley.yaml"), turns(5)) // behind the links
	w.turn(5)
	elsewhere := filepath.Join(t.TempDir(), "other.yaml")
	write(t, elsewhere, turns(6))
	link(elsewhere, "parley.yaml")
	w.turn(6)
	save(t, elsewhere, turns(7)) // in a folder that was not watched before
	w.turn(7)
}

// TestReloadAfterFolderSwap: the file itself is never touched; its folder is exchanged for another.
func TestReloadAfterFolderSwap(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir := filepath.Join(root, "etc")
	for n, name := range []string{"etc", "next"} {
		if err := os.Mkdir(filepath.Join(root, name), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(root, name, "parley.yaml"), turns(n+2))
	}
	w := watch(t, filepath.Join(dir, "parley.yaml"))
	write(t, filepath.Join(dir, "parley.yaml"), turns(1))
	w.turn(1) // the folder is surely watched
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	w.refused("no such file", 1)
	if err := os.Rename(filepath.Join(root, "next"), dir); err != nil {
		t.Fatal(err)
	}
	w.turn(3, fs.ErrNotExist)
	write(t, filepath.Join(dir, "parley.yaml"), turns(4))
	w.turn(4)
}

func TestR13_BadReloadKeepsOld(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "parley.yaml")
	write(t, path, turns(1))
	w := watch(t, path, "C="+canary)
	before := w.Current()
	for text, why := range map[string]string{
		"":                            "the file is empty",
		"# nothing\n":                 "the file is empty",
		"---\n":                       "the file is empty",
		"{":                           "not valid YAML",
		"concurency: {turns: 2}":      "did you mean concurrency? (line 1)",
		"concurrency: {turns: 0}":     "between 1 and 100000",
		"gateway: {listen: ':1'}":     "can be reached from other machines",
		"gateway: {token: '${NOPE}'}": "NOPE is not set",
		"models: [{name: a, api: '${C}', model: m, api_key: '${C}'}]": "must be one of",
	} {
		save(t, path, text)
		w.refused(why, 1)
		if w.Current() != before {
			t.Fatalf("%q: the configuration in force was replaced", text)
		}
	}
	save(t, path, turns(2))
	w.turn(2)
	if before.Concurrency.Turns != 1 {
		t.Error("the old value was changed under its readers")
	}
}

// R13: what loads and cannot be put in force is refused as a whole, and tried again at each occasion: by a signal, by a save of
// the very same bytes, and when the file goes back to what is in force.
func TestR13_RefusedConfigurationIsTriedAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "parley.yaml")
	write(t, path, turns(1))
	w := watch(t, path)
	before := w.Current()
	no := errors.New("a folder is missing")
	w.refuse.Store(&no)
	save(t, path, turns(2))
	w.refused("a folder is missing", 1)
	w.Reload()
	w.refused("a folder is missing", 1)
	save(t, path, turns(2))
	w.refused("a folder is missing", 1)
	if w.Current() != before {
		t.Error("the configuration in force was replaced")
	}
	w.refuse.Store(nil)
	w.Reload() // nothing in the file has changed
	w.turn(2)
	w.refuse.Store(&no)
	save(t, path, turns(3))
	w.refused("a folder is missing", 2)
	w.refuse.Store(nil)
	save(t, path, turns(3)) // the same bytes
	w.turn(3)
	w.refuse.Store(&no)
	save(t, path, turns(4))
	w.refused("a folder is missing", 3)
	w.refuse.Store(nil)
	save(t, path, turns(3)) // what is in force
	select {
	case c := <-w.changes:
		if c[0] != c[1] || c[1] != w.Current() {
			t.Error("it was taken for another one")
		}
	case <-time.After(20 * time.Second):
		t.Fatal("nobody said that it is as it was")
	}
}

func TestT21_BadReloadKeepsOldSandbox(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "parley.yaml")
	write(t, path, "sandbox: {processes: 9}\n"+turns(1))
	w := watch(t, path)
	save(t, path, "sandbox: {backend: off, processes: 999}\n"+turns(2))
	w.refused("sandbox.backend", 1)
	if got := w.Current().Sandbox; got.Processes != 9 || got.Backend != "ns" {
		t.Errorf("sandbox in force: %+v", got)
	}
}

func TestFirstEmptyFileIsFineAndMayStaySo(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "parley.yaml")
	write(t, path, "# to be filled in\n")
	w := watch(t, path)
	save(t, path, "# later\n")
	save(t, path, turns(2))
	w.turn(2)
}

// TestSameMeaningIsNoChange: a comment or another spelling calls nobody; the next call is for the next real change.
func TestSameMeaningIsNoChange(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "parley.yaml")
	base := "channels: [{name: tg, type: telegram, token: t}]\n"
	write(t, path, base+turns(1))
	w := watch(t, path)
	before := w.Current()
	save(t, path, "# a comment\n"+base+"concurrency:\n  turns: 1\n")
	w.Reload()
	w.Reload()
	save(t, path, base+turns(2))
	w.Reload()
	w.turn(2)
	if before == w.Current() {
		t.Error("not replaced")
	}
}

// TestReloadReadsSecretsAnew: a rotated secret file changes nothing in the configuration file; a signal takes it.
func TestReloadReadsSecretsAnew(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, secret := filepath.Join(dir, "parley.yaml"), filepath.Join(dir, "token")
	write(t, secret, "first\n")
	write(t, path, `gateway: {token: "${file:token}"}`)
	w := watch(t, path)
	save(t, secret, "second\n")
	w.Reload()
	select {
	case c := <-w.changes:
		if c[0].Gateway.Token.Reveal() != "first" || c[1].Gateway.Token.Reveal() != "second" || w.Current() != c[1] {
			t.Error("the token is not the new one")
		}
	case err := <-w.errors:
		t.Fatal(err)
	case <-time.After(20 * time.Second):
		t.Fatal("Reload did nothing")
	}
}

// TestChangeBetweenLoadAndWatchIsSeen: nothing falls between the two.
func TestChangeBetweenLoadAndWatchIsSeen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "parley.yaml")
	write(t, path, turns(1))
	s := source.New(configs.LoadOptions{Path: path, Env: env()})
	if _, err := s.Load(); err != nil {
		t.Fatal(err)
	}
	write(t, path, turns(2))
	ctx, stop := context.WithCancel(t.Context())
	s.Watch(ctx, func(_, new *configs.Config) (func(), error) {
		if new.Concurrency.Turns != 2 {
			t.Errorf("turns %d", new.Concurrency.Turns)
		}
		return stop, nil
	}, func(err error) { t.Error(err); stop() })
	if s.Current().Concurrency.Turns != 2 {
		t.Error("not in force")
	}
}

// TestBusyFolderDoesNotHoldUpAReload: a log beside the file is written all the time.
func TestBusyFolderDoesNotHoldUpAReload(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "parley.yaml")
	write(t, path, turns(1))
	w := watch(t, path)
	stop := make(chan struct{})
	var busy sync.WaitGroup
	busy.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				_ = os.WriteFile(filepath.Join(dir, "gateway.log"), []byte("line\n"), 0o600) // only noise
			}
		}
	})
	defer func() { close(stop); busy.Wait() }()
	save(t, path, turns(2))
	w.turn(2)
}

// TestReadersNeverSeeAMixture: both keys are always of one file. Run with -race.
func TestReadersNeverSeeAMixture(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "parley.yaml")
	file := func(n int) string { return fmt.Sprintf("concurrency: {turns: %d, per_model: %d}\n", n, n) }
	write(t, path, file(1))
	w := watch(t, path)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					if c := w.Current(); c.Concurrency.Turns != c.Concurrency.PerModel {
						t.Errorf("mixed: %+v", c.Concurrency)
						return
					}
				}
			}
		})
	}
	for n := 2; n < 30; n++ {
		save(t, path, file(n))
		w.Reload()
		w.turn(n)
	}
	close(stop)
	readers.Wait()
}

// TestPathStaysTheSame: a file that was found by searching is not replaced by the next place when it goes.
func TestPathStaysTheSame(t *testing.T) {
	root := t.TempDir()
	user := filepath.Join(root, "user", "parley")
	if err := os.MkdirAll(user, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(user, "parley.yaml"), turns(9))
	t.Chdir(root)
	write(t, "parley.yaml", turns(1))
	w := watch(t, "", "XDG_CONFIG_HOME="+filepath.Join(root, "user"))
	if err := os.Remove("parley.yaml"); err != nil {
		t.Fatal(err)
	}
	w.refused("no such file", 1)
}

// TestRestoredFileIsToldOf: who corrects a bad file by putting the old text back hears that all is well.
func TestRestoredFileIsToldOf(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "parley.yaml")
	write(t, path, turns(1))
	w := watch(t, path)
	write(t, path, turns(2))
	w.turn(2) // the folder is surely watched
	save(t, path, "nonsense: 1\n")
	w.refused("nonsense", 2)
	save(t, path, turns(2))
	select {
	case c := <-w.changes:
		if c[0] != c[1] {
			t.Errorf("a change of what did not change: %v, %v", c[0].Concurrency, c[1].Concurrency)
		}
	case err := <-w.errors:
		t.Fatal(err)
	case <-time.After(20 * time.Second):
		t.Fatal("nobody said that it is good again")
	}
}
