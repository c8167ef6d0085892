package command

import (
	"context"
	"strings"

	"parley/gateway/control"
	"parley/gateway/control/all"
	"parley/gateway/control/file"
)

// filesVerb is the right that a line of /files needs.
func filesVerb(args []string) string {
	if first(args) == "rm" {
		return "files.remove"
	}
	return "files"
}

// checkFiles wants a path behind in and rm.
func checkFiles(args []string) error {
	if len(args) == 1 {
		return row("files").wrong("")
	}
	return nil
}

// files shows, or with rm removes; a / behind the path says that it is a folder with all that is in it.
func files(ctx context.Context, c *all.Nouns, call control.Call, args []string) error {
	path := ""
	if len(args) == 2 {
		path = args[1]
	}
	var err error
	if first(args) == "rm" {
		_, err = c.Files.Remove(ctx, call, "", path, strings.HasSuffix(path, "/"))
	} else {
		_, err = file.Show.Call(ctx, c.Files, call, file.ShowIn{Path: path})
	}
	return err
}
