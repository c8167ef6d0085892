// Package setup changes the configuration while the gateway runs: it makes the text, keeps credentials in files of their own,
// puts it in force, and undoes it where a part that was well before fails by it. One change is made at a time.
//
// What it is about to do stands in a file beside the configuration until it is done (pending.go), so that a start after a crash
// finds either text whole, and goes on from there.
//
// It starts no goroutine that outlives a call.
package setup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"parley/configs"
	"parley/configs/edit"
	"parley/configs/guard"
	"parley/configs/source"
	"parley/workspace"
)

// Source is the configuration's file and what is in force. *source.Source is one.
type Source interface {
	Current() *configs.Config
	File() (source.File, error)
	Check(text []byte) (*configs.Config, error)
	Replace(ctx context.Context, base string, text []byte) error
	// SecretKeys are the names of the keys that hold credentials.
	SecretKeys() []string
}

// Options of a Setup. All are needed but Log.
type Options struct {
	Source Source
	Health Health
	Audit  func(workspace.AuditRow) error
	Hide   *workspace.Redactor // knows the credentials
	Base   context.Context     // ends with the gateway: a change goes on when whoever asked for it has left
	Now    func() time.Time
	Log    *slog.Logger
}

// Setup changes the configuration. Safe for concurrent use.
type Setup struct {
	opt  Options
	turn chan struct{}     // holds one while nobody changes anything
	at   func(step string) // a change has come this far
}

// New makes a Setup. It does nothing yet.
func New(o Options) *Setup {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Setup{opt: o, turn: make(chan struct{}, 1), at: func(string) {}}
	s.turn <- struct{}{}
	return s
}

// Asker is who asks for a change.
type Asker struct {
	// May refuses keys that this asker may not change; it is asked before anything is read by their means.
	May func(guarded []string) error
	// Row is the row of the audit log that tells of an act of theirs.
	Row func(kind string, what map[string]any) workspace.AuditRow
}

// Set is one place of the text with its new value, as it is written; nil: it is removed.
type Set = edit.Change

// Secret is a credential for a place of the text.
type Secret struct {
	Path, Value string
}

// Edit is a change of places.
type Edit struct {
	Base    string // revision of the text that it is meant for; empty: whatever it is
	Sets    []Set
	Secrets []Secret
}

// Applied is what became of a change.
type Applied struct {
	Revision string
	Changed  []string // keys
	Restart  []string // those of them that wait for one
	Notes    []string // sentences for people
}

// Errors of a change, beside source.ErrChanged, edit.ErrByHand, *configs.Error and *guard.ErrKept.
var (
	// ErrSecret is a credential that cannot be kept, or not there; its text is for people.
	ErrSecret = errors.New("credential not kept")
	// ErrEnvironment is a key that the environment gives; its text is for people.
	ErrEnvironment = errors.New("the environment gives it")
)

// Undone is a change that was taken back since a part failed by it.
type Undone struct {
	Part Part
	Why  string
}

func (u *Undone) Error() string { return fmt.Sprintf("%s: %s; the change is undone", u.Part, u.Why) }

// Shown is the file as people see it.
type Shown struct {
	source.File
	Masked     []string // where a mask stands in place of a credential
	Overridden []string // keys that the environment gives
	Problems   []configs.Problem
	Hidden     error // why the text is not shown at all
}

// Show reads the file. Its Text holds no credential.
func (s *Setup) Show() (Shown, error) {
	f, err := s.opt.Source.File()
	if err != nil {
		return Shown{}, err
	}
	v := Shown{File: f}
	c, err := s.opt.Source.Check(f.Text)
	if v.Problems = problems(err); c != nil {
		v.Overridden = slices.Sorted(maps.Keys(c.Overridden()))
	}
	if f.Revision == "" {
		v.Problems = nil
	}
	hidden, err := s.masks(c).Show(f.Text)
	v.Text, v.Masked, v.Hidden = hidden.Text, hidden.Paths, err
	return v, nil
}

// masks hide what the gateway knows to be a credential, and what a configuration calls one.
func (s *Setup) masks(of *configs.Config) edit.Masks {
	fresh := workspace.NewRedactor()
	if of != nil {
		fresh.Add(of.Secrets()...)
	}
	return edit.Masks{Keys: s.opt.Source.SecretKeys(), Hide: func(line string) string {
		shown := fresh.Redact(s.opt.Hide.Redact(line))
		if shown != line {
			shown = strings.ReplaceAll(shown, workspace.Masked, edit.Mask)
		}
		return shown
	}}
}

// problems are those of an error of Check; of another error it is the one.
func problems(err error) []configs.Problem {
	var wrong *configs.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong):
		return wrong.Problems
	}
	return []configs.Problem{{Text: err.Error()}}
}

// Checked is what a text would change.
type Checked struct {
	Problems                  []configs.Problem
	Changed, Guarded, Restart []string
}

// Check looks at a text, as it is shown, that is not the file yet. may is asked before anything is read that it names newly.
func (s *Setup) Check(shown []byte, may func(guarded []string) error) (Checked, error) {
	p, err := s.whole(shown)
	if err != nil {
		return checkedMask(err)
	}
	if err := may(p.references); err != nil {
		return Checked{}, err
	}
	c, err := s.opt.Source.Check(p.text)
	v := Checked{Problems: problems(err)}
	if len(v.Problems) == 0 {
		if err := p.means(s.opt.Source.Current(), c); err != nil {
			v.Problems = []configs.Problem{{Text: err.Error()}}
		}
		v.Changed, v.Guarded, v.Restart = p.changed, p.guarded, p.restart
	}
	return v, nil
}

// checkedMask makes a problem of a mask that stands for nothing.
func checkedMask(err error) (Checked, error) {
	var mask *edit.ErrMask
	if errors.As(err, &mask) {
		return Checked{Problems: []configs.Problem{{Line: mask.Line, Text: mask.Error()}}}, nil
	}
	return Checked{}, err
}

// plan is a change that is not made yet.
type plan struct {
	before     source.File
	text       []byte // as a whole
	files      []secretFile
	references []string // places with a ${…} that is new and not ours
	changed    []string
	guarded    []string // of them, and the references
	restart    []string
}

// whole is a plan to make the file a text that was shown.
func (s *Setup) whole(shown []byte) (*plan, error) {
	f, err := s.opt.Source.File()
	if err != nil {
		return nil, err
	}
	of, _ := s.opt.Source.Check(f.Text) // what it means is of no matter here
	text, err := s.masks(of).Restore(f.Text, shown)
	if err != nil {
		return nil, err
	}
	return (&plan{before: f, text: text}).refer()
}

// refer finds the references that are new. A text that is no YAML has none: it is refused anyway.
func (p *plan) refer() (*plan, error) {
	given := map[string]bool{}
	for _, f := range p.files {
		given[f.reference()] = true
	}
	p.references, _ = guard.NewReferences(p.before.Text, p.text, given)
	return p, nil
}

// means holds what the text means against what is in force.
func (p *plan) means(current, new *configs.Config) error {
	p.changed = guard.Changed(current, new)
	p.guarded = append(guard.Guarded(p.changed), p.references...)
	slices.Sort(p.guarded)
	p.guarded = slices.Compact(p.guarded)
	p.restart = configs.NeedsRestart(current, new)
	secret := map[string]bool{}
	for _, l := range new.Leaves() {
		secret[l.Path] = l.Secret
	}
	for _, f := range p.files {
		if list, err := edit.Scalars(p.text); err == nil {
			for _, one := range list {
				if one.Value == f.reference() && !secret[one.Path] {
					return fmt.Errorf("%w: %s is not a credential", ErrSecret, one.Path)
				}
			}
		}
	}
	return p.overridden(new)
}

// overridden refuses a change that the environment would make be without effect.
func (p *plan) overridden(new *configs.Config) error {
	was, is := map[string]string{}, map[string]string{}
	for text, values := range map[*[]byte]map[string]string{&p.before.Text: was, &p.text: is} {
		list, err := edit.Scalars(*text)
		if err != nil {
			continue
		}
		for _, one := range list {
			values[one.Path] = one.Value
		}
	}
	given := new.Overridden()
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if was[key] != is[key] {
			flag := ""
			if key == "data_dir" {
				flag = ", or the flag --data-dir,"
			}
			return fmt.Errorf("%w: %s is set by the environment variable %s%s which wins over the file: take it out there first",
				ErrEnvironment, key, given[key], flag)
		}
	}
	return nil
}
