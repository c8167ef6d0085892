package whatsapp

import (
	"context"
	"fmt"
	"strings"

	"go.mau.fi/whatsmeow/types"

	"parley/channels"
)

// People have two addresses: a phone number (…@s.whatsapp.net) and a hidden one, the LID (…@lid); either may come as the
// sender. They go by the number, or, when it is not known at first sight, by the LID for good (deviceStore.pin).

// human is who somebody is, whichever address they came by.
type human struct {
	user types.JID // that they go by
	alt  types.JID // the other; empty: not known
}

// human finds out who the two addresses are; the second may be empty. An error is the store's.
func (s *session) human(ctx context.Context, a, b types.JID) (human, error) {
	a, b = plain(a), plain(b)
	if a.Server != types.DefaultUserServer && a.Server != types.HiddenUserServer {
		return human{user: a}, nil // a bot of Meta's, or another network's user
	}
	if b.IsEmpty() || b.Server == a.Server {
		var err error
		if b, err = s.cli.Store.GetAltJID(ctx, a); err != nil {
			return human{}, fmt.Errorf("look for the other address of a person: %w", err)
		}
		b = plain(b)
	}
	number, lid := a, b
	if a.Server == types.HiddenUserServer {
		number, lid = b, a
	}
	switch {
	case number.IsEmpty():
		if !s.v.pinned(lid.User) {
			if err := s.v.pin(ctx, lid.User); err != nil {
				return human{}, err
			}
		}
		return human{user: lid}, nil
	case lid.IsEmpty() || lid.User == "":
		return human{user: number}, nil
	case s.v.pinned(lid.User):
		return human{user: lid, alt: number}, nil
	}
	return human{user: number, alt: lid}, nil
}

// sender is a human as the gateway knows people. Lists in a configuration hold numbers as people write them, so these are
// among the other ids.
func (h human) sender(name string) channels.Sender {
	from := channels.Sender{User: channels.UserID(h.user.String()), Name: name, Bot: h.user.IsBot()}
	if !h.alt.IsEmpty() {
		from.Alt = append(from.Alt, channels.UserID(h.alt.String()))
	}
	for _, j := range []types.JID{h.user, h.alt} {
		if j.Server == types.DefaultUserServer {
			from.Alt = append(from.Alt, channels.UserID(j.User), channels.UserID("+"+j.User))
		}
	}
	return from
}

// Message ids on WhatsApp are made by whoever sends: only together with the sender is one unique. Ours are given as they
// are; another's has its sender behind a blank, so that nobody can pass a message off as one of Parley's by its id.

func foreignID(id string, by types.JID) channels.MessageID {
	return channels.OfWriter(id, channels.UserID(by.String()))
}

// splitID is the network's id and who sent it; an empty sender: we did.
func splitID(m channels.MessageID) (id string, by types.JID, err error) {
	id, writer := m.Writer()
	if id == "" {
		return "", by, bad("no message is named")
	}
	if writer == "" {
		return id, by, nil
	}
	by, err = types.ParseJID(string(writer))
	if err != nil || by.User == "" {
		return "", by, bad("the message id names no sender")
	}
	return id, by, nil
}

// address is the conversation of a message.
func (s *session) address(ctx context.Context, info *types.MessageSource) (to channels.Address, ok bool, err error) {
	to = channels.Address{Network: Network, Account: channels.AccountID(s.me.String())}
	chat := plain(info.Chat)
	switch chat.Server {
	case types.GroupServer:
		to.Kind, to.Peer = channels.Group, channels.PeerID(chat.String())
		return to, true, nil
	case types.DefaultUserServer, types.HiddenUserServer:
	case types.BroadcastServer: // a list of its writer's, who reads the answer in the chat with us; status@broadcast is for all
		if chat.User == types.StatusBroadcastJID.User {
			return to, false, nil
		}
		chat = info.Sender
	default:
		return to, false, nil // newsletters, Meta's bots
	}
	who, err := s.human(ctx, chat, sideOf(info, chat))
	if err != nil {
		return to, false, err
	}
	to.Kind, to.Peer = channels.DM, channels.PeerID(who.user.String())
	return to, true, nil
}

// sideOf is the other address that the message itself tells of the chat's partner.
func sideOf(info *types.MessageSource, chat types.JID) types.JID {
	if plain(info.Sender) == plain(chat) {
		return info.SenderAlt
	}
	return types.EmptyJID
}

// target is where an address leads on the network.
func target(to channels.Address) (types.JID, error) {
	j, err := types.ParseJID(string(to.Peer))
	if err != nil || j.User == "" || j.Device != 0 || j.RawAgent != 0 {
		return j, bad("%q is not a chat of WhatsApp", to.Peer)
	}
	switch j.Server {
	case types.DefaultUserServer, types.HiddenUserServer, types.GroupServer:
		return j, nil
	}
	return j, bad("%q is not a chat that can be written to", to.Peer)
}

// mentions says whether the account is among those who are mentioned, and takes its name from the beginning of the text,
// where it only addresses. Later mentions stay, since the sentence needs them.
func (s *session) mentions(text string, list []string) (rest string, us, others bool) {
	rest = text
	for _, m := range list {
		j, err := types.ParseJID(m)
		switch {
		case err != nil:
		case s.isMe(j):
			us = true
		default:
			others = true
		}
	}
	if !us {
		return rest, false, others
	}
	number, lid := s.own()
	for again := true; again; {
		again = false
		rest = strings.TrimSpace(rest)
		for _, j := range []types.JID{number, lid} {
			name := "@" + j.User
			if after, ok := strings.CutPrefix(rest, name); ok && j.User != "" && !startsDigit(after) {
				rest, again = strings.TrimLeft(after, ",:"), true
			}
		}
	}
	return rest, us, others
}

func startsDigit(s string) bool { return s != "" && s[0] >= '0' && s[0] <= '9' }
