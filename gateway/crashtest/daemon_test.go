//go:build !race

package crashtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"parley/channels/channeltest/stage"
)

// daemon is one process of Parley.
type daemon struct {
	cmd    *exec.Cmd
	began  time.Time
	exited chan struct{} // closed when it is gone and its log is read
	code   int           // of the exit, -1 after a signal; read after exited
}

// program says what to start.
type program struct {
	path string
	args []string
	env  []string
}

// built is the binary that people run, made once for all tests.
var built struct {
	once sync.Once
	dir  string
	err  error
}

// realProgram is the binary that people run.
func realProgram(t *testing.T, conf string) program {
	t.Helper()
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "parley-crashtest-"); built.err != nil {
			return
		}
		if out, err := exec.Command("go", "build", "-o", built.dir, "parley/cmd/parley").CombinedOutput(); err != nil {
			built.err = fmt.Errorf("build the binary: %w\n%s", err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return program{path: filepath.Join(built.dir, "parley"), args: []string{"gateway", "--config", conf}}
}

// testProgram is this test binary as the daemon.
func testProgram(t *testing.T, conf string) program {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return program{path: path, env: []string{childConfig + "=" + conf}}
}

// start begins a process; over is called when it is gone. Its environment is empty but for env, so that no key of the
// developer's gets in.
func (p program) start(t *testing.T, log *stage.Log, over func(), env ...string) *daemon {
	t.Helper()
	d := &daemon{cmd: exec.Command(p.path, p.args...), exited: make(chan struct{})}
	d.cmd.Env = append(append([]string{"HOME=" + filepath.Dir(p.path), "PATH=" + os.Getenv("PATH")}, p.env...), env...)
	d.cmd.Stdout, d.cmd.Stderr = log, log
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	d.began = time.Now()
	started := make(chan error)
	go func() { // ends with the process
		runtime.LockOSThread() // Pdeathsig is of the thread that forks, and some threads of this process end: prctl(2)
		defer runtime.UnlockOSThread()
		err := d.cmd.Start()
		if started <- err; err != nil {
			return
		}
		_ = d.cmd.Wait() // a killed one says so in its state
		d.code = d.cmd.ProcessState.ExitCode()
		close(d.exited)
		over()
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	return d
}

// kill ends it as a crash would and returns when it is gone.
func (d *daemon) kill() {
	_ = d.cmd.Process.Signal(syscall.SIGKILL) // or it is gone already
	<-d.exited
}

func (d *daemon) term() { _ = d.cmd.Process.Signal(syscall.SIGTERM) } // as kill

func (d *daemon) gone() bool {
	select {
	case <-d.exited:
		return true
	default:
		return false
	}
}
