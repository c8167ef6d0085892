// Runs, and stopping them.

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/cmd/parley/internal/cli"
	"parley/cmd/parley/internal/printer"
	"parley/gateway/client"
	"parley/gateway/control"
	runs "parley/gateway/control/run"
)

// shownEvent is an event of the transcript.
type shownEvent struct {
	Sequence int64     `json:"sequence"`
	Time     time.Time `json:"time"`
	Type     string    `json:"type"`
	RunID    *string   `json:"run_id"`
	Data     any       `json:"data"`
}

// sentence is an event in words.
func sentence(e shownEvent) string {
	data, _ := e.Data.(map[string]any)
	it, ok := data["item"].(map[string]any)
	if !ok {
		text := e.Type
		for _, name := range []string{"state", "code", "reason", "message"} {
			if s, _ := data[name].(string); s != "" {
				text += " " + s
			}
		}
		return text
	}
	who, _ := it["role"].(string)
	if name, _ := it["name"].(string); name != "" {
		who = name
	}
	line := who + ":"
	parts, _ := it["parts"].([]any)
	for _, p := range parts {
		part, _ := p.(map[string]any)
		for _, name := range []string{"name", "args", "text"} {
			switch v := part[name].(type) {
			case nil:
			case string:
				if v != "" {
					line += " " + v
				}
			default: // as the model wrote it
				line += " " + cli.OneLineJSON(v)
			}
		}
	}
	return line
}

// runCommand holds what is more than one verb; the others are added to it.
func runCommand(a *cli.App) *cobra.Command {
	group := &cobra.Command{Use: "run", Short: "List, read, follow, pause and stop runs", Args: cobra.NoArgs, RunE: cli.NeedsVerb,
		Long: "A run is one turn of an agent. ID is that of the run or of its message; of the newest 500 runs the last six " +
			"characters do, as chats show them."}
	group.AddCommand(showRun(a), logRun(a), followRun(a))
	return group
}

func showRun(a *cli.App) *cobra.Command {
	return a.JSONFlag(&cobra.Command{Use: "show ID", Short: "Show a run with its log", Args: cli.Exactly("ID"),
		ValidArgsFunction: completeRuns(a), RunE: func(c *cobra.Command, args []string) error {
			err := cli.Fetch(c.Context(), a, "/v1/runs/"+url.PathEscape(args[0]), func(v map[string]any) error {
				for _, name := range []string{"id", "session_title", "session", "state", "reason", "error", "delivery", "model", "asked_by",
					"started", "ended"} {
					if s, _ := v[name].(string); s != "" {
						fmt.Fprintf(a.Out, "%-9s %s\n", strings.TrimPrefix(name, "session_"), cli.Visible(s))
					}
				}
				var u struct {
					Usage   control.Usage
					Trouble *client.Trouble
				}
				if data, err := json.Marshal(v); err != nil || json.Unmarshal(data, &u) != nil {
					return err
				}
				if u.Trouble != nil {
					fmt.Fprintf(a.Out, "%-9s %s\n", "trouble", cli.Visible(u.Trouble.Sentence))
				}
				if amount(u.Usage) != "" {
					fmt.Fprintf(a.Out, "%-9s %s, %s\n", "used", amount(u.Usage),
						cli.Length(time.Duration(u.Usage.DurationMS)*time.Millisecond))
				}
				return nil
			})
			if err != nil || a.JSON {
				return err
			}
			return printLog(a, c, args[0], "500", "")
		}})
}

// logLine is one line of a run's log.
type logLine struct {
	N    int       `json:"n"`
	Time time.Time `json:"time"`
	Type string    `json:"type"`
	Role string    `json:"role,omitempty"`
	Name string    `json:"name,omitempty"`
	Text string    `json:"text,omitempty"`
}

func logRun(a *cli.App) *cobra.Command {
	var limit int
	var after string
	c := &cobra.Command{Use: "log ID", Short: "Print a run's log", Args: cli.Exactly("ID"), ValidArgsFunction: completeRuns(a),
		RunE: func(c *cobra.Command, args []string) error { return printLog(a, c, args[0], fmt.Sprint(limit), after) }}
	return a.JSONFlag(cli.Pages(c, &limit, &after, 200))
}

func printLog(a *cli.App, c *cobra.Command, id, limit, after string) error {
	path := "/v1/runs/" + url.PathEscape(id) + "/log?limit=" + limit + "&offset=" + url.QueryEscape(after)
	return cli.Fetch(c.Context(), a, path, func(l cli.List[logLine]) error {
		for _, x := range l.Items {
			text := strings.Join(strings.Fields(x.Type+" "+x.Role+" "+x.Name+" "+x.Text), " ")
			if _, err := fmt.Fprintf(a.Out, "%s %s\n", x.Time.Local().Format(time.TimeOnly), cli.Visible(text)); err != nil {
				return err
			}
		}
		return a.More(l.Next, nil)
	})
}

func followRun(a *cli.App) *cobra.Command {
	return a.JSONFlag(&cobra.Command{Use: "follow ID", Short: "Print a run as it goes on, to its end; exit code 1 when it fails",
		Args: cli.Exactly("ID"), ValidArgsFunction: completeRuns(a),
		Long: "Print a run as it goes on, to its end, with what its commands write, over a gateway that is started again in between. " +
			"Leaving stops nothing. With --json each event is a line.",
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := a.Client()
			if err != nil {
				return err
			}
			defer cl.Close()
			p := &printer.Printer{Out: a.Out, Errs: a.Errs, Live: true}
			if a.JSON {
				p.Raw, p.Out, p.Errs = json.NewEncoder(a.Out), io.Discard, io.Discard
			}
			err = p.Follow(c.Context(), cl, args[0])
			p.EndLine()
			if err == nil && p.Failed {
				err = cli.ErrSaid
			}
			return cli.Hint(err)
		}})
}

func stopCommand(a *cli.App) *cobra.Command {
	var session string
	var all bool
	c := &cobra.Command{Use: "stop", Short: "Stop what a session is doing, or all of them", Args: cobra.NoArgs}
	c.Flags().BoolVar(&all, "all", false, "every session")
	c.Flags().StringVar(&session, "session", "main", "`name` of the session, or a whole session key")
	c.MarkFlagsMutuallyExclusive("all", "session")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if all {
			return cli.With(c, a, func(ctx context.Context, cl *client.Client) (runs.StoppedAll, error) {
				return runs.StopAll.Ask(ctx, cl, struct{}{})
			}, func(v runs.StoppedAll) error {
				_, err := fmt.Fprintf(a.Out, "stopped %d runs, %d waiting messages, %d unsent parts\n", v.Runs, v.Queued, v.Parts)
				return err
			})
		}
		got, err := cli.Post[map[string]any](c.Context(), a, "/v1/messages",
			map[string]any{"session": session, "text": "/stop", "wait": 10})
		if err != nil {
			return err
		}
		if a.JSON {
			return a.ShowJSON(got)
		}
		text, _ := got["text"].(string)
		_, err = fmt.Fprintln(a.Out, cli.Visible(text))
		return err
	}
	return a.JSONFlag(c)
}
