package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// maxDepth is how deep a body may be nested.
const maxDepth = 32

// strict reads exactly one JSON value without unknown names, names in other letters and names that stand there twice.
// Its errors name no Go types.
func strict(body []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	var kind *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &kind) && kind.Field != "":
		return errors.New(kind.Field + " cannot be a " + kind.Value)
	case errors.As(err, &kind):
		return errors.New("it must be an object")
	case errors.As(err, &syntax), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it is not JSON")
	case err != nil:
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the value")
	}
	return exact(json.NewDecoder(bytes.NewReader(body)), reflect.TypeOf(v), 0)
}

// exact walks one value of valid JSON. Package json takes a name in any letters and of two equal names the last, so
// that two readers may understand one body in two ways.
func exact(d *json.Decoder, t reflect.Type, depth int) error {
	if depth > maxDepth {
		return errors.New("it is nested too deep")
	}
	token, err := d.Token()
	if err != nil {
		return err
	}
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch token {
	case json.Delim('{'):
		names := namesOf(t)
		seen := map[string]bool{}
		for d.More() {
			token, err := d.Token()
			if err != nil {
				return err
			}
			name, _ := token.(string)
			in, known := names[name]
			switch {
			case seen[name]:
				return fmt.Errorf("%.40q stands there twice", name)
			case names != nil && !known:
				return fmt.Errorf("unknown field %.40q", name)
			}
			seen[name] = true
			if err := exact(d, in, depth+1); err != nil {
				return err
			}
		}
		_, err = d.Token()
	case json.Delim('['):
		var in reflect.Type
		if t != nil && t.Kind() == reflect.Slice {
			in = t.Elem()
		}
		for d.More() {
			if err := exact(d, in, depth+1); err != nil {
				return err
			}
		}
		_, err = d.Token()
	}
	return err
}

// namesOf are the names that an object for the type may hold; nil: any.
func namesOf(t reflect.Type) map[string]reflect.Type {
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	names := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			names[name] = f.Type
		}
	}
	return names
}
