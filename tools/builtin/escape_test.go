//go:build linux

package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"parley/tools"
	"parley/tools/sandbox"
	"parley/workspace"
)

const canary = "the host's secret"

// plant is an agent's folder with two work folders in it, and a host around it. Its tools are the real ones, or others
// with one defence off.
type plant struct {
	desk
	base  string
	agent string // the agent's folder: its control files
	list  []tools.Tool
}

func newPlant(t *testing.T) *plant {
	t.Helper()
	base := t.TempDir()
	p := &plant{base: base, agent: filepath.Join(base, "agents", "a")}
	work := filepath.Join(p.agent, "work", "mine")
	for name, text := range map[string]string{"host": canary, "agents/a/AGENTS.md": canary, "agents/a/SOUL.md": canary, "agents/a/skills/s/SKILL.md": canary,
		"agents/a/work/other/f": canary, "agents/b/work/x/f": canary, "agents/a/work/mine/f": "mine", "agents/a/work/mine/dir/f": "mine"} {
		p.put(t, name, text)
	}
	root, err := workspace.OpenRoot(work)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	p.desk = desk{TB: t, dir: work, root: root, box: &box{tier: sandbox.TierNS}, kept: new([]byte)}
	p.list = p.desk.tools()
	return p
}

func (p *plant) put(t *testing.T, name, text string) {
	t.Helper()
	at := filepath.Join(p.base, name)
	err := os.MkdirAll(filepath.Dir(at), 0o700)
	if err == nil {
		err = os.WriteFile(at, []byte(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (p *plant) link(target, name string) {
	p.Helper()
	if err := os.Symlink(target, filepath.Join(p.dir, name)); err != nil {
		p.Fatal(err)
	}
}

// do calls a tool and gives what the model reads.
func (p *plant) do(name, args string) (text string, err error) {
	for _, t := range p.list {
		if t.Spec().Name == name {
			res, err := t.Call(p.Context(), tools.Call{Args: json.RawMessage(args), Root: p.root, MaxFile: 1 << 20})
			if err != nil {
				said, _ := workspace.Sentence(err)
				return said, err
			}
			return workspace.PlainText(res.Content), nil
		}
	}
	p.Fatalf("no tool %s", name)
	return "", nil
}

// harmed says that a file outside of the work folder is not as it was, or that one has come to be there.
func (p *plant) harmed() bool {
	files := 0
	err := filepath.WalkDir(p.base, func(at string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case at == p.dir:
			return filepath.SkipDir
		}
		if d.Type().IsRegular() {
			data, err := os.ReadFile(at)
			if err != nil {
				return err
			}
			files++
			if string(data) != canary {
				files = 1000
			}
		}
		return nil
	})
	if err != nil {
		p.Fatal(err)
	}
	return files != 6
}

// each tries the paths with every way that a file tool has; true: one of them got out.
func each(paths ...string) func(*plant) bool {
	return func(p *plant) bool {
		for _, path := range paths {
			for _, c := range [][2]string{
				{"read_file", argsOf(p, "path", path)}, {"list_dir", argsOf(p, "path", path)}, {"send_file", argsOf(p, "path", path)},
				{"edit_file", argsOf(p, "path", path, "old_text", "secret", "new_text", "gone")}, {"write_file", argsOf(p, "path", path, "content", "owned")},
				{"exec", argsOf(p, "command", "ls", "working_dir", path)},
			} {
				text, err := p.do(c[0], c[1])
				if strings.Contains(text, canary) || string(*p.kept) == canary || p.harmed() || err != nil && (len(text) > 400 || text != workspace.Visible(text)) {
					return true
				}
			}
		}
		return false
	}
}

// after makes something in the work folder first.
func after(make func(*plant), try func(*plant) bool) func(*plant) bool {
	return func(p *plant) bool { make(p); return try(p) }
}

// naive are file tools as one writes them without a Root: the path joined to the folder, perhaps looked at before.
type naive struct {
	name string
	dir  string
	look func(dir, path string) (string, error) // what is checked first, and the name that is opened
	kept *[]byte
}

func (n naive) Spec() tools.Spec { return tools.Spec{Name: n.name} }

func (n naive) Call(_ context.Context, c tools.Call) (tools.Result, error) {
	var a map[string]any
	if err := json.Unmarshal(c.Args, &a); err != nil {
		return tools.Result{}, err
	}
	text := func(k string) string { s, _ := a[k].(string); return s }
	at, err := n.look(n.dir, text("path"))
	if err != nil {
		return tools.Result{}, workspace.Say(err, "%s", err)
	}
	switch n.name {
	case "write_file":
		err = os.WriteFile(at, []byte(text("content")), 0o600)
	case "read_file", "send_file":
		var f *os.File
		if f, err = os.OpenFile(at, os.O_RDONLY|syscall.O_NONBLOCK, 0); err == nil {
			defer f.Close()
			var data []byte
			if data, err = io.ReadAll(io.LimitReader(f, 64<<10)); err == nil {
				return tools.TextResult(string(data)), nil
			}
		}
	default:
		return tools.TextResult("not tried"), nil
	}
	if err != nil {
		return tools.Result{}, workspace.Say(err, "%s", err)
	}
	return tools.TextResult("done"), nil
}

// broken puts naive file tools in place of the real ones.
func broken(look func(dir, path string) (string, error)) func(*plant) {
	return func(p *plant) {
		p.list = nil
		for _, name := range []string{"read_file", "write_file", "edit_file", "list_dir", "send_file", "exec"} {
			p.list = append(p.list, naive{name, p.dir, look, p.kept})
		}
	}
}

func joined(dir, path string) (string, error) { return filepath.Join(dir, path), nil }

// byText refuses what climbs as text, and follows links.
func byText(dir, path string) (string, error) {
	if at := filepath.Join(dir, path); strings.HasPrefix(at+"/", dir+"/") {
		return at, nil
	}
	return "", workspace.ErrDenied
}

// byLook follows the links, looks where they lead, and then opens the name again.
func byLook(dir, path string) (string, error) {
	at := filepath.Join(dir, path)
	real, err := filepath.EvalSymlinks(at)
	if err != nil {
		real, err = filepath.EvalSymlinks(filepath.Dir(at))
	}
	if err != nil || !strings.HasPrefix(real+"/", dir+"/") {
		return "", workspace.ErrDenied
	}
	return at, nil
}

// unescaped reads a path as a generous program would.
func unescaped(dir, path string) (string, error) {
	plain, err := url.PathUnescape(path)
	if err != nil {
		return "", err
	}
	if u, err := url.Parse(plain); err == nil && u.Scheme == "file" {
		return u.Path, nil
	}
	if filepath.IsAbs(plain) {
		return plain, nil
	}
	return filepath.Join(dir, strings.ReplaceAll(plain, `\`, "/")), nil
}

type escape struct {
	id      string
	attempt func(*plant) bool // true: it got out
	broken  func(*plant)      // with the defence off
}

func prove(t *testing.T, list ...escape) {
	t.Helper()
	for i, e := range list {
		t.Run(fmt.Sprintf("%s-%d", e.id, i+1), func(t *testing.T) {
			t.Parallel()
			if e.attempt(newPlant(t)) {
				t.Error("it got out")
			}
			weak := newPlant(t)
			if e.broken(weak); !e.attempt(weak) {
				t.Error("with the defence off nothing got out either: the test would not notice if it were gone")
			}
		})
	}
}

func TestE01_E02_E04_E05_E07_FileToolsStayInside(t *testing.T) {
	t.Parallel()
	hard := func(p *plant) {
		if err := os.Link(filepath.Join(p.base, "host"), filepath.Join(p.dir, "hard")); err != nil {
			p.Fatal(err)
		}
	}
	prove(t,
		escape{"E01", each("../../../../host", "dir/../../../../../host", "./../other/f"), broken(joined)},
		escape{"E01", each("%2e%2e/%2e%2e/%2e%2e/%2e%2e/host", `..\..\..\..\host`), broken(unescaped)},
		escape{"E02", after(func(p *plant) { p.link(filepath.Join(p.base, "host"), "l") }, each("l", "l/", "l/.")), broken(byText)},
		escape{"E02", after(func(p *plant) { p.link("../../../..", "up") }, each("up/host", "up/new", "./up/host")), broken(byText)},
		escape{"E04", after(func(p *plant) { p.link("/proc/self/root", "root") }, func(p *plant) bool { return each("root" + p.base + "/host")(p) }), broken(byText)},
		escape{"E05", after(hard, each("hard")), broken(byLook)},
		escape{"E07", each("f\x00", strings.Repeat("a/", 3000), "f\xff", "f\u202egnp", "\x1b[2Jf"), broken(joined)},
	)
}

// TestE03_WritesDoNotFollowASwap exchanges a folder and a link to the host while files are written and edited through it.
func TestE03_WritesDoNotFollowASwap(t *testing.T) {
	t.Parallel()
	race := func(p *plant, d time.Duration) (tries int, out bool) {
		p.link(p.base, "swap")
		stop, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			for {
				select {
				case <-stop:
					return
				default:
					_ = unix.Renameat2(unix.AT_FDCWD, filepath.Join(p.dir, "swap"), unix.AT_FDCWD, filepath.Join(p.dir, "dir"), unix.RENAME_EXCHANGE) // it is there, always
				}
			}
		}()
		defer func() { close(stop); <-done }()
		limit := time.NewTimer(d)
		defer limit.Stop()
		for ; ; tries++ {
			_, _ = p.do("write_file", argsOf(p, "path", "dir/host", "content", "owned")) // most are refused
			text, _ := p.do("edit_file", argsOf(p, "path", "dir/host", "old_text", "secret", "new_text", "gone"))
			data, err := os.ReadFile(filepath.Join(p.base, "host"))
			if err != nil || string(data) != canary || strings.Contains(text, canary) {
				return tries, true
			}
			select {
			case <-limit.C:
				return tries, false
			default:
			}
		}
	}
	tries, out := race(newPlant(t), 2*time.Second)
	if out {
		t.Error("it got out")
	}
	weak := newPlant(t)
	broken(byLook)(weak)
	lost, out := race(weak, 30*time.Second)
	if !out {
		t.Error("with the defence off nothing got out either: the test would not notice if it were gone")
	}
	t.Logf("0 of %d; with the defence off after %d", tries, lost)
}

func TestE06_SpecialFilesAreNotWritten(t *testing.T) {
	t.Parallel()
	sparse := func(p *plant) bool {
		at := filepath.Join(p.dir, "sparse")
		err := os.WriteFile(at, []byte("secret"), 0o600)
		if err == nil {
			err = os.Truncate(at, 1<<40)
		}
		if err != nil {
			p.Skip("this file system has no file of a terabyte")
		}
		for name, args := range map[string]string{"read_file": `{"path":"sparse"}`, "edit_file": `{"path":"sparse","old_text":"secret","new_text":"x"}`, "send_file": `{"path":"sparse"}`} {
			if text, err := p.do(name, args); err == nil && text != "not tried" {
				return true
			}
		}
		return false
	}
	special := func(p *plant) bool {
		if err := syscall.Mkfifo(filepath.Join(p.dir, "pipe"), 0o600); err != nil {
			p.Fatal(err)
		}
		reader, err := os.OpenFile(filepath.Join(p.dir, "pipe"), os.O_RDONLY|syscall.O_NONBLOCK, 0) // a write would come through
		if err != nil {
			p.Fatal(err)
		}
		defer reader.Close()
		out := false
		for _, path := range []string{"pipe", "dir"} {
			for name, args := range map[string]string{"write_file": argsOf(p, "path", path, "content", "x"), "read_file": argsOf(p, "path", path), "send_file": argsOf(p, "path", path),
				"edit_file": argsOf(p, "path", path, "old_text", "a", "new_text", "b")} {
				text, err := p.do(name, args)
				out = out || err == nil && text != "not tried"
			}
		}
		return out
	}
	prove(t, escape{"E06", sparse, broken(byLook)}, escape{"E06", special, broken(byLook)})
}

func TestE11_E12_E13_OtherSessionsAndControlFilesAreOutOfReach(t *testing.T) {
	t.Parallel()
	prove(t,
		escape{"E11", each("../other/f", "../../../b/work/x/f", "other/../../other/f"), broken(joined)},
		escape{"E11", after(func(p *plant) { p.link("../other", "other") }, each("other/f", "other/new")), broken(byText)},
		escape{"E12", each("../../AGENTS.md", "../../SOUL.md", "../../skills/s/SKILL.md"), broken(joined)},
		escape{"E12", after(func(p *plant) { p.link("../../AGENTS.md", "AGENTS.md") }, each("AGENTS.md")), broken(byText)},
		escape{"E12", after(func(p *plant) {
			if err := os.Link(filepath.Join(p.agent, "SOUL.md"), filepath.Join(p.dir, "SOUL.md")); err != nil {
				p.Fatal(err)
			}
		}, each("SOUL.md")), broken(byLook)},
		escape{"E13", each("../../HEARTBEAT.md", "../../skills/new.md", "../../memory"), broken(joined)},
		escape{"E13", after(func(p *plant) { p.link("../../skills", "skills") }, each("skills/new.md", "skills/s/SKILL.md")), broken(byText)},
		escape{"E13", func(p *plant) bool { // the parent of a control file is exchanged while the work folder is open
			old := p.agent + ".old"
			if err := errors.Join(os.Rename(p.agent, old), os.MkdirAll(filepath.Join(p.agent, "work/mine"), 0o700)); err != nil {
				p.Fatal(err)
			}
			p.put(p.TB.(*testing.T), "agents/a/AGENTS.md", canary)
			_, _ = p.do("write_file", argsOf(p, "path", "AGENTS.md", "content", "owned")) // it goes to the folder that was opened
			_, err := os.Stat(filepath.Join(p.agent, "work/mine/AGENTS.md"))
			return err == nil
		}, broken(joined)},
	)
}

// loose is exec with arguments of the model's choice.
type loose struct{ execTool }

func (l loose) Call(ctx context.Context, c tools.Call) (tools.Result, error) {
	var a struct {
		Command, Sandbox string
		Env              []string
		Egress           bool
		Timeout          time.Duration
	}
	if err := json.Unmarshal(c.Args, &a); err != nil {
		return tools.Result{}, err
	}
	_, err := l.Sandbox.Run(ctx, sandbox.Command{Line: a.Command, Env: a.Env, Egress: a.Egress, Limits: sandbox.Limits{Timeout: a.Timeout}})
	return tools.TextResult("done"), err
}

func looseExec(p *plant) {
	p.list = []tools.Tool{loose{execTool{ExecOptions{Sandbox: p.box}}}}
}

func TestE44_E45_E46_TheModelPicksTheLineAndNothingElse(t *testing.T) {
	t.Parallel()
	// ran says whether a command came through that is not as the operator has it.
	ran := func(args ...string) func(*plant) bool {
		return func(p *plant) bool {
			for _, a := range args {
				_, _ = p.do("exec", a) // most are refused
			}
			return slices.ContainsFunc(p.box.ran, func(c sandbox.Command) bool {
				return len(c.Env) > 0 || c.Egress || c.Limits != sandbox.Limits{} || strings.HasPrefix(c.Line, "-") || strings.HasPrefix(c.Line, "+")
			})
		}
	}
	prove(t,
		escape{"E44", ran(`{"command":"ls","env":["LD_PRELOAD=/work/x.so"]}`, `{"command":"ls","Env":["PATH=/work"]}`, `{"command":"ls","ENV":["BASH_ENV=/work/x"]}`,
			`{"command":"ls","environment":{"GIT_SSH_COMMAND":"x"}}`), looseExec},
		escape{"E45", ran(`{"command":"-c id"}`, `{"command":"--rcfile=/work/x"}`, `{"command":"+x"}`), looseExec},
		escape{"E46", ran(`{"command":"ls","sandbox":"none"}`, `{"command":"ls","egress":true}`, `{"command":"ls","timeout":3600000000000}`), looseExec},
		escape{"E46", func(p *plant) bool { // a file that looks like ours steers nothing
			_, err := p.do("write_file", argsOf(p, "path", "parley.yaml", "content", "sandbox: {backend: none}"))
			_, _ = p.do("exec", `{"command":"ls"}`)
			return err != nil || len(p.box.ran) != 1 || p.box.ran[0].Work == ""
		}, func(p *plant) { looseExec(p); p.list = append(p.list, writeFile{}) }},
	)
}

func TestE44_E45_AnAllowedCommandIsNoWayRoundTheAllowList(t *testing.T) {
	t.Parallel()
	lines := []string{"LD_PRELOAD=./x.so ls -l", "PATH=. ls -l", "env ls -l", "ls -l\nid", "ls -l;id", "ls -l $(id)", "ls -l *", "./ls -l", "ls -l > x", "ls -l -a"}
	unasked := func(match func(string) bool) (list []string) {
		for _, l := range lines {
			if match(l) {
				list = append(list, l)
			}
		}
		return list
	}
	set := tools.NewSet([]tools.Tool{execTool{ExecOptions{Sandbox: &box{tier: sandbox.TierNS}}}}, tools.PolicyConfig{Resolve: FindProgram,
		Agents: map[workspace.AgentID]tools.AgentPolicy{"a": {Exec: tools.ExecAllowlist, ExecAllow: []tools.ExecRule{{Program: "ls", Args: []string{"-l"}}}}}})
	owner := tools.Subject{Agent: "a", Actor: workspace.Actor{Person: "p", Role: workspace.Owner}}
	if got := unasked(func(l string) bool { return !set.Decide(owner, "exec", json.RawMessage(argsOf(t, "command", l))).Ask }); len(got) > 0 {
		t.Errorf("run unasked: %q", got)
	}
	if v := set.Decide(owner, "exec", json.RawMessage(`{"command":"ls -l"}`)); v.Ask {
		t.Errorf("the allowed line asks: %+v", v)
	}
	if got := unasked(func(l string) bool { return strings.Contains(l, "ls -l") }); len(got) != len(lines) { // a match by text
		t.Errorf("a match by text lets only %q through", got)
	}
}

func TestE41_OutputIsNeutralised(t *testing.T) {
	t.Parallel()
	hostile := "\x1b]0;own\x07\x1b[31mred\x9b2J\u202egnp\x00\xff\u2066x\U000e0041\r\b"
	shown := func(p *plant) bool {
		p.box.out = sandbox.Outcome{Output: []byte("text, so that it is not taken for a picture, and then " + hostile), Truncated: true, OutputFile: "a\x1b[2J"}
		p.write("n\x1b[2J\u202e", "x")
		p.write("hostile", "text, so that it is not taken for a picture, and then "+strings.ReplaceAll(hostile, "\x00", ""))
		for _, c := range [][2]string{{"exec", `{"command":"x"}`}, {"list_dir", `{"path":"."}`}, {"read_file", `{"path":"hostile"}`}, {"read_file", argsOf(p, "path", "\x1b[2J")}} {
			if text, _ := p.do(c[0], c[1]); text != workspace.Visible(text) {
				return true
			}
		}
		return false
	}
	prove(t, escape{"E41", shown, broken(joined)})
}

func TestE48_E49_OnlyTheWorkFolderIsSent(t *testing.T) {
	t.Parallel()
	sent := func(p *plant) bool {
		host := filepath.Join(p.base, "host")
		for _, args := range []string{argsOf(p, "path", "file://"+host), argsOf(p, "path", host), argsOf(p, "path", "file:"+host), argsOf(p, "path", `\\host\share\x`), argsOf(p, "path", "%2e%2e/%2e%2e/%2e%2e/%2e%2e/host"),
			argsOf(p, "media", host), argsOf(p, "file", host), argsOf(p, "Path", host), argsOf(p, "path", "f", "url", "file://"+host), argsOf(p, "path", "MEDIA:"+host)} {
			if text, _ := p.do("send_file", args); strings.Contains(text, canary) || string(*p.kept) == canary {
				return true
			}
		}
		return false
	}
	archive := func(p *plant) bool { // what came out of an archive: a link to the host, one to an absolute name, a second name
		p.link("../../../../host", "entry")
		p.link(filepath.Join(p.base, "host"), "entry2")
		if err := os.Link(filepath.Join(p.base, "host"), filepath.Join(p.dir, "entry3")); err != nil {
			p.Fatal(err)
		}
		return each("entry", "entry2", "entry3")(p)
	}
	prove(t, escape{"E49", sent, broken(unescaped)}, escape{"E48", archive, broken(byText)})
}
