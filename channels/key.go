package channels

import "strings"

// The journal knows a message by its key, and an edit, a deletion, a reaction or a quote means it by the address and the
// id that its event names. Adapters make keys here, and the core looks them up here, so that both are the same.
//
// A key is written once and lives as long as its row: what is already journalled must go on being found, so that the form
// of a network's keys does not change.

// numbering is how a network's message ids are to be read.
type numbering struct {
	byThread bool // a thread is a chat with messages of its own
	byClient bool // whoever writes chooses the id; the account is the writer, and the key is the id
}

func numberingOf(n Network) numbering {
	switch n {
	case "discord":
		return numbering{byThread: true}
	case "webchat":
		return numbering{byClient: true}
	}
	return numbering{}
}

// idMark stands before the writer in the id of a message on a network where ids are the writer's own (WhatsApp); keys have a
// colon there.
const idMark = " "

// OfWriter is the id of a message which is unique only together with whoever wrote it; writer is without blanks.
func OfWriter(id string, writer UserID) MessageID {
	return MessageID(id + idMark + string(writer))
}

// Writer takes an id apart that OfWriter made. An id without a writer comes back as it is.
func (m MessageID) Writer() (id string, writer UserID) {
	at := strings.LastIndex(string(m), idMark)
	if at < 0 {
		return string(m), ""
	}
	return string(m[:at]), UserID(m[at+len(idMark):])
}

// path is the chat whose message it is, and its id there, as they stand in keys.
func path(to Address, id MessageID) string {
	chat := string(to.Peer)
	if numberingOf(to.Network).byThread && to.Thread != "" {
		chat = string(to.Thread)
	}
	own, writer := id.Writer()
	if writer != "" {
		own += ":" + string(writer)
	}
	return chat + ":" + own
}

// MessageKey is the key of a message in the conversation.
func MessageKey(to Address, id MessageID) string {
	if numberingOf(to.Network).byClient {
		return string(id)
	}
	return "m:" + path(to, id)
}

// EditKey is the key of an edit; rev tells several of one message apart.
func EditKey(to Address, target MessageID, rev string) string {
	return "e:" + path(to, target) + ":" + rev
}

// DeleteKey is the key of a deletion, of which a message has one.
func DeleteKey(to Address, target MessageID) string { return "d:" + path(to, target) }

// ReactionKey is the key of a reaction. The id is the reaction's own, or its message's with more that tells several apart.
func ReactionKey(to Address, id MessageID, more ...string) string {
	return strings.Join(append([]string{"r:" + path(to, id)}, more...), ":")
}

// PressKey is the key of a pressed button; more tells several presses of one message apart.
func PressKey(to Address, target MessageID, more ...string) string {
	return strings.Join(append([]string{"b:" + path(to, target)}, more...), ":")
}

// TargetKey is the key of the message that an edit, deletion, reaction or press is about; empty: it names none.
func (in *Inbound) TargetKey() string {
	if in.Target == "" {
		return ""
	}
	return MessageKey(in.To, in.Target)
}

// RootKey is the key of the message that the conversation's thread grew from, where threads have their root's id; empty: it
// is not a thread. The root stands outside of it.
func (a Address) RootKey() string {
	if a.Thread == "" {
		return ""
	}
	outside := a
	outside.Thread = ""
	return MessageKey(outside, MessageID(a.Thread))
}

// CopyKey is the key of a message's copy for another reader of it.
func CopyKey(key, reader string) string { return key + "#" + reader }
