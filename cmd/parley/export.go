// A transcript as a file.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/cmd/parley/internal/cli"
	"parley/cmd/parley/internal/printer"
	"parley/gateway/client"
	"parley/gateway/control"
	"parley/gateway/control/session"
)

// exportAtOnce is how many lines are read of a transcript at once.
const exportAtOnce = 500

func exportSession(a *cli.App) *cobra.Command {
	var format, file string
	c := &cobra.Command{Use: "export KEY", Short: "Write a whole transcript as Markdown, or as JSON lines", Args: cli.Exactly("KEY"),
		ValidArgsFunction: completeSessions(a),
		RunE: func(c *cobra.Command, args []string) error {
			if format != "markdown" && format != "json" {
				return cli.Misuse(fmt.Errorf("there is no format %q; there are markdown and json", format))
			}
			return export(c.Context(), a, args[0], format, file)
		}}
	c.Flags().StringVar(&format, "format", "markdown", "`how`: markdown or json")
	c.Flags().StringVarP(&file, "output", "o", "", "`file` to write, which must be new (default: standard output)")
	return c
}

// export writes to a new file, or to standard output.
func export(ctx context.Context, a *cli.App, name, format, file string) (err error) {
	cl, err := a.Client()
	if err != nil {
		return err
	}
	defer cl.Close()
	// before a file is made for nothing
	if _, err := session.Show.Ask(ctx, cl, session.BySession{Session: control.SessionWord(name)}); err != nil {
		return cli.Hint(err)
	}
	out := a.Out
	if file != "" {
		f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		out = f
		defer a.Progress("reading " + name)()
	}
	return cli.Hint(transcript(ctx, cl, name, format, out))
}

func transcript(ctx context.Context, cl *client.Client, key, format string, out io.Writer) error {
	for after := "0"; ; {
		var page cli.List[json.RawMessage]
		if err := cl.Get(ctx, fmt.Sprintf("/v1/sessions/%s/entries?limit=%d&after=%s", url.PathEscape(key), exportAtOnce, after),
			&page); err != nil {
			return err
		}
		for _, raw := range page.Items {
			text := string(raw) + "\n"
			if format == "markdown" {
				var e client.Event
				if err := json.Unmarshal(raw, &e); err != nil {
					return err
				}
				text = markdown(e)
			}
			if _, err := io.WriteString(out, text); err != nil {
				return err
			}
		}
		if page.Next == nil {
			return nil
		}
		after = *page.Next
	}
}

// markdown is one event of a transcript for people; empty when it says nothing to them.
func markdown(e client.Event) string {
	var it printer.Item
	if e.Type != "item.completed" || json.Unmarshal(e.Data, &it) != nil {
		return ""
	}
	who := it.Item.Role
	switch {
	case it.Item.Name != "":
		who = it.Item.Name
	case it.Item.Type == "system":
		who = "system"
	}
	var b strings.Builder
	for _, p := range it.Item.Parts {
		switch {
		case p.Type == "tool_call":
			fmt.Fprintf(&b, "- `%s` %s\n", cli.Visible(p.Name), cli.Cut(string(p.Args), 200))
		case it.Item.Type == "tool_result":
			fmt.Fprintf(&b, "```\n%s\n```\n", strings.ReplaceAll(cli.Visible(cli.Bare(p.Text)), "```", "` ` `"))
		case p.Text != "":
			b.WriteString(cli.Visible(p.Text) + "\n")
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return fmt.Sprintf("## %s, %s\n\n%s\n", cli.Visible(who), e.Time.Local().Format(time.DateTime), b.String())
}
