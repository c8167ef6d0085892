package store

import (
	"errors"

	"parley/channels"
	"parley/workspace"
)

// Moved is a peer that the network gave a new id: a group that became a supergroup. Its sessions, and what routes and
// permissions say of it, go on under the first id.
type Moved struct {
	Network channels.Network
	Account channels.AccountID
	Peer    channels.PeerID // its id now
	Origin  channels.PeerID // its first
}

// MoveRoom follows a peer that the network gave a new id. Twice is fine.
func (s *Store) MoveRoom(from channels.Address, to channels.PeerID) error {
	return s.do("move room", func(t *tx) error {
		t.s.cache.reset()
		origin := from.Peer
		err := t.Row(`SELECT origin FROM moves WHERE network = ? AND account = ? AND peer = ?`,
			[]any{string(from.Network), string(from.Account), string(from.Peer)}, &origin)
		if err != nil && !errors.Is(err, workspace.ErrNotFound) {
			return err
		}
		if to == "" || to == origin {
			return nil
		}
		if _, err := t.Exec(`INSERT INTO moves (network, account, peer, origin) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			string(from.Network), string(from.Account), string(to), string(origin)); err != nil {
			return err
		}
		_, err = t.Exec(`UPDATE rooms SET peer = ? WHERE network = ? AND account = ? AND peer = ?
			AND NOT EXISTS (SELECT 1 FROM rooms r WHERE r.network = rooms.network AND r.account = rooms.account AND r.peer = ? AND r.thread = rooms.thread)`,
			string(to), string(from.Network), string(from.Account), string(from.Peer), string(to))
		return err
	})
}

// Moves lists all peers that moved.
func (s *Store) Moves() (list []Moved, err error) {
	err = s.db.Many(`SELECT network, account, peer, origin FROM moves`, nil, func(scan func(...any) error) error {
		var m Moved
		err := scan(&m.Network, &m.Account, &m.Peer, &m.Origin)
		list = append(list, m)
		return err
	})
	return list, err
}
