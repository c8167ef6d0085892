package builtin

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"parley/tools"
	"parley/tools/sandbox"
	"parley/workspace"
	"parley/workspace/rule"
)

// ExecName is what the tool for commands is called.
const ExecName = "exec"

//go:embed exec.md
var execText string

const (
	maxCommand = 64 << 10        // bytes of a line
	execQueue  = 5 * time.Minute // that a command may wait for its turn beside its own time
)

// ExecOptions is where commands run.
type ExecOptions struct {
	Sandbox sandbox.Backend
	Limits  sandbox.Limits
	Egress  bool   // commands reach the allowed hosts
	Profile string // names the sandbox with its settings, for approvals
	Resolve tools.Resolve
	Stamp   tools.Stamp
	// Tried is closed when the sandbox has been tried for the first time; nil: nobody tries it, or it was.
	Tried <-chan struct{}
}

// Exec is the tool exec: a shell line inside the sandbox, which is the boundary. It takes nothing from the model but the
// line and the folder: no environment, no limits, no choice of sandbox.
func Exec(o ExecOptions) tools.Tool { return execTool{o} }

type execTool struct{ ExecOptions }

var (
	_ tools.Asker       = execTool{}
	_ tools.Settling    = execTool{}
	_ tools.TimeLimited = execTool{}
)

type execArgs struct {
	Command    string         `json:"command"`
	WorkingDir workspace.Path `json:"working_dir,omitempty"`
}

func (execTool) Spec() tools.Spec {
	s := fileSpec(ExecName, execText, `{"type":"object","properties":{`+
		`"command":{"type":"string","description":"shell line"},`+
		`"working_dir":{"type":"string","description":"folder, relative to the work folder; left out: the work folder"}},`+
		`"required":["command"],"additionalProperties":false}`, workspace.Outside)
	s.Group, s.Roots = tools.GroupExec, []string{"working_dir"}
	return s
}

// TimeLimit is that of the command, and of its wait for a place.
func (t execTool) TimeLimit() time.Duration {
	return cmp.Or(t.Limits.Timeout, sandbox.DefaultLimits().Timeout) + execQueue
}

// Unavailable says why no command runs. While the sandbox is tried for the first time it is not known, and no command
// runs before it is.
func (t execTool) Unavailable() string {
	if t.Sandbox == nil {
		return "there is no sandbox"
	}
	done, _ := t.Settled()
	if t.Sandbox.Tier() == sandbox.TierNone && done == nil {
		return t.Sandbox.Last().String()
	}
	return ""
}

// Settled is the end of the sandbox's first trial.
func (t execTool) Settled() (<-chan struct{}, string) {
	select {
	case <-t.Tried:
		return nil, ""
	default:
	}
	if t.Tried == nil || t.Sandbox == nil || t.Sandbox.Last().Done {
		return nil, ""
	}
	return t.Tried, "the sandbox is being tried"
}

// plan reads a call and finds its folder.
func (t execTool) plan(c tools.Call) (args execArgs, dir string, err error) {
	args, err = tools.Decode[execArgs](c.Args)
	switch {
	case err != nil:
		return args, "", err
	case strings.TrimSpace(args.Command) == "":
		return args, "", workspace.Say(workspace.ErrInvalid, "The command is empty.")
	case len(args.Command) > maxCommand:
		return args, "", workspace.Say(workspace.ErrInvalid, "The command is longer than %d bytes; write it into a file and run that.", maxCommand)
	case strings.ContainsRune(args.Command, 0):
		return args, "", workspace.Say(workspace.ErrInvalid, "The command holds a NUL byte.")
	}
	root, err := rootOf(c)
	if err != nil {
		return args, "", err
	}
	if args.WorkingDir.IsZero() {
		args.WorkingDir = workspace.At(".")
	}
	if dir, err = root.Resolve(args.WorkingDir); err != nil {
		return args, "", err
	}
	info, err := root.Stat(args.WorkingDir)
	if err == nil && info.Kind != workspace.KindDir {
		err = workspace.Say(workspace.ErrInvalid, "%q is not a folder.", args.WorkingDir.String())
	}
	return args, dir, err
}

// Question is the whole line, where it would run and in what.
func (t execTool) Question(_ context.Context, c tools.Call) (tools.Question, error) {
	args, dir, err := t.plan(c)
	if err != nil {
		return tools.Question{}, err
	}
	if why := t.Unavailable(); why != "" {
		return tools.Question{}, workspace.Say(sandbox.ErrUnavailable, "No command runs here: %s.", strings.TrimSuffix(why, "."))
	}
	shown := workspace.Visible(args.Command)
	if dir != "." {
		shown += "\n(in the folder " + workspace.Line(dir, workspace.MaxPath) + ")"
	}
	_, folders, err := c.Root.Host()
	if err != nil {
		return tools.Question{}, fmt.Errorf("find the work folder: %w", err)
	}
	profile := t.Profile
	for _, f := range folders {
		mode := "ro"
		if f.Write {
			mode = "rw"
		}
		profile += fmt.Sprintf("; folder %s=%s:%s", f.As, f.Dir, mode)
	}
	return tools.Question{Shown: shown, Args: c.Args, Cwd: strings.TrimSuffix(sandbox.WorkPath+"/"+dir, "/."), Sandbox: profile,
		Rule: tools.Offer(args.Command, t.Resolve, t.Stamp), Dangers: tools.Dangers(args.Command)}, nil
}

func (t execTool) Call(ctx context.Context, c tools.Call) (tools.Result, error) {
	args, dir, err := t.plan(c)
	if err != nil {
		return tools.Result{}, err
	}
	if t.Sandbox == nil {
		return tools.Result{}, workspace.Say(sandbox.ErrUnavailable, "No command runs here: there is no sandbox.")
	}
	cmd := sandbox.Command{Line: args.Command, Dir: dir, Limits: t.Limits, Egress: t.Egress, Output: c.Output}
	if strings.HasPrefix(args.Command, "-") || strings.HasPrefix(args.Command, "+") {
		cmd.Line = " " + args.Command // else the shell would take it for an option of its own
	}
	if words, ok := t.unasked(c, args.Command); ok {
		cmd.Line, cmd.Argv = "", words
		if filepath.Base(words[0]) == tools.Git {
			if cmd.Argv, err = gitArgv(c.Root, dir, words[0], words[1:]); err != nil {
				return tools.Result{}, err
			}
		}
	}
	var folders []workspace.Folder
	if cmd.Work, folders, err = c.Root.Host(); err != nil {
		return tools.Result{}, fmt.Errorf("find the work folder: %w", err)
	}
	if cmd.Control, err = filepath.EvalSymlinks(c.Control); c.Control != "" && err != nil {
		return tools.Result{}, fmt.Errorf("find the agent's folder: %w", err)
	}
	for _, f := range folders {
		cmd.Folders = append(cmd.Folders, sandbox.Mount{Host: f.Dir, As: f.As, RW: f.Write && f.Guard != nil, Guard: f.Guard})
	}
	if err := c.Root.PointMounts(sandbox.FoldersPath); err != nil {
		return tools.Result{}, err
	}
	out, err := t.Sandbox.Run(ctx, cmd)
	switch {
	case errors.Is(err, sandbox.ErrUnavailable):
		return tools.Result{}, workspace.Say(err, "No command runs here: %s.", strings.TrimSuffix(t.Sandbox.Last().String(), "."))
	case errors.Is(err, sandbox.ErrSpace):
		return tools.Result{}, workspace.Say(err, "The command was not begun: %s; %s.", whyFull(err), clearing(c.Root))
	case errors.Is(err, sandbox.ErrRefused):
		return tools.Result{}, workspace.Say(err, "The sandbox refused to run this: %s.", workspace.Line(err.Error(), 200))
	case err != nil:
		return tools.Result{}, fmt.Errorf("run a command: %w", err)
	}
	r := tools.TextResult(outcome(out, c.Root))
	r.Error = out.Code != 0 || out.Killed != ""
	r.Sandbox = t.Profile
	return r, nil
}

// unasked are the words of a line that the allow-list, or a rule of the session, let through. They run as they were read, without a shell in between
// that might read them otherwise.
func (t execTool) unasked(c tools.Call, line string) ([]string, bool) {
	if c.Decision == nil || !tools.RunsUnasked(c.Decision.Rule) || t.Resolve == nil {
		return nil, false
	}
	words, ok := tools.Literal(line)
	if !ok {
		return nil, false
	}
	program, ok := t.Resolve(words[0])
	if !ok {
		return nil, false
	}
	return append([]string{program}, slices.Clone(words[1:])...), true
}

// outcome is what the model reads: the output first, then how it ended.
func outcome(o sandbox.Outcome, root *workspace.Root) string {
	text := strings.TrimRight(workspace.Visible(string(o.Output)), "\n")
	if isBinary(o.Output) {
		text = fmt.Sprintf("(the output is not text: %d bytes of %s; write it to a file)", o.OutputSize, http.DetectContentType(o.Output))
	}
	if text == "" {
		text = "(no output)"
	}
	if o.Truncated {
		text += fmt.Sprintf("\n(%d bytes in all; the middle is cut out", o.OutputSize)
		file := workspace.Line(o.OutputFile, 200)
		switch {
		case o.OutputFile == "":
			text += "; it is in no file"
		case o.OutputKept < o.OutputSize:
			text += fmt.Sprintf("; its first %d bytes are in %s, which read_file shows", o.OutputKept, file)
		default:
			text += fmt.Sprintf("; all of it is in %s, which read_file shows", file)
		}
		text += ")"
	}
	how := ended(o)
	switch o.Killed {
	case "disk", "files", "space", "folder":
		how += "; " + clearing(root)
	case "":
		if o.Signal == "SIGXFSZ" {
			how += "; no file may grow as large here; " + clearing(root)
		}
	}
	return text + guarded(o) + "\n(" + how + ")"
}

// maxHeldShown is how many renamed paths a result names.
const maxHeldShown = 8

// guarded says what of an owner's folders was kept from the command.
func guarded(o sandbox.Outcome) (text string) {
	for _, c := range o.Closed {
		text += fmt.Sprintf("\n(the folder %s could only be read: %s)", c.As, workspace.Line(c.Why, 200))
	}
	for i, h := range o.Held {
		if i == maxHeldShown {
			return text + fmt.Sprintf("\n(and %d more were renamed)", len(o.Held)-i)
		}
		text += fmt.Sprintf("\n(%s/%s was renamed to %s, since programs of this machine take orders from it; an owner accepts it on the command line: parley folder accept %s %s)",
			h.As, workspace.Line(h.Path, 200), workspace.Line(h.Now, 200), h.As, rule.Word(workspace.Line(h.Path, 200)))
	}
	return text
}

func ended(o sandbox.Outcome) string {
	took := o.Took.Round(10 * time.Millisecond)
	switch o.Killed {
	case "":
	case "timeout":
		return fmt.Sprintf("stopped after %s, its time limit", took)
	case "memory":
		return "stopped: it used more memory than a command may"
	case "disk":
		return "stopped: it wrote more to the work folder than a command may"
	case "space":
		return "stopped: the disk of this machine is nearly full, and commands may not fill it"
	case "folder":
		return "stopped: the work folder holds all that it may"
	case "lost":
		return "stopped: something outside ended its sandbox; its outcome is unknown"
	case "files":
		return "stopped: it made more files than a command may"
	default:
		return "stopped: " + workspace.Line(o.Killed, 60)
	}
	if o.Signal != "" {
		return fmt.Sprintf("ended by %s after %s", workspace.Line(o.Signal, 20), took)
	}
	return fmt.Sprintf("exit code %d after %s", o.Code, took)
}
