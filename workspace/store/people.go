package store

import (
	"errors"
	"fmt"

	"parley/channels"
	"parley/workspace"
	"parley/workspace/store/engine"
)

// putPairing stores a request as it now is.
func (t *tx) putPairing(p workspace.Pairing, room workspace.RoomID) error {
	_, err := t.Exec(`INSERT INTO pairings (id, channel, network, account, "user", name, state, requested, code_hash, issued, tries, decided, decided_by, room_id)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET name = excluded.name, state = excluded.state,
		code_hash = excluded.code_hash, issued = excluded.issued, tries = excluded.tries, decided = excluded.decided, decided_by = excluded.decided_by
		WHERE pairings.state = 'open'`,
		p.ID, p.Channel, string(p.Network), string(p.Account), string(p.User), engine.Clean(p.Name), string(p.State), millis(p.Requested), p.CodeHash,
		millis(p.Issued), p.Tries, millis(p.Decided), string(p.DecidedBy), string(room))
	return err
}

// PutPairings stores requests that are still open or were not, with their tries; one that was decided stays so.
func (s *Store) PutPairings(list ...workspace.Pairing) error {
	return s.do("put pairings", func(t *tx) error {
		for _, p := range list {
			if err := t.putPairing(p, ""); err != nil {
				return err
			}
		}
		return nil
	})
}

// guest makes the person and account of a sender who was not known when the gate judged, and returns who it is:
// of two messages that come together, the second finds the person that the first made.
func (t *tx) guest(a *workspace.Account) (workspace.PersonID, error) {
	n, err := t.Exec(`INSERT INTO accounts (network, account, "user", person_id) VALUES (?, ?, ?, ?) ON CONFLICT (network, account, "user") DO NOTHING`,
		string(a.Network), string(a.Account), string(a.User), string(a.Person))
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

// DecidePairing stores a decided request; approved, it makes the sender a person of the role, in the same commit.
// workspace.ErrConflict means that somebody else decided first. The audit rows are committed with it.
func (s *Store) DecidePairing(p workspace.Pairing, role workspace.Role, notice *NewOutbound, audit ...workspace.AuditRow) (workspace.Account, []workspace.Outbound, error) {
	acc := workspace.Account{Network: p.Network, Account: p.Account, User: p.User}
	var out []workspace.Outbound
	err := s.do("decide pairing", func(t *tx) error {
		out = nil
		if err := t.One("decide pairing", `UPDATE pairings SET state = ?, decided = ?, decided_by = ?, code_hash = '' WHERE id = ? AND state = 'open'`,
			string(p.State), millis(p.Decided), string(p.DecidedBy), p.ID); err != nil {
			return err
		}
		if p.State == workspace.PairingApproved {
			if err := t.approve(&acc, p.Name, role); err != nil {
				return err
			}
		}
		if err := t.audit(audit...); err != nil {
			return err
		}
		if notice == nil {
			return nil
		}
		var room string
		if err := t.Row(`SELECT room_id FROM pairings WHERE id = ?`, []any{p.ID}, &room); err != nil {
			return err
		}
		n := *notice
		n.RoomID = workspace.RoomID(room)
		return t.outbounds([]NewOutbound{n}, &out)
	})
	return acc, out, err
}

func (t *tx) approve(acc *workspace.Account, name string, role workspace.Role) error {
	err := t.Row(`SELECT person_id FROM accounts WHERE network = ? AND account = ? AND "user" = ?`,
		[]any{string(acc.Network), string(acc.Account), string(acc.User)}, &acc.Person)
	if errors.Is(err, workspace.ErrNotFound) {
		acc.Person = workspace.PersonID(t.s.ids.New())
		_, err = t.Exec(`INSERT INTO accounts (network, account, "user", person_id, name) VALUES (?, ?, ?, ?, ?)`,
			string(acc.Network), string(acc.Account), string(acc.User), string(acc.Person), engine.Clean(name))
	}
	if err != nil {
		return err
	}
	if joined, err := t.approveJoined(acc, role); joined || err != nil {
		return err
	}
	_, err = t.Exec(`INSERT INTO people (id, role, name, created) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET role = excluded.role
		WHERE people.configured = 0`, // what the configuration says of a person is not overruled here
		string(acc.Person), string(role), engine.Clean(name), t.Now)
	return err
}

// SyncPeople makes the configured people what the configuration says. A person it no longer names keeps the row as a
// guest. The audit rows are committed with it.
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
		return t.audit(audit...)
	})
}

// SyncAccounts makes the configured users of one network account what the configuration says. One it no longer names
// belongs to nobody. Each channel tells its account for itself, so that other accounts stay as they are.
func (s *Store) SyncAccounts(network channels.Network, account channels.AccountID, users []workspace.Account) error {
	return s.do("sync accounts", func(t *tx) error {
		if _, err := t.Exec(`DELETE FROM accounts WHERE configured = 1 AND network = ? AND account = ?`, string(network), string(account)); err != nil {
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
