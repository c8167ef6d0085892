package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"parley/gateway/client"
)

// printer prints a run's events as they come.
type printer struct {
	out, errs io.Writer
	after     int64  // the newest stored event
	item      string // the answer that grows
	text      string // of it
	printed   int    // bytes of text that stand on the screen
	midLine   bool
	ended     bool
	failed    bool
}

type shownItem struct {
	Item struct {
		ID, Type, Role string
		Partial        bool
		Parts          []struct{ Type, Text, Name string }
	}
}

// see takes one event.
func (p *printer) see(e client.Event) error {
	if n, err := strconv.ParseInt(e.ID, 10, 64); err == nil {
		p.after = n
	}
	switch e.Type {
	case "item.delta":
		var d client.Delta
		if err := json.Unmarshal(e.Data, &d); err != nil {
			return err
		}
		return p.delta(d)
	case "item.started", "item.completed":
		var it shownItem
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
		p.line()
		p.failed = true
		fmt.Fprintln(p.errs, visible(d.Message))
	case "turn.ended":
		p.ended = true
		var d struct{ State, Reason string }
		if err := json.Unmarshal(e.Data, &d); err != nil {
			return err
		}
		if d.State == "user_stopped" {
			p.line()
			fmt.Fprintln(p.errs, "(stopped)")
		}
	}
	return nil
}

func (p *printer) delta(d client.Delta) error {
	if d.ItemID != p.item {
		p.item, p.text, p.printed = d.ItemID, "", 0
		p.line()
	}
	text, err := d.Apply(p.text)
	if err != nil {
		return nil //nolint:nilerr // what was missed comes with the whole item
	}
	p.grow(text)
	return nil
}

// grow prints what text has more than stands there; where it differs it begins on a new line.
func (p *printer) grow(text string) {
	if !strings.HasPrefix(text, p.text[:p.printed]) {
		if strings.HasPrefix(p.text, text) && text != "" {
			p.text = text
			return // a part that comes again
		}
		p.line()
		p.printed = 0
	}
	p.text = text
	p.print(text[p.printed:])
	p.printed = len(text)
}

func (p *printer) print(text string) {
	if text == "" {
		return
	}
	fmt.Fprint(p.out, visible(text))
	p.midLine = !strings.HasSuffix(text, "\n")
}

// shown prints a whole item, or what of it is not on the screen yet.
func (p *printer) shown(e client.Event, it shownItem) {
	switch {
	case it.Item.Role == "user" || it.Item.Type == "tool_result":
	case it.Item.Type == "tool_call" && e.Type == "item.started":
		for _, part := range it.Item.Parts {
			p.line()
			fmt.Fprintf(p.errs, "· %s\n", visible(part.Name))
		}
	case it.Item.Type == "status":
		for _, part := range it.Item.Parts {
			if part.Text != "thinking" {
				p.line()
				fmt.Fprintf(p.errs, "… %s\n", visible(part.Text))
			}
		}
	case e.Type == "item.completed":
		text := ""
		for _, part := range it.Item.Parts {
			if part.Type == "text" {
				text += part.Text
			}
		}
		if it.Item.ID != p.item {
			p.item, p.text, p.printed = it.Item.ID, "", 0
			p.line()
		}
		p.grow(text)
		p.line()
		if it.Item.Type == "system" {
			p.ended = true // a command has no turn
		}
	}
}

// line ends a line that was begun.
func (p *printer) line() {
	if p.midLine {
		fmt.Fprintln(p.out)
		p.midLine = false
	}
}

func (p *printer) end() { p.line() }

// over says whether a state is a run's or input's last.
func (p *printer) over(state string) bool {
	switch state {
	case "queued", "taken", "running", "waiting", "paused", "pending", "starting", "stale":
		return false
	}
	return true
}
