package gateway_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"parley/channels/discord/discordtest"
)

// On Discord the daemon offers its commands, and answers one for its sender alone in a server (T10: a question has buttons, the
// owner's press decides, and the buttons go away).
func TestT10_DiscordsCommandsAndApprovals(t *testing.T) {
	t.Parallel()
	const guild, room = "900000000000000001", "900000000000000002"
	s := newSecond(t)
	s.AddGuild(discordtest.Guild{ID: guild, Name: "Friends", Members: map[string][]string{anaOnDiscord: nil}})
	s.AddChannel(discordtest.Channel{ID: room, Type: discordtest.Text, Guild: guild, Name: "general"})
	more := fmt.Sprintf(`, {name: dc, type: discord, token: "%s", api_url: "%s", access: {dm: open, groups: open, require_mention: true}}`, s.Token(), s.URL())
	newRig(t, setup{more: more, script: acts("echo hello"), opt: withTools(newAct()),
		extra: fmt.Sprintf(`people: [{id: ana, role: owner, accounts: [{channel: dc, user: "%s"}]}]`, anaOnDiscord) + quiet})
	see := func(t *testing.T, what string, cond func() bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
		defer cancel()
		if err := s.WaitFor(ctx, cond); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	t.Run("commands are answered in time", func(t *testing.T) {
		see(t, "the menu", func() bool { return len(s.Menu("")) > 0 })
		for _, where := range []string{anaDiscordDM, room} {
			id, ok := s.Command(where, anaOnDiscord, "status", "")
			if !ok {
				t.Fatalf("/status is not offered: %v", s.Menu(""))
			}
			see(t, "an answer to /status", func() bool {
				a := s.Answer(id)
				return a.Type != 0 && !a.Original.Deferred && a.Original.Text != ""
			})
			a := s.Answer(id)
			if a.Late || a.Type != 5 || (a.Original.For == "") != (where == anaDiscordDM) {
				t.Errorf("/status in %s was answered by %+v", where, a)
			}
		}
	})
	t.Run("approvals are pressed", func(t *testing.T) {
		s.Write(discordtest.In{Channel: anaDiscordDM, From: anaOnDiscord, Text: "act"})
		var asked discordtest.Message
		see(t, "a question with buttons", func() bool {
			for _, m := range s.Sent(anaDiscordDM) {
				if len(m.Buttons) > 0 {
					asked = m
				}
			}
			return asked.ID != ""
		})
		id, ok := s.Press(anaDiscordDM, asked.ID, anaOnDiscord, asked.Buttons[0][0].ID)
		if !ok {
			t.Fatal("the button cannot be pressed")
		}
		see(t, "the buttons to go", func() bool {
			m, _ := s.Message(anaDiscordDM, asked.ID)
			return len(m.Buttons) == 0
		})
		see(t, "the answer", func() bool {
			all := s.Sent(anaDiscordDM)
			return strings.Contains(all[len(all)-1].Text, "acted 1")
		})
		m, _ := s.Message(anaDiscordDM, asked.ID)
		if a := s.Answer(id); a.Type != 6 || a.Late || m.Text == asked.Text {
			t.Errorf("pressed: %+v; the question became %q", a, m.Text)
		}
	})
}
