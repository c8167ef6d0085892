package agentloop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/agentloop/llm"
	"parley/workspace"
)

// Silence is what a model answers when nothing is to be said.
const Silence = "NO_REPLY"

const (
	maxHalvings = 3 // of the history when the model refuses its length
	nudge       = "Your last message was empty. Write your answer to the conversation above, or exactly " + Silence + " if nothing needs to be said."
	wrapRound   = "You repeated calls that came to nothing, so you can call no more tools in this turn. In a few sentences: what was done, what does not work, and what is still open?"
	wrapUp      = "You have used all the steps of this turn and can call no more tools. In a few sentences: what was done, and what is still open?"
)

// errEmpty is a model that says nothing, twice.
var errEmpty = errors.New("the model answered nothing")

// emptyError is errEmpty with the model's name.
type emptyError struct{ model string }

func (e emptyError) Error() string   { return "model " + e.model + ": " + errEmpty.Error() }
func (e emptyError) Is(t error) bool { return t == errEmpty }

// errFiltered is a provider that withheld the answer.
var errFiltered = errors.New("the provider withheld the answer")

// answerOrCalls asks the model, and once more when it says nothing at all.
func (p *pass) answerOrCalls(ctx context.Context) (llm.Response, error) {
	resp, err := p.ask(ctx, p.tools)
	if err != nil || !empty(resp) {
		return resp, err
	}
	if resp.Stop == llm.StopFiltered {
		return resp, errFiltered
	}
	p.log().Warn("model answered nothing, asking once more", "model", resp.Model)
	resp, err = p.ask(ctx, p.tools, nudge)
	if err == nil && empty(resp) {
		err = emptyError{resp.Model}
	}
	return resp, err
}

func empty(r llm.Response) bool {
	return len(r.ToolCalls()) == 0 && strings.TrimSpace(workspace.PlainText(r.Content)) == ""
}

// ask sends the conversation, with extra as the newest message of it when given; extra is not kept. While the
// model refuses the length, the oldest part is left out.
func (p *pass) ask(ctx context.Context, tools []llm.Tool, extra ...string) (llm.Response, error) {
	for halvings := 0; ; halvings++ {
		req := p.request(tools, extra)
		p.discard()
		p.event(Event{Type: EventModelStart})
		if t := p.turn.Trouble; t != nil { // of an earlier try: whoever looks is told before the next failure
			p.event(Event{Type: EventWait, Note: llm.Problem(*t), Trouble: t})
		}
		began := p.Now()
		resp, err := p.model.Stream(ctx, req, p.see)
		if err == nil {
			p.recovered(resp.Model)
			p.health.silent = llm.Asked{}
			p.hideResponse(&resp)
			if resp.Usage.DurationMS == 0 {
				resp.Usage.DurationMS = p.Now().Sub(began).Milliseconds()
			}
			resp.Usage.Calls = max(resp.Usage.Calls, 1)
			p.usage = p.usage.Add(resp.Usage)
			p.tidy(&resp)
			p.settle(resp)
			return resp, nil
		}
		if kindOf(err) != llm.Overflow || halvings == maxHalvings || !p.conv.halve() {
			return llm.Response{}, err
		}
		p.halved = true
		p.log().Info("prompt too long, leaving out history", "left_out", p.conv.left)
	}
}

func (p *pass) request(tools []llm.Tool, extra []string) llm.Request {
	info := p.model.Info()
	window := info.ContextWindow
	if window <= 0 {
		window = p.limits.Window
	}
	output := info.MaxOutput
	if output <= 0 {
		output = 4096
	}
	fixed := tokens(p.turn.System) + tokens(p.turn.Volatile)
	for _, t := range tools {
		fixed += tokens(t.Name) + tokens(t.Description) + len(t.Schema)/bytesPerToken
	}
	p.conv.fit(window - min(output, window/2) - fixed)
	msgs := p.conv.messages()
	for _, text := range extra {
		msgs = append(msgs, textMessage(llm.User, text))
	}
	return llm.Request{
		System: p.turn.System, Volatile: p.turn.Volatile, Messages: msgs, Tools: tools, CacheKey: string(p.turn.SessionID),
		Think: p.turn.Think, For: p.turn.Requester.Person, Hold: p.hold, Trouble: p.turn.Trouble,
	}
}

// fails takes in that a model has failed: the record and who watches are told each time, the log when it is another
// failure than that model's last.
func (p *pass) fails(t workspace.Trouble) {
	t.At, t.Said = p.Now(), p.Hide.Redact(t.Said)
	p.turn.Trouble = &t
	if kind := kindOfTrouble(t); p.health.warned[t.Model] != kind {
		p.health.warned[t.Model] = kind
		p.log().Warn("model fails", "model", t.Model, "provider", t.Provider, "kind", t.Kind, "status", t.Status, "said", t.Said,
			"failures", t.Failures, "wait", t.Wait.Round(time.Millisecond))
	}
	p.rec.Trouble(&t)
}

// kindOfTrouble is what of a failure the log has one line for.
func kindOfTrouble(t workspace.Trouble) string { return fmt.Sprint(t.Kind, t.Status) }

// recovered takes in that a model has answered.
func (p *pass) recovered(model string) {
	if t := p.turn.Trouble; t != nil {
		p.log().Info("model answers again", "model", model, "failures", t.Failures)
		p.turn.Trouble = nil
		p.rec.Trouble(nil)
	}
	clear(p.health.warned)
}

// tidy makes a response fit for the journal: call ids that are one of a kind in the run, arguments that are JSON.
func (p *pass) tidy(resp *llm.Response) {
	for i := range resp.Content {
		c := &resp.Content[i]
		if c.Kind != workspace.ToolCall {
			continue
		}
		for n := p.lastN; c.CallID == "" || p.ids[c.CallID]; n++ {
			c.CallID = fmt.Sprintf("call_%d_%d", n, i)
		}
		p.ids[c.CallID] = true
		switch {
		case len(bytes.TrimSpace(c.Args)) == 0:
			c.Args = json.RawMessage("{}")
		case !json.Valid(c.Args): // as a JSON string it can be kept and is still no object
			c.Args, _ = json.Marshal(string(c.Args)) // a string always can
		}
	}
}

// kindOf looks through a chain that has nothing left at the failure of its last model.
func kindOf(err error) llm.Kind {
	kind := llm.KindOf(err)
	for e := (*llm.Error)(nil); kind == llm.NoneLeft && errors.As(err, &e); err = e.Err {
		kind = e.Kind
		if e.Err == nil {
			break
		}
	}
	return kind
}

// stream is what watchers were shown of the model call under way.
type stream struct {
	text     strings.Builder // the answer so far
	sent     int             // bytes of it that were emitted
	thinking bool            // the last event said so
	whole    bool            // the call ended well
	hide     *workspace.Stream
}

// see takes a piece of the answer. Text that may yet become NO_REPLY is held back.
func (p *pass) see(d llm.Delta) {
	s := &p.stream
	switch {
	case d.Discard:
		p.discard()
	case d.Asks != nil:
		p.health.silent = llm.Asked{Info: *d.Asks, Since: p.Now()}
		p.event(Event{Type: EventAsk, Who: d.Asks.Who(), Model: d.Asks.Name, Since: p.health.silent.Since})
	case d.Trouble != nil:
		p.health.silent = llm.Asked{}
		p.fails(*d.Trouble)
		p.event(Event{Type: EventWait, Note: llm.Progress(*p.turn.Trouble), Trouble: p.turn.Trouble})
	case d.Text != "":
		s.thinking, p.health.silent = false, llm.Asked{}
		if s.hide == nil {
			s.hide = p.Hide.Stream()
		}
		s.text.WriteString(s.hide.Next(d.Text))
		if !strings.HasPrefix(Silence, strings.TrimSpace(s.text.String())) {
			p.flush()
		}
	case !s.thinking: // it reasons, or writes a call
		s.thinking, p.health.silent = true, llm.Asked{}
		p.event(Event{Type: EventThinking})
	}
}

// health is how the turn's models do.
type health struct {
	warned map[string]string // of each that fails, what the log has of it
	silent llm.Asked
}

func (p *pass) flush() {
	if text := p.stream.text.String(); len(text) > p.stream.sent {
		p.event(Event{Type: EventText, Text: text[p.stream.sent:]})
		p.stream.sent = len(text)
	}
}

// discard forgets the call under way; watchers are told if they saw any of it and it did not end well.
func (p *pass) discard() {
	if p.stream.sent > 0 && !p.stream.whole {
		p.event(Event{Type: EventDiscard})
	}
	p.stream = stream{}
}

// settle makes what watchers have seen equal to the response.
func (p *pass) settle(resp llm.Response) {
	text := workspace.PlainText(resp.Content)
	if !strings.HasPrefix(text, p.stream.text.String()[:p.stream.sent]) {
		p.discard()
	}
	p.stream.text.Reset()
	p.stream.hide = nil
	p.stream.text.WriteString(text)
	if strings.TrimSpace(text) != Silence {
		p.flush()
	}
	p.stream.whole = true
}

// shown is the text of the last model call, without a silence that was about to be said.
func (p *pass) shown() string {
	p.stream.text.WriteString(p.stream.hide.Cut())
	text := strings.TrimSpace(p.stream.text.String())
	if strings.HasPrefix(Silence, text) {
		return ""
	}
	return text
}
