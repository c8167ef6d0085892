package configs

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"parley/workspace/clip"
	"parley/workspace/lazy"
)

const (
	maxFile  = 1 << 20 // bytes of a configuration file
	maxNodes = 200_000 // values of one file after its aliases were followed: a file cannot blow up
)

// decoder reads YAML nodes strictly into structs. viper cannot: it folds the case of keys and loses lines.
type decoder struct {
	*report
	expander
	sections []Section
	nodes    int
	quiet    bool // a default is read: its lines are not those of the file
}

// note keeps where a path was written.
func (d *decoder) note(path string, n *yaml.Node) {
	if !d.quiet {
		d.places[path] = place{line: n.Line}
		delete(d.raw, path)
	}
}

var yamlLine = lazy.Regexp(`^(?:yaml: )?(?:line (\d+): )?`)

// parse is the root node of the only document; nil when there is nothing in it.
func (d *decoder) parse(data []byte) *yaml.Node {
	if len(data) > maxFile {
		d.add("", "the file is larger than 1 MiB")
		return nil
	}
	var doc, second yaml.Node
	stream := yaml.NewDecoder(bytes.NewReader(data))
	if err := stream.Decode(&doc); err != nil {
		if !errors.Is(err, io.EOF) {
			d.syntax(err, data)
		}
		return nil
	}
	if err := stream.Decode(&second); err == nil {
		d.addAt(max(1, second.Line), "", "a second document begins: one file holds one configuration")
	} else if !errors.Is(err, io.EOF) {
		d.syntax(err, data)
	}
	if len(doc.Content) == 0 {
		return nil
	}
	return doc.Content[0]
}

// syntax reports what the YAML reader said, with its line. The name of an unknown anchor is left out: an unquoted password
// that begins with * looks like one.
func (d *decoder) syntax(err error, data []byte) {
	text := err.Error()
	line := 1
	if m := yamlLine().FindStringSubmatch(text); m != nil {
		text = text[len(m[0]):]
		if n, err := strconv.Atoi(m[1]); err == nil && n > 0 {
			line = n
		}
	}
	if rest, ok := strings.CutPrefix(text, "unknown anchor '"); ok {
		name, _, _ := strings.Cut(rest, "'")
		before, _, _ := bytes.Cut(data, []byte("*"+name))
		line = 1 + bytes.Count(before, []byte("\n"))
		text = "a value that begins with * must be put in quotes"
	}
	d.addAt(line, "", "not valid YAML: %s", text)
}

// defaults fills the zero fields of a struct from their default tags.
func (d *decoder) defaults(path string, v reflect.Value) {
	for _, f := range fieldsOf(v.Type()) {
		fv, at := v.FieldByIndex(f.index), key(path, f.name)
		if f.typ.Kind() == reflect.Struct && !isScalar(f.typ) {
			d.defaults(at, fv)
			continue
		}
		text, ok := f.tag.Lookup("default")
		if !ok || !fv.IsZero() {
			continue
		}
		if node := parseTag(text, f.typ); node != nil {
			d.quiet = true
			d.value(at, node, fv, f.tag)
			d.quiet = false
		}
	}
}

// parseTag reads the YAML of a default or example tag. A text needs no quotes there.
func parseTag(text string, t reflect.Type) *yaml.Node {
	if isScalar(t) && !strings.HasPrefix(text, `"`) {
		return scalarNode(text, t)
	}
	var doc yaml.Node
	if yaml.Unmarshal([]byte(text), &doc) != nil || len(doc.Content) == 0 {
		return nil
	}
	return doc.Content[0]
}

// scalarNode is the value of an environment variable or tag as YAML would have it.
func scalarNode(text string, t reflect.Type) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Value: text}
	if isText(t) {
		n.Tag = "!!str"
	}
	return n
}

// value reads n into v. A null is as if the key were not there.
func (d *decoder) value(path string, n *yaml.Node, v reflect.Value, tag reflect.StructTag) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if d.nodes++; d.nodes > maxNodes {
		if !d.failed[""] {
			d.addAt(max(1, n.Line), "", "the file holds more than %d values", maxNodes)
		}
		return
	}
	if n.ShortTag() == "!!null" {
		return
	}
	switch t := v.Type(); {
	case isScalar(t):
		d.scalar(path, n, v, tag)
	case t.Kind() == reflect.Pointer:
		fresh := reflect.New(t.Elem())
		if t.Elem().Kind() == reflect.Struct && !isScalar(t.Elem()) {
			d.defaults(path, fresh.Elem())
		}
		d.value(path, n, fresh.Elem(), tag)
		v.Set(fresh)
	case t.Kind() == reflect.Struct:
		d.mapping(path, n, v)
	case t.Kind() == reflect.Slice:
		d.list(path, n, v, tag)
	case t.Kind() == reflect.Map && t.Key().Kind() == reflect.String:
		d.dict(path, n, v, tag)
	default:
		d.add(path, "cannot be configured: its type %s is not known", t)
	}
}

// mapping reads a struct, or several that share one mapping: a channel's common keys and its adapter's own. A key that two of
// them know goes to both.
func (d *decoder) mapping(path string, n *yaml.Node, targets ...reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.add(path, "must be a mapping with keys, not %s", nodeName(n))
		return
	}
	var known []string
	for _, v := range targets {
		known = append(known, names(fieldsOf(v.Type()))...)
	}
	d.pairs(path, n, func(name string, k, value *yaml.Node) {
		if !slices.Contains(known, name) {
			d.addAt(k.Line, key(path, plain(name)), "unknown key, %s", didYouMean(name, known))
			return
		}
		for _, v := range targets {
			for _, f := range fieldsOf(v.Type()) {
				if f.name == name {
					d.value(key(path, name), value, v.FieldByIndex(f.index), f.tag)
				}
			}
		}
	})
}

// pairs calls use for each key once and reports those that stand twice.
func (d *decoder) pairs(path string, n *yaml.Node, use func(name string, k, value *yaml.Node)) {
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, value := n.Content[i], n.Content[i+1]
		if k.Kind == yaml.AliasNode {
			k = k.Alias
		}
		if k.Kind != yaml.ScalarNode {
			d.addAt(max(1, n.Content[i].Line), path, "a key must be a plain word")
			continue
		}
		if line, twice := first[k.Value]; twice {
			d.addAt(n.Content[i].Line, key(path, plain(k.Value)), "is given twice, first in line %d", line)
			continue
		}
		first[k.Value] = n.Content[i].Line
		d.note(key(path, k.Value), n.Content[i])
		use(k.Value, n.Content[i], value)
	}
}

func (d *decoder) list(path string, n *yaml.Node, v reflect.Value, tag reflect.StructTag) {
	if n.Kind != yaml.SequenceNode {
		d.add(path, "must be %s, not %s", typeName(v.Type()), nodeName(n))
		return
	}
	items := reflect.MakeSlice(v.Type(), 0, min(len(n.Content), maxNodes))
	for i, in := range n.Content {
		at := item(path, i)
		d.note(at, in)
		fresh := reflect.New(v.Type().Elem()).Elem()
		if target := in; target.Kind == yaml.AliasNode && target.Alias.ShortTag() == "!!null" || in.ShortTag() == "!!null" {
			d.add(at, "is empty")
			continue
		}
		if isChannel(fresh.Type()) {
			d.channel(at, in, fresh)
		} else {
			if fresh.Kind() == reflect.Struct && !isScalar(fresh.Type()) {
				d.defaults(at, fresh)
			}
			d.value(at, in, fresh, tag)
		}
		items = reflect.Append(items, fresh)
	}
	v.Set(items)
}

func (d *decoder) dict(path string, n *yaml.Node, v reflect.Value, tag reflect.StructTag) {
	if n.Kind != yaml.MappingNode {
		d.add(path, "must be a mapping with keys, not %s", nodeName(n))
		return
	}
	var known []string
	if keys := tag.Get("keys"); keys != "" {
		known = strings.Split(keys, "|")
	}
	out := reflect.MakeMap(v.Type())
	d.pairs(path, n, func(name string, k, value *yaml.Node) {
		if known != nil && !slices.Contains(known, name) {
			d.addAt(k.Line, key(path, plain(name)), "unknown key, %s", didYouMean(name, known))
			return
		}
		fresh := reflect.New(v.Type().Elem()).Elem()
		if fresh.Kind() == reflect.Struct && !isScalar(fresh.Type()) {
			d.defaults(key(path, name), fresh)
		}
		d.value(key(path, name), value, fresh, tag)
		out.SetMapIndex(reflect.ValueOf(name).Convert(v.Type().Key()), fresh)
	})
	v.Set(out)
}

// channel reads one item of channels: its type says which adapter's options stand beside the common keys.
func (d *decoder) channel(path string, n *yaml.Node, v reflect.Value) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.MappingNode {
		d.add(path, "must be a mapping with keys, not %s", nodeName(n))
		return
	}
	d.defaults(path, v)
	network := ""
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == "type" && n.Content[i+1].Kind == yaml.ScalarNode {
			network = n.Content[i+1].Value
		}
	}
	if network == "" {
		d.knownOnly(path, n, v)
		return
	}
	known := make([]string, 0, len(d.sections))
	for _, s := range d.sections {
		known = append(known, s.Type)
		if s.Type != network {
			continue
		}
		options := reflect.ValueOf(s.Options())
		if options.Kind() != reflect.Pointer || options.IsNil() || options.Elem().Kind() != reflect.Struct {
			d.mapping(path, n, v) // a network without options of its own
			return
		}
		d.defaults(path, options.Elem())
		d.mapping(path, n, v, options.Elem())
		v.FieldByName("Options").Set(options)
		return
	}
	d.knownOnly(path, n, v)
	d.add(key(path, "type"), "unknown network %s, %s", quote(network), didYouMean(network, known))
}

// knownOnly reads the common keys of a channel whose network is not known, and keeps quiet about the others.
func (d *decoder) knownOnly(path string, n *yaml.Node, v reflect.Value) {
	common := names(fieldsOf(v.Type()))
	some := *n
	some.Content = nil
	for i := 0; i+1 < len(n.Content); i += 2 {
		if slices.Contains(common, n.Content[i].Value) {
			some.Content = append(some.Content, n.Content[i], n.Content[i+1])
		}
	}
	d.mapping(path, &some, v)
}

// scalar reads one value. What stands in a secret's place is never quoted.
func (d *decoder) scalar(path string, n *yaml.Node, v reflect.Value, tag reflect.StructTag) {
	if n.Kind != yaml.ScalarNode {
		d.add(path, "must be %s, not %s", typeName(v.Type()), nodeName(n))
		return
	}
	shown := quote(n.Value)
	if isSecret(v.Type(), tag) {
		shown = "this"
	}
	text := n.Value
	if isText(v.Type()) {
		if kind := n.ShortTag(); kind != "!!str" && kind != "!!timestamp" {
			d.add(path, "must be a text: put %s in quotes", shown)
			return
		}
		expanded, err := d.expand(text)
		if err != nil {
			d.add(path, "%s", err)
			return
		}
		if expanded != text {
			d.expanded(path, text, expanded)
		}
		text = expanded
	} else if strings.Contains(text, "${") {
		d.add(path, "must be %s; ${…} stands for a text only", typeName(v.Type()))
		return
	}
	if err := assign(v, n, text); err != nil {
		if isSecret(v.Type(), tag) {
			err = errors.New("cannot be read") // the cause may quote it
		}
		d.add(path, "%s", err)
	}
}

// assign converts the text of a scalar.
func assign(v reflect.Value, n *yaml.Node, text string) error {
	wrong := fmt.Errorf("must be %s, not %s", typeName(v.Type()), quote(text))
	switch {
	case isDuration(v.Type()):
		if text == "" {
			v.SetInt(0)
			return nil
		}
		d, err := ParseDuration(text)
		v.SetInt(int64(d))
		return err
	case isSize(v.Type()):
		s, err := ParseSize(text)
		v.SetInt(int64(s))
		return err
	case reflect.PointerTo(v.Type()).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text))
	}
	kind := n.ShortTag()
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		if kind != "!!bool" || n.Decode(v.Addr().Interface()) != nil {
			return wrong
		}
	case reflect.Float32, reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		if kind != "!!float" && kind != "!!int" || err != nil || f-f != 0 { // NaN and infinities are not amounts
			return wrong
		}
		v.SetFloat(f)
	default:
		if kind != "!!int" || n.Decode(v.Addr().Interface()) != nil {
			return wrong
		}
	}
	return nil
}

// nodeName says what stands there, for people.
func nodeName(n *yaml.Node) string {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.ShortTag() {
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "true or false"
	}
	return "a text"
}

func item(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// plain is a key as shown in a path: what is not a word is quoted.
func plain(name string) string {
	if !variable.MatchString(strings.ReplaceAll(name, "-", "_")) {
		return quote(name)
	}
	return clip.Runes(name, 81)
}

func sortedKeys(v reflect.Value) []reflect.Value {
	return slices.SortedFunc(slices.Values(v.MapKeys()), func(a, b reflect.Value) int {
		return strings.Compare(a.String(), b.String())
	})
}
