package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"parley/workspace"
)

// MaxArgs is how many bytes of arguments a call may have.
const MaxArgs = 1 << 20

// Decode reads the arguments of a call into T, a struct whose fields carry json tags. It is strict: one object,
// no unknown key, no key twice, keys spelt exactly as in the tags, nothing behind it. A field without omitempty
// is required. The error carries a sentence for the model.
func Decode[T any](args json.RawMessage) (T, error) {
	var v T
	var names, required []string
	for i := range reflect.TypeFor[T]().NumField() {
		name, options, _ := strings.Cut(reflect.TypeFor[T]().Field(i).Tag.Get("json"), ",")
		names = append(names, name)
		if !strings.Contains(options, "omitempty") {
			required = append(required, name)
		}
	}
	if err := checkNames(args, names, required); err != nil {
		return v, err
	}
	if err := json.Unmarshal(args, &v); err != nil {
		var te *json.UnmarshalTypeError
		if errors.As(err, &te) {
			return v, badArgs("argument %q must be %s", te.Field, kindName(te.Type))
		}
		return v, badArgs("the arguments cannot be read")
	}
	return v, nil
}

// CheckArgs says whether args is one object that names only what the schema lists, and all that it requires. It
// looks at the top level only; what a value means is the tool's to check. The error carries a sentence.
func CheckArgs(schema, args json.RawMessage) error {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		return fmt.Errorf("read the tool's schema: %w", err)
	}
	names := make([]string, 0, len(s.Properties))
	for name := range s.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	return checkNames(args, names, s.Required)
}

func checkNames(args json.RawMessage, names, required []string) error {
	if len(args) > MaxArgs {
		return badArgs("the arguments are longer than %d bytes", MaxArgs)
	}
	keys, err := objectKeys(args)
	if err != nil {
		return err
	}
	for _, k := range keys {
		if !slices.Contains(names, k) {
			return badArgs("there is no argument %q; there are: %s", workspace.Line(k, 40), strings.Join(names, ", "))
		}
	}
	for _, k := range required {
		if !slices.Contains(keys, k) {
			return badArgs("argument %q is missing", k)
		}
	}
	return nil
}

// objectKeys lists the top-level keys of one JSON object.
func objectKeys(args json.RawMessage) ([]string, error) {
	d := json.NewDecoder(bytes.NewReader(args))
	notObject := badArgs("the arguments are not one JSON object")
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, notObject
	}
	var keys []string
	for d.More() {
		t, err := d.Token()
		key, ok := t.(string)
		if err != nil || !ok {
			return nil, notObject
		}
		if slices.Contains(keys, key) {
			return nil, badArgs("argument %q is given twice", workspace.Line(key, 40))
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, notObject
		}
		keys = append(keys, key)
	}
	if _, err := d.Token(); err != nil { // the closing brace
		return nil, notObject
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, notObject
	}
	return keys, nil
}

func badArgs(format string, a ...any) error {
	return workspace.Say(workspace.ErrInvalid, "Bad arguments: "+format+".", a...)
}

func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	}
	return "an object"
}
