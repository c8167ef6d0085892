package intake

import (
	"errors"
	"testing"

	"parley/gateway/snapshot"
	"parley/routes"
	"parley/workspace"
	"parley/workspace/store"
)

// T16: who writes from inside reaches their own sessions, and owners those of others.
func TestT16_LocalKeyIsOfWhatItsPersonReaches(t *testing.T) {
	t.Parallel()
	snap := &snapshot.Snapshot{Default: "a", Agents: map[workspace.AgentID]*snapshot.Agent{"a": {ID: "a"}, "b": {ID: "b"}}}
	r := &Receiver{Options: Options{Snapshot: func() *snapshot.Snapshot { return snap }}}
	boss, ana := workspace.Actor{Person: "boss", Role: workspace.Owner}, workspace.Actor{Person: "ana", Role: workspace.Member}
	for _, c := range []struct {
		who           workspace.Actor
		agent         workspace.AgentID
		session, want string
		err           error
	}{
		{boss, "", "", "agent:a:local:main", nil},
		{boss, "b", "trip", "agent:b:local:trip", nil},
		{ana, "", "", "agent:a:local:ana%3Amain", nil},
		{boss, "", "b/trip", "agent:b:local:trip", nil}, // as verbs take it
		{boss, "a", "b/trip", "agent:b:local:trip", nil},
		{ana, "", "b/trip", "agent:b:local:ana%3Atrip", nil},
		{boss, "", "gone/trip", "", workspace.ErrNotFound},
		{boss, "gone", "", "", workspace.ErrNotFound},
		{boss, "", "b/", "", workspace.ErrInvalid},
		{ana, "", "agent:a:local:ana%3Atrip", "agent:a:local:ana%3Atrip", nil},
		{ana, "", "agent:a:local:main", "", workspace.ErrDenied},
		{boss, "", "agent:a:local:ana%3Atrip", "agent:a:local:ana%3Atrip", nil},
		{boss, "", "agent:gone:local:main", "", workspace.ErrNotFound},
		{boss, "", "agent:", "", workspace.ErrInvalid},
	} {
		key, err := r.LocalKey(c.who, c.agent, c.session)
		if !errors.Is(err, c.err) || err == nil && key.String() != c.want {
			t.Errorf("%s, %q, %q: %s, %v", c.who.Person, c.agent, c.session, key, err)
		}
	}
}

// T16: a chat stays where it was switched only as long as its person reaches that session.
func TestT16_ASwitchEndsWithTheRole(t *testing.T) {
	t.Parallel()
	home := workspace.Key{Agent: "a", Scope: workspace.ScopeAddress, Network: "mem", Account: "bot", Kind: "dm", Peer: "1"}
	local := workspace.Key{Agent: "a", Scope: workspace.ScopeLocal, Local: "main"}
	route := routes.Route{Session: home, Binding: workspace.Binding{Agent: "a", Key: home.String(), Rule: "fallback", Fallback: true}}
	place := store.Place{SessionKey: local.String()}
	got := switched(route, place, workspace.Actor{Person: "boss", Role: workspace.Owner}, "dm")
	if got.Session != local || got.Binding.Key != local.String() || got.Binding.Home != home.String() || got.Binding.Fallback {
		t.Errorf("an owner is led to %+v", got)
	}
	if got = switched(route, place, workspace.Actor{Person: "boss", Role: workspace.Member}, "dm"); got.Session != home {
		t.Errorf("who is an owner no more is led to %+v", got)
	}
	if got = switched(route, store.Place{SessionKey: "not a key"}, workspace.Actor{Person: "boss", Role: workspace.Owner}, "dm"); got.Session != home {
		t.Errorf("a place without a key leads to %+v", got)
	}
}
