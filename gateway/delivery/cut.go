// Making outbounds: cutting texts into parts, notices, replies.

package delivery

import (
	"parley/channels"
	"parley/channels/markup"
	"parley/workspace"
	"parley/workspace/store"
)

// Cut divides a text into what a network takes as one message each.
func Cut(text string, traits channels.Traits) []store.Span {
	var spans []store.Span
	for _, s := range markup.Cut(text, traits) {
		spans = append(spans, store.Span{From: s.From, To: s.To})
	}
	return spans
}

// CutOrAttach divides an answer into parts; one that is too long for the room goes as a file behind its first part. Where
// the file cannot be kept, the error says why, and the answer goes in parts after all.
func (d *Outbox) CutOrAttach(text string, traits channels.Traits) ([]store.Span, error) {
	spans := Cut(text, traits)
	if traits.MaxParts == 0 || len(spans) <= traits.MaxParts || traits.MaxFile == 0 {
		return spans, nil
	}
	ref, err := d.Blobs.Put([]byte(text))
	if err != nil {
		return spans, err
	}
	return []store.Span{spans[0], {Blob: ref}}, nil
}

// Notice is a short answer of one part.
func Notice(key string, room workspace.RoomID, kind workspace.OutboundKind, text string) store.NewOutbound {
	return store.NewOutbound{Key: key, RoomID: room, Kind: kind, Text: text, Spans: []store.Span{{To: len(text)}}}
}

// NoticeTo is a notice about one input, which goes through its reply handle where it has one.
func NoticeTo(in workspace.InputID, what string, room workspace.RoomID, kind workspace.OutboundKind, text string) store.NewOutbound {
	n := Notice(workspace.InputKey(in, what), room, kind, text)
	n.InputID = in
	return n
}

// Replying is a message about what a person wrote, as a reply to it where others write too: where threads grow from
// messages, it stands in that one's.
func (d *Outbox) Replying(n store.NewOutbound, in workspace.Input) store.NewOutbound {
	if addr, err := d.Address(n.RoomID); err == nil && addr.Kind != channels.DM && in.RoomID == n.RoomID {
		n.ReplyTo = in.Data.Message
	}
	return n
}
