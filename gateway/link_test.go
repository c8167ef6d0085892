package gateway_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/channels/discord/discordtest"
	"parley/workspace"
)

// second is a fake Discord beside the rig's Telegram: Ana, Ben, Cid and Dora have a DM there.
type second struct {
	*discordtest.Server
	t *testing.T
}

const (
	anaOnDiscord   = "800000000000000001"
	benOnDiscord   = "800000000000000002"
	anaDiscordDM   = "900000000000000006"
	benDiscordDM   = "900000000000000007"
	cidOnDiscord   = "800000000000000003"
	doraOnDiscord  = "800000000000000004"
	cidDiscordDM   = "900000000000000008"
	doraDiscordDM  = "900000000000000009"
	discordChannel = `, {name: dc, type: discord, token: "%s", api_url: "%s", access: {dm: open}}`
)

func newSecond(t *testing.T) second {
	t.Helper()
	s := discordtest.New(discordtest.Options{NoLimits: true})
	t.Cleanup(s.Close)
	for _, u := range []struct{ id, dm, name string }{{anaOnDiscord, anaDiscordDM, "Ana"}, {benOnDiscord, benDiscordDM, "Ben"},
		{cidOnDiscord, cidDiscordDM, "Cid"}, {doraOnDiscord, doraDiscordDM, "Dora"}} {
		s.AddUser(discordtest.User{ID: u.id, Name: strings.ToLower(u.name), Global: u.name})
		s.AddChannel(discordtest.Channel{ID: u.dm, Type: discordtest.Direct, With: u.id})
	}
	return second{s, t}
}

func (s second) more() string { return fmt.Sprintf(discordChannel, s.Token(), s.URL()) }

// say writes to the bot and gives the answer: the next message in the chat.
func (s second) say(chat, from, text string) string {
	s.t.Helper()
	before := len(s.Sent(chat))
	s.Write(discordtest.In{Channel: chat, From: from, Text: text})
	ctx, cancel := context.WithTimeout(s.t.Context(), waitLimit)
	defer cancel()
	if err := s.WaitFor(ctx, func() bool { return len(s.Sent(chat)) > before }); err != nil {
		s.t.Fatalf("no answer to %q: %v", text, err)
	}
	return s.Sent(chat)[before].Text
}

// ready waits for Discord: a first message that comes before is lost to everybody.
func ready(r *rig) {
	r.t.Helper()
	if err := r.log.Wait(r.t.Context(), "channel=dc state=ready", 1); err != nil {
		r.t.Fatal(err)
	}
}

// T09: the code asked for on one network and given on the other joins two users into one person, tells both, and gives
// neither a right of the other's.
func linkJoinsTwoNetworks(r *rig, dc second) {
	dc.t = r.t
	ready(r)
	ana := r.person(11)
	r.say(ana, 11, "/link")
	right := code(r.t, r.wait(ana, 1)[0].Text)
	if got := dc.say(anaDiscordDM, anaOnDiscord, "/whoami"); !strings.Contains(got, "guest") {
		r.t.Errorf("before: %q", got)
	}
	if got := dc.say(anaDiscordDM, anaOnDiscord, "/link AAAA-BBBB"); !strings.Contains(got, "does not fit") {
		r.t.Errorf("a wrong code: %q", got)
	}
	if got := dc.say(anaDiscordDM, anaOnDiscord, "/link "+strings.ToLower(right)); !strings.HasPrefix(got, "Linked: here and on telegram") {
		r.t.Errorf("the right code: %q", got)
	}
	if got := r.wait(ana, 2)[1].Text; !strings.HasPrefix(got, "You are linked") || !strings.Contains(got, "discord") {
		r.t.Errorf("who asked was told %q", got)
	}
	if got := dc.say(benDiscordDM, benOnDiscord, "/link "+right); !strings.Contains(got, "does not fit") {
		r.t.Errorf("a code that was used: %q", got)
	}
	if got := dc.say(anaDiscordDM, anaOnDiscord, "/whoami"); !strings.Contains(got, "guest") || !strings.Contains(got, "ana"+r.n()) {
		r.t.Errorf("after: %q", got)
	}
	r.say(ana, 11, "/whoami")
	if got := r.wait(ana, 3)[2].Text; !strings.Contains(got, "owner") {
		r.t.Errorf("the owner is %q", got)
	}
	// Settings that guests may not change stay the owner's, though they are one person.
	if got := dc.say(anaDiscordDM, anaOnDiscord, "/send off"); !strings.Contains(got, "owner") {
		r.t.Errorf("an owner's setting: %q", got)
	}
	// With dm_scope per-peer both talk in one session now.
	r.say(ana, 11, "/session")
	session := "agent:assistant:person:ana" + r.n()
	mine, hers := r.wait(ana, 4)[3].Text, dc.say(anaDiscordDM, anaOnDiscord, "/session")
	if !strings.Contains(mine, session) || !strings.Contains(hers, session) {
		r.t.Errorf("sessions: %q and %q", mine, hers)
	}
	who, err := r.g.Control().People.Store.Human(workspace.PersonID("ana" + r.n()))
	if err != nil || len(who.Accounts) != 2 || who.Role != workspace.Owner {
		r.t.Errorf("person: %+v %v", who, err)
	}
	for _, a := range who.Accounts {
		if a.Network == "discord" && a.Most != workspace.Guest {
			r.t.Errorf("the linked account may be %q", a.Most)
		}
	}
}

// Five wrong codes close the door for who tried, for as long as a code lives; an old code opens nothing.
func linkCodesExpire(r *rig, dc second, c *clock) {
	defer c.Move(-11 * time.Minute)
	dc.t = r.t
	ready(r)
	ana := r.person(11)
	r.say(ana, 11, "/link")
	first := code(r.t, r.wait(ana, 1)[0].Text)
	c.Move(11 * time.Minute)
	if got := dc.say(cidDiscordDM, cidOnDiscord, "/link "+first); !strings.Contains(got, "does not fit") {
		r.t.Errorf("an old code: %q", got)
	}
	r.say(ana, 11, "/link")
	right := code(r.t, r.wait(ana, 2)[1].Text)
	for i := range 5 {
		if got := dc.say(doraDiscordDM, doraOnDiscord, fmt.Sprintf("/link AAAA-AAA%c", 'B'+i)); !strings.Contains(got, "does not fit") {
			r.t.Errorf("wrong code %d: %q", i, got)
		}
	}
	if got := dc.say(doraDiscordDM, doraOnDiscord, "/link "+right); !strings.Contains(got, "too many") {
		r.t.Errorf("after five wrong codes: %q", got)
	}
	if got := dc.say(cidDiscordDM, cidOnDiscord, "/link nonsense"); !strings.Contains(got, "is not what /link takes") {
		r.t.Errorf("no code at all: %q", got)
	}
	if got := dc.say(cidDiscordDM, cidOnDiscord, "/link "+right); !strings.HasPrefix(got, "Linked") {
		r.t.Errorf("somebody else's tries: %q", got)
	}
	if got := dc.say(cidDiscordDM, cidOnDiscord, "/link "+right); !strings.Contains(got, "does not fit") {
		r.t.Errorf("again: %q", got)
	}
}
