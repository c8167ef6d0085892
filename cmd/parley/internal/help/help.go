// Package help says how commands are used: in groups, with examples, as wide as the terminal, and what was probably meant.
package help

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"parley/cmd/parley/internal/cli"
)

// chapters are the groups that `parley help` lists, with their commands in the order of a first day.
func chapters() []chapter {
	return []chapter{
		{"begin", "Begin:", "onboard gateway chat send webchat doctor service"},
		{"work", "Sessions and runs:", "session run stop approval files folder agent"},
		{"people", "People and networks:", "channel pairing people route outbound"},
		{"operate", "Look after it:", "status logs usage model audit config backup restore"},
		{"more", "More:", "help version completion"},
	}
}

type chapter struct{ id, title, commands string }

// Arrange puts the commands into their chapters and gives each its examples.
func Arrange(root *cobra.Command) {
	for _, ch := range chapters() {
		root.AddGroup(&cobra.Group{ID: ch.id, Title: ch.title})
		for _, c := range root.Commands() {
			if slices.Contains(strings.Fields(ch.commands), c.Name()) {
				c.GroupID = ch.id
			}
		}
	}
	root.SetHelpCommandGroupID("more")
	root.SetCompletionCommandGroupID("more")
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if text := examples[strings.TrimPrefix(c.CommandPath(), cli.Name+" ")]; text != "" {
			c.Example = "  parley " + strings.ReplaceAll(text, "\n", "\n  parley ")
		}
		c.SuggestionsMinimumDistance = 2
		if c.HasSubCommands() && c.HasParent() {
			takesArgs := c.Args
			c.Args = func(c *cobra.Command, args []string) error {
				if len(args) > 0 && takesArgs(c, args) != nil {
					return Unknown(c, args[0])
				}
				return nil
			}
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return suggestFlag(c, err) })
	root.SetUsageFunc(func(c *cobra.Command) error {
		usage(c, c.OutOrStdout(), cli.Columns(c.OutOrStdout()))
		return nil
	})
}

// Unknown is what is said of a word that is no command.
func Unknown(c *cobra.Command, word string) error {
	return meant(fmt.Sprintf("unknown command %q for %q", word, c.CommandPath()), "", c.SuggestionsFor(word))
}

// suggestFlag is what is said of a flag that there is not.
func suggestFlag(c *cobra.Command, err error) error {
	var none *pflag.NotExistError
	if !errors.As(err, &none) {
		return err
	}
	flags := &cobra.Command{SuggestionsMinimumDistance: 2} // which compares names of commands, and any others
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			flags.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
		}
	})
	return meant(err.Error(), "--", flags.SuggestionsFor(none.GetSpecifiedName()))
}

// meant adds to a sentence what may be meant.
func meant(text, before string, near []string) error {
	if len(near) == 0 {
		return errors.New(text)
	}
	return fmt.Errorf("%s; did you mean %s%s?", text, before, strings.Join(near, " or "+before))
}

// See is where a command that was used in a wrong way is explained.
func See(c *cobra.Command) string { return cli.Hinted("see: " + c.CommandPath() + " --help") }

// Show prints the help of a command.
func Show(c *cobra.Command) {
	w := c.OutOrStdout()
	columns := cli.Columns(w)
	about := c.Long
	if about == "" {
		about = c.Short
	}
	fmt.Fprintf(w, "%s\n\n", ansi.Wordwrap(cli.Hinted(about), columns, ""))
	usage(c, w, columns)
}

// usage prints how a command is used.
func usage(c *cobra.Command, w io.Writer, columns int) {
	head := func(text string) string { return cli.Paint(w, cli.Bold, text) }
	fmt.Fprintln(w, head("Usage:"))
	if c.Runnable() && (!c.HasSubCommands() || strings.Contains(c.Use, " ")) {
		fmt.Fprintf(w, "  %s\n", cli.Hinted(c.UseLine()))
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(w, "  %s COMMAND\n", cli.Hinted(c.CommandPath()))
	}
	if len(c.Aliases) > 0 {
		fmt.Fprintf(w, "\n%s %s\n", head("Also:"), strings.Join(c.Aliases, ", "))
	}
	if c.HasExample() {
		fmt.Fprintf(w, "\n%s\n%s\n", head("Examples:"), cli.Hinted(c.Example))
	}
	if groups := c.Groups(); len(groups) > 0 {
		for _, g := range groups {
			fmt.Fprintf(w, "\n%s\n", head(g.Title))
			listed(c, w, columns, g.ID)
		}
	} else if c.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\n%s\n", head("Commands:"))
		listed(c, w, columns, "")
	}
	if c.HasAvailableLocalFlags() {
		fmt.Fprintf(w, "\n%s\n%s", head("Flags:"), c.LocalFlags().FlagUsagesWrapped(columns))
	}
	if c.HasAvailableInheritedFlags() {
		fmt.Fprintf(w, "\n%s\n%s", head("Flags of all commands:"), c.InheritedFlags().FlagUsagesWrapped(columns))
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\nMore about one: %s COMMAND --help\n", cli.Hinted(c.CommandPath()))
	}
}

// listed prints the commands of a group, in the order of its chapter.
func listed(c *cobra.Command, w io.Writer, columns int, group string) {
	var order []string
	for _, ch := range chapters() {
		if ch.id == group {
			order = strings.Fields(ch.commands)
		}
	}
	list := slices.DeleteFunc(slices.Clone(c.Commands()), func(sub *cobra.Command) bool {
		return sub.GroupID != group || !sub.IsAvailableCommand() && sub.Name() != "help"
	})
	slices.SortStableFunc(list, func(a, b *cobra.Command) int {
		return slices.Index(order, a.Name()) - slices.Index(order, b.Name())
	})
	const indent = 15
	for _, sub := range list {
		text := strings.ReplaceAll(ansi.Wordwrap(sub.Short, max(20, columns-indent), ""), "\n", "\n"+strings.Repeat(" ", indent))
		fmt.Fprintf(w, "  %-*s %s\n", indent-3, sub.Name(), text)
	}
}
