// The chat on a terminal: what is shown, and what keys do.

package chat

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"parley/cmd/parley/internal/cli"
	"parley/cmd/parley/internal/printer"
	"parley/gateway/client"
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
	width int

	turn turn
	now  time.Time
	away bool // the gateway does not answer
	out  outgoing

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
	stopping bool
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
	v := &view{talk: t, ctx: ctx, past: past, rows: &rows{plain: os.Getenv("NO_COLOR") != ""}, out: outgoing{mine: map[string]bool{}},
		now: time.Now()}
	v.print = printer.Printer{Out: prose{v.rows}, Errs: v.rows}
	e := textarea.New()
	e.ShowLineNumbers, e.DynamicHeight, e.MinHeight, e.MaxHeight, e.MaxContentHeight, e.CharLimit = false, true, 1, promptMost,
		linesMost, cli.MaxTyped
	e.SetPromptFunc(ansi.StringWidth(promptMark), func(p textarea.PromptInfo) string {
		if p.LineNumber == 0 {
			return promptMark
		}
		return moreMark
	})
	e.SetVirtualCursor(false)
	e.SetStyles(textarea.Styles{})
	e.KeyMap.InsertNewline = key.NewBinding(key.WithKeys("alt+enter", "shift+enter", "ctrl+j"))
	e.KeyMap.DeleteCharacterForward = key.NewBinding(key.WithKeys("delete")) // ctrl+d also leaves
	e.Focus()
	v.edit = e
	return v
}

// Init begins nothing: the events come from outside.
func (v *view) Init() tea.Cmd { return nil }

// Update takes one message.
func (v *view) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	switch m := msg.(type) {
	case tea.WindowSizeMsg:
		v.width, v.rows.width = m.Width, m.Width
		v.edit.SetWidth(m.Width)
	case tea.KeyPressMsg:
		cmd = v.key(m)
	case eventMsg:
		v.event(m.Event)
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

// key handles one key press.
func (v *view) key(k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "ctrl+c":
		return v.interrupt()
	case "ctrl+d":
		if v.edit.Value() == "" {
			v.leaving = true
			return nil
		}
		k = tea.KeyPressMsg{Code: tea.KeyDelete}
	case "ctrl+z":
		return tea.Suspend
	case "ctrl+l":
		return tea.ClearScreen
	case "enter":
		v.submit()
		return nil
	case "tab":
		v.complete()
		return nil
	case "up", "ctrl+p":
		if v.edit.Line() == 0 && v.edit.LineInfo().RowOffset == 0 {
			v.recall(v.past.back(v.edit.Value()))
			return nil
		}
	case "down", "ctrl+n":
		if info := v.edit.LineInfo(); v.edit.Line() == v.edit.LineCount()-1 && info.RowOffset >= info.Height-1 {
			v.recall(v.past.forth())
			return nil
		}
	}
	var cmd tea.Cmd
	v.edit, cmd = v.edit.Update(k)
	v.offer()
	return cmd
}

// paste takes many lines as they are. What is too long to be typed is not cut without a word.
func (v *view) paste(m tea.PasteMsg) {
	m.Content = strings.ReplaceAll(m.Content, "\r\n", "\n")
	before := v.edit.Length()
	v.edit, _ = v.edit.Update(m) // a paste asks for nothing more
	v.offer()
	if came := v.edit.Length() - before; came < len([]rune(strings.TrimRight(m.Content, "\n"))) {
		v.print.Note(cli.Yellow, "(the paste is longer than a message may be, so its end is missing)")
	}
}

func (v *view) recall(line string, ok bool) {
	if ok {
		v.edit.SetValue(line)
		v.edit.MoveToEnd()
		v.offer()
	}
}

// interrupt is Ctrl-C: it drops what is typed, else stops the turn, and the second time leaves.
func (v *view) interrupt() tea.Cmd {
	switch {
	case v.edit.Value() != "":
		v.edit.Reset()
		v.offer()
		return nil
	case !v.busy() || v.turn.stopping:
		v.leaving = true
		return nil
	}
	id := v.turn.run
	for input := range v.out.mine {
		if id == "" {
			id = input
		}
	}
	if id == "" { // it is not journalled yet
		v.leaving = true
		return nil
	}
	v.turn.stopping = true
	return func() tea.Msg { return stoppedMsg{v.talk.stop(v.ctx, id)} }
}

// submit takes what is typed.
func (v *view) submit() {
	text := strings.TrimSpace(v.edit.Value())
	if text == "" {
		return
	}
	v.past.add(strings.TrimRight(v.edit.Value(), "\n"))
	v.edit.Reset()
	v.offer()
	if text == "/quit" || text == "/exit" {
		v.leaving = true
		return
	}
	v.print.EndLine()
	if v.spoken {
		fmt.Fprintln(v.rows)
	}
	v.spoken = true
	for i, line := range strings.Split(cli.Visible(text), "\n") {
		mark := moreMark
		if i == 0 {
			mark = promptMark
		}
		fmt.Fprintln(v.rows, cli.Paint(v.rows, cli.Bold, mark+line))
	}
	v.out.said = append(v.out.said, text)
	v.out.queue = append(v.out.queue, client.Message{Agent: v.talk.agent, Session: v.talk.session, Text: text, Key: rand.Text()})
}

// send journals a message. It may take as long as the gateway is away: the key makes a second try harmless.
func (v *view) send(m client.Message) tea.Cmd {
	return func() tea.Msg {
		for {
			got, err := v.talk.client.Send(v.ctx, m)
			if err == nil || v.ctx.Err() != nil || errors.As(err, new(*client.Problem)) {
				return sentMsg{m.Text, got, err}
			}
			if err := v.talk.client.Wait(v.ctx, cli.ComeBack); err != nil && !errors.Is(err, client.ErrUnreachable) {
				return sentMsg{m.Text, got, err}
			}
		}
	}
}

func (v *view) sent(m sentMsg) tea.Cmd {
	v.out.sending, v.out.queue = false, v.out.queue[1:]
	if m.err != nil {
		v.forget(m.text)
		v.print.Note(cli.Red, cli.Hint(m.err).Error())
		return nil
	}
	if v.forget(m.text) { // else its event came first
		v.out.mine[m.got.InputID] = true
	}
	return v.ask(m.got.InputID)
}

// forget drops a text whose input is known now; false says that its event had done so.
func (v *view) forget(text string) bool {
	for i, s := range v.out.said {
		if s == text {
			v.out.said = append(v.out.said[:i], v.out.said[i+1:]...)
			return true
		}
	}
	return false
}

// ask looks after a while what became of a message, in case that no event tells.
func (v *view) ask(input string) tea.Cmd {
	return tea.Tick(doubtAfter, func(time.Time) tea.Msg {
		var run struct{ State, Text string }
		if err := v.talk.client.Get(v.ctx, "/v1/runs/"+input, &run); err != nil || !printer.Over(run.State) {
			return doubtMsg{input: input}
		}
		return doubtMsg{input, run.State, run.Text}
	})
}

func (v *view) doubt(m doubtMsg) {
	if m.state != "" && v.out.mine[m.input] {
		delete(v.out.mine, m.input)
		if m.text != "" {
			v.print.Note(cli.Dim, m.text)
		}
	}
}

// event takes one event of the session.
func (v *view) event(e client.Event) {
	v.away = false
	switch e.Type {
	case "session.started":
		return
	case "session.ended":
		v.print = v.print.Next()
		return
	case "turn.started":
		v.turn = turn{run: e.RunID, since: time.Now()}
		v.rows.fence = false
		v.now = v.turn.since
	case "item.started", "item.completed":
		var it printer.Item
		if json.Unmarshal(e.Data, &it) == nil && v.item(e, it) {
			return
		}
	}
	if err := v.print.See(e); err != nil {
		v.print.Note(cli.Red, "an event cannot be read: "+err.Error())
	}
	if e.Type == "turn.ended" {
		v.turn = turn{}
		clear(v.out.mine)
	}
}

// item notes what an item means for what is waited for, and says whether that is all of it.
func (v *view) item(e client.Event, it printer.Item) (known bool) {
	switch it.Item.Type {
	case "status":
		if v.turn.doing = ""; len(it.Item.Parts) > 0 {
			v.turn.doing = it.Item.Parts[0].Text
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

// status is the row that says what is being done.
func (v *view) status() string {
	if !v.busy() && !v.away {
		return ""
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
	case v.turn.doing != "":
		text = v.turn.doing
	case v.rows.tail != "" || v.print.Writing():
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
	if v.width > 0 {
		text = ansi.Truncate(text, v.width-1, "…")
	}
	return cli.Paint(v.rows, cli.Dim, text)
}

// View draws what is below the scrolled text.
func (v *view) View() tea.View {
	var above []string
	if v.rows.tail != "" {
		above = append(above, v.rows.tail)
	}
	if s := v.status(); s != "" {
		above = append(above, s)
	}
	if v.leaving {
		return tea.NewView(strings.Join(above, "\n"))
	}
	all := append(above, v.edit.View())
	for _, o := range v.menu {
		all = append(all, cli.Paint(v.rows, cli.Dim,
			ansi.Truncate(strings.TrimRight(fmt.Sprintf("  %-13s %s", o.line, o.help), " "), max(1, v.width-1), "…")))
	}
	out := tea.NewView(strings.Join(all, "\n"))
	if c := v.edit.Cursor(); c != nil {
		c.Y += len(above)
		out.Cursor = c
	}
	return out
}
