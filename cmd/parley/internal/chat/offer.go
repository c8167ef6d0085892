// Commands that Tab completes.

package chat

import (
	"slices"
	"strings"

	"parley/gateway"
)

// offer is what a line may become.
type offer struct{ line, help string }

// offers are the lines that begin as what is typed: names of commands, then the words that their first argument may be.
func offers(typed string) []offer {
	name, ok := strings.CutPrefix(typed, "/")
	if !ok || strings.Contains(name, "\n") {
		return nil
	}
	name, word, second := strings.Cut(strings.ToLower(name), " ")
	if strings.Contains(word, " ") {
		return nil
	}
	slashes := append(gateway.Slashes(), gateway.Slash{Name: "quit", Help: "leave the chat"})
	slices.SortFunc(slashes, func(a, b gateway.Slash) int { return strings.Compare(a.Name, b.Name) })
	var list []offer
	for _, s := range slashes {
		switch {
		case second && s.Name == name:
			for _, c := range s.Choices {
				if strings.HasPrefix(c, word) {
					list = append(list, offer{"/" + name + " " + c, ""})
				}
			}
		case !second && strings.HasPrefix(s.Name, name):
			list = append(list, offer{"/" + s.Name, s.Help})
		}
	}
	return list
}

// offer updates the list below what is typed. What is whole is offered no more.
func (v *view) offer() {
	found := offers(v.edit.Value())
	if len(found) == 1 && found[0].line == strings.TrimRight(v.edit.Value(), " ") {
		found = nil
	}
	v.menu = found[:min(len(found), menuMost)]
}

// complete is Tab: the rest of the line as far as it is sure.
func (v *view) complete() {
	found := offers(v.edit.Value())
	if len(found) == 0 {
		return
	}
	common := found[0].line
	for _, o := range found[1:] {
		n := 0
		for n < len(common) && n < len(o.line) && common[n] == o.line[n] {
			n++
		}
		common = common[:n]
	}
	if len(found) == 1 {
		common += " "
	}
	if len(common) >= len(v.edit.Value()) { // never less than what was typed
		v.edit.SetValue(common)
		v.edit.MoveToEnd()
	}
	v.offer()
}
