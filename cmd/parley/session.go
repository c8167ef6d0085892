package main

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/gateway/client"
)

// shownEvent is an event of the transcript.
type shownEvent struct {
	Sequence int64     `json:"sequence"`
	Time     time.Time `json:"time"`
	Type     string    `json:"type"`
	RunID    *string   `json:"run_id"`
	Data     any       `json:"data"`
}

func (a *app) sessionCommand() *cobra.Command {
	group := &cobra.Command{Use: "session", Short: "List and read sessions", Args: cobra.NoArgs, RunE: needsVerb}
	type session struct {
		ID         string    `json:"id"`
		Key        string    `json:"key"`
		Generation int       `json:"generation"`
		Agent      string    `json:"agent"`
		Created    time.Time `json:"created"`
	}
	var limit int
	var after string
	ls := &cobra.Command{Use: "list", Short: "List sessions, the newest first", Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
		return fetch(c.Context(), a, fmt.Sprintf("/v1/sessions?limit=%d&after=%s", limit, url.QueryEscape(after)), func(l list[session]) error {
			var rows [][]string
			for _, s := range l.Items {
				rows = append(rows, []string{s.Key, s.Agent, strconv.Itoa(s.Generation), ago(s.Created)})
			}
			if err := a.table([]string{"KEY", "AGENT", "GENERATION", "BEGAN"}, rows); err != nil || l.Next == nil {
				return err
			}
			_, err := fmt.Fprintf(a.errs, "more: --after %s\n", *l.Next)
			return err
		})
	}}
	ls.Flags().IntVar(&limit, "limit", 50, "at most this `many`, 1 to 500")
	ls.Flags().StringVar(&after, "after", "", "go on after this `id`")
	var from int64
	show := &cobra.Command{Use: "show KEY", Short: "Print a session's transcript", Args: exactly("KEY"), RunE: func(c *cobra.Command, args []string) error {
		path := func(ctx context.Context, cl *client.Client) (string, error) {
			key, err := sessionKey(ctx, cl, args[0])
			return fmt.Sprintf("/v1/sessions/%s/entries?limit=%d&after=%d", url.PathEscape(key), limit, from), err
		}
		return fetchFrom(c.Context(), a, path, func(l list[shownEvent]) error {
			for _, e := range l.Items {
				fmt.Fprintf(a.out, "%4d %s %s\n", e.Sequence, e.Time.Local().Format(time.DateTime), visible(sentence(e)))
			}
			if l.Next == nil {
				return nil
			}
			_, err := fmt.Fprintf(a.errs, "more: --after %s\n", *l.Next)
			return err
		})
	}}
	show.Flags().IntVar(&limit, "limit", 200, "at most this `many`, 1 to 500")
	show.Flags().Int64Var(&from, "after", 0, "go on after this `sequence`")
	group.AddCommand(a.jsonFlag(ls), a.jsonFlag(show))
	return group
}

// sessionKey completes the short forms of a local session: main is that of the default agent, assistant/main that of
// another.
func sessionKey(ctx context.Context, cl *client.Client, name string) (string, error) {
	if strings.Contains(name, ":") {
		return name, nil
	}
	agent, local, ok := strings.Cut(name, "/")
	if !ok {
		st, err := status(ctx, cl, "")
		if err != nil {
			return "", err
		}
		agent, local = st.Agent.ID, name
	}
	return "agent:" + agent + ":local:" + local, nil
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

func (a *app) runCommand() *cobra.Command {
	group := &cobra.Command{Use: "run", Short: "Look at runs and stop them", Args: cobra.NoArgs, RunE: needsVerb}
	type line struct {
		N    int       `json:"n"`
		Time time.Time `json:"time"`
		Type string    `json:"type"`
		Role string    `json:"role,omitempty"`
		Name string    `json:"name,omitempty"`
		Text string    `json:"text,omitempty"`
	}
	show := &cobra.Command{Use: "show ID", Short: "Show a run by its id, or by that of its message", Args: exactly("ID"), RunE: func(c *cobra.Command, args []string) error {
		id := url.PathEscape(args[0])
		err := fetch(c.Context(), a, "/v1/runs/"+id, func(v map[string]any) error {
			for _, name := range []string{"id", "session", "state", "reason", "model", "started", "ended"} {
				if s, _ := v[name].(string); s != "" {
					fmt.Fprintf(a.out, "%-8s %s\n", name, visible(s))
				}
			}
			return nil
		})
		if err != nil || a.json {
			return err
		}
		return fetch(c.Context(), a, "/v1/runs/"+id+"/log?limit=500", func(l list[line]) error {
			for _, x := range l.Items {
				fmt.Fprintf(a.out, "%s %s\n", x.Time.Local().Format(time.TimeOnly), visible(strings.Join(strings.Fields(x.Type+" "+x.Role+" "+x.Name+" "+x.Text), " ")))
			}
			return nil
		})
	}}
	stop := &cobra.Command{Use: "stop ID", Short: "Stop the turn that a run or message is in", Args: exactly("ID"), RunE: func(c *cobra.Command, args []string) error {
		return a.stopRun(c, args[0])
	}}
	group.AddCommand(a.jsonFlag(show), a.jsonFlag(stop))
	return group
}

// stopped is what a stop ended.
type stopped struct {
	Run    string `json:"run,omitempty"`
	Queued int    `json:"queued"`
	Parts  int    `json:"parts"`
}

func (a *app) stopRun(c *cobra.Command, id string) error {
	got, err := post[stopped](c.Context(), a, "/v1/runs/"+url.PathEscape(id)+"/stop", nil)
	if err != nil {
		return err
	}
	return a.showStopped(got)
}

func (a *app) showStopped(got stopped) error {
	switch {
	case a.json:
		return a.show(got)
	case got.Run == "" && got.Queued == 0:
		fmt.Fprintln(a.out, "nothing was running")
	case got.Run == "":
		fmt.Fprintf(a.out, "%d waiting messages cancelled\n", got.Queued)
	default:
		fmt.Fprintf(a.out, "run %s stopped\n", short(got.Run))
	}
	return nil
}

func (a *app) stopCommand() *cobra.Command {
	var session string
	c := &cobra.Command{Use: "stop", Short: "Stop what a session is doing", Args: cobra.NoArgs}
	c.Flags().StringVar(&session, "session", "main", "`name` of the session, or a whole session key")
	c.RunE = func(c *cobra.Command, _ []string) error {
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
