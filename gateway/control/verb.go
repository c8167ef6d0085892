package control

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"

	"parley/gateway/rights"
)

// Verb is one thing that somebody can ask the gateway for. What its surfaces need to know of it stands here, once: the
// HTTP route and its description, the command line, the client's call and the documentation are rendered from it.
//
// In and Out are plain structs. A field of In says by a tag where it comes from (path:"id", query:"limit", json:"as"),
// by help what it is, and by enum, min, max and default what it may be; see Field. Out is the JSON that is answered.
type Verb[In, Out any] struct {
	Name   string // its row in docs/rights.md, which several verbs may share
	Help   string // what it does, as an order: "Let a stranger in"
	Long   string // what else the command line's help tells
	Rights rights.Row
	HTTP   string // method and path; each {name} is a field of In
	Group  string // of HTTP's description
	CLI    string // "pairing approve <code>": each <name> is the next path or body field that it names
	// Do does it, for a caller whose role may. It checks what is the caller's own, and commits.
	Do func(ctx context.Context, c *Control, call Call, in In) (Out, error)
	// Show is what a terminal shows of the answer; nil: "done".
	Show func(out Out) Shown
}

// Any is a verb of whatever types.
type Any interface {
	Right() (name string, row rights.Row)
	Spec() Spec
	// Run does it for a caller; fill sets the fields of what it is given, a pointer to the verb's In.
	Run(ctx context.Context, c *Control, call Call, fill func(in any) error) (out any, err error)
	// Shown is what a terminal shows of an answer that came as JSON.
	Shown(answer []byte) (Shown, error)
}

// Spec is what a surface needs to render a verb.
type Spec struct {
	Name, Help, Long string
	Method, Path     string
	Group, CLI       string
	Fields           []Field
	In, Out          reflect.Type
}

// Shown is what a terminal shows: a line, rows under heads, or rows of a name and a value each. A time in a row is shown as how
// long ago it was.
type Shown struct {
	Line  string
	Heads []string
	Rows  [][]any
	Next  *string // where the next page goes on; nil: there is none
}

// Page is what a reader asks for of a list.
type Page struct {
	Limit int    `query:"limit" help:"how many at most" min:"1" max:"500" default:"50"`
	After string `query:"after" help:"where to go on: next of the page before"`
}

// List is a page of a list.
type List[T any] struct {
	Items []T     `json:"items"`
	Next  *string `json:"next"` // null: there is no more
}

// whole is a list of one page.
func whole[T any](items []T) List[T] { return List[T]{Items: append([]T{}, items...)} }

// PageOf makes a page of what was asked for with one item more than the limit.
func PageOf[T any](items []T, limit int, cursor func(T) string) List[T] {
	if len(items) <= limit {
		return whole(items)
	}
	next := cursor(items[limit-1])
	return List[T]{Items: items[:limit], Next: &next}
}

func (v Verb[In, Out]) Right() (string, rights.Row) { return v.Name, v.Rights }

func (v Verb[In, Out]) Spec() Spec {
	method, path := splitRoute(v.HTTP)
	in := reflect.TypeFor[In]()
	return Spec{Name: v.Name, Help: v.Help, Long: v.Long, Method: method, Path: path, Group: v.Group, CLI: v.CLI, Fields: FieldsOf(in), In: in, Out: reflect.TypeFor[Out]()}
}

// Call does the verb for a caller, as every surface does: first the caller's role is judged, then what was given.
func (v Verb[In, Out]) Call(ctx context.Context, c *Control, call Call, in In) (Out, error) {
	out, err := v.Run(ctx, c, call, func(p any) error {
		*p.(*In) = in
		return nil
	})
	if err != nil {
		var none Out
		return none, err
	}
	return out.(Out), nil
}

func (v Verb[In, Out]) Run(ctx context.Context, c *Control, call Call, fill func(in any) error) (any, error) {
	if err := c.allow(call, verb(v.Name), v.Rights); err != nil {
		return nil, err
	}
	var in In
	err := fill(&in)
	if err == nil {
		err = check(&in)
	}
	if err != nil {
		return nil, err
	}
	return v.Do(ctx, c, call, in)
}

// Client sends a request and reads the answer.
type Client interface {
	Do(ctx context.Context, method, path string, body, out any) error
}

// Ask is the client's call.
func (v Verb[In, Out]) Ask(ctx context.Context, c Client, in In) (out Out, err error) {
	s := v.Spec()
	path, body := s.Request(&in)
	err = c.Do(ctx, s.Method, path, body, &out)
	return out, err
}

func (v Verb[In, Out]) Shown(answer []byte) (Shown, error) {
	if v.Show == nil {
		return Shown{Line: "done"}, nil
	}
	var out Out
	if err := json.Unmarshal(answer, &out); err != nil {
		return Shown{}, fmt.Errorf("read the answer to %s: %w", v.Name, err)
	}
	return v.Show(out), nil
}

// Safe says that a verb changes nothing.
func (s Spec) Safe() bool { return s.Method == http.MethodGet }
