package gateway_test

import (
	"strings"

	"parley/channels"
)

// What others said in a group is quoted by the next turn, also when the gateway was started again in between.
func quotesOverARestart(r *rig) {
	group := r.group()
	r.say(group, 11, "@parley_test_bot hello")
	r.wait(group, 1)
	r.say(group, 11, "we meet at nine")
	r.stored("the line is taken", `SELECT count(*) FROM inputs WHERE text = 'we meet at nine'`, "1")
	r.restart()
	r.say(group, 12, "@parley_test_bot when do we meet?")
	r.wait(group, 2)
	bodies := r.bodies()
	if last := bodies[len(bodies)-1]; strings.Count(last, "we meet at nine") != 1 {
		r.t.Errorf("the turn quotes the line %d times, want once", strings.Count(last, "we meet at nine"))
	}
	r.say(group, 12, "@parley_test_bot thanks")
	r.wait(group, 3)
	bodies = r.bodies()
	last := bodies[len(bodies)-1]
	if _, asked, _ := strings.Cut(last, "## Now"); strings.Contains(asked, "we meet at nine") {
		r.t.Errorf("the next turn quotes the line again: %s", asked)
	}
}

// What somebody took back, or put in other words, before it was quoted: neither memory nor, after a restart, the journal
// hands the old words to a model.
func takenBackIsNotQuoted(r *rig, again bool) {
	const group, ana, ben = -5001, 31, 32
	n := r.mem
	remark := func(id, text string) channels.Inbound {
		in := r.wroteIn(group, ana, id, text)
		in.Mentioned = false
		n.offer(r.t, in)
		return in
	}
	ask := func(id string) string {
		r.t.Helper()
		before := len(n.have(r.peer(group)))
		n.offer(r.t, r.wroteIn(group, ben, id, "what did she say?"))
		r.sent(group, before+1)
		bodies := r.bodies()
		return bodies[len(bodies)-1]
	}
	ask("1")
	gone, other := remark("2", "my number is 555-1234"), remark("3", "the door code is 0000")
	remark("4", "we meet at nine")
	byModerator := deleted(gone)
	byModerator.From = channels.Sender{User: "mallory"}
	n.offer(r.t, byModerator, edited(other, "1", "there is a door code"))
	if again {
		r.restart()
	}
	got := ask("5")
	if strings.Contains(got, "555-1234") || strings.Contains(got, "0000") {
		r.t.Error("what was taken back is quoted")
	}
	if strings.Count(got, "there is a door code") != 1 || strings.Count(got, "we meet at nine") != 1 {
		r.t.Error("what was left is not quoted once")
	}
	if rows := r.rows(`SELECT count(*) FROM inputs WHERE text LIKE '%555-1234%'`); rows[0] != "0" {
		r.t.Errorf("the words are still in %s inputs", rows[0])
	}
	got = ask("6")
	if _, asked, _ := strings.Cut(got, "## Now"); strings.Contains(asked, "we meet at nine") {
		r.t.Errorf("quoted again: %s", asked)
	}
}
