package configs

import (
	"reflect"
	"slices"
)

// Section is a network that channels may have, with its adapter's own options.
type Section struct {
	Type string // the network's name in channels[].type
	// Options makes a pointer to a struct with the adapter's defaults. Its fields carry the same tags as ours, at least yaml;
	// a string field is masked when it is tagged secret:"true" or its type's name is Secret.
	Options func() any
}

// Lookup reads one environment variable, like os.LookupEnv.
type Lookup func(name string) (value string, ok bool)

// LoadOptions says where to look.
type LoadOptions struct {
	// Path of the file; empty: $PARLEY_CONFIG, ./parley.yaml, then parley/parley.yaml in the user's config directory. A file
	// that is named, here or by $PARLEY_CONFIG, must exist.
	Path string
	// Env reads the environment; nil: the process's own.
	Env Lookup
	// Sections are the networks that exist.
	Sections []Section
}

// own are the keys of the adapter's options beside those that every channel has.
func (s Section) own() []field {
	t := reflect.TypeOf(s.Options())
	if t == nil || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return nil
	}
	common := names(fieldsOf(reflect.TypeFor[Channel]()))
	return slices.DeleteFunc(fieldsOf(t.Elem()), func(f field) bool { return slices.Contains(common, f.name) })
}
