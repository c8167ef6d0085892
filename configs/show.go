package configs

import (
	"bytes"
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Secrets are the values of all credentials, longest first, and what ${file:…} gave anywhere: for a log handler that redacts
// by value.
func (c *Config) Secrets() []string {
	found := slices.Clone(c.revealed)
	walk("", reflect.ValueOf(c).Elem(), func(_ string, v reflect.Value, tag reflect.StructTag) bool {
		if v.Kind() == reflect.String && isSecret(v.Type(), tag) {
			found = append(found, v.String())
		}
		return true
	})
	found = slices.DeleteFunc(found, func(s string) bool { return s == "" })
	slices.SortFunc(found, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b)) })
	return slices.Compact(found)
}

// Show is the whole effective configuration as YAML, with [secret] in place of every credential, also where one stands inside
// another value.
func (c *Config) Show() ([]byte, error) {
	s := shower{}
	for _, secret := range c.Secrets() {
		if len(secret) >= 6 { // a shorter one would hide pieces of innocent words
			s.masks = append(s.masks, secret, masked)
		}
	}
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(s.node(reflect.ValueOf(c).Elem(), "")); err != nil {
		return nil, fmt.Errorf("write the configuration: %w", err)
	}
	return out.Bytes(), nil
}

type shower struct{ masks []string }

// node is v as YAML, keys in the order of the struct.
func (s shower) node(v reflect.Value, tag reflect.StructTag) *yaml.Node {
	if isScalar(v.Type()) {
		return s.scalar(v, tag)
	}
	n := &yaml.Node{Kind: yaml.MappingNode}
	switch v.Kind() {
	case reflect.Struct:
		s.fields(n, v)
		if isChannel(v.Type()) {
			if options := optionsOf(v.Interface().(Channel)); options.IsValid() {
				s.fields(n, options)
			}
		}
	case reflect.Slice:
		n.Kind = yaml.SequenceNode
		if v.Len() == 0 || isScalar(v.Type().Elem()) {
			n.Style = yaml.FlowStyle
		}
		for i := range v.Len() {
			n.Content = append(n.Content, s.node(v.Index(i), tag))
		}
	case reflect.Map:
		if v.Len() == 0 {
			n.Style = yaml.FlowStyle
		}
		for _, k := range sortedKeys(v) {
			n.Content = append(n.Content, text(k.String()), s.node(v.MapIndex(k), tag))
		}
	case reflect.Pointer:
		if v.IsNil() {
			return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}
		}
		return s.node(v.Elem(), tag)
	}
	return n
}

func (s shower) fields(n *yaml.Node, v reflect.Value) {
	var shown []string
	for i := 0; i < len(n.Content); i += 2 {
		shown = append(shown, n.Content[i].Value)
	}
	for _, f := range fieldsOf(v.Type()) {
		if !slices.Contains(shown, f.name) { // an adapter may know a common key too
			n.Content = append(n.Content, text(f.name), s.node(v.FieldByIndex(f.index), f.tag))
		}
	}
}

func (s shower) scalar(v reflect.Value, tag reflect.StructTag) *yaml.Node {
	switch x := v.Interface().(type) {
	case time.Duration:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: formatDuration(x)}
	case Size:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: x.String()}
	}
	if v.Kind() != reflect.String {
		return &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(v.Interface())}
	}
	switch plain := v.String(); {
	case plain != "" && isSecret(v.Type(), tag):
		return text(masked)
	default:
		return text(strings.NewReplacer(s.masks...).Replace(plain))
	}
}

// text is a YAML string, quoted when it would be read as something else.
func text(value string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(value)
	return n
}
