package gateway

import (
	"context"
	"errors"

	"parley/workspace/store"
)

// Saved is what a backup holds.
type Saved = store.Manifest

// Backup writes a backup of a configuration's data directory while no gateway runs; it fails when one does.
func Backup(ctx context.Context, opt Options, file string) (m Saved, err error) {
	g := New(opt)
	s, err := store.Open(ctx, store.Options{Dir: opt.Source.Current().DataDir, Postgres: g.postgres(), Now: g.opt.Now, Log: g.log})
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return s.Backup(ctx, file)
}

// Restore puts a backup into place as the data directory, which must be empty or missing.
func Restore(ctx context.Context, file, dataDir string) (Saved, error) {
	return store.Restore(ctx, file, dataDir)
}
