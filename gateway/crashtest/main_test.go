//go:build !race

// Package crashtest kills the daemon, traces its system calls and lets its networks rage, and judges what people see and
// what is stored: see the table in table_test.go. It only has tests. They run without the race detector, which slows a
// daemon down so much that ten answers are on their way at any moment, and each can come twice.
package crashtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"parley/channels/all"
	"parley/configs"
	"parley/configs/source"
	"parley/gateway"
	"parley/tools"
	"parley/tools/sandbox"
)

// What a test binary that runs as the daemon reads from its environment.
const (
	childConfig  = "PARLEY_TEST_CHILD"       // the configuration; without it the binary runs tests
	childPoint   = "PARLEY_TEST_POINT"       // "name#n": the process kills itself at the n-th passage
	childPoints  = "PARLEY_TEST_POINTS"      // a file that gets the name of each point that is passed
	childSync    = "PARLEY_TEST_SYNCHRONOUS" // SQLite's setting
	childAct     = "PARLEY_TEST_ACT"         // a file that gets a line each time the tool act runs; without it there is none
	childSandbox = "PARLEY_TEST_SANDBOX"     // commands run; they do not where it is empty
)

func TestMain(m *testing.M) {
	sandbox.Init() // this binary is started again for each command
	if conf := os.Getenv(childConfig); conf != "" {
		os.Exit(childMain(conf))
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(built.dir) // empty: nothing was built
		os.Exit(code)
	}))
}

// childMain is cmd/parley's daemon with what only tests may ask for.
func childMain(conf string) int {
	var sections []configs.Section
	for _, f := range all.Factories() {
		sections = append(sections, configs.Section{Type: string(f.Network), Options: f.Options})
	}
	none := func(string) (string, bool) { return "", false }
	src := source.New(configs.LoadOptions{Path: conf, Sections: sections, Env: none})
	if _, err := src.Load(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	var box sandbox.Backend // nil: the real one
	if os.Getenv(childSandbox) == "" {
		box = sandbox.New(sandbox.Config{Backend: "none"}, sandbox.Deps{})
	}
	point := pointOf(os.Getenv(childPoint), os.Getenv(childPoints))
	var list []tools.Tool
	if file := os.Getenv(childAct); file != "" {
		list = append(list, fileTool{file, point})
	}
	g := gateway.New(gateway.Options{Source: src, Tools: list, Sandbox: box, Channels: all.Factories(), Env: none, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Synchronous: os.Getenv(childSync), Point: point, MemoryLimit: 4 << 30})
	if err := g.Start(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Printf("Parley is ready: %s (a test binary)\n", g.URL())
	<-ctx.Done()
	stop()
	end, cancel := context.WithTimeout(context.Background(), 25*time.Second)
	defer cancel()
	if err := g.Stop(end); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return 0
}

// pointOf is the hook that kills its own process at a point, or writes down which points there are.
func pointOf(armed, list string) func(string) {
	if armed == "" && list == "" {
		return nil
	}
	name, nth, _ := strings.Cut(armed, "#")
	left, _ := strconv.Atoi(nth)
	var mu sync.Mutex
	seen := map[string]bool{}
	return func(point string) {
		mu.Lock()
		defer mu.Unlock()
		if list != "" && !seen[point] {
			seen[point] = true
			note(list, point)
		}
		if point != name {
			return
		}
		if left--; left == 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // nothing more is done while the signal comes
		}
	}
}

func note(file, line string) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(f, line)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
