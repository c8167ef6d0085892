package limit

import (
	"sync"

	"parley/workspace"
)

// Slots are how many of something there may be, of one person and in all. Safe for concurrent use.
type Slots struct {
	own, all int

	mu   sync.Mutex
	sum  int
	each map[workspace.PersonID]int
}

// Take takes a place; leave must follow, and may twice. False: all are taken.
func (p *Slots) Take(who workspace.PersonID) (leave func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sum >= p.all || p.each[who] >= p.own {
		return nil, false
	}
	if p.each == nil {
		p.each = map[workspace.PersonID]int{}
	}
	p.sum++
	p.each[who]++
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.sum--
		if p.each[who]--; p.each[who] == 0 {
			delete(p.each, who)
		}
	}), true
}

// Count is how many are taken.
func (p *Slots) Count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sum
}
