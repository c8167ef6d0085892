package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"parley/configs/source"
	"parley/workspace"
)

// pending is what a change is about to do, in a file beside the configuration that only its owner reads. What a start finds of it:
//
//   - the former text: the change was not made, or undone; its credentials are removed
//   - the new text: it is in force and was not judged; that is done now, and it is undone where it would have been
//   - another text: somebody wrote it since, and it is theirs; credentials that it does not name are removed
type pending struct {
	path string // of the configuration

	Before  string   `json:"before"` // revision; empty: there was no file
	After   string   `json:"after"`
	Text    []byte   `json:"text,omitempty"` // of before, once the change is about to be made
	Keys    []string `json:"keys,omitempty"`
	Fine    []Part   `json:"fine,omitempty"`    // what was well before
	Secrets []string `json:"secrets,omitempty"` // files of the change
	Former  []string `json:"former,omitempty"`  // files that only the former text names
	text    []byte   // that the configuration holds once it is over
	plan    *plan
	leave   bool // it is not over: a start goes on
}

func pendingName(config string) string {
	return filepath.Join(filepath.Dir(config), "."+filepath.Base(config)+".change")
}

// Kept are the names of a configuration and of what is kept beside it: in a container they lie in the data directory, where a
// start from nothing leaves them.
func Kept(config string) []string {
	if config == "" {
		return nil
	}
	return []string{filepath.Base(config), secretsDir, filepath.Base(pendingName(config))}
}

// begin notes the change, and keeps its credentials.
func (s *Setup) begin(p *plan) (*pending, error) {
	n := &pending{path: p.before.Path, Before: p.before.Revision, After: source.RevisionOf(p.text), text: p.before.Text, plan: p,
		Former: references(p.before.Text)}
	for _, f := range p.files {
		n.Secrets = append(n.Secrets, f.name)
	}
	if len(p.files) == 0 {
		return n, nil
	}
	if err := n.write(); err != nil {
		return nil, err
	}
	s.at("noted")
	if err := keep(p.before.Path, p.files); err != nil {
		return nil, errors.Join(err, n.end())
	}
	return n, nil
}

// applying notes all that undoing it would need.
func (n *pending) applying(fine []Part) error {
	n.Text, n.Keys, n.Fine = n.plan.before.Text, n.plan.changed, fine
	return n.write()
}

// keep says that the change stays.
func (n *pending) keep() { n.text = n.plan.text }

// end removes what is not needed any more: credentials that the text does not name, then the note.
func (n *pending) end() error {
	if n.leave {
		return nil
	}
	text := n.text
	if now, err := os.ReadFile(n.path); err == nil { // what is there counts: somebody else may have written
		text = now
	}
	if err := forget(n.path, append(n.Secrets, n.Former...), text); err != nil {
		return err
	}
	if err := os.Remove(pendingName(n.path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (n *pending) write() error {
	text, err := json.Marshal(n)
	if err == nil {
		err = source.WriteWhole(pendingName(n.path), text)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", source.ErrUnwritable, err)
	}
	return nil
}

// Resume finishes what an earlier process was about to do. It returns when that is done: the parts are given time to settle.
func (s *Setup) Resume(ctx context.Context) {
	if err := s.resume(ctx); err != nil && ctx.Err() == nil {
		s.opt.Log.Error("configuration change of an earlier process not finished", "err", err)
	}
}

// atStart is who undoes what an earlier process did.
func (s *Setup) atStart() Asker {
	return Asker{Row: func(kind string, what map[string]any) workspace.AuditRow {
		return workspace.AuditRow{At: s.opt.Now(), Kind: kind, Via: "start", What: what}
	}}
}

func (s *Setup) resume(ctx context.Context) error {
	select {
	case <-s.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { s.turn <- struct{}{} }()
	f, err := s.opt.Source.File()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(pendingName(f.Path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	n := &pending{path: f.Path, text: f.Text}
	if err == nil {
		err = json.Unmarshal(text, n)
	}
	if err != nil {
		return fmt.Errorf("read what was about to be changed: %w", err)
	}
	current := s.opt.Source.Current()
	if f.Revision == n.After && len(n.Fine) > 0 && current != nil {
		if failed, _ := s.settle(ctx, current, n.Fine, n.Fine); failed != nil {
			p := &plan{before: source.File{Path: f.Path, Text: n.Text, Revision: n.Before}, text: f.Text, changed: n.Keys}
			if _, err := s.undo(ctx, s.atStart(), p, failed); err == nil {
				s.opt.Log.Warn("configuration change stays", "part", failed.Part.String(), "why", failed.Why)
			}
		}
	}
	if ctx.Err() != nil { // it was not judged: the next start does
		return ctx.Err()
	}
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(f.Path), ".parley-*.new")) // the pattern is ours
	for _, name := range left {
		err = errors.Join(err, os.Remove(name))
	}
	return errors.Join(err, n.end())
}
