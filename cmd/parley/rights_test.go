package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// atHome are commands that ask no gateway: whoever may run them may read the files too.
var atHome = []string{"parley gateway", "parley onboard", "parley service install", "parley service uninstall", "parley service status", "parley config check", "parley config schema", "parley config path", "parley route list", "parley channel manifest", "parley doctor", "parley restore", "parley version",
	"parley completion bash", "parley completion fish", "parley completion powershell", "parley completion zsh", "parley help"}

// Every command stands in docs/rights.md, or asks no gateway; and every `parley …` of the table is a command.
func TestCommandsAreThoseOfTheRightsTable(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/rights.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for i, way := range strings.Split(string(text), "`") {
		if i%2 == 1 && strings.HasPrefix(way, "parley ") && !strings.Contains(way, "…") {
			listed = append(listed, way)
		}
	}
	var have []string
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if !c.HasSubCommands() || strings.Contains(c.Use, " ") { // with arguments it does something itself
			have = append(have, c.CommandPath())
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	root := (&program{}).root()
	root.InitDefaultCompletionCmd()
	walk(root)
	for _, c := range have {
		if !slices.Contains(listed, c) && !slices.Contains(atHome, c) {
			t.Errorf("%s has no row in docs/rights.md", c)
		}
	}
	for _, c := range listed {
		if !slices.Contains(have, c) {
			t.Errorf("docs/rights.md names %s, which is not a command", c)
		}
	}
}
