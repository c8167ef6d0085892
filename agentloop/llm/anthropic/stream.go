package anthropic

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"parley/agentloop/llm"
	"parley/agentloop/llm/wire"
)

var errWebPage = errors.New("the server answered with a web page; is base_url right?")

// Read takes in a stream, or one JSON body from a server that does not stream.
func (a *answer) Read(r *bufio.Reader) error {
	switch first, err := wire.FirstByte(r); {
	case err != nil:
		return err
	case first == '{':
		return a.readWhole(r)
	case first == '<':
		return &llm.Error{Kind: llm.Malformed, Err: errWebPage}
	}
	lines := wire.NewEvents(r, a.room)
	for !a.stopped {
		name, data, err := lines.Next()
		switch {
		case err != nil && a.Stop != "":
			return nil // no message_stop, but the answer had its end
		case errors.Is(err, wire.ErrTooLong):
			return a.takeBegun(data)
		case err == io.EOF:
			return wire.ErrNoEnd
		case err != nil:
			return err
		case name == "ping", name == "content_block_stop", len(bytes.TrimSpace(data)) == 0:
			continue // they say nothing that is needed
		}
		if err := errors.Join(a.take(data), a.room.Err()); err != nil {
			return err
		}
	}
	return nil
}

func (a *answer) readWhole(r io.Reader) error {
	body, err := wire.ReadWhole(r, a.room)
	if errors.Is(err, wire.ErrTooLong) {
		if begun := wire.Close(body); begun != nil {
			_ = a.whole(begun) // nothing of it is nothing of the answer
		}
		return err
	}
	if err != nil {
		return err
	}
	return errors.Join(a.whole(body), a.room.Err())
}

// takeBegun reads what it can of an event that is longer than the answer may be.
func (a *answer) takeBegun(begun []byte) error {
	if data := wire.Close(begun); data != nil {
		_ = a.take(data) // nothing of it is nothing of the answer
	}
	return wire.ErrTooLong
}

// End implements wire.Answer: the text so far, and the calls that are whole. A thought that is cut has no signature that holds.
func (a *answer) End() bool {
	a.Stop, a.long = "max_tokens", true
	last := len(a.blocks) - 1
	if last >= 0 && (a.blocks[last].Type == "thinking" || a.blocks[last].Type == "redacted_thinking") {
		a.blocks = a.blocks[:last]
	}
	a.blocks = slices.DeleteFunc(a.blocks, func(b *block) bool { return b.Type == "tool_use" && !b.whole() })
	return slices.ContainsFunc(a.blocks, func(b *block) bool { return b.Type == "tool_use" || b.Type == "text" && b.text.Len() > 0 })
}

// whole reads an answer that came in one piece.
func (a *answer) whole(body []byte) error {
	var head struct{ Type string }
	var m message
	if json.Unmarshal(body, &head) != nil || head.Type != "message" {
		return a.take(body)
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return a.malformed(err)
	}
	if err := a.message(&m); err != nil {
		return a.unfit(err)
	}
	return nil
}

// SoFar is what an answer that is cut leaves.
func (a *answer) SoFar() (text string, begun bool) {
	for _, b := range a.blocks {
		if b.Type == "text" {
			text += b.text.String()
		}
	}
	return text, len(a.blocks) > 0
}

// take reads one event.
func (a *answer) take(data []byte) error {
	if index, text, ok := plainDelta(data); ok && index < len(a.blocks) {
		a.addText(a.blocks[index], text)
		return nil
	}
	var e event
	if err := json.Unmarshal(data, &e); err != nil {
		return a.malformed(err)
	}
	if e.Type == "error" || len(e.Error) > 0 && string(e.Error) != "null" {
		text, kind := errorText(data)
		status := statusOf(kind)
		return &llm.Error{Kind: classify(status, text, kind), Status: status, Err: a.client.Said(text)}
	}
	if err := a.add(&e); err != nil {
		return a.unfit(err)
	}
	return nil
}

// unfit is the error of an event that does not go with those before it.
func (a *answer) unfit(err error) error {
	if errors.Is(err, errTooMany) {
		return &llm.Error{Kind: llm.TooLong, Err: err}
	}
	return a.malformed(err)
}

func (a *answer) malformed(err error) error {
	return &llm.Error{Kind: llm.Malformed, Err: a.client.Said(fmt.Sprintf("unreadable event: %v", err))}
}

const (
	plainStart = `{"type":"content_block_delta","index":`
	plainText  = `,"delta":{"type":"text_delta","text":`
)

// plainDelta reads the event that nearly every event is, one piece of text, without decoding it field by field. Only
// the exact form is taken; ok is false for any other, which must be decoded as a whole.
func plainDelta(data []byte) (index int, text string, ok bool) {
	data = bytes.TrimRight(data, " ")
	rest, found := bytes.CutPrefix(data, []byte(plainStart))
	if !found {
		return 0, "", false
	}
	digits, literal, found := bytes.Cut(rest, []byte(plainText))
	n, err := strconv.ParseUint(string(digits), 10, 16)
	if !found || err != nil || len(digits) > 1 && digits[0] == '0' {
		return 0, "", false
	}
	literal, found = bytes.CutSuffix(literal, []byte("}}"))
	if !found || len(literal) == 0 || literal[0] != '"' || json.Unmarshal(literal, &text) != nil {
		return 0, "", false
	}
	return int(n), text, true
}
