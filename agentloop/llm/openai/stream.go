package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"parley/agentloop/llm"
	"parley/agentloop/llm/wire"
)

var errWebPage = errors.New("the server answered with a web page; base_url should end in /v1")

// Read takes in a stream, or one JSON body from a server that does not stream.
func (a *answer) Read(r *bufio.Reader) error {
	switch first, err := wire.FirstByte(r); {
	case err != nil:
		return err
	case first == '{' || first == '[':
		return a.readWhole(r)
	case first == '<':
		return &llm.Error{Kind: llm.Malformed, Err: errWebPage}
	}
	lines := wire.NewEvents(r, a.room)
	for {
		name, data, err := lines.Next()
		switch {
		case err == io.EOF && a.finish != "":
			return nil // no [DONE], but the answer had its end
		case err == io.EOF:
			return wire.ErrNoEnd
		case err != nil && a.finish != "":
			return nil
		case errors.Is(err, wire.ErrTooLong):
			return a.takeBegun(name, data)
		case err != nil:
			return err
		case string(data) == "[DONE]":
			return nil
		case len(bytes.TrimSpace(data)) == 0:
			continue
		}
		if err := errors.Join(a.take(name, data), a.room.Err()); err != nil {
			return err
		}
	}
}

func (a *answer) readWhole(r io.Reader) error {
	body, err := wire.ReadWhole(r, a.room)
	if errors.Is(err, wire.ErrTooLong) {
		return a.takeBegun("", body)
	}
	if err != nil {
		return err
	}
	return errors.Join(a.take("", body), a.room.Err())
}

// takeBegun reads what it can of an event that is longer than the answer may be.
func (a *answer) takeBegun(name string, begun []byte) error {
	if data := wire.Close(begun); data != nil {
		_ = a.take(name, data) // nothing of it is nothing of the answer
	}
	return wire.ErrTooLong
}

// End implements wire.Answer: the text so far, and the calls that are whole.
func (a *answer) End() bool {
	a.finish, a.long = "length", true
	a.calls = slices.DeleteFunc(a.calls, func(c *call) bool { return !c.whole() })
	return a.text.Len() > 0 || len(a.calls) > 0
}

// SoFar is what an answer that is cut leaves.
func (a *answer) SoFar() (text string, begun bool) {
	return a.text.String(), a.text.Len() > 0 || a.reasoning.Len() > 0 || len(a.calls) > 0
}

// take reads one event.
func (a *answer) take(name string, data []byte) error {
	if text, ok := plainDelta(data); ok && name == "" {
		a.addContent(text)
		return nil
	}
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		if name == "error" || data[0] == '[' {
			return a.inStream(data)
		}
		return &llm.Error{Kind: llm.Malformed, Err: a.client.Said(fmt.Sprintf("unreadable event: %v", err))}
	}
	if len(c.Error) > 0 && string(c.Error) != "null" || name == "error" {
		return a.inStream(data)
	}
	if err := a.add(&c); err != nil {
		return &llm.Error{Kind: llm.TooLong, Err: err}
	}
	return nil
}

// inStream is an error that came after a status of 200. Its code is often the status that it should have had.
func (a *answer) inStream(data []byte) error {
	text, code := wire.ErrorText(data)
	status := 0
	if _, err := fmt.Sscanf(code, "%d", &status); err != nil || status < 400 || status > 599 {
		status = 500
	}
	return &llm.Error{Kind: classify(status, text, code), Status: status, Err: a.client.Said(text)}
}
