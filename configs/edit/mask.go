// A text as it is shown, without the credentials that are written in it, and back.

package edit

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Mask stands where a credential is written in the text itself.
const Mask = "••••"

// Masks hides the credentials of texts.
type Masks struct {
	Keys []string            // the names of keys that hold one
	Hide func(string) string // takes out what is known to be one, wherever it stands; nil: nothing is
}

// Hidden is a text as it is shown.
type Hidden struct {
	Text  []byte
	Paths []string // where a mask stands in place of a value
}

// ErrMask is a mask that stands for nothing, in a line of a text.
type ErrMask struct{ Line int }

func (e *ErrMask) Error() string {
	return fmt.Sprintf("%s in line %d stands for no credential that is kept there: write it, or take the line out", Mask, e.Line)
}

// reference is a value that names where a credential is kept, and holds none.
var reference = regexp.MustCompile(`^\$\{[^{}]*\}$`)

// secret says that a value is a credential as it stands.
func (m Masks) secret(s Scalar) bool {
	return slices.Contains(m.Keys, s.Key) && s.Value != Mask && Written(s.Value)
}

// Written says that a credential stands in a value itself, not only where it is kept.
func Written(value string) bool {
	_, fallback, _ := strings.Cut(value, ":-")
	return value != "" && (!reference.MatchString(value) || strings.TrimSuffix(fallback, "}") != "")
}

// Show hides the credentials of a text. Where that cannot be done for sure it is an error that wraps ErrByHand.
func (m Masks) Show(text []byte) (Hidden, error) {
	_, hidden, err := m.show(text)
	return hidden, err
}

// show returns also the text before what is known to be a credential was taken out of its lines.
func (m Masks) show(text []byte) (before []byte, hidden Hidden, err error) {
	list, bad := Scalars(lines(text))
	if bad != nil { // no YAML, or not one that is understood: line by line
		before, hidden.Text = text, m.byLine(text)
	} else if hidden, err = m.byPlace(text, list); err != nil {
		return nil, hidden, err
	} else {
		before = hidden.Text
	}
	if m.Hide == nil {
		return before, hidden, nil
	}
	var out []string
	for line := range strings.Lines(string(hidden.Text)) {
		if shown := m.Hide(line); shown != line {
			line = strings.TrimRight(shown, "\r\n") + line[len(strings.TrimRight(line, "\r\n")):]
		}
		out = append(out, line)
	}
	hidden.Text = []byte(strings.Join(out, ""))
	return before, hidden, nil
}

// part is a part of a text with what comes into its place.
type part struct {
	at   span
	text []byte
}

// replaceAll replaces parts, which stand in the order of the text.
func replaceAll(text []byte, parts []part) ([]byte, error) {
	out, from := make([]byte, 0, len(text)), 0
	for _, p := range parts {
		if p.at.from < from {
			return nil, byHand("it is written in an unusual way")
		}
		out = append(append(out, text[from:p.at.from]...), p.text...)
		from = p.at.to
	}
	return append(out, text[from:]...), nil
}

// byPlace puts a mask in the place of each value that is a credential.
func (m Masks) byPlace(text []byte, list []Scalar) (Hidden, error) {
	var parts []part
	hidden := Hidden{}
	for _, s := range list {
		if !m.secret(s) {
			continue
		}
		if s.To <= s.From {
			return Hidden{}, byHand("line %d keeps a credential where it cannot be hidden", s.Line)
		}
		parts = append(parts, part{span{s.From, s.To}, []byte(Mask)})
		hidden.Paths = append(hidden.Paths, s.Path)
	}
	out, err := replaceAll(lines(text), parts)
	if err != nil {
		return Hidden{}, err
	}
	again, err := Scalars(out)
	if err != nil || len(again) != len(list) {
		return Hidden{}, byHand("it is written in an unusual way")
	}
	for i, s := range list {
		want := s.Value
		if m.secret(s) {
			want = Mask
		}
		if again[i].Path != s.Path || again[i].Value != want {
			return Hidden{}, byHand("it is written in an unusual way")
		}
	}
	hidden.Text = like(text, out)
	return hidden, nil
}

// byLine hides what stands behind the key of a credential in each line, and the lines that go on with it.
func (m Masks) byLine(text []byte) []byte {
	key := regexp.MustCompile(`(^|[\s,{"'-])(` + strings.Join(m.Keys, "|") + `)(["']?\s*:\s*)(\S.*|)$`)
	var out []string
	deeper := -1 // the column of a key whose value may go on in the next lines
	for line := range strings.Lines(string(text)) {
		body := strings.TrimRight(line, "\r\n")
		column := len(body) - len(strings.TrimLeft(body, " \t-"))
		switch at := key.FindStringSubmatchIndex(body); {
		case deeper >= 0 && column > deeper && strings.TrimSpace(body) != "":
			out = append(out, body[:column]+Mask+line[len(body):])
			continue
		case at != nil:
			deeper = column
			if Written(strings.Trim(body[at[8]:at[9]], `"' `)) {
				line = body[:at[8]] + Mask + line[len(body):]
			}
		default:
			deeper = -1
		}
		out = append(out, line)
	}
	return []byte(strings.Join(out, ""))
}

// Restore is a text that was changed after Show, with the credentials of the text that was shown. Each comes back at the place
// where it was; what was hidden elsewhere, such as in a comment, comes back in a line that is still the same. A text that is no
// YAML keeps its masks: nobody takes it.
func (m Masks) Restore(base, changed []byte) ([]byte, error) {
	before, shown, err := m.show(base)
	if err != nil {
		return nil, err
	}
	out := restoreLines(lines(before), lines(shown.Text), lines(changed))
	list, err := Scalars(out)
	if errors.Is(err, ErrByHand) {
		return nil, err
	}
	if err != nil {
		return like(changed, out), nil
	}
	if out, err = m.restorePlaces(lines(base), out, list); err != nil {
		return nil, err
	}
	if !bytes.Contains(base, []byte(Mask)) {
		if i := bytes.Index(out, []byte(Mask)); i >= 0 {
			return nil, &ErrMask{bytes.Count(out[:i], []byte("\n")) + 1}
		}
	}
	return like(changed, out), nil
}

func (m Masks) restorePlaces(base, out []byte, list []Scalar) ([]byte, error) {
	kept := map[string]Scalar{}
	if was, err := Scalars(base); err == nil {
		for _, s := range was {
			if m.secret(s) {
				kept[s.Path] = s
			}
		}
	}
	want := map[string]string{}
	var parts []part
	for _, s := range list {
		was, known := kept[s.Path]
		if s.Value != Mask || !known || s.To <= s.From {
			continue
		}
		parts = append(parts, part{span{s.From, s.To}, base[was.From:was.To]})
		want[s.Path] = was.Value
	}
	out, err := replaceAll(out, parts)
	if err != nil {
		return nil, err
	}
	again, err := Scalars(out)
	if err != nil {
		return nil, byHand("a credential does not fit into its new place")
	}
	for _, s := range again {
		if value, was := want[s.Path]; was && s.Value != value {
			return nil, byHand("a credential does not fit into its new place (line %d)", s.Line)
		}
	}
	return out, nil
}

// restoreLines puts lines back that were shown otherwise than they are, where they are unchanged: those that look alike in their
// order, if there are as many of them as were shown.
func restoreLines(before, shown, out []byte) []byte {
	was := map[string][]string{}
	real, seen := strings.SplitAfter(string(before), "\n"), strings.SplitAfter(string(shown), "\n")
	if len(real) != len(seen) { // each is shown as one
		return out
	}
	differs := map[string]bool{}
	for i, line := range seen {
		was[line] = append(was[line], real[i])
		differs[line] = differs[line] || line != real[i]
	}
	list, count := strings.SplitAfter(string(out), "\n"), map[string]int{}
	for _, line := range list {
		count[line]++
	}
	for i, line := range list {
		if differs[line] && count[line] == len(was[line]) {
			list[i] = was[line][0]
			was[line], count[line] = was[line][1:], count[line]-1
		}
	}
	return []byte(strings.Join(list, ""))
}

// lines is a text with the line ends and without the mark that Apply works with.
func lines(text []byte) []byte {
	return bytes.ReplaceAll(bytes.TrimPrefix(text, []byte("\ufeff")), []byte("\r\n"), []byte("\n"))
}

// like gives a text the line ends and mark of another.
func like(model, text []byte) []byte {
	if n := bytes.Count(model, []byte("\n")); n > 0 && n == bytes.Count(model, []byte("\r\n")) {
		text = bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))
	}
	if bytes.HasPrefix(model, []byte("\ufeff")) {
		text = append([]byte("\ufeff"), text...)
	}
	return text
}
