// The audit log, a chain of hashes, and its head beside the database.

package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/gowebpki/jcs"

	"parley/workspace"
	"parley/workspace/clip"
	"parley/workspace/store/engine"
)

// The audit log is a chain: each row holds the hash of the one before, so that a row that is changed, left out or put
// in shows. A chain alone cannot show that its end was cut off; so the last row's number and hash also stand in a file
// beside the database, written after each commit. Whoever can write the whole data directory can forge both: who fears
// that keeps heads elsewhere (parley audit verify --head).

// headName is the file that names the newest row; it is copied before the database is, so a backup's head is never
// ahead of its rows.
const headName = "audit.head"

// auditChain is the setting that names this gateway's chain.
const auditChain = "audit_chain"

// Audit commits one row by itself, for acts that commit nothing else. An act with a unit of its own hands its row to
// that unit.
func (s *Store) Audit(row workspace.AuditRow) error {
	return s.do("audit", func(t *tx) error { return t.audit(row) })
}

// AuditSoon is Audit for an act that is done and must not wait for a store that takes nothing: it returns an error after within.
// The row is then kept in memory, and stored as soon as the store can be written.
func (s *Store) AuditSoon(ctx context.Context, row workspace.AuditRow, within time.Duration) error {
	return s.db.DoWithin(ctx, within, "audit", unit(func(t *tx) error { return t.audit(row) }))
}

// AuditRows are rows of the audit log that a command commits.
type AuditRows []workspace.AuditRow

func (rows AuditRows) apply(t *tx, _ *Did) error { return t.audit(rows...) }

// auditBody is the form that is hashed: its keys are the contract with whoever reads the log.
type auditBody struct {
	Chain string         `json:"chain"`
	N     int64          `json:"n"`
	At    int64          `json:"at"` // milliseconds since 1970 UTC
	Kind  string         `json:"kind"`
	Actor string         `json:"actor"`
	Via   string         `json:"via"`
	What  map[string]any `json:"what"`
}

// audit appends rows in the caller's commit.
func (t *tx) audit(rows ...workspace.AuditRow) error {
	for _, row := range rows {
		if err := t.auditOne(row); err != nil {
			return fmt.Errorf("audit %s: %w", row.Kind, err)
		}
	}
	return nil
}

func (t *tx) auditOne(row workspace.AuditRow) error {
	last, err := t.auditLast()
	if err != nil {
		return err
	}
	b := auditBody{Chain: last.Chain, N: last.N + 1, At: t.Now, Kind: row.Kind, Actor: string(row.Actor), Via: row.Via, What: map[string]any{}}
	if !row.At.IsZero() {
		b.At = row.At.UnixMilli()
	}
	if kept := t.s.head; kept.Chain == last.Chain && kept.N > last.N {
		b.N = kept.N + 1 // the end was cut off meanwhile: the gap stays for everybody to see
	}
	for k, v := range row.What {
		b.What[k] = t.s.auditable(v)
	}
	body, err := canonical(b)
	if err != nil {
		return err
	}
	hash := auditHash(last.Hash, body)
	if _, err := t.Exec(`INSERT INTO audit (chain, n, prev, hash, body) VALUES (?, ?, ?, ?, ?)`, b.Chain, b.N, last.Hash, hash,
		body); err != nil {
		return err
	}
	t.head = &workspace.AuditHead{Chain: b.Chain, N: b.N, Hash: hash}
	return nil
}

// auditLast is the newest row of this gateway's chain, which is named with its first row.
func (t *tx) auditLast() (last workspace.AuditHead, err error) {
	err = t.Row(`SELECT value FROM settings WHERE name = ?`, []any{auditChain}, &last.Chain)
	if errors.Is(err, workspace.ErrNotFound) {
		last.Chain = t.s.ids.New()
		return last, t.Set(auditChain, last.Chain)
	}
	if err != nil {
		return last, err
	}
	err = t.Row(`SELECT n, hash FROM audit WHERE chain = ? ORDER BY n DESC LIMIT 1`, []any{last.Chain}, &last.N, &last.Hash)
	if errors.Is(err, workspace.ErrNotFound) {
		err = nil
	}
	return last, err
}

// auditable is a fact without secrets and of bounded length.
func (s *Store) auditable(v any) any {
	switch v := v.(type) {
	case string:
		return s.auditText(v)
	case []string:
		out := make([]any, len(v))
		for i := range v {
			out[i] = s.auditText(v[i])
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = s.auditable(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			out[k] = s.auditable(v[k])
		}
		return out
	case nil, bool, int, int64, float64:
		return v
	}
	return s.auditText(fmt.Sprint(v)) // kinds of text, such as a person's id
}

func (s *Store) auditText(text string) string {
	if s.opt.Hide != nil {
		text = s.opt.Hide(text)
	}
	if len(text) <= workspace.AuditTextMax {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return fmt.Sprintf("%s… (%d bytes, sha256 %x)", clip.Bytes(text, workspace.AuditTextMax), len(text), sum)
}

// canonical is v as RFC 8785 JSON.
func canonical(v any) (string, error) {
	plain, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	body, err := jcs.Transform(plain)
	return string(body), err
}

func auditHash(prev, body string) string {
	sum := sha256.Sum256([]byte(prev + "\n" + body))
	return hex.EncodeToString(sum[:])
}

// openHead reads what was noted of the newest row. That a note is missing or torn was told before.
func (s *Store) openHead() (err error) {
	if s.headFile != nil {
		return nil // of an earlier try of this start
	}
	if s.headFile, err = os.OpenFile(filepath.Join(s.opt.Dir, headName), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return fmt.Errorf("open the audit log's head: %w", err)
	}
	if s.head, err = readHead(s.headFile); errors.Is(err, engine.ErrGarbled) {
		err = nil
	}
	return err
}

func (s *Store) closeHead() error {
	if s.headFile == nil {
		return nil
	}
	err := s.headFile.Close()
	s.headFile = nil
	return err
}

// headOf reads the head in a folder: os.ErrNotExist, or engine.ErrGarbled.
func headOf(dir string) (h workspace.AuditHead, err error) {
	f, err := os.Open(filepath.Join(dir, headName))
	if err != nil {
		return h, err
	}
	defer f.Close()
	return readHead(f)
}

// readHead is engine.ErrGarbled for a file that names no row.
func readHead(f *os.File) (h workspace.AuditHead, err error) {
	text := make([]byte, 256)
	n, err := f.ReadAt(text, 0)
	if n == 0 && err != nil && !errors.Is(err, io.EOF) {
		return h, fmt.Errorf("read the audit log's head: %w", err)
	}
	if k, _ := fmt.Sscanf(string(text[:n]), "%s %d %64s\n", &h.Chain, &h.N, &h.Hash); k != 3 || len(h.Hash) != 64 {
		return workspace.AuditHead{}, engine.ErrGarbled
	}
	return h, nil
}

// noteHead follows a commit. It is one write inside one block, without a sync: after a power cut it may name an older
// row, which the chain contains, never one that was not committed.
func (s *Store) noteHead(h workspace.AuditHead) {
	s.head = h
	if s.headFile == nil {
		return
	}
	if _, err := s.headFile.WriteAt(fmt.Appendf(nil, "%s %019d %s\n", h.Chain, h.N, h.Hash), 0); err != nil {
		s.opt.Log.Warn("audit head not stored", "err", err)
	}
}

// AuditBefore lists rows of the chain before a number, newest first.
func (s *Store) AuditBefore(n int64, limit int) ([]workspace.AuditEntry, error) {
	return s.auditRows(`n < ? ORDER BY n DESC LIMIT ?`, n, limit)
}

// AuditAfter lists rows of the chain behind a number, oldest first; with n < 0 the newest limit of them.
func (s *Store) AuditAfter(n int64, limit int) ([]workspace.AuditEntry, error) {
	if n < 0 {
		return s.auditRows(`n > (SELECT COALESCE(MAX(n), 0) FROM audit) - ? ORDER BY n`, limit)
	}
	return s.auditRows(`n > ? ORDER BY n LIMIT ?`, n, limit)
}

func (s *Store) auditRows(where string, args ...any) ([]workspace.AuditEntry, error) {
	var list []workspace.AuditEntry
	err := s.db.Many(`SELECT chain, n, prev, hash, body FROM audit WHERE chain = (SELECT value FROM settings WHERE name = '`+auditChain+`')
		AND `+where, args, func(scan func(...any) error) error {
		var e workspace.AuditEntry
		var body string
		err := scan(&e.Chain, &e.N, &e.Prev, &e.Hash, &body)
		e.Body = json.RawMessage(body)
		list = append(list, e)
		return err
	})
	return list, err
}

// VerifyAudit reads the whole audit log and holds each row against the one before it, and the end against the head
// that stands beside the database, and a row that was noted elsewhere; its chain may be left out. It may run while the
// line does.
func (s *Store) VerifyAudit(ctx context.Context, known *workspace.AuditHead) (workspace.AuditReport, error) {
	head, err := readHead(s.headFile) // before the rows: they only grow
	if err != nil && !errors.Is(err, engine.ErrGarbled) {
		return workspace.AuditReport{}, err
	}
	r, err := verifyAudit(ctx, s.db.Reader(), head, known)
	return r, s.db.Seen(err)
}

// VerifyAuditDir is VerifyAudit of a data directory that no gateway has open, such as one that was restored.
func VerifyAuditDir(ctx context.Context, dir string, known *workspace.AuditHead) (r workspace.AuditReport, err error) {
	name := filepath.Join(dir, engine.DatabaseFile)
	if _, err := os.Stat(name); err != nil {
		return r, err
	}
	head, err := headOf(dir)
	if err != nil && !errors.Is(err, engine.ErrGarbled) && !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	db, err := engine.OpenFile(name)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return verifyAudit(ctx, db, head, known)
}

// auditPiece reads what follows a row.
var auditPiece = `SELECT chain, n, prev, hash, body FROM audit WHERE (chain, n) > (?, ?)
	ORDER BY chain, n LIMIT ` + strconv.Itoa(engine.PieceRows)

func verifyAudit(ctx context.Context, db *engine.Reader, head workspace.AuditHead, known *workspace.AuditHead) (
	r workspace.AuditReport, err error) {
	var last workspace.AuditHead // of the chain that is read
	r.Unwitnessed = head.N == 0
	found := r.Unwitnessed // the head's row
	there := known == nil
	for {
		rows, err := db.Piece(ctx, auditPiece, last.Chain, last.N)
		if err != nil {
			return r, err
		}
		for _, row := range rows {
			n, _ := row[1].(int64)
			e := workspace.AuditEntry{Chain: text(row[0]), N: n, Prev: text(row[2]), Hash: text(row[3]), Body: json.RawMessage(text(row[4]))}
			if e.Chain != last.Chain {
				r.Heads = appendHead(r.Heads, last)
				last = workspace.AuditHead{Chain: e.Chain}
			}
			if why := auditFault(last, e); why != "" {
				r.Bad = &workspace.AuditFault{Chain: e.Chain, N: e.N, Why: why}
				return r, nil
			}
			r.Rows++
			last.N, last.Hash = e.N, e.Hash
			found = found || last == head
			there = there || known.N == last.N && known.Hash == last.Hash
		}
		if len(rows) < engine.PieceRows {
			break
		}
	}
	r.Heads = appendHead(r.Heads, last)
	r.Unwitnessed = r.Unwitnessed && r.Rows > 0
	if !found {
		r.Bad = &workspace.AuditFault{Chain: head.Chain, N: head.N,
			Why: "the row that was noted as the newest is missing or another: the end was cut off or replaced"}
	}
	if r.Bad == nil && !there {
		r.Bad = &workspace.AuditFault{Chain: known.Chain, N: known.N, Why: "the row that was asked for is missing or another"}
	}
	return r, nil
}

func appendHead(list []workspace.AuditHead, h workspace.AuditHead) []workspace.AuditHead {
	if h.N == 0 {
		return list
	}
	return append(list, h)
}

// auditFault says what is wrong with a row behind another; empty: nothing.
func auditFault(last workspace.AuditHead, e workspace.AuditEntry) string {
	var b auditBody
	switch {
	case e.N != last.N+1:
		return fmt.Sprintf("rows are missing: it follows row %d", last.N)
	case e.Prev != last.Hash:
		return "it does not name the hash of the row before"
	case e.Hash != auditHash(e.Prev, string(e.Body)):
		return "its hash is not that of its text"
	case json.Unmarshal(e.Body, &b) != nil || b.Chain != e.Chain || b.N != e.N:
		return "its text belongs to another place"
	}
	return ""
}
