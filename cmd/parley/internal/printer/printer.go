// Package printer prints the events of a run, or of a whole session, as they come: an answer as it grows, a card for each call of a
// tool, questions to people.
package printer

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"parley/cmd/parley/internal/cli"
	"parley/gateway/client"
)

// Printer prints events as they come: of a run, or of a whole session.
type Printer struct {
	Out, Errs io.Writer
	Raw       *json.Encoder     // also gets every event as it came; nil: nobody
	Live      bool              // what commands write is printed while they run
	wrote     output            // by the newest of them, as far as it is printed
	after     int64             // the newest stored event
	item      string            // the answer that grows
	text      string            // of it
	printed   int               // bytes of text that stand on the screen
	shownText map[string]string // of answers of this turn that are not the growing one, by item
	cards     map[string]card   // calls without a result, by id
	held      []client.Delta    // of an answer that came before the results that it follows
	midLine   bool
	ended     bool
	Failed    bool
}

type shownPart struct {
	Type   string
	Text   string
	Name   string
	CallID string `json:"call_id"`
	Args   json.RawMessage
	Error  bool
}

type Item struct {
	Item struct {
		ID, Type, Role, Name, Command string
		Partial                       bool
		Parts                         []shownPart
		Trouble                       *client.Trouble // of a status: a model fails so
	}
}

// See takes one event.
func (p *Printer) See(e client.Event) error {
	if n, err := strconv.ParseInt(e.ID, 10, 64); err == nil {
		p.after = n
	}
	if p.Raw != nil {
		if err := p.Raw.Encode(e); err != nil {
			return err
		}
	}
	switch e.Type {
	case "item.delta":
		var d client.Delta
		if err := json.Unmarshal(e.Data, &d); err != nil {
			return err
		}
		return p.delta(d)
	case "item.output":
		var o output
		if err := json.Unmarshal(e.Data, &o); err != nil {
			return err
		}
		if p.Live {
			p.output(o)
		}
	case "item.started", "item.completed":
		var it Item
		if err := json.Unmarshal(e.Data, &it); err != nil {
			return err
		}
		p.shown(e, it)
	case "error":
		var d struct{ Code, Message string }
		if err := json.Unmarshal(e.Data, &d); err != nil {
			return err
		}
		if e.Synthetic { // about the stream, which is begun again
			return nil
		}
		p.Failed = true
		p.Note(cli.Red, d.Message)
	case "permission.requested", "permission.resolved":
		var q Permission
		if err := json.Unmarshal(e.Data, &q); err != nil {
			return err
		}
		p.permission(e.Type, q)
	case "turn.paused", "turn.resumed":
		p.Note(cli.Dim, "("+strings.TrimPrefix(e.Type, "turn.")+")")
	case "turn.ended":
		p.ended = true
		p.shownText, p.cards, p.held = nil, nil, nil
		var d struct{ State, Reason string }
		if err := json.Unmarshal(e.Data, &d); err != nil {
			return err
		}
		if d.State == "user_stopped" {
			p.Note(cli.Yellow, "(stopped)")
		}
	}
	return nil
}

// delta lets an answer grow. What is watched live may overtake the record: an answer waits for the results before it.
func (p *Printer) delta(d client.Delta) error {
	if d.ItemID != p.item {
		if len(p.cards) > 0 {
			p.held = append(p.held, d)
			return nil
		}
		p.turnTo(d.ItemID)
	}
	text, err := d.Apply(p.text)
	if err != nil {
		return nil //nolint:nilerr // what was missed comes with the whole item
	}
	p.grow(text)
	return nil
}

// turnTo begins with another answer, or goes on with one.
func (p *Printer) turnTo(item string) {
	if p.shownText == nil {
		p.shownText = map[string]string{}
	}
	p.shownText[p.item] = p.text
	p.item, p.text = item, p.shownText[item]
	p.printed = len(p.text)
	p.EndLine()
}

// grow prints what text has more than stands there; where it differs it begins on a new line.
func (p *Printer) grow(text string) {
	if !strings.HasPrefix(text, p.text[:p.printed]) {
		if strings.HasPrefix(p.text, text) && text != "" {
			p.text = text
			return // a part that comes again
		}
		p.EndLine()
		p.printed = 0
	}
	p.text = text
	p.print(text[p.printed:])
	p.printed = len(text)
}

func (p *Printer) print(text string) {
	if text == "" {
		return
	}
	fmt.Fprint(p.Out, cli.Visible(text))
	p.midLine = !strings.HasSuffix(text, "\n")
}

// shown prints a whole item, or what of it is not on the screen yet.
func (p *Printer) shown(e client.Event, it Item) {
	switch {
	case it.Item.Role == "user":
	case it.Item.Type == "tool_result":
		for _, part := range it.Item.Parts {
			p.result(part, it.Item.Name, e.Time)
		}
	case it.Item.Type == "tool_call" && e.Type == "item.started":
		for _, part := range it.Item.Parts {
			c, ok := p.cards[part.CallID]
			if !ok {
				c = newCard(part.Name, part.Args, e.Time)
			}
			c.since = e.Time // from here on it works; it may have waited
			p.keep(part.CallID, c)
		}
	case it.Item.Type == "status":
		for _, part := range it.Item.Parts {
			if part.Text != "thinking" {
				p.Note(cli.Dim, "… "+part.Text)
			}
		}
	case e.Type == "item.completed":
		p.whole(e, it)
	}
}

// whole prints an answer, and keeps the calls that it plans.
func (p *Printer) whole(e client.Event, it Item) {
	text := ""
	for _, part := range it.Item.Parts {
		switch part.Type {
		case "text":
			text += part.Text
		case "tool_call":
			c := newCard(part.Name, part.Args, e.Time)
			if begun, ok := p.cards[part.CallID]; ok {
				c.since = begun.since
			}
			p.keep(part.CallID, c)
		}
	}
	if it.Item.ID != p.item {
		p.turnTo(it.Item.ID)
	}
	p.grow(text)
	p.EndLine()
	if it.Item.Type == "system" {
		p.ended = true // a command has no turn
	}
}

func (p *Printer) keep(call string, c card) {
	if p.cards == nil {
		p.cards = map[string]card{}
	}
	p.cards[call] = c
}

// result prints the card of a call that is done.
func (p *Printer) result(part shownPart, name string, at time.Time) {
	c, ok := p.cards[part.CallID]
	if !ok {
		c = card{name: name}
	}
	delete(p.cards, part.CallID)
	s := cli.Dim
	if part.Error {
		s = cli.Red
	}
	p.Note(s, "· "+c.done(part.Text, part.Error, at))
	if len(p.cards) == 0 {
		held := p.held
		p.held = nil
		for _, d := range held {
			_ = p.delta(d) // it has no error but that of a gap, which the whole item fills
		}
	}
}

// Running are the calls that work now.
func (p *Printer) Running() string {
	var names []string
	for _, c := range p.cards {
		names = append(names, c.begun())
	}
	if len(names) > 1 {
		return fmt.Sprintf("%d tools", len(names))
	}
	return strings.Join(names, "")
}

// Note prints a line that is no answer.
func (p *Printer) Note(s cli.Style, text string) {
	p.EndLine()
	for line := range strings.SplitSeq(strings.TrimRight(cli.Visible(text), "\n"), "\n") {
		fmt.Fprintln(p.Errs, cli.Paint(p.Errs, s, line))
	}
}

// Writing says whether an answer is on its way.
func (p *Printer) Writing() bool { return p.printed > 0 }

// Next is a printer for what comes behind all of this, where this one stands.
func (p *Printer) Next() Printer { return Printer{Out: p.Out, Errs: p.Errs, midLine: p.midLine} }

// EndLine ends a line that was begun.
func (p *Printer) EndLine() {
	if p.midLine {
		fmt.Fprintln(p.Out)
		p.midLine = false
	}
}

// Text is what is said in the item.
func (it Item) Text() string {
	text := ""
	for _, p := range it.Item.Parts {
		if p.Type == "text" {
			text += p.Text
		}
	}
	return text
}
