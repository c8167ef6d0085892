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

// second is a fake Discord beside the rig's Telegram: Ana has a DM there.
type second struct {
	*discordtest.Server
	t *testing.T
}

const (
	anaOnDiscord   = "800000000000000001"
	benOnDiscord   = "800000000000000002"
	anaDiscordDM   = "900000000000000006"
	benDiscordDM   = "900000000000000007"
	discordChannel = `, {name: dc, type: discord, token: "%s", api_url: "%s", access: {dm: open}}`
)

func newSecond(t *testing.T) second {
	t.Helper()
	s := discordtest.New(discordtest.Options{NoLimits: true})
	t.Cleanup(s.Close)
	s.AddUser(discordtest.User{ID: anaOnDiscord, Name: "ana", Global: "Ana"})
	s.AddUser(discordtest.User{ID: benOnDiscord, Name: "ben", Global: "Ben"})
	s.AddChannel(discordtest.Channel{ID: anaDiscordDM, Type: discordtest.Direct, With: anaOnDiscord})
	s.AddChannel(discordtest.Channel{ID: benDiscordDM, Type: discordtest.Direct, With: benOnDiscord})
	return second{s, t}
}

func (s second) more() string { return fmt.Sprintf(discordChannel, s.Token(), s.URL()) }

// say writes to the bot and gives the answer: the next message in the chat.
func (s second) say(chat, from, text string) string {
	s.t.Helper()
	before := len(s.Sent(chat))
	s.Write(discordtest.In{Channel: chat, From: from, Text: text})
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	if err := s.WaitFor(ctx, func() bool { return len(s.Sent(chat)) > before }); err != nil {
		s.t.Fatalf("no answer to %q: %v", text, err)
	}
	return s.Sent(chat)[before].Text
}

// T09: the code asked for on one network and given on the other joins two users into one person, tells both, and gives
// neither a right of the other's.
func TestT09_LinkJoinsTwoNetworksAndRaisesNoRole(t *testing.T) {
	t.Parallel()
	dc := newSecond(t)
	r := newRig(t, setup{more: dc.more(), extra: "people: [{id: ana, role: owner, accounts: [{channel: tg, user: \"11\"}]}]\nsessions: {dm_scope: per-peer}"})
	r.logged("channel=dc state=ready", 1) // a first message that comes before is lost to everybody
	ana := r.person(11)
	r.say(ana, 11, "/link")
	right := code(t, r.wait(ana, 1)[0].Text)
	if got := dc.say(anaDiscordDM, anaOnDiscord, "/whoami"); !strings.Contains(got, "guest") {
		t.Errorf("before: %q", got)
	}
	if got := dc.say(anaDiscordDM, anaOnDiscord, "/link AAAA-BBBB"); !strings.Contains(got, "does not fit") {
		t.Errorf("a wrong code: %q", got)
	}
	if got := dc.say(anaDiscordDM, anaOnDiscord, "/link "+strings.ToLower(right)); !strings.HasPrefix(got, "Linked: here and on telegram") {
		t.Errorf("the right code: %q", got)
	}
	if got := r.wait(ana, 2)[1].Text; !strings.HasPrefix(got, "You are linked") || !strings.Contains(got, "discord") {
		t.Errorf("who asked was told %q", got)
	}
	if got := dc.say(benDiscordDM, benOnDiscord, "/link "+right); !strings.Contains(got, "does not fit") {
		t.Errorf("a code that was used: %q", got)
	}
	if got := dc.say(anaDiscordDM, anaOnDiscord, "/whoami"); !strings.Contains(got, "guest") || !strings.Contains(got, "ana") {
		t.Errorf("after: %q", got)
	}
	r.say(ana, 11, "/whoami")
	if got := r.wait(ana, 3)[2].Text; !strings.Contains(got, "owner") {
		t.Errorf("the owner is %q", got)
	}
	// Settings that guests may not change stay the owner's, though they are one person.
	if got := dc.say(anaDiscordDM, anaOnDiscord, "/send off"); !strings.Contains(got, "owner") {
		t.Errorf("an owner's setting: %q", got)
	}
	// With dm_scope per-peer both talk in one session now.
	r.say(ana, 11, "/session")
	const session = "agent:assistant:person:ana"
	mine, hers := r.wait(ana, 4)[3].Text, dc.say(anaDiscordDM, anaOnDiscord, "/session")
	if !strings.Contains(mine, session) || !strings.Contains(hers, session) {
		t.Errorf("sessions: %q and %q", mine, hers)
	}
	who, err := r.g.Control().People.Store.Human("ana")
	if err != nil || len(who.Accounts) != 2 || who.Role != workspace.Owner {
		t.Errorf("person: %+v %v", who, err)
	}
	for _, a := range who.Accounts {
		if a.Network == "discord" && a.Most != workspace.Guest {
			t.Errorf("the linked account may be %q", a.Most)
		}
	}
}

// Five wrong codes close the door for who tried, for as long as a code lives; an old code opens nothing.
func TestT09_LinkCodesExpireAndTriesAreCounted(t *testing.T) {
	t.Parallel()
	c, dc := &clock{}, newSecond(t)
	r := newRig(t, setup{more: dc.more(), opt: c.in})
	r.logged("channel=dc state=ready", 1)
	ana := r.person(11)
	r.say(ana, 11, "/link")
	first := code(t, r.wait(ana, 1)[0].Text)
	c.Move(11 * time.Minute)
	if got := dc.say(anaDiscordDM, anaOnDiscord, "/link "+first); !strings.Contains(got, "does not fit") {
		t.Errorf("an old code: %q", got)
	}
	r.say(ana, 11, "/link")
	right := code(t, r.wait(ana, 2)[1].Text)
	for i := range 5 {
		if got := dc.say(benDiscordDM, benOnDiscord, fmt.Sprintf("/link AAAA-AAA%c", 'B'+i)); !strings.Contains(got, "does not fit") {
			t.Errorf("wrong code %d: %q", i, got)
		}
	}
	if got := dc.say(benDiscordDM, benOnDiscord, "/link "+right); !strings.Contains(got, "too many") {
		t.Errorf("after five wrong codes: %q", got)
	}
	if got := dc.say(anaDiscordDM, anaOnDiscord, "/link nonsense"); !strings.Contains(got, "is not what /link takes") {
		t.Errorf("no code at all: %q", got)
	}
	if got := dc.say(anaDiscordDM, anaOnDiscord, "/link "+right); !strings.HasPrefix(got, "Linked") {
		t.Errorf("somebody else's tries: %q", got)
	}
	if got := dc.say(anaDiscordDM, anaOnDiscord, "/link "+right); !strings.Contains(got, "does not fit") {
		t.Errorf("again: %q", got)
	}
}
