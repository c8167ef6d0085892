package configs

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// Leaf is one value of a configuration with its place.
type Leaf struct {
	Path    string // items of lists by their id or name: models[claude].api_key
	Item    string // the path of the item that it is in, such as models[claude]; empty: in none
	Value   any    // a list whose items have no names is one value
	Secret  bool   // Value is a text that is never shown
	Default bool   // of an item: it is what stands there when nothing is written
}

// Leaves are all values of a configuration.
func (c *Config) Leaves() []Leaf {
	w := *c
	w.Agents = slices.Clone(c.Agents)
	for i, a := range w.Agents { // a folder that follows from data_dir is not written
		if a.Workspace == filepath.Join(c.DataDir, "agents", a.ID) {
			w.Agents[i].Workspace = ""
		}
	}
	var list []Leaf
	eachLeaf("", reflect.ValueOf(w), "", func(l Leaf) { list = append(list, l) })
	return list
}

func eachLeaf(path string, v reflect.Value, tag reflect.StructTag, report func(Leaf)) {
	for (v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer) && !v.IsNil() {
		v = v.Elem()
	}
	switch {
	case v.Kind() == reflect.Struct && !isScalar(v.Type()):
		for _, f := range fieldsOf(v.Type()) {
			eachLeaf(key(path, f.name), v.FieldByIndex(f.index), f.tag, report)
		}
		if isChannel(v.Type()) && !v.FieldByName("Options").IsNil() {
			eachLeaf(path, v.FieldByName("Options"), "", report)
		}
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct && isNamed(v.Type().Elem()):
		for name, item := range byName(v) {
			blank, at := map[string]any{}, path+"["+name+"]"
			eachLeaf(at, blankOf(item), "", func(l Leaf) { blank[l.Path] = l.Value })
			eachLeaf(at, item, "", func(l Leaf) {
				if l.Item == "" {
					l.Item, l.Default = at, reflect.DeepEqual(blank[l.Path], l.Value)
				}
				report(l)
			})
		}
	default:
		report(Leaf{Path: path, Value: v.Interface(), Secret: isSecret(v.Type(), tag)})
	}
}

// blankOf is an item of the same kind with nothing but its defaults.
func blankOf(item reflect.Value) reflect.Value {
	blank := reflect.New(item.Type()).Elem()
	d := &decoder{report: newReport("", false)}
	d.defaults("", blank)
	if isChannel(item.Type()) && !item.FieldByName("Options").IsNil() {
		options := reflect.New(item.FieldByName("Options").Elem().Type().Elem())
		d.defaults("", options.Elem())
		blank.FieldByName("Options").Set(options)
	}
	return blank
}

func isNamed(item reflect.Type) bool {
	return slices.ContainsFunc(fieldsOf(item), func(f field) bool { return f.name == "id" || f.name == "name" })
}

// Overridden are the keys that the environment gives, whatever the file says, with the names of their variables.
func (c *Config) Overridden() map[string]string { return c.overridden }

// Empty says that the file has nothing in it, or that there is none.
func (c *Config) Empty() bool { return c.empty }

// Same says that two configurations mean the same, whatever lines their keys stand on.
func Same(a, b *Config) bool {
	x, y := *a, *b
	x.unread, y.unread = nil, nil
	return reflect.DeepEqual(x, y)
}

// Understand is Parse that returns beside an error what it understood.
func Understand(data []byte, o LoadOptions) (*Config, error) {
	return readAll(data, o.Path, o.Sections, newEnvironment(o.Env))
}

// SecretKeys are the names of all keys that hold credentials, here and in the options of adapters.
func SecretKeys(sections []Section) []string {
	var names []string
	var below func(t reflect.Type)
	below = func(t reflect.Type) {
		walk("", reflect.New(t).Elem(), func(path string, v reflect.Value, tag reflect.StructTag) bool {
			if (v.Kind() == reflect.Slice || v.Kind() == reflect.Map) && v.Type().Elem().Kind() == reflect.Struct {
				below(v.Type().Elem())
			}
			if isSecret(v.Type(), tag) {
				names = append(names, path[strings.LastIndexByte(path, '.')+1:])
			}
			return true
		})
	}
	below(reflect.TypeFor[Config]())
	for _, s := range sections {
		if t := reflect.TypeOf(s.Options()); t != nil && t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct {
			below(t.Elem())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
