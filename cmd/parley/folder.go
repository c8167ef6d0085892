package main

import (
	"fmt"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"
)

// folder is a directory of an owner that an agent may write.
type folder struct {
	Name     string `json:"name"`
	Agent    string `json:"agent"`
	Control  int    `json:"control"`
	ReadOnly string `json:"read_only,omitempty"`
	Held     []held `json:"held"`
}

// held is what a command made there.
type held struct {
	Path string `json:"path"`
	Now  string `json:"now"`
}

func (a *app) folderCommand() *cobra.Command {
	group := &cobra.Command{Use: "folder", Short: "See folders that agents may write, and accept what was renamed there", Args: cobra.NoArgs, RunE: needsVerb}
	ls := &cobra.Command{Use: "list", Short: "List the folders and what is held back in them", Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
		return fetch(c.Context(), a, "/v1/folders", func(l list[folder]) error {
			var rows [][]string
			for _, f := range l.Items {
				state := f.ReadOnly
				if state == "" {
					state = strconv.Itoa(f.Control) + " protected"
				}
				rows = append(rows, []string{f.Name, f.Agent, state, ""})
				for _, h := range f.Held {
					rows = append(rows, []string{f.Name, f.Agent, h.Path, h.Now})
				}
			}
			return a.table([]string{"FOLDER", "AGENT", "STATE OR PATH", "RENAMED TO"}, rows)
		})
	}}
	var agent string
	accept := &cobra.Command{Use: "accept NAME PATH", Short: "Give what a command made in a folder its own name again", Args: exactly("NAME", "PATH"),
		Long: "Give what a command made in the folder NAME, and was renamed since programs of this machine take orders from it, its own name again.\nLook at it first: from then on git, shells and editors obey it.",
		RunE: func(c *cobra.Command, args []string) error {
			body := map[string]string{"path": args[1]}
			if agent != "" {
				body["agent"] = agent
			}
			h, err := post[held](c.Context(), a, "/v1/folders/"+url.PathEscape(args[0])+"/accept", body)
			if err != nil || a.json {
				return a.orShow(h, err)
			}
			_, err = fmt.Fprintf(a.out, "%s has its name again\n", visible(h.Path))
			return err
		}}
	accept.Flags().StringVar(&agent, "agent", "", "`id` of the agent whose folder it is, where several have one of that name")
	group.AddCommand(a.jsonFlag(ls), a.jsonFlag(accept))
	return group
}
