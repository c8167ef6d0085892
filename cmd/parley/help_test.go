package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"
)

// Every command stands in a group of the help and has an example that begins as it is called.
func TestEveryCommandHasItsGroupAndExample(t *testing.T) {
	t.Parallel()
	root := (&program{}).root()
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		switch {
		case strings.Contains(c.CommandPath(), " completion") || !c.IsAvailableCommand() && c.Name() != "help":
			return
		case c.Parent() == root && c.GroupID == "":
			t.Errorf("%s is in no group", c.CommandPath())
		}
		if c.HasSubCommands() && !strings.Contains(c.Use, " ") {
			return
		}
		if c.Example == "" {
			t.Errorf("%s has no example", c.CommandPath())
		}
		for line := range strings.SplitSeq(strings.TrimSpace(c.Example), "\n") {
			if found, _, err := root.Find(strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "parley "))); err != nil || found != c {
				t.Errorf("%s: the example %q is of another command", c.CommandPath(), line)
			}
		}
	}
	walk(root)
}

// Help is as wide as what reads it, and says what was probably meant.
func TestHelpIsSetForTheReader(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][]string{
		"help":              {"Begin:\n  onboard ", "Sessions and runs:\n  session ", "Look after it:", "More about one:"},
		"chat --help":       {"Examples:\n", "chat --session notes", "Flags of all commands:"},
		"session lst":       {`unknown command "lst"`, "did you mean list?", "session --help"},
		"chat --sesion x":   {"unknown flag: --sesion; did you mean --session?", "chat --help"},
		"statsu":            {"did you mean status?", "see: "},
		"help session frok": {"did you mean fork?"},
		"session show":      {"takes KEY", "session show --help"},
		"nonsense":          {`unknown command "nonsense" for "`, "see: "},
	} {
		var out, errs bytes.Buffer
		code := run(t.Context(), strings.Fields(line), strings.NewReader(""), &out, &errs)
		if wrong := errs.Len() > 0; wrong != (code == misuse) {
			t.Errorf("%s: exit code %d, %s", line, code, errs.String())
		}
		for _, part := range want {
			if !strings.Contains(out.String()+errs.String(), part) {
				t.Errorf("%s: %q is not in\n%s%s", line, part, out.String(), errs.String())
			}
		}
		for row := range strings.SplitSeq(out.String(), "\n") {
			if ansi.StringWidth(row) > 80 && !strings.HasPrefix(row, "  ") {
				t.Errorf("%s: %d columns: %s", line, ansi.StringWidth(row), row)
			}
		}
	}
}
