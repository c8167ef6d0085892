// Commands rendered from verbs.

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/cmd/parley/internal/cli"
	"parley/gateway/control"
	"parley/gateway/control/all"
	"parley/gateway/spec"
)

// groups are what the first words of verbs' commands are about.
var groups = map[string]string{
	"agent":        "Show agents",
	"agent policy": "See what an agent's tools may do for whom",
	"model":        "See who serves models, and try one",
	"folder":       "See folders that agents may write, and accept what was renamed there",
	"outbound":     "Decide about answers that could not be delivered",
	"pairing":      "Decide who may speak in private chats",
	"people":       "See who is known, with which role and accounts",
}

// addVerbs adds the commands of the verbs that are values, below their groups.
func addVerbs(a *cli.App, root *cobra.Command) {
	for _, v := range all.Verbs() {
		s := v.Spec()
		if s.CLI == "" {
			continue
		}
		group, path, line := root, "", s.CLI
		for {
			first, rest, more := strings.Cut(line, " ")
			if !more || strings.ContainsAny(rest[:1], "<[") {
				break
			}
			path = strings.TrimSpace(path + " " + first)
			group, line = below(group, first, groups[path]), rest
		}
		group.AddCommand(verbCommand(a, v, s, line))
	}
}

// below is the group of a name, which is made where there is none yet.
func below(parent *cobra.Command, name, short string) *cobra.Command {
	for _, c := range parent.Commands() {
		if c.Name() == name {
			return c
		}
	}
	group := &cobra.Command{Use: name, Short: short, Args: cobra.NoArgs, RunE: cli.NeedsVerb}
	parent.AddCommand(group)
	return group
}

var placeholder = regexp.MustCompile(`[<\[]([a-z_]+)[>\]]`)

// verbCommand is the command of one verb: what the line names are arguments, the other fields flags.
func verbCommand(a *cli.App, v control.Any, s spec.Verb, line string) *cobra.Command {
	names, _, _ := strings.Cut(line, " ")
	words := strings.Split(names, "|")
	c := &cobra.Command{Use: words[0] + strings.TrimPrefix(line, names), Aliases: words[1:], Short: s.Help, Long: s.Long,
		Args: cobra.NoArgs}
	l := &commandLine{app: a, spec: s, texts: map[string]func() string{}, switches: map[string]*bool{}}
	for _, m := range placeholder.FindAllStringSubmatch(line, -1) {
		upper := strings.ToUpper(m[0])
		if m[0][0] == '<' {
			upper = strings.Trim(upper, "<>")
			l.least++
		}
		l.args, l.shown = append(l.args, m[1]), append(l.shown, upper)
		c.Use = strings.Replace(c.Use, m[0], upper, 1)
	}
	if len(l.args) > 0 {
		c.Args = l.checkArgs
	}
	l.addFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		in := reflect.New(s.In).Interface()
		if err := l.fill(in, args); err != nil {
			return cli.Misuse(err)
		}
		if s.Confirm != "" && !*l.switches["yes"] {
			if err := confirm(a, s, in); err != nil {
				return err
			}
		}
		return do(a, c, v, s, in)
	}
	if s.Status == http.StatusNoContent { // there is nothing to print
		return c
	}
	return a.JSONFlag(c)
}

// do asks the gateway for a verb and prints the answer.
func do(a *cli.App, c *cobra.Command, v control.Any, s spec.Verb, in any) error {
	cl, err := a.Client()
	if err != nil {
		return err
	}
	defer cl.Close()
	path, body := s.Request(in)
	var answer json.RawMessage
	out := any(&answer)
	if s.Status == http.StatusNoContent {
		out = nil
	}
	if err := cl.Do(c.Context(), s.Method, path, body, out); err != nil {
		return cli.Hint(err)
	}
	shown, err := v.Shown(in, answer)
	switch {
	case err != nil:
		return err
	case a.JSON:
		err = a.ShowJSON(answer)
	default:
		err = a.More(shown.Next, print(a, shown))
	}
	if err == nil && shown.Failed {
		err = cli.ErrSaid
	}
	return err
}

func print(a *cli.App, s spec.Shown) error {
	var err error
	if s.Line != "" || s.Heads == nil && s.Rows == nil && s.Text == "" {
		_, err = fmt.Fprintln(a.Out, cli.Visible(cli.Hinted(s.Line)))
	}
	rows, wide := [][]string{}, 8
	for _, row := range s.Rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = cellText(cell)
		}
		rows, wide = append(rows, cells), max(wide, len(cells[0])+1)
	}
	if s.Heads != nil {
		err = errors.Join(err, a.Table(s.Heads, rows))
		rows = nil
	}
	for _, row := range rows {
		if row[1] != "" && err == nil {
			_, err = fmt.Fprintf(a.Out, "%-*s %s\n", wide, row[0], cli.Visible(row[1]))
		}
	}
	if s.Text != "" && err == nil {
		_, err = fmt.Fprintln(a.Out, cli.VisibleText(s.Text))
	}
	return err
}

// cellText is a cell as its type is shown.
func cellText(cell any) string {
	switch v := cell.(type) {
	case time.Time:
		return cli.Ago(v)
	case *time.Time:
		if v == nil {
			return ""
		}
		return cli.Ago(*v)
	case spec.Until:
		t := time.Time(v)
		return fmt.Sprintf("%s (%s)", t.Local().Format(time.DateTime), time.Until(t).Round(time.Second))
	case time.Duration:
		return cli.Length(v)
	case spec.Brief:
		return cli.Cut(v.Text, v.Columns)
	case control.Usage:
		return amount(v)
	}
	return fmt.Sprint(cell)
}

// commandLine is how the command of a verb is told what the verb wants.
type commandLine struct {
	app         *cli.App
	spec        spec.Verb
	args, shown []string // fields that are arguments, in order, and as help shows them
	least       int      // how many of them are needed; the others are flags too
	texts       map[string]func() string
	switches    map[string]*bool
}

// checkArgs is cobra's with a sentence that says which.
func (l *commandLine) checkArgs(c *cobra.Command, args []string) error {
	if len(args) < l.least || len(args) > len(l.args) {
		return fmt.Errorf("%s takes %s", c.CommandPath(), strings.Join(l.shown, " "))
	}
	return nil
}

// noFlag marks a field that the command line has not: what stands in a process's arguments can be read by others.
const noFlag = "-"

// addFlags adds a flag for each field that is no argument, or one that may be left out, and what the shell is offered.
func (l *commandLine) addFlags(c *cobra.Command) {
	for _, f := range l.spec.Fields {
		offer, i := l.completion(f), slices.Index(l.args, f.Flag)
		if i >= 0 && offer != nil {
			c.ValidArgsFunction = offer
		}
		switch {
		case i >= 0 && i < l.least, f.Flag == noFlag:
			continue
		case f.Type.Kind() == reflect.Bool:
			l.switches[f.Name] = c.Flags().Bool(f.Flag, false, flagHelp(f))
		case f.Type == reflect.TypeFor[[]string]():
			list := c.Flags().StringSlice(f.Flag, nil, flagHelp(f))
			l.texts[f.Name] = func() string { return strings.Join(*list, ",") }
		default:
			text := c.Flags().String(f.Flag, f.Default, flagHelp(f))
			l.texts[f.Name] = func() string { return *text }
		}
		if offer != nil {
			_ = c.RegisterFlagCompletionFunc(f.Flag, offer) // it was defined above
		}
	}
	if l.spec.Confirm != "" {
		l.switches["yes"] = c.Flags().Bool("yes", false, "do not ask")
	}
}

// completion is what the shell is offered for a field; nil: nothing.
func (l *commandLine) completion(f spec.Field) cobra.CompletionFunc {
	switch f.Type {
	case reflect.TypeFor[control.SessionWord]():
		return completeSessions(l.app)
	case reflect.TypeFor[control.RunWord]():
		return completeRuns(l.app)
	}
	return nil
}

// fill sets the fields of in, a pointer to the verb's In.
func (l *commandLine) fill(in any, args []string) error {
	for _, f := range l.spec.Fields {
		text, given := "", false
		switch i := slices.Index(l.args, f.Flag); {
		case f.Flag == noFlag:
		case i >= 0 && i < len(args):
			text, given = args[i], true
		case f.Type.Kind() == reflect.Bool:
			if *l.switches[f.Name] {
				text, given = "true", true
			}
		default:
			text = l.texts[f.Name]()
			given = text != ""
			if !given && f.Needed {
				return fmt.Errorf("--%s is missing. It is %s", f.Flag, f.Takes())
			}
		}
		if !given {
			continue
		}
		if err := f.Set(in, text); err != nil {
			return fmt.Errorf("--%s is %s, not %q", f.Flag, f.Takes(), text)
		}
	}
	return nil
}

// flagHelp has the choices of a flag, and the name of its value as cobra wants it.
func flagHelp(f spec.Field) string {
	help := strings.ReplaceAll(f.Help, "*", "`")
	switch {
	case f.Choices != nil:
		help += ": " + f.Takes()
	case f.Min != nil && f.Max != nil:
		help += fmt.Sprintf(", %d to %d", *f.Min, *f.Max)
	}
	return help
}

// confirm asks whoever sits at the terminal before a verb is done.
func confirm(a *cli.App, s spec.Verb, in any) error {
	q := a.NewAsker()
	if q == nil {
		return cli.Misuse(errors.New("nobody can be asked here; --yes does it"))
	}
	question := s.Confirm
	for _, f := range s.Fields {
		text, _ := f.Get(in)
		question = strings.ReplaceAll(question, "{"+f.Name+"}", cli.Visible(text))
	}
	ok, err := q.Yes(question, false)
	if err == nil && !ok {
		err = cli.ErrAborted
	}
	return err
}
