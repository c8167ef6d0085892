// Questions of agents: the card that answers one by a key.

package chat

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"

	"parley/cmd/parley/internal/cli"
	"parley/cmd/parley/internal/printer"
	"parley/gateway/client"
	"parley/gateway/control"
	"parley/gateway/control/approval"
	"parley/gateway/spec"
	"parley/workspace"
)

const (
	whyMark = "why › "
	notYet  = 400 * time.Millisecond // after it came a card takes no key: it was meant for something else
	wordFor = time.Second            // how long the rest of a word may follow its key: es after y
)

// questions are those that wait for an answer in this session.
type questions struct {
	list    []approval.Item // the oldest first, which the card is about
	focus   bool            // keys are the card's
	since   time.Time       // it has had the focus
	at      int             // the choice that Enter takes
	typed   string          // a word in place of a key
	hint    string          // what was wrong with it
	why     *textarea.Model // what is typed as the reason; nil: none is
	sending bool            // an answer is on its way
	rest    string          // of the word that a pressed key begins
	until   time.Time       // it may follow
	warned  string          // a message that would take the question back, and was said to
}

// choice is one row of a card.
type choice struct{ name, label, key string }

const denyAndSay = "why"

// choices are what may be answered, as the gateway says for this question and caller.
func (q *questions) choices() []choice {
	var list []choice
	for _, c := range q.list[0].Choices {
		switch c {
		case "once":
			list = append(list, choice{c, "Allow once", "y"})
		case "session":
			list = append(list, choice{c, "Allow " + cli.Visible(q.list[0].AllowsIn()), ""})
		case "deny":
			list = append(list, choice{c, "Deny", "n"}, choice{denyAndSay, "Deny and say why", "e"})
		}
	}
	return list
}

// take gives the card the focus.
func (q *questions) take(now time.Time) {
	*q = questions{list: q.list, focus: true, since: now, rest: q.rest, until: q.until}
}

// swallows drops the rest of a word whose first letter was the answer, and the Enter behind it.
func (q *questions) swallows(k tea.KeyPressMsg, now time.Time) bool {
	if q.until.IsZero() || now.After(q.until) {
		return false
	}
	if k.Text != "" && strings.HasPrefix(q.rest, k.Text) {
		q.rest = q.rest[len(k.Text):]
		return true
	}
	q.until = time.Time{}
	return k.String() == "enter"
}

// What Update hears of questions.
type (
	cardMsg struct {
		list []approval.Item
		err  error
	}
	decidedMsg struct {
		id  string
		err error
	}
)

// openQuestions asks for those that were asked before this chat began.
func (v *view) openQuestions() tea.Cmd {
	return func() tea.Msg {
		l, err := approval.List.Ask(v.ctx, v.talk.client, approval.ListIn{State: "pending", Page: spec.Page{Limit: 50}})
		if err != nil {
			return cardMsg{} // who may not answer is not asked; what is asked from now on is heard of
		}
		var mine []approval.Item
		for _, ap := range slices.Backward(l.Items) {
			if v.talk.follows != "" && ap.Session == v.talk.follows {
				mine = append(mine, ap)
			}
		}
		return cardMsg{list: mine}
	}
}

// question shows what is asked whole, or what it came to.
func (v *view) question(kind string, q printer.Permission) tea.Cmd {
	if kind == "permission.resolved" {
		v.drop(q.ID)
		v.print.EndLine()
		v.print.Note(cli.Dim, outcome(q))
		return nil
	}
	return func() tea.Msg {
		ap, err := approval.Show.Ask(v.ctx, v.talk.client, control.ByID{ID: q.ID})
		if err != nil {
			err = fmt.Errorf("question %s: %w", q.Short, err)
		}
		return cardMsg{[]approval.Item{ap}, err}
	}
}

// outcome is what a question came to, in a few words.
func outcome(q printer.Permission) string {
	text := map[string]string{"approved": "allowed once", "denied": "denied", "expired": "not answered in time, so it is denied",
		"cancelled": "taken back"}[q.State]
	switch {
	case text == "":
		text = q.State
	case q.State == "approved" && q.Grant == "session":
		text = "allowed in this session"
	}
	if q.Via != "" && !slices.Contains([]string{"cli", "expiry", "message", "stop", "gateway"}, q.Via) {
		text += ", on " + q.Via
	}
	if q.Reason != "" {
		text += ": " + q.Reason
	}
	return "(" + text + ")"
}

// card shows questions and lets the first be answered.
func (v *view) card(m cardMsg) {
	if m.err != nil {
		v.trouble(m.err)
		return
	}
	for _, ap := range m.list {
		if ap.State != "pending" || slices.ContainsFunc(v.asked.list, func(o approval.Item) bool { return o.ID == ap.ID }) {
			continue
		}
		v.print.EndLine()
		v.show(ap)
		if len(ap.Choices) == 0 {
			v.print.Note(cli.Yellow, "It cannot be answered here.")
			continue
		}
		v.asked.list = append(v.asked.list, ap)
		if len(v.asked.list) == 1 && v.edit.Value() == "" {
			v.asked.take(v.clock())
		}
	}
}

// show writes a question whole, as it will be done: rows are broken by the terminal alone.
func (v *view) show(ap approval.Item) {
	head := "May I use " + cli.Visible(ap.Tool) + "?"
	if ap.Domain != "" {
		head += " It belongs to " + cli.Visible(ap.Domain) + "."
	}
	fmt.Fprintln(v.rows)
	fmt.Fprintln(v.rows, cli.Paint(v.rows, cli.Yellow, head))
	v.rows.whole(cli.VisibleText(strings.TrimSuffix(ap.Text, "\n")), cli.Bold)
	for _, d := range ap.Dangers {
		fmt.Fprintln(v.rows, cli.Paint(v.rows, cli.Red, "⚠ Look twice: it "+cli.Visible(d.Why)))
		if d.What != "" && d.What != strings.TrimSpace(ap.Text) {
			v.rows.whole("  "+cli.VisibleText(d.What), cli.Red)
		}
	}
	for _, x := range [][2]string{{"in", ap.Cwd}, {"with", strings.Join(ap.Env, " ")}, {"sandbox:", ap.Sandbox}} {
		if x[1] != "" {
			fmt.Fprintln(v.rows, cli.Paint(v.rows, cli.Dim, x[0]+" "+cli.Visible(x[1])))
		}
	}
}

// drop forgets a question that is answered.
func (v *view) drop(id string) {
	i := slices.IndexFunc(v.asked.list, func(ap approval.Item) bool { return ap.ID == id })
	if i < 0 {
		return
	}
	focus := v.asked.focus
	v.asked.list = slices.Delete(v.asked.list, i, i+1)
	if i > 0 {
		return
	}
	v.asked.take(v.clock())
	v.asked.focus = focus && len(v.asked.list) > 0
}

// cardKey is a key while the card has the focus; one that is not taken does what it does elsewhere.
func (v *view) cardKey(k tea.KeyPressMsg) (cmd tea.Cmd, taken bool) {
	q := &v.asked
	name := k.String()
	switch {
	case name == "ctrl+c" || name == "ctrl+d" || name == "ctrl+z" || name == "ctrl+l":
		return nil, false
	case q.sending:
		return nil, true
	case q.why != nil:
		return v.whyKey(k), true
	case v.clock().Sub(q.since) < notYet && k.Text != "": // somebody was typing when it came
		q.focus = false
		return nil, false
	}
	list := q.choices()
	switch name {
	case "esc":
		q.focus = false
	case "up", "ctrl+p", "shift+tab":
		q.at, q.typed, q.hint = (q.at+len(list)-1)%len(list), "", ""
	case "down", "ctrl+n", "tab":
		q.at, q.typed, q.hint = (q.at+1)%len(list), "", ""
	case "backspace":
		if r := []rune(q.typed); len(r) > 0 {
			q.typed = string(r[:len(r)-1])
		}
	case "enter":
		switch {
		case v.clock().Sub(q.since) < notYet:
		case q.typed == "":
			return v.choose(list[q.at].name), true
		default:
			return v.word(), true
		}
	default:
		i := slices.IndexFunc(list, func(c choice) bool { return c.key != "" && c.key == strings.ToLower(k.Text) })
		if i >= 0 && q.typed == "" {
			q.rest, q.until = map[string]string{"y": "es", "n": "o"}[list[i].key], v.clock().Add(wordFor)
			return v.choose(list[i].name), true
		}
		q.typed += cli.Visible(k.Text)
	}
	return nil, true
}

// word reads what was typed in place of a key.
func (v *view) word() tea.Cmd {
	q := &v.asked
	name := answerWord(q.typed)
	if slices.ContainsFunc(q.choices(), func(c choice) bool { return c.name == name }) {
		return v.choose(name)
	}
	q.typed, q.hint = "", "That is no answer: y allows it once, n denies it. Esc goes to the message."
	return nil
}

// answerWord is the choice that a word means; empty: none.
func answerWord(text string) string {
	switch strings.ToLower(strings.Trim(strings.TrimSpace(text), ".!")) {
	case "y", "yes", "ok", "allow", "allow once", "approve", "once":
		return "once"
	case "session", "allow in this session":
		return "session"
	case "n", "no", "deny", "refuse":
		return "deny"
	}
	return ""
}

// answers says whether a message is about the question that waits and is not to be sent, or not yet: sent, it would take the
// question back.
func (v *view) answers(text string) bool {
	q := &v.asked
	if len(q.list) == 0 || strings.HasPrefix(text, "/") {
		return false
	}
	if name := answerWord(text); name != "" {
		v.edit.Reset()
		q.take(v.clock())
		q.at = max(0, slices.IndexFunc(q.choices(), func(c choice) bool { return c.name == name }))
		q.hint = "Enter takes it."
		return true
	}
	if q.warned == text {
		q.warned = ""
		return false
	}
	q.warned = text
	v.print.Note(cli.Yellow, "A question waits, and a message takes it back: Enter again sends this, Tab goes to the question.")
	return true
}

// whyKey is a key while a reason is typed.
func (v *view) whyKey(k tea.KeyPressMsg) (cmd tea.Cmd) {
	q := &v.asked
	switch k.String() {
	case "esc":
		q.why = nil
	case "enter":
		reason := strings.TrimSpace(q.why.Value())
		q.why = nil
		return v.decide("deny", reason)
	default:
		*q.why, cmd = q.why.Update(k)
	}
	return cmd
}

// choose does what a row of the card says.
func (v *view) choose(name string) tea.Cmd {
	if name != denyAndSay {
		return v.decide(name, "")
	}
	e := newEdit(whyMark)
	e.SetWidth(v.width)
	v.asked.why = &e
	return nil
}

// decide answers the question.
func (v *view) decide(name, reason string) tea.Cmd {
	v.asked.sending = true
	id := v.asked.list[0].ID
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(v.ctx, cli.ComeUp)
		defer cancel()
		body := approval.DecideIn{Decision: workspace.Choice(name), Reason: reason}
		return decidedMsg{id, v.talk.client.Post(ctx, "/v1/approvals/"+url.PathEscape(id), body, nil)}
	}
}

// decided goes on after an answer. What it came to is an event of its own.
func (v *view) decided(m decidedMsg) {
	v.asked.sending = false
	if m.err == nil {
		v.drop(m.id)
		return
	}
	v.trouble(m.err)
	var p *client.Problem
	if errors.As(m.err, &p) && p.Status < http.StatusInternalServerError && p.Status != http.StatusTooManyRequests {
		v.drop(m.id) // somebody else answered, or its time is over
	}
}

// cardRows draw the card below what is asked.
func (v *view) cardRows() []string {
	q := &v.asked
	if len(q.list) == 0 {
		return nil
	}
	ap := q.list[0]
	which := fmt.Sprintf("%s asks (%s)", cli.Visible(ap.Tool), cli.Visible(ap.Short))
	if n := len(q.list); n > 1 {
		which += fmt.Sprintf(", first of %d questions", n)
	}
	switch {
	case q.sending:
		return []string{v.row(cli.Yellow, which+": answering…")}
	case q.why != nil:
		return []string{v.row(cli.Yellow, which+": why not? Enter denies it with that, Esc goes back")}
	case !q.focus:
		return []string{v.row(cli.Yellow, which+": it waits for you, Tab answers it")}
	}
	rows := []string{v.row(cli.Yellow, fmt.Sprintf("%s, until %s", which, ap.Expires.Local().Format("15:04")))}
	for i, c := range q.choices() {
		mark, s := "  ", cli.Dim
		if i == q.at {
			mark, s = promptMark, cli.Bold
		}
		rows = append(rows, v.row(s, strings.TrimRight(fmt.Sprintf("%s%-32s %s", mark, c.label, c.key), " ")))
	}
	foot := "↑ ↓ and Enter, or the letter. Esc goes to the message."
	switch {
	case q.typed != "":
		foot = "› " + q.typed
	case q.hint != "":
		foot = q.hint
	}
	return append(rows, v.row(cli.Dim, foot))
}
