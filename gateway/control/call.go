package control

import (
	"parley/channels"
	"parley/gateway/rights"
	"parley/workspace"
)

// Call is who asks, from where, and how the answer goes back.
type Call struct {
	Actor   workspace.Actor
	Kind    channels.PeerKind // of the room; empty: local or HTTP
	Room    workspace.RoomID
	Session workspace.Key
	// Home is the session that the chat's route names, where it was switched to another; zero: Session is.
	Home workspace.Key
	// Input is the journalled command that asks; nil for HTTP and the command line.
	Input *workspace.Input
	// Via is the surface of a call without an input, Key the client's idempotency key; empty: it has none.
	Via, Key string
	// Borrowed says that a browser's sign-in asks that is not fresh: it may be a copy in strange hands, and nothing is done for it
	// that would outlive the sign-in, or make it stronger (T28).
	Borrowed bool
	// Read says that the room's people read its transcript, where every reply stands: it is not sent to them as well.
	Read bool
	// Private says that whoever calls reads the reply alone, in a group too.
	Private bool
	// Render writes the chat's reply from the verb's value. It must be pure.
	Render func(value any) string
	// File is a kept file that goes with the reply, by its reference; a verb sets it.
	File string
}

// Surfaces of calls without an input, as the audit log has them.
const (
	ViaAPI      = "api"
	ViaPage     = "webchat"
	ViaTerminal = "cli"
)

// Owner says whether the call has an owner's rights over other people's things.
func (call Call) Owner() bool { return call.Actor.Role.AtLeast(workspace.Owner) }

// Surface is the one that a call came by.
func (call Call) Surface() string {
	switch {
	case call.Input == nil && call.Via != "":
		return call.Via
	case call.Input == nil:
		return ViaAPI
	case call.Input.Data.Channel != "":
		return call.Input.Data.Channel
	}
	return call.Input.Source
}

// HomeKey is the session that the chat's route names.
func (call Call) HomeKey() workspace.Key {
	if !call.Home.IsZero() {
		return call.Home
	}
	return call.Session
}

// Reaches says whether a session is one that the caller may see and be led to.
func (call Call) Reaches(k workspace.Key) bool {
	return rights.ReachesFrom(call.Actor, call.Kind, call.HomeKey(), k)
}

// FromRoom says that the call comes from a room, whose messages go where the room leads. Local people's messages name their
// session themselves.
func (call Call) FromRoom() bool { return call.Room != "" && !call.Read }

// IdempotencyKey names an act that is done once, however often it is asked for; empty: each is one of its own.
func (call Call) IdempotencyKey() string {
	if call.Input != nil {
		return "input:" + string(call.Input.ID)
	}
	return call.Key
}

func (call Call) replyTo() channels.MessageID {
	if call.Kind == channels.DM {
		return ""
	}
	return call.Input.Data.Message
}
