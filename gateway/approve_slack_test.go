package gateway_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/agentloop/llm/llmtest"
	"parley/channels/slack/slacktest"
)

const (
	slackAna, slackBen, slackEve = "U0ANA00001", "U0BEN00001", "U0EVE00001"
	slackAnaDM, slackBenDM       = "D0ANA00001", "D0BEN00001"
)

// slackModes are the ways by which Slack's events come.
var slackModes = []string{"socket", "http"}

// slackActs is a daemon on a fake Slack with Ana, who owns it, and Ben, a member whom she lets run commands.
func slackActs(t *testing.T, mode string, act actTool) *slackRig {
	t.Helper()
	s := slacktest.Start(t, slacktest.Options{NoLimits: true, PingEvery: 200 * time.Millisecond})
	s.AddChannel(slacktest.Channel{ID: slackRoom, Name: "room", Kind: slacktest.Public, Members: []string{slackAna, slackBen, slackEve, s.Team(0).Bot.ID}})
	for id, name := range map[string]string{slackAna: "ana", slackBen: "ben", slackEve: "eve"} {
		s.AddUser(slacktest.User{ID: id, Name: name})
		s.AddChannel(slacktest.Channel{ID: "D" + id[1:], Kind: slacktest.IM, Members: []string{id}})
	}
	more := fmt.Sprintf(`, {name: work, type: slack, mode: %s, bot_token: "%s", app_token: "%s", signing_secret: "%s", api_url: "%s", access: {dm: open, groups: open, require_mention: true}}`,
		mode, s.Team(0).Token, s.App().Token, s.App().SigningSecret, s.APIURL())
	r := &slackRig{s: s, rig: newRig(t, setup{script: actsAndWrites, more: more, agent: ", tools: {by_role: {member: {exec: ask}}}", opt: withTools(act), extra: quiet + fmt.Sprintf(`
people:
  - {id: ana, name: Ana, role: owner, accounts: [{channel: work, user: %s}]}
  - {id: ben, name: Ben, role: member, accounts: [{channel: work, user: %s}]}
`, slackAna, slackBen)})}
	if mode == "http" {
		s.SetRequestURL("http://" + r.g.Addr() + "/channels/work/events")
		r.logged("channel=work state=ready", 1)
	} else {
		r.seen("a socket", func(v slacktest.View) bool { return v.Sockets() == 1 })
	}
	return r
}

// asked waits for the question in a channel.
func (r *slackRig) asked(channel string) (q slacktest.Message) {
	r.t.Helper()
	r.seen("a question with buttons", func(v slacktest.View) bool {
		for _, m := range v.Sent(channel) {
			if len(m.Buttons()) > 0 {
				q = m
			}
		}
		return q.TS != ""
	})
	if !strings.Contains(q.Shown(), "rm -rf /tmp/x") {
		r.t.Errorf("asked %q", q.Shown())
	}
	return q
}

// press has a person press a button of a message by its label.
func (r *slackRig) press(m slacktest.Message, user, label string) {
	r.t.Helper()
	for _, b := range slices.Concat(m.Buttons()...) {
		if b.Text == label {
			if r.s.Press(m.Channel, m.TS, user, b.Value) == "" {
				r.t.Errorf("%q cannot be pressed", label)
			}
			return
		}
	}
	r.t.Fatalf("no button %q in %+v", label, m.Buttons())
}

// told waits for a text that one person alone sees.
func (r *slackRig) told(channel, user, text string) {
	r.t.Helper()
	r.seen(user+" is told "+text, func(v slacktest.View) bool {
		return slices.ContainsFunc(v.Ephemerals(channel, user), func(m slacktest.Message) bool { return strings.Contains(m.Shown(), text) })
	})
}

// closed waits until a question says how it was answered, and has no buttons.
func (r *slackRig) closed(q slacktest.Message, text string) {
	r.t.Helper()
	r.seen("the question is closed", func(v slacktest.View) bool {
		m, _ := v.Message(q.Channel, q.TS)
		return len(m.Buttons()) == 0 && strings.Contains(m.Shown(), text) && strings.Contains(m.Shown(), "rm -rf /tmp/x")
	})
}

// Questions and what answers stands where, over one daemon for each way by which Slack's events come.
func TestT10_T11_ApprovalsOnSlack(t *testing.T) {
	t.Parallel()
	for _, mode := range slackModes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			act := newAct()
			r := slackActs(t, mode, act)
			story := func(name string, test func(*slackRig, actTool)) {
				t.Run(name, func(t *testing.T) {
					all := r.t
					r.t = t
					defer func() { r.t = all }()
					act.ran.Store(0)
					test(r, act)
				})
			}
			story("T10_T11_in a channel only an owner's button decides", onlyAnOwnersButtonDecides)
			story("T11_a member's request is asked of the owner", askedOfTheOwnerOnSlack)
			if mode == "socket" {
				story("all that answers stands in the thread", answersStandInTheThread)
				story("a question is asked once and outlives a restart", askedOnceOverARestart)
			}
		})
	}
}

// T10 and T11: in a Slack channel only an owner's button decides. Who may not is told so in private, and so is who comes
// too late; the question says how it was answered.
func onlyAnOwnersButtonDecides(r *slackRig, act actTool) {
	root := r.s.Say(slacktest.Say{Channel: slackRoom, User: slackBen, Text: "<@" + r.s.Team(0).Bot.ID + "> act"})
	q := r.asked(slackRoom)
	if q.ThreadTS != root {
		r.t.Errorf("asked in %q, not in the thread %q", q.ThreadTS, root)
	}
	id := r.rows(`SELECT id FROM approvals`)[0]
	r.press(q, slackBen, "Once")
	r.told(slackRoom, slackBen, "Only an owner may decide this.")
	r.press(q, slackEve, "Once")
	r.told(slackRoom, slackEve, "You may not decide this.")
	r.s.Command(slackRoom, slackAna, "/parley", "approve "+id+" once")
	r.told(slackRoom, slackAna, "Not in a group")
	r.stored("the approval", `SELECT state FROM approvals`, "pending")
	if act.ran.Load() != 0 {
		r.t.Fatal("it ran")
	}
	r.s.AddFault(slacktest.Fault{Method: "chat.update", Do: slacktest.Hang}) // the buttons stay for a while
	r.press(q, slackAna, "Once")
	r.stored("it ran", `SELECT state FROM steps WHERE tool = 'act'`, "done")
	r.press(q, slackAna, "Deny")
	r.told(slackRoom, slackAna, `Approved once by ana (owner) "Ana" (work).`)
	r.s.ClearFaults()
	r.closed(q, `Approved once by ana (owner) "Ana" (work)`)
	r.seen("the answer in the thread", func(v slacktest.View) bool {
		thread, ok := shows(v, slackRoom, "acted 1")
		return ok && thread == root
	})
	r.stored("the approval", `SELECT state, decided_by, via, scope FROM approvals`, "consumed|ana|work|once")
	for _, m := range r.s.View().Sent(slackRoom) {
		if strings.Contains(m.Shown(), "Only ") {
			r.t.Errorf("all read %q", m.Shown())
		}
	}
	r.seen("every acknowledgement", func(v slacktest.View) bool { return v.Pending() == 0 })
}

// T11: a member asks in private: the owner is asked where she wrote last, by buttons, and the member is told.
func askedOfTheOwnerOnSlack(r *slackRig, act actTool) {
	says := func(channel, text string) {
		r.t.Helper()
		r.seen(text, func(v slacktest.View) bool { _, ok := shows(v, channel, text); return ok })
	}
	r.s.Say(slacktest.Say{Channel: slackAnaDM, User: slackAna, Text: "hello"})
	says(slackAnaDM, "echo: hello")
	r.s.Say(slacktest.Say{Channel: slackBenDM, User: slackBen, Text: "act"})
	q := r.asked(slackAnaDM)
	says(slackBenDM, "I need a permission for this")
	for _, m := range r.s.View().Sent(slackBenDM) {
		if len(m.Buttons()) > 0 {
			r.t.Errorf("the member got buttons: %q", m.Shown())
		}
	}
	r.press(q, slackAna, "Deny")
	r.closed(q, `Denied by ana (owner) "Ana" (work)`)
	says(slackBenDM, `ana (owner) "Ana" said no`)
	if act.ran.Load() != 0 {
		r.t.Error("it ran")
	}
}

// A question in the owner's own direct chat outlives a restart, and a send of it that Slack took without saying so is
// found: it is asked once.
func askedOnceOverARestart(r *slackRig, act actTool) {
	before := len(r.s.View().Sent(slackAnaDM))
	r.s.AddFault(slacktest.Fault{Method: "chat.postMessage", Do: slacktest.CutAfter, Times: 1})
	r.s.Say(slacktest.Say{Channel: slackAnaDM, User: slackAna, Text: "act"})
	q := r.asked(slackAnaDM)
	r.logged("a part may have been sent", 1)
	r.halt()
	r.start(withTools(act))
	r.seen("a socket", func(v slacktest.View) bool { return v.Sockets() == 1 })
	r.press(q, slackAna, "Once")
	r.closed(q, `Approved once by ana (owner) "Ana" (work)`)
	answer := func(v slacktest.View) bool { _, ok := shows(v, slackAnaDM, "acted 1"); return ok }
	r.seen("the answer", answer)
	if got := r.s.View().Sent(slackAnaDM)[before:]; len(got) != 2 || act.ran.Load() != 1 {
		var all []string
		for _, m := range got {
			all = append(all, m.Shown())
		}
		r.t.Errorf("it ran %d times; the chat has %q", act.ran.Load(), all)
	}
}

// What answers a message in a channel stands in its thread: each part of a long answer, and each file.
func answersStandInTheThread(r *slackRig, _ actTool) {
	before := len(r.s.View().Sent(slackRoom))
	root := r.s.Say(slacktest.Say{Channel: slackRoom, User: slackAna, Text: "<@" + r.s.Team(0).Bot.ID + "> at length"})
	r.seen("a file and three parts", func(v slacktest.View) bool { return len(v.Sent(slackRoom)) >= before+4 && v.Pending() == 0 })
	for i, m := range r.s.View().Sent(slackRoom)[before:] {
		if m.ThreadTS != root {
			r.t.Errorf("message %d (%d files, %d characters) stands in %q", i, len(m.Files), len(m.Shown()), m.ThreadTS)
		}
	}
}

// actsAndWrites acts, and answers what is to be said at length with a file and a long text.
func actsAndWrites(q *llmtest.Request) llmtest.Reply {
	if !strings.Contains(q.LastUser(), "at length") {
		return acts("rm -rf /tmp/x")(q)
	}
	if q.Round() == 0 {
		return llmtest.Reply{Calls: []llmtest.Call{{Name: "write_file", Args: `{"path":"a.txt","content":"x"}`}, {Name: "send_file", Args: `{"path":"a.txt"}`}}}
	}
	return llmtest.Reply{Text: strings.Repeat("a line that is long enough to fill some room\n", 700)}
}
