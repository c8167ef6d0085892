package command

// More is what else there is to know of a command.
func More(c Command) string { return c.more() }

// Verbs are the rights that lines of a command need.
func Verbs(c Command) []string {
	list := []string{c.right(nil)}
	for _, word := range c.Choices {
		list = append(list, c.right([]string{word}))
	}
	return list
}
