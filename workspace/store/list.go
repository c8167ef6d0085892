package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"parley/workspace"
	"parley/workspace/store/engine"
)

// RunRow is a run with whose it is.
type RunRow struct {
	workspace.Run
	Key workspace.Key // of its session
	Gen int
}

// runOwner names the session of a run; a column of its own each, since a join would read by the wrong side.
const runOwner = `, (SELECT key FROM sessions WHERE sessions.id = runs.session_id), (SELECT gen FROM sessions WHERE sessions.id = runs.session_id)`

func (s *Store) runRows(where string, args ...any) ([]RunRow, error) {
	var out []RunRow
	err := s.db.Many(`SELECT `+runColumns+runOwner+` FROM runs WHERE `+where, args, func(scan func(...any) error) error {
		var key string
		var gen int
		r, err := scanRun(func(dest ...any) error { return scan(append(dest, &key, &gen)...) })
		if err != nil {
			return err
		}
		row := RunRow{Run: r, Gen: gen}
		row.Key, err = parseKey(key)
		out = append(out, row)
		return err
	})
	return out, err
}

// afterAll comes behind every ULID: their first digit is at most 7.
const afterAll = "8"

// RunsBefore lists runs of everybody whose ids come before one, newest first; empty: from the newest on.
func (s *Store) RunsBefore(before workspace.RunID, limit int) ([]RunRow, error) {
	if before == "" {
		before = afterAll
	}
	return s.runRows(`id < ? ORDER BY id DESC LIMIT ?`, string(before), limit)
}

// LiveRunRows lists the runs that hold their session.
func (s *Store) LiveRunRows() ([]RunRow, error) { return s.runRows(liveRun) }

// SessionRunsBefore lists the runs of one generation that began before an entry, newest first, and the number of each
// run's first entry.
func (s *Store) SessionRunsBefore(session workspace.SessionID, n int64, limit int) (rows []RunRow, first []int64, err error) {
	var ids []string
	err = s.db.Many(`SELECT r.id, e.n FROM entries e JOIN runs r ON r.id = e.run_id AND r.first_n = e.n AND r.session_id = e.session_id
		WHERE e.session_id = ? AND e.n < ? ORDER BY e.n DESC LIMIT ?`, []any{string(session), n, limit}, func(scan func(...any) error) error {
		var id string
		var at int64
		err := scan(&id, &at)
		ids, first = append(ids, id), append(first, at)
		return err
	})
	for _, id := range ids {
		if err != nil {
			break
		}
		var one []RunRow
		if one, err = s.runRows(`id = ?`, id); err == nil && len(one) == 0 {
			err = workspace.ErrNotFound
		}
		rows = append(rows, one...)
	}
	return rows, first, err
}

// RunFirst is the number of a run's first entry.
func (s *Store) RunFirst(id workspace.RunID) (n int64, err error) {
	err = s.db.One(`SELECT first_n FROM runs WHERE id = ?`, []any{string(id)}, &n)
	return n, err
}

// Spent is what one run cost.
type Spent struct {
	ID      workspace.RunID
	Agent   workspace.AgentID
	Person  workspace.PersonID
	Model   string
	State   workspace.RunState
	Started time.Time
	Usage   workspace.Usage
}

// clockSlack is how far a run's id may lie from its start: ids are made by the same clock, a little earlier.
const clockSlack = time.Hour

// SpentBetween reads runs that started from one time on and before another, at most limit of those whose ids come after
// the given one, in the order of ids. more says that there may be others behind the last.
func (s *Store) SpentBetween(from, to time.Time, after workspace.RunID, limit int) (list []Spent, last workspace.RunID, more bool, err error) {
	low, high := idAt(from.Add(-clockSlack)), idAt(to.Add(clockSlack))
	if string(after) > low {
		low = string(after)
	}
	rows := 0
	err = s.db.Many(`SELECT id, requester, model, state, started, usage, (SELECT agent FROM sessions WHERE sessions.id = runs.session_id) FROM runs
		WHERE id > ? AND id < ? ORDER BY id LIMIT ?`, []any{low, high, limit}, func(scan func(...any) error) error {
		var sp Spent
		var started int64
		var usage string
		if err := scan(&sp.ID, &sp.Person, &sp.Model, &sp.State, &started, &usage, &sp.Agent); err != nil {
			return err
		}
		rows++
		last, sp.Started = sp.ID, fromMillis(started)
		if sp.Started.Before(from) || !sp.Started.Before(to) {
			return nil
		}
		list = append(list, sp)
		return decode(usage, &list[len(list)-1].Usage)
	})
	return list, last, rows == limit, err
}

// idAt comes before every id that was made at the time or later.
func idAt(t time.Time) string {
	var id ulid.ULID
	_ = id.SetTime(uint64(max(0, t.UnixMilli()))) // fails after the year 10889
	return id.String()
}

// Human is a person as lists show them, with the accounts that speak for them.
type Human struct {
	workspace.Person
	Created    time.Time
	Configured bool
	Accounts   []HumanAccount
}

// HumanAccount is a network user of a person.
type HumanAccount struct {
	workspace.Account
	Name       string // as they call themselves: a label
	Configured bool
	Most       workspace.Role // the greatest role that it speaks with, since it was linked; empty: its person's
}

// Humans lists people whose ids come after one, by id, with their accounts.
func (s *Store) Humans(after workspace.PersonID, limit int) ([]Human, error) {
	return s.humans(`id > ? AND joined = '' ORDER BY id LIMIT ?`, string(after), limit)
}

// Human reads one person.
func (s *Store) Human(id workspace.PersonID) (Human, error) {
	list, err := s.humans(`id = ?`, string(id))
	if err == nil && len(list) == 0 {
		err = workspace.ErrNotFound
	}
	if err != nil {
		return Human{}, err
	}
	return list[0], nil
}

func (s *Store) humans(where string, args ...any) ([]Human, error) {
	var out []Human
	at := map[workspace.PersonID]int{}
	err := s.db.Many(`SELECT id, role, name, tz, created, configured FROM people WHERE `+where, args, func(scan func(...any) error) error {
		var h Human
		var created, configured int64
		err := scan(&h.ID, &h.Role, &h.Name, &h.TZ, &created, &configured)
		h.Created, h.Configured = fromMillis(created), configured == 1
		at[h.ID] = len(out)
		out = append(out, h)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = s.db.Many(`SELECT network, account, "user", person_id, name, configured, most FROM accounts WHERE person_id IN (SELECT id FROM people WHERE `+where+`)
		ORDER BY network, account, "user"`, args, func(scan func(...any) error) error {
		var a HumanAccount
		var configured int64
		err := scan(&a.Network, &a.Account.Account, &a.User, &a.Person, &a.Name, &configured, &a.Most)
		a.Configured = configured == 1
		if i, ok := at[a.Person]; ok { // one that came in between belongs to the next look
			out[i].Accounts = append(out[i].Accounts, a)
		}
		return err
	})
	return out, err
}

// OutboundOfRun is the answer of a run; workspace.ErrNotFound: it has none that is sent anywhere.
func (s *Store) OutboundOfRun(id workspace.RunID) (workspace.Outbound, error) {
	return s.OutboundByKey("run:" + string(id) + ":answer")
}

// Answer is what a client was told of a write that it gave a key.
type Answer struct {
	Hash   string // of what was asked
	Status int
	Body   string // JSON; empty: none
}

// answersKept is how long a key is known.
const answersKept = 30 * 24 * time.Hour

// AnswerOf reads what a person's key was answered; workspace.ErrNotFound: it is new.
func (s *Store) AnswerOf(person workspace.PersonID, key string) (a Answer, err error) {
	var check int64
	err = s.db.One(`SELECT hash, status, body, sum FROM answers WHERE person_id = ? AND key = ?`, []any{string(person), key}, &a.Hash, &a.Status, &a.Body, &check)
	if err == nil && engine.Sum(a.Body) != check {
		err = s.db.Seen(fmt.Errorf("answer of key %.40q: %w", key, ErrDamaged))
	}
	return a, err
}

// PutAnswer keeps an answer under its key for 30 days. workspace.ErrConflict: the key has one already.
func (s *Store) PutAnswer(person workspace.PersonID, key string, a Answer) error {
	return s.do("put answer", putAnswer(person, key, a))
}

// PutAnswerSoon is PutAnswer for an act that is done and must not wait for a store that takes nothing: as AuditSoon.
func (s *Store) PutAnswerSoon(ctx context.Context, person workspace.PersonID, key string, a Answer, within time.Duration) error {
	return s.db.DoWithin(ctx, within, "put answer", putAnswer(person, key, a))
}

func putAnswer(person workspace.PersonID, key string, a Answer) unit {
	return func(t *tx) error {
		if _, err := t.Exec(`DELETE FROM answers WHERE created < ?`, t.Now-answersKept.Milliseconds()); err != nil {
			return err
		}
		n, err := t.Exec(`INSERT INTO answers (person_id, key, hash, status, body, sum, created) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (person_id, key) DO NOTHING`,
			string(person), key, a.Hash, a.Status, a.Body, engine.Sum(a.Body), t.Now)
		if err == nil && n == 0 {
			err = errors.Join(workspace.ErrConflict, errors.New("put answer"))
		}
		return err
	}
}
