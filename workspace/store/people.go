package store

import (
	"fmt"
	"time"

	"parley/channels"
	"parley/workspace"
)

// Pairing is a stranger's request to be known. Its code lives ten minutes, the request seven days.
type Pairing struct {
	ID        string
	Channel   string
	Network   channels.Network
	Account   channels.AccountID
	User      channels.UserID
	Name      string
	CodeHash  string
	State     string // open, approved, denied, expired
	Created   time.Time
	CodeUntil time.Time
	Until     time.Time
	Tries     int
	DecidedBy workspace.PersonID
	Role      workspace.Role
	RoomID    workspace.RoomID
}

// pairing stores a request, or gives the open one of the same sender a new code.
func (t *tx) pairing(p *Pairing, room workspace.RoomID) error {
	if p == nil {
		return nil
	}
	n, err := t.exec(`UPDATE pairings SET code_hash = ?, code_until = ?, name = ?, tries = 0 WHERE state = 'open' AND network = ? AND account = ? AND "user" = ?`,
		p.CodeHash, millis(p.CodeUntil), p.Name, string(p.Network), string(p.Account), string(p.User))
	if err != nil || n > 0 {
		return err
	}
	_, err = t.exec(`INSERT INTO pairings (id, channel, network, account, "user", name, code_hash, state, created, code_until, until, room_id)
		VALUES (?, ?, ?, ?, ?, ?, ?, 'open', ?, ?, ?, ?)`, p.ID, p.Channel, string(p.Network), string(p.Account), string(p.User), p.Name, p.CodeHash,
		t.now, millis(p.CodeUntil), millis(p.Until), string(room))
	return err
}

// guest makes the person and account of a sender who is not known yet.
func (t *tx) guest(a *workspace.Account) error {
	if a == nil {
		return nil
	}
	n, err := t.exec(`INSERT INTO accounts (network, account, "user", person_id) VALUES (?, ?, ?, ?) ON CONFLICT (network, account, "user") DO NOTHING`,
		string(a.Network), string(a.Account), string(a.User), string(a.Person))
	if err != nil || n == 0 {
		return err
	}
	_, err = t.exec(`INSERT INTO people (id, role, created) VALUES (?, 'guest', ?) ON CONFLICT (id) DO NOTHING`, string(a.Person), t.now)
	return err
}

// DecidePairing ends an open request: approved makes the sender a person of the role, in one commit.
func (s *Store) DecidePairing(id string, approve bool, role workspace.Role, by workspace.PersonID, notice *NewOutbound) (workspace.Account, []workspace.Outbound, error) {
	var acc workspace.Account
	var out []workspace.Outbound
	err := s.do("decide pairing", func(t *tx) error {
		out = nil
		state := "denied"
		if approve {
			state = "approved"
		}
		if err := t.one("decide pairing", `UPDATE pairings SET state = ?, decided_by = ?, role = ? WHERE id = ? AND state = 'open' AND until > ?`,
			state, string(by), string(role), id, t.now); err != nil {
			return err
		}
		if !approve {
			return t.notice(notice, &out)
		}
		var name string
		if err := t.row(`SELECT network, account, "user", name FROM pairings WHERE id = ?`, []any{id}, &acc.Network, &acc.Account, &acc.User, &name); err != nil {
			return err
		}
		err := t.row(`SELECT person_id FROM accounts WHERE network = ? AND account = ? AND "user" = ?`,
			[]any{string(acc.Network), string(acc.Account), string(acc.User)}, &acc.Person)
		if err == workspace.ErrNotFound {
			acc.Person = workspace.PersonID(s.ids.New())
			_, err = t.exec(`INSERT INTO accounts (network, account, "user", person_id, name) VALUES (?, ?, ?, ?, ?)`,
				string(acc.Network), string(acc.Account), string(acc.User), string(acc.Person), name)
		}
		if err != nil {
			return err
		}
		if _, err = t.exec(`INSERT INTO people (id, role, name, created) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET role = excluded.role`,
			string(acc.Person), string(role), name, t.now); err != nil {
			return err
		}
		return t.notice(notice, &out)
	})
	return acc, out, err
}

func (t *tx) notice(n *NewOutbound, out *[]workspace.Outbound) error {
	if n == nil {
		return nil
	}
	return t.outbounds([]NewOutbound{*n}, out)
}

// PairingTried counts a wrong code; after five the request's code is void.
func (s *Store) PairingTried(id string) error {
	return s.do("pairing tried", func(t *tx) error {
		_, err := t.exec(`UPDATE pairings SET tries = tries + 1, code_until = CASE WHEN tries >= 4 THEN 0 ELSE code_until END WHERE id = ? AND state = 'open'`, id)
		return err
	})
}

// SyncPeople makes the configured people and accounts what the configuration says. Those it no longer names keep
// their rows as guests.
func (s *Store) SyncPeople(people []workspace.Person, accounts []workspace.Account) error {
	return s.do("sync people", func(t *tx) error {
		for _, p := range people {
			if _, err := t.exec(`INSERT INTO people (id, role, name, tz, created) VALUES (?, ?, ?, ?, ?)
				ON CONFLICT (id) DO UPDATE SET role = excluded.role, name = excluded.name, tz = excluded.tz`,
				string(p.ID), string(p.Role), p.Name, p.TZ, t.now); err != nil {
				return fmt.Errorf("person %s: %w", p.ID, err)
			}
		}
		for _, a := range accounts {
			if _, err := t.exec(`INSERT INTO accounts (network, account, "user", person_id) VALUES (?, ?, ?, ?)
				ON CONFLICT (network, account, "user") DO UPDATE SET person_id = excluded.person_id`,
				string(a.Network), string(a.Account), string(a.User), string(a.Person)); err != nil {
				return fmt.Errorf("account of %s: %w", a.Person, err)
			}
		}
		return nil
	})
}

// Setting reads one named value; empty when it is not set.
func (s *Store) Setting(name string) (string, error) {
	var v string
	err := s.one(`SELECT value FROM settings WHERE name = ?`, []any{name}, &v)
	if err == workspace.ErrNotFound {
		return "", nil
	}
	return v, err
}

// SetSetting stores one named value.
func (s *Store) SetSetting(name, value string) error {
	return s.do("setting", func(t *tx) error {
		_, err := t.exec(`INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value`, name, value)
		return err
	})
}
