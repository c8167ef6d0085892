package control

import (
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"parley/workspace"
	"parley/workspace/clip"
)

// Field is one thing that a verb is told, as the tags of a field of its In say.
type Field struct {
	Name     string
	From     Place
	Help     string   // what it is; a word between * names the value where there is room for no more
	Choices  []string // the only values; nil: any
	Min, Max int      // of a number; both 0: no bounds
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

// FieldsOf reads the tags of a struct. Fields of an embedded struct count as its own.
func FieldsOf(in reflect.Type) []Field {
	var list []Field
	for _, f := range reflect.VisibleFields(in) {
		if f.Anonymous || !f.IsExported() {
			continue
		}
		for _, place := range []Place{InPath, InQuery, InBody} {
			tag, ok := f.Tag.Lookup(string(place))
			if !ok {
				continue
			}
			name, options, _ := strings.Cut(tag, ",")
			one := Field{Name: name, From: place, Help: f.Tag.Get("help"), Default: f.Tag.Get("default"), Format: f.Tag.Get("format"), Type: f.Type, index: f.Index,
				Needed: place == InPath || place == InBody && options == ""}
			if text := f.Tag.Get("enum"); text != "" {
				one.Choices = strings.Split(text, ",")
			}
			one.Min, _ = strconv.Atoi(f.Tag.Get("min")) // a test reads every tag
			one.Max, _ = strconv.Atoi(f.Tag.Get("max"))
			list = append(list, one)
		}
	}
	return list
}

// Plain is the help without the mark of the value's name.
func (f Field) Plain() string { return strings.ReplaceAll(f.Help, "*", "") }

// Set gives a field of in, a pointer to a verb's In, the value that a text means.
func (f Field) Set(in any, text string) error {
	if !f.takes(text) {
		return f.wrong(text)
	}
	v := reflect.ValueOf(in).Elem().FieldByIndex(f.index)
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return f.wrong(text)
		}
		v.SetInt(n)
	case reflect.Bool:
		on, err := strconv.ParseBool(text)
		if err != nil {
			return f.wrong(text)
		}
		v.SetBool(on)
	default:
		panic(fmt.Sprintf("%s of a verb is a %s", f.Name, v.Type()))
	}
	return nil
}

// text is a field's value as HTTP's path and query have it; empty: it is left out.
func (f Field) text(in any) string {
	v := reflect.ValueOf(in).Elem().FieldByIndex(f.index)
	if v.IsZero() {
		return ""
	}
	return fmt.Sprint(v.Interface())
}

// check gives what was left out its default, and refuses what is out of bounds.
func check(in any) error {
	for _, f := range FieldsOf(reflect.TypeOf(in).Elem()) {
		text := f.text(in)
		if text == "" && f.Default != "" {
			text = f.Default
			if err := f.Set(in, text); err != nil {
				return err
			}
		}
		if text != "" && !f.takes(text) {
			return f.wrong(text)
		}
	}
	return nil
}

// takes says whether a value is one of the choices, and within the bounds.
func (f Field) takes(text string) bool {
	if f.Choices != nil {
		return slices.Contains(f.Choices, text)
	}
	if f.Max > 0 {
		n, err := strconv.Atoi(text)
		return err == nil && n >= f.Min && n <= f.Max
	}
	return true
}

// Takes says what a value may be.
func (f Field) Takes() string {
	switch {
	case f.Choices != nil:
		last := len(f.Choices) - 1
		return strings.Join(f.Choices[:last], ", ") + " or " + f.Choices[last]
	case f.Max > 0:
		return fmt.Sprintf("a number from %d to %d", f.Min, f.Max)
	case f.Type.Kind() == reflect.Bool:
		return "true or false"
	case f.Type.Kind() == reflect.String:
		return "a text"
	}
	return "a number"
}

// wrong is the sentence for a value that a field does not take.
func (f Field) wrong(text string) error {
	return workspace.Say(workspace.ErrInvalid, "%s is %s, not %q.", f.Name, f.Takes(), clip.Runes(text, 40))
}

// splitRoute takes "GET /v1/people" apart.
func splitRoute(route string) (method, path string) {
	method, path, _ = strings.Cut(route, " ")
	return method, path
}

// Request is the path, with its query, and the body that ask for the verb with in, a pointer to its In. A body is nil
// where nothing is sent.
func (s Spec) Request(in any) (path string, body any) {
	path = s.Path
	query, fields := url.Values{}, map[string]any{}
	for _, f := range s.Fields {
		text := f.text(in)
		switch {
		case f.From == InPath:
			path = strings.ReplaceAll(path, "{"+f.Name+"}", url.PathEscape(text))
		case text == "":
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
