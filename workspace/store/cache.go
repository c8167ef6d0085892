package store

import (
	"errors"

	"parley/channels"
	"parley/workspace"
)

// cache spares the writer the questions it has just answered: ids of rooms and sessions, and the last number
// given in each session. It is dropped whole when a transaction is rolled back.
type cache struct {
	seq      int64
	rooms    map[channels.Address]workspace.RoomID
	sessions map[string]session
	entryN   map[workspace.SessionID]int64
	outN     int64 // last number given to an outbound
}

type session struct {
	id  workspace.SessionID
	gen int
}

const maxCached = 20_000

// reset forgets all but seq and outN: they may have run ahead of what is stored, and a gap means nothing; going
// back would.
func (c *cache) reset() { *c = cache{seq: c.seq, outN: c.outN} }

func (c *cache) bound() {
	if len(c.rooms) > maxCached || len(c.sessions) > maxCached || len(c.entryN) > maxCached {
		c.reset()
	}
	if c.rooms == nil {
		c.rooms = map[channels.Address]workspace.RoomID{}
		c.sessions = map[string]session{}
		c.entryN = map[workspace.SessionID]int64{}
	}
}

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

// session finds the newest generation of a key, or makes the first.
func (t *tx) session(key workspace.Key) (session, error) {
	c := &t.s.cache
	c.bound()
	text := key.String()
	if s, ok := c.sessions[text]; ok {
		return s, nil
	}
	var s session
	err := t.Row(`SELECT id, gen FROM sessions WHERE key = ? ORDER BY gen DESC LIMIT 1`, []any{text}, &s.id, &s.gen)
	if errors.Is(err, workspace.ErrNotFound) {
		return t.newGeneration(key, 1)
	}
	if err != nil {
		return session{}, err
	}
	c.sessions[text] = s
	return s, nil
}

func (t *tx) newGeneration(key workspace.Key, gen int) (session, error) {
	s := session{id: workspace.SessionID(t.s.ids.New()), gen: gen}
	_, err := t.Exec(`INSERT INTO sessions (id, key, gen, agent, name, partition, created) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		string(s.id), key.String(), s.gen, string(key.Agent), key.Name, key.Partition(), t.Now)
	if err != nil {
		return session{}, err
	}
	t.s.cache.bound()
	t.s.cache.sessions[key.String()] = s
	return s, nil
}

// nextEntry reserves k numbers in a session and returns the first.
func (t *tx) nextEntry(id workspace.SessionID, k int) (int64, error) {
	c := &t.s.cache
	c.bound()
	n, ok := c.entryN[id]
	if !ok {
		if err := t.Row(`SELECT COALESCE(MAX(n), 0) FROM entries WHERE session_id = ?`, []any{string(id)}, &n); err != nil {
			return 0, err
		}
	}
	c.entryN[id] = n + int64(k)
	return n + 1, nil
}

// nextOutbound is the next number of an outbound: it grows over all rooms, so it orders each of them.
func (t *tx) nextOutbound() int64 {
	t.s.cache.outN++
	return t.s.cache.outN
}
