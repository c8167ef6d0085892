package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"parley/workspace"
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

// asideName begins the folders in which --accept-loss and --fresh put what they replace.
const asideName = "aside-"

// face holds the database against what stands beside it, before anything is written, and does what the options say. Its
// result is told in the audit log of the database that is then opened.
func (s *Store) face(ctx context.Context) (rows []workspace.AuditRow, err error) {
	b, err := lookBeside(s.opt.Dir)
	if err != nil {
		return nil, err
	}
	h, err := s.ask(ctx, b.head)
	if err != nil && (s.opt.OnLoss != BeginFresh || !s.d.broken(err)) {
		return nil, err
	}
	l := b.lost(h)
	if err != nil {
		l = &Loss{Why: []string{err.Error()}, Head: b.head}
	}
	switch {
	case l == nil && s.opt.OnLoss != RefuseLoss:
		return nil, ErrNoLoss
	case l == nil:
		return s.unwitnessed(b.blind(h)), nil
	case s.opt.OnLoss == AcceptLoss:
		return s.accept(l)
	case s.opt.OnLoss == BeginFresh && h.started && s.opt.Postgres != "":
		return nil, errors.Join(errors.New("a database of PostgreSQL is not moved aside: name an empty one in PARLEY_POSTGRES"), l)
	case s.opt.OnLoss == BeginFresh:
		return s.fresh(l)
	}
	return nil, l
}

// ask examines the database that is there.
func (s *Store) ask(ctx context.Context, head workspace.AuditHead) (h held, err error) {
	db, err := s.d.look(ctx)
	if err != nil || db == nil {
		return h, err
	}
	s.looked = db // and goes on as the reader: it has the index of the log and the schema, which need not be made twice
	if h, err = examine(ctx, db, s.d, head); err != nil {
		err = fmt.Errorf("look at the database: %w", err)
	}
	return h, err
}

// unwitnessed tells of witnesses that are missing: they are made again, and until then could have shown nothing.
func (s *Store) unwitnessed(blind []string) []workspace.AuditRow {
	if len(blind) == 0 {
		return nil
	}
	s.log.Warn("what stands beside the database is missing or damaged and is made again: rows that were cut off before this start could not be noticed", "files", strings.Join(blind, "; "))
	return []workspace.AuditRow{s.lossRow(workspace.AuditStoreUnwitnessed, map[string]any{"files": blind})}
}

func (s *Store) lossRow(kind string, what map[string]any) workspace.AuditRow {
	return workspace.AuditRow{Kind: kind, Actor: "operator", Via: "start", What: what}
}

func (l *Loss) row(aside string) map[string]any {
	what := map[string]any{"why": l.Why, "commits": l.Commits, "inputs": l.Inputs, "answers": l.Answers, "audit_rows": l.AuditRows, "aside": aside}
	if l.Head.N > 0 {
		what["head"] = map[string]any{"chain": l.Head.Chain, "n": l.Head.N, "hash": l.Head.Hash}
	}
	return what
}

// accept keeps a copy of what proves the loss, and of the log whose end is overwritten.
func (s *Store) accept(l *Loss) ([]workspace.AuditRow, error) {
	aside, err := s.aside()
	if err != nil {
		return nil, err
	}
	for _, name := range []string{tallyName, headName, databaseName + "-wal"} {
		if err := copyAside(filepath.Join(s.opt.Dir, name), filepath.Join(aside, name)); err != nil {
			return nil, fmt.Errorf("keep %s aside: %w", name, err)
		}
	}
	if err := syncDir(aside); err != nil {
		return nil, err
	}
	s.renew = true
	s.log.Warn("a loss is accepted", "loss", l.What(), "aside", aside)
	return []workspace.AuditRow{s.lossRow(workspace.AuditStoreLoss, l.row(filepath.Base(aside)))}, nil
}

func copyAside(from, to string) error {
	in, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = in.WriteTo(out)
	return errors.Join(err, out.Sync(), out.Close())
}

// fresh moves everything aside but what is configured. What proves the loss goes last: a start that ends in between
// finds it again.
func (s *Store) fresh(l *Loss) ([]workspace.AuditRow, error) {
	if err := s.closeLooked(); err != nil {
		return nil, err
	}
	list, err := os.ReadDir(s.opt.Dir)
	if err != nil {
		return nil, err
	}
	aside, err := s.aside()
	if err != nil {
		return nil, err
	}
	proof := []string{databaseName, tallyName, headName}
	names := []string{}
	for _, e := range list {
		if n := e.Name(); n != "lock" && !strings.HasPrefix(n, asideName) && !slices.Contains(s.opt.Keep, n) && !slices.Contains(proof, n) {
			names = append(names, n)
		}
	}
	for _, name := range append(names, proof...) {
		err := os.Rename(filepath.Join(s.opt.Dir, name), filepath.Join(aside, name))
		if errors.Is(err, unix.EBUSY) {
			continue // something is mounted there
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("move %s aside: %w", name, err)
		}
	}
	if err := errors.Join(syncDir(aside), syncDir(s.opt.Dir)); err != nil {
		return nil, err
	}
	s.log.Warn("all is moved aside, and the database begins from nothing", "loss", l.What(), "aside", aside)
	return []workspace.AuditRow{s.lossRow(workspace.AuditStoreFresh, l.row(filepath.Base(aside)))}, nil
}

// aside makes a folder of this moment.
func (s *Store) aside() (string, error) {
	base := filepath.Join(s.opt.Dir, asideName+s.opt.Now().UTC().Format("20060102T150405Z"))
	for i := 0; ; i++ {
		name := base
		if i > 0 {
			name = fmt.Sprintf("%s-%d", base, i)
		}
		err := os.Mkdir(name, 0o700)
		if err == nil {
			return name, syncDir(s.opt.Dir)
		}
		if !errors.Is(err, fs.ErrExist) || i == 99 {
			return "", fmt.Errorf("make a folder for what is moved aside: %w", err)
		}
	}
}

// LossIn says what the database of a data directory that no gateway has open lacks; nil: nothing is known to be missing.
// blind are the files beside it that should show a loss, and are missing.
func LossIn(ctx context.Context, dir string) (l *Loss, blind []string, err error) {
	s := &Store{opt: Options{Dir: dir}, d: sqlite{path: filepath.Join(dir, databaseName)}}
	b, err := lookBeside(dir)
	if err != nil {
		return nil, nil, err
	}
	h, err := s.ask(ctx, b.head)
	if err = errors.Join(err, s.closeLooked()); err != nil {
		return nil, nil, damage(s.d, err)
	}
	return b.lost(h), b.blind(h), nil
}

func (s *Store) closeLooked() error {
	if s.looked == nil {
		return nil
	}
	err := s.looked.Close()
	s.looked = nil
	return err
}
