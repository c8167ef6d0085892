package control

import (
	"sync"

	"parley/workspace"
)

// Spent keeps what the runs of sessions have cost, so that a list adds only what is new.
type Spent struct {
	Store interface {
		SessionUsage(session workspace.SessionID, after int64) (sum workspace.Usage, last int64, err error)
	}

	mu   sync.Mutex
	sums map[workspace.SessionID]sum
}

type sum struct {
	usage workspace.Usage
	upto  int64
}

const maxSums = 5000

// Of is what a generation has cost so far.
func (s *Spent) Of(id workspace.SessionID) (workspace.Usage, error) {
	s.mu.Lock()
	was := s.sums[id]
	s.mu.Unlock()
	more, upto, err := s.Store.SessionUsage(id, was.upto)
	if err != nil {
		return workspace.Usage{}, err
	}
	now := sum{was.usage.Add(more), upto}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sums == nil || len(s.sums) >= maxSums {
		s.sums = map[workspace.SessionID]sum{}
	}
	s.sums[id] = now
	return now.usage, nil
}
