package gateway

import (
	"context"
	"errors"
	"fmt"

	"parley/gateway/control/operator"
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

// LossOption is what a start does about a database that lacks what it held.
type LossOption = store.OnLoss

// OnLoss is the option of two flags.
func OnLoss(accept, fresh bool) LossOption {
	switch {
	case accept:
		return store.AcceptLoss
	case fresh:
		return store.BeginFresh
	}
	return store.RefuseLoss
}

// NeedsOperator says that a start failed on something that stays as it is until somebody decides.
func NeedsOperator(err error) bool {
	return errors.Is(err, store.ErrLost) || errors.Is(err, store.ErrNoLoss) || errors.Is(err, store.ErrDamaged)
}

// AuditCheck is what a check of the audit log found.
type AuditCheck = operator.AuditCheck

// VerifyAudit checks the audit log of a data directory that no gateway has open; head, where it is not empty, is a row
// that was noted elsewhere, as number:hash, and must still be there.
func VerifyAudit(ctx context.Context, dataDir, head string) (AuditCheck, error) {
	known, err := operator.ParseHead(head)
	if err != nil {
		return AuditCheck{}, err
	}
	r, err := store.VerifyAuditDir(ctx, dataDir, known)
	if err != nil {
		return AuditCheck{}, fmt.Errorf("check the audit log in %s: %w", dataDir, err)
	}
	return operator.CheckOf(r), nil
}

// Restore puts a backup into place as the data directory, which must be empty or missing.
func Restore(ctx context.Context, file, dataDir string) (Saved, error) {
	return store.Restore(ctx, file, dataDir)
}
