package all_test

import (
	"errors"
	"testing"

	"parley/gateway/control"
	"parley/gateway/control/person"
	"parley/gateway/spec"
	"parley/workspace"
)

// What is out of bounds is refused in one sentence, by whatever way it comes; what is left out has its default.
func TestFieldsOfAVerbAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	owner := w.Call("boss", workspace.Owner, "")
	for text, says := range map[string]string{
		"0": `limit is a number from 1 to 500, not "0".`, "501": `limit is a number from 1 to 500, not "501".`, "-1": `limit is a number from 1 to 500, not "-1".`,
		"x": `limit is a number from 1 to 500, not "x".`, "99999999999999999999": `limit is a number from 1 to 500, not "99999999999999999999".`, "500": "",
	} {
		_, err := control.Any(person.List).Run(t.Context(), w.List(), owner, func(in any) error {
			for _, f := range person.List.Spec().Fields {
				if f.Name == "limit" {
					return f.Set(in, text)
				}
			}
			return errors.New("no such field")
		})
		if said, _ := workspace.Sentence(err); said != says || (err != nil) != errors.Is(err, workspace.ErrInvalid) {
			t.Errorf("limit %s: %v", text, err)
		}
	}
	if l, err := person.List.Call(t.Context(), w.People, owner, spec.Page{Limit: 1}); err != nil || len(l.Items) != 1 || l.Next == nil || *l.Next != l.Items[0].ID {
		t.Errorf("a page of one: %+v, %v", l, err)
	}
	if l, err := person.List.Call(t.Context(), w.People, owner, spec.Page{}); err != nil || len(l.Items) != 3 || l.Next != nil {
		t.Errorf("all: %+v, %v", l, err)
	}
	if _, err := person.ApprovePairing.Call(t.Context(), w.People, owner, person.ApproveIn{ID: "x", As: "king"}); !errors.Is(err, workspace.ErrInvalid) {
		t.Errorf("a role that there is not: %v", err)
	}
}
