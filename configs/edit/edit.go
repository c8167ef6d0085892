// Package edit changes values in a configuration text. Every other byte stays: comments, order, blank lines, quotes.
package edit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Change sets a place of the text to a value, or removes it.
type Change struct {
	Path  string     // keys by dots, list items in brackets by id, name or number: models[claude].base_url
	Value *yaml.Node // as it is written, with ${…} unexpanded; nil: the place is removed
}

// ErrByHand says that the text is written in a way that a program would spoil.
var ErrByHand = errors.New("change it in an editor")

// ErrPath says that a path leads nowhere.
var ErrPath = errors.New("path")

// Value is a value as a Change wants it. A struct keeps the order of its fields, JSON text that of its keys.
func Value(v any) (*yaml.Node, error) {
	var n yaml.Node
	if text, ok := v.([]byte); ok {
		if err := yaml.Unmarshal(text, &n); err != nil {
			return nil, err
		}
		if len(n.Content) == 0 {
			return nil, errors.New("no value")
		}
		return plain(n.Content[0])
	}
	if err := n.Encode(v); err != nil {
		return nil, err
	}
	return plain(&n)
}

// Apply makes the changes one after the other. Its result parses to what the text parsed to, with the changes and nothing
// else; where that cannot be reached, nothing is changed and the error wraps ErrByHand.
func Apply(text []byte, changes ...Change) ([]byte, error) {
	bom := []byte("\ufeff")
	out, marked := bytes.CutPrefix(text, bom)
	crlf := bytes.Count(out, []byte("\n")) > 0 && bytes.Count(out, []byte("\n")) == bytes.Count(out, []byte("\r\n"))
	if crlf {
		out = bytes.ReplaceAll(out, []byte("\r\n"), []byte("\n"))
	}
	for _, c := range changes {
		steps, err := parsePath(c.Path)
		if err != nil {
			return nil, err
		}
		if out, err = apply(out, steps, c.Value); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Path, err)
		}
	}
	if crlf {
		out = bytes.ReplaceAll(out, []byte("\n"), []byte("\r\n"))
	}
	if marked {
		out = append(bom, out...)
	}
	return out, nil
}

// apply makes one change, of a mapping key by key, and holds the result against what was meant.
func apply(text []byte, path []step, value *yaml.Node) ([]byte, error) {
	root, err := parse(text)
	if err != nil {
		return nil, err
	}
	at := find(root, path)
	if at != nil && value != nil && same(at, value) || at == nil && value == nil {
		return text, nil
	}
	if finer := within(at, value); finer != nil {
		for _, f := range finer {
			if text, err = apply(text, append(path[:len(path):len(path)], f.step), f.value); err != nil {
				return nil, err
			}
		}
		return text, nil
	}
	want, err := set(copyOf(root), path, value)
	if err != nil {
		return nil, err
	}
	t := &source{text: string(text)}
	if err := t.change(root, path, value); err != nil {
		return nil, err
	}
	got, err := parse([]byte(t.text))
	if err != nil || !same(got, want) || !keeps(root, goes(root, path), got) {
		return nil, byHand("it is written in an unusual way")
	}
	return []byte(t.text), nil
}

func byHand(format string, args ...any) error {
	return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), ErrByHand)
}

// parse is the root of the only document; nil when nothing is written.
func parse(text []byte) (*yaml.Node, error) {
	var doc, second yaml.Node
	stream := yaml.NewDecoder(bytes.NewReader(text))
	if err := stream.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if err := stream.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, byHand("a second document begins")
	}
	if len(doc.Content) == 0 || empty(doc.Content[0]) && doc.Content[0].Kind == yaml.ScalarNode {
		return nil, nil
	}
	if doc.Content[0].Kind != yaml.MappingNode {
		return nil, byHand("it holds no keys")
	}
	return doc.Content[0], nil
}

// finer is a change inside of a value.
type finer struct {
	step  step
	value *yaml.Node
}

// within are the changes inside of a mapping or a list that make it the other one; nil: it has to be written as a whole.
func within(old, new *yaml.Node) (list []finer) {
	if old == nil || new == nil || old.Kind != new.Kind || len(old.Content) == 0 || len(new.Content) == 0 ||
		old.Style&yaml.FlowStyle != 0 {
		return nil
	}
	switch old.Kind {
	case yaml.MappingNode:
		common := false
		for i := 0; i < len(old.Content); i += 2 {
			v := child(new, old.Content[i].Value)
			common = common || v != nil
			list = append(list, finer{step{key: old.Content[i].Value}, v})
		}
		if !common {
			return nil
		}
		for i := 0; i < len(new.Content); i += 2 {
			if child(old, new.Content[i].Value) == nil {
				list = append(list, finer{step{key: new.Content[i].Value}, new.Content[i+1]})
			}
		}
	case yaml.SequenceNode:
		kept := 0 // how many of old are the first of new, in their order
		for i := range old.Content {
			if kept < len(new.Content) && same(old.Content[i], new.Content[kept]) {
				kept++
				continue
			}
			list = append([]finer{{step{item: true, n: i}, nil}}, list...) // from the end: numbers stay true
		}
		if kept == 0 {
			return nil
		}
		for i, v := range new.Content[kept:] {
			list = append(list, finer{step{item: true, n: kept + i}, v})
		}
	}
	return list
}

// goes is what a change may take away: an entry with its key.
func goes(root *yaml.Node, path []step) (list []*yaml.Node) {
	in, last := find(root, path[:len(path)-1]), path[len(path)-1]
	if i := index(in, last); i >= 0 {
		if list = append(list, in.Content[i]); !last.item {
			list = append(list, in.Content[i-1])
		}
	}
	return list
}

// keeps says that no comment is gone but those of what was removed.
func keeps(old *yaml.Node, gone []*yaml.Node, new *yaml.Node) bool {
	have, want := map[string]int{}, map[string]int{}
	comments(new, have)
	for _, n := range gone {
		comments(n, have)
	}
	comments(old, want)
	for text, n := range want {
		if have[text] < n {
			return false
		}
	}
	return true
}

func comments(n *yaml.Node, into map[string]int) {
	if n == nil {
		return
	}
	for _, c := range []string{n.HeadComment, n.LineComment, n.FootComment} {
		for line := range strings.Lines(c) {
			if line = strings.TrimSpace(line); line != "" {
				into[line]++
			}
		}
	}
	for _, c := range n.Content {
		comments(c, into)
	}
}
