package rights_test

import (
	"testing"

	"parley/gateway/rights"
	"parley/workspace"
)

func TestT16_LocalSessionsBelongToTheirPerson(t *testing.T) {
	t.Parallel()
	key := func(who workspace.Actor) workspace.Key {
		return rights.LocalKey(who, "a", "main")
	}
	owner := workspace.Actor{Person: "boss", Role: workspace.Owner}
	ana, ann := workspace.Actor{Person: "an", Role: workspace.Member}, workspace.Actor{Person: "an.n", Role: workspace.Member}
	for _, c := range []struct {
		who  workspace.Actor
		of   workspace.Actor
		want bool
	}{{ana, ana, true}, {ana, ann, false}, {ann, ana, false}, {ana, owner, false}, {owner, ana, true}, {owner, owner, true},
		{workspace.Actor{Role: workspace.Member}, owner, false}} {
		if got := rights.Reaches(c.who, key(c.of)); got != c.want {
			t.Errorf("%s reaches %s: %v", c.who.Person, key(c.of), got)
		}
	}
	dm := workspace.Key{Agent: "a", Scope: workspace.ScopeAddress, Network: "telegram", Account: "1", Kind: "dm", Peer: "9"}
	if rights.Reaches(ana, dm) || !rights.Reaches(owner, dm) {
		t.Error("a session of a network is for owners")
	}
}
