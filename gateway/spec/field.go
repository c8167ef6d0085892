// Package spec is what a surface needs to know of a verb to render it: its route, its command line, what it is told, and
// what a terminal shows of the answer. It knows no verb and does nothing.
package spec

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"parley/workspace"
	"parley/workspace/clip"
)

// Field is one thing that a verb is told, as the tags of a field of its In say.
type Field struct {
	Name     string
	From     Place
	Flag     string   // what the command line calls it
	Chat     string   // what its slash command calls it
	Help     string   // what it is; a word between * names the value where there is room for no more
	Choices  []string // the only values; nil: any
	Min, Max *int     // of a number; nil: no bound
	Default  string   // what is taken when it is left out
	Needed   bool
	Format   string // of a text: date; empty: any
	Type     reflect.Type
	index    []int
}

// Place is where HTTP has a field.
type Place string

// Places.
const (
	InPath  Place = "path"
	InQuery Place = "query"
	InBody  Place = "json"
)

// known has the fields of each struct that was read: its tags never change.
var known sync.Map // of reflect.Type to []Field

// FieldsOf reads the tags of a struct. Fields of an embedded struct count as its own. Nobody changes the list.
func FieldsOf(in reflect.Type) []Field {
	if list, ok := known.Load(in); ok {
		return list.([]Field)
	}
	list, _ := known.LoadOrStore(in, readFields(in))
	return list.([]Field)
}

func readFields(in reflect.Type) []Field {
	var list []Field
	for _, f := range reflect.VisibleFields(in) {
		if f.Anonymous || !f.IsExported() {
			continue
		}
		for _, place := range []Place{InPath, InQuery, InBody} {
			if tag, ok := f.Tag.Lookup(string(place)); ok {
				list = append(list, fieldOf(f, place, tag))
			}
		}
	}
	return list
}

func fieldOf(f reflect.StructField, place Place, tag string) Field {
	name, options, _ := strings.Cut(tag, ",")
	one := Field{Name: name, From: place, Flag: name, Chat: name, Help: f.Tag.Get("help"), Default: f.Tag.Get("default"),
		Format: f.Tag.Get("format"), Type: f.Type, index: f.Index}
	one.Needed = place == InPath || place == InBody && options == "" || f.Tag.Get("needed") == "true"
	if one.Type.Kind() == reflect.Pointer {
		one.Type = f.Type.Elem()
	}
	if flag, ok := f.Tag.Lookup("flag"); ok {
		one.Flag = flag
	}
	if word, ok := f.Tag.Lookup("chat"); ok {
		one.Chat = word
	}
	if text := f.Tag.Get("enum"); text != "" {
		one.Choices = strings.Split(text, ",")
	}
	for tag, bound := range map[string]**int{"min": &one.Min, "max": &one.Max} {
		if n, err := strconv.Atoi(f.Tag.Get(tag)); err == nil { // a test reads every tag
			*bound = &n
		}
	}
	return one
}

// Plain is the help without the mark of the value's name.
func (f Field) Plain() string { return strings.ReplaceAll(f.Help, "*", "") }

// Set gives a field of in, a pointer to a verb's In, the value that a text means.
func (f Field) Set(in any, text string) error {
	if !f.takes(text) {
		return f.Wrong(text)
	}
	v := reflect.ValueOf(in).Elem().FieldByIndex(f.index)
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(f.Type))
		v = v.Elem()
	}
	var err error
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Int, reflect.Int64:
		var n int64
		n, err = strconv.ParseInt(text, 10, 64)
		v.SetInt(n)
	case reflect.Bool:
		if text != "true" && text != "false" {
			return f.Wrong(text)
		}
		v.SetBool(text == "true")
	case reflect.Slice: // of texts, or a value of JSON
		if f.Type == reflect.TypeFor[json.RawMessage]() {
			if !json.Valid([]byte(text)) {
				return f.Wrong(text)
			}
			v.SetBytes([]byte(text))
		} else {
			v.Set(reflect.ValueOf(strings.Split(text, ",")))
		}
	default:
		panic(fmt.Sprintf("%s of a verb is a %s", f.Name, v.Type()))
	}
	if err != nil {
		return f.Wrong(text)
	}
	return nil
}

// Get is a field's value as HTTP's path and query have it, and whether it was given: what is not a pointer is left out when it
// is zero.
func (f Field) Get(in any) (text string, given bool) {
	v := reflect.ValueOf(in).Elem().FieldByIndex(f.index)
	if v.IsZero() {
		return "", false
	}
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	return fmt.Sprint(v.Interface()), true
}

// Check gives what was left out its default, and refuses what is missing or out of bounds.
func Check(in any) error {
	for _, f := range FieldsOf(reflect.TypeOf(in).Elem()) {
		text, given := f.Get(in)
		switch {
		case !given && f.Default != "":
			if err := f.Set(in, f.Default); err != nil {
				return err
			}
		case !given && f.Needed && f.From != InPath:
			return workspace.Say(workspace.ErrInvalid, "%s is missing. It is %s.", f.Name, f.Takes())
		case given && !f.takes(text):
			return f.Wrong(text)
		}
	}
	return nil
}

// takes says whether a value is one of the choices, and within the bounds.
func (f Field) takes(text string) bool {
	if f.Choices != nil {
		return slices.Contains(f.Choices, text)
	}
	if f.Min == nil && f.Max == nil {
		return true
	}
	n, err := strconv.Atoi(text)
	return err == nil && (f.Min == nil || n >= *f.Min) && (f.Max == nil || n <= *f.Max)
}

// Takes says what a value may be.
func (f Field) Takes() string {
	switch {
	case f.Choices != nil:
		last := len(f.Choices) - 1
		return strings.Join(f.Choices[:last], ", ") + " or " + f.Choices[last]
	case f.Min != nil && f.Max != nil:
		return fmt.Sprintf("a number from %d to %d", *f.Min, *f.Max)
	case f.Min != nil:
		return fmt.Sprintf("a number from %d", *f.Min)
	case f.Type.Kind() == reflect.Bool:
		return "true or false"
	case f.Type.Kind() == reflect.String:
		return "a text"
	case f.Type == reflect.TypeFor[json.RawMessage]():
		return "JSON"
	}
	return "a number"
}

// Wrong is the sentence for a value that a field does not take.
func (f Field) Wrong(text string) error {
	return workspace.Say(workspace.ErrInvalid, "%s is %s, not %q.", f.Name, f.Takes(), clip.Runes(text, 40))
}
