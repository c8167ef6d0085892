package gateway_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"parley/channels/telegram/telegramtest"
	"parley/workspace"
)

// ask says a line and returns the reply that it gets.
func (r *rig) ask(chat telegramtest.Chat, from int64, line string) string {
	r.t.Helper()
	n := len(r.tg.View().Sent(chat.ID))
	r.say(chat, from, line)
	got := r.wait(chat, n+1)
	return got[len(got)-1].Text
}

func has(t *testing.T, got string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("%q lacks %q", got, w)
		}
	}
}

// A chat writes into the session that it was switched to, also after a restart, and each keeps its own transcript.
func switchesSessions(r *rig) {
	chat := r.person(1)
	r.ask(chat, 1, "in the first")
	has(r.t, r.ask(chat, 1, "/session new holiday"), "new session holiday", "/session switch main")
	r.ask(chat, 1, "in the second")
	has(r.t, r.ask(chat, 1, "/session"), "holiday", ":name:holiday")
	has(r.t, r.ask(chat, 1, "/session new holiday"), "There is a session")
	has(r.t, r.ask(chat, 1, "/why"), "switch:session")
	r.restart()
	r.ask(chat, 1, "still in the second")
	has(r.t, r.ask(chat, 1, "/session rename Great trip"), "Great trip")
	has(r.t, r.ask(chat, 1, "/session list first"), "in the first") // an owner has the sessions of all
	has(r.t, r.ask(chat, 1, "/session list second"), "Great trip")
	has(r.t, r.ask(chat, 1, "/session switch main"), "writes into")
	r.ask(chat, 1, "first again")
	has(r.t, r.ask(chat, 1, "/export"), "in the first", "first again")
	has(r.t, r.ask(chat, 1, "/session switch great TRIP"), "Great trip")
	has(r.t, r.ask(chat, 1, "/session switch nowhere"), "There is no session")
	has(r.t, r.ask(chat, 1, "/session sideways"), "is not what /session takes")
	got := r.rows(`SELECT s.key LIKE '%holiday', COUNT(*) FROM entries e JOIN sessions s ON s.id = e.session_id WHERE e.role = 'user' GROUP BY 1 ORDER BY 1`)
	if strings.Join(got, " ") != "0|2 1|2" {
		r.t.Errorf("messages by session: %q", got)
	}
}

// A message that came together with the switch goes where the switch leads.
func switchBeforeTheNextMessage(r *rig) {
	chat := r.person(1)
	r.ask(chat, 1, "hello")
	r.restart(func() {
		for _, line := range []string{"/session new a", "one", "/session switch main", "two", "/session switch a", "three"} {
			r.say(chat, 1, line)
		}
	})
	r.wait(chat, 7)
	r.stored("where the messages went", `SELECT i.text || ' ' || (s.key LIKE '%:name:a') FROM entries e JOIN inputs i ON i.id = e.input_id JOIN sessions s ON s.id = e.session_id
		WHERE e.role = 'user' ORDER BY i.seq`, "hello 0", "one 1", "two 0", "three 1")
}

// T16: nobody is led into what is not theirs, and what a group reads is the group's alone.
func switchedOnlyToWhatItsPersonReaches(r *rig) {
	boss, guest := r.person(1), r.person(2)
	r.ask(boss, 1, "a secret of the owner")
	r.ask(guest, 2, "hello")
	keys := r.rows(`SELECT key FROM sessions ORDER BY id`)
	has(r.t, r.ask(guest, 2, "/session switch "+keys[0]), "There is no session")
	if got := r.ask(guest, 2, "/session list"); strings.Contains(got, "secret") || !strings.Contains(got, "hello") {
		r.t.Errorf("a guest lists %q", got)
	}
	has(r.t, r.ask(boss, 1, "/session switch "+keys[1]), "hello")
	has(r.t, r.ask(boss, 1, "/session"), keys[1])
	group := r.group()
	has(r.t, r.ask(group, 1, "/session switch "+keys[0]), "There is no session")
	has(r.t, r.ask(group, 2, "/session switch main"), "only an owner")
	has(r.t, r.ask(group, 1, "/session list"), "Not in a group")
	has(r.t, r.ask(group, 1, "/session new plans"), "plans")
	has(r.t, r.ask(group, 2, "/session"), ":name:plans")

	// A role that is taken away takes the way with it.
	r.restart(func() {
		r.change(r.boss(workspace.Owner), r.boss(workspace.Member))
	})
	if got := r.ask(boss, 1, "/session"); strings.Contains(got, keys[1]) {
		r.t.Errorf("who is an owner no more is still in %q", got)
	}
}

// A transcript that is too long for a message goes as a file, in the form that was asked for.
func longExport(r *rig) {
	chat := r.person(1)
	for i := range 4 {
		r.ask(chat, 1, fmt.Sprintf("line %d %s", i, strings.Repeat("of many words ", 60)))
	}
	for form, name := range map[string]string{"": "session.md", " json": "session.json"} {
		n := len(r.tg.View().Sent(chat.ID))
		r.say(chat, 1, "/export"+form)
		got := r.wait(chat, n+2)
		has(r.t, got[n].Text, "Here are the 16 lines")
		if len(got[n+1].Files) != 1 {
			r.t.Fatalf("%+v", got[n+1])
		}
		f := got[n+1].Files[0]
		if f.Name != name || !strings.Contains(string(f.Data), "line 3 of many words") || form != "" && !json.Valid(f.Data) {
			r.t.Errorf("%s: %.300s", f.Name, f.Data)
		}
	}
}
