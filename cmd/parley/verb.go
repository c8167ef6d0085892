package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/gateway/control"
)

// groups are what the first words of verbs' commands are about.
var groups = map[string]string{
	"folder":   "See folders that agents may write, and accept what was renamed there",
	"outbound": "Decide about answers that could not be delivered",
	"pairing":  "Decide who may speak in private chats",
	"people":   "See who is known, with which role and accounts",
}

// verbCommands are the commands of the verbs that are values, below their groups.
func (a *app) verbCommands() []*cobra.Command {
	var list []*cobra.Command
	under := map[string]*cobra.Command{}
	for _, v := range control.Verbs() {
		s := v.Spec()
		first, rest, grouped := strings.Cut(s.CLI, " ")
		if !grouped {
			list = append(list, a.verbCommand(v, s, first))
			continue
		}
		if under[first] == nil {
			under[first] = &cobra.Command{Use: first, Short: groups[first], Args: cobra.NoArgs, RunE: needsVerb}
			list = append(list, under[first])
		}
		under[first].AddCommand(a.verbCommand(v, s, rest))
	}
	return list
}

var placeholder = regexp.MustCompile(`<([a-z_]+)>`)

// verbCommand is the command of one verb: what the line names are arguments, the other fields flags.
func (a *app) verbCommand(v control.Any, s control.Spec, line string) *cobra.Command {
	var names []string
	for _, m := range placeholder.FindAllStringSubmatch(line, -1) {
		names = append(names, m[1])
	}
	use := placeholder.ReplaceAllStringFunc(line, func(name string) string { return strings.ToUpper(strings.Trim(name, "<>")) })
	c := &cobra.Command{Use: use, Short: s.Help, Long: s.Long, Args: cobra.NoArgs}
	if len(names) > 0 {
		c.Args = exactly(strings.Fields(use)[1:]...)
	}
	given := map[string]*string{}
	for _, f := range s.Fields {
		if !slices.Contains(names, f.Name) {
			given[f.Name] = c.Flags().String(f.Name, f.Default, flagHelp(f))
		}
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		in := reflect.New(s.In).Interface()
		for _, f := range s.Fields {
			text := ""
			if flag := given[f.Name]; flag != nil {
				text = *flag
			}
			if i := slices.Index(names, f.Name); i >= 0 {
				text = args[i]
			}
			if text == "" {
				continue
			}
			if err := f.Set(in, text); err != nil {
				return &misuseError{fmt.Errorf("--%s is %s, not %q", f.Name, f.Takes(), text)}
			}
		}
		return a.do(c, v, s, in)
	}
	return a.jsonFlag(c)
}

// flagHelp has the choices of a flag, and the name of its value as cobra wants it.
func flagHelp(f control.Field) string {
	help := strings.ReplaceAll(f.Help, "*", "`")
	if f.Choices != nil {
		help += ": " + f.Takes()
	}
	return help
}

// do asks the gateway for a verb and prints the answer.
func (a *app) do(c *cobra.Command, v control.Any, s control.Spec, in any) error {
	cl, err := a.client()
	if err != nil {
		return err
	}
	defer cl.Close()
	path, body := s.Request(in)
	var answer json.RawMessage
	if err := cl.Do(c.Context(), s.Method, path, body, &answer); err != nil {
		return hint(err)
	}
	if a.json {
		return a.show(answer)
	}
	shown, err := v.Shown(answer)
	if err != nil {
		return err
	}
	return a.more(shown.Next, a.print(shown))
}

func (a *app) print(s control.Shown) error {
	if s.Heads == nil && s.Rows == nil {
		_, err := fmt.Fprintln(a.out, visible(s.Line))
		return err
	}
	var rows [][]string
	for _, row := range s.Rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = fmt.Sprint(cell)
			if at, ok := cell.(time.Time); ok {
				cells[i] = ago(at)
			}
		}
		rows = append(rows, cells)
	}
	if s.Heads != nil {
		return a.table(s.Heads, rows)
	}
	for _, row := range rows {
		if row[1] == "" {
			continue
		}
		if _, err := fmt.Fprintf(a.out, "%-8s %s\n", row[0], visible(row[1])); err != nil {
			return err
		}
	}
	return nil
}
