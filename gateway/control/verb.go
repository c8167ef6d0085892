package control

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"parley/gateway/rights"
	"parley/gateway/spec"
)

// Verb is one thing that somebody can ask the gateway for. What its surfaces need to know of it stands here, once: the
// HTTP route and its description, the command line, the client's call and the documentation are rendered from it.
//
// In and Out are plain structs. A field of In says by a tag where it comes from (path:"id", query:"limit", json:"as"),
// by help what it is, by enum, min, max and default what it may be, and by flag what the command line calls it; see
// spec.Field. Out is the JSON that is answered.
type Verb[In, Out any] struct {
	Name   string // its row in docs/rights.md, which several verbs may share
	Help   string // what it does, as an order: "Let a stranger in"
	Long   string // what else the command line's help tells
	Rights rights.Row
	HTTP   string // method and path; each {name} is a field of In. Empty: no route
	Status int    // of a good answer; 0: 200. With 204 there is no body
	Group  string // of HTTP's description
	// CLI is such as "pairing approve <code>": each <name> is the next path or body field that it names, [name] one that may
	// be left out. Empty: no command is rendered.
	CLI     string
	Confirm string // what a terminal asks before it is done, such as "Delete session {key}?"; empty: nothing
	// Do does it, for a caller whose role may. It checks what is the caller's own, and commits.
	Do func(ctx context.Context, c *Control, call Call, in In) (Out, error)
	// Show is what a terminal shows of the answer to what was asked; nil: "done".
	Show func(in In, out Out) spec.Shown
}

// Any is a verb of whatever types.
type Any interface {
	Right() (name string, row rights.Row)
	Spec() spec.Verb
	// Run does it for a caller; fill sets the fields of what it is given, a pointer to the verb's In.
	Run(ctx context.Context, c *Control, call Call, fill func(in any) error) (out any, err error)
	// Shown is what a terminal shows of an answer that came as JSON to what was asked by in, a pointer to the verb's In.
	Shown(in any, answer []byte) (spec.Shown, error)
}

// SessionWord names a session: by its key, or one of the caller's local ones in short: main is that of the default agent,
// research/main that of another.
type SessionWord string

// RunWord names a run, by its id or by that of its message. Of the newest 500 runs the last six characters do.
type RunWord string

func (v Verb[In, Out]) Right() (string, rights.Row) { return v.Name, v.Rights }

func (v Verb[In, Out]) Spec() spec.Verb {
	method, path, _ := strings.Cut(v.HTTP, " ")
	in := reflect.TypeFor[In]()
	return spec.Verb{Name: v.Name, Help: v.Help, Long: v.Long, Method: method, Path: path, Status: cmp.Or(v.Status, http.StatusOK), Group: v.Group,
		CLI: v.CLI, Confirm: v.Confirm, Fields: spec.FieldsOf(in), In: in, Out: reflect.TypeFor[Out]()}
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
		err = spec.Check(&in)
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
	if s.Status == http.StatusNoContent {
		return out, c.Do(ctx, s.Method, path, body, nil)
	}
	return out, c.Do(ctx, s.Method, path, body, &out)
}

func (v Verb[In, Out]) Shown(in any, answer []byte) (spec.Shown, error) {
	if v.Show == nil {
		return spec.Shown{Line: "done"}, nil
	}
	var out Out
	if len(answer) > 0 {
		if err := json.Unmarshal(answer, &out); err != nil {
			return spec.Shown{}, fmt.Errorf("read the answer to %s: %w", v.Name, err)
		}
	}
	return v.Show(*in.(*In), out), nil
}
