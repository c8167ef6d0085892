package rights_test

import (
	"errors"
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

// T16: a word of somebody who is not an owner leads to their own sessions, or is a whole key, which is judged as one.
func TestT16_AWordNamesOneSession(t *testing.T) {
	t.Parallel()
	boss, ana := workspace.Actor{Person: "boss", Role: workspace.Owner}, workspace.Actor{Person: "ana", Role: workspace.Member}
	for _, c := range []struct {
		who        workspace.Actor
		word, want string
	}{
		{boss, "main", "agent:a:local:main"}, {boss, "b/main", "agent:b:local:main"}, {boss, "b/x/y", "agent:b:local:x%2Fy"},
		{ana, "main", "agent:a:local:ana%3Amain"}, {ana, "b/main", "agent:b:local:ana%3Amain"}, {boss, "ana:main", ""}, {ana, "boss:main", ""},
		{boss, "agent:b:local:ana%3Amain", "agent:b:local:ana%3Amain"}, {ana, "agent:b:local:main", "agent:b:local:main"},
		{boss, "", ""}, {boss, "/main", ""}, {boss, "b/", ""}, {boss, "agent:", ""}, {boss, "agent:b", ""},
	} {
		k, err := rights.SessionKey(c.who, "a", c.word)
		if (err == nil) != (c.want != "") || err == nil && k.String() != c.want || err != nil && !errors.Is(err, workspace.ErrInvalid) {
			t.Errorf("%s, %q: %s, %v; want %s", c.who.Person, c.word, k, err, c.want)
		}
	}
}
