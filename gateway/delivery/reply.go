// What a verb answers in a room.

package delivery

import (
	"parley/channels"
	"parley/workspace"
	"parley/workspace/store"
)

// CutFor divides a text into the parts that a room takes; in one piece, where its channel is not known.
func (d *Outbox) CutFor(room workspace.RoomID, text string) []store.Span {
	return Cut(text, d.traits(room))
}

// Attach keeps a file for a room; ok is false where its network takes none of its size, or it cannot be kept.
func (d *Outbox) Attach(room workspace.RoomID, data []byte) (ref string, ok bool) {
	if most := d.traits(room).MaxFile; int64(len(data)) > int64(most) || most == 0 {
		return "", false
	}
	ref, err := d.Blobs.Put(data)
	if err != nil {
		d.Log.Error("file for a room not kept", "room", room, "err", err)
	}
	return ref, err == nil
}

// traits are those of a room's channel; zero where it has none.
func (d *Outbox) traits(room workspace.RoomID) channels.Traits {
	addr, err := d.Address(room)
	if err != nil {
		return channels.Traits{}
	}
	if ch := d.Channels.Find(addr); ch != nil {
		return ch.Traits
	}
	return channels.Traits{}
}
