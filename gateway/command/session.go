package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"parley/gateway/control"
	"parley/gateway/control/all"
	"parley/gateway/control/session"
	"parley/gateway/spec"
)

// sessionVerb is the right that a line of /session needs.
func sessionVerb(args []string) string {
	if len(args) == 0 {
		return "session.current"
	}
	if args[0] == "list" {
		return "sessions"
	}
	return "session." + args[0]
}

func sessionOrder(args []string) Order {
	if len(args) > 0 && (args[0] == "switch" || args[0] == "new") {
		return BeforeRouting
	}
	return Concurrent
}

// checkSession wants a name where one is needed.
func checkSession(args []string) error {
	what, arg := first(args), ""
	if len(args) > 1 {
		arg = args[1]
	}
	ok := true
	switch what {
	case "new", "switch", "rename":
		ok = arg != ""
	case "current":
		ok = arg == ""
	case "export":
		ok = slices.Contains([]string{"", "markdown", "json"}, strings.ToLower(arg))
	}
	if !ok {
		return row("session").wrong(arg)
	}
	return nil
}

func sessions(ctx context.Context, c *all.Nouns, call control.Call, args []string) error {
	what, arg := "current", ""
	if len(args) > 0 {
		what = args[0]
	}
	if len(args) > 1 {
		arg = args[1]
	}
	var err error
	switch what {
	case "list":
		_, err = session.List.Call(ctx, c.Sessions, call, session.ListIn{Agent: call.Session.Agent, Text: arg, Page: spec.Page{Limit: 20}})
	case "new":
		_, err = c.Sessions.New(ctx, call, arg)
	case "switch":
		_, err = c.Sessions.Switch(ctx, call, arg)
	case "rename":
		key := control.SessionWord(call.Session.String())
		_, err = session.Rename.Call(ctx, c.Sessions, call, session.RenameIn{BySession: session.BySession{Session: key}, Name: &arg})
	case "export":
		_, err = c.Sessions.Export(ctx, call, "", strings.ToLower(arg))
	default:
		_, err = c.Sessions.Current(ctx, call)
	}
	return err
}

func export(ctx context.Context, c *all.Nouns, call control.Call, args []string) error {
	format := ""
	if len(args) == 1 {
		format = args[0]
	}
	_, err := c.Sessions.Export(ctx, call, "", format)
	return err
}

// row is a row of the table by its name.
func row(name string) Command {
	for _, c := range Table() {
		if c.Name == name {
			return c
		}
	}
	return Command{Name: name}
}

func renderSession(v session.Item) string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s**, generation %d, %s", v.Name, v.Generation, plural(int(v.Sequence), "line"))
	if v.Running {
		b.WriteString(", at work")
	}
	fmt.Fprintf(&b, "\n- key `%s`\n- %s", v.Key, spentText(v.Usage))
	return b.String()
}

func renderSessions(v spec.List[session.Item]) string {
	if len(v.Items) == 0 {
		return "There is no such session."
	}
	var b strings.Builder
	for _, it := range v.Items {
		fmt.Fprintf(&b, "- **%s** · %s", it.Name, it.Updated.Format("2 Jan 15:04"))
		if it.Running {
			b.WriteString(" · at work")
		}
		fmt.Fprintf(&b, "\n  `%s`\n", it.Key)
	}
	if v.Next != nil {
		b.WriteString("There are more: /session list and a word narrows them.")
	}
	return strings.TrimRight(b.String(), "\n")
}

func renderSwitched(v session.Switched) string {
	switch {
	case v.Left:
		return fmt.Sprintf("Session **%s** is made. Choose it in WebChat's list, or with `parley chat --session`: its key is `%s`.", v.Name, v.Key)
	case v.Made:
		return fmt.Sprintf("This chat now writes into the new session **%s**. /session switch main leads back.", v.Name)
	case v.Name == "":
		return "This chat writes into its first session again."
	}
	text := fmt.Sprintf("This chat now writes into **%s** (`%s`).", v.Name, v.Key)
	if v.Preview != "" {
		text += "\nLast there: " + v.Preview
	}
	return text
}

func renderExport(v session.Exported) string {
	switch {
	case v.Inline:
		return string(v.Data)
	case v.File:
		return fmt.Sprintf("Here are the %s of **%s**.", plural(v.Lines, "line"), v.Session.Name)
	}
	return fmt.Sprintf("The %s of **%s** are too long for a message here. The API has them: `GET /v1/sessions/%s/entries`; so has `parley session show`.",
		plural(v.Lines, "line"), v.Session.Name, v.Session.Key)
}
