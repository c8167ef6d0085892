package gateway_test

import (
	"context"
	"fmt"
	"regexp"
	"sync"
	"testing"
	"time"

	"parley/channels/discord/discordtest"
	"parley/channels/slack/slacktest"
	"parley/gateway"
)

// storm is a network that does all it may do to a message, short of losing it.
type storm struct {
	name, more string
	opt        func(*gateway.Options)

	say func(person int, text string)
	// seen are the texts that a person has from the bot.
	seen func(person int) []string
	wait func(ctx context.Context, cond func() bool) error
	// strike does the next bad thing.
	strike func(n int)
	calm   func()
}

const (
	stormPeople = 6
	stormEach   = 12 / slower
)

// ride has everybody write while the network rages. Each message is answered once, to who wrote it.
func ride(t *testing.T, s storm) {
	t.Helper()
	r := newRig(t, setup{more: s.more, opt: s.opt, extra: "sessions: {queue: {mode: followup, cap: 100, debounce: 1ms}}\n" +
		"replies: {typing_after: 1m, first_sign: 1m, placeholder_after: 1m}"})
	r.logged("channel="+s.name+" state=ready", 1) // what is written to nobody yet is not for us
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	answered := func(n int) {
		t.Helper()
		if err := s.wait(ctx, func() bool { return len(marks(s)) >= n }); err != nil {
			got := marks(s)
			var missing []string
			for p := range stormPeople {
				for m := range stormEach {
					if mark := fmt.Sprintf("p%dm%dx", p, m); len(got[mark]) == 0 {
						missing = append(missing, mark)
					}
				}
			}
			t.Fatalf("%d are answered, want %d, not %v: %v", len(got), n, missing, err)
		}
	}
	for m := range stormEach {
		var wg sync.WaitGroup
		for p := range stormPeople {
			wg.Go(func() { s.say(p, fmt.Sprintf("p%dm%dx", p, m)) })
		}
		if m == 0 { // rooms that are known can be read back, where the network has that
			answered(stormPeople)
		} else {
			s.strike(m)
		}
		wg.Wait()
		answered((m + 1) * stormPeople / 2)
	}
	const all = stormPeople * stormEach
	s.calm()
	answered(all)
	for mark, where := range marks(s) {
		if len(where) != 1 || fmt.Sprintf("p%dm", where[0]) != mark[:len(fmt.Sprintf("p%dm", where[0]))] {
			t.Errorf("%s is answered to the people %v", mark, where)
		}
	}
	if got := r.rows(`SELECT count(*) FROM runs`); got[0] != fmt.Sprint(all) {
		t.Errorf("%s turns, want %d", got[0], all)
	}
}

var stormMark = regexp.MustCompile(`p\d+m\d+x`)

// marks are the people who have an answer to each message.
func marks(s storm) map[string][]int {
	got := map[string][]int{}
	for p := range stormPeople {
		for _, text := range s.seen(p) {
			for _, mark := range stormMark.FindAllString(text, -1) {
				got[mark] = append(got[mark], p)
			}
		}
	}
	return got
}

// R03: Slack gives events again, late and out of order, loses acknowledgements and sockets.
func TestR03_StormOnSlack(t *testing.T) {
	t.Parallel()
	s := slacktest.Start(t, slacktest.Options{NoLimits: true, PingEvery: 200 * time.Millisecond, AckWithin: time.Second,
		Retries: []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second, 5 * time.Second, 5 * time.Second, 5 * time.Second}, Seed: 7})
	user := func(p int) string { return fmt.Sprintf("U0STORM%03d", p) }
	dm := func(p int) string { return fmt.Sprintf("D0STORM%03d", p) }
	for p := range stormPeople {
		s.AddUser(slacktest.User{ID: user(p), Name: fmt.Sprintf("p%d", p)})
		s.AddChannel(slacktest.Channel{ID: dm(p), Kind: slacktest.IM, Members: []string{user(p)}})
	}
	s.Disturb(slacktest.Faults{Redeliver: 0.3, LoseAck: 0.1, Drop: 0.05, Reorder: 3})
	ride(t, storm{
		name: "work",
		more: fmt.Sprintf(`, {name: work, type: slack, bot_token: "%s", app_token: "%s", api_url: "%s", access: {dm: open}}`, s.Team(0).Token, s.App().Token, s.APIURL()),
		say:  func(p int, text string) { s.Say(slacktest.Say{Channel: dm(p), User: user(p), Text: text}) },
		seen: func(p int) (all []string) {
			for _, m := range s.View().Sent(dm(p)) {
				all = append(all, m.Shown())
			}
			return all
		},
		wait: func(ctx context.Context, cond func() bool) error {
			return s.WaitFor(ctx, func(slacktest.View) bool { return cond() })
		},
		strike: func(n int) {
			switch n % 4 {
			case 0:
				s.CutSockets()
			case 1:
				s.AddFault(slacktest.Fault{Method: "chat.postMessage", Do: slacktest.CutAfter, Times: 1})
			case 2:
				s.AddFault(slacktest.Fault{Method: "chat.postMessage", Do: slacktest.Reply, Status: 429, After: time.Second, Times: 1})
			case 3:
				s.AddFault(slacktest.Fault{Method: "chat.postMessage", Do: slacktest.Delay, After: 300 * time.Millisecond, Times: 3})
			}
		},
		calm: func() { s.ClearFaults(); s.Disturb(slacktest.Faults{}) },
	})
}

// R03: Discord dispatches events twice and out of order, drops connections in the middle of one, ends sessions, and
// swallows what it has taken.
func TestR03_StormOnDiscord(t *testing.T) {
	t.Parallel()
	s := discordtest.Start(t, discordtest.Options{NoLimits: true, Seed: 7})
	user := func(p int) string { return fmt.Sprintf("8000000000000001%02d", p) }
	dm := func(p int) string { return fmt.Sprintf("9000000000000001%02d", p) }
	for p := range stormPeople {
		s.AddUser(discordtest.User{ID: user(p), Name: fmt.Sprintf("p%d", p)})
		s.AddChannel(discordtest.Channel{ID: dm(p), Type: discordtest.Direct, With: user(p)})
	}
	s.Gateway(func(f *discordtest.GatewayFault) { f.Repeat, f.Reorder = 0.3, 0.2 })
	ride(t, storm{
		name: "dc",
		more: fmt.Sprintf(discordChannel, s.Token(), s.URL()),
		say:  func(p int, text string) { s.Write(discordtest.In{Channel: dm(p), From: user(p), Text: text}) },
		seen: func(p int) (all []string) {
			for _, m := range s.Sent(dm(p)) {
				all = append(all, m.Text)
			}
			return all
		},
		wait: s.WaitFor,
		strike: func(n int) {
			const post = "POST /channels/{channel}/messages"
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
	})
}
