package main

import (
	"slices"
	"strings"

	"parley/gateway"
)

// offer is a command that what is typed may become.
type offer struct{ name, help string }

// offers are the commands that begin as name does.
func offers(name string) []offer {
	list := []offer{{"quit", "leave the chat"}}
	for _, c := range gateway.Menu() {
		list = append(list, offer{c.Name, c.Help})
	}
	slices.SortFunc(list, func(a, b offer) int { return strings.Compare(a.name, b.name) })
	return slices.DeleteFunc(list, func(o offer) bool { return !strings.HasPrefix(o.name, name) })
}

// offer updates the list below what is typed.
func (v *view) offer() {
	v.menu = nil
	name, ok := strings.CutPrefix(v.edit.Value(), "/")
	if !ok || strings.ContainsAny(name, " \n") {
		return
	}
	found := offers(strings.ToLower(name))
	if len(found) == 1 && found[0].name == name {
		return
	}
	v.menu = found[:min(len(found), menuMost)]
}

// complete is Tab: the rest of a command's name as far as it is sure.
func (v *view) complete() {
	name, ok := strings.CutPrefix(v.edit.Value(), "/")
	if !ok || strings.ContainsAny(name, " \n") {
		return
	}
	found := offers(strings.ToLower(name))
	if len(found) == 0 {
		return
	}
	common := found[0].name
	for _, o := range found[1:] {
		n := 0
		for n < len(common) && n < len(o.name) && common[n] == o.name[n] {
			n++
		}
		common = common[:n]
	}
	if len(found) == 1 {
		common += " "
	}
	v.edit.SetValue("/" + common)
	v.edit.MoveToEnd()
	v.offer()
}
