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

	"parley/gateway/client"
	"parley/gateway/control"
	"parley/gateway/control/session"
)

// exportAtOnce is how many lines are read of a transcript at once.
const exportAtOnce = 500

func (a *app) exportSession() *cobra.Command {
	var format, file string
	c := &cobra.Command{Use: "export KEY", Short: "Write a whole transcript as Markdown, or as JSON lines", Args: exactly("KEY"), ValidArgsFunction: a.completeSessions,
		RunE: func(c *cobra.Command, args []string) error {
			if format != "markdown" && format != "json" {
				return &misuseError{fmt.Errorf("there is no format %q; there are markdown and json", format)}
			}
			return a.export(c.Context(), args[0], format, file)
		}}
	c.Flags().StringVar(&format, "format", "markdown", "`how`: markdown or json")
	c.Flags().StringVarP(&file, "output", "o", "", "`file` to write, which must be new (default: standard output)")
	return c
}

// export writes to a new file, or to standard output.
func (a *app) export(ctx context.Context, name, format, file string) (err error) {
	cl, err := a.client()
	if err != nil {
		return err
	}
	defer cl.Close()
	if _, err := session.Show.Ask(ctx, cl, session.BySession{Session: control.SessionWord(name)}); err != nil { // before a file is made for nothing
		return hint(err)
	}
	out := a.out
	if file != "" {
		f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		out = f
		defer a.progress("reading " + name)()
	}
	return hint(transcript(ctx, cl, name, format, out))
}

func transcript(ctx context.Context, cl *client.Client, key, format string, out io.Writer) error {
	for after := "0"; ; {
		var page list[json.RawMessage]
		if err := cl.Get(ctx, fmt.Sprintf("/v1/sessions/%s/entries?limit=%d&after=%s", url.PathEscape(key), exportAtOnce, after), &page); err != nil {
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
	var it shownItem
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
			fmt.Fprintf(&b, "- `%s` %s\n", visible(p.Name), cut(string(p.Args), 200))
		case it.Item.Type == "tool_result":
			fmt.Fprintf(&b, "```\n%s\n```\n", strings.ReplaceAll(visible(bare(p.Text)), "```", "` ` `"))
		case p.Text != "":
			b.WriteString(visible(p.Text) + "\n")
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return fmt.Sprintf("## %s, %s\n\n%s\n", visible(who), e.Time.Local().Format(time.DateTime), b.String())
}
