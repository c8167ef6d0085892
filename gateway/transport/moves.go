package transport

import (
	"sync"

	"parley/channels"
	"parley/workspace/store"
)

// Moves remembers which peers the network gave a new id, and by which id they go here. Safe for concurrent use.
type Moves struct {
	store *store.Store
	mu    sync.Mutex
	known map[channels.Address]channels.PeerID // read whole, once; nil: not yet
}

// NewMoves reads nothing yet.
func NewMoves(s *store.Store) *Moves { return &Moves{store: s} }

// Was is the first id of a conversation that has another one now; empty: it never moved.
func (m *Moves) Was(a channels.Address) (channels.PeerID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		list, err := m.store.Moves()
		if err != nil {
			return "", err
		}
		m.known = make(map[channels.Address]channels.PeerID, len(list))
		for _, v := range list {
			m.known[channels.Address{Network: v.Network, Account: v.Account, Peer: v.Peer}] = v.Origin
		}
	}
	return m.known[channels.Address{Network: a.Network, Account: a.Account, Peer: a.Peer}], nil
}

// Follow stores a move; room, session, routes and permissions go on under the new id.
func (m *Moves) Follow(from channels.Address, to channels.PeerID) error {
	if err := m.store.MoveRoom(from, to); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known = nil
	return nil
}
