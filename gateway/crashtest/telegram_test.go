//go:build !race

package crashtest

import (
	"context"
	"fmt"
	"regexp"
	"strconv"

	"parley/channels/telegram/telegramtest"
)

// onTelegram is a Telegram with a few people, each in a chat with the bot.
func onTelegram(w *town) network {
	s := telegramtest.Start(w.t, telegramtest.Options{NoLimits: true})
	w.wake = func() { s.Raw("poll", "{}") } // who waits for the network looks again
	const people = 8
	user := func(chat int) telegramtest.User {
		return telegramtest.User{ID: int64(100 + chat), First: fmt.Sprintf("P%d", chat)}
	}
	for chat := range people {
		s.AddPrivate(user(chat))
	}
	return network{
		channel: fmt.Sprintf(`{name: tg, type: telegram, token: "%s", api_url: "%s", access: {dm: open}}`, s.Token(), s.URL()),
		chats:   people,
		write: func(chat int, text string) {
			s.Message(telegramtest.In{Chat: user(chat).ID, From: user(chat), Text: text})
		},
		shown: func(chat int) (all []string) {
			for _, m := range s.View().Sent(user(chat).ID) {
				all = append(all, m.Text)
			}
			return all
		},
		wait: func(ctx context.Context, cond func() bool) error {
			return s.WaitFor(ctx, func(telegramtest.View) bool { return cond() })
		},
		ready: func() bool { return s.View().Polling() },
		trace: func() tracing {
			return tracing{reader: &pollReader{came: map[int64]int{}, reading: map[string][]int64{}, tail: map[string]string{}}}
		},
	}
}

var (
	tracedID  = regexp.MustCompile(`update_id\\":(\d+),`)
	tracedAck = regexp.MustCompile(`/getUpdates .*offset=(\d+)`)
)

// pollReader follows getUpdates, which acknowledges what came with the call before.
type pollReader struct {
	came    map[int64]int      // when an update was read, the last byte of its answer included
	reading map[string][]int64 // updates of the answer that a connection is in the middle of
	tail    map[string]string  // the end of what was read last on a connection: an id may be cut
	highest int64              // update that was confirmed
}

func (l *pollReader) wrote(r *reader, p pending) {
	if m := tracedAck.FindStringSubmatch(p.data); m != nil {
		offset, _ := strconv.ParseInt(m[1], 10, 64) // digits
		for id := max(l.highest+1, offset-1000); id < offset; id++ {
			if at, ok := l.came[id]; ok {
				r.acked("update "+strconv.FormatInt(id, 10), false, at)
			}
		}
		l.highest = max(l.highest, offset-1)
	}
	delete(l.reading, p.fd)
	delete(l.tail, p.fd)
}

func (l *pollReader) got(r *reader, p pending, data string) {
	data = l.tail[p.fd] + data
	l.tail[p.fd] = data[max(0, len(data)-40):]
	for _, m := range tracedID.FindAllStringSubmatch(data, -1) {
		id, _ := strconv.ParseInt(m[1], 10, 64) // digits
		l.reading[p.fd] = append(l.reading[p.fd], id)
	}
	for _, id := range l.reading[p.fd] {
		l.came[id] = r.line
	}
}
