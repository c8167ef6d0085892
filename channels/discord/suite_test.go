package discord_test

import (
	"context"
	"strings"
	"testing"

	"parley/channels"
	"parley/channels/channeltest"
	"parley/channels/discord"
	"parley/channels/discord/discordtest"
)

func TestSuite(t *testing.T) { channeltest.Run(t, harness{}) }

// harness joins the suite to the adapter over the fake Discord.
type harness struct{}

const (
	anaID    = "800000000000000001"
	benID    = "800000000000000002"
	otherBot = "800000000000000003"
	guildID  = "900000000000000001"
	groupID  = "900000000000000002"
	opsID    = "900000000000000003" // the channel with the thread
	threadID = "900000000000000004"
	echoID   = "900000000000000005"
	anaDM    = "900000000000000006"
	benDM    = "900000000000000007"
	opsRole  = "700000000000000001"
)

func (harness) Network() channels.Network { return "discord" }

func (harness) World(channeltest.T) channeltest.World {
	s := discordtest.New(discordtest.Options{NoLimits: true})
	s.AddUser(discordtest.User{ID: anaID, Name: "ana", Global: "Ana"})
	s.AddUser(discordtest.User{ID: benID, Name: "ben", Global: "Ben"})
	s.AddUser(discordtest.User{ID: otherBot, Name: "dice", Bot: true})
	s.AddGuild(discordtest.Guild{ID: guildID, Name: "Friends", Roles: []discordtest.Role{{ID: opsRole, Name: "ops"}}, Members: map[string][]string{anaID: {opsRole}, benID: nil, otherBot: nil}})
	for id, name := range map[string]string{groupID: "general", opsID: "ops", echoID: "echo"} {
		s.AddChannel(discordtest.Channel{ID: id, Type: discordtest.Text, Guild: guildID, Name: name})
	}
	s.AddChannel(discordtest.Channel{ID: threadID, Type: discordtest.PublicThread, Guild: guildID, Name: "incident", Parent: opsID})
	s.AddChannel(discordtest.Channel{ID: anaDM, Type: discordtest.Direct, With: anaID})
	s.AddChannel(discordtest.Channel{ID: benDM, Type: discordtest.Direct, With: benID})
	s.Offer("", [2]string{"new", "start afresh"}, [2]string{"status", "what goes on"}, [2]string{"stop", "stop it"}) // as an earlier run did
	return &world{Server: s}
}

// world is the fake with the people of the suite in it.
type world struct {
	*discordtest.Server
}

func (w *world) Open(d channels.Deps) (channels.Channel, error) {
	f := discord.Factory()
	o := f.Options().(*discord.Options)
	o.Token, o.APIURL = channels.Secret(w.Token()), w.URL()
	return f.New("dc", o, d)
}

func (w *world) Account() channels.AccountID { return channels.AccountID(w.Bot().ID) }

// Secrets: the token, and its half that signs.
func (w *world) Secrets() []string {
	return []string{w.Token(), w.Token()[strings.LastIndex(w.Token(), ".")+1:]}
}

func (w *world) User(who channeltest.Who) channels.UserID { return channels.UserID(person(who)) }

func person(who channeltest.Who) string {
	if who == channeltest.Ben {
		return benID
	}
	return anaID
}

func (w *world) Broken() string { return "" } // Discord shows broken markup as it is

// chat is the channel in which a place's messages are.
func chat(p channeltest.Place) string {
	switch p {
	case channeltest.OtherDM:
		return benDM
	case channeltest.Group:
		return groupID
	case channeltest.Thread:
		return threadID
	case channeltest.Echo:
		return echoID
	}
	return anaDM
}

func (w *world) Address(p channeltest.Place) channels.Address {
	a := channels.Address{Network: "discord", Account: w.Account(), Kind: channels.Room, Peer: channels.PeerID(chat(p))}
	switch p {
	case channeltest.DM, channeltest.OtherDM:
		a.Kind = channels.DM
	case channeltest.Thread: // a thread is in its channel, whose bindings it has
		a.Peer, a.Thread = opsID, threadID
	}
	return a
}

func (w *world) Act(e channeltest.Event) (channels.MessageID, bool) {
	at := chat(e.Place)
	switch e.Do {
	case channeltest.Write, channeltest.Fence:
		return w.write(e), true
	case channeltest.Command:
		return w.command(e)
	case channeltest.EditIt:
		w.EditIn(at, string(e.Target), e.Text)
	case channeltest.DeleteIt:
		w.DeleteIn(at, string(e.Target))
	case channeltest.ReactTo:
		return e.Target, w.React(at, string(e.Target), person(e.Who), e.Text, true)
	case channeltest.PressOn:
		return e.Target, w.press(at, e)
	case channeltest.Garbage:
		w.Raw("MESSAGE_CREATE", `{"id":17,"channel_id":["`+at+`"],"author":"nobody","content":{"no":"text"}}`)
	default:
		return "", w.trouble(e)
	}
	return e.Target, true
}

func (w *world) write(e channeltest.Event) channels.MessageID {
	in := discordtest.In{Channel: chat(e.Place), From: person(e.Who), Text: e.Text, ReplyTo: string(e.ReplyTo)}
	if e.Mention {
		in.Text = "<@" + w.Bot().ID + "> " + in.Text
	}
	for _, f := range e.Files {
		in.Files = append(in.Files, discordtest.File{Name: f.Name, MIME: f.MIME, Data: f.Data})
	}
	return channels.MessageID(w.Server.Write(in))
}

// command: one for another bot never reaches us; what we see is that bot's answer.
func (w *world) command(e channeltest.Event) (channels.MessageID, bool) {
	name, args, _ := strings.Cut(strings.TrimPrefix(e.Text, "/"), " ")
	if e.Mention {
		return channels.MessageID(w.Server.Write(discordtest.In{Channel: chat(e.Place), From: otherBot, Text: "stopped", Type: 20})), true
	}
	id, ok := w.Command(chat(e.Place), person(e.Who), name, args)
	return channels.MessageID(id), ok
}

// press: a custom_id may carry more than the action's value, never less.
func (w *world) press(at string, e channeltest.Event) bool {
	m, _ := w.Message(at, string(e.Target))
	for _, row := range m.Buttons {
		for _, b := range row {
			if b.ID == e.Text {
				_, ok := w.Press(at, m.ID, person(e.Who), b.ID)
				return ok
			}
		}
	}
	return false
}

// suppressEmbeds is the flag of a message whose links are not shown.
const suppressEmbeds = 1 << 2

const send = "POST /channels/{channel}/messages"

// trouble makes the network fail; false: it is a deed that Discord does not know.
func (w *world) trouble(e channeltest.Event) bool {
	spoil := discordtest.Fault{Route: send, Times: 1}
	switch e.Do {
	case channeltest.Flood:
		spoil.Do, spoil.Status, spoil.After = discordtest.Reply, 429, e.After
	case channeltest.Trouble:
		spoil.Do, spoil.Status = discordtest.Reply, 500
	case channeltest.BadAnswer:
		spoil.Do, spoil.Status, spoil.Body = discordtest.Reply, 502, discordtest.BadGateway
	case channeltest.Swallow:
		spoil.Do = discordtest.CutAfter
	case channeltest.Block:
		w.Server.Block(chat(e.Place), true)
		return true
	case channeltest.Revoke:
		w.Server.Revoke()
		return true
	case channeltest.Freeze:
		w.Server.Freeze()
		return true
	case channeltest.Cut:
		return w.Server.Cut() == nil
	case channeltest.Down:
		w.Server.Down()
		return true
	case channeltest.Up:
		return w.Server.Up() == nil
	default:
		return false
	}
	w.AddFault(spoil)
	return true
}

// Acked: Discord has no acknowledgement, which the table says.
func (w *world) Acked(channeltest.Place, channels.MessageID) bool { return false }

func (w *world) Sent(p channeltest.Place) []channeltest.Seen {
	var all []channeltest.Seen
	for _, m := range w.Server.Sent(chat(p)) {
		s := channeltest.Seen{ID: channels.MessageID(m.ID), Text: m.Text, ReplyTo: channels.MessageID(m.ReplyTo), Rings: m.Mentions,
			Previews: m.Flags&suppressEmbeds == 0}
		if m.Pings {
			s.Rings = append(s.Rings, "everyone")
		}
		for _, row := range m.Buttons {
			var actions []channels.Action
			for _, b := range row {
				actions = append(actions, channels.Action{Label: b.Label, Value: b.ID})
			}
			s.Actions = append(s.Actions, actions)
		}
		for _, f := range m.Files {
			s.Files = append(s.Files, channeltest.File{Name: f.Name, MIME: f.MIME, Data: f.Data})
		}
		all = append(all, s)
	}
	return all
}

func (w *world) Reaction(p channeltest.Place, id channels.MessageID) string {
	m, _ := w.Message(chat(p), string(id))
	for emoji, who := range m.Reactions {
		for _, u := range who {
			if u == w.Bot().ID {
				return emoji
			}
		}
	}
	return ""
}

func (w *world) Typing(p channeltest.Place) int { return len(w.Typed(chat(p))) }

// Menu is what people of the server are offered.
func (w *world) Menu() []channels.MenuItem {
	var all []channels.MenuItem
	for _, it := range append(w.Server.Menu(guildID), w.Server.Menu("")...) {
		all = append(all, channels.MenuItem{Name: it[0], Help: it[1]})
	}
	return all
}

func (w *world) Wait(ctx context.Context, cond func() bool) error { return w.WaitFor(ctx, cond) }
