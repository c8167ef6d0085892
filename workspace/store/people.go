// People and their accounts.

package store

import (
	"fmt"
	"time"

	"parley/channels"
	"parley/workspace"
)

// guest makes the person and account of a sender who was not known when the gate judged, and returns who it is:
// of two messages that come together, the second finds the person that the first made.
func (t *tx) guest(a *workspace.Account) (workspace.PersonID, error) {
	n, err := t.Exec(`INSERT INTO accounts (network, account, "user", person_id) VALUES (?, ?, ?, ?)
		ON CONFLICT (network, account, "user") DO NOTHING`, string(a.Network), string(a.Account), string(a.User), string(a.Person))
	if err != nil {
		return "", err
	}
	if n == 0 {
		var known string
		err = t.Row(`SELECT person_id FROM accounts WHERE network = ? AND account = ? AND "user" = ?`,
			[]any{string(a.Network), string(a.Account), string(a.User)}, &known)
		return workspace.PersonID(known), err
	}
	_, err = t.Exec(`INSERT INTO people (id, role, created) VALUES (?, 'guest', ?) ON CONFLICT (id) DO NOTHING`, string(a.Person), t.Now)
	return a.Person, err
}

// SyncPeople makes the configured people what the configuration says, in its order. A person it no longer names keeps the row as a
// guest. Where nobody owns this machine, person local does. The audit rows are committed with it.
func (s *Store) SyncPeople(people []workspace.Person, audit ...workspace.AuditRow) error {
	return s.do("sync people", func(t *tx) error {
		if _, err := t.Exec(`UPDATE people SET role = 'guest', configured = 0 WHERE configured = 1`); err != nil {
			return err
		}
		for _, p := range people {
			if _, err := t.Exec(`INSERT INTO people (id, role, name, tz, created, configured) VALUES (?, ?, ?, ?, ?, 1)
				ON CONFLICT (id) DO UPDATE SET role = excluded.role, name = excluded.name, tz = excluded.tz, configured = 1, joined = ''`,
				string(p.ID), string(p.Role), p.Name, p.TZ, t.Now); err != nil {
				return fmt.Errorf("person %s: %w", p.ID, err)
			}
		}
		if err := t.settleLocal(people); err != nil {
			return fmt.Errorf("person %s: %w", workspace.LocalOwner, err)
		}
		return t.audit(audit...)
	})
}

// SyncAccounts makes the configured users of one network account what the configuration says. One it no longer names
// belongs to nobody. Each channel tells its account for itself, so that other accounts stay as they are.
func (s *Store) SyncAccounts(network channels.Network, account channels.AccountID, users []workspace.Account) error {
	return s.do("sync accounts", func(t *tx) error {
		if _, err := t.Exec(`DELETE FROM accounts WHERE configured = 1 AND network = ? AND account = ?`,
			string(network), string(account)); err != nil {
			return err
		}
		for _, a := range users {
			if _, err := t.Exec(`INSERT INTO accounts (network, account, "user", person_id, configured) VALUES (?, ?, ?, ?, 1)
				ON CONFLICT (network, account, "user") DO UPDATE SET person_id = excluded.person_id, configured = 1, most = ''`,
				string(network), string(account), string(a.User), string(a.Person)); err != nil {
				return fmt.Errorf("account of %s: %w", a.Person, err)
			}
		}
		return nil
	})
}

// Person finds who a network user is.
func (s *Store) Person(network channels.Network, account channels.AccountID, user channels.UserID) (p workspace.Person, err error) {
	var most workspace.Role
	err = s.db.One(`SELECT p.id, p.role, p.name, p.tz, a.most, p.configured = 1 AND a.most = '' OR EXISTS (SELECT 1 FROM pairings q
		WHERE q.network = a.network AND q.account = a.account AND q."user" = a."user" AND q.state = 'approved')
		FROM accounts a JOIN people p ON p.id = a.person_id WHERE a.network = ? AND a.account = ? AND a."user" = ?`,
		[]any{string(network), string(account), string(user)}, &p.ID, &p.Role, &p.Name, &p.TZ, &most, &p.Vouched)
	p.Role = p.Role.Lower(most)
	return p, err
}

// PersonByID reads one person; in place of local whom local has become. Of people who were joined otherwise the rights stay apart.
func (s *Store) PersonByID(id workspace.PersonID) (p workspace.Person, err error) {
	local := id == workspace.LocalOwner
	for range 100 { // as of party
		var joined workspace.PersonID
		const q = `SELECT id, role, name, tz, joined FROM people WHERE id = ?`
		err = s.db.One(q, []any{string(id)}, &p.ID, &p.Role, &p.Name, &p.TZ, &joined)
		if err != nil || !local || joined == "" {
			return p, err
		}
		id = joined
	}
	return p, workspace.ErrConflict
}

// People lists all people with their accounts.
func (s *Store) People() (people []workspace.Person, accounts []workspace.Account, err error) {
	err = s.db.Many(`SELECT id, role, name, tz FROM people WHERE joined = '' ORDER BY id`, nil, func(scan func(...any) error) error {
		var p workspace.Person
		err := scan(&p.ID, &p.Role, &p.Name, &p.TZ)
		people = append(people, p)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	err = s.db.Many(`SELECT network, account, "user", person_id FROM accounts ORDER BY network, account, "user"`,
		nil, func(scan func(...any) error) error {
			var a workspace.Account
			err := scan(&a.Network, &a.Account, &a.User, &a.Person)
			accounts = append(accounts, a)
			return err
		})
	return people, accounts, err
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
	return first(s.humans(`id = ?`, string(id)))
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
	err = s.db.Many(`SELECT network, account, "user", person_id, name, configured, most FROM accounts
		WHERE person_id IN (SELECT id FROM people WHERE `+where+`) ORDER BY network, account, "user"`, args, func(scan func(...any) error) error {
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
