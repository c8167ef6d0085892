// The schema, brought up to date.

package engine

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/pressly/goose/v3"
)

// migrate brings the schema up to date. Two processes that start together on one PostgreSQL wait for each other.
func migrate(ctx context.Context, db *sql.DB, d dialect, migrations fs.FS) error {
	files, err := fs.ReadDir(migrations, ".")
	if err != nil {
		return err
	}
	var list []*goose.Migration
	for _, f := range files {
		text, err := fs.ReadFile(migrations, f.Name())
		if err != nil {
			return err
		}
		version, err := strconv.ParseInt(f.Name()[:4], 10, 64)
		if err != nil {
			return fmt.Errorf("name of %s: %w", f.Name(), err)
		}
		up, down, _ := strings.Cut(d.schema(string(text)), "-- +goose Down")
		list = append(list, goose.NewGoMigration(version, step(up), step(down)))
	}
	switch newest, err := newestVersion(ctx, db); {
	case err != nil: // a new database has no such table; anything else goose says again
	case newest == int64(len(list)):
		return nil // the usual start: nothing to do, and no need to ask goose
	case newest > int64(len(list)):
		return fmt.Errorf("the database has version %d and this binary knows %d: use the newer binary", newest, len(list))
	}
	provider, err := goose.NewProvider(d.gooseDialect(), db, nil, goose.WithGoMigrations(list...), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx)
	return err
}

func step(text string) *goose.GoFunc {
	return &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, text)
		return err
	}}
}

func newestVersion(ctx context.Context, db *sql.DB) (v int64, err error) {
	err = db.QueryRowContext(ctx, `SELECT MAX(version_id) FROM goose_db_version WHERE is_applied`).Scan(&v)
	return v, err
}
