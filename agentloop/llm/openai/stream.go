package openai

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"parley/agentloop/llm"
	"parley/workspace"
)

// afterDone is how long the end of the body may take once the answer is complete. Reading it keeps the connection
// for the next call; a server that never ends it costs only that.
const afterDone = 100 * time.Millisecond

var (
	errWebPage = errors.New("the server answered with a web page; base_url should end in /v1")
	errNoEnd   = errors.New("the stream ended before the answer did")
)

// guarded is a body whose reads are watched: the timer ends the call's context when no byte comes.
type guarded struct {
	io.Reader
	timer *time.Timer
	idle  time.Duration
	over  bool // the answer is complete: no byte prolongs the call any more
}

func (g *guarded) Read(p []byte) (int, error) {
	n, err := g.Reader.Read(p)
	if n > 0 && !g.over {
		g.timer.Reset(g.idle)
	}
	return n, err
}

// once makes one HTTP call. An error of the server is an *llm.Error.
func (m *Model) once(ctx context.Context, req llm.Request, q quirk, onDelta func(llm.Delta)) (llm.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(m.o.FirstByte, func() { cancel(errSilent) })
	defer timer.Stop()

	call, err := http.NewRequestWithContext(ctx, http.MethodPost, m.endpoint, bytes.NewReader(m.body(req, q)))
	if err != nil {
		return llm.Response{}, errors.New("base_url cannot be used")
	}
	call.Header.Set("Content-Type", "application/json")
	call.Header.Set("Accept", "text/event-stream")
	if m.o.APIKey != "" {
		call.Header.Set("Authorization", "Bearer "+m.o.APIKey)
	}
	resp, err := m.http.Do(call)
	if err != nil {
		return llm.Response{}, m.unreached(context.Cause(ctx), err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return llm.Response{}, m.refused(resp)
	}
	limited := &io.LimitedReader{R: resp.Body, N: maxAnswer}
	body := &guarded{Reader: limited, timer: timer, idle: m.o.Idle}
	r := m.readers.get(body)
	defer m.readers.put(r)
	a := &answer{onDelta: onDelta}
	if err := m.read(r, a); err != nil {
		if limited.N <= 0 {
			err = errLongAnswer
		}
		return llm.Response{}, m.broken(context.Cause(ctx), a, err)
	}
	body.over = true
	timer.Reset(afterDone)
	// The answer is complete; what follows matters to nobody.
	_, _ = io.Copy(io.Discard, r)
	return a.response(m.account, callIDs(req.Messages)), nil
}

// read takes in a stream, or one JSON body from a server that does not stream.
func (m *Model) read(r *bufio.Reader, a *answer) error {
	switch first, err := firstByte(r); {
	case err != nil:
		return err
	case first == '{' || first == '[':
		return m.readWhole(r, a)
	case first == '<':
		return errWebPage
	}
	lines := events{r: r}
	for {
		name, data, err := lines.next()
		switch {
		case err == io.EOF && a.finish != "":
			return nil // no [DONE], but the answer had its end
		case err == io.EOF:
			return errNoEnd
		case err != nil && a.finish != "" && !errors.Is(err, errLongLine):
			return nil
		case err != nil:
			return err
		case string(data) == "[DONE]":
			return nil
		case len(bytes.TrimSpace(data)) == 0:
			continue
		}
		if err := m.take(name, data, a); err != nil {
			return err
		}
	}
}

// firstByte skips white space and a byte order mark.
func firstByte(r *bufio.Reader) (byte, error) {
	for {
		b, err := r.ReadByte()
		switch {
		case err == io.EOF:
			return 0, errNoEnd
		case err != nil:
			return 0, err
		case b == 0xEF || b == 0xBB || b == 0xBF || b == ' ' || b == '\r' || b == '\n' || b == '\t':
			continue
		}
		return b, r.UnreadByte()
	}
}

func (m *Model) readWhole(r io.Reader, a *answer) error {
	body, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if err := m.take("", body, a); err != nil {
		return err
	}
	return nil
}

// take reads one event.
func (m *Model) take(name string, data []byte, a *answer) error {
	if text, ok := plainDelta(data); ok && name == "" {
		a.addContent(text)
		return nil
	}
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		if name == "error" || data[0] == '[' {
			return m.inStream(data)
		}
		return &llm.Error{Kind: llm.Malformed, Err: m.said(fmt.Sprintf("unreadable event: %v", err))}
	}
	if len(c.Error) > 0 && string(c.Error) != "null" || name == "error" {
		return m.inStream(data)
	}
	if err := a.add(&c); err != nil {
		return &llm.Error{Kind: llm.Malformed, Err: err}
	}
	return nil
}

// inStream is an error that came after a status of 200. Its code is often the status that it should have had.
func (m *Model) inStream(data []byte) error {
	text, code := errorText(data)
	status := 0
	if _, err := fmt.Sscanf(code, "%d", &status); err != nil || status < 400 || status > 599 {
		status = 500
	}
	return &llm.Error{Kind: classify(status, text, code), Status: status, Err: m.said(text)}
}

// broken is the error of an answer that did not come to its end.
func (m *Model) broken(cause error, a *answer, err error) error {
	var e *llm.Error
	begun := a.text.Len() > 0 || a.reasoning.Len() > 0 || len(a.calls) > 0
	switch {
	case errors.Is(cause, errSilent):
		e = &llm.Error{Kind: llm.TimedOut, Err: errSilent}
	case errors.As(err, &e):
		if e.Kind == llm.Overload && begun {
			e.Kind = llm.Cut
		}
	case errors.Is(err, errWebPage), errors.Is(err, errLongLine), errors.Is(err, errLongAnswer):
		e = &llm.Error{Kind: llm.Malformed, Err: err}
	default:
		e = &llm.Error{Kind: llm.Cut, Err: m.said(err.Error())}
	}
	e.Partial = a.text.String()
	return e
}

// callIDs of the conversation.
func callIDs(msgs []llm.Message) map[string]bool {
	ids := map[string]bool{}
	for _, msg := range msgs {
		for _, c := range msg.Content {
			if c.Kind == workspace.ToolCall {
				ids[c.CallID] = true
			}
		}
	}
	return ids
}
