// Pairings: how a stranger becomes a person.

package store

import (
	"errors"

	"parley/channels"
	"parley/workspace"
	"parley/workspace/store/engine"
)

// putPairing stores a request as it now is.
func (t *tx) putPairing(p workspace.Pairing, room workspace.RoomID) error {
	_, err := t.Exec(`INSERT INTO pairings (id, channel, network, account, "user", name, state, requested, code_hash, issued, tries, decided,
		decided_by, room_id)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET name = excluded.name, state = excluded.state,
		code_hash = excluded.code_hash, issued = excluded.issued, tries = excluded.tries, decided = excluded.decided,
		decided_by = excluded.decided_by WHERE pairings.state = 'open'`,
		p.ID, p.Channel, string(p.Network), string(p.Account), string(p.User), engine.Clean(p.Name), string(p.State), millis(p.Requested),
		p.CodeHash, millis(p.Issued), p.Tries, millis(p.Decided), string(p.DecidedBy), string(room))
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

// DecidePairing stores a decided request; approved, it makes the sender a person of the role, in the same commit.
// workspace.ErrConflict means that somebody else decided first. The audit rows are committed with it.
func (s *Store) DecidePairing(p workspace.Pairing, role workspace.Role, notice *NewOutbound,
	audit ...workspace.AuditRow) (workspace.Account, []workspace.Outbound, error) {
	acc := workspace.Account{Network: p.Network, Account: p.Account, User: p.User}
	var out []workspace.Outbound
	err := s.do("decide pairing", func(t *tx) error {
		out = nil
		if err := t.One("decide pairing", `UPDATE pairings SET state = ?, decided = ?, decided_by = ?, code_hash = '' WHERE id = ?
			AND state = 'open'`, string(p.State), millis(p.Decided), string(p.DecidedBy), p.ID); err != nil {
			return err
		}
		if p.State == workspace.PairingApproved {
			if err := t.approve(&acc, p.Name, role); err != nil {
				return err
			}
			if role == workspace.Owner { // it may be the first
				if err := t.settleLocal(nil); err != nil {
					return err
				}
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

const pairingColumns = `id, channel, network, account, "user", name, state, requested, code_hash, issued, tries, decided, decided_by`

func (s *Store) pairings(where string, args ...any) ([]workspace.Pairing, error) {
	var out []workspace.Pairing
	err := s.db.Many(`SELECT `+pairingColumns+` FROM pairings WHERE `+where, args, func(scan func(...any) error) error {
		var p workspace.Pairing
		var requested, issued, decided int64
		err := scan(&p.ID, &p.Channel, &p.Network, &p.Account, &p.User, &p.Name, &p.State, &requested, &p.CodeHash, &issued, &p.Tries, &decided,
			&p.DecidedBy)
		p.Requested, p.Issued, p.Decided = fromMillis(requested), fromMillis(issued), fromMillis(decided)
		out = append(out, p)
		return err
	})
	return out, err
}

// Pairings lists the newest requests, newest first.
func (s *Store) Pairings(limit int) ([]workspace.Pairing, error) {
	return s.pairings(`state <> '' ORDER BY id DESC LIMIT ?`, limit)
}

// LastPairing is a sender's latest request; the zero Pairing when there is none.
func (s *Store) LastPairing(network channels.Network, account channels.AccountID, user channels.UserID) (workspace.Pairing, error) {
	list, err := s.pairings(`network = ? AND account = ? AND "user" = ? ORDER BY id DESC LIMIT 1`, string(network), string(account),
		string(user))
	if err != nil || len(list) == 0 {
		return workspace.Pairing{}, err
	}
	return list[0], nil
}
