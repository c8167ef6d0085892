// Package limit bounds what one listener takes at once: connections, bodies, requests that are held open, writes in a second.
// Whoever was let in is never kept out by strangers.
//
// Goroutines: none; each connection of a stranger has a timer while it rests.
package limit

import (
	"fmt"
	"time"

	"golang.org/x/time/rate"

	"parley/gateway/api/wire"
	"parley/workspace"
)

// How many requests may be held open at once, whatever for: event streams, live lines, logs that are followed, steps that are waited for.
// Each costs up to 100 KiB.
const (
	heldByPerson = 256
	heldByAll    = 512
	// Messages that wait for their answer have a count of their own: what is beyond it is journalled and not waited for.
	waitsByAll = 1024
	// Sessions that live lines follow.
	followsByPerson = 1024
	followsByAll    = 2048
	uploadsByAll    = 8
)

// Limits are those of one server.
type Limits struct {
	Conns   *Conns
	Bodies  *Bodies
	Pace    *Pace
	Held    *Slots // requests that are held open
	Waits   *Slots // messages that wait for their answer
	Follows *Slots // sessions that live lines follow
	Uploads *Slots // files that come in
}

// New makes the limits of a server. Time passes for Pace as now says.
func New(now func() time.Time) *Limits {
	return &Limits{
		Conns:   newConns(),
		Bodies:  newBodies(),
		Pace:    &Pace{now: now, all: map[string]*rate.Limiter{}},
		Held:    &Slots{own: heldByPerson, all: heldByAll},
		Waits:   &Slots{own: waitsByAll, all: waitsByAll},
		Follows: &Slots{own: followsByPerson, all: followsByAll},
		Uploads: &Slots{own: uploadsByAll, all: uploadsByAll},
	}
}

// Hold takes a place for a request that is held open; leave must follow.
func (l *Limits) Hold(who workspace.PersonID) (leave func(), err error) {
	leave, ok := l.Held.Take(who)
	if !ok {
		return nil, wire.Busy(fmt.Sprintf("Too many streams and pages are open: %d of one person, %d in all. Close some.", heldByPerson,
			heldByAll))
	}
	return leave, nil
}
