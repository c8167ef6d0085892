// The values of a text, each with its place and its part of the text.

package edit

import (
	"errors"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// Scalar is a value of a text that is neither a mapping nor a list.
type Scalar struct {
	Path  string // as a Change names it: models[claude].api_key
	Key   string // the last key of it
	Value string
	Line  int
	// From and To are the bytes that it takes with its quotes; both 0: an alias stands there.
	From, To int
}

// most is how many values a text may have once its aliases are followed.
const most = 200_000

// Scalars lists the values of a text. Where an alias stands, what it stands for is listed too.
func Scalars(text []byte) ([]Scalar, error) {
	root, err := parse(text)
	if err != nil || root == nil {
		return nil, err
	}
	w := &walker{source: &source{text: string(text)}}
	if err := w.walk(root, span{0, len(text)}, "", "", true); err != nil {
		return nil, err
	}
	return w.list, nil
}

type walker struct {
	*source
	list []Scalar
	seen int
}

func (w *walker) walk(n *yaml.Node, within span, path, key string, here bool) error {
	if w.seen++; w.seen > most {
		return errors.New("it has too many values")
	}
	if n.Kind == yaml.AliasNode {
		return w.walk(n.Alias, within, path, key, false)
	}
	if n.Kind == yaml.ScalarNode {
		s := Scalar{Path: path, Key: key, Value: n.Value, Line: n.Line}
		if here && n.Anchor == "" {
			s.From, s.To = within.from, within.to
		}
		w.list = append(w.list, s)
		return nil
	}
	for i := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			continue
		}
		next, child, at := n.Content[i], key, path
		if n.Kind == yaml.MappingNode {
			name := n.Content[i-1]
			if name.Kind == yaml.AliasNode {
				name = name.Alias
			}
			child, at = name.Value, join(path, name.Value)
		} else {
			at = path + "[" + ItemName(next, i) + "]"
		}
		part, known := w.part(n, i, within, here)
		if err := w.walk(next, part, at, child, known); err != nil {
			return err
		}
	}
	return nil
}

// part is the part of the text of an entry's value: of a scalar just that, of others at least that.
func (w *walker) part(n *yaml.Node, i int, within span, here bool) (span, bool) {
	if !here || n.Content[i].Kind == yaml.AliasNode {
		return span{}, false
	}
	entry := w.entry(n, i, within)
	if n.Content[i].Kind != yaml.ScalarNode {
		return entry, true
	}
	if !flow(n) {
		head := w.head(n, i, entry)
		return w.value(n.Content[i], head, entry), true
	}
	from := w.at(n.Content[i])
	return span{from, max(from, min(entry.to, scalarEnd(w.text, from, false)))}, true
}

// ItemName is what an item of a list is known by in a path: its id or name, or its number.
func ItemName(item *yaml.Node, i int) string {
	if item.Kind == yaml.AliasNode {
		item = item.Alias
	}
	if name := nameOf(item); name != "" {
		return name
	}
	return strconv.Itoa(i)
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
