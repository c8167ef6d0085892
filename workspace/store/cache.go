// What the writer need not ask the database again.

package store

import (
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
