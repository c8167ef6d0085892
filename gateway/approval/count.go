// Counts: what /metrics says of questions.

package approval

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/workspace"
)

// Decided counts the questions of a domain that came to one end.
type Decided struct {
	Domain string
	State  workspace.ApprovalState
	N      int64
}

// counts is how questions were answered since the start.
type counts struct {
	mu sync.Mutex
	n  map[Decided]int64 // without N
}

func (c *counts) add(ap workspace.Approval) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[Decided]int64{}
	}
	c.n[Decided{Domain: ap.Domain, State: ap.State}]++
}

// Decided lists how questions were answered since the start, in a fixed order.
func (q *Questions) Decided() []Decided {
	q.counts.mu.Lock()
	defer q.counts.mu.Unlock()
	list := slices.SortedFunc(maps.Keys(q.counts.n), func(x, y Decided) int {
		return cmp.Or(strings.Compare(x.Domain, y.Domain), strings.Compare(string(x.State), string(y.State)))
	})
	for i := range list {
		list[i].N = q.counts.n[list[i]]
	}
	return list
}

// Pending counts the questions that stand, and how long the oldest has.
func (q *Questions) Pending() (n int, oldest time.Duration, err error) {
	open, err := q.opt.Store.OpenApprovals()
	for _, ap := range open {
		if ap.State == workspace.ApprovalPending {
			n++
			oldest = max(oldest, q.opt.Now().Sub(ap.Created))
		}
	}
	return n, oldest, err
}
