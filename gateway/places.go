package gateway

import (
	"sync"

	"parley/channels"
	"parley/gateway/rights"
	"parley/routes"
	"parley/workspace"
	"parley/workspace/store"
)

// places remembers what people set for rooms, so that a message costs no question. Safe for concurrent use.
type places struct {
	store *store.Store
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

// switched is where a message goes whose room was switched to another session of the agent. Whether its writer may write
// there is asked for each message: a role that is taken away ends it (T16).
func switched(route routes.Route, place store.Place, who workspace.Actor, kind channels.PeerKind) routes.Route {
	if place.SessionKey == "" {
		return route
	}
	to, err := workspace.ParseKey(place.SessionKey)
	if err != nil || to == route.Session || !rights.Switchable(who, kind, route.Session, to) {
		return route
	}
	route.Binding.Home = route.Binding.Key
	route.Session, route.Binding.Key, route.Binding.Rule, route.Binding.Fallback = to, place.SessionKey, "switch:session", false
	return route
}
