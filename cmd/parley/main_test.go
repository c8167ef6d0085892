package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"parley/cmd/parley/internal/cli"
	"parley/gateway/client"
	"parley/tools/sandbox"
)

// TestMain lets scripts run this very binary as parley.
func TestMain(m *testing.M) {
	sandbox.Init()
	testscript.Main(m, map[string]func(){"parley": main})
}

// freePort is one that nobody listens on now.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}

func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			port, err := freePort()
			if err != nil {
				return err
			}
			e.Setenv("PORT", port)
			e.Setenv("URL", "http://127.0.0.1:"+port)
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("PARLEY_GATEWAY_LISTEN", "127.0.0.1:"+port)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"model": modelCommand,
			// runs puts the id of the run in an answer into $RUN, and its end into $SHORT.
			"runs": func(ts *testscript.TestScript, _ bool, args []string) {
				var a client.Answer
				ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &a))
				ts.Setenv("RUN", a.RunID)
				ts.Setenv("SHORT", cli.Short(a.RunID))
			},
			// ready waits until a gateway answers.
			"ready": func(ts *testscript.TestScript, _ bool, _ []string) {
				c, err := client.New(ts.Getenv("URL"), "")
				ts.Check(err)
				defer c.Close()
				ts.Check(c.Wait(t.Context(), 20*time.Second))
			},
			// code runs a command and checks its exit code: code 2 parley nonsense
			"code": func(ts *testscript.TestScript, _ bool, args []string) {
				err := ts.Exec(args[1], args[2:]...)
				got := "0"
				if err != nil {
					var code int
					if _, scanned := fmt.Sscanf(err.Error(), "exit status %d", &code); scanned != nil {
						ts.Fatalf("%v", err)
					}
					got = fmt.Sprint(code)
				}
				if got != args[0] {
					ts.Fatalf("exit code %s, want %s", got, args[0])
				}
			},
			// mode checks a file's permissions: mode 600 data/token
			"mode": func(ts *testscript.TestScript, _ bool, args []string) {
				info, err := os.Stat(ts.MkAbs(args[1]))
				ts.Check(err)
				if got := fmt.Sprintf("%o", info.Mode().Perm()); got != args[0] {
					ts.Fatalf("%s has mode %s, want %s", args[1], got, args[0])
				}
			},
		},
	})
}
