package workspace_test

import (
	"errors"
	"hash/fnv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/channels"
	"parley/workspace"
)

func TestKeysReadAsTheDesignWritesThem(t *testing.T) {
	t.Parallel()
	address := workspace.Key{Agent: "a", Scope: workspace.ScopeAddress, Network: "telegram", Account: "bot", Kind: channels.Group, Peer: "-100"}
	all := address
	all.Thread, all.Name, all.Helper = "5", "watch", "01J"
	odd := workspace.Key{Agent: "a:b", Scope: workspace.ScopePeer, Network: "slack", Kind: channels.DM, Peer: "T1/U 2%"}
	for want, k := range map[string]workspace.Key{
		"agent:a:telegram:bot:group:-100":                                  address,
		"agent:a:telegram:bot:group:-100:thread:5:name:watch:subagent:01J": all,
		"agent:a%3Ab:slack:dm:T1%2FU 2%25":                                 odd,
		"agent:a:person:p":                                                 {Agent: "a", Scope: workspace.ScopePerson, Person: "p"},
		"agent:a:main":                                                     {Agent: "a", Scope: workspace.ScopeMain},
		"agent:a:main:name:x":                                              {Agent: "a", Scope: workspace.ScopeMain, Name: "x"},
		"agent:a:local:main":                                               {Agent: "a", Scope: workspace.ScopeLocal, Local: "main"},
	} {
		if got := k.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if got, err := workspace.ParseKey(want); err != nil || got != k {
			t.Errorf("%s reads as %+v, %v", want, got, err)
		}
	}
	if !(workspace.Key{}).IsZero() || address.IsZero() {
		t.Error("the zero key alone is zero")
	}
}

func TestParseKeyRefusesWhatStringNeverWrites(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"", "agent", "agent:a", "agent::main", "person:a:main", "agent:a:person", "agent:a:local", "agent:a:telegram:dm",
		"agent:a:telegram:bot:cat:1", "agent:a:main:thread", "agent:a:main:thread:", "agent:a:main:colour:red",
		"agent:a:main:name:x:thread:1", "agent:a:main:name:x:name:y", "agent:a:main:", "agent:a%3a:main", "agent:a%41:main", "agent:a%:main", "agent:a/b:main",
		"AGENT:a:main", " agent:a:main", "agent:a:main\n",
	} {
		if k, err := workspace.ParseKey(s); !errors.Is(err, workspace.ErrInvalid) {
			t.Errorf("%q reads as %+v, %v", s, k, err)
		}
	}
	if _, err := workspace.ParseKey(strings.Repeat("x", 5000)); len(err.Error()) > 200 {
		t.Errorf("an error of %d bytes", len(err.Error()))
	}
}

// drawKey is any key that routes could build, of ids with every sort of character.
func drawKey(t *rapid.T) workspace.Key {
	id := func(label string, from int) string {
		return rapid.OneOf(rapid.StringN(from, 8, -1), rapid.StringOfN(rapid.SampledFrom([]rune(":/%3A25dmperson")), from, 8, -1)).Draw(t, label)
	}
	k := workspace.Key{Agent: workspace.AgentID(id("agent", 1)),
		Scope: rapid.SampledFrom([]workspace.Scope{"address", "peer", "person", "main", "local"}).Draw(t, "scope"),
		Name:  id("name", 0), Helper: id("helper", 0), Thread: channels.ThreadID(id("thread", 0))}
	network := channels.Network(rapid.SampledFrom([]string{"telegram", "slack", "discord", "whatsapp"}).Draw(t, "network"))
	kind := rapid.SampledFrom([]channels.PeerKind{channels.DM, channels.Group, channels.Room}).Draw(t, "kind")
	peer := channels.PeerID(id("peer", 0))
	switch k.Scope {
	case workspace.ScopeAddress:
		k.Network, k.Account, k.Kind, k.Peer = network, channels.AccountID(id("account", 0)), kind, peer
	case workspace.ScopePeer:
		k.Network, k.Kind, k.Peer = network, kind, peer
	case workspace.ScopePerson:
		k.Person = workspace.PersonID(id("person", 0))
	case workspace.ScopeLocal:
		k.Local = id("local", 0)
	}
	return k
}

func TestKeyRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		k := drawKey(t)
		got, err := workspace.ParseKey(k.String())
		if err != nil || got != k {
			t.Errorf("%+v is written %q and read %+v, %v", k, k.String(), got, err)
		}
	})
}

// T16: a key is a person's wall, so two different ones must never be written alike.
func TestT16_DifferentKeysAreWrittenDifferently(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawKey(t), drawKey(t)
		if (a == b) != (a.String() == b.String()) {
			t.Errorf("%+v and %+v are written %q and %q", a, b, a, b)
		}
	})
}

func FuzzKey(f *testing.F) {
	f.Add("agent:a:telegram:bot:group:-100:thread:5:name:watch:subagent:01J")
	f.Add("agent:a:slack:dm:T1%2FU2")
	f.Add("agent:a:person:p")
	f.Add("agent:a:main")
	f.Add("agent:a:local:x%25")
	f.Fuzz(func(t *testing.T, s string) {
		k, err := workspace.ParseKey(s)
		if err != nil {
			if !errors.Is(err, workspace.ErrInvalid) || !k.IsZero() {
				t.Errorf("%q: %+v, %v", s, k, err)
			}
			return
		}
		if k.String() != s || k.Agent == "" || k.IsZero() {
			t.Errorf("%q reads as %+v, written %q", s, k, k)
		}
		if again, err := workspace.ParseKey(k.String()); err != nil || again != k {
			t.Errorf("%q reads as %+v, then %+v, %v", s, k, again, err)
		}
	})
}

func TestPartitionIsTheHashOfTheText(t *testing.T) {
	t.Parallel()
	used := map[int]bool{}
	rapid.Check(t, func(t *rapid.T) {
		k := drawKey(t)
		h := fnv.New32a()
		h.Write([]byte(k.String()))
		if want := int(h.Sum32() % 256); k.Partition() != want {
			t.Errorf("%s: partition %d, want %d", k, k.Partition(), want)
		}
	})
	for i := range 4000 {
		k := workspace.Key{Agent: "a", Scope: workspace.ScopeLocal, Local: strings.Repeat("x", i%50) + string(rune('a'+i/50))}
		used[k.Partition()] = true
	}
	if len(used) < 250 {
		t.Errorf("4000 sessions fill %d of 256 partitions", len(used))
	}
}
