package builtin

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/tools"
	"parley/tools/sandbox"
	"parley/tools/tail"
	"parley/workspace"
)

func TestExecRunsTheLineAsItIs(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("sub/f", "")
	d.box.out = sandbox.Outcome{Output: []byte("hello\n"), Took: 30 * time.Millisecond}
	watched := tail.New()
	d.with = func(c *tools.Call) { c.Control, c.Output = t.TempDir(), watched }
	d.gives("exec", argsOf(t, "command", "-n echo *; \"x\"\n$(y)", "working_dir", "sub"), "hello\n(exit code 0 after 30ms)")
	got := d.box.ran[0]
	if got.Line != " -n echo *; \"x\"\n$(y)" || got.Argv != nil || got.Dir != "sub" || got.Work != d.dir || got.Control == "" || got.Env != nil || got.Output != watched {
		t.Errorf("it ran %+v", got)
	}
	d.gives("exec", argsOf(t, "command", "pwd"), "hello\n(exit code 0 after 30ms)")
	if got := d.box.ran[1]; got.Dir != "." {
		t.Errorf("it ran in %q", got.Dir)
	}
	d.refuses("exec", argsOf(t, "command", "  "), "is empty")
	d.refuses("exec", argsOf(t, "command", "a\x00b"), "NUL")
	d.refuses("exec", argsOf(t, "command", strings.Repeat("x", maxCommand+1)), "longer than")
	d.refuses("exec", argsOf(t, "command", "ls", "working_dir", "sub/f"), "is not a folder")
	d.refuses("exec", argsOf(t, "command", "ls", "working_dir", "gone"), "no such")
	d.refuses("exec", argsOf(t, "command", "ls", "working_dir", "../x"), `may not hold ".."`)
	d.refuses("exec", argsOf(t, "command", "ls", "working_dir", "/etc"), "without a leading /")
	if len(d.box.ran) != 2 {
		t.Errorf("%d commands ran", len(d.box.ran))
	}
}

func TestExecSaysHowACommandEnded(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for want, out := range map[string]sandbox.Outcome{
		"(no output)\n(exit code 3 after 0s)":                            {Code: 3},
		"x\n(stopped after 1m0s, its time limit)":                        {Output: []byte("x"), Killed: "timeout", TimedOut: true, Took: time.Minute},
		"(no output)\n(stopped: it used more memory than a command may)": {Killed: "memory", Code: 137, Signal: "SIGKILL"},
		"(no output)\n(stopped: the disk of this machine is nearly full, and commands may not fill it; remove what is not needed with remove_file; the person can with /files)": {Killed: "space"},
		"(no output)\n(stopped: something outside ended its sandbox; its outcome is unknown)":                                                                                   {Killed: "lost"},
		"(no output)\n(ended by SIGSEGV after 0s)": {Signal: "SIGSEGV", Code: 139},
		"ab\n(99 bytes in all; the middle is cut out; all of it is in .o/1, which read_file shows)\n(exit code 0 after 0s)":           {Output: []byte("ab"), Truncated: true, OutputFile: ".o/1", OutputSize: 99, OutputKept: 99},
		"ab\n(99 bytes in all; the middle is cut out; its first 50 bytes are in .o/1, which read_file shows)\n(exit code 0 after 0s)": {Output: []byte("ab"), Truncated: true, OutputFile: ".o/1", OutputSize: 99, OutputKept: 50},
		"ab\n(99 bytes in all; the middle is cut out; it is in no file)\n(exit code 0 after 0s)":                                      {Output: []byte("ab"), Truncated: true, OutputSize: 99},
	} {
		d.box.out = out
		d.gives("exec", `{"command":"x"}`, want)
	}
	d.box.err = fmt.Errorf("%w: folder", sandbox.ErrRefused)
	d.refuses("exec", `{"command":"x"}`, "refused to run this")
	d.box.err, d.box.tier = sandbox.ErrUnavailable, sandbox.TierNone
	d.refuses("exec", `{"command":"x"}`, "there are no namespaces")
}

// TestAnAllowedLineRunsAsItWasRead: no shell reads a second time what the allow-list has read.
func TestAnAllowedLineRunsAsItWasRead(t *testing.T) {
	t.Parallel()
	if _, ok := FindProgram("ls"); !ok {
		t.Skip("there is no ls here")
	}
	d := newDesk(t)
	d.with = func(c *tools.Call) { c.Decision = &workspace.ToolDecision{Allow: true, Rule: tools.ExecAllowed + "1"} }
	if _, err := d.call("exec", `{"command":"ls  '-l a'"}`); err != nil {
		t.Fatal(err)
	}
	if got := d.box.ran[0]; got.Line != "" || len(got.Argv) != 2 || !strings.HasSuffix(got.Argv[0], "/ls") || got.Argv[1] != "-l a" {
		t.Errorf("it ran %+v", got)
	}
}

func TestT11_AQuestionShowsTheWholeLine(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.write("sub/f", "")
	exec := d.tools()[len(d.tools())-1]
	ask := func(args string) (tools.Question, error) {
		return tools.QuestionFor(t.Context(), exec, tools.Call{Args: json.RawMessage(args), Root: d.root})
	}
	line := "echo " + strings.Repeat("long ", 2000) + "\u202egnp; rm x"
	q, err := ask(argsOf(t, "command", line, "working_dir", "./sub/"))
	if err != nil || q.Shown != workspace.Visible(line)+"\n(in the folder sub)" || q.Cwd != "/work/sub" || q.Sandbox != "test" || len(q.Env) > 0 {
		t.Errorf("%+v %v", q, err)
	}
	if q, err = ask(`{"command":"ls"}`); err != nil || q.Shown != "ls" || q.Cwd != "/work" {
		t.Errorf("%+v %v", q, err)
	}
	if err := d.root.Mount(workspace.Folder{Dir: t.TempDir(), As: "notes", Write: true}); err != nil {
		t.Fatal(err)
	}
	other, err := ask(`{"command":"ls"}`)
	if err != nil || other.Sandbox == q.Sandbox || !strings.Contains(other.Sandbox, "notes=") {
		t.Errorf("a folder more is the same sandbox: %+v %v", other, err)
	}
	d.box.tier = sandbox.TierNone
	if _, err = ask(`{"command":"ls"}`); !errors.Is(err, sandbox.ErrUnavailable) {
		t.Errorf("without a sandbox a person is asked: %v", err)
	}
	if exec.(tools.Available).Unavailable() == "" {
		t.Error("without a sandbox exec is shown")
	}
}

func TestFindProgramTakesNoFileOfTheAgent(t *testing.T) {
	t.Parallel()
	for _, p := range []string{"", ".", "..", "./ls", "bin/ls", "../bin/ls", "/work/ls", "/tmp/ls", "/usr/bin/../bin/ls", "/usr//bin/ls", "no-such-program", "/usr/bin", "-l"} {
		if abs, ok := FindProgram(p); ok {
			t.Errorf("%q is %s", p, abs)
		}
	}
	sh, ok := FindProgram("sh")
	other, ok2 := FindProgram("/bin/sh")
	if !ok || !ok2 || sh != other || !slices.Contains([]string{"/usr/bin/sh", "/bin/sh"}, sh) {
		t.Errorf("sh is %q, /bin/sh is %q", sh, other)
	}
}
