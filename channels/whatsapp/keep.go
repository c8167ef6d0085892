package whatsapp

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.mau.fi/whatsmeow/proto/waE2E"
	wastore "go.mau.fi/whatsmeow/store"
	"go.mau.fi/whatsmeow/store/sqlstore"
	"go.mau.fi/whatsmeow/types"
	"google.golang.org/protobuf/proto"
	_ "modernc.org/sqlite" // the driver "sqlite"
)

var (
	errOwned = errors.New("another process uses this channel's device")
	// errKept is what whatsmeow hears when it deletes a device under the feet of those who use it. The row goes when
	// nobody does any more.
	errKept = errors.New("the device is deleted by its owner")
)

// What was sent is kept for those whose devices ask for it again: they do within minutes, or when they come back.
const (
	sentFor  = 14 * 24 * time.Hour // as long as WhatsApp's server keeps what nobody fetched
	sentMost = 5000                // messages
)

// keep is the channel's file, open while somebody uses it.
type keep struct {
	dir, name string
	log       *slog.Logger

	mu    sync.Mutex
	users int
	open  *deviceStore
}

// deviceStore is the open file: whatsmeow's own tables, and five of Parley's.
type deviceStore struct {
	db        *sql.DB
	container *sqlstore.Container
	lock      *os.File
	seal      *seal

	mu   sync.Mutex
	lids map[string]bool // people who go by their LID, since it was known before their number
	sent int             // messages kept since the last sweep

	wanted map[string]bool // ids of messages that devices have asked for again
	met    map[string]bool // devices that WhatsApp has let in
}

func newKeep(dir, name string, log *slog.Logger) *keep { return &keep{dir: dir, name: name, log: log} }

// acquire opens the file, or joins those who have it open. Call release when done.
func (k *keep) acquire(ctx context.Context) (*deviceStore, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.open == nil {
		v, err := k.load(ctx)
		if err != nil {
			return nil, fmt.Errorf("open whatsapp's device store: %w", err)
		}
		k.open = v
	}
	k.users++
	return k.open, nil
}

func (k *keep) release() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.users--; k.users > 0 {
		return
	}
	if err := k.open.close(); err != nil {
		k.log.Warn("close whatsapp's device store", "err", err)
	}
	k.open = nil
}

// empty says that there is no file yet, so that nothing is linked.
func (k *keep) empty() bool {
	_, err := os.Stat(k.path())
	return errors.Is(err, os.ErrNotExist)
}

func (k *keep) path() string { return filepath.Join(k.dir, "wa-"+k.name+".db") }

func (k *keep) load(ctx context.Context) (_ *deviceStore, err error) {
	if k.dir == "" {
		return nil, errors.New("no data directory is given")
	}
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return nil, err
	}
	v := &deviceStore{lids: map[string]bool{}, wanted: map[string]bool{}, met: map[string]bool{}}
	defer func() {
		if err != nil {
			_ = v.close() // the first error is the one to tell
		}
	}()
	if v.lock, err = lock(filepath.Join(k.dir, "wa-"+k.name+".lock")); err != nil {
		return nil, err
	}
	// Made before the driver makes it, which would let others read it. The files beside it take its mode.
	f, err := os.OpenFile(k.path(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.Chmod(0o600), f.Close()); err != nil {
		return nil, err
	}
	// What the sessions' ratchets were moved to must not be lost with the power: a counter used twice is refused by others.
	dsn := (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: k.path()}).EscapedPath(), RawQuery: "_pragma=foreign_keys(1)&_pragma=busy_timeout(5000)&" +
		"_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=cache_size(-512)&_txlock=immediate"}).String()
	if v.db, err = sql.Open("sqlite", dsn); err != nil {
		return nil, err
	}
	v.db.SetMaxOpenConns(4)
	v.db.SetMaxIdleConns(2)
	v.db.SetConnMaxIdleTime(20 * time.Second) // each holds a megabyte; a chat that is silent needs none
	v.container = sqlstore.NewWithDB(v.db, "sqlite", logger{log: k.log})
	if err := v.container.Upgrade(ctx); err != nil {
		return nil, err
	}
	return v, v.prepare(ctx)
}

// prepare makes our tables. They outlive a device: another one of the same account has the same people.
func (v *deviceStore) prepare(ctx context.Context) error {
	for _, q := range []string{
		`CREATE TABLE IF NOT EXISTS parley_key  (id INTEGER PRIMARY KEY CHECK (id = 1), key BLOB NOT NULL)`,
		`CREATE TABLE IF NOT EXISTS parley_lid  (lid TEXT PRIMARY KEY) WITHOUT ROWID`,
		`CREATE TABLE IF NOT EXISTS parley_sent (id TEXT PRIMARY KEY, chat TEXT NOT NULL, at INTEGER NOT NULL, body BLOB NOT NULL)`,
		`CREATE INDEX IF NOT EXISTS parley_sent_at ON parley_sent(at)`,
		`CREATE TABLE IF NOT EXISTS parley_again (id TEXT, device TEXT, chat TEXT NOT NULL, own TEXT NOT NULL, at INTEGER NOT NULL, tries INTEGER NOT NULL, PRIMARY KEY (id, device)) WITHOUT ROWID`,
	} {
		if _, err := v.db.ExecContext(ctx, q); err != nil {
			return fmt.Errorf("make the tables: %w", err)
		}
	}
	if err := v.prepareMet(ctx); err != nil {
		return err
	}
	fresh := make([]byte, 64)
	_, _ = rand.Read(fresh) // it never fails
	if _, err := v.db.ExecContext(ctx, `INSERT INTO parley_key (id, key) VALUES (1, ?) ON CONFLICT DO NOTHING`, fresh); err != nil {
		return fmt.Errorf("make the key of references: %w", err)
	}
	var key []byte
	if err := v.db.QueryRowContext(ctx, `SELECT key FROM parley_key WHERE id = 1`).Scan(&key); err != nil {
		return fmt.Errorf("read the key of references: %w", err)
	}
	var err error
	if v.seal, err = newSeal(key); err != nil {
		return err
	}
	return errors.Join(v.fill(ctx, v.lids, `SELECT lid FROM parley_lid`), v.fill(ctx, v.wanted, `SELECT id FROM parley_again`),
		v.fill(ctx, v.met, `SELECT device FROM parley_met`))
}

// prepareMet makes the table of devices that WhatsApp has let in. A file that has none is of a version that kept no account
// of it: its device was let in.
func (v *deviceStore) prepareMet(ctx context.Context) error {
	tx, err := v.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("make the tables: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	var has int
	if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_master WHERE name = 'parley_met'`).Scan(&has); err != nil || has > 0 {
		return err
	}
	for _, q := range []string{`CREATE TABLE parley_met (device TEXT PRIMARY KEY) WITHOUT ROWID`, `INSERT INTO parley_met SELECT jid FROM whatsmeow_device`} {
		if _, err := tx.ExecContext(ctx, q); err != nil {
			return fmt.Errorf("make the tables: %w", err)
		}
	}
	return tx.Commit()
}

// meet notes that WhatsApp let a device in.
func (v *deviceStore) meet(ctx context.Context, id types.JID) error {
	if v.hasMet(id) {
		return nil
	}
	if _, err := v.db.ExecContext(ctx, `INSERT INTO parley_met (device) VALUES (?) ON CONFLICT DO NOTHING`, id.String()); err != nil {
		return fmt.Errorf("note that the device was let in: %w", err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.met[id.String()] = true
	return nil
}

// hasMet says whether WhatsApp ever let a device in.
func (v *deviceStore) hasMet(id types.JID) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.met[id.String()]
}

// fill reads a column into a set.
func (v *deviceStore) fill(ctx context.Context, set map[string]bool, query string) error {
	rows, err := v.db.QueryContext(ctx, query)
	if err != nil {
		return fmt.Errorf("%s: %w", query, err)
	}
	defer rows.Close()
	for rows.Next() {
		var one string
		if err := rows.Scan(&one); err != nil {
			return fmt.Errorf("%s: %w", query, err)
		}
		set[one] = true
	}
	return rows.Err()
}

func (v *deviceStore) close() error {
	var errs []error
	if v.db != nil {
		errs = append(errs, v.db.Close())
		v.settle()
	}
	if v.lock != nil {
		errs = append(errs, unlock(v.lock))
	}
	return errors.Join(errs...)
}

// settle waits, two seconds at most, for what whatsmeow still had under way in the store: its goroutines outlive a
// connection by one statement, and the file must be let go before it is opened or moved again.
func (v *deviceStore) settle() {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range 400 {
		if v.db.Stats().OpenConnections == 0 {
			return
		}
		<-tick.C
	}
}

// device is the linked one; nil: there is none.
func (v *deviceStore) device(ctx context.Context) (*wastore.Device, error) {
	all, err := v.container.GetAllDevices(ctx)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	dev := all[len(all)-1] // a login that was cut between saving the new one and deleting the old leaves two
	dev.Container = owned{v.container}
	guard(dev)
	return dev, nil
}

// forget deletes a device's keys and sessions. Nobody may use it any more.
func (v *deviceStore) forget(ctx context.Context, id types.JID) error {
	for _, q := range []string{`DELETE FROM whatsmeow_device WHERE jid = ?`, `DELETE FROM parley_met WHERE device = ?`} {
		if _, err := v.db.ExecContext(ctx, q, id.String()); err != nil {
			return fmt.Errorf("delete the device: %w", err)
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.met, id.String())
	return nil
}

// owned keeps whatsmeow from deleting a device on its own: it does so from another goroutine than those that read it.
type owned struct{ wastore.DeviceContainer }

func (owned) DeleteDevice(context.Context, *wastore.Device) error { return errKept }

// pinned says whether somebody goes by their LID for good.
func (v *deviceStore) pinned(lid string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.lids[lid]
}

// pin makes somebody go by their LID for good, whatever number is learned later: who an address or a key names must not
// change.
func (v *deviceStore) pin(ctx context.Context, lid string) error {
	if _, err := v.db.ExecContext(ctx, `INSERT INTO parley_lid (lid) VALUES (?) ON CONFLICT DO NOTHING`, lid); err != nil {
		return fmt.Errorf("keep a person's name: %w", err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.lids[lid] = true
	return nil
}

// put keeps a message before it is sent.
func (v *deviceStore) put(ctx context.Context, chat types.JID, id string, m *waE2E.Message, now time.Time) error {
	body, err := proto.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode what is sent: %w", err)
	}
	if _, err = v.db.ExecContext(ctx, `INSERT INTO parley_sent (id, chat, at, body) VALUES (?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET body = excluded.body`, id, chat.String(), now.UnixMilli(), body); err != nil {
		return fmt.Errorf("keep what is sent: %w", err)
	}
	v.mu.Lock()
	v.sent++
	due := v.sent >= 100
	if due {
		v.sent = 0
	}
	v.mu.Unlock()
	if !due {
		return nil
	}
	_, err = v.db.ExecContext(ctx, `DELETE FROM parley_sent WHERE at < ? OR at < (SELECT at FROM parley_sent ORDER BY at DESC LIMIT 1 OFFSET ?)`,
		now.Add(-sentFor).UnixMilli(), sentMost)
	return err
}

// get is what was sent under an id, and to whom; nil: it is not known, or was deleted.
func (v *deviceStore) get(ctx context.Context, id string) (*waE2E.Message, string, error) {
	m, chat, _, err := v.row(ctx, id)
	return m, chat, err
}

// sentAt is what was sent under an id, and when.
func (v *deviceStore) sentAt(ctx context.Context, id string) (*waE2E.Message, time.Time, error) {
	m, _, at, err := v.row(ctx, id)
	return m, at, err
}

func (v *deviceStore) row(ctx context.Context, id string) (*waE2E.Message, string, time.Time, error) {
	var chat string
	var at int64
	var body []byte
	err := v.db.QueryRowContext(ctx, `SELECT chat, at, body FROM parley_sent WHERE id = ?`, id).Scan(&chat, &at, &body)
	if errors.Is(err, sql.ErrNoRows) || err == nil && len(body) == 0 {
		return nil, "", time.Time{}, nil
	}
	if err != nil {
		return nil, "", time.Time{}, fmt.Errorf("look for what was sent: %w", err)
	}
	m := &waE2E.Message{}
	if err := proto.Unmarshal(body, m); err != nil {
		return nil, "", time.Time{}, fmt.Errorf("decode what was sent: %w", err)
	}
	return m, chat, time.UnixMilli(at), nil
}

// amend keeps what a message was edited to.
func (v *deviceStore) amend(ctx context.Context, id string, m *waE2E.Message) error {
	body, err := proto.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode what was edited: %w", err)
	}
	if _, err = v.db.ExecContext(ctx, `UPDATE parley_sent SET body = ? WHERE id = ? AND length(body) > 0`, body, id); err != nil {
		return fmt.Errorf("keep what was edited: %w", err)
	}
	return nil
}

// drop forgets a message that was deleted for everyone, but not that it was.
func (v *deviceStore) drop(ctx context.Context, id string) error {
	if _, err := v.db.ExecContext(ctx, `UPDATE parley_sent SET body = x'' WHERE id = ?`, id); err != nil {
		return fmt.Errorf("forget what was deleted: %w", err)
	}
	return nil
}

// dropped says that a message was deleted.
func (v *deviceStore) dropped(ctx context.Context, id string) (bool, error) {
	var n int
	err := v.db.QueryRowContext(ctx, `SELECT count(*) FROM parley_sent WHERE id = ? AND length(body) = 0`, id).Scan(&n)
	if err != nil {
		return false, fmt.Errorf("look for what was deleted: %w", err)
	}
	return n > 0, nil
}
