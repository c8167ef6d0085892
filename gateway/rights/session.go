// Whose a session is, and to which one a chat may be led.

package rights

import (
	"strings"

	"parley/channels"
	"parley/workspace"
	"parley/workspace/clip"
)

// Reaches says whether a session is the actor's own: everybody's local ones carry their person, an owner reaches all.
func Reaches(who workspace.Actor, k workspace.Key) bool {
	own := k.Scope == workspace.ScopeLocal && who.Person != "" && strings.HasPrefix(k.Local, string(who.Person)+":")
	return own || who.Role.AtLeast(workspace.Owner)
}

// LocalKey is the key of a local session by its name: owners share theirs, everybody else's carry their person, whose id
// holds no colon.
func LocalKey(who workspace.Actor, agent workspace.AgentID, name string) workspace.Key {
	if !who.Role.AtLeast(workspace.Owner) {
		name = string(who.Person) + ":" + name
	}
	return workspace.Key{Agent: agent, Scope: workspace.ScopeLocal, Local: name}
}

// SessionKey is the session that a word names: a whole key, or in short a local one of the actor's, which is main for that of the
// standard agent, research/main for that of another. Whether there is such an agent, and whether the actor reaches the session, is
// asked of the key.
func SessionKey(who workspace.Actor, standard workspace.AgentID, word string) (workspace.Key, error) {
	if strings.Contains(word, ":") { // no name has one: it would be read as a person's
		k, err := workspace.ParseKey(word)
		if err != nil {
			return k, noKey(err, word)
		}
		return k, nil
	}
	agent, name, named := strings.Cut(word, "/")
	if !named {
		agent, name = string(standard), word
	}
	if agent == "" || name == "" {
		return workspace.Key{}, noKey(workspace.ErrInvalid, word)
	}
	return LocalKey(who, workspace.AgentID(agent), name), nil
}

func noKey(err error, word string) error {
	return workspace.Say(err, "%q is not a session key.", clip.Runes(word, 200))
}

// ReachesFrom says whether a session is one that the actor may see, and be led to, from a chat whose route leads to home: their own,
// those of the chat, for owners any. In a group it is only those of the group: what is said there is read by everybody (T16).
func ReachesFrom(who workspace.Actor, kind channels.PeerKind, home, k workspace.Key) bool {
	here := SameChat(home, k)
	if kind == channels.Group || kind == channels.Room {
		return here
	}
	return here || Reaches(who, k)
}

// SameChat says whether two keys are of one chat, and differ in the session's name alone.
func SameChat(a, b workspace.Key) bool {
	a.Name, b.Name = "", ""
	return a == b && !a.IsZero() && a.Scope != workspace.ScopeLocal
}

// Switchable says whether a chat whose route leads to home may be led to another session by this person. It is asked for each
// message, so that a role that is taken away ends it.
func Switchable(who workspace.Actor, kind channels.PeerKind, home, to workspace.Key) bool {
	return home.Agent == to.Agent && to.Helper == "" && ReachesFrom(who, kind, home, to)
}
