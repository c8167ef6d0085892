package workspace

import (
	"fmt"
	"net/url"
	"strings"

	"parley/channels"
)

// Key names a session. It is built from ids by the gateway, never from text that somebody wrote.
//
// Its text form, with ":", "/" and "%" percent-escaped inside a part:
//
//	agent:<id>:<network>:<account>:<dm|group|room>:<peer>[:thread:<t>][:name:<n>][:subagent:<ulid>]
//	agent:<id>:<network>:<dm|group|room>:<peer>…      dm_scope per-channel-peer: without the account
//	agent:<id>:person:<p>…   agent:<id>:main…   agent:<id>:local:<name>…
type Key struct {
	Agent   AgentID
	Scope   Scope
	Network channels.Network   // ScopeAddress, ScopePeer
	Account channels.AccountID // ScopeAddress
	Kind    channels.PeerKind  // ScopeAddress, ScopePeer
	Peer    channels.PeerID    // ScopeAddress, ScopePeer
	Thread  channels.ThreadID
	Person  PersonID // ScopePerson
	Local   string   // ScopeLocal: WebChat, terminal, API
	Name    string   // a named session beside the first
	Helper  string   // ULID of a helper's run
}

// Scope is the shape of a key.
type Scope string

const (
	ScopeAddress Scope = "address"
	ScopePeer    Scope = "peer"
	ScopePerson  Scope = "person"
	ScopeMain    Scope = "main"
	ScopeLocal   Scope = "local"
)

// IsZero says that the key names nothing.
func (k Key) IsZero() bool { return k == Key{} }

// String is the text form.
func (k Key) String() string {
	p := append(make([]string, 0, 12), "agent", string(k.Agent)) // the longest has twelve parts: it stays on the stack
	switch k.Scope {
	case ScopeAddress:
		p = append(p, string(k.Network), string(k.Account), string(k.Kind), string(k.Peer))
	case ScopePeer:
		p = append(p, string(k.Network), string(k.Kind), string(k.Peer))
	case ScopePerson:
		p = append(p, "person", string(k.Person))
	case ScopeMain:
		p = append(p, "main")
	case ScopeLocal:
		p = append(p, "local", k.Local)
	}
	for _, x := range [][2]string{{"thread", string(k.Thread)}, {"name", k.Name}, {"subagent", k.Helper}} {
		if x[1] != "" {
			p = append(p, x[0], x[1])
		}
	}
	for i, s := range p {
		p[i] = escapePart(s)
	}
	return strings.Join(p, ":")
}

func escapePart(s string) string {
	if !strings.ContainsAny(s, ":/%") {
		return s
	}
	return strings.NewReplacer("%", "%25", ":", "%3A", "/", "%2F").Replace(s)
}

// ParseKey reads what String wrote. It returns ErrInvalid for anything else.
func ParseKey(s string) (Key, error) {
	bad := func() (Key, error) { return Key{}, fmt.Errorf("session key %.80q: %w", s, ErrInvalid) }
	p := strings.Split(s, ":")
	for i, part := range p {
		u, err := url.PathUnescape(part)
		if err != nil {
			return bad()
		}
		p[i] = u
	}
	if len(p) < 3 || p[0] != "agent" || p[1] == "" {
		return bad()
	}
	k := Key{Agent: AgentID(p[1])}
	rest := p[2:]
	kind := func(s string) bool { return s == "dm" || s == "group" || s == "room" }
	switch {
	case rest[0] == "main":
		k.Scope, rest = ScopeMain, rest[1:]
	case rest[0] == "person" && len(rest) >= 2:
		k.Scope, k.Person, rest = ScopePerson, PersonID(rest[1]), rest[2:]
	case rest[0] == "local" && len(rest) >= 2:
		k.Scope, k.Local, rest = ScopeLocal, rest[1], rest[2:]
	case len(rest)%2 == 0 && len(rest) >= 4 && kind(rest[2]):
		k.Scope, k.Network, k.Account = ScopeAddress, channels.Network(rest[0]), channels.AccountID(rest[1])
		k.Kind, k.Peer, rest = channels.PeerKind(rest[2]), channels.PeerID(rest[3]), rest[4:]
	case len(rest)%2 == 1 && len(rest) >= 3 && kind(rest[1]):
		k.Scope, k.Network, k.Kind, k.Peer = ScopePeer, channels.Network(rest[0]), channels.PeerKind(rest[1]), channels.PeerID(rest[2])
		rest = rest[3:]
	default:
		return bad()
	}
	for order := 0; len(rest) > 0; rest = rest[2:] {
		if len(rest) < 2 || rest[1] == "" {
			return bad()
		}
		var at int
		switch rest[0] {
		case "thread":
			at, k.Thread = 1, channels.ThreadID(rest[1])
		case "name":
			at, k.Name = 2, rest[1]
		case "subagent":
			at, k.Helper = 3, rest[1]
		default:
			return bad()
		}
		if at <= order {
			return bad()
		}
		order = at
	}
	if k.String() != s {
		return bad()
	}
	return k, nil
}
