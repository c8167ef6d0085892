package gateway

import (
	"sync"

	"parley/channels"
	"parley/workspace/store"
)

// moves remembers which peers the network gave a new id, and by which id they go here. Safe for concurrent use.
type moves struct {
	store *store.Store
	mu    sync.Mutex
	known map[channels.Address]channels.PeerID // read whole, once; nil: not yet
}

// was is the first id of a conversation that has another one now; empty: it never moved.
func (m *moves) was(a channels.Address) (channels.PeerID, error) {
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

// follow stores a move; room, session, routes and permissions go on under the new id.
func (m *moves) follow(from channels.Address, to channels.PeerID) error {
	if err := m.store.MoveRoom(from, to); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known = nil
	return nil
}
