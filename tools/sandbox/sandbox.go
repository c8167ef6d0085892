// Package sandbox runs the commands of agents where they can do no harm: a command is hostile, whoever asked for it.
// It is the boundary, not the policy: who may run what is decided before Run is called, and nothing that a model or a
// chat writes picks or changes a backend. Beside it, egress is the one way out to the network.
//
// The backend ns re-executes this very program as the first process of new namespaces: package cell is its life there. Every
// program that calls New must call Init before anything else. A Backend owns, while a command runs, the goroutines that
// feed, read, watch and end it, and none between commands; but it keeps one process ready for a minute after the last.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"parley/tools/tail"
	"parley/workspace"
	"parley/workspace/disk"
)

// Backend runs commands apart from the host. It is safe for concurrent use.
type Backend interface {
	// Run runs one command to its end and leaves no process of it behind, whatever ended it; ending ctx kills it. A command
	// that ran is an Outcome, also when it failed, was killed or ran out of time. An error means that it did not run:
	// ErrUnavailable (no tier is proven), ErrRefused (Command asks for what is not given), ErrSpace, the cause of ctx, or one of
	// the machine. It waits for its turn under Config.Concurrent.
	Run(ctx context.Context, c Command) (Outcome, error)
	// Tier is what Probe has proven; TierNone before that, and then exec must not be offered. It does not block.
	Tier() Tier
	// Probe tries real escapes inside the backend and sets Tier by what it finds. It takes about a tenth of a second
	// and belongs beside the start, never before it.
	Probe(ctx context.Context) Report
	// Last is the newest report of Probe; before the first one it says that none has ended yet. It does not block.
	Last() Report
	// Close ends what is kept ready for the next command. It belongs behind the last one; what comes later still runs.
	Close()
}

// Tier is a class of isolation. There is none between nothing and ns: docs/sandbox.md says why.
type Tier string

const (
	TierNone Tier = "none" // there is no exec
	TierNS   Tier = "ns"   // namespaces, Landlock and a filter of system calls
)

// Errors of Run.
var (
	ErrUnavailable = errors.New("no sandbox")
	ErrRefused     = errors.New("refused by the sandbox")
	ErrSpace       = disk.ErrSpace // the disk or the work folder is full: a *disk.Error says which
)

// Where things are inside.
const (
	WorkPath    = "/work"    // the work folder, writable; the command starts here
	ControlPath = "/agent"   // the agent's own files, read-only, without its work folders
	FoldersPath = "/folders" // an owner's folders, each under its name
)

// Config is the operator's choice. It is fixed for the life of a Backend.
type Config struct {
	Backend    string        // "ns", or "none" for no exec at all
	Limits     Limits        // for what a Command leaves at zero
	Concurrent int           // commands at once; 0: twice the processors
	Scratch    string        // folder for the self-test, on the file system of the work folders; empty: the system's own
	Keep       time.Duration // how long a sandbox is kept ready for the next command; 0: a minute; negative: none is
	Disk       *disk.Rule    // of disk space; nil: one of its own, with the defaults
	Hide       []string      // host paths that no command sees, also where a shown folder holds them: data directory, configuration
}

// Deps is what the house gives.
type Deps struct {
	Log *slog.Logger
	// Egress is the one way out; nil: no command reaches the network. *egress.Proxy is one.
	Egress Server
}

// Server serves a listener until ctx ends, and closes it. The listener is a loopback port inside one sandbox, opened there
// and handed out: nothing of the proxy is mounted into a sandbox, and no process carries bytes in between.
type Server interface {
	ServeListener(ctx context.Context, l net.Listener) error
}

// Command is one line to run, with all that it may see and use. Nothing else of the host is visible to it but programs
// and libraries.
type Command struct {
	Line    string   // for /bin/sh -c; or
	Argv    []string // a program with its arguments, looked up in PATH inside
	Dir     string   // where to start: slash-separated, relative to the work folder or below /work; empty: /work
	Work    string   // host folder of the turn: absolute, without symbolic links
	Control string   // host folder of the agent's files, without symbolic links; empty: not shown
	Folders []Mount
	Env     []string // NAME=value; names that change what a program loads or runs are refused
	Limits  Limits
	Egress  bool // give it the proxy, where Deps has one
	// Output also takes what it writes, as it comes. It cannot hold the command up. nil: nobody watches.
	Output *tail.Tail
}

// Mount is an owner's own folder.
type Mount struct {
	Host string // absolute, without symbolic links: resolve it when the configuration is read, not later
	As   string // one name: it appears as /folders/<As>
	RW   bool
	// Guard keeps the command from what programs of the host obey. Without one, a folder is not shown writable.
	Guard workspace.Guard
}

// Limits of one command with all its children. Zero takes the value of Config, or the default.
type Limits struct {
	Timeout   time.Duration // 60 s
	Memory    int64         // bytes; 512 MiB
	Processes int           // and threads; 256
	Output    int           // bytes of Outcome.Output; 16 KiB
	Disk      int64         // bytes that the work folder and shown writable folders may grow by; 256 MiB
	Files     int64         // files that they may grow by; 50,000
}

// Outcome is how a command ended.
type Outcome struct {
	Code       int           // exit code; 128 and the signal's number when a signal ended it
	Signal     string        // such as "SIGKILL"; empty: it exited
	Output     []byte        // standard output and error as they came: raw bytes, at most Limits.Output; the head and the tail of what is longer
	Truncated  bool          // there was more than Output shows
	OutputFile string        // slash path relative to the work folder where the whole is, up to 8 MiB; empty unless Truncated
	OutputKept int64         // bytes of it in that file, from the first on
	OutputSize int64         // bytes that it wrote
	TimedOut   bool          // Killed is "timeout"
	Killed     string        // why the gateway ended it: "timeout", "stopped", "memory", "disk", "files", "space" (of the host's disk), "folder" (the work folder is full), "lost" (its sandbox was killed from outside); empty: it ended by itself
	Held       []Held        // what it had made that programs of the host obey, and that was renamed
	Closed     []Closed      // folders that it could not write though they are configured so
	Took       time.Duration // from the start of its sandbox to the end of its last process
}

// Held is a control path in a folder, with the harmless name that it has now.
type Held struct {
	As string // of the folder
	workspace.Held
}

// Closed is a folder that was shown read-only, and why.
type Closed struct{ As, Why string }

// Report is what is known of a backend, for doctor, the log and approvals.
type Report struct {
	Tier    Tier
	Done    bool     // a probe has ended
	Checks  []Check  // each escape that was tried
	Reasons []string // why the tier is not higher, or what is weaker than it could be; one sentence each
	Facts   []string // such as "cgroup v2", "Landlock ABI 7"
}

// Check is one escape that Probe tried.
type Check struct {
	Name string
	OK   bool   // it was refused
	Why  string // what happened instead
}

// Failed lists the checks that failed.
func (r Report) Failed() (failed []Check) {
	for _, c := range r.Checks {
		if !c.OK {
			failed = append(failed, c)
		}
	}
	return failed
}

// String is one line for a log or a person.
func (r Report) String() string {
	switch {
	case !r.Done:
		return "the sandbox has not been tried yet"
	case r.Tier == TierNone:
		return "no exec: " + strings.Join(r.Reasons, "; ")
	}
	return fmt.Sprintf("tier %s, %d escapes refused, %s", r.Tier, len(r.Checks), strings.Join(r.Facts, ", "))
}

// or takes what is set in l, else in the next one.
func (l Limits) or(next Limits) Limits {
	l.Timeout = pick(l.Timeout, next.Timeout)
	l.Memory = pick(l.Memory, next.Memory)
	l.Processes = pick(l.Processes, next.Processes)
	l.Output = pick(l.Output, next.Output)
	l.Disk = pick(l.Disk, next.Disk)
	l.Files = pick(l.Files, next.Files)
	return l
}

func pick[T ~int | ~int64](a, b T) T {
	if a > 0 {
		return a
	}
	return b
}

// DefaultLimits are those of a Config that names none.
func DefaultLimits() Limits {
	return Limits{Timeout: time.Minute, Memory: 512 << 20, Processes: 256, Output: 16 << 10, Disk: 256 << 20, Files: 50_000}
}

// absent is a backend that runs nothing, and says why.
type absent struct{ why string }

func (a absent) Run(context.Context, Command) (Outcome, error) {
	return Outcome{}, fmt.Errorf("%w: %s", ErrUnavailable, a.why)
}

func (a absent) Tier() Tier { return TierNone }

func (a absent) Probe(context.Context) Report { return a.Last() }

func (absent) Close() {}

func (a absent) Last() Report { return Report{Tier: TierNone, Done: true, Reasons: []string{a.why}} }
