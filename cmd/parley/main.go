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

	"parley/tools/sandbox"
)

// version is set by the linker.
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
	a := &app{in: in, out: out, errs: errs}
	root := a.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = a.lost
	}
	var misused *misuseError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errSaid):
		return failed
	}
	fmt.Fprintln(errs, "parley: "+visible(err.Error()))
	if errors.As(err, &misused) || !a.started {
		return misuse
	}
	return failed
}

// misuseError is a wrong command line or configuration.
type misuseError struct{ error }

func (e *misuseError) Unwrap() error { return e.error }

// errSaid ends a command that failed and has said so.
var errSaid = errors.New("failed")

// root is the whole command line.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{Use: "parley", Short: "Durable AI agents in the chats you already use", Version: version, SilenceErrors: true, SilenceUsage: true,
		PersistentPreRunE: func(*cobra.Command, []string) error { a.started = true; return nil },
		RunE:              func(c *cobra.Command, _ []string) error { return c.Help() }} // no Args: then cobra says of an unknown command what may be meant
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.errs)
	f := root.PersistentFlags()
	f.StringVar(&a.config, "config", "", "configuration `file` (default: $PARLEY_CONFIG, ./parley.yaml, then your configuration folder)")
	f.StringVar(&a.dataDir, "data-dir", "", "`folder` of everything that is kept; wins over the configuration")
	f.StringVar(&a.url, "url", "", "`address` of a running gateway (default: where the configuration has it listen)")
	root.AddCommand(
		a.onboardCommand(), a.gatewayCommand(), a.serviceCommand(), a.doctorCommand(), a.configCommand(),
		a.chatCommand(), a.sendCommand(), a.stopCommand(), a.webchatCommand(),
		a.statusCommand(), a.logsCommand(), a.sessionCommand(), a.runCommand(), a.agentCommand(),
		a.channelCommand(), a.routeCommand(), a.filesCommand(), a.approvalCommand(), a.auditCommand(),
		a.backupCommand(), a.restoreCommand(), a.versionCommand())
	a.addVerbs(root)
	help := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		if words := c.Flags().Args(); c.HasSubCommands() && len(words) > 0 {
			a.lost = &misuseError{fmt.Errorf("unknown command %q for %q", words[0], c.CommandPath())}
			return
		}
		help(c, args)
	})
	root.SetHelpCommand(&cobra.Command{Use: "help [COMMAND]", Short: "Say how a command is used", RunE: func(_ *cobra.Command, words []string) error {
		c, rest, err := root.Find(words)
		if err == nil && c.HasSubCommands() && len(rest) > 0 {
			err = fmt.Errorf("unknown command %q for %q", rest[0], c.CommandPath())
		}
		if err != nil {
			return &misuseError{err}
		}
		c.InitDefaultHelpFlag()
		return c.Help()
	}})
	return root
}
