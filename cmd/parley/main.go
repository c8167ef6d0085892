// Command parley is the gateway daemon and its command line. The daemon is `parley gateway`; every other command
// that needs a gateway speaks to the one that runs, over HTTP.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	_ "time/tzdata" // zones of people, also where the system has none

	"github.com/spf13/cobra"

	"parley/cmd/parley/internal/chat"
	"parley/cmd/parley/internal/cli"
	"parley/cmd/parley/internal/daemon"
	"parley/cmd/parley/internal/help"
	"parley/cmd/parley/internal/onboard"
	"parley/cmd/parley/internal/service"
	"parley/tools/sandbox"
)

// Version is set by the linker.
var version = "dev"

// Exit codes.
const (
	failed = 1
	misuse = 2 // of the command line, or a wrong configuration
)

func main() {
	sandbox.Init() // a command of an agent starts in a process that is this program again
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is main without the process: it returns the exit code.
func run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	p := &program{app: cli.App{In: in, Out: out, Errs: errs, Version: version}}
	root := p.root()
	root.SetArgs(args)
	c, err := root.ExecuteContextC(ctx)
	if err == nil && p.lost != nil {
		c, err = p.where, p.lost
	}
	var misused *cli.MisuseError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, cli.ErrSaid):
		return failed
	}
	fmt.Fprintln(errs, "parley: "+cli.Visible(cli.Hinted(err.Error())))
	switch {
	case !p.started:
		fmt.Fprintln(errs, help.See(c))
		return misuse
	case errors.As(err, &misused):
		return misuse
	}
	return failed
}

// program is one start of the command line.
type program struct {
	app     cli.App
	started bool           // a command was found and its line understood
	lost    error          // help was asked for of what does not exist
	where   *cobra.Command // below this
}

// root is the whole command line.
func (p *program) root() *cobra.Command {
	a := &p.app
	root := &cobra.Command{Use: "parley", Short: "Durable AI agents in the chats you already use", Version: version,
		SilenceErrors: true, SilenceUsage: true,
		PersistentPreRunE: func(*cobra.Command, []string) error { p.started = true; return nil },
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return help.Unknown(c, args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Errs)
	f := root.PersistentFlags()
	f.StringVar(&a.Config, "config", "", "configuration `file` (default: $PARLEY_CONFIG, ./parley.yaml, then your configuration folder)")
	f.StringVar(&a.DataDir, "data-dir", "", "`folder` of everything that is kept; wins over the configuration")
	f.StringVar(&a.URL, "url", "", "`address` of a running gateway (default: where the configuration has it listen)")
	root.AddCommand(
		onboard.Command(a), daemon.Command(a), service.Command(a), doctorCommand(a), configCommand(a),
		chat.Command(a), sendCommand(a), stopCommand(a), webchatCommand(a),
		statusCommand(a), logsCommand(a), sessionCommand(a), runCommand(a),
		channelCommand(a), routeCommand(a), filesCommand(a), approvalCommand(a), auditCommand(a),
		backupCommand(a), restoreCommand(a), versionCommand(a))
	addVerbs(a, root)
	if explain, _, err := root.Find([]string{"agent", "policy", "explain"}); err == nil {
		takeShellLine(explain)
	}
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		if words := c.Flags().Args(); c.HasSubCommands() && len(words) > 0 {
			p.where, p.lost = c, cli.Misuse(help.Unknown(c, words[0]))
			return
		}
		help.Show(c)
	})
	root.SetHelpCommand(&cobra.Command{Use: "help [COMMAND]", Short: "Say how a command is used",
		RunE: func(_ *cobra.Command, words []string) error {
			c, rest, err := root.Find(words)
			if c != nil && c.HasSubCommands() && len(rest) > 0 {
				err = help.Unknown(c, rest[0])
			}
			if err != nil {
				return cli.Misuse(err)
			}
			c.InitDefaultHelpFlag()
			return c.Help()
		}})
	root.InitDefaultCompletionCmd()
	help.Arrange(root)
	return root
}
