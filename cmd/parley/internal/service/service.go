// Package service installs the gateway as a systemd user service.
package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/cmd/parley/internal/cli"
	"parley/configs"
)

// unitMark begins a unit that Parley wrote, and may replace and remove.
const unitMark = "# Written by: parley service install"

// unitText is a systemd user unit (systemd.service(5), systemd.exec(5)). What gives the process a file system of its own,
// such as ProtectSystem=, is left out on purpose: inside it the sandbox of exec could not mount its own /proc.
const unitText = unitMark + `
# No credential belongs in here: put NAME=value lines for ${NAME} in the configuration into the file
# that EnvironmentFile= names, mode 0600.
[Unit]
Description=Parley, durable AI agents in the chats you already use
Documentation=man:systemd.service(5)
StartLimitIntervalSec=300
StartLimitBurst=10

[Service]
Type=notify
ExecStart=%s
ExecReload=/bin/kill -HUP $MAINPID
EnvironmentFile=-%s
WorkingDirectory=%%h
Restart=on-failure
RestartSec=2
# a wrong configuration does not heal by itself
RestartPreventExitStatus=2
# running turns may end for 25 seconds
TimeoutStopSec=35
KillMode=mixed
LimitNOFILE=65536
# commands get groups of their own below this one, in which the kernel counts their memory
Delegate=memory pids cpu
UMask=0077
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK

[Install]
WantedBy=default.target
`

func Command(a *cli.App) *cobra.Command {
	group := &cobra.Command{Use: "service", Short: "Run the gateway as a systemd user service", Args: cobra.NoArgs, RunE: cli.NeedsVerb}
	s := &service{App: a}
	install := &cobra.Command{Use: "install", Short: "Write the unit, and say what comes next", Args: cobra.NoArgs,
		Long: "Write a systemd user unit that runs this very program with the configuration that is in force now. Credentials are " +
			"not written into it.",
		RunE: func(c *cobra.Command, _ []string) error { return s.install(c.Context()) }}
	install.Flags().BoolVar(&s.now, "now", false, "also enable and start it")
	uninstall := &cobra.Command{Use: "uninstall", Short: "Stop the service and remove its unit; data and configuration stay",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return s.uninstall(c.Context()) }}
	status := &cobra.Command{Use: "status", Short: "Say whether it is installed and runs; exit code 1 when it does not run",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return s.status(c.Context()) }}
	for _, c := range []*cobra.Command{install, uninstall, status} {
		c.Flags().StringVar(&s.name, "name", "parley", "`name` of the unit")
	}
	group.AddCommand(install, uninstall, a.JSONFlag(status))
	return group
}

// Usable says whether systemd's user manager runs here, so that a service of the user's can be installed.
func Usable(ctx context.Context) bool {
	if runtime.GOOS != "linux" {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	out, _ := exec.CommandContext(ctx, "systemctl", "--user", "is-system-running").Output() // its code says only what its word says
	return slices.Contains([]string{"running", "degraded", "starting"}, strings.TrimSpace(string(out)))
}

// Install writes the unit for the configuration that the program was started with, and starts it.
func Install(ctx context.Context, a *cli.App) error {
	return (&service{App: a, name: "parley", now: true}).install(ctx)
}

// Uninstall stops the service and removes its unit.
func Uninstall(ctx context.Context, a *cli.App) error {
	return (&service{App: a, name: "parley"}).uninstall(ctx)
}

type service struct {
	*cli.App
	name string
	now  bool
}

// userFolder is one of the XDG base directories.
func userFolder(variable, fallback string) (string, error) {
	if dir := os.Getenv(variable); filepath.IsAbs(dir) {
		return dir, nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, fallback), err
}

// unit is where the unit belongs (systemd.unit(5), user unit search path).
func (s *service) unit() (string, error) {
	if runtime.GOOS != "linux" {
		return "", errors.New("service needs systemd, which only Linux has: run parley gateway under what this system has")
	}
	if s.name == "" || strings.ContainsAny(s.name, "/ @%\n") {
		return "", cli.Misuse(fmt.Errorf("%q is not a name for a unit", s.name))
	}
	dir, err := userFolder("XDG_CONFIG_HOME", ".config")
	return filepath.Join(dir, "systemd", "user", s.name+".service"), err
}

// writtenHere says whether a unit is there, and refuses one that somebody else wrote.
func writtenHere(file string) (bool, error) {
	data, err := os.ReadFile(file)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !strings.HasPrefix(string(data), unitMark):
		return false, fmt.Errorf("%s was not written by parley: remove it yourself, or take another --name", file)
	}
	return true, nil
}

func (s *service) install(ctx context.Context) error {
	file, err := s.unit()
	if err != nil {
		return err
	}
	if _, err := writtenHere(file); err != nil {
		return err
	}
	names, c, err := s.variables()
	if err != nil {
		return err
	}
	dir, err := userFolder("XDG_CONFIG_HOME", ".config")
	if err != nil {
		return err
	}
	secrets := filepath.Join(dir, "parley", s.name+".env")
	line, err := s.command(c)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if err := cli.WriteFile(file, fmt.Sprintf(unitText, line, strings.ReplaceAll(secrets, "%", "%%"))); err != nil {
		return err
	}
	fmt.Fprintf(s.Out, "%s is written.\n", file)
	if len(names) > 0 {
		fmt.Fprintf(s.Out, "It does not have these variables, which the configuration uses here: %s\nPut them as NAME=value lines "+
			"into %s (chmod 600).\n", strings.Join(names, ", "), secrets)
	}
	if s.now {
		if err := s.systemctl(ctx, "daemon-reload"); err != nil {
			return err
		}
		return s.systemctl(ctx, "enable", "--now", s.name)
	}
	fmt.Fprintf(s.Out, "Next: systemctl --user daemon-reload && systemctl --user enable --now %s\n", s.name)
	fmt.Fprintln(s.Out, "To have it run while you are logged out: loginctl enable-linger")
	return nil
}

// variables are those of this environment that the configuration uses, and that a service would not have.
func (s *service) variables() ([]string, *configs.Config, error) {
	o, err := s.LoadOptions()
	if err != nil {
		return nil, nil, err
	}
	env := o.Env
	if env == nil {
		env = os.LookupEnv
	}
	var names []string
	o.Env = func(name string) (string, bool) {
		value, ok := env(name)
		// the unit names the file and, where given, the data directory; a service has a HOME
		if ok && value != "" && !slices.Contains(names, name) &&
			!slices.Contains([]string{"HOME", "PARLEY_CONFIG", "XDG_CONFIG_HOME", "XDG_DATA_HOME"}, name) &&
			(name != configs.EnvName("data_dir") || s.DataDir == "") {
			names = append(names, name)
		}
		return value, ok
	}
	c, err := configs.Load(o)
	if err != nil {
		return nil, nil, cli.Misuse(err)
	}
	if len(c.Models) == 0 {
		configs.FromEnv(o.Env)
	}
	slices.Sort(names)
	return names, c, nil
}

// command is what the unit runs: this program with this configuration.
func (s *service) command(c *configs.Config) (string, error) {
	program, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	words := []string{program, "gateway"}
	if c.Path != "" {
		words = append(words, "--config", c.Path)
	}
	if dir := c.DataDir; s.DataDir != "" || os.Getenv("XDG_DATA_HOME") != "" {
		words = append(words, "--data-dir", dir)
	}
	for i, w := range words {
		words[i] = unitWord(w)
	}
	return strings.Join(words, " "), nil
}

// unitWord quotes a word of ExecStart= (systemd.service(5), "Command lines").
func unitWord(w string) string {
	w = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%", "$", "$$", "\n", `\n`).Replace(w)
	if strings.ContainsAny(w, " \t'\"\\;") {
		return `"` + w + `"`
	}
	return w
}

func (s *service) uninstall(ctx context.Context) error {
	file, err := s.unit()
	if err != nil {
		return err
	}
	there, err := writtenHere(file)
	if err != nil {
		return err
	}
	if !there {
		fmt.Fprintf(s.Out, "%s is not installed\n", s.name)
		return nil
	}
	if err := s.systemctl(ctx, "disable", "--now", s.name); err != nil {
		fmt.Fprintf(s.Errs, "%s\n", cli.Visible(err.Error()))
	}
	if err := os.Remove(file); err != nil {
		return err
	}
	fmt.Fprintf(s.Out, "%s is removed. Next: systemctl --user daemon-reload\n", file)
	return nil
}

// serviceState is what service status tells.
type serviceState struct {
	Unit      string `json:"unit"`
	Installed bool   `json:"installed"`
	State     string `json:"state"` // systemd's word: active, inactive, failed …
}

func (s *service) status(ctx context.Context) error {
	file, err := s.unit()
	if err != nil {
		return err
	}
	there, err := writtenHere(file)
	if err != nil {
		return err
	}
	st := serviceState{Unit: file, Installed: there, State: "not installed"}
	if there {
		out, _ := exec.CommandContext(ctx, "systemctl", "--user", "is-active", s.name).Output() // its code says only what its word says
		if st.State = strings.TrimSpace(string(out)); st.State == "" {
			st.State = "unknown: systemd's user manager does not answer here"
		}
	}
	if s.JSON {
		err = s.ShowJSON(st)
	} else {
		_, err = fmt.Fprintf(s.Out, "%s: %s\n", st.Unit, st.State)
		if there && err == nil {
			_, err = fmt.Fprintf(s.Out, "Its log: journalctl --user -u %s\n", s.name)
		}
	}
	if err == nil && st.State != "active" {
		err = cli.ErrSaid
	}
	return err
}

func (s *service) systemctl(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, "systemctl", append([]string{"--user"}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("systemctl --user %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
