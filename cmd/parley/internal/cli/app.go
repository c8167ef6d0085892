// Package cli is what the commands of parley share: where they read and print, which configuration and which gateway are meant,
// how they ask it, and how they ask whoever sits at the terminal.
package cli

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/channels/all"
	"parley/configs"
	"parley/configs/source"
	"parley/gateway"
	"parley/gateway/client"
)

// How long a command waits for its gateway, and how much one may type.
const (
	ComeUp   = 10 * time.Second // for one that may be starting
	ComeBack = time.Minute      // for one that went away during a turn
	MaxTyped = 256 << 10
)

// App is what the commands share.
type App struct {
	In        io.Reader
	Out, Errs io.Writer
	Version   string

	Config, DataDir, URL string
	JSON                 bool
}

// JSONFlag adds --json to a command that shows things.
func (a *App) JSONFlag(c *cobra.Command) *cobra.Command {
	c.Flags().BoolVar(&a.JSON, "json", false, "print JSON")
	return c
}

// Sections are the networks that the configuration may name.
func Sections() []configs.Section {
	var list []configs.Section
	for _, f := range all.Factories() {
		list = append(list, configs.Section{Type: string(f.Network), Options: f.Options})
	}
	return list
}

// LoadOptions says which configuration is meant; nothing is read yet.
func (a *App) LoadOptions() (configs.LoadOptions, error) {
	o := configs.LoadOptions{Path: a.Config, Sections: Sections()}
	if a.DataDir != "" {
		dir, err := filepath.Abs(a.DataDir)
		if err != nil {
			return o, err
		}
		name := configs.EnvName("data_dir")
		o.Env = func(key string) (string, bool) {
			if key == name {
				return dir, true
			}
			return os.LookupEnv(key)
		}
	}
	return o, nil
}

// Load reads the configuration. What is wrong with it is a misuse.
func (a *App) Load() (*source.Source, *configs.Config, error) {
	o, err := a.LoadOptions()
	if err != nil {
		return nil, nil, err
	}
	src := source.New(o)
	c, err := src.Load()
	if err != nil {
		return nil, nil, Misuse(err)
	}
	return src, c, nil
}

// Client speaks to the gateway of the configuration, or to that of --url. Of a configuration that is wrong only what says
// where the gateway is matters.
func (a *App) Client() (*client.Client, error) {
	o, err := a.LoadOptions()
	if err != nil {
		return nil, err
	}
	c, err := configs.LoadGateway(o)
	if err != nil {
		return nil, Misuse(err)
	}
	token, err := gateway.Token(c)
	if err != nil {
		return nil, fmt.Errorf("read the gateway's token: %w", err)
	}
	url := a.URL
	if url == "" {
		url = address(c)
	}
	cl, err := client.New(url, token)
	if err != nil {
		return nil, Misuse(err)
	}
	cl.Surface = "cli"
	return cl, nil
}

// address is where the configuration has the gateway listen, as this machine reaches it.
func address(c *configs.Config) string {
	host, port, err := net.SplitHostPort(c.Gateway.Listen)
	if err != nil {
		return "http://" + c.Gateway.Listen
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	scheme := "http"
	if c.Gateway.TLS.Cert != "" {
		scheme = "https"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

// Exactly is cobra.ExactArgs with a sentence that says which.
func Exactly(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != len(names) {
			return fmt.Errorf("%s takes %s", c.CommandPath(), strings.Join(names, " "))
		}
		return nil
	}
}

// NeedsVerb is what a group of commands says by itself.
func NeedsVerb(c *cobra.Command, _ []string) error {
	if err := c.Help(); err != nil {
		return err
	}
	return Misuse(fmt.Errorf("%s needs one of these commands", c.CommandPath()))
}

// AwaitClient is Client, for a gateway that may be starting. Only when it answers is its token there to be read.
func (a *App) AwaitClient(ctx context.Context) (*client.Client, error) {
	cl, err := a.Client()
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	if err := cl.Wait(ctx, ComeUp); err != nil {
		return nil, Hint(err)
	}
	return a.Client()
}

// Terminal is standard input as a terminal with somebody at it.
func (a *App) Terminal() (*os.File, bool) {
	in, ok := a.In.(*os.File)
	return in, ok && isTerminal(in) && isTerminal(a.Out) && os.Getenv("TERM") != "dumb"
}
