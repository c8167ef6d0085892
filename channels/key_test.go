package channels_test

import (
	"testing"

	"parley/channels"
)

// Keys stand in journals: their form, once written, does not change, or what an older version journalled is answered a
// second time and its edits find nothing. The keys here are as version b8eb492's journals have them.
func TestKeysAreAsJournalsHaveThem(t *testing.T) {
	t.Parallel()
	at := func(n channels.Network, kind channels.PeerKind, peer, thread string) channels.Address {
		return channels.Address{Network: n, Account: "a", Kind: kind, Peer: channels.PeerID(peer), Thread: channels.ThreadID(thread)}
	}
	const ana, group = "4917700000001@s.whatsapp.net", "120363000000000001@g.us"
	wa := channels.OfWriter("3ABE0B53", ana)
	for _, c := range []struct {
		name, want string
		to         channels.Address
		id         channels.MessageID
	}{
		{"telegram", "m:-1005:17", at("telegram", channels.Group, "-1005", ""), "17"},
		{"telegram topic", "m:-1005:17", at("telegram", channels.Group, "-1005", "3"), "17"},
		{"slack", "m:C1:1700.01", at("slack", channels.Room, "C1", ""), "1700.01"},
		{"slack thread", "m:C1:1700.02", at("slack", channels.Room, "C1", "1700.01"), "1700.02"},
		{"discord", "m:900:17", at("discord", channels.Room, "900", ""), "17"},
		{"discord thread", "m:901:18", at("discord", channels.Room, "900", "901"), "18"},
		{"whatsapp dm", "m:" + ana + ":3ABE0B53:" + ana, at("whatsapp", channels.DM, ana, ""), wa},
		{"whatsapp group", "m:" + group + ":3ABE0B53:" + ana, at("whatsapp", channels.Group, group, ""), wa},
		{"whatsapp, an id with a blank", "m:" + ana + ":a b:" + ana, at("whatsapp", channels.DM, ana, ""), channels.OfWriter("a b", ana)},
		{"whatsapp, ours", "m:" + ana + ":3EB0", at("whatsapp", channels.DM, ana, ""), "3EB0"},
		{"webchat", "8f1c", at("webchat", channels.DM, "agent:main:main", ""), "8f1c"},
	} {
		if got := channels.MessageKey(c.to, c.id); got != c.want {
			t.Errorf("%s: key %q, want %q", c.name, got, c.want)
		}
		in := channels.Inbound{To: c.to, Target: c.id}
		if got := in.TargetKey(); got != c.want {
			t.Errorf("%s: target's key %q, want %q", c.name, got, c.want)
		}
	}
	thread, dm := at("discord", channels.Room, "900", "901"), at("whatsapp", channels.DM, ana, "")
	for got, want := range map[string]string{
		channels.EditKey(thread, "18", "2026"):                                             "e:901:18:2026",
		channels.DeleteKey(thread, "18"):                                                   "d:901:18",
		channels.ReactionKey(thread, "18", "800", "+👍"):                                    "r:901:18:800:+👍",
		channels.EditKey(dm, wa, "3EDD"):                                                   "e:" + ana + ":3ABE0B53:" + ana + ":3EDD",
		channels.DeleteKey(dm, wa):                                                         "d:" + ana + ":3ABE0B53:" + ana,
		channels.ReactionKey(dm, channels.OfWriter("3EAC", ana)):                           "r:" + ana + ":3EAC:" + ana,
		channels.PressKey(at("slack", channels.Room, "C1", "1700.01"), "1.2", "U1", "3.4"): "b:C1:1.2:U1:3.4",
		thread.RootKey():                    "m:900:901",
		dm.RootKey():                        "",
		channels.CopyKey("m:900:17", "ops"): "m:900:17#ops",
	} {
		if got != want {
			t.Errorf("key %q, want %q", got, want)
		}
	}
}

func TestAnIDIsTakenApartWhereItsWriterBegins(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		m      channels.MessageID
		id     string
		writer channels.UserID
	}{{"17", "17", ""}, {channels.OfWriter("17", "ana"), "17", "ana"}, {channels.OfWriter("1 7", "ana"), "1 7", "ana"}, {"", "", ""}} {
		if id, writer := c.m.Writer(); id != c.id || writer != c.writer {
			t.Errorf("%q is of %q by %q, want %q by %q", c.m, id, writer, c.id, c.writer)
		}
	}
}
