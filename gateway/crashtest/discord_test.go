//go:build !race

package crashtest

import (
	"fmt"
	"sync/atomic"
	"time"

	"parley/channels/discord/discordtest"
)

// onDiscord is a Discord with people in direct messages, in a channel and in a thread of it.
func onDiscord(w *town) network {
	const (
		guild, room, thread = "900000000000000001", "900000000000000002", "900000000000000003"
		chats, people       = 10, 12 // the last two chats are the room and the thread, with two people each
	)
	s := discordtest.Start(w.t, discordtest.Options{NoLimits: true, Seed: 7})
	person := func(p int) string { return fmt.Sprintf("8000000000000000%02d", p) }
	dm := func(p int) string { return fmt.Sprintf("9500000000000000%02d", p) }
	members := map[string][]string{}
	for p := range people {
		s.AddUser(discordtest.User{ID: person(p), Name: fmt.Sprintf("p%d", p)})
		s.AddChannel(discordtest.Channel{ID: dm(p), Type: discordtest.Direct, With: person(p)})
		members[person(p)] = nil
	}
	s.AddGuild(discordtest.Guild{ID: guild, Name: "Friends", Members: members})
	s.AddChannel(discordtest.Channel{ID: room, Type: discordtest.Text, Guild: guild, Name: "general"})
	s.AddChannel(discordtest.Channel{ID: thread, Type: discordtest.PublicThread, Guild: guild, Name: "incident", Parent: room})
	place := func(chat int) string {
		switch chat {
		case chats - 2:
			return room
		case chats - 1:
			return thread
		}
		return dm(chat)
	}
	var turn atomic.Int64
	const post = "POST /channels/{channel}/messages"
	return network{
		channel: fmt.Sprintf(`{name: dc, type: discord, token: "%s", api_url: "%s", access: {dm: open, groups: open, require_mention: true}}`, s.Token(), s.URL()),
		chats:   chats,
		write: func(chat int, text string) {
			who := chat
			if chat >= chats-2 {
				who, text = chat+2*int(turn.Add(1)%2), "<@"+s.Bot().ID+"> "+text
			}
			s.Write(discordtest.In{Channel: place(chat), From: person(who), Text: text})
		},
		shown: func(chat int) (all []string) {
			for _, m := range s.Sent(place(chat)) {
				all = append(all, m.Text)
			}
			return all
		},
		wait:  s.WaitFor,
		ready: func() bool { return s.Line().Ready > 0 },
		strike: func(n int) {
			s.Gateway(func(f *discordtest.GatewayFault) { f.Repeat, f.Reorder = 0.3, 0.2 })
			switch n % 5 {
			case 0:
				s.Gateway(func(f *discordtest.GatewayFault) { f.HalfFrame = 1 })
			case 1:
				s.AddFault(discordtest.Fault{Route: post, Do: discordtest.CutAfter, Times: 1})
			case 2:
				s.DropAll()
			case 3:
				s.AddFault(discordtest.Fault{Route: post, Do: discordtest.Reply, Status: 429, After: time.Second, Times: 1})
			case 4:
				s.Reconnect()
			}
		},
		calm: func() { s.ClearFaults() },
	}
}
