//go:build !race

package crashtest

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley/channels/slack/slacktest"
)

// onSlack is a Slack with a few people, each in a direct message with the bot.
func onSlack(w *town) network {
	count := &countdown{kill: func() { w.d.kill() }}
	s := slacktest.Start(w.t, slacktest.Options{NoLimits: true, Seed: 7, PingEvery: 200 * time.Millisecond, AckWithin: time.Second,
		OnPosted: count.taken, OnEdited: count.taken, Retries: slices.Repeat([]time.Duration{200 * time.Millisecond}, 500)})
	const people = 8
	user := func(chat int) string { return fmt.Sprintf("U0PERSON%02d", chat) }
	dm := func(chat int) string { return fmt.Sprintf("D0PERSON%02d", chat) }
	for chat := range people {
		s.AddUser(slacktest.User{ID: user(chat), Name: fmt.Sprintf("p%d", chat)})
		s.AddChannel(slacktest.Channel{ID: dm(chat), Kind: slacktest.IM, Members: []string{user(chat)}})
	}
	const post = "chat.postMessage"
	return network{
		channel: fmt.Sprintf(`{name: work, type: slack, bot_token: "%s", app_token: "%s", api_url: "%s", access: {dm: open}}`, s.Team(0).Token, s.App().Token, s.APIURL()),
		chats:   people,
		write:   func(chat int, text string) { s.Say(slacktest.Say{Channel: dm(chat), User: user(chat), Text: text}) },
		shown: func(chat int) (all []string) {
			for _, m := range s.View().Sent(dm(chat)) {
				all = append(all, m.Shown())
			}
			return all
		},
		wait: func(ctx context.Context, cond func() bool) error {
			return s.WaitFor(ctx, func(slacktest.View) bool { return cond() })
		},
		ready:   func() bool { return s.View().Sockets() > 0 },
		pending: func() int { return s.View().Pending() },
		trouble: func() { s.Disturb(slacktest.Faults{Redeliver: 0.3, Drop: 0.02}) },
		strike: func(n int) {
			s.Disturb(slacktest.Faults{Redeliver: 0.3, LoseAck: 0.1, Drop: 0.05, Reorder: 3})
			switch n % 4 {
			case 0:
				s.CutSockets()
			case 1:
				s.AddFault(slacktest.Fault{Method: post, Do: slacktest.CutAfter, Times: 1})
			case 2:
				s.AddFault(slacktest.Fault{Method: post, Do: slacktest.Reply, Status: 429, After: time.Second, Times: 1})
			case 3:
				s.AddFault(slacktest.Fault{Method: post, Do: slacktest.Delay, After: 300 * time.Millisecond, Times: 3})
			}
		},
		calm:  func() { s.ClearFaults(); s.Disturb(slacktest.Faults{}) },
		taken: count.from,
		trace: func() tracing {
			return tracing{reader: &socketReader{came: map[string]int{}, tail: map[string]string{}}}
		},
	}
}

// countdown kills the daemon when the network has taken so many messages and edits, and has not said so.
type countdown struct {
	kill func()
	mu   sync.Mutex
	left int // 0: no more are counted
}

func (c *countdown) from(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = n
}

func (c *countdown) taken(slacktest.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left == 0 {
		return
	}
	if c.left--; c.left == 0 {
		c.kill()
	}
}

// socketReader follows Socket Mode: frames that come are text, those that go out are masked (RFC 6455, section 5.3).
type socketReader struct {
	came map[string]int    // when an envelope was read, by its id
	tail map[string]string // what was read last on a connection: an envelope may be cut
}

var tracedEnvelope = regexp.MustCompile(`^env-[A-Za-z0-9]+`)

// got notes envelopes with a message of a person: only those are journalled.
func (s *socketReader) got(r *reader, p pending, data string) {
	const name = `envelope_id\":\"`
	data = s.tail[p.fd] + data
	if s.tail[p.fd] = data[max(0, len(data)-len(name)):]; strings.Contains(data, name) {
		s.tail[p.fd] = data[strings.LastIndex(data, name):]
	}
	parts := strings.Split(data, name)
	for _, part := range parts[1:] {
		if id := tracedEnvelope.FindString(part); id != "" && strings.Contains(part, "client_msg_id") {
			if _, known := s.came[id]; !known {
				s.came[id] = r.line
			}
		}
	}
}

func (s *socketReader) wrote(r *reader, p pending) {
	raw := unescaped(quoted(p.data))
	if len(raw) < 6 || raw[0] != 0x81 || raw[1]&0x80 == 0 || int(raw[1]&0x7f) != len(raw)-6 {
		return // no short masked text frame
	}
	text := make([]byte, len(raw)-6)
	for i := range text {
		text[i] = raw[6+i] ^ raw[2+i%4]
	}
	var said struct {
		ID string `json:"envelope_id"`
	}
	if json.Unmarshal(text, &said) != nil {
		return
	}
	if at, ok := s.came[said.ID]; ok {
		r.acked("envelope "+said.ID, false, at)
	}
}

// unescaped undoes strace's escapes, which are C's.
func unescaped(s string) []byte {
	var out []byte
	plain := map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', 'v': '\v', 'f': '\f', '"': '"', '\\': '\\'}
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			out = append(out, s[i])
			continue
		}
		i++
		if c, ok := plain[s[i]]; ok {
			out = append(out, c)
			continue
		}
		end := i
		for end < len(s) && end < i+3 && s[end] >= '0' && s[end] <= '7' {
			end++
		}
		n, err := strconv.ParseUint(s[i:end], 8, 8)
		if err != nil {
			return nil
		}
		out = append(out, byte(n))
		i = end - 1
	}
	return out
}
