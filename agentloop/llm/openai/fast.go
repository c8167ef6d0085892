package openai

import (
	"bytes"
	"encoding/json"
)

const (
	deltaMark  = `"delta":{"content":"`
	openEnd    = `"finish_reason":null`
	usageStart = `"usage":{`
	errorStart = `"error":`
)

// plainDelta reads the chunk that nearly every chunk is, one piece of text and nothing else, without decoding the
// rest: that is a fifth of the CPU of a call. The marks cannot stand inside a JSON string, where their quotes would
// be escaped. ok is false for any other chunk, which must be decoded as a whole.
func plainDelta(data []byte) (text string, ok bool) {
	at := bytes.Index(data, []byte(deltaMark))
	if at < 0 {
		return "", false
	}
	literal := data[at+len(deltaMark)-1:] // with its first quote
	end := stringEnd(literal)
	if end < 0 || end == len(literal) || literal[end] != '}' {
		return "", false
	}
	head, tail := data[:at], literal[end:]
	has := func(mark string) bool {
		return bytes.Contains(head, []byte(mark)) || bytes.Contains(tail, []byte(mark))
	}
	if !has(openEnd) || has(usageStart) || has(errorStart) || has(deltaMark) {
		return "", false
	}
	if json.Unmarshal(literal[:end], &text) != nil {
		return "", false
	}
	return text, true
}

// stringEnd is the index behind the closing quote of the literal that b begins with; -1: there is none.
func stringEnd(b []byte) int {
	for i := 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}
