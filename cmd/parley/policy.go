// Tool policy, tried on a shell line.

package main

import (
	"encoding/json"
	"errors"

	"github.com/spf13/cobra"

	"parley/cmd/parley/internal/cli"
)

// takeShellLine has "agent policy explain" take a shell line in place of the JSON of exec's arguments.
func takeShellLine(explain *cobra.Command) {
	var line string
	explain.Flags().StringVar(&line, "command", "", "shell `line` for exec, in place of --args")
	run := explain.RunE
	explain.RunE = func(c *cobra.Command, words []string) error {
		tool, args := c.Flag("tool").Value, c.Flag("args").Value
		name := tool.String()
		if len(words) > 1 {
			name = words[1]
		}
		switch {
		case line != "" && (args.String() != "" || name != "" && name != "exec"):
			return cli.Misuse(errors.New("--command is for exec, and in place of --args"))
		case line != "":
			text, err := json.Marshal(map[string]string{"command": line})
			if err := errors.Join(err, tool.Set("exec"), args.Set(string(text))); err != nil {
				return err
			}
		case args.String() != "" && name == "":
			return cli.Misuse(errors.New("--args needs a TOOL"))
		}
		return run(c, words)
	}
}
