package store

import (
	"context"
	"strings"

	"parley/workspace/store/engine"
)

// Backup writes the data directory into a new file, a .tar.gz with mode 0600, while the store runs: engine.DB.Backup.
func (s *Store) Backup(ctx context.Context, file string) (Manifest, error) {
	return s.db.Backup(ctx, file, []string{headName}, hereOnly)
}

// hereOnly names what is where on this machine's disks.
func hereOnly(name string) bool { return strings.HasPrefix(name, "folders/") }

// Restore puts a backup into place as dataDir, which must not exist or be empty: engine.Restore.
func Restore(ctx context.Context, file, dataDir string) (Manifest, error) {
	return engine.Restore(ctx, file, dataDir, verifyRows)
}
