// Counts: what /metrics says of questions.

package approval

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/workspace"
)

// decided is one end that the questions of a domain come to.
type decided struct {
	domain string
	state  workspace.ApprovalState
}

// counts is how questions were answered since the start.
type counts struct {
	mu sync.Mutex
	n  map[decided]int64
}

func (c *counts) add(ap workspace.Approval) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[decided]int64{}
	}
	c.n[decided{ap.Domain, ap.State}]++
}

// WriteDecided writes how questions were answered since the start, in a fixed order, as Prometheus wants it: all samples of one
// name together.
func (q *Questions) WriteDecided(w io.Writer) {
	q.counts.mu.Lock()
	defer q.counts.mu.Unlock()
	const name = "parley_approvals_decided_total"
	fmt.Fprintf(w, "# HELP %[1]s Questions by how they were answered.\n# TYPE %[1]s counter\n", name)
	for _, d := range slices.SortedFunc(maps.Keys(q.counts.n), func(x, y decided) int {
		return cmp.Or(strings.Compare(x.domain, y.domain), strings.Compare(string(x.state), string(y.state)))
	}) {
		fmt.Fprintf(w, "%s{domain=%q,state=%q} %d\n", name, d.domain, d.state, q.counts.n[d])
	}
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
