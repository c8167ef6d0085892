// Rooms: addresses that were seen, what is set for one, and where one moved.

package store

import (
	"errors"
	"strings"

	"parley/channels"
	"parley/workspace"
)

// room finds or makes the room of an address.
func (t *tx) room(a channels.Address, title string) (workspace.RoomID, error) {
	c := &t.s.cache
	c.bound()
	if id, ok := c.rooms[a]; ok {
		return id, nil
	}
	var id string
	err := t.Row(`SELECT id FROM rooms WHERE network = ? AND account = ? AND peer_kind = ? AND peer = ? AND thread = ?`,
		[]any{string(a.Network), string(a.Account), string(a.Kind), string(a.Peer), string(a.Thread)}, &id)
	if errors.Is(err, workspace.ErrNotFound) {
		id = t.s.ids.New()
		_, err = t.Exec(`INSERT INTO rooms (id, network, account, peer_kind, peer, thread, title) VALUES (?, ?, ?, ?, ?, ?, ?)`,
			id, string(a.Network), string(a.Account), string(a.Kind), string(a.Peer), string(a.Thread), title)
	}
	if err != nil {
		return "", err
	}
	c.rooms[a] = workspace.RoomID(id)
	return workspace.RoomID(id), nil
}

// Place is what people changed for one room.
type Place struct {
	SessionKey string // the session that it was switched to; empty: its own
	Activation string // mention or always; empty: as configured
}

// SetPlace changes what is set for a room; nil leaves a value as it is.
type SetPlace struct {
	Room       workspace.RoomID
	SessionKey *string
	Activation *string
}

func (p SetPlace) apply(t *tx, _ *Did) error {
	for _, x := range []struct {
		q  string
		to *string
	}{{`UPDATE rooms SET session_key = ? WHERE id = ?`, p.SessionKey}, {`UPDATE rooms SET activation = ? WHERE id = ?`, p.Activation}} {
		if x.to == nil {
			continue
		}
		if err := t.One("set a room", x.q, *x.to, string(p.Room)); err != nil {
			return err
		}
	}
	return nil
}

// PlaceOf reads what is set for an address; the zero Place for one that is not known yet.
func (s *Store) PlaceOf(a channels.Address) (p Place, err error) {
	err = s.db.One(`SELECT session_key, activation FROM rooms WHERE network = ? AND account = ? AND peer_kind = ? AND peer = ? AND thread = ?`,
		[]any{string(a.Network), string(a.Account), string(a.Kind), string(a.Peer), string(a.Thread)}, &p.SessionKey, &p.Activation)
	if errors.Is(err, workspace.ErrNotFound) {
		return Place{}, nil
	}
	return p, err
}

// PlaceIn reads what is set for a room.
func (s *Store) PlaceIn(room workspace.RoomID) (p Place, err error) {
	err = s.db.One(`SELECT session_key, activation FROM rooms WHERE id = ?`, []any{string(room)}, &p.SessionKey, &p.Activation)
	return p, err
}

// Room reads one room.
func (s *Store) Room(id workspace.RoomID) (r workspace.Room, err error) {
	err = s.db.One(`SELECT id, network, account, peer_kind, peer, thread, title FROM rooms WHERE id = ?`, []any{string(id)},
		&r.ID, &r.Network, &r.Account, &r.Kind, &r.Peer, &r.Thread, &r.Title)
	return r, err
}

// RoomByAddress finds a room.
func (s *Store) RoomByAddress(a channels.Address) (r workspace.Room, err error) {
	err = s.db.One(`SELECT id, title FROM rooms WHERE network = ? AND account = ? AND peer_kind = ? AND peer = ? AND thread = ?`,
		[]any{string(a.Network), string(a.Account), string(a.Kind), string(a.Peer), string(a.Thread)}, &r.ID, &r.Title)
	r.Address = a
	return r, err
}

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
			AND NOT EXISTS (SELECT 1 FROM rooms r WHERE r.network = rooms.network AND r.account = rooms.account AND r.peer = ?
			AND r.thread = rooms.thread)`, string(to), string(from.Network), string(from.Account), string(from.Peer), string(to))
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

// lookBack is how many of the newest inputs are looked through for where a person last wrote directly.
const lookBack = 50_000

// DirectRoom is the room in which a person last wrote to us directly, on any network but those given.
// workspace.ErrNotFound: they have not, as far as is known.
func (s *Store) DirectRoom(person workspace.PersonID, but ...channels.Network) (id workspace.RoomID, err error) {
	args := []any{lookBack, string(person)}
	for _, n := range but {
		args = append(args, string(n))
	}
	err = s.db.One(`SELECT i.room_id FROM inputs i JOIN rooms r ON r.id = i.room_id
		WHERE i.seq > (SELECT COALESCE(MAX(seq), 0) FROM inputs) - ? AND i.person_id = ? AND i.state <> 'refused' AND r.peer_kind = 'dm'`+
		strings.Repeat(` AND r.network <> ?`, len(but))+` ORDER BY i.seq DESC LIMIT 1`, args, &id)
	if !errors.Is(err, workspace.ErrNotFound) {
		return id, err
	}
	var users []channels.Address // of networks where a direct room goes by its user's id
	err = s.db.Many(`SELECT network, account, "user" FROM accounts WHERE person_id = ? ORDER BY network, account, "user"`,
		[]any{string(person)}, func(scan func(...any) error) error {
			a := channels.Address{Kind: channels.DM}
			err := scan(&a.Network, &a.Account, &a.Peer)
			users = append(users, a)
			return err
		})
	for _, a := range users {
		if r, err := s.RoomByAddress(a); err == nil {
			return r.ID, nil
		}
	}
	return "", errors.Join(err, workspace.ErrNotFound)
}
