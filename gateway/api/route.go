package api

import (
	"net/http"

	"parley/gateway/api/once"
	"parley/gateway/control"
	"parley/gateway/control/all"
)

// route is one endpoint, with what openapi.json says of it.
type route struct {
	pattern string // method and path, as net/http writes them
	serve   func(http.ResponseWriter, *http.Request) error
	traits  traits
	operation
}

// operation is what openapi.json says of an endpoint beside its path. Types are given by a zero value.
type operation struct {
	group   string
	summary string
	query   string      // names of its parameters, as the document's test knows them, separated by blanks
	body    any         // what is sent; nil: nothing
	good    map[int]any // what good answers hold, by status; nil: nothing
	media   string      // of a good answer; empty: application/json
}

// traits are what sets an endpoint apart from one that needs the token, says what control says, and keeps its answer for a key.
type traits int

const (
	open      traits = 1 << iota // it needs no token
	system                       // the token of the one question that it answers lets in as well
	bare                         // its answer is not the gateway's own text: no secret is looked for in it
	journaled                    // it is journalled under its key
	upload                       // its body is a file, which is bounded and hashed by itself
	soon                         // its answer is kept for its key when the store takes it
	loose                        // its answer is not kept for its key
)

// has says whether it is one of some.
func (t traits) has(some traits) bool { return t&some != 0 }

func (t traits) keeping() once.Keeping {
	switch {
	case t.has(loose):
		return once.Not
	case t.has(soon):
		return once.Soon
	}
	return once.Kept
}

// base is what all groups of endpoints need: the verbs, and who asks for one.
type base struct {
	control *all.Nouns
	call    func(*http.Request) control.Call
}

func one(status int, v any) map[int]any { return map[int]any{status: v} }

// safe says whether a method changes nothing.
func safe(method string) bool { return method == http.MethodGet || method == http.MethodHead }

const (
	sseMedia = "text/event-stream"
	anyMedia = "*/*"
)

// rawBody is a file as it is.
type rawBody struct{}
