//go:build !race

package crashtest

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"parley/workspace/store"
)

// verdict is what people saw, counted.
type verdict struct {
	messages, lost, disordered, misrouted, givenUp int
	twice                                          int
	twiceIn                                        map[int]int // by the life that sent the second one
	marked                                         int         // answers that say that they may be repeats
}

// judge reads what everybody has seen on the network and compares it with what they wrote. refused are the markers
// of messages that the daemon ended visibly without an answer.
func (w *world) judge(refused map[string]bool) verdict {
	v := verdict{twiceIn: map[int]int{}}
	for c := 1; c <= chatsAtOnce; c++ {
		w.judgeChat(&v, c, refused)
	}
	return v
}

func (w *world) judgeChat(v *verdict, c int, refused map[string]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := &w.sent[c]
	times := map[string]int{}
	newest, news := "", 0
	for _, m := range w.wire.tg.View().Sent(int64(c)) {
		life := w.born[messageID{m.Chat, m.ID}]
		if strings.Contains(m.Text, "(maybe a repeat)") {
			v.marked++
		}
		if strings.Contains(m.Text, "fresh session") {
			if news++; news > l.news {
				v.twice++
				v.twiceIn[life]++
			}
		}
		again := false
		for _, k := range marker.FindAllString(m.Text, -1) {
			if !slices.Contains(l.asked, k) {
				v.misrouted++
				w.t.Errorf("chat %d got %q, which nobody asked there", c, m.Text)
				continue
			}
			times[k]++
			again = again || times[k] > 1 && !strings.Contains(m.Text, "no command")
			if times[k] > 1 || isCommand(k, c) {
				continue // commands run beside the turns
			}
			if k < newest {
				v.disordered++
				w.t.Errorf("chat %d: %s came behind %s, in message %d of life %d:\n%s", c, k, newest, m.ID, life, w.around(int64(c), m.ID))
			}
			newest = max(newest, k)
		}
		if again || strings.Contains(m.Text, "no command") && repeats(times, m.Text) {
			v.twice++
			v.twiceIn[life]++
		}
	}
	v.messages += len(l.asked) + l.news
	for _, k := range l.asked {
		switch {
		case times[k] > 0:
		case refused[k]:
			v.givenUp++
		default:
			v.lost++
			w.t.Errorf("chat %d has no answer to %s", c, k)
		}
	}
	if news < l.news {
		v.lost += l.news - news
		w.t.Errorf("chat %d: %d of %d /new were answered", c, news, l.news)
	}
}

// around is what a chat held before a message, for the reader of a failure.
func (w *world) around(chat, id int64) string {
	var b strings.Builder
	for _, m := range w.wire.tg.View().Messages(chat) {
		if m.ID > id-12 && m.ID <= id {
			fmt.Fprintf(&b, "%d life %d edits %d deleted %v %s: %s\n", m.ID, w.born[messageID{chat, m.ID}], len(m.Edits), m.Deleted, m.From.First, m.Text)
		}
	}
	return b.String()
}

func repeats(times map[string]int, text string) bool { return times[marker.FindString(text)] > 1 }

// isCommand says whether talk wrote the message as a command.
func isCommand(k string, c int) bool {
	var chat, n int
	_, err := fmt.Sscanf(k, "c%02dn%04d", &chat, &n)
	return err == nil && chat == c && (c+n)%10 == 3
}

// invariants are what holds in the books of a daemon that has ended with everything answered: each query counts
// what must not be.
func invariants() map[string]string {
	const answers = `(SELECT COUNT(*) FROM outbound o WHERE o.id = i.run_id AND o.state = 'final')`
	return map[string]string{
		"runs that live":              `SELECT COUNT(*) FROM runs WHERE state IN ('running', 'waiting', 'paused')`,
		"inputs that wait":            `SELECT COUNT(*) FROM inputs WHERE state IN ('queued', 'taken', 'stale')`,
		"parts that are not at rest":  `SELECT COUNT(*) FROM parts WHERE state IN ('ready', 'sending', 'unknown', 'live')`,
		"answers without their text":  `SELECT COUNT(*) FROM outbound WHERE state = 'open'`,
		"answered inputs, not once":   `SELECT COUNT(*) FROM inputs i WHERE mode = 'turn' AND state = 'answered' AND ` + answers + ` <> 1`,
		"inputs that failed silently": `SELECT COUNT(*) FROM inputs i WHERE mode = 'turn' AND state = 'failed' AND ` + answers + ` <> 1`,
		"commands without one reply":  `SELECT COUNT(*) FROM inputs i WHERE mode = 'command' AND (SELECT COUNT(*) FROM outbound o WHERE o.key = 'input:' || i.id || ':reply') <> 1`,
		"other ends of inputs":        `SELECT COUNT(*) FROM inputs WHERE state NOT IN ('answered', 'failed')`,
		"gaps in transcripts":         `SELECT COUNT(*) FROM (SELECT 1 FROM entries GROUP BY session_id HAVING MIN(n) <> 1 OR MAX(n) <> COUNT(*))`,
		"inputs not in a transcript":  `SELECT COUNT(*) FROM inputs i WHERE mode = 'turn' AND NOT EXISTS (SELECT 1 FROM entries e WHERE e.input_id = i.id)`,
	}
}

// audit checks the store's own invariants, and returns the markers of inputs that ended without an answer.
func (w *world) audit() map[string]bool {
	w.t.Helper()
	db := w.books()
	defer db.Close()
	for what, query := range invariants() {
		w.none(what, query)
	}
	for c := 1; c <= chatsAtOnce; c++ {
		w.auditChat(db, c)
	}
	refused := map[string]bool{}
	for _, text := range w.rows(`SELECT text FROM inputs WHERE state = 'failed'`) {
		refused[marker.FindString(text)] = true
	}
	return refused
}

// auditChat checks that each message is in the journal once, and that each /new was done once.
func (w *world) auditChat(db *sql.DB, c int) {
	l := &w.sent[c]
	var inputs, gen int
	const count = `SELECT COUNT(*) FROM inputs WHERE source = 'telegram' AND key LIKE 'm:' || ? || ':%'`
	if err := db.QueryRow(count, fmt.Sprint(c)).Scan(&inputs); err != nil {
		w.t.Fatal(err)
	}
	if inputs != len(l.updates) {
		w.t.Errorf("chat %d wrote %d messages, the journal has %d", c, len(l.updates), inputs)
	}
	const generation = `SELECT COALESCE(MAX(gen), 0) FROM sessions WHERE key LIKE '%:telegram:%:dm:' || ?`
	if err := db.QueryRow(generation, fmt.Sprint(c)).Scan(&gen); err != nil {
		w.t.Fatal(err)
	}
	if gen != 1+l.news && len(l.updates) > 0 {
		w.t.Errorf("chat %d sent /new %d times, its session is at generation %d", c, l.news, gen)
	}
}

// verify opens the store itself for its own full check.
func (w *world) verify() {
	w.t.Helper()
	s, err := store.Open(context.WithoutCancel(w.t.Context()), store.Options{Dir: w.dataDir(), BallastBytes: -1})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := s.Verify(w.t.Context()); err != nil {
		w.t.Errorf("full check: %v", err)
	}
	if err := s.Close(); err != nil {
		w.t.Error(err)
	}
}

// report is judged, and fails where the kills met nothing: then nothing is proven.
func (w *world) report(r row) {
	w.t.Helper()
	met := w.met()
	if unknown := w.judged(r); !met {
		w.t.Errorf("the kills met nothing: %d updates given again, %d model calls again, %d unknown parts; each must have occurred",
			w.wire.again.Load(), w.wire.reasked.Load(), unknown)
	}
}

// met says whether the kills met work: an update was given again, a model asked again, and a part was in doubt.
func (w *world) met() bool {
	return w.wire.again.Load() > 0 && w.wire.reasked.Load() > 0 && strings.Contains(w.log.String(), doubted)
}

// doubted is what the gateway logs of a part that was being sent when it was killed.
const doubted = "a part may have been sent"

// judged audits and judges a world whose daemon has ended, prints the table, and fails what must not be. It returns
// how many parts were in doubt.
func (w *world) judged(r row) (unknown int) {
	w.t.Helper()
	refused := w.audit()
	w.verify()
	v := w.judge(refused)
	log := w.log.String()
	unknown = strings.Count(log, doubted)
	for _, bad := range []string{"store store unit failed", "panic", "DATA RACE", "left without its lane"} {
		if i := strings.Index(log, bad); i >= 0 {
			w.t.Errorf("the log tells %d times of %q, first: %s", strings.Count(log, bad), bad, log[i:min(len(log), i+300)])
		}
	}
	points := map[string]int{}
	var ready, next []time.Duration
	for _, k := range w.kills {
		points[k.point]++
		if k.ready > 0 {
			ready = append(ready, k.ready)
		}
		if k.next > 0 {
			next = append(next, k.next)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(points)) {
		w.t.Logf("  %-28s %4d kills", p, points[p])
	}
	w.t.Logf("kills %d, messages %d, lost %d, out of order %d, misrouted %d, given up visibly %d, dead letters %d",
		len(w.kills), v.messages, v.lost, v.disordered, v.misrouted, v.givenUp, strings.Count(log, "dead letter"))
	w.t.Logf("updates given again %d, model asked again %d of %d, parts unknown %d", w.wire.again.Load(), w.wire.reasked.Load(), w.wire.asked.Load(), unknown)
	w.t.Logf("answers twice %d (%s), marked as maybe a repeat %d", v.twice, w.worst(v.twiceIn), v.marked)
	w.t.Logf("SIGKILL to next answer: median %v, max %v; start to first poll: median %v, max %v", median(next), longest(next), median(ready), longest(ready))
	if v.lost+v.disordered+v.misrouted > 0 {
		w.t.Errorf("lost %d, out of order %d, misrouted %d; all must be 0", v.lost, v.disordered, v.misrouted)
	}
	if limit := r.mayRepeat(); v.twice > limit*len(w.kills) {
		w.t.Errorf("%d answers came twice after %d kills, the limit is %d a kill", v.twice, len(w.kills), limit)
	}
	return unknown
}

// worst tells how the repeats spread over the kills that they came after.
func (w *world) worst(by map[int]int) string {
	most, at := 0, "none"
	for life, n := range by {
		if n > most && life >= 2 && life-2 < len(w.kills) {
			most, at = n, w.kills[life-2].point
		}
	}
	return fmt.Sprintf("after %d of the kills, at most %d, at %q", len(by), most, at)
}

func median(d []time.Duration) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[len(d)/2].Round(100 * time.Microsecond)
}

func longest(d []time.Duration) time.Duration {
	if len(d) == 0 {
		return 0
	}
	return slices.Max(d).Round(100 * time.Microsecond)
}
