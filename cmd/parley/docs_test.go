package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write the generated part of docs/command-line.md")

const generated = "## Every command\n\n<!-- Made from the commands by `go test ./cmd/parley -run TestCommandLineIsDocumented -update`. -->\n"

// The end of docs/command-line.md is what the commands say of themselves.
func TestCommandLineIsDocumented(t *testing.T) {
	t.Parallel()
	const name = "../../docs/command-line.md"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(text), generated)
	want := strings.TrimRight(head, "\n") + "\n\n" + generated + commandDocs()
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(text) != want {
		t.Errorf("%s is stale: run go test ./cmd/parley -run TestCommandLineIsDocumented -update", name)
	}
}

func commandDocs() string {
	var list []*cobra.Command
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		if !c.HasSubCommands() || strings.Contains(c.Use, " ") {
			list = append(list, c)
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk((&program{}).root())
	slices.SortFunc(list, func(a, b *cobra.Command) int { return strings.Compare(a.CommandPath(), b.CommandPath()) })
	var b strings.Builder
	for _, c := range list {
		if !c.IsAvailableCommand() {
			continue
		}
		_, args, _ := strings.Cut(c.Use, " ")
		fmt.Fprintf(&b, "\n- `%s`: %s.", strings.TrimSpace(c.CommandPath()+" "+args), strings.TrimSuffix(c.Short, "."))
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden || f.Name == "help" || f.Name == "json" {
				return
			}
			value, usage := pflag.UnquoteUsage(f)
			fmt.Fprintf(&b, "\n  `%s`: %s", strings.TrimSpace("--"+f.Name+" "+strings.ToUpper(value)), usage)
			if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" && f.DefValue != "[]" && f.DefValue != "0s" {
				fmt.Fprintf(&b, " (%s)", f.DefValue)
			}
			b.WriteString(".")
		})
	}
	return b.String() + "\n"
}
