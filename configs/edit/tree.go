// What a change means for the values of a text, whatever way they are written.

package edit

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// step is one part of a path: a key, or an item of a list.
type step struct {
	key  string
	item bool
	id   string // of the item; empty: the one with this number
	n    int
}

func (s step) String() string {
	switch {
	case !s.item:
		return s.key
	case s.id != "":
		return "[" + s.id + "]"
	}
	return fmt.Sprintf("[%d]", s.n)
}

func parsePath(path string) (steps []step, err error) {
	bad := fmt.Errorf("%w: %q is not one such as models[claude].base_url", ErrPath, path)
	for rest := path; ; {
		end := strings.IndexAny(rest, ".[")
		key := rest
		if end >= 0 {
			key = rest[:end]
		}
		if key == "" || strings.ContainsAny(key, " \t\r\n:#]") {
			return nil, bad
		}
		steps, rest = append(steps, step{key: key}), rest[len(key):]
		for strings.HasPrefix(rest, "[") {
			id, after, ok := strings.Cut(rest[1:], "]")
			if !ok || id == "" {
				return nil, bad
			}
			s := step{item: true, id: id, n: -1}
			if n, err := strconv.Atoi(id); err == nil && n >= 0 {
				s.n = n
			}
			steps, rest = append(steps, s), after
		}
		if rest == "" {
			return steps, nil
		}
		if rest[0] != '.' {
			return nil, bad
		}
		rest = rest[1:]
	}
}

// index is where a mapping or a list has what the step names: the place of its value in Content; -1: nowhere.
func index(n *yaml.Node, s step) int {
	if n == nil || s.item != (n.Kind == yaml.SequenceNode) || !s.item && n.Kind != yaml.MappingNode {
		return -1
	}
	if !s.item {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == s.key {
				return i + 1
			}
		}
		return -1
	}
	if s.id != "" {
		for i, item := range n.Content {
			if nameOf(item) == s.id {
				return i
			}
		}
	}
	if s.n >= 0 && s.n < len(n.Content) {
		return s.n
	}
	return -1
}

// nameOf is what an item of a list is known by.
func nameOf(item *yaml.Node) string {
	for _, key := range []string{"id", "name"} {
		if v := child(item, key); v != nil && v.Kind == yaml.ScalarNode {
			return v.Value
		}
	}
	return ""
}

func child(n *yaml.Node, key string) *yaml.Node {
	if i := index(n, step{key: key}); i >= 0 {
		return n.Content[i]
	}
	return nil
}

func find(n *yaml.Node, path []step) *yaml.Node {
	for _, s := range path {
		i := index(n, s)
		if i < 0 {
			return nil
		}
		n = n.Content[i]
	}
	return n
}

// set is a tree with the change made.
func set(n *yaml.Node, path []step, value *yaml.Node) (*yaml.Node, error) {
	if len(path) == 0 {
		return value, nil
	}
	s := path[0]
	kind := yaml.MappingNode
	if s.item {
		kind = yaml.SequenceNode
	}
	if n == nil || n.Kind == yaml.ScalarNode && empty(n) {
		n = &yaml.Node{Kind: kind}
	}
	if n.Kind != kind {
		return nil, byHand("%s stands where something else was expected", kindName(n))
	}
	i := index(n, s)
	if i < 0 {
		if s.item && s.id != "" && s.n != len(n.Content) && len(path) > 1 {
			return nil, fmt.Errorf("%w: there is no %s", ErrPath, s)
		}
		v, err := set(nil, path[1:], value)
		if err != nil {
			return nil, err
		}
		if s.item {
			if s.id != "" && s.n != len(n.Content) && nameOf(v) != s.id {
				return nil, fmt.Errorf("%w: there is no %s", ErrPath, s)
			}
			n.Content = append(n.Content, v)
			return n, nil
		}
		n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s.key}, v)
		return n, nil
	}
	v, err := set(n.Content[i], path[1:], value)
	if err != nil {
		return nil, err
	}
	if v != nil {
		n.Content[i] = v
		return n, nil
	}
	from := i
	if kind == yaml.MappingNode {
		from--
	}
	n.Content = append(n.Content[:from], n.Content[i+1:]...)
	return n, nil
}

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	return "a value"
}

// empty says that nothing is written here: no value, [], {}, null.
func empty(n *yaml.Node) bool {
	if n.Kind == yaml.ScalarNode {
		return n.ShortTag() == "!!null"
	}
	return n.Kind != yaml.AliasNode && len(n.Content) == 0
}

// same says that two trees hold the same values in the same order. What is empty is the same as nothing.
func same(a, b *yaml.Node) bool {
	if a == nil || b == nil {
		return (a == nil || empty(a)) && (b == nil || empty(b))
	}
	if empty(a) && empty(b) {
		return a.Kind == b.Kind || a.Kind == yaml.ScalarNode || b.Kind == yaml.ScalarNode
	}
	if a.Kind != b.Kind || len(a.Content) != len(b.Content) || a.ShortTag() != b.ShortTag() {
		return false
	}
	if a.Kind == yaml.ScalarNode || a.Kind == yaml.AliasNode {
		return a.Value == b.Value
	}
	for i := range a.Content {
		if !same(a.Content[i], b.Content[i]) {
			return false
		}
	}
	return true
}

func copyOf(n *yaml.Node) *yaml.Node {
	if n == nil {
		return nil
	}
	c := *n
	c.Content = nil
	for _, child := range n.Content {
		c.Content = append(c.Content, copyOf(child))
	}
	return &c
}

// plain is a value without what only a text has: comments, styles, places. Aliases and anchors are refused.
func plain(n *yaml.Node) (*yaml.Node, error) {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		return nil, byHand("the value uses an anchor")
	}
	c := &yaml.Node{Kind: n.Kind, Tag: n.ShortTag(), Value: n.Value}
	for _, child := range n.Content {
		p, err := plain(child)
		if err != nil {
			return nil, err
		}
		c.Content = append(c.Content, p)
	}
	return c, nil
}
