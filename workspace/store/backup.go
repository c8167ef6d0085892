package store

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Manifest says what a backup holds. It is the backup's last file.
type Manifest struct {
	Format  int         `json:"format"`
	Created int64       `json:"created"` // milliseconds since 1970 UTC
	Epoch   int64       `json:"epoch"`   // boot of the gateway that made it
	Files   []SavedFile `json:"files"`
	Left    []string    `json:"left_out,omitempty"` // links and other special files: never followed, never kept
}

// SavedFile is one file of a backup; its name is relative to the data directory.
type SavedFile struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

const (
	backupFormat = 1
	manifestName = "manifest.json"
	databaseName = "parley.db"
)

// ErrElsewhere says that the database is not in the data directory.
var ErrElsewhere = errors.New("the database is in PostgreSQL: back it up with pg_dump, and the data directory by itself")

// Backup writes the data directory into a new file, a .tar.gz with mode 0600, while the store runs: the databases
// as of one moment each, then all other files. Links are left out. The copy of the database is verified before it is
// taken, so a damaged one makes no backup. A file that exists is not overwritten.
func (s *Store) Backup(ctx context.Context, file string) (Manifest, error) {
	if s.opt.Postgres != "" {
		return Manifest{}, ErrElsewhere
	}
	b := backup{dir: s.opt.Dir, m: Manifest{Format: backupFormat, Created: s.opt.Now().UnixMilli(), Epoch: s.epoch}}
	if err := b.write(ctx, file); err != nil {
		return Manifest{}, fmt.Errorf("back up to %s: %w", file, err)
	}
	return b.m, nil
}

// backup is one backup in the making.
type backup struct {
	dir string // data directory
	tmp string // copies of databases
	tar *tar.Writer
	m   Manifest
}

func (b *backup) write(ctx context.Context, file string) (err error) {
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, fs.ErrExist)
	}
	if b.tmp, err = os.MkdirTemp(filepath.Dir(file), ".parley-backup-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.tmp)) }()
	partial := filepath.Join(b.tmp, "backup")
	out, err := os.OpenFile(partial, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	packed, err := gzip.NewWriterLevel(out, gzip.BestSpeed)
	if err != nil {
		return errors.Join(err, out.Close())
	}
	b.tar = tar.NewWriter(packed)
	err = b.files(ctx)
	if err = errors.Join(err, b.tar.Close(), packed.Close(), out.Sync(), out.Close()); err != nil {
		return err
	}
	return os.Rename(partial, file)
}

func (b *backup) files(ctx context.Context) error {
	root, err := os.OpenRoot(b.dir) // a link that a tool has made must not lead out
	if err != nil {
		return err
	}
	defer root.Close()
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && errors.Is(err, fs.ErrNotExist):
			return nil // gone while we walked
		case err != nil || ctx.Err() != nil:
			return errors.Join(err, ctx.Err())
		case d.IsDir() || passing(name):
			return nil
		case !d.Type().IsRegular():
			b.m.Left = append(b.m.Left, name)
			return nil
		case filepath.Ext(name) == ".db" && !strings.Contains(name, "/"):
			return b.database(ctx, name)
		}
		f, err := root.Open(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		defer f.Close()
		return b.add(name, f)
	})
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(b.m, "", " ")
	if err != nil {
		return err
	}
	if err := b.tar.WriteHeader(header(manifestName, int64(len(text)))); err != nil {
		return err
	}
	_, err = b.tar.Write(text)
	return err
}

// passing files mean something to a running process only. Logs of a database are in its copy.
func passing(name string) bool {
	switch {
	case name == "lock", name == "ballast", strings.HasPrefix(name, "receipts."):
		return true
	case strings.HasPrefix(name, ".parley-"): // what is in the making, this very backup perhaps
		return true
	}
	return !strings.Contains(name, "/") && (strings.HasSuffix(name, ".db-wal") || strings.HasSuffix(name, ".db-shm") || strings.HasSuffix(name, ".db-journal"))
}

// database adds a consistent copy of one that is open, our own or an adapter's.
func (b *backup) database(ctx context.Context, name string) (err error) {
	to := filepath.Join(b.tmp, name)
	if err := copyDatabase(ctx, filepath.Join(b.dir, name), to); err != nil {
		return fmt.Errorf("copy %s: %w", name, err)
	}
	if name == databaseName {
		if err := VerifyFile(ctx, to); err != nil {
			return fmt.Errorf("verify the copy of %s: %w", name, err)
		}
	}
	f, err := os.Open(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(to)) }()
	return b.add(name, f)
}

func copyDatabase(ctx context.Context, from, to string) (err error) {
	q := url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(5000)"}}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: from}).EscapedPath()+"?"+q.Encode())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	_, err = db.ExecContext(ctx, "VACUUM INTO ?", to)
	return err
}

func (b *backup) add(name string, f fs.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := b.tar.WriteHeader(header(name, info.Size())); err != nil {
		return err
	}
	sum := sha256.New()
	if _, err := io.CopyN(io.MultiWriter(b.tar, sum), f, info.Size()); err != nil { // what grows meanwhile is cut
		return fmt.Errorf("%s: %w", name, err)
	}
	b.m.Files = append(b.m.Files, SavedFile{Name: name, Size: info.Size(), SHA256: hex.EncodeToString(sum.Sum(nil))})
	return nil
}

func header(name string, size int64) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o600, ModTime: time.Unix(0, 0), Format: tar.FormatPAX}
}
