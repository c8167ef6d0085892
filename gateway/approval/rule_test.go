package approval

import (
	"errors"
	"testing"

	"parley/gateway/snapshot"
	"parley/workspace"
)

// people are known by their ids.
type people map[workspace.PersonID]workspace.Role

func (p people) PersonByID(id workspace.PersonID) (workspace.Person, error) {
	if role, ok := p[id]; ok {
		return workspace.Person{ID: id, Role: role}, nil
	}
	return workspace.Person{}, workspace.ErrNotFound
}

func (p people) People() (list []workspace.Person, _ []workspace.Account, _ error) {
	for id, role := range p {
		list = append(list, workspace.Person{ID: id, Role: role})
	}
	return list, nil, nil
}

// T11: owners decide, or whom a domain names; a domain's system leaves it to nobody here; who asked decides about a domain's call
// only where the domain says so; and a yes stands as long as who gave it may still give it.
func TestT11_TheRuleSaysWhoDecides(t *testing.T) {
	t.Parallel()
	known := people{"ana": workspace.Owner, "ben": workspace.Member, "cy": workspace.Guest}
	r := &Rule{People: known, Domains: func() map[string]snapshot.Domain {
		return map[string]snapshot.Domain{"open": {Name: "open"}, "ben's": {People: []workspace.PersonID{"ben"}}, "members'": {Roles: []workspace.Role{workspace.Member}},
			"own": {People: []workspace.PersonID{"ben"}, RequesterMay: true}, "system": {Elsewhere: true, Roles: []workspace.Role{workspace.Owner}},
			"page": {People: []workspace.PersonID{"ben"}, Surfaces: []string{"http"}}}
	}}
	for _, c := range []struct {
		domain    string
		requester workspace.PersonID
		may       string // among ana, ben, cy
	}{
		{"", "ben", "ana"}, {"", "ana", "ana"}, {"open", "ben", "ana"}, {"open", "ana", ""}, {"ben's", "ana", "ben"}, {"ben's", "ben", ""}, {"members'", "ana", "ben"},
		{"own", "ben", "ben"}, {"system", "ben", ""}, {"gone", "ben", ""},
	} {
		ap := workspace.Approval{Domain: c.domain, Requester: c.requester}
		got := ""
		for _, id := range []workspace.PersonID{"ana", "ben", "cy", "", "nobody"} {
			err := r.Decides(ap, workspace.Actor{Person: id, Role: known[id]})
			if err == nil {
				got += string(id)
			} else if _, said := workspace.Sentence(err); !said || !errors.Is(err, workspace.ErrDenied) {
				t.Errorf("%q asked by %s: %v has no sentence", c.domain, c.requester, err)
			}
			ap.DecidedBy = id
			if id != "" && r.Stands(ap) != (err == nil) {
				t.Errorf("%q: a yes of %s stands: %v", c.domain, id, err != nil)
			}
		}
		if got != c.may {
			t.Errorf("%q asked by %s: %q may decide, want %q", c.domain, c.requester, got, c.may)
		}
	}
	ben := workspace.Actor{Person: "ben", Role: workspace.Member}
	for surface, want := range map[string]bool{"http": true, "cli": false} {
		if err := r.DecidesBy(workspace.Approval{Domain: "page"}, ben, func() string { return surface }); (err == nil) != want {
			t.Errorf("by %s: %v", surface, err)
		}
	}
	for domain, want := range map[string]bool{"": false, "system": true, "gone": false} {
		if r.Stands(workspace.Approval{Domain: domain}) != want {
			t.Errorf("a yes of no person in %q stands: %v", domain, !want)
		}
	}
}
