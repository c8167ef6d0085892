package whatsapp

import (
	"sync"
	"time"

	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"

	"parley/channels"
	"parley/workspace/clip"
)

// seen knows the latest messages of people: what an answer quotes, how its writer was addressed there, and what is to be
// marked as read. It is a convenience and lost with the process.
type seen struct {
	mu     sync.Mutex
	ring   [1024]heardMessage
	next   int
	index  map[string]int            // by room and id
	unread map[channels.PeerID][]int // of the ring
	fades  map[channels.PeerID]uint32
}

// heardMessage is one of them.
type heardMessage struct {
	key    string
	id     string
	chat   types.JID // as the message named it
	sender types.JID
	text   string // its beginning
	at     time.Time
}

const (
	quoteMost  = 300  // characters of a quoted text
	unreadMost = 20   // messages of a room that are marked at once
	roomsMost  = 2000 // rooms that anything is remembered of
)

func newSeen() *seen {
	return &seen{index: map[string]int{}, unread: map[channels.PeerID][]int{}, fades: map[channels.PeerID]uint32{}}
}

// note remembers a message that was journalled.
func (s *session) note(evt *events.Message, in *channels.Inbound) {
	if in.Kind != channels.KindMessage {
		return
	}
	text := clip.Runes(in.Text, quoteMost)
	m := heardMessage{key: string(in.To.Peer) + "\x00" + string(in.ID), id: evt.Info.ID, chat: plain(evt.Info.Chat), sender: plain(evt.Info.Sender), text: text,
		at: evt.Info.Timestamp}
	fade := contextOf(unwrap(evt.Message)).GetExpiration()
	s.seen.add(m, in.To.Peer, fade)
}

func (k *seen) add(m heardMessage, room channels.PeerID, fade uint32) {
	k.mu.Lock()
	defer k.mu.Unlock()
	slot := k.next % len(k.ring)
	if old := k.ring[slot].key; old != "" && k.index[old] == slot {
		delete(k.index, old)
	}
	k.ring[slot] = m
	k.index[m.key] = slot
	k.next++
	if len(k.unread) >= roomsMost {
		clear(k.unread)
	}
	if list := append(k.unread[room], slot); len(list) > unreadMost {
		k.unread[room] = list[1:]
	} else {
		k.unread[room] = list
	}
	if len(k.fades) >= roomsMost {
		clear(k.fades)
	}
	if fade > 0 {
		k.fades[room] = fade
	} else {
		delete(k.fades, room)
	}
}

// find is a message of a room.
func (k *seen) find(room channels.PeerID, id channels.MessageID) (heardMessage, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	slot, ok := k.index[string(room)+"\x00"+string(id)]
	if !ok {
		return heardMessage{}, false
	}
	return k.ring[slot], true
}

// fade is after how many seconds messages of a room disappear, as its latest message says; 0: they stay.
func (k *seen) fade(room channels.PeerID) uint32 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.fades[room]
}

// take gives a room's messages that nobody marked as read, by sender, and forgets them.
func (k *seen) take(room channels.PeerID) map[types.JID][]heardMessage {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := map[types.JID][]heardMessage{}
	for _, slot := range k.unread[room] {
		m := k.ring[slot]
		out[m.sender] = append(out[m.sender], m)
	}
	delete(k.unread, room)
	return out
}
