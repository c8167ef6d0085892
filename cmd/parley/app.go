package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

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
	started   bool // a command was found and its line understood

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

// source describes the configuration; nothing is read yet.
func (a *app) source() (*configs.Source, error) {
	o := configs.LoadOptions{Path: a.config, Sections: sections()}
	if a.dataDir != "" {
		dir, err := filepath.Abs(a.dataDir)
		if err != nil {
			return nil, err
		}
		name := configs.EnvName("data_dir")
		o.Env = func(key string) (string, bool) {
			if key == name {
				return dir, true
			}
			return os.LookupEnv(key)
		}
	}
	return configs.NewSource(o), nil
}

// load reads the configuration. What is wrong with it is a misuse.
func (a *app) load() (*configs.Source, *configs.Config, error) {
	src, err := a.source()
	if err != nil {
		return nil, nil, err
	}
	c, err := src.Load()
	if err != nil {
		return nil, nil, &misuseError{err}
	}
	return src, c, nil
}

// client speaks to the gateway of the configuration, or to that of --url.
func (a *app) client() (*client.Client, error) {
	_, c, err := a.load()
	if err != nil {
		return nil, err
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

// show prints a value as JSON.
func (a *app) show(v any) error {
	e := json.NewEncoder(a.out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// table prints rows under their heads.
func (a *app) table(heads []string, rows [][]string) error {
	if len(rows) == 0 {
		_, err := fmt.Fprintln(a.out, "none")
		return err
	}
	w := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(heads, "\t"))
	for _, row := range rows {
		for i := range row {
			row[i] = strings.NewReplacer("\n", " ", "\t", " ").Replace(visible(row[i]))
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}

// visible makes text of strangers safe for a terminal: only line feeds and tabs stay of what controls it.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r':
			return -1
		case r < 0x20:
			return 0x2400 + r
		case unicode.Is(unicode.Cc, r), unicode.Is(unicode.Bidi_Control, r), r == '\u2028', r == '\u2029', r >= 0xE0000 && r <= 0xE007F:
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// short is how people see an id.
func short(id string) string {
	if len(id) > 6 {
		id = id[len(id)-6:]
	}
	return strings.ToLower(id)
}

// ago is how long ago t was, roughly.
func ago(t time.Time) string {
	d := time.Since(t)
	switch {
	case t.IsZero():
		return ""
	case d < time.Minute:
		return fmt.Sprintf("%ds ago", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh ago", int(d.Hours()))
	}
	return fmt.Sprintf("%dd ago", int(d.Hours()/24))
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
