// Who writes, and what is set for where they write.

package intake

import (
	"cmp"
	"errors"
	"sync"

	"parley/channels"
	"parley/gateway/transport"
	"parley/workspace"
	"parley/workspace/store"
)

// maxKnown is how many users and how many rooms are remembered.
const maxKnown = 20_000

// DirectoryStore is the units and readers of the store that a Directory uses. *store.Store has them.
type DirectoryStore interface {
	Person(network channels.Network, account channels.AccountID, user channels.UserID) (workspace.Person, error)
	PersonByID(id workspace.PersonID) (workspace.Person, error)
	People() ([]workspace.Person, []workspace.Account, error)
	SyncAccounts(network channels.Network, account channels.AccountID, users []workspace.Account) error
	PlaceOf(a channels.Address) (store.Place, error)
	IDs() *workspace.IDs
}

// Directory knows who is behind a network's user, and what people set for rooms, and remembers it, so that a message costs no
// question. Rights are computed here, from ids, at ingress. Safe for concurrent use.
type Directory struct {
	store  DirectoryStore
	people people
	places places
	moves  *transport.Moves
}

// NewDirectory reads nothing yet.
func NewDirectory(s DirectoryStore, moves *transport.Moves) *Directory {
	return &Directory{store: s, people: people{store: s, known: map[account]workspace.Person{}}, places: places{store: s}, moves: moves}
}

// ForgetPeople makes the next message read the record: after a pairing, a link, a new configuration. Rooms of pages may be
// another person's since.
func (d *Directory) ForgetPeople() {
	d.people.forget()
	d.places.forget()
}

// Local is a person who came by a sign-in or a token, with the role that they have now; nobody, when that is not known. In place
// of local it is whom local has become.
func (d *Directory) Local(id workspace.PersonID) (workspace.Actor, error) {
	who, _, err := d.people.local(channels.UserID(id))
	return workspace.Actor{Person: cmp.Or(who.ID, id), Role: who.Role, Name: who.Name}, err
}

// sender is the person behind an event of a channel. known is false for a stranger.
func (d *Directory) sender(ch *transport.Channel, in *channels.Inbound) (who workspace.Person, known bool, err error) {
	if ch.Traits.Local {
		return d.people.local(in.From.User)
	}
	return d.people.find(in.To.Network, in.To.Account, in.From)
}

// guest is the account of a sender who is admitted without being known.
func (d *Directory) guest(in channels.Inbound) *workspace.Account {
	return &workspace.Account{Network: in.To.Network, Account: in.To.Account, User: in.From.User,
		Person: workspace.PersonID(d.store.IDs().New())}
}

// bind makes the configured people of a channel's account known.
func (d *Directory) bind(ch *transport.Channel, users []workspace.Account) error {
	defer d.people.forget()
	return d.store.SyncAccounts(ch.Network, ch.Account(), users)
}

// follow stores that the network gave a room another id.
func (d *Directory) follow(from channels.Address, to channels.PeerID) error {
	if err := d.moves.Follow(from, to); err != nil {
		return err
	}
	d.places.forget()
	return nil
}

// people remembers who is behind a network's user.
type people struct {
	store DirectoryStore
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

// stamp is the age of the memory before a question to the record.
func (p *people) stamp() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.age
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

// places remembers what people set for rooms.
type places struct {
	store DirectoryStore
	mu    sync.Mutex
	known map[channels.Address]store.Place
	age   int // counts forgettings: what was read before one is not kept
}

// of is what is set for a room.
func (p *places) of(a channels.Address) (store.Place, error) {
	p.mu.Lock()
	place, known := p.known[a]
	age := p.age
	p.mu.Unlock()
	if known {
		return place, nil
	}
	place, err := p.store.PlaceOf(a)
	if err != nil {
		return store.Place{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if age != p.age {
		return place, nil
	}
	if p.known == nil || len(p.known) >= maxKnown {
		p.known = map[channels.Address]store.Place{}
	}
	p.known[a] = place
	return place, nil
}

func (p *places) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known, p.age = nil, p.age+1
}
