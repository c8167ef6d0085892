// Where in the text a value stands, and how another is put in its place.

package edit

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// source is a text that is changed once. What is looked for again and again is remembered until then.
type source struct {
	text   string
	starts []int         // of lines
	flows  map[int]flows // by where they begin
	// columns are where the characters of a line begin, by where it does.
	columns map[int][]int
}

// span is a part of the text, from one byte to before another.
type span struct{ from, to int }

// change finds the deepest place of the path that is written, and changes the text there.
func (t *source) change(root *yaml.Node, path []step, value *yaml.Node) error {
	whole := span{0, len(t.text)}
	if root == nil {
		t.put(span{len(t.text), len(t.text)}, t.newLine(len(t.text))+block(build(path, value), 0))
		return nil
	}
	node, within := root, whole
	for depth, s := range path {
		if node.Kind == yaml.AliasNode || node.Anchor != "" {
			return byHand("line %d uses an anchor", node.Line)
		}
		i := index(node, s)
		if i < 0 {
			return t.insert(node, within, s, build(path[depth+1:], value))
		}
		entry := t.entry(node, i, within)
		last := depth == len(path)-1
		switch next := node.Content[i]; {
		case last && value == nil:
			return t.remove(node, i, entry, whole, root, path[:depth])
		case last:
			return t.replace(node, i, entry, value)
		case empty(next):
			return t.replace(node, i, entry, build(path[depth+1:], value))
		default:
			node, within = next, entry
		}
	}
	return nil
}

// build is a value at the end of a path that is not there yet.
func build(path []step, value *yaml.Node) *yaml.Node {
	v, err := set(nil, path, value)
	if err != nil { // apply has tried the same
		return value
	}
	return v
}

func (t *source) put(at span, text string) {
	t.text = t.text[:at.from] + text + t.text[at.to:]
	t.starts, t.flows, t.columns = nil, nil, nil
}

// at is the byte where a node begins. Columns are counted in characters.
func (t *source) at(n *yaml.Node) int {
	at := t.line(n.Line)
	columns, known := t.columns[at]
	if !known {
		for i := range t.text[at:t.lineEnd(at)] {
			columns = append(columns, at+i)
		}
		if t.columns == nil {
			t.columns = map[int][]int{}
		}
		t.columns[at] = columns
	}
	if n.Column-1 < len(columns) {
		return columns[n.Column-1]
	}
	return t.lineEnd(at)
}

// line is where a line begins; lines are counted from 1.
func (t *source) line(n int) int {
	if t.starts == nil {
		t.starts = []int{0}
		for i := range len(t.text) {
			if t.text[i] == '\n' {
				t.starts = append(t.starts, i+1)
			}
		}
	}
	if n > len(t.starts) {
		return len(t.text)
	}
	return t.starts[max(n, 1)-1]
}

// flow are the entries of the flow that begins at a byte.
func (t *source) flow(at int) flows {
	f, known := t.flows[at]
	if !known {
		if t.flows == nil {
			t.flows = map[int]flows{}
		}
		f = scanFlow(t.text, at)
		t.flows[at] = f
	}
	return f
}

// lineEnd is where the line of a byte ends, before its line break.
func (t *source) lineEnd(at int) int {
	if i := strings.IndexByte(t.text[at:], '\n'); i >= 0 {
		return at + i
	}
	return len(t.text)
}

func (t *source) lineStart(at int) int { return strings.LastIndexByte(t.text[:at], '\n') + 1 }

// newLine is what has to be written before a line that is put at the end of a text without a line break.
func (t *source) newLine(at int) string {
	if at == 0 || t.text[at-1] == '\n' {
		return ""
	}
	return "\n"
}

// column is how far a byte stands from the beginning of its line.
func (t *source) column(at int) int { return at - t.lineStart(at) }

func flow(n *yaml.Node) bool { return n.Style&yaml.FlowStyle != 0 || len(n.Content) == 0 }

// first is the node with which an entry begins: the key in a mapping.
func first(n *yaml.Node, i int) *yaml.Node {
	if n.Kind == yaml.MappingNode {
		return n.Content[i-1]
	}
	return n.Content[i]
}

// entry is the part of the text that an entry takes: in a block its lines without blank ones and comments at the end that
// stand no deeper than it, in a flow what stands between two commas.
func (t *source) entry(n *yaml.Node, i int, within span) span {
	if flow(n) {
		begin := t.at(first(n, i))
		list := t.flow(t.at(n)).entries
		at, _ := slices.BinarySearchFunc(list, begin, func(e span, begin int) int { return cmp.Compare(e.to-1, begin) })
		if at < len(list) && list[at].from <= begin {
			return list[at]
		}
		return span{begin, begin}
	}
	from := t.at(first(n, i))
	if n.Kind == yaml.SequenceNode {
		from = t.dash(n, i)
	}
	to := within.to
	if i+1 < len(n.Content) {
		next := t.at(n.Content[i+1])
		if n.Kind == yaml.SequenceNode {
			next = t.dash(n, i+1)
		}
		to = t.lineStart(next)
	}
	return span{from, t.trim(span{from, to})}
}

// dash is where the item of a block list begins.
func (t *source) dash(n *yaml.Node, i int) int {
	for line := n.Content[i].Line; line > 0; line-- {
		at := t.line(line) + n.Column - 1
		if at < len(t.text) && t.text[at] == '-' {
			return at
		}
	}
	return t.at(n.Content[i])
}

// trim is the end of an entry, without the lines behind it that are blank or a comment that stands no deeper.
func (t *source) trim(s span) int {
	column, to := t.column(s.from), s.to
	for to > s.from {
		end := to
		if t.text[end-1] == '\n' {
			end--
		}
		start := t.lineStart(end)
		if start <= s.from {
			return to
		}
		line := strings.TrimLeft(t.text[start:end], " \t")
		if line != "" && (line[0] != '#' || end-start-len(line) > column) {
			return to
		}
		to = start
	}
	return to
}

// replace puts a value in the place of another.
func (t *source) replace(n *yaml.Node, i int, entry span, value *yaml.Node) error {
	old := n.Content[i]
	if old.Anchor != "" {
		return byHand("line %d is used by an alias", old.Line)
	}
	if flow(n) {
		if n.Kind == yaml.MappingNode {
			t.put(entry, inline(&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: n.Content[i-1].Value})+": "+inline(value))
			return nil
		}
		t.put(entry, inline(value))
		return nil
	}
	head := t.head(n, i, entry)
	column := t.column(entry.from)
	inside := t.value(old, head, entry)
	lineEnd := t.lineEnd(head)
	if blockish(value) && n.Kind == yaml.MappingNode {
		below := indented(block(value, column+2))
		if inside.from >= lineEnd || inside.to > lineEnd { // what stood here has lines of its own
			rest := strings.TrimRight(t.text[head:min(inside.from, lineEnd)], " \t")
			t.put(span{head, entry.to}, rest+"\n"+below+t.lastBreak(entry))
			return nil
		}
		rest := strings.TrimRight(t.text[inside.to:lineEnd], " \t")
		t.put(span{head, entry.to}, rest+"\n"+below+t.lastBreak(entry))
		return nil
	}
	text := inline(value)
	if n.Kind == yaml.SequenceNode && blockish(value) {
		text = strings.TrimLeft(indented(block(value, column+2)), " ")
	}
	switch {
	case inside.from > lineEnd: // it begins on a later line
		rest := t.text[head:lineEnd] // a comment
		t.put(span{head, entry.to}, " "+text+rest+t.lastBreak(entry))
	case inside.from == head: // no value
		t.put(span{head, head}, " "+text)
	default:
		t.put(inside, text)
	}
	return nil
}

// lastBreak is the line break with which an entry ends, if it does.
func (t *source) lastBreak(entry span) string {
	if entry.to > entry.from && t.text[entry.to-1] == '\n' {
		return "\n"
	}
	return ""
}

// head is where the value of a block entry may begin: behind the colon or the dash.
func (t *source) head(n *yaml.Node, i int, entry span) int {
	if n.Kind == yaml.SequenceNode {
		return entry.from + 1
	}
	at := scalarEnd(t.text, entry.from, true)
	if colon := strings.IndexByte(t.text[at:], ':'); colon >= 0 {
		return at + colon + 1
	}
	return at
}

// value is the part of a block entry that its value takes; from head where there is none.
func (t *source) value(v *yaml.Node, head int, entry span) span {
	if v.Kind == yaml.ScalarNode && v.Value == "" && v.Style == 0 && v.ShortTag() == "!!null" {
		return span{head, head}
	}
	from := t.at(v)
	if from < head {
		return span{head, head}
	}
	end := entry.to
	if end > from && t.text[end-1] == '\n' {
		end--
	}
	switch {
	case v.Kind != yaml.ScalarNode && v.Kind != yaml.AliasNode:
		if flow(v) {
			end = t.flow(from).end
		}
	case v.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		end = scalarEnd(t.text, from, true)
	case v.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0:
		line := t.lineStart(end)
		end = plainEnd(t.text, max(from, line), end)
	}
	return span{from, max(from, end)}
}

// remove takes an entry away. The last one of a collection leaves [] or {}.
func (t *source) remove(n *yaml.Node, i int, entry, whole span, root *yaml.Node, parent []step) error {
	if n.Content[i].Anchor != "" {
		return byHand("line %d is used by an alias", n.Content[i].Line)
	}
	alone := len(n.Content) == 1 || n.Kind == yaml.MappingNode && len(n.Content) == 2
	switch {
	case alone && len(parent) > 0:
		return t.change(root, parent, &yaml.Node{Kind: n.Kind})
	case flow(n):
		t.put(t.withComma(t.at(n), entry), "")
		return nil
	}
	start := t.lineStart(entry.from)
	if strings.TrimLeft(t.text[start:entry.from], " ") == "" {
		t.put(span{start, entry.to}, "")
		return nil
	}
	if i+1 >= len(n.Content) { // behind a dash, and nothing follows
		return byHand("line %d begins a list item", first(n, i).Line)
	}
	next := t.at(n.Content[i+1])
	if n.Kind == yaml.SequenceNode || strings.TrimSpace(t.text[entry.to:t.lineStart(next)]) != "" {
		return byHand("line %d begins a list item", first(n, i).Line)
	}
	t.put(span{entry.from, next}, "")
	return nil
}

// withComma is an entry of a flow with the comma that goes with it.
func (t *source) withComma(open int, entry span) span {
	f := t.flow(open)
	for i, e := range f.entries {
		if e != entry {
			continue
		}
		if i+1 < len(f.entries) {
			return span{e.from, f.entries[i+1].from}
		}
		if i > 0 {
			return span{f.entries[i-1].to, e.to}
		}
	}
	return entry
}

// insert puts an entry behind the others.
func (t *source) insert(n *yaml.Node, within span, s step, value *yaml.Node) error {
	key := ""
	if !s.item {
		key = s.key
	}
	entry := value
	if key != "" {
		entry = &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, value}}
	}
	if flow(n) {
		f := t.flow(t.at(n))
		if len(f.entries) == 0 {
			return byHand("line %d is written on one line", n.Line)
		}
		text := inline(entry)
		if key != "" {
			text = strings.TrimSuffix(strings.TrimPrefix(text, "{"), "}")
		}
		last := f.entries[len(f.entries)-1].to
		t.put(span{last, last}, ", "+text)
		return nil
	}
	last := t.entry(n, len(n.Content)-1, within)
	column := t.column(last.from)
	text := block(entry, column)
	switch {
	case key == "" && blockish(entry):
		text = block(&yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{entry}}, column)
	case key == "":
		text = strings.Repeat(" ", column) + "- " + inline(entry) + "\n"
	}
	t.put(span{last.to, last.to}, t.newLine(last.to)+t.gap(n, within, column)+text)
	return nil
}

// gap is a blank line where blank lines part the keys of the whole text.
func (t *source) gap(n *yaml.Node, within span, column int) string {
	if column > 0 || n.Kind != yaml.MappingNode || len(n.Content) < 4 {
		return ""
	}
	for i := 3; i < len(n.Content); i += 2 {
		before := t.text[t.entry(n, i-2, within).to:t.lineStart(t.at(n.Content[i-1]))]
		if !strings.HasPrefix(before, "\n") {
			return ""
		}
	}
	return "\n"
}

// blockish says that a value gets lines of its own.
func blockish(v *yaml.Node) bool {
	if v.Kind == yaml.SequenceNode {
		for _, item := range v.Content {
			if item.Kind != yaml.ScalarNode {
				return true
			}
		}
		return false
	}
	return v.Kind == yaml.MappingNode && len(v.Content) > 0
}

// styled is a value as it is to be written: in lines down to lists of plain values, which stay on one.
func styled(v *yaml.Node, oneLine bool) *yaml.Node {
	c := *v
	c.Content = nil
	switch {
	case v.Kind == yaml.ScalarNode:
		if v.ShortTag() == "!!str" && strings.ContainsAny(v.Value, "$\n") {
			c.Style = yaml.DoubleQuotedStyle
		}
	case oneLine || !blockish(v):
		c.Style, oneLine = yaml.FlowStyle, true
	}
	for _, child := range v.Content {
		c.Content = append(c.Content, styled(child, oneLine))
	}
	return &c
}

// inline is a value on one line.
func inline(v *yaml.Node) string { return strings.TrimRight(encode(styled(v, true)), "\n") }

// block is a value in lines that begin at a column.
func block(v *yaml.Node, column int) string {
	var b strings.Builder
	for line := range strings.Lines(encode(styled(v, false))) {
		b.WriteString(strings.Repeat(" ", column))
		b.WriteString(line)
	}
	return b.String()
}

func encode(v *yaml.Node) string {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(v); err != nil { // a tree that was parsed encodes
		return ""
	}
	return b.String()
}

// indented is a text without its last line break.
func indented(text string) string { return strings.TrimRight(text, "\n") }
