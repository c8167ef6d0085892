package command

import "cmp"

// More is what else there is to know of a command.
func More(c Command) string { return c.more() }

// Verbs are the rights that lines of a command need: of the command by itself, and of each of its Choices.
func Verbs(c Command) []string {
	list := []string{cmp.Or(c.Verb, c.Name)}
	for _, a := range c.actions {
		if a.name != "" {
			list = append(list, a.spec.Name)
		}
	}
	return list
}
