package gateway

import (
	"errors"
	"sync"
	"time"

	"parley/channels"
	"parley/gateway/transport"
	"parley/workspace"
	"parley/workspace/store"
)

// people knows who is behind a network's user. Rights are computed here, from ids, at ingress.
type people struct {
	store *store.Store
	mu    sync.Mutex
	known map[account]workspace.Person
	age   int // counts forgettings: what was read before one is not kept
	solo  bool
	fresh bool // solo is up to date
}

type account struct {
	network channels.Network
	account channels.AccountID
	user    channels.UserID
}

const maxKnown = 20_000

func newPeople(s *store.Store) *people {
	return &people{store: s, known: map[account]workspace.Person{}}
}

// stamp is the age of the memory before a question to the record.
func (p *people) stamp() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.age
}

// sender is the person behind an event of a channel. known is false for a stranger.
func (p *people) sender(l *transport.Channel, in *channels.Inbound) (who workspace.Person, known bool, err error) {
	if l.Traits.Local {
		return p.local(in.From.User)
	}
	return p.find(in.To.Network, in.To.Account, in.From)
}

// find is the person behind a network's sender, by any of its ids.
func (p *people) find(n channels.Network, acc channels.AccountID, from channels.Sender) (who workspace.Person, known bool, err error) {
	for _, user := range append([]channels.UserID{from.User}, from.Alt...) {
		if user == "" {
			continue
		}
		a := account{n, acc, user}
		who, known, age := p.cached(a)
		if known {
			return who, true, nil
		}
		who, err = p.store.Person(n, acc, user)
		if err == nil {
			p.learn(a, who, age)
			return who, true, nil
		}
		if !errors.Is(err, workspace.ErrNotFound) {
			return workspace.Person{}, false, err
		}
	}
	return workspace.Person{}, false, nil
}

// local is the person of a sign-in or token: the user is the person's own id, which the gateway itself vouches for.
func (p *people) local(user channels.UserID) (who workspace.Person, known bool, err error) {
	a := account{user: user} // of no network
	who, known, age := p.cached(a)
	if known {
		return who, true, nil
	}
	who, err = p.store.PersonByID(workspace.PersonID(user))
	if errors.Is(err, workspace.ErrNotFound) {
		return workspace.Person{}, false, nil
	}
	if err != nil {
		return workspace.Person{}, false, err
	}
	p.learn(a, who, age)
	return who, true, nil
}

// guest is the account of a sender who is admitted without being known.
func (p *people) guest(in channels.Inbound) *workspace.Account {
	return &workspace.Account{Network: in.To.Network, Account: in.To.Account, User: in.From.User, Person: workspace.PersonID(p.store.IDs().New())}
}

// cached is who is remembered, and the age of the memory, which learn wants back.
func (p *people) cached(a account) (who workspace.Person, known bool, age int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	who, known = p.known[a]
	return who, known, p.age
}

// learn remembers what was read at an age of the memory. Whatever was forgotten since may have changed since: a role
// that was taken away must not come back.
func (p *people) learn(a account, who workspace.Person, age int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fresh = false
	if age != p.age {
		return
	}
	if len(p.known) >= maxKnown {
		clear(p.known)
	}
	p.known[a] = who
}

// forget makes the next message read the record: after a pairing, a link, a new configuration.
func (p *people) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.known)
	p.age++
	p.fresh = false
}

// alone says whether one owner is the only person; dm_scope main rests on it.
func (p *people) alone() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.fresh {
		list, _, err := p.store.People()
		p.solo = err == nil && len(list) == 1 && list[0].Role == workspace.Owner
		p.fresh = err == nil
	}
	return p.solo
}

// limiter allows a number of events an hour for each key.
type limiter struct {
	now func() time.Time
	max int
	mu  sync.Mutex
	n   map[string]int
	end time.Time
}

func newLimiter(perHour int, now func() time.Time) *limiter {
	return &limiter{now: now, max: perHour, n: map[string]int{}}
}

func (l *limiter) allow(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := l.now(); now.After(l.end) || len(l.n) > 100_000 {
		clear(l.n)
		l.end = now.Add(time.Hour)
	}
	l.n[key]++
	return l.n[key] <= l.max
}
