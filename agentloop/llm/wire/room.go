package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"
	"unicode/utf8"

	"parley/agentloop/llm"
)

// How long an answer may be, in bytes. A token is about four bytes of text; these bounds are far beyond what a model that keeps to
// its limit says, and end what one says that does not.
const (
	tokenBytes    = 16        // of text, thoughts and arguments, for each token of the limit
	allowance     = 16 << 10  // beside them
	defaultTokens = 64 << 10  // of a model that names no limit
	maxHeld       = 1 << 20   // of any answer
	freeBytes     = 64 << 10  // that an answer may have without asking the budget
	wireTokens    = 1 << 10   // on the wire, for each token of the limit: most servers send one token an event
	maxWire       = 32 << 20  // on the wire, of any answer
	lineFactor    = 6         // one byte of text may be six of JSON
	lineAllowance = 256 << 10 // of one event, beside its text
)

// ErrTooLong ends an answer that is longer than it may be. What came of it is the answer.
var ErrTooLong = errors.New("answer is longer than its limit")

// Room bounds one answer. Its zero value bounds nothing.
type Room struct {
	most, used int
	hold       *llm.Hold
	asked      bool // the hold has granted what the answer may come to
	ctx        context.Context
	pause      func() (resume func())
	full       bool
	err        error // of the hold
}

// NewRoom is for an answer of at most so many tokens; 0: the model names no limit.
func NewRoom(tokens int, hold *llm.Hold) *Room {
	return &Room{most: heldBytes(tokens), hold: hold}
}

func heldBytes(tokens int) int {
	if tokens <= 0 {
		tokens = defaultTokens
	}
	return min(tokens, maxHeld/tokenBytes)*tokenBytes + allowance
}

// wire is how many bytes may come, and line how many in one event.
func (r *Room) wire() (all int64, line int) {
	if r == nil || r.most == 0 {
		return maxWire, MaxLine
	}
	return min(maxWire, int64(r.most)/tokenBytes*wireTokens+1<<20), min(MaxLine, r.most*lineFactor+lineAllowance)
}

// Take is the part of s that the answer has room for, cut between characters. It may wait for the budget.
func Take[T ~string | ~[]byte](r *Room, s T) T {
	if r == nil || r.most == 0 || len(s) == 0 {
		return s
	}
	if r.full || !r.admitted(len(s)) {
		return s[:0]
	}
	if left := r.most - r.used; len(s) > left {
		r.full = true
		for left > 0 && !utf8.RuneStart(s[left]) {
			left--
		}
		s = s[:left]
	}
	r.used += len(s)
	return s
}

// admitted asks the budget once, when the answer becomes a long one. The server is silent meanwhile since nobody reads.
func (r *Room) admitted(more int) bool {
	if r.asked || r.hold == nil || r.used+more <= freeBytes {
		return true
	}
	r.asked = true
	if r.pause != nil {
		defer r.pause()()
	}
	r.err = r.hold.Grow(r.ctx, int64(r.most))
	r.full = r.err != nil
	return r.err == nil
}

// Err says why no more can be taken: ErrTooLong, or that the call has ended. Decoders look after each event.
func (r *Room) Err() error {
	switch {
	case r == nil || !r.full:
		return nil
	case r.err != nil:
		return r.err
	}
	return ErrTooLong
}

// Tokens is about how many the answer came to, for one that was cut before its server counted them.
func (r *Room) Tokens() int {
	if r == nil {
		return 0
	}
	return (r.used + 3) / 4
}

// begin ties the room to a call.
func (r *Room) begin(ctx context.Context, timer *time.Timer, idle time.Duration) {
	if r == nil {
		return
	}
	r.ctx = ctx
	r.pause = func() func() {
		timer.Stop()
		return func() { timer.Reset(idle) }
	}
}

// ReadWhole reads an answer that comes in one piece; with ErrTooLong its beginning.
func ReadWhole(r io.Reader, room *Room) ([]byte, error) {
	_, most := room.wire()
	body, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	if err == nil && len(body) > most {
		err = ErrTooLong
	}
	return body, err
}

// Close makes the beginning of a JSON text whole, so that what stands in it can be read: a value that is a string and open ends there.
// Nil where that is not enough.
func Close(b []byte) []byte {
	var open []byte
	inside, escape, need := false, 0, 0 // in a string; where its last escape begins, and how many bytes that lacks
	for i, c := range b {
		switch {
		case inside && need > 0:
			if need--; c == 'u' && i == escape+1 {
				need = 4
			}
		case inside && c == '\\':
			escape, need = i, 1
		case c == '"':
			inside = !inside
		case inside:
		case c == '{':
			open = append(open, '}')
		case c == '[':
			open = append(open, ']')
		case (c == '}' || c == ']') && len(open) > 0:
			open = open[:len(open)-1]
		}
	}
	if !inside {
		return nil
	}
	if need > 0 {
		b = b[:escape]
	}
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if last := b[len(b)-n:]; utf8.RuneStart(last[0]) && !utf8.FullRune(last) {
			b = b[:len(b)-n]
			break
		}
	}
	out := append(bytes.Clone(b), '"')
	for i := len(open) - 1; i >= 0; i-- {
		out = append(out, open[i])
	}
	return out
}
