//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"parley/gateway/client"
)

// process is a gateway as a process of its own, with a model that answers when the test lets it.
type process struct {
	t     *testing.T
	dir   string
	port  string
	model *httptest.Server
	asked chan struct{}
	let   chan struct{}

	cmd  *exec.Cmd
	log  *tail
	done chan error
}

// tail keeps what a process writes and wakes who waits for it.
type tail struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	grew chan struct{}
}

func (l *tail) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.grew != nil {
		close(l.grew)
		l.grew = nil
	}
	return l.buf.Write(p)
}

func (l *tail) wait(t *testing.T, text string) {
	t.Helper()
	late := time.NewTimer(30 * time.Second)
	defer late.Stop()
	for {
		l.mu.Lock()
		all := l.buf.String()
		if l.grew == nil {
			l.grew = make(chan struct{})
		}
		grew := l.grew
		l.mu.Unlock()
		if strings.Contains(all, text) {
			return
		}
		select {
		case <-grew:
		case <-late.C:
			t.Fatalf("it never says %q:\n%s", text, all)
		}
	}
}

func newProcess(t *testing.T) *process {
	t.Helper()
	d := &process{t: t, dir: t.TempDir(), asked: make(chan struct{}, 10), let: make(chan struct{})}
	d.model = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then does the server notice that the client has gone
		d.asked <- struct{}{}
		select {
		case <-d.let:
		case <-r.Context().Done():
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"id":"c","object":"chat.completion.chunk","model":"x","choices":[{"index":0,"delta":{"content":"the answer"},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(d.model.Close)
	var err error
	if d.port, err = freePort(); err != nil {
		t.Fatal(err)
	}
	d.write("")
	d.start()
	return d
}

func (d *process) write(more string) {
	d.t.Helper()
	yaml := fmt.Sprintf("data_dir: %s/data\ngateway: {listen: \"127.0.0.1:%s\"}\nmodels: [{name: m, api: openai, base_url: \"%s\", api_key: sk-canary-canary, model: x}]\n%s\n",
		d.dir, d.port, d.model.URL, more)
	if err := os.WriteFile(filepath.Join(d.dir, "parley.yaml"), []byte(yaml), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

func (d *process) start() {
	d.t.Helper()
	d.cmd = exec.Command("parley", "--config", filepath.Join(d.dir, "parley.yaml"), "gateway")
	d.log, d.done = &tail{}, make(chan error, 1)
	d.cmd.Stderr = d.log
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	process := d.cmd.Process
	d.t.Cleanup(func() { _ = process.Kill() }) // it has ended unless the test failed
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "Parley is ready: http://127.0.0.1:"+d.port) {
		d.t.Fatalf("%q, %v", line, err)
	}
	cmd, done := d.cmd, d.done
	go func() { done <- cmd.Wait() }()
}

func (d *process) signal(s os.Signal) {
	d.t.Helper()
	if err := d.cmd.Process.Signal(s); err != nil {
		d.t.Fatal(err)
	}
}

// ended is the exit code of the process, and how long it took.
func (d *process) ended(within time.Duration) int {
	d.t.Helper()
	select {
	case err := <-d.done:
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return exit.ExitCode()
		}
		if err != nil {
			d.t.Fatal(err)
		}
		return 0
	case <-time.After(within):
		d.t.Fatalf("it has not ended after %s", within)
		return -1
	}
}

func (d *process) send(m client.Message) (client.Answer, error) {
	token, err := os.ReadFile(filepath.Join(d.dir, "data", "token"))
	if err != nil {
		d.t.Fatal(err)
	}
	c, err := client.New("http://127.0.0.1:"+d.port, strings.TrimSpace(string(token)))
	if err != nil {
		d.t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(d.t.Context(), 30*time.Second)
	defer cancel()
	return c.Send(ctx, m)
}

// deaf blocks until the listener is closed: from then on only turns are waited for.
func (d *process) deaf() {
	d.t.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		c, err := net.DialTimeout("tcp", "127.0.0.1:"+d.port, time.Second)
		if err != nil {
			return
		}
		_ = c.Close() // nothing was sent
		select {
		case <-again.C:
		case <-d.t.Context().Done():
			d.t.Fatal("it goes on listening")
		}
	}
}

// R08: the first signal lets the running turn end, and the process ends well.
func TestR08_FirstSignalLetsTheTurnEnd(t *testing.T) {
	t.Parallel()
	d := newProcess(t)
	m := client.Message{Text: "work", Key: "k"}
	if _, err := d.send(m); err != nil {
		t.Fatal(err)
	}
	<-d.asked
	d.signal(syscall.SIGTERM)
	d.deaf()
	close(d.let)
	if code := d.ended(20 * time.Second); code != 0 {
		t.Errorf("exit code %d", code)
	}
	d.start()
	m.Wait = 20
	if a, err := d.send(m); err != nil || a.Text != "the answer" {
		t.Errorf("%+v, %v", a, err)
	}
	if n := len(d.asked); n != 0 {
		t.Errorf("the model was asked %d times more: the turn had not ended", n)
	}
	d.signal(os.Interrupt)
	if code := d.ended(20 * time.Second); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// R08: a second signal ends the process at once; what was under way is taken up at the next start and nothing is lost.
func TestR08_SecondSignalEndsAtOnceAndNothingIsLost(t *testing.T) {
	t.Parallel()
	d := newProcess(t)
	m := client.Message{Text: "work", Key: "k"}
	if _, err := d.send(m); err != nil {
		t.Fatal(err)
	}
	<-d.asked
	d.signal(syscall.SIGTERM)
	d.log.wait(t, "msg=stopping")
	began := time.Now()
	d.signal(os.Interrupt)
	if code := d.ended(20 * time.Second); code != failed {
		t.Errorf("exit code %d", code)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
	close(d.let)
	d.start()
	m.Wait = 20
	if a, err := d.send(m); err != nil || a.Text != "the answer" {
		t.Errorf("%+v, %v", a, err)
	}
	d.signal(syscall.SIGTERM)
	d.ended(20 * time.Second)
}

// R13: SIGHUP reads the configuration again; a bad one changes nothing, says why, and never ends the process.
func TestR13_HangUpReloadsAndABadConfigurationChangesNothing(t *testing.T) {
	t.Parallel()
	d := newProcess(t)
	d.write("agents: [{id: assistant, name: Renamed}]")
	d.signal(syscall.SIGHUP)
	d.log.wait(t, "configuration reloaded")
	d.write("nonsense: true")
	d.signal(syscall.SIGHUP)
	d.log.wait(t, "configuration refused, the former one stays in force")
	d.log.wait(t, "nonsense: unknown key")
	close(d.let)
	if a, err := d.send(client.Message{Text: "still there?", Wait: 20}); err != nil || a.Text != "the answer" {
		t.Errorf("%+v, %v", a, err)
	}
	d.signal(syscall.SIGTERM)
	if code := d.ended(20 * time.Second); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
