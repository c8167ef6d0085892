// What fills a work folder.

package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"parley/cmd/parley/internal/cli"
	"parley/gateway/client"
	"parley/gateway/control"
	"parley/gateway/control/file"
	"parley/workspace/disk"
)

func filesCommand(a *cli.App) *cobra.Command {
	var session string
	group := &cobra.Command{Use: "files [PATH]", Short: "See and clear what fills the work folder of a session",
		Args: cobra.MaximumNArgs(1),
		Long: "Show what fills the work folder of a session: all that is in it against its limits, what is directly in it or in " +
			"its folder PATH, and the largest files anywhere in there.",
		RunE: func(c *cobra.Command, args []string) error {
			path := ""
			if len(args) == 1 {
				path = args[0]
			}
			return cli.With(c, a, func(ctx context.Context, cl *client.Client) (file.Filled, error) {
				return file.Show.Ask(ctx, cl, file.ShowIn{Session: control.SessionWord(session), Path: path})
			}, func(v file.Filled) error { return printFiles(a, v) })
		}}
	group.PersistentFlags().StringVar(&session, "session", "main", "`key` of the session, or its short form")
	_ = group.RegisterFlagCompletionFunc("session", completeSessions(a)) // it was defined above
	group.AddCommand(a.JSONFlag(removeFile(a, &session)))
	return a.JSONFlag(group)
}

func removeFile(a *cli.App, session *string) *cobra.Command {
	var folder bool
	c := &cobra.Command{Use: "rm PATH", Short: "Remove a file or folder from a work folder", Args: cli.Exactly("PATH"),
		Long: "Remove PATH, relative to the work folder of a session. It needs no space on the disk, and works while the store " +
			"takes nothing.\nWith --folder it is a folder with all that is in it, and the PATH . is everything.",
		RunE: func(c *cobra.Command, args []string) error {
			return cli.With(c, a, func(ctx context.Context, cl *client.Client) (file.Removed, error) {
				in := file.RemoveIn{Session: control.SessionWord(*session), Path: args[0], Folder: folder}
				return file.Remove.Ask(ctx, cl, in)
			}, func(r file.Removed) error {
				if !r.Audited {
					if _, err := fmt.Fprintln(a.Errs, "the store takes nothing at the moment: the daemon's log has this removal, "+
						"and the audit log gets it later"); err != nil {
						return err
					}
				}
				_, err := fmt.Fprintf(a.Out, "%s is removed (%d files and folders); the work folder holds %s of %s\n",
					cli.Visible(r.Path), r.Removed, disk.Size(r.Left.Bytes), disk.Size(r.Left.MaxBytes))
				return err
			})
		}}
	c.Flags().BoolVar(&folder, "folder", false, "remove a folder with all that is in it")
	return c
}

func printFiles(a *cli.App, v file.Filled) error {
	if v.Files == 0 {
		_, err := fmt.Fprintln(a.Out, "the work folder is empty")
		return err
	}
	more := ""
	if v.More {
		more = "more than "
	}
	if _, err := fmt.Fprintf(a.Out, "%s%s of %s, %d of %d files and folders\n", more, disk.Size(v.Bytes), disk.Size(v.MaxBytes),
		v.Files, v.MaxFiles); err != nil {
		return err
	}
	if v.DiskLow {
		if _, err := fmt.Fprintf(a.Out, "the disk has %s free, and nothing is written below %s\n", disk.Size(v.DiskFree),
			disk.Size(v.DiskKept)); err != nil {
			return err
		}
	}
	var rows [][]string
	seen := map[string]bool{}
	for _, it := range append(v.Items, v.Largest...) {
		if seen[it.Path] {
			continue
		}
		seen[it.Path] = true
		name, holds := cli.Visible(it.Path), ""
		if it.Folder {
			name, holds = name+"/", strconv.FormatInt(it.Files, 10)
		}
		rows = append(rows, []string{disk.Size(it.Bytes), holds, name})
	}
	for _, name := range v.Mounted {
		rows = append(rows, []string{"", "", cli.Visible(name) + "/ (an owner's folder, not counted)"})
	}
	return a.Table([]string{"SIZE", "HOLDS", "PATH"}, rows)
}
