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

// sentence is an event on one line.
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
			if s, _ := part[name].(string); s != "" {
				line += " " + strings.ReplaceAll(s, "\n", " ")
			} else if args, ok := part[name].(map[string]any); ok {
				line += fmt.Sprint(" ", args)
			}
		}
	}
	return line
}

// runCommand holds what is more than one verb; the others are added to it.
func (a *app) runCommand() *cobra.Command {
	group := &cobra.Command{Use: "run", Short: "List, read, follow, pause and stop runs", Args: cobra.NoArgs, RunE: needsVerb,
		Long: "A run is one turn of an agent. ID is that of the run or of its message; of the newest 500 runs the last six characters do, as chats show them."}
	group.AddCommand(a.showRun(), a.logRun(), a.followRun())
	return group
}

func (a *app) showRun() *cobra.Command {
	return a.jsonFlag(&cobra.Command{Use: "show ID", Short: "Show a run with its log", Args: exactly("ID"), ValidArgsFunction: a.completeRuns, RunE: func(c *cobra.Command, args []string) error {
		err := fetch(c.Context(), a, "/v1/runs/"+url.PathEscape(args[0]), func(v map[string]any) error {
			for _, name := range []string{"id", "session", "state", "reason", "error", "delivery", "model", "asked_by", "started", "ended"} {
				if s, _ := v[name].(string); s != "" {
					fmt.Fprintf(a.out, "%-9s %s\n", name, visible(s))
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
				fmt.Fprintf(a.out, "%-9s %s\n", "trouble", visible(u.Trouble.Sentence))
			}
			if amount(u.Usage) != "" {
				fmt.Fprintf(a.out, "%-9s %s, %s\n", "used", amount(u.Usage), length(time.Duration(u.Usage.DurationMS)*time.Millisecond))
			}
			return nil
		})
		if err != nil || a.json {
			return err
		}
		return a.printLog(c, args[0], "500", "")
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

func (a *app) logRun() *cobra.Command {
	var limit int
	var after string
	c := &cobra.Command{Use: "log ID", Short: "Print a run's log", Args: exactly("ID"), ValidArgsFunction: a.completeRuns,
		RunE: func(c *cobra.Command, args []string) error { return a.printLog(c, args[0], fmt.Sprint(limit), after) }}
	return a.jsonFlag(pages(c, &limit, &after, 200))
}

func (a *app) printLog(c *cobra.Command, id, limit, after string) error {
	path := "/v1/runs/" + url.PathEscape(id) + "/log?limit=" + limit + "&offset=" + url.QueryEscape(after)
	return fetch(c.Context(), a, path, func(l list[logLine]) error {
		for _, x := range l.Items {
			text := strings.Join(strings.Fields(x.Type+" "+x.Role+" "+x.Name+" "+x.Text), " ")
			if _, err := fmt.Fprintf(a.out, "%s %s\n", x.Time.Local().Format(time.TimeOnly), visible(text)); err != nil {
				return err
			}
		}
		return a.more(l.Next, nil)
	})
}

func (a *app) followRun() *cobra.Command {
	return a.jsonFlag(&cobra.Command{Use: "follow ID", Short: "Print a run as it goes on, to its end; exit code 1 when it fails", Args: exactly("ID"), ValidArgsFunction: a.completeRuns,
		Long: "Print a run as it goes on, to its end, over a gateway that is started again in between. Leaving stops nothing. With --json each event is a line.",
		RunE: func(c *cobra.Command, args []string) error {
			cl, err := a.client()
			if err != nil {
				return err
			}
			defer cl.Close()
			p := &printer{out: a.out, errs: a.errs}
			if a.json {
				p.raw, p.out, p.errs = json.NewEncoder(a.out), io.Discard, io.Discard
			}
			err = (&conversation{app: a, client: cl}).watch(c.Context(), args[0], p)
			p.end()
			if err == nil && p.failed {
				err = errSaid
			}
			return hint(err)
		}})
}

// completeRuns offers the ids of runs to the shell.
func (a *app) completeRuns(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	cl, err := a.client()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(c.Context(), completeWithin)
	defer cancel()
	l, _ := runs.List.Ask(ctx, cl, runs.ListIn{}) // without an answer nothing is offered
	var ids []string
	for _, r := range l.Items {
		ids = append(ids, string(r.ID)+"\t"+cut(string(r.State)+": "+r.Said, 50))
	}
	return ids, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) stopCommand() *cobra.Command {
	var session string
	var all bool
	c := &cobra.Command{Use: "stop", Short: "Stop what a session is doing, or all of them", Args: cobra.NoArgs}
	c.Flags().BoolVar(&all, "all", false, "every session")
	c.Flags().StringVar(&session, "session", "main", "`name` of the session, or a whole session key")
	c.MarkFlagsMutuallyExclusive("all", "session")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if all {
			return with(c, a, func(ctx context.Context, cl *client.Client) (runs.StoppedAll, error) {
				return runs.StopAll.Ask(ctx, cl, struct{}{})
			}, func(v runs.StoppedAll) error {
				_, err := fmt.Fprintf(a.out, "stopped %d runs, %d waiting messages, %d unsent parts\n", v.Runs, v.Queued, v.Parts)
				return err
			})
		}
		got, err := post[map[string]any](c.Context(), a, "/v1/messages", map[string]any{"session": session, "text": "/stop", "wait": 10})
		if err != nil {
			return err
		}
		if a.json {
			return a.show(got)
		}
		_, err = fmt.Fprintln(a.out, visible(fmt.Sprint(got["text"])))
		return err
	}
	return a.jsonFlag(c)
}
