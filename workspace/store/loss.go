// What a start does about a database that lacks what it held.

package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"parley/workspace"
	"parley/workspace/store/engine"
)

// OnLoss is what Open does about a database that lacks what it held.
type OnLoss string

const (
	RefuseLoss OnLoss = ""       // return the *Loss
	AcceptLoss OnLoss = "accept" // go on with what is left
	BeginFresh OnLoss = "fresh"  // move all aside and begin from nothing; also where the database cannot be read at all
)

// ErrNoLoss says that an Open that was told to accept a loss, or to begin from nothing, found none: nothing was done.
var ErrNoLoss = errors.New("nothing is missing here: start without --accept-loss and --fresh")

// examine holds the database against what stands beside it, before anything is written, and does what the options say. What
// it finds is told in the audit log of the database that is then opened.
func (s *Store) examine(ctx context.Context, r *engine.Reader) (renew bool, err error) {
	b, err := lookBeside(s.opt.Dir)
	if err != nil {
		return false, err
	}
	h, err := ask(ctx, r, b.head)
	if err != nil && (s.opt.OnLoss != BeginFresh || !r.Broken(err)) {
		return false, err
	}
	l := b.lost(h)
	if err != nil {
		l = &Loss{Why: []string{err.Error()}, Head: b.head}
	}
	switch {
	case l == nil && s.opt.OnLoss != RefuseLoss:
		return false, ErrNoLoss
	case l == nil:
		s.unwitnessed(b.blind(h))
		return false, nil
	case s.opt.OnLoss == AcceptLoss:
		return true, s.accept(l)
	case s.opt.OnLoss == BeginFresh && h.started && s.opt.Postgres != "":
		return false, errors.Join(errors.New("a database of PostgreSQL is not moved aside: name an empty one in PARLEY_POSTGRES"), l)
	case s.opt.OnLoss == BeginFresh:
		if err := r.Close(); err != nil {
			return false, err
		}
		return false, s.fresh(l)
	}
	return false, l
}

// ask examines the database that is there.
func ask(ctx context.Context, r *engine.Reader, head workspace.AuditHead) (h held, err error) {
	if h, err = examine(ctx, r, head); err != nil {
		err = fmt.Errorf("look at the database: %w", err)
	}
	return h, err
}

// unwitnessed tells of witnesses that are missing: they are made again, and until then could have shown nothing.
func (s *Store) unwitnessed(blind []string) {
	if len(blind) == 0 {
		return
	}
	s.opt.Log.Warn("what stands beside the database is missing or damaged and is made again: "+
		"rows that were cut off before this start could not be noticed", "files", strings.Join(blind, "; "))
	s.tell(workspace.AuditStoreUnwitnessed, map[string]any{"files": blind})
}

func (s *Store) tell(kind string, what map[string]any) {
	s.told = append(s.told, workspace.AuditRow{Kind: kind, Actor: "operator", Via: "start", What: what})
}

func (l *Loss) row(aside string) map[string]any {
	what := map[string]any{"why": l.Why, "commits": l.Commits, "inputs": l.Inputs, "answers": l.Answers, "audit_rows": l.AuditRows,
		"aside": filepath.Base(aside)}
	if l.Head.N > 0 {
		what["head"] = map[string]any{"chain": l.Head.Chain, "n": l.Head.N, "hash": l.Head.Hash}
	}
	return what
}

// accept keeps a copy of what proves the loss, and of the log whose end is overwritten.
func (s *Store) accept(l *Loss) error {
	aside, err := engine.CopyAside(s.opt.Dir, s.opt.Now(), engine.CountFile, headName, engine.DatabaseFile+"-wal")
	if err != nil {
		return err
	}
	s.renew = true
	s.opt.Log.Warn("data loss accepted", "loss", l.What(), "aside", aside)
	s.tell(workspace.AuditStoreLoss, l.row(aside))
	return nil
}

// fresh moves everything aside but what is configured. What proves the loss goes last: a start that ends in between
// finds it again.
func (s *Store) fresh(l *Loss) error {
	aside, err := engine.MoveAside(s.opt.Dir, s.opt.Now(), s.opt.Keep, []string{engine.DatabaseFile, engine.CountFile, headName})
	if err != nil {
		return err
	}
	s.opt.Log.Warn("data moved aside, new database created", "loss", l.What(), "aside", aside)
	s.tell(workspace.AuditStoreFresh, l.row(aside))
	return nil
}

// LossIn says what the database of a data directory that no gateway has open lacks; nil: nothing is known to be missing.
// blind are the files beside it that should show a loss, and are missing.
func LossIn(ctx context.Context, dir string) (l *Loss, blind []string, err error) {
	b, err := lookBeside(dir)
	if err != nil {
		return nil, nil, err
	}
	r, err := engine.OpenDir(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	h, err := ask(ctx, r, b.head)
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, nil, r.Damage(err)
	}
	return b.lost(h), b.blind(h), nil
}
