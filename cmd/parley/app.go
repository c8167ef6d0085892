package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"parley/channels/all"
	"parley/configs"
	"parley/gateway"
	"parley/gateway/client"
)

// app is what the commands share.
type app struct {
	in        io.Reader
	out, errs io.Writer
	started   bool  // a command was found and its line understood
	lost      error // help was asked for of what does not exist

	config, dataDir, url string
	json                 bool
}

// jsonFlag adds --json to a command that shows things.
func (a *app) jsonFlag(c *cobra.Command) *cobra.Command {
	c.Flags().BoolVar(&a.json, "json", false, "print JSON")
	return c
}

// sections are the networks that the configuration may name.
func sections() []configs.Section {
	var list []configs.Section
	for _, f := range all.Factories() {
		list = append(list, configs.Section{Type: string(f.Network), Options: f.Options})
	}
	return list
}

// loadOptions says which configuration is meant; nothing is read yet.
func (a *app) loadOptions() (configs.LoadOptions, error) {
	o := configs.LoadOptions{Path: a.config, Sections: sections()}
	if a.dataDir != "" {
		dir, err := filepath.Abs(a.dataDir)
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

// load reads the configuration. What is wrong with it is a misuse.
func (a *app) load() (*configs.Source, *configs.Config, error) {
	o, err := a.loadOptions()
	if err != nil {
		return nil, nil, err
	}
	src := configs.NewSource(o)
	c, err := src.Load()
	if err != nil {
		return nil, nil, &misuseError{err}
	}
	return src, c, nil
}

// client speaks to the gateway of the configuration, or to that of --url. Of a configuration that is wrong only what says
// where the gateway is matters.
func (a *app) client() (*client.Client, error) {
	o, err := a.loadOptions()
	if err != nil {
		return nil, err
	}
	c, err := configs.LoadGateway(o)
	if err != nil {
		return nil, &misuseError{err}
	}
	token, err := gateway.Token(c)
	if err != nil {
		return nil, fmt.Errorf("read the gateway's token: %w", err)
	}
	url := a.url
	if url == "" {
		url = address(c)
	}
	cl, err := client.New(url, token)
	if err != nil {
		return nil, &misuseError{err}
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

// exactly is cobra.ExactArgs with a sentence that says which.
func exactly(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != len(names) {
			return fmt.Errorf("%s takes %s", c.CommandPath(), strings.Join(names, " "))
		}
		return nil
	}
}
