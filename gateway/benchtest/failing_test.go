package benchtest

import (
	"time"

	"parley/agentloop/llm/llmtest"
	"parley/channels/telegram/telegramtest"
)

// broken are chats whose model fails, each in another way, while others go on: it answers 500, asks to wait, or never answers.
var broken = []struct {
	say   string
	reply llmtest.Reply
}{{"answer 500", llmtest.Failing(500)}, {"ask to wait", llmtest.TooMany("600")}, {"hang", llmtest.Hang()}}

// breaks is how the model fails what it is asked; false: it does not.
func breaks(asked string) (llmtest.Reply, bool) {
	for _, b := range broken {
		if asked == b.say {
			return b.reply, true
		}
	}
	return llmtest.Reply{}, false
}

// failing is what twenty people wait for an answer, first by themselves, then while the same model fails three others.
func (r *bench) failing() {
	for round := range r.rounds {
		for _, who := range r.gateways(round) {
			w := newWorld(20, 20*time.Millisecond)
			var others []*chat
			for i := range broken {
				c := &chat{user: telegramtest.User{ID: int64(5000 + i), First: "F"}, came: make(chan time.Time, 1)}
				w.byID[c.user.ID], others = c, append(others, c)
				w.tg.AddPrivate(c.user)
			}
			w.watchPolls(r.b.Context())
			p := r.bin.start(r.b, who, w, r.dir())
			p.ready(w)
			quiet := drive(r.b, w, p, 500*time.Millisecond, 3*time.Second)
			for i, c := range others {
				w.write(c, broken[i].say)
			}
			busy := drive(r.b, w, p, 500*time.Millisecond, 3*time.Second)
			p.kill()
			w.close()
			r.note("failing quiet", who, quiet.p95)
			r.note("failing busy", who, busy.p95)
			r.note("failing ratio", who, busy.p95/quiet.p95)
			r.lost["failing "+names[who]] += quiet.lost + busy.lost
		}
	}
}
