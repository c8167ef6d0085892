package spec

import (
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"time"
)

// Verb is what a surface needs to render a verb.
type Verb struct {
	Name, Help, Long string
	Method, Path     string // both empty: HTTP has it not
	Status           int    // of a good answer
	Group, CLI       string // CLI empty: the command line has it not, or a command of its own
	MCP              string // the name of its tool; empty: it has none
	Unkept           bool   // its answer is not kept for a client's key
	Soon             bool   // its answer is kept for a client's key when the store takes it
	Chat             string // its slash commands; empty: none
	Order            Order  // in which a slash command is done
	Typed            bool   // what follows its slash command has a grammar of its own
	Confirm          string // what a terminal asks before, with {name} for a field
	Fields           []Field
	In, Out          reflect.Type
}

// Order is when a slash command is done.
type Order int

const (
	Concurrent    Order = iota // at once, beside the session's turns
	InOrder                    // it changes what comes next: in its place in the session's order
	AheadOfWait                // as InOrder, but at once while the session's turn does nothing but wait for its model
	BeforeRouting              // it changes where the room's next message goes: before that one is routed
)

// Shown is what a terminal shows: a line, rows under heads, or rows of a name and a value each, and a text. A cell is shown as
// its type is: a time as how long ago it was, an Until as when and how long until then, a Brief cut.
type Shown struct {
	Line   string
	Heads  []string
	Rows   [][]any
	Text   string  // below them, of whatever lines
	Failed bool    // what was asked for went wrong: the command line ends with 1
	Next   *string // where the next page goes on; nil: there is none
}

// Until is when something ends.
type Until time.Time

// Brief is a text of which a cell shows the beginning, in so many columns.
type Brief struct {
	Text    string
	Columns int
}

// Safe says that a verb changes nothing.
func (s Verb) Safe() bool { return s.Method == http.MethodGet }

// Route is the pattern of net/http that leads to the verb.
func (s Verb) Route() string { return s.Method + " " + s.Path }

// Request is the path, with its query, and the body that ask for the verb with in, a pointer to its In. A body is nil
// where nothing is sent.
func (s Verb) Request(in any) (path string, body any) {
	path = s.Path
	query, fields := url.Values{}, map[string]any{}
	for _, f := range s.Fields {
		text, given := f.Get(in)
		switch {
		case f.From == InPath:
			path = strings.ReplaceAll(path, "{"+f.Name+"}", url.PathEscape(text))
		case !given:
		case f.From == InQuery:
			query.Set(f.Name, text)
		default:
			fields[f.Name] = reflect.ValueOf(in).Elem().FieldByIndex(f.index).Interface()
		}
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	if len(fields) == 0 {
		return path, nil
	}
	return path, fields
}
