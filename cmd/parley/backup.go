package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"parley/gateway"
	"parley/gateway/client"
)

func (a *app) backupCommand() *cobra.Command {
	c := &cobra.Command{Use: "backup FILE", Short: "Save everything that is kept, also while the gateway runs", Args: exactly("FILE"),
		Long: "Write the data directory into the new file FILE (.tar.gz, mode 0600): verified databases, agents' files, the token. Keep it as you keep a password."}
	c.RunE = func(c *cobra.Command, args []string) error {
		if _, err := os.Lstat(args[0]); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s exists already", args[0])
		}
		err := a.download(c.Context(), args[0])
		if errors.Is(err, client.ErrUnreachable) && a.url == "" {
			err = a.backup(c.Context(), args[0])
		}
		if err != nil {
			return err
		}
		info, err := os.Stat(args[0])
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.out, "%s (%d KiB)\n", args[0], (info.Size()+1023)/1024)
		return err
	}
	return c
}

// download has the running gateway make the backup. The file appears when it is whole.
func (a *app) download(ctx context.Context, file string) (err error) {
	cl, err := a.client()
	if err != nil {
		return err
	}
	defer cl.Close()
	body, err := cl.Stream(ctx, http.MethodPost, "/v1/backup", nil)
	if err != nil {
		return err
	}
	defer body.Close()
	tmp, err := os.CreateTemp(filepath.Dir(file), ".parley-backup-") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(tmp.Name()))
		}
	}()
	_, err = io.Copy(tmp, body)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), file)
}

// backup is made without a gateway.
func (a *app) backup(ctx context.Context, file string) error {
	src, c, err := a.load()
	if err != nil {
		return err
	}
	if _, err := os.Stat(c.DataDir); err != nil { // opening a store would make it
		return err
	}
	_, err = gateway.Backup(ctx, gateway.Options{Source: src}, file)
	return err
}

func (a *app) restoreCommand() *cobra.Command {
	c := &cobra.Command{Use: "restore FILE", Short: "Put a backup into place as the data directory", Args: exactly("FILE"),
		Long: "Verify the backup FILE and put it into place as the data directory, which must be missing or empty. Stop the gateway first. What was answered after the backup may be answered once more."}
	c.RunE = func(c *cobra.Command, args []string) error {
		_, conf, err := a.load()
		if err != nil {
			return err
		}
		m, err := gateway.Restore(c.Context(), args[0], conf.DataDir)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.out, "%d files are in %s\n", len(m.Files), conf.DataDir)
		return err
	}
	return c
}
