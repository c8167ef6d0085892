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
	"time"

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
		done := a.underWay("the backup")
		left, err := a.download(c.Context(), args[0])
		if errors.Is(err, client.ErrUnreachable) && a.url == "" {
			left, err = a.backup(c.Context(), args[0])
		}
		done()
		if err != nil {
			return err
		}
		info, err := os.Stat(args[0])
		if err != nil {
			return err
		}
		if _, err = fmt.Fprintf(a.out, "%s (%d KiB)\n", args[0], (info.Size()+1023)/1024); err != nil {
			return err
		}
		return a.printLeftOut(left)
	}
	return c
}

// underWay says now and then that something slow goes on.
func (a *app) underWay(what string) (done func()) {
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		t := time.NewTicker(10 * time.Second)
		defer t.Stop()
		for began := time.Now(); ; {
			select {
			case <-quit:
				return
			case <-t.C:
				fmt.Fprintf(a.errs, "%s is still being made (%s)\n", what, time.Since(began).Round(time.Second))
			}
		}
	}()
	return func() {
		close(quit)
		<-ended
	}
}

// printLeftOut names what a backup does not hold.
func (a *app) printLeftOut(left client.LeftOut) error {
	if left.Count == 0 {
		return nil
	}
	_, err := fmt.Fprintf(a.out, "left out: %d\n", left.Count)
	for _, l := range left.First {
		if err == nil {
			_, err = fmt.Fprintf(a.out, "  %s\n", visible(strings.TrimSuffix(l.Name+": "+l.Reason, ": "))) // an old backup has no reasons
		}
	}
	if more := left.Count - int64(len(left.First)); more > 0 && err == nil {
		_, err = fmt.Fprintf(a.out, "  … and %d more; manifest.json in the backup has all\n", more)
	}
	return err
}

// download has the running gateway make the backup. The file appears when it is whole.
func (a *app) download(ctx context.Context, file string) (left client.LeftOut, err error) {
	cl, err := a.client()
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
func (a *app) backup(ctx context.Context, file string) (left client.LeftOut, err error) {
	src, c, err := a.load()
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
		if _, err = fmt.Fprintf(a.out, "%d files are in %s\n", m.Files, conf.DataDir); err != nil {
			return err
		}
		return a.printLeftOut(leftOut(m))
	}
	return c
}
