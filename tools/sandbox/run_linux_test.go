package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/tools/tail"
)

func TestCommandsDoWhatCommandsDo(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"pwd": "/work", "id -un": "agent", "cat own; ls": "mineown", "echo x >new && cat new && rm new": "x", "cat /agent/AGENTS.md": "be good", "ls /agent/work": "",
		"echo err >&2": "err", "exit 7": "", "echo $HOME $PATH": "/tmp /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "hostname": "sandbox", "cat": "",
		"for i in 1 2 3; do echo $i & done; wait": "", "mkfifo f && (echo x >f &) && cat f && rm f": "x", "ls /folders": "", "touch /tmp/a && mv /tmp/a /work/a && ls /work/a && rm /work/a": "/work/a",
		"echo x | tr x y": "y", "wc -c </dev/zero & kill $!": "", "test -w /usr || echo no": "no", "echo hi >/dev/stderr": "hi", "cat /etc/passwd | wc -l": "3",
	} {
		w := newWorld(t)
		out := w.sh(line)
		if got := strings.TrimSpace(strings.ReplaceAll(string(out.Output), "\n", "")); got != want && want != "" {
			t.Errorf("%s: got %q, want %q (%+v)", line, got, want, out)
		}
		if out.Killed != "" || out.Code == 7 != (line == "exit 7") {
			t.Errorf("%s: %+v", line, out)
		}
	}
}

func TestOutcomesSayHowItEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if out := w.sh("kill -SEGV $$"); out.Code != 139 || out.Signal != "SIGSEGV" || out.Killed != "" {
		t.Errorf("a signal: %+v", out)
	}
	w.command.Argv, w.command.Line = []string{"no-such-program"}, ""
	if out := w.run(); out.Code != 127 || !strings.Contains(string(out.Output), "no-such-program: not found") {
		t.Errorf("a missing program: %+v %s", out, out.Output)
	}
	w.command.Argv = []string{"echo", "-n", "a  b", "$HOME", "*"}
	if out := w.run(); string(out.Output) != "a  b $HOME *" {
		t.Errorf("arguments: %q", out.Output)
	}
	w.command.Dir = "missing"
	if out := w.run(); out.Code != 127 {
		t.Errorf("a missing folder: %+v", out)
	}
	ctx, cancel := context.WithCancel(t.Context())
	stop := time.AfterFunc(300*time.Millisecond, cancel)
	defer stop.Stop()
	w.command.Argv, w.command.Dir = []string{"sleep", "60"}, ""
	if out, err := w.n.run(ctx, w.command, w.how); err == nil && out.Killed != "stopped" || err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("a stop: %+v %v", out, err)
	}
}

// What a command writes is there to be watched before it ends, and whoever watches and does not go on does not hold it up.
func TestOutputIsWatchedWhileItComes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.command.Output = tail.New()
	seen := make(chan tail.View, 1)
	free := tail.Free{Text: func(s string) string { return s }}
	leave := w.command.Output.Watch(t.Context(), slog.New(slog.DiscardHandler), free, func(ctx context.Context, v tail.View) { seen <- v; <-ctx.Done() })
	defer leave()
	ended := make(chan Outcome, 1)
	w.command.Line = "echo begun; while [ ! -e go ]; do sleep 0.02; done; seq 1 200000"
	go func() {
		out, err := w.n.run(t.Context(), w.command, w.how)
		if err != nil {
			t.Error(err)
		}
		ended <- out
	}()
	if v := <-seen; v.Text != "begun\n" || v.Lines != 1 {
		t.Errorf("seen %+v", v)
	}
	w.put("agents/a/work/s1/go", "")
	out := <-ended // while nobody takes what it writes
	if out.Code != 0 || out.Killed != "" || out.OutputSize != int64(len("begun\n"))+1288895 {
		t.Errorf("it ended as %d %s after %d bytes", out.Code, out.Killed, out.OutputSize)
	}
}

func TestCommandsThatAskForTooMuchAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/root"
	}
	w.n.hide = []string{filepath.Join(w.dir, "data")}
	for name, change := range map[string]func(*Command){
		"empty": func(c *Command) { c.Line = "" }, "NUL": func(c *Command) { c.Line = "echo \x00" }, "both": func(c *Command) { c.Argv = []string{"true"} },
		"long": func(c *Command) { c.Line = strings.Repeat("x", maxLine+1) }, "dir": func(c *Command) { c.Dir = "/etc" }, "climb": func(c *Command) { c.Dir = "a/../../etc" },
		"relative": func(c *Command) { c.Work = "work" }, "root": func(c *Command) { c.Work = "/" }, "name": func(c *Command) { c.Folders = []Mount{{Host: w.dir, As: "../agent"}} },
		"preload": func(c *Command) { c.Env = []string{"LD_PRELOAD=/work/x.so"} }, "path": func(c *Command) { c.Env = []string{"PATH=/work"} }, "git": func(c *Command) { c.Env = []string{"GIT_SSH_COMMAND=x"} },
		"proxy": func(c *Command) { c.Env = []string{"https_proxy=http://x"} }, "odd": func(c *Command) { c.Env = []string{"A B=1"} },
		"the gateway's data": func(c *Command) { c.Folders = []Mount{{Host: w.dir, As: "all", RW: true}} }, "inside it": func(c *Command) { c.Folders = []Mount{{Host: filepath.Join(w.dir, "data"), As: "d", RW: true}} },
		"a home": func(c *Command) { c.Folders = []Mount{{Host: home, As: "home", RW: true}} },
	} {
		c := w.command
		c.Line = "echo ran"
		change(&c)
		if out, err := w.n.run(t.Context(), c, w.how); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v, %s", name, err, out.Output)
		}
	}
}

func TestFoldersAppearWithTheirRights(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("notes/a", "read me")
	w.put("notes/private/key", canary)
	w.put("desk/b", "write me")
	w.n.hide = []string{filepath.Join(w.dir, "notes/private")}
	w.command.Folders = []Mount{{Host: filepath.Join(w.dir, "notes"), As: "notes"}, {Host: filepath.Join(w.dir, "desk"), As: "desk", RW: true}}
	out := w.sh("cat /folders/notes/a; echo x >/folders/notes/a; cat /folders/notes/private/key; ls -A /folders/notes/private; echo more >>/folders/desk/b; rm /folders/desk/none; echo new >/folders/desk/c")
	if s := string(out.Output); !strings.Contains(s, "read me") || strings.Contains(s, canary) || w.read("notes/a") != "read me" {
		t.Errorf("a folder to read: %s", s)
	}
	if w.read("desk/b") != "write memore\n" || w.read("desk/c") != "new\n" {
		t.Errorf("a folder to write: %s", out.Output)
	}
	if info, err := os.Stat(filepath.Join(w.dir, "desk/c")); err != nil || !ownedBySelf(info) {
		t.Errorf("what was made there does not belong to the folder's owner: %v %v", info, err)
	}
	if err := os.Symlink("/etc", filepath.Join(w.dir, "link")); err != nil {
		t.Fatal(err)
	}
	w.command.Folders = []Mount{{Host: filepath.Join(w.dir, "link"), As: "link"}}
	w.command.Line = "ls /folders/link"
	if out, err := w.n.run(t.Context(), w.command, w.how); err == nil {
		t.Errorf("a folder that became a link was shown: %s", out.Output)
	}
}

// echoProxy answers each connection with what it was sent.
type echoProxy struct{}

func (echoProxy) ServeListener(ctx context.Context, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	for {
		c, err := l.Accept()
		if err != nil {
			return nil
		}
		buf := make([]byte, 64)
		n, _ := c.Read(buf)
		fmt.Fprintf(c, "proxy heard %q", buf[:n])
		c.Close()
	}
}

func TestEgressReachesTheProxyAndNothingElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.n.way = echoProxy{}
	w.command.Egress = true
	if out := w.sh("echo $HTTPS_PROXY $https_proxy"); strings.TrimSpace(string(out.Output)) != "http://127.0.0.1:3128 http://127.0.0.1:3128" {
		t.Errorf("the environment: %q", out.Output)
	}
	if out := w.hostile("talk", "127.0.0.1:3128", "hello"); !strings.Contains(string(out.Output), `proxy heard "hello"`) {
		t.Errorf("the proxy was not reached: %s", out.Output)
	}
	w.command.Egress = false
	if out := w.hostile("talk", "127.0.0.1:3128", "hello"); strings.Contains(string(out.Output), "heard") {
		t.Errorf("without egress the proxy was reached: %s", out.Output)
	}
}

func TestLongOutputKeepsBothEndsAndTheWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.command.Limits.Output = 1000
	out := w.sh("i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done")
	s := string(out.Output)
	if !strings.HasPrefix(s, "line 0\n") || !strings.HasSuffix(s, "line 1999\n") || len(s) > 1100 || !out.Truncated || !strings.Contains(s, "bytes are left out here") {
		t.Errorf("%d bytes: %s", len(s), s)
	}
	data, err := os.ReadFile(filepath.Join(w.work, out.OutputFile))
	if err != nil || int64(len(data)) != out.OutputSize || strings.Count(string(data), "\n") != 2000 {
		t.Errorf("the whole: %d bytes of %d, %v", len(data), out.OutputSize, err)
	}
	for range keptFiles + 4 {
		w.sh("yes | head -n 1000")
	}
	if n := len(list(filepath.Join(w.work, outputDir))); n > keptFiles+2 {
		t.Errorf("%d files are kept", n)
	}
	w.sh("rm -rf .output; ln -s /etc .output; yes | head -n 1000")
	w.sh("rm -rf .output; mkfifo .output; yes | head -n 1000") // must not block
}

func TestOutputRingIsExact(t *testing.T) {
	t.Parallel()
	all := strings.Repeat("0123456789abcdef", 100)
	for limit := 2; limit < 40; limit++ {
		for _, step := range []int{1, 3, 7, 64, 1600} {
			o := newOutput(limit, func() *spill { return nil })
			o.drain(io.LimitReader(&chunks{all, step}, 1600))
			got := string(o.bytes(o.size))
			if !strings.HasPrefix(got, all[:limit/2]) || !strings.HasSuffix(got, all[1600-(limit-limit/2):]) || o.size != 1600 {
				t.Fatalf("limit %d, step %d: %q", limit, step, got)
			}
		}
	}
}

type chunks struct {
	rest string
	step int
}

func (c *chunks) Read(p []byte) (int, error) {
	if c.rest == "" {
		return 0, io.EOF
	}
	n := copy(p, c.rest[:min(c.step, len(c.rest))])
	c.rest = c.rest[n:]
	return n, nil
}

func TestSlotsAreBoundedAndWaitingEndsWithItsContext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := newNS(Config{Backend: "ns", Concurrent: 1}, Deps{})
	defer n.Close()
	n.last = w.n.last
	n.slots <- struct{}{}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("nobody waits"))
	w.command.Line = "true"
	if _, err := n.Run(ctx, w.command); err == nil || err.Error() != "nobody waits" {
		t.Errorf("waiting: %v", err)
	}
	<-n.slots
	if out, err := n.Run(t.Context(), w.command); err != nil || out.Code != 0 {
		t.Errorf("afterwards: %+v %v", out, err)
	}
}

func TestWithoutAProbeNothingRuns(t *testing.T) {
	t.Parallel()
	for _, b := range []Backend{New(Config{Backend: "none"}, Deps{}), New(Config{Backend: "ns"}, Deps{})} {
		if _, err := b.Run(t.Context(), Command{Line: "true", Work: t.TempDir()}); !errors.Is(err, ErrUnavailable) || b.Tier() != TierNone {
			t.Errorf("%v, tier %s", err, b.Tier())
		}
	}
}

// version2 lays out a tree of control groups version 2 as a system has it.
func version2(t *testing.T, own string, files map[string]string) string {
	t.Helper()
	sys := t.TempDir()
	files["proc/self/mountinfo"] = "30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
	files["proc/self/cgroup"] = "0::" + own + "\n"
	for name, text := range files {
		name = filepath.Join(sys, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return sys
}

func TestCgroupsOfVersion2AreFoundWhereTheyAreDelegated(t *testing.T) {
	t.Parallel()
	const tree = "sys/fs/cgroup"
	sys := version2(t, "/user.slice/parley.service/gateway", map[string]string{
		tree + "/user.slice/parley.service/gateway/cgroup.controllers": "memory pids", tree + "/user.slice/parley.service/gateway/cgroup.procs": "1\n2\n",
		tree + "/user.slice/parley.service/cgroup.subtree_control": "cpu memory pids"})
	if err := os.Mkdir(filepath.Join(sys, tree, "user.slice/parley.service/gateway/cgroup.subtree_control"), 0o700); err != nil { // as if it could not be written
		t.Fatal(err)
	}
	g, err := findCgroups(sys)
	if err != nil || g.version != 2 || g.above[0] != filepath.Join(sys, tree, "user.slice/parley.service") {
		t.Fatalf("%+v %v", g, err)
	}
	c, err := g.make()
	if err == nil {
		err = c.limit(DefaultLimits(), switches{})
	}
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"memory.max": "562036736", "memory.swap.max": "0", "memory.oom.group": "1", "pids.max": "288"} {
		if data, err := os.ReadFile(filepath.Join(c.dirs[0], file)); err != nil || string(data) != want {
			t.Errorf("%s: %q %v", file, data, err)
		}
	}
	if c.killed() {
		t.Error("killed before it began")
	}
	if err := os.WriteFile(filepath.Join(c.dirs[0], "memory.events"), []byte("oom 1\noom_kill 1\n"), 0o600); err != nil || !c.killed() {
		t.Error("the kernel's kill was not seen")
	}
	sys = version2(t, "/user.slice", map[string]string{tree + "/user.slice/cgroup.controllers": "cpu"})
	if _, err := findCgroups(sys); err == nil || !strings.Contains(err.Error(), "Delegate=yes") {
		t.Errorf("not delegated: %v", err)
	}
}
