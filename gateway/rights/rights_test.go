package rights_test

import (
	"errors"
	"testing"

	"parley/gateway/rights"
	"parley/workspace"
)

func TestRefuse(t *testing.T) {
	t.Parallel()
	setting := rights.Row{Owner: rights.Yes, Member: rights.OwnDirect}
	for _, c := range []struct {
		name  string
		row   rights.Row
		role  workspace.Role
		group bool
		says  string // empty: it may
	}{
		{"an owner anywhere", setting, workspace.Owner, true, ""},
		{"a member in private", setting, workspace.Member, false, ""},
		{"a member in a group", setting, workspace.Member, true, "In a group only an owner may do that."},
		{"a guest", setting, workspace.Guest, false, "Only members may do that."},
		{"nobody", setting, workspace.Nobody, false, "Only members may do that."},
		{"an owner in a group", rights.Owners, workspace.Owner, true, "Not in a group. Write to me directly."},
		{"a guest's own in a group", rights.Row{Owner: rights.Yes, Member: rights.Own, Guest: rights.Own}, workspace.Guest, true, ""},
		{"a verb without a row", rights.Row{}, workspace.Owner, false, "Only owners may do that."},
		{"an unknown role", setting, "king", false, "Only members may do that."},
	} {
		err := c.row.Refuse(c.role, c.group)
		said, _ := workspace.Sentence(err)
		if said != c.says || (err != nil) != errors.Is(err, workspace.ErrDenied) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
