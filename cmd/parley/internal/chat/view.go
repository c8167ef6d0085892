// The chat on a terminal: what is shown, and what keys do.

package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"parley/cmd/parley/internal/cli"
	"parley/cmd/parley/internal/printer"
	"parley/gateway/client"
	events "parley/gateway/control/view"
)

const (
	promptMark = "› "
	moreMark   = "  "
	promptMost = 10     // rows of what is typed
	linesMost  = 10_000 // of it in all
	menuMost   = 6      // commands that are offered at once
	tickEvery  = 200 * time.Millisecond
	doubtAfter = 20 * time.Second // without a sign of a message it is asked for
)

// view is the chat on a terminal (a Bubble Tea model): what was said scrolls by above, and below are the row that grows,
// what is being done, and what is typed. It does nothing by itself: acts are commands that it returns, and what comes of
// them are messages that Update takes, one at a time.
type view struct {
	talk  *conversation
	ctx   context.Context
	edit  textarea.Model
	past  *history
	rows  *rows
	print printer.Printer
	menu  []offer // what Tab would complete to
	asked questions

	width, height int

	turn  turn
	now   time.Time
	clock func() time.Time
	away  bool // the gateway does not answer
	out   outgoing

	ticking  bool
	leaving  bool
	spoken   bool // something was said
	printing bool // a commit to the screen is under way: they must not overtake one another
	err      error
}

// turn is what the session is at.
type turn struct {
	run      string // that works; empty: none
	since    time.Time
	doing    string // what the model or gateway says it is at
	asks     asked
	failed   string // what of a model's failure stands above
	stopping bool
}

// asked is a model that was asked and has sent nothing yet; the zero value: none is.
type asked struct {
	Provider string
	Time     time.Time
}

// outgoing is what was typed, until the session has it.
type outgoing struct {
	queue   []client.Message // not yet journalled, in order
	sending bool
	mine    map[string]bool // inputs of this terminal, until their end or turn
	said    []string        // texts whose input id is not known yet
}

// What Update hears beside keys.
type (
	eventMsg  struct{ client.Event }
	awayMsg   struct{ err error } // nil: it is back
	brokenMsg struct{ err error }
	sentMsg   struct {
		text string
		got  client.Answer
		err  error
	}
	stoppedMsg struct{ err error }
	doubtMsg   struct{ input, state, text string }
	tickMsg    time.Time
	printedMsg struct{}
)

func newView(ctx context.Context, t *conversation, past *history) *view {
	v := &view{talk: t, ctx: ctx, past: past, rows: &rows{}, out: outgoing{mine: map[string]bool{}}, now: time.Now(), clock: time.Now}
	v.rows.answer.Plain = !cli.Colourful(v.rows)
	v.print = printer.Printer{Out: prose{v.rows}, Errs: v.rows}
	v.edit = newEdit(promptMark)
	return v
}

// Init looks for questions that were asked before; other events come from outside.
func (v *view) Init() tea.Cmd { return v.openQuestions() }

// Update takes one message.
func (v *view) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	switch m := msg.(type) {
	case tea.WindowSizeMsg:
		v.width, v.height = m.Width, m.Height
		v.rows.resize(m.Width)
		v.edit.SetWidth(m.Width)
	case tea.KeyPressMsg:
		cmd = v.key(m)
	case eventMsg:
		cmd = v.event(m.Event)
	case awayMsg:
		v.away = m.err != nil
	case brokenMsg:
		v.err, v.leaving = m.err, true
	case sentMsg:
		cmd = v.sent(m)
	case stoppedMsg:
		if m.err != nil {
			v.print.Note(cli.Red, m.err.Error())
		}
	case doubtMsg:
		v.doubt(m)
	case cardMsg:
		v.card(m)
	case decidedMsg:
		v.decided(m)
	case tickMsg:
		v.now, v.ticking = time.Time(m), false
	case printedMsg:
		v.printing = false
	case tea.PasteMsg:
		v.paste(m)
	default:
		v.edit, cmd = v.edit.Update(msg)
		v.offer()
	}
	return v, tea.Batch(cmd, v.after())
}

// after is what every message may make due: rows to commit, a clock to show, the next message to send, the end.
func (v *view) after() tea.Cmd {
	var cmds []tea.Cmd
	if !v.printing && len(v.rows.done) > 0 {
		v.printing = true
		text := strings.Join(v.rows.take(), "\n")
		cmds = append(cmds, tea.Sequence(tea.Println(text), func() tea.Msg { return printedMsg{} }))
	}
	if v.busy() && !v.ticking {
		v.ticking = true
		cmds = append(cmds, tea.Tick(tickEvery, func(t time.Time) tea.Msg { return tickMsg(t) }))
	}
	if !v.out.sending && len(v.out.queue) > 0 {
		v.out.sending = true
		cmds = append(cmds, v.send(v.out.queue[0]))
	}
	if v.leaving && !v.printing {
		cmds = append(cmds, tea.Quit)
	}
	return tea.Batch(cmds...)
}

func (v *view) busy() bool { return v.turn.run != "" || len(v.out.mine) > 0 || len(v.out.queue) > 0 }

// event takes one event of the session.
func (v *view) event(e client.Event) tea.Cmd {
	v.away = false
	whole := e.Type == "turn.ended" // whatever grew is as long as it will be
	switch e.Type {
	case "session.started":
		return nil
	case "session.ended":
		v.print = v.print.Next()
		return nil
	case "turn.started":
		v.turn = turn{run: e.RunID, since: v.clock()}
		v.now = v.turn.since
	case "permission.requested", "permission.resolved":
		var q printer.Permission
		if json.Unmarshal(e.Data, &q) == nil {
			return v.question(e.Type, q)
		}
	case "model.asked":
		v.turn.asks = asked{}
		_ = json.Unmarshal(e.Data, &v.turn.asks) // else nothing is said of it
		return nil
	case "item.delta":
		v.turn.asks = asked{}
	case "item.started", "item.completed":
		var it printer.Item
		if json.Unmarshal(e.Data, &it) == nil && v.item(e, it) {
			return nil
		}
		whole = e.Type == "item.completed" && (it.Item.Role == "assistant" || it.Item.Type == "system")
		v.rows.answer.Code = nil
		if it.Item.Type == "system" || v.talk.offline { // it is the gateway's own words
			v.rows.answer.Code = cli.Hinted
		}
	}
	if err := v.print.See(e); err != nil {
		v.print.Note(cli.Red, "an event cannot be read: "+err.Error())
	}
	if whole {
		v.rows.endAnswer()
	}
	if e.Type == "turn.ended" {
		v.turn = turn{}
		clear(v.out.mine)
	}
	return nil
}

// item notes what an item means for what is waited for, and says whether that is all of it.
func (v *view) item(e client.Event, it printer.Item) (known bool) {
	v.turn.asks = asked{}
	switch it.Item.Type {
	case "status":
		if v.turn.doing = ""; len(it.Item.Parts) > 0 {
			v.turn.doing = it.Item.Parts[0].Text
		}
		if t := it.Item.Trouble; t != nil {
			v.fails(*t)
		}
		return true
	case "system":
		delete(v.out.mine, it.Item.ID)
		v.forget(it.Item.Command)
		return false
	}
	v.turn.doing = ""
	if it.Item.Role != "user" {
		return false
	}
	text := it.Text()
	if !v.out.mine[it.Item.ID] && !v.forget(text) { // somebody else spoke in this session
		v.print.EndLine()
		who := it.Item.Name
		if who == "" {
			who = "you, elsewhere"
		}
		v.print.Note(cli.Bold, who+": "+text)
	}
	delete(v.out.mine, it.Item.ID)
	return true
}

// fails says once of each failure of a model what it is, and what to do.
func (v *view) fails(t client.Trouble) {
	if v.turn.failed != t.Cause {
		v.turn.failed = t.Cause
		v.print.EndLine()
		v.print.Note(cli.Red, strings.ReplaceAll(t.Cause, "`", `"`)+
			". It is tried again. /retry tries at once, /model NAME asks another one, Ctrl-C stops.")
	}
}

// status is the row that says what is being done.
func (v *view) status() string {
	if !v.busy() && !v.away || len(v.asked.list) > 0 && !v.turn.stopping && !v.away {
		return "" // a question says by itself that it is waited for
	}
	frames := []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
	text := "waiting"
	switch tools := v.print.Running(); {
	case v.away:
		text = "the gateway does not answer; trying again"
	case v.turn.stopping:
		text = "stopping; Ctrl-C again leaves"
	case tools != "":
		text = tools
	case v.turn.asks.silent(v.now) > 0:
		text = events.Silence(v.turn.asks.Provider, v.turn.asks.silent(v.now)) + "; Ctrl-C stops"
	case v.turn.doing != "":
		text = v.turn.doing
	case v.print.Writing():
		text = "writing"
	case v.turn.run != "":
		text = "working"
	case len(v.out.queue) > 0:
		text = "sending"
	}
	frame := frames[int(v.now.UnixMilli()/tickEvery.Milliseconds())%len(frames)]
	text = fmt.Sprintf("%c %s", frame, cli.Visible(text))
	if v.turn.run != "" {
		text += fmt.Sprintf("  %d s", int(max(0, v.now.Sub(v.turn.since)).Seconds()))
	}
	return v.row(cli.Dim, text)
}

// silent is for how long the model has sent nothing; 0: not for long.
func (a asked) silent(now time.Time) time.Duration {
	if lasted := now.Sub(a.Time); !a.Time.IsZero() && lasted >= events.SilentAfter {
		return lasted
	}
	return 0
}

// row is one row below the scrolled text, no wider than the terminal.
func (v *view) row(s cli.Style, text string) string {
	if v.width > 0 {
		text = ansi.Truncate(text, v.width-1, "…")
	}
	return cli.Paint(v.rows, s, text)
}

// trouble says what went wrong, and what to do.
func (v *view) trouble(err error) { v.print.Note(cli.Red, cli.Hinted(cli.Hint(err).Error())) }

// View draws what is below the scrolled text.
func (v *view) View() tea.View {
	var below []string
	if s := v.status(); s != "" {
		below = append(below, s)
	}
	if v.leaving {
		return tea.NewView(strings.Join(append(v.rows.growing(v.height), below...), "\n"))
	}
	below = append(below, v.cardRows()...)
	edit := &v.edit
	if v.asked.why != nil {
		edit = v.asked.why
	}
	menu := make([]string, 0, len(v.menu))
	for _, o := range v.menu {
		menu = append(menu, cli.Paint(v.rows, cli.Dim,
			ansi.Truncate(strings.TrimRight(fmt.Sprintf("  %-13s %s", o.line, o.help), " "), max(1, v.width-1), "…")))
	}
	all := append(v.rows.growing(max(1, v.height-len(below)-edit.Height()-len(menu))), below...)
	above := len(all)
	out := tea.NewView(strings.Join(append(append(all, edit.View()), menu...), "\n"))
	if c := edit.Cursor(); c != nil && (!v.asked.focus || v.asked.why != nil) {
		c.Y += above
		out.Cursor = c
	}
	return out
}
