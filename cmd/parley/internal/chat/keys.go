// What keys do.

package chat

import (
	"crypto/rand"
	"fmt"
	"strings"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textarea"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"parley/cmd/parley/internal/cli"
	"parley/gateway/client"
)

// newEdit is a place to type, of rows that begin with a mark.
func newEdit(mark string) textarea.Model {
	e := textarea.New()
	e.ShowLineNumbers, e.DynamicHeight, e.MinHeight, e.MaxHeight, e.MaxContentHeight, e.CharLimit = false, true, 1, promptMost,
		linesMost, cli.MaxTyped
	e.SetPromptFunc(ansi.StringWidth(mark), func(p textarea.PromptInfo) string {
		if p.LineNumber == 0 {
			return mark
		}
		return strings.Repeat(" ", ansi.StringWidth(mark))
	})
	e.SetVirtualCursor(false)
	e.SetStyles(textarea.Styles{})
	e.KeyMap.InsertNewline = key.NewBinding(key.WithKeys("alt+enter", "shift+enter", "ctrl+j"))
	e.KeyMap.DeleteCharacterForward = key.NewBinding(key.WithKeys("delete")) // ctrl+d also leaves
	e.Focus()
	return e
}

// key handles one key press.
func (v *view) key(k tea.KeyPressMsg) tea.Cmd {
	if v.asked.swallows(k, v.clock()) {
		return nil
	}
	if v.asked.focus {
		if cmd, taken := v.cardKey(k); taken {
			return cmd
		}
	}
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
		if len(v.asked.list) > 0 && !strings.HasPrefix(v.edit.Value(), "/") {
			v.asked.take(v.clock())
			return nil
		}
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
	if v.asked.why != nil {
		*v.asked.why, _ = v.asked.why.Update(m) // a paste asks for nothing more
		return
	}
	v.asked.focus = false
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
	if text == "" || v.answers(text) {
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
