// Backups, and putting one into place.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"parley/cmd/parley/internal/cli"
	"parley/gateway"
	"parley/gateway/client"
)

func backupCommand(a *cli.App) *cobra.Command {
	c := &cobra.Command{Use: "backup FILE", Short: "Save everything that is kept, also while the gateway runs", Args: cli.Exactly("FILE"),
		Long: "Write the data directory into the new file FILE (.tar.gz, mode 0600): verified databases, agents' files, the token. " +
			"Keep it as you keep a password."}
	c.RunE = func(c *cobra.Command, args []string) error {
		if _, err := os.Lstat(args[0]); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s exists already", args[0])
		}
		done := a.UnderWay("the backup")
		left, err := download(c.Context(), a, args[0])
		if errors.Is(err, client.ErrUnreachable) && a.URL == "" {
			left, err = backup(c.Context(), a, args[0])
		}
		done()
		if err != nil {
			return err
		}
		info, err := os.Stat(args[0])
		if err != nil {
			return err
		}
		if _, err = fmt.Fprintf(a.Out, "%s (%d KiB)\n", args[0], (info.Size()+1023)/1024); err != nil {
			return err
		}
		return printLeftOut(a, left)
	}
	return c
}

// printLeftOut names what a backup does not hold.
func printLeftOut(a *cli.App, left client.LeftOut) error {
	if left.Count == 0 {
		return nil
	}
	_, err := fmt.Fprintf(a.Out, "left out: %d\n", left.Count)
	for _, l := range left.First {
		if err == nil {
			// an old backup has no reasons
			_, err = fmt.Fprintf(a.Out, "  %s\n", cli.Visible(strings.TrimSuffix(l.Name+": "+l.Reason, ": ")))
		}
	}
	if more := left.Count - int64(len(left.First)); more > 0 && err == nil {
		_, err = fmt.Fprintf(a.Out, "  … and %d more; manifest.json in the backup has all\n", more)
	}
	return err
}

// download has the running gateway make the backup. The file appears when it is whole.
func download(ctx context.Context, a *cli.App, file string) (left client.LeftOut, err error) {
	cl, err := a.Client()
	if err != nil {
		return left, err
	}
	defer cl.Close()
	body, left, err := cl.Backup(ctx)
	if err != nil {
		return left, err
	}
	defer body.Close()
	tmp, err := os.CreateTemp(filepath.Dir(file), ".parley-backup-") // mode 0600
	if err != nil {
		return left, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(tmp.Name()))
		}
	}()
	_, err = io.Copy(tmp, body)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return left, err
	}
	return left, os.Rename(tmp.Name(), file)
}

// backup is made without a gateway.
func backup(ctx context.Context, a *cli.App, file string) (left client.LeftOut, err error) {
	src, c, err := a.Load()
	if err != nil {
		return left, err
	}
	if _, err := os.Stat(c.DataDir); err != nil { // opening a store would make it
		return left, err
	}
	m, err := gateway.Backup(ctx, gateway.Options{Source: src}, file)
	return leftOut(m), err
}

func leftOut(m gateway.Saved) client.LeftOut {
	left := client.LeftOut{Count: m.LeftOut}
	for _, l := range m.Left {
		left.First = append(left.First, struct{ Name, Reason string }{l.Name, l.Reason})
	}
	return left
}

func restoreCommand(a *cli.App) *cobra.Command {
	c := &cobra.Command{Use: "restore FILE", Short: "Put a backup into place as the data directory", Args: cli.Exactly("FILE"),
		Long: "Verify the backup FILE and put it into place as the data directory, which must be missing or empty. Stop the gateway " +
			"first. What was answered after the backup may be answered once more."}
	c.RunE = func(c *cobra.Command, args []string) error {
		_, conf, err := a.Load()
		if err != nil {
			return err
		}
		m, err := gateway.Restore(c.Context(), args[0], conf.DataDir)
		if err != nil {
			return err
		}
		if _, err = fmt.Fprintf(a.Out, "%d files are in %s\n", m.Files, conf.DataDir); err != nil {
			return err
		}
		return printLeftOut(a, leftOut(m))
	}
	return c
}
