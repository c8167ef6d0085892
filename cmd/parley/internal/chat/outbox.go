// Messages on their way: sent until the gateway has them, and asked for when nothing is heard of them.

package chat

import (
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"

	"parley/cmd/parley/internal/cli"
	"parley/cmd/parley/internal/printer"
	"parley/gateway/client"
)

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
		v.trouble(m.err)
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
