package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

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
	lines := wire.NewEvents(r)
	for {
		name, data, err := lines.Next()
		switch {
		case err == io.EOF && a.finish != "":
			return nil // no [DONE], but the answer had its end
		case err == io.EOF:
			return wire.ErrNoEnd
		case err != nil && a.finish != "" && !errors.Is(err, wire.ErrLongLine):
			return nil
		case err != nil:
			return err
		case string(data) == "[DONE]":
			return nil
		case len(bytes.TrimSpace(data)) == 0:
			continue
		}
		if err := a.take(name, data); err != nil {
			return err
		}
	}
}

func (a *answer) readWhole(r io.Reader) error {
	body, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	return a.take("", body)
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
		return &llm.Error{Kind: llm.Malformed, Err: err}
	}
	return nil
}

// inStream is an error that came after a status of 200. Its code is often the status that it should have had.
func (a *answer) inStream(data []byte) error {
	text, code := errorText(data)
	status := 0
	if _, err := fmt.Sscanf(code, "%d", &status); err != nil || status < 400 || status > 599 {
		status = 500
	}
	return &llm.Error{Kind: classify(status, text, code), Status: status, Err: a.client.Said(text)}
}
