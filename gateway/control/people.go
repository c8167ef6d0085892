package control

import (
	"context"

	"parley/workspace"
	"parley/workspace/clip"
	"parley/workspace/store"
)

// Human is a person with the accounts that speak for them.
type Human = store.Human

// People lists those who are known, by id, behind the given one.
func (c *Control) People(_ context.Context, call Call, after workspace.PersonID, limit int) ([]Human, error) {
	if err := c.may(call, "people"); err != nil {
		return nil, err
	}
	return c.Store.Humans(after, limit)
}

// Person reads one of them.
func (c *Control) Person(_ context.Context, call Call, id string) (Human, error) {
	if err := c.may(call, "people"); err != nil {
		return Human{}, err
	}
	h, err := c.Store.Human(workspace.PersonID(id))
	if err != nil {
		return h, workspace.Say(err, "There is nobody with the id %q.", clip.Runes(id, 80))
	}
	return h, nil
}
