package command

// More is what else there is to know of a command.
func More(c Command) string { return c.more() }

// Verbs are the rights that lines of a command need: of the command with what it is for, and of each of its Choices.
func Verbs(c Command) []string {
	list := []string{c.Name}
	for i, a := range c.actions {
		if i == 0 || a.name == "" {
			list[0] = a.spec.Name
		}
		if a.name != "" {
			list = append(list, a.spec.Name)
		}
	}
	return list
}
