// Checking and showing the configuration.

package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"parley/cmd/parley/internal/cli"
	"parley/configs"
	"parley/gateway"
	"parley/gateway/control/operator"
)

func configCommand(a *cli.App) *cobra.Command {
	group := &cobra.Command{Use: "config", Short: "Check, show and change the configuration", Args: cobra.NoArgs, RunE: cli.NeedsVerb}
	check := &cobra.Command{Use: "check", Short: "Say everything that is wrong with it", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return checkConfig(a) }}
	show := &cobra.Command{Use: "show", Short: "Print it with defaults filled in and secrets hidden", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, c, err := a.Load()
			if err != nil {
				return err
			}
			text, err := c.Show()
			if err != nil {
				return err
			}
			_, err = a.Out.Write(text)
			return err
		}}
	schema := &cobra.Command{Use: "schema", Short: "Print its JSON schema, for editors", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			text, err := configs.Schema(cli.Sections())
			if err != nil {
				return err
			}
			_, err = a.Out.Write(text)
			return err
		}}
	path := &cobra.Command{Use: "path", Short: "Print where it is read from", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, c, err := a.Load()
			if err != nil {
				return err
			}
			if c.Path == "" {
				return errors.New("there is no configuration file; everything is default")
			}
			_, err = fmt.Fprintln(a.Out, c.Path)
			return err
		}}
	reload := &cobra.Command{Use: "reload", Short: "Have the running gateway read it again, as SIGHUP does", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if _, _, err := a.Load(); err != nil {
				return err // it would be refused there too, but only the gateway's log would say why
			}
			cl, err := a.Client()
			if err != nil {
				return err
			}
			defer cl.Close()
			_, err = operator.ReloadConfig.Ask(c.Context(), cl, struct{}{})
			return cli.Hint(err)
		}}
	group.AddCommand(a.JSONFlag(check), show, schema, path, reload, configSetCommand(a), configUnsetCommand(a), configEditCommand(a))
	return group
}

// checkConfig lists the problems; with any the exit code is that of a wrong configuration.
func checkConfig(a *cli.App) error {
	type problem struct {
		Path string `json:"path,omitempty"`
		Line int    `json:"line,omitempty"`
		Text string `json:"text"`
	}
	result := struct {
		File     string    `json:"file"`
		OK       bool      `json:"ok"`
		Problems []problem `json:"problems"`
		Warnings []problem `json:"warnings"` // what is allowed, and probably not meant
	}{Problems: []problem{}, Warnings: []problem{}}
	_, c, err := a.Load()
	var wrong *configs.Error
	switch {
	case err == nil:
		result.OK, result.File = true, c.Path
		for _, p := range gateway.Warnings(c) {
			result.Warnings = append(result.Warnings, problem{p.Path, p.Line, p.Text})
		}
	case errors.As(err, &wrong):
		result.File = wrong.File
		for _, p := range wrong.Problems {
			result.Problems = append(result.Problems, problem{p.Path, p.Line, p.Text})
		}
	default:
		result.Problems = append(result.Problems, problem{Text: err.Error()})
	}
	if a.JSON {
		if shown := a.ShowJSON(result); shown != nil {
			return shown
		}
		if err != nil {
			return cli.Misuse(fmt.Errorf("%d problems", len(result.Problems)))
		}
		return nil
	}
	if err != nil {
		return err
	}
	where := result.File
	if where == "" {
		where = "no file: everything is default"
	}
	for _, p := range result.Warnings {
		where := ""
		if p.Line > 0 {
			where = fmt.Sprintf(" (line %d)", p.Line)
		}
		fmt.Fprintf(a.Out, "note: %s %s%s\n", p.Path, p.Text, where)
	}
	_, err = fmt.Fprintf(a.Out, "ok (%s)\n", where)
	return err
}
