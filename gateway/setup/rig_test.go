package setup_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"parley/configs"
	"parley/configs/edit"
	"parley/configs/source"
	"parley/gateway/setup"
	"parley/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// telegram stands for an adapter's own options.
type telegram struct {
	Token  configs.Secret `yaml:"token" required:"true" doc:"Bot token of the account."`
	APIURL string         `yaml:"api_url" doc:"Another server than Telegram's."`
}

func sections() []configs.Section {
	return []configs.Section{{Type: "telegram", Options: func() any { return &telegram{} }}}
}

const first = `# Kept by Ada.
models:
  - {name: claude, api: anthropic, api_key: kept-in-the-text, model: c} # the good one
agents: [{id: assistant, default: true}]
people: [{id: ana, role: owner}]
channels:
  - name: tg
    type: telegram
    token: "1:kept-too" # of the bot
`

// rig is a configuration that is in force, and parts that are as a test says.
type rig struct {
	t    *testing.T
	path string
	*source.Source
	*setup.Setup
	stop  func()
	aside string   // a copy of the folder at the moment when the power went
	notes []string // kinds of audit rows, with their parts

	mu   sync.Mutex
	look func(c *configs.Config, p setup.Part) setup.State
}

func (r *rig) Look(_ context.Context, c *configs.Config, p setup.Part) setup.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.look != nil {
		return r.look(c, p)
	}
	return setup.State{Fine: true, Settled: true}
}

// newRig puts a text in force; empty: there is no file.
func newRig(t *testing.T, text string, vars ...string) *rig {
	t.Helper()
	r := &rig{t: t, path: filepath.Join(t.TempDir(), "parley", "parley.yaml")}
	if text != "" {
		r.save(text)
	}
	r.start(vars...)
	return r
}

// start is what a process does that begins.
func (r *rig) start(vars ...string) {
	r.t.Helper()
	home := filepath.Dir(filepath.Dir(r.path))
	env := map[string]string{"HOME": home, "XDG_CONFIG_HOME": home}
	for _, one := range vars {
		name, value, _ := strings.Cut(one, "=")
		env[name] = value
	}
	r.Source = source.New(configs.LoadOptions{Sections: sections(), Env: func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	}})
	if _, err := r.Load(); err != nil {
		r.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(r.t.Context())
	var over sync.WaitGroup
	over.Go(func() {
		r.Watch(ctx, func(_, _ *configs.Config) (func(), error) { return func() {}, nil }, func(error) {})
	})
	r.stop = func() { stop(); over.Wait() }
	r.t.Cleanup(r.stop)
	r.Setup = setup.New(setup.Options{Source: r.Source, Health: r, Audit: r.audit,
		Hide: workspace.NewRedactor(r.Current().Secrets()...), Base: ctx, Now: time.Now})
}

func (r *rig) save(text string) {
	r.t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(r.path), 0o700), os.WriteFile(r.path, []byte(text), 0o600)); err != nil {
		r.t.Fatal(err)
	}
}

// power takes a copy of the folder as it is now: what a process does afterwards was not done.
func (r *rig) power() {
	r.t.Helper()
	r.aside = filepath.Join(r.t.TempDir(), "aside")
	if err := os.CopyFS(r.aside, os.DirFS(filepath.Dir(r.path))); err != nil {
		r.t.Fatal(err)
	}
}

// cut puts that copy in the place of the folder.
func (r *rig) cut() {
	r.t.Helper()
	dir := filepath.Dir(r.path)
	err := errors.Join(os.RemoveAll(dir), os.Rename(r.aside, dir))
	list, second := filepath.Glob(filepath.Join(dir, "secrets", "*"))
	for _, name := range list { // the copy has other modes
		err = errors.Join(err, os.Chmod(name, 0o600))
	}
	if err = errors.Join(err, second); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) text() string {
	r.t.Helper()
	text, err := os.ReadFile(r.path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		r.t.Fatal(err)
	}
	return string(text)
}

// secrets are the files that hold credentials, with what they hold.
func (r *rig) secrets() map[string]string {
	r.t.Helper()
	list, err := filepath.Glob(filepath.Join(filepath.Dir(r.path), "secrets", "*"))
	if err != nil {
		r.t.Fatal(err)
	}
	out := map[string]string{}
	for _, name := range list {
		info, err := os.Stat(name)
		text, second := os.ReadFile(name)
		if err = errors.Join(err, second); err != nil || info.Mode().Perm() != 0o600 {
			r.t.Errorf("%s: %v %v", name, info, err)
		}
		out[filepath.Base(name)] = string(text)
	}
	return out
}

// left are the files beside the configuration that are neither it nor credentials.
func (r *rig) left() (names []string) {
	r.t.Helper()
	list, err := os.ReadDir(filepath.Dir(r.path))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, one := range list {
		if one.Name() != "parley.yaml" && one.Name() != "secrets" {
			names = append(names, one.Name())
		}
	}
	return names
}

var errBorrowed = errors.New("not fresh")

// owner may all; borrowed may nothing that is guarded.
func (r *rig) owner() setup.Asker {
	return setup.Asker{May: func([]string) error { return nil }, Row: row}
}

func (r *rig) borrowed() setup.Asker {
	return setup.Asker{Row: row, May: func(keys []string) error {
		if len(keys) > 0 {
			return errBorrowed
		}
		return nil
	}}
}

func row(kind string, what map[string]any) workspace.AuditRow {
	return workspace.AuditRow{Kind: kind, What: what}
}

func (r *rig) audit(row workspace.AuditRow) error {
	part, _ := row.What["part"].(string)
	r.notes = append(r.notes, strings.TrimSpace(row.Kind+" "+part))
	return nil
}

// set is a change of one place; no value: it is removed.
func set(t *testing.T, path, value string) setup.Set {
	t.Helper()
	if value == "" {
		return setup.Set{Path: path}
	}
	v, err := edit.Value([]byte(value))
	if err != nil {
		t.Fatal(err)
	}
	return setup.Set{Path: path, Value: v}
}

func (r *rig) change(who setup.Asker, e setup.Edit) (setup.Applied, error) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	return r.Change(ctx, who, e)
}
