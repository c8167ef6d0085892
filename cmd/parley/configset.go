// Changing the configuration of the running gateway.

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"parley/cmd/parley/internal/cli"
	"parley/configs"
	"parley/gateway/client"
	"parley/gateway/control/config"
)

func configSetCommand(a *cli.App) *cobra.Command {
	c := &cobra.Command{Use: "set PATH [VALUE]", Short: "Change a key and put it in force",
		Long: "Change one key of the configuration of the running gateway, leaving the rest of its text, and put it in\n" +
			"force. PATH is such as agents[assistant].model, or models[near] for an item as a whole. VALUE is YAML; -\n" +
			"reads it from standard input. A credential is asked for, or read from standard input, and goes into a\n" +
			"file of its own.",
		Args: cobra.RangeArgs(1, 2)}
	c.RunE = func(c *cobra.Command, args []string) error {
		in, err := setIn(a, args)
		if err != nil {
			return err
		}
		return changeConfig(a, c, in)
	}
	return a.JSONFlag(c)
}

func configUnsetCommand(a *cli.App) *cobra.Command {
	c := &cobra.Command{Use: "unset PATH", Short: "Take a key out and put the rest in force", Args: cobra.ExactArgs(1)}
	c.RunE = func(c *cobra.Command, args []string) error {
		return changeConfig(a, c, config.ChangeIn{Changes: []config.Set{{Path: args[0], Remove: true}}})
	}
	return a.JSONFlag(c)
}

// setIn is what is asked for by `config set`.
func setIn(a *cli.App, args []string) (in config.ChangeIn, err error) {
	path := args[0]
	if slices.Contains(configs.SecretKeys(cli.Sections()), path[strings.LastIndexByte(path, '.')+1:]) {
		if len(args) > 1 && args[1] != "-" {
			return in, cli.Misuse(errors.New("a credential is not given on the command line, where others see it: " +
				"leave it out to be asked for it, or give it on standard input"))
		}
		secret, err := readSecret(a, path)
		in.Secrets = []config.Secret{{Path: path, Value: secret}}
		return in, err
	}
	if len(args) < 2 {
		return in, cli.Misuse(errors.New("config set takes PATH VALUE; config unset takes a key out"))
	}
	text := []byte(args[1])
	if args[1] == "-" {
		if text, err = io.ReadAll(io.LimitReader(a.In, 1<<20)); err != nil {
			return in, err
		}
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil || len(doc.Content) == 0 {
		return in, cli.Misuse(fmt.Errorf("the value is not YAML: put it in quotes, such as '\"%s\"'", strings.TrimSpace(string(text))))
	}
	value, err := jsonOf(doc.Content[0])
	if err != nil {
		return in, cli.Misuse(err)
	}
	in.Changes = []config.Set{{Path: path, Value: value}}
	return in, nil
}

// jsonOf is a value of YAML as JSON, with its keys in their order.
func jsonOf(n *yaml.Node) (json.RawMessage, error) {
	var out bytes.Buffer
	switch n.Kind {
	case yaml.MappingNode, yaml.SequenceNode:
		open, end, step := byte('{'), byte('}'), 2
		if n.Kind == yaml.SequenceNode {
			open, end, step = '[', ']', 1
		}
		out.WriteByte(open)
		for i := 0; i < len(n.Content); i += step {
			if i > 0 {
				out.WriteByte(',')
			}
			if step == 2 {
				key, err := json.Marshal(n.Content[i].Value)
				if err != nil {
					return nil, err
				}
				out.Write(append(key, ':'))
			}
			value, err := jsonOf(n.Content[i+step-1])
			if err != nil {
				return nil, err
			}
			out.Write(value)
		}
		out.WriteByte(end)
		return out.Bytes(), nil
	case yaml.AliasNode:
		return nil, errors.New("the value uses an alias")
	}
	var v any
	if err := n.Decode(&v); err != nil {
		return nil, err
	}
	if _, text := v.(string); !text && n.ShortTag() == "!!timestamp" {
		v = n.Value
	}
	return json.Marshal(v)
}

// readSecret asks whoever sits there, else reads standard input.
func readSecret(a *cli.App, path string) (string, error) {
	if q := a.NewAsker(); q != nil {
		return q.Secret(path)
	}
	text, err := io.ReadAll(io.LimitReader(a.In, 64<<10))
	if err == nil && len(bytes.TrimSpace(text)) == 0 {
		err = cli.Misuse(errors.New("no credential came on standard input"))
	}
	return string(text), err
}

func changeConfig(a *cli.App, c *cobra.Command, in config.ChangeIn) error {
	cl, err := a.Client()
	if err != nil {
		return err
	}
	defer cl.Close()
	done, err := config.Change.Ask(c.Context(), cl, in)
	if err != nil {
		return cli.Hint(err)
	}
	return showApplied(a, done)
}

func showApplied(a *cli.App, done config.Applied) error {
	if a.JSON {
		return a.ShowJSON(done)
	}
	line := "nothing to change"
	if len(done.Changed) > 0 {
		line = "in force: " + strings.Join(done.Changed, ", ")
	}
	if len(done.Restart) > 0 {
		line += "\nafter a restart: " + strings.Join(done.Restart, ", ")
	}
	for _, note := range done.Notes {
		line += "\nnote: " + note
	}
	_, err := fmt.Fprintln(a.Out, cli.VisibleText(line))
	return err
}

func configEditCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{Use: "edit", Short: "Edit the configuration in $EDITOR and put it in force", Args: cobra.NoArgs,
		Long: "Open the configuration of the running gateway in $VISUAL or $EDITOR, with •••• in place of its\n" +
			"credentials. What is saved is checked, and put in force as a whole; a •••• that still stands in its place\n" +
			"stays what it stands for.",
		RunE: func(c *cobra.Command, _ []string) error {
			cl, err := a.Client()
			if err != nil {
				return err
			}
			defer cl.Close()
			file, err := config.ShowFile.Ask(c.Context(), cl, struct{}{})
			if err != nil {
				return cli.Hint(err)
			}
			if file.Exists && file.Text == "" && len(file.Problems) > 0 {
				return errors.New(file.Problems[len(file.Problems)-1].Message)
			}
			return editConfig(a, c, cl, file)
		}}
}

// editConfig lets a person edit until what they have is taken, or they give up.
func editConfig(a *cli.App, c *cobra.Command, cl *client.Client, file config.File) error {
	dir, err := os.MkdirTemp("", "parley-edit-") // mode 0700
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // it holds no credential
	name := filepath.Join(dir, "parley.yaml")
	if err := os.WriteFile(name, []byte(file.Text), 0o600); err != nil {
		return err
	}
	for {
		if err := runEditor(a, c, name); err != nil {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if string(text) == file.Text {
			_, err := fmt.Fprintln(a.Out, "nothing to change")
			return err
		}
		done, err := config.Write.Ask(c.Context(), cl, config.WriteIn{Text: string(text), Revision: file.Revision})
		if err == nil {
			return showApplied(a, done)
		}
		q := a.NewAsker()
		if q == nil {
			return cli.Hint(err)
		}
		fmt.Fprintln(a.Out, cli.VisibleText(err.Error()))
		if again, asked := q.Yes("Edit again?", true); asked != nil || !again {
			return errors.Join(cli.ErrAborted, asked)
		}
	}
}

func runEditor(a *cli.App, c *cobra.Command, name string) error {
	editor := os.Getenv("VISUAL")
	if editor == "" {
		editor = os.Getenv("EDITOR")
	}
	if editor == "" {
		editor = "vi"
	}
	run := exec.CommandContext(c.Context(), "sh", "-c", editor+` "$1"`, "sh", name)
	run.Stdin, run.Stdout, run.Stderr = a.In, a.Out, c.ErrOrStderr()
	if err := run.Run(); err != nil {
		return fmt.Errorf("run the editor %s: %w", editor, err)
	}
	return nil
}
