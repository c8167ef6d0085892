package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/gateway/client"
)

func (a *app) sessionCommand() *cobra.Command {
	group := &cobra.Command{Use: "session", Short: "List, read, make and change sessions", Args: cobra.NoArgs, RunE: needsVerb,
		Long: "A session is named by its key, or in short: main is that of the default agent, research/main that of another."}
	group.AddCommand(a.listSessions(), a.showSession(), a.newSession(), a.renameSession(), a.deleteSession(), a.forkSession(), a.generationsOf(), a.exportSession())
	return group
}

// pages adds the flags of a list that comes in pages.
func pages(c *cobra.Command, limit *int, after *string, most int) *cobra.Command {
	c.Flags().IntVar(limit, "limit", most, "at most this `many`, 1 to 500")
	c.Flags().StringVar(after, "after", "", "go on after `what` the page before named")
	return c
}

// more says how to go on, on standard error: a table stays a table.
func (a *app) more(next *string, err error) error {
	if err != nil || next == nil || a.json {
		return err
	}
	_, err = fmt.Fprintf(a.errs, "more: --after %s\n", *next)
	return err
}

// with asks the gateway, and prints as JSON or by render.
func with[T any](c *cobra.Command, a *app, ask func(context.Context, *client.Client) (T, error), render func(T) error) error {
	cl, err := a.client()
	if err != nil {
		return err
	}
	defer cl.Close()
	v, err := ask(c.Context(), cl)
	if err != nil {
		return hint(err)
	}
	if a.json {
		return a.show(v)
	}
	return render(v)
}

// onSession is with for an act on the session that a word names.
func onSession[T any](c *cobra.Command, a *app, word string, ask func(ctx context.Context, cl *client.Client, key string) (T, error), render func(T) error) error {
	return with(c, a, func(ctx context.Context, cl *client.Client) (v T, err error) {
		key, err := sessionKey(ctx, cl, word)
		if err != nil {
			return v, err
		}
		return ask(ctx, cl, key)
	}, render)
}

func (a *app) listSessions() *cobra.Command {
	var limit int
	var after, agent, search string
	c := &cobra.Command{Use: "list", Short: "List sessions, the last used first", Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
		q := client.Query{"agent": agent, "q": search}.Page(limit, after)
		return with(c, a, func(ctx context.Context, cl *client.Client) (client.List[client.Session], error) {
			return cl.Sessions(ctx, q)
		},
			func(l client.List[client.Session]) error {
				var rows [][]string
				for _, s := range l.Items {
					rows = append(rows, []string{shortKey(s.Key), cut(s.Name, 32), place(s), state(s), amount(s.Usage), ago(s.Updated)})
				}
				return a.more(l.Next, a.table([]string{"KEY", "NAME", "WHERE", "STATE", "USED", "LAST"}, rows))
			})
	}}
	c.Flags().StringVar(&agent, "agent", "", "only those of this agent, by `id`")
	c.Flags().StringVar(&search, "search", "", "only those with these `words` in their name, key or beginning")
	return a.jsonFlag(pages(c, &limit, &after, 50))
}

// place is where a session is talked in.
func place(s client.Session) string {
	if s.Local {
		return "here"
	}
	return strings.TrimSpace(s.Channel + " " + s.Kind)
}

func state(s client.Session) string {
	switch {
	case s.Running && s.Waiting > 0:
		return fmt.Sprintf("running, %d wait", s.Waiting)
	case s.Running:
		return "running"
	case s.Waiting > 0:
		return fmt.Sprintf("%d wait", s.Waiting)
	}
	return "idle"
}

// amount is what model calls used, for people.
func amount(u client.Usage) string {
	tokens := u.InputTokens + u.OutputTokens + u.CacheReadTokens + u.CacheWriteTokens
	text := fmt.Sprintf("%d tokens", tokens)
	if tokens >= 10_000 {
		text = fmt.Sprintf("%dk tokens", tokens/1000)
	}
	switch {
	case tokens == 0:
		return ""
	case u.Cost == nil:
		return text + ", unpriced"
	case *u.Cost > 0:
		return fmt.Sprintf("%s, $%.4f", text, *u.Cost)
	}
	return text
}

func (a *app) showSession() *cobra.Command {
	var limit int
	var after string
	c := &cobra.Command{Use: "show KEY", Short: "Print a session's transcript", Args: exactly("KEY"), ValidArgsFunction: a.completeSessions,
		RunE: func(c *cobra.Command, args []string) error {
			path := func(ctx context.Context, cl *client.Client) (string, error) {
				key, err := sessionKey(ctx, cl, args[0])
				return fmt.Sprintf("/v1/sessions/%s/entries?limit=%d&after=%s", url.PathEscape(key), limit, url.QueryEscape(after)), err
			}
			return fetchFrom(c.Context(), a, path, func(l list[shownEvent]) error {
				for _, e := range l.Items {
					if _, err := fmt.Fprintf(a.out, "%4d %s %s\n", e.Sequence, e.Time.Local().Format(time.DateTime), visible(sentence(e))); err != nil {
						return err
					}
				}
				return a.more(l.Next, nil)
			})
		}}
	return a.jsonFlag(pages(c, &limit, &after, 200))
}

func (a *app) newSession() *cobra.Command {
	var agent string
	c := &cobra.Command{Use: "new [NAME]", Short: "Make a session of its own to talk in", Args: cobra.MaximumNArgs(1), RunE: func(c *cobra.Command, args []string) error {
		name := strings.Join(args, "")
		return with(c, a, func(ctx context.Context, cl *client.Client) (client.Session, error) {
			return cl.NewSession(ctx, agent, name, "")
		}, func(s client.Session) error {
			_, err := fmt.Fprintf(a.out, "%s\nTalk in it: parley chat --session %s\n", shortKey(s.Key), shortKey(s.Key))
			return err
		})
	}}
	c.Flags().StringVar(&agent, "agent", "", "`id` of the agent (default: the default agent)")
	return a.jsonFlag(c)
}

func (a *app) renameSession() *cobra.Command {
	return a.jsonFlag(&cobra.Command{Use: "rename KEY NAME", Short: "Give a session a name; an empty one takes it away", Args: exactly("KEY", "NAME"), ValidArgsFunction: a.completeSessions,
		RunE: func(c *cobra.Command, args []string) error {
			return onSession(c, a, args[0], func(ctx context.Context, cl *client.Client, key string) (client.Session, error) {
				return cl.RenameSession(ctx, key, args[1])
			}, func(s client.Session) error {
				_, err := fmt.Fprintf(a.out, "%s is called %s\n", visible(shortKey(s.Key)), visible(s.Name))
				return err
			})
		}})
}

func (a *app) deleteSession() *cobra.Command {
	var yes bool
	c := &cobra.Command{Use: "delete KEY", Aliases: []string{"rm"}, Short: "End a session and hide it", Args: exactly("KEY"), ValidArgsFunction: a.completeSessions,
		RunE: func(c *cobra.Command, args []string) error {
			if !yes {
				q := a.newAsker()
				if q == nil {
					return &misuseError{errors.New("nobody can be asked here; --yes deletes it")}
				}
				ok, err := q.yes("Delete session "+visible(args[0])+"?", false)
				if err == nil && !ok {
					err = errAborted
				}
				if err != nil {
					return err
				}
			}
			return onSession(c, a, args[0], func(ctx context.Context, cl *client.Client, key string) (string, error) {
				return key, cl.DeleteSession(ctx, key)
			}, func(key string) error {
				_, err := fmt.Fprintf(a.out, "%s is deleted\n", visible(shortKey(key)))
				return err
			})
		}}
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return c
}

func (a *app) forkSession() *cobra.Command {
	var before int64
	c := &cobra.Command{Use: "fork KEY", Short: "Begin anew with what stands before a line of the transcript", Example: "  parley session fork main --before 12", Args: exactly("KEY"),
		ValidArgsFunction: a.completeSessions, RunE: func(c *cobra.Command, args []string) error {
			return onSession(c, a, args[0], func(ctx context.Context, cl *client.Client, key string) (client.Session, error) {
				return cl.ForkSession(ctx, key, before, "")
			}, func(s client.Session) error {
				_, err := fmt.Fprintf(a.out, "%s goes on as generation %d, without line %d and what came after\n", visible(shortKey(s.Key)), s.Generation, before)
				return err
			})
		}}
	c.Flags().Int64Var(&before, "before", 0, "`number` of the first line that is left out, as session show prints it")
	key := c.Args
	c.Args = func(c *cobra.Command, args []string) error {
		if before < 1 {
			return errors.New("fork needs --before, the number of a line from 1")
		}
		return key(c, args)
	}
	return a.jsonFlag(c)
}

func (a *app) generationsOf() *cobra.Command {
	return a.jsonFlag(&cobra.Command{Use: "generations KEY", Short: "List the lives of a session, the newest first", Args: exactly("KEY"), ValidArgsFunction: a.completeSessions,
		RunE: func(c *cobra.Command, args []string) error {
			return onSession(c, a, args[0], func(ctx context.Context, cl *client.Client, key string) (client.List[client.Generation], error) {
				return cl.Generations(ctx, key)
			}, func(l client.List[client.Generation]) error {
				var rows [][]string
				for _, g := range l.Items {
					ended := ""
					if g.Ended != nil {
						ended = ago(*g.Ended)
					}
					rows = append(rows, []string{strconv.Itoa(g.Generation), ago(g.Created), ended, strconv.FormatInt(g.Sequence, 10), amount(g.Usage), cut(g.Preview, 40)})
				}
				return a.table([]string{"GENERATION", "BEGAN", "ENDED", "LINES", "USED", "BEGINS"}, rows)
			})
		}})
}

// shortKey is how a session of this machine is written: assistant/main.
func shortKey(key string) string {
	rest, ok := strings.CutPrefix(key, "agent:")
	agent, name, local := strings.Cut(rest, ":local:")
	if !ok || !local || strings.Contains(agent, ":") || strings.Contains(name, ":") {
		return key
	}
	return agent + "/" + name
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

// completeWithin bounds what a Tab may wait for.
const completeWithin = 500 * time.Millisecond

// completeSessions offers the keys of sessions to the shell.
func (a *app) completeSessions(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	cl, err := a.client()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(c.Context(), completeWithin)
	defer cancel()
	l, _ := cl.Sessions(ctx, client.Query{"limit": "200"}) // without an answer nothing is offered
	var keys []string
	for _, s := range l.Items {
		keys = append(keys, shortKey(s.Key)+"\t"+cut(s.Name, 40))
	}
	return keys, cobra.ShellCompDirectiveNoFileComp
}
