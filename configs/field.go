package configs

import (
	"encoding"
	"reflect"
	"strings"
	"time"
)

func isDuration(t reflect.Type) bool { return t == reflect.TypeFor[time.Duration]() }
func isSize(t reflect.Type) bool     { return t == reflect.TypeFor[Size]() }
func isChannel(t reflect.Type) bool  { return t == reflect.TypeFor[Channel]() }

// field is one key of a struct.
type field struct {
	index []int
	name  string // the YAML key
	typ   reflect.Type
	tag   reflect.StructTag
}

// fieldsOf are the keys of a struct in order; those of inlined structs stand among them.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, flags, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if f.Type.Kind() == reflect.Struct && (strings.Contains(flags, "inline") || f.Anonymous && name == "") {
			for _, inner := range fieldsOf(f.Type) {
				inner.index = append([]int{i}, inner.index...)
				fields = append(fields, inner)
			}
			continue
		}
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = strings.ToLower(f.Name)
		}
		fields = append(fields, field{index: []int{i}, name: name, typ: f.Type, tag: f.Tag})
	}
	return fields
}

func names(fields []field) []string {
	list := make([]string, len(fields))
	for i, f := range fields {
		list[i] = f.name
	}
	return list
}

// isSecret says whether a value of this field must never be shown.
func isSecret(t reflect.Type, tag reflect.StructTag) bool {
	return tag.Get("secret") == "true" || t.Kind() == reflect.String && t.Name() == "Secret"
}

// isScalar says whether the type is written as one YAML scalar.
func isScalar(t reflect.Type) bool {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return true
	}
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return true
	}
	return false
}

// isText says whether ${…} is expanded in values of the type.
func isText(t reflect.Type) bool {
	return t.Kind() == reflect.String || isScalar(t) && reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// typeName is what a value of the type is called, for people.
func typeName(t reflect.Type) string {
	switch {
	case isDuration(t):
		return "a duration such as 30s"
	case isSize(t):
		return "a size such as 512MiB"
	case isText(t):
		return "a text"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list, such as [a, b]"
	case reflect.Struct, reflect.Map:
		return "a mapping with keys"
	case reflect.Pointer:
		return typeName(t.Elem())
	}
	return "a whole number"
}

// key joins a path and a key.
func key(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// walk calls visit for every key of the struct v and below, parents first: a struct's keys, a list's items, a map's values,
// and a channel's own options beside its common keys. visit gets the settable value and says whether to go below it.
func walk(path string, v reflect.Value, visit func(path string, v reflect.Value, tag reflect.StructTag) bool) {
	for _, f := range fieldsOf(v.Type()) {
		walkValue(key(path, f.name), v.FieldByIndex(f.index), f.tag, visit)
	}
	if isChannel(v.Type()) {
		if options := optionsOf(v.Interface().(Channel)); options.IsValid() {
			walk(path, options, visit)
		}
	}
}

func walkValue(path string, v reflect.Value, tag reflect.StructTag, visit func(string, reflect.Value, reflect.StructTag) bool) {
	if !visit(path, v, tag) || isScalar(v.Type()) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			walkValue(path, v.Elem(), tag, visit)
		}
	case reflect.Struct:
		walk(path, v, visit)
	case reflect.Slice:
		for i := range v.Len() {
			walkValue(item(path, i), v.Index(i), tag, visit)
		}
	case reflect.Map:
		for _, k := range sortedKeys(v) {
			copied := reflect.New(v.Type().Elem()).Elem() // values of a map cannot be set
			copied.Set(v.MapIndex(k))
			walkValue(key(path, k.String()), copied, tag, visit)
		}
	}
}

// optionsOf is the struct behind a channel's options; invalid when there is none.
func optionsOf(c Channel) reflect.Value {
	v := reflect.ValueOf(c.Options)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return reflect.Value{}
	}
	return v.Elem()
}
