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
// C is the noun that does it, such as *session.Sessions. In and Out are plain structs. A field of In says by a tag where it comes
// from (path:"id", query:"limit", json:"as"), by help what it is, by enum, min, max, default and needed what it may be, and by
// flag what the command line calls it; see spec.Field. Out is the JSON that is answered.
type Verb[C Noun, In, Out any] struct {
	Name   string // its row in docs/rights.md, which several verbs may share
	Help   string // what it does, as an order: "Let a stranger in"
	Long   string // what else the command line's help tells
	Rights rights.Row
	HTTP   string // method and path; each {name} is a field of In. Empty: no route
	Status int    // of a good answer; 0: 200. With 204 there is no body
	Group  string // of HTTP's description
	Unkept bool   // its answer is not kept for a client's key: it changes nothing, or its answer is a secret
	Soon   bool   // its answer is kept when the store takes it: it is done also while the store takes nothing
	MCP    string // the name of its tool, such as list_runs; empty: it has none
	// CLI is such as "pairing approve <code>": each <name> is the next path or body field that it names, [name] one that may
	// be left out, and given by its flag. Empty: no command is rendered.
	CLI     string
	Confirm string // what a terminal asks before it is done, such as "Delete session {key}?"; empty: nothing
	// Chat is its slash command, such as "session rename <name>"; several are parted by commas. What stands in <> or [] is for the
	// only field, or for the one that has this word as its name or in its tag chat. Empty: none.
	Chat  string
	Order spec.Order // when its slash command is done
	// Parse reads what follows the plain words of its slash command, where that has a grammar of its own; nil: it has none. A word
	// that it does not take is a NotTaken.
	Parse func(words []string) (In, error)
	// Do does it, for a caller whose role may. It checks what is the caller's own, and commits.
	Do func(ctx context.Context, c C, call Call, in In) (Out, error)
	// Show is what a terminal shows of the answer to what was asked; nil: "done".
	Show func(in In, out Out) spec.Shown
	// Say is what a chat is answered, in Markdown; nil: "Done."
	Say func(out Out) string
}

// Noun does the verbs of its kind: it is a struct with the Kernel in it.
type Noun interface {
	Judge(call Call, verb string, row rights.Row) error
}

// Any is a verb of whatever types.
type Any interface {
	Right() (name string, row rights.Row)
	Spec() spec.Verb
	// Run does it for a caller, by that of the nouns whose it is; fill sets the fields of what it is given, a pointer to its In.
	Run(ctx context.Context, nouns []Noun, call Call, fill func(in any) error) (out any, err error)
	// Shown is what a terminal shows of an answer that came as JSON to what was asked by in, a pointer to the verb's In.
	Shown(in any, answer []byte) (spec.Shown, error)
	// Typed fills in, a pointer to its In, by the words of a grammar of its own; own is false where it has none.
	Typed(in any, words []string) (own bool, err error)
	// Said is what a chat is answered of what the verb commits.
	Said(value any) string
}

// NotTaken is a word that a slash command does not take; empty: there are too few.
type NotTaken string

func (w NotTaken) Error() string { return fmt.Sprintf("argument %q is not taken", string(w)) }

func (v Verb[C, In, Out]) Right() (string, rights.Row) { return v.Name, v.Rights }

func (v Verb[C, In, Out]) Spec() spec.Verb {
	method, path, _ := strings.Cut(v.HTTP, " ")
	in := reflect.TypeFor[In]()
	return spec.Verb{Name: v.Name, Help: v.Help, Long: v.Long, Method: method, Path: path, Status: cmp.Or(v.Status, http.StatusOK),
		Group: v.Group, CLI: v.CLI, Confirm: v.Confirm, Unkept: v.Unkept, Soon: v.Soon, MCP: v.MCP,
		Chat: v.Chat, Order: v.Order, Typed: v.Parse != nil, Fields: spec.FieldsOf(in), In: in, Out: reflect.TypeFor[Out]()}
}

// Call does the verb for a caller, as every surface does: first the caller's role is judged, then what was given.
func (v Verb[C, In, Out]) Call(ctx context.Context, c C, call Call, in In) (Out, error) {
	return v.run(ctx, c, call, func(p *In) error {
		*p = in
		return nil
	})
}

func (v Verb[C, In, Out]) Run(ctx context.Context, nouns []Noun, call Call, fill func(in any) error) (any, error) {
	for _, noun := range nouns {
		if c, ok := noun.(C); ok {
			return v.run(ctx, c, call, func(p *In) error { return fill(p) })
		}
	}
	return nil, fmt.Errorf("%s: %s is not among the nouns", v.Name, reflect.TypeFor[C]())
}

func (v Verb[C, In, Out]) run(ctx context.Context, c C, call Call, fill func(in *In) error) (none Out, err error) {
	if err := c.Judge(call, v.Name, v.Rights); err != nil { // before anything is read
		return none, err
	}
	var in In
	if err := fill(&in); err != nil {
		return none, err
	}
	if err := spec.Check(&in); err != nil {
		return none, err
	}
	out, err := v.Do(ctx, c, call, in)
	if err != nil {
		return none, err
	}
	return out, nil
}

// Client sends a request and reads the answer.
type Client interface {
	Do(ctx context.Context, method, path string, body, out any) error
}

// Ask is the client's call.
func (v Verb[C, In, Out]) Ask(ctx context.Context, c Client, in In) (out Out, err error) {
	s := v.Spec()
	path, body := s.Request(&in)
	if s.Status == http.StatusNoContent {
		return out, c.Do(ctx, s.Method, path, body, nil)
	}
	return out, c.Do(ctx, s.Method, path, body, &out)
}

func (v Verb[C, In, Out]) Shown(in any, answer []byte) (spec.Shown, error) {
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

func (v Verb[C, In, Out]) Typed(in any, words []string) (own bool, err error) {
	if v.Parse == nil {
		return false, nil
	}
	*in.(*In), err = v.Parse(words)
	return true, err
}

func (v Verb[C, In, Out]) Said(value any) string {
	if out, ok := value.(Out); ok && v.Say != nil {
		return v.Say(out)
	}
	return "Done."
}
