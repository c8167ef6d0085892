// Package rights says who may do what: for each verb and role a cell, as docs/rights.md has them, and what a cell allows
// where. It is pure: it knows neither verbs nor what they act on.
package rights

import (
	"fmt"

	"parley/workspace"
)

// Cell is what one role may do with a verb.
type Cell uint8

const (
	No        Cell = iota // nothing
	OwnDirect             // on turns that the person asked for, and sessions that are theirs alone, and not in a group
	Direct                // on everybody's, and not in a group
	Own                   // on their own, anywhere
	Yes                   // on everybody's, anywhere
)

var words = [...]string{No: "no", OwnDirect: "own direct", Direct: "direct", Own: "own", Yes: "yes"}

func (c Cell) String() string { return words[c] }

// inGroups says whether a cell holds where others read along.
func (c Cell) inGroups() bool { return c == Own || c == Yes }

// Row is the cells of a verb. Nobody may use any: who has no role is refused.
type Row struct{ Owner, Member, Guest Cell }

// Owners is the row of what only owners do, in private.
var Owners = Row{Owner: Direct}

// Of is the cell of a role.
func (r Row) Of(role workspace.Role) Cell {
	switch role {
	case workspace.Owner:
		return r.Owner
	case workspace.Member:
		return r.Member
	case workspace.Guest:
		return r.Guest
	}
	return No
}

// least is the lowest role whose cell passes; workspace.Nobody: none does.
func (r Row) least(passes func(Cell) bool) workspace.Role {
	for _, role := range []workspace.Role{workspace.Guest, workspace.Member, workspace.Owner} {
		if passes(r.Of(role)) {
			return role
		}
	}
	return workspace.Nobody
}

// Refuse says in a sentence why a role may not use a verb in a place; nil: it may.
func (r Row) Refuse(role workspace.Role, group bool) error {
	cell := r.Of(role)
	switch {
	case cell == No:
		least := r.least(func(c Cell) bool { return c != No })
		if least == workspace.Nobody {
			least = workspace.Owner
		}
		return workspace.Say(fmt.Errorf("by %s: %w", role, workspace.ErrDenied), "Only %ss may do that.", least)
	case !group || cell.inGroups():
		return nil
	case r.least(Cell.inGroups) == workspace.Nobody:
		return workspace.Say(fmt.Errorf("in a group: %w", workspace.ErrDenied), "Not in a group. Write to me directly.")
	}
	return workspace.Say(fmt.Errorf("in a group: %w", workspace.ErrDenied), "In a group only an owner may do that.")
}
