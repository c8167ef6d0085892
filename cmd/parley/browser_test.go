package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"parley/channels"
	"parley/workspace"
	"parley/workspace/store"
)

// TestT01_T02_T03_T04_T20_Browser walks through WebChat with a real Chromium, against the binary as it is built. The walks
// are in channels/webchat/ui/e2e; .ci/browser finds the Chromium. PARLEY_WALK names one walk to do alone.
func TestT01_T02_T03_T04_T20_Browser(t *testing.T) {
	t.Parallel()
	b := newBrowser(t)
	args := []string{"walk.mjs"}
	if one := os.Getenv("PARLEY_WALK"); one != "" {
		args = append(args, one)
	}
	cmd := b.node(t, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	walked := 0
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var w struct {
			Walk, Error, Note string
			OK                bool
			MS                int
		}
		if err := json.Unmarshal(lines.Bytes(), &w); err != nil {
			t.Errorf("not a walk's line: %s", lines.Bytes())
			continue
		}
		walked++
		t.Run(w.Walk, func(t *testing.T) {
			t.Logf("%d ms. %s", w.MS, w.Note)
			if !w.OK {
				t.Errorf("%s\npictures: %s", w.Error, b.shots)
			}
		})
	}
	if err := cmd.Wait(); err != nil && !t.Failed() {
		t.Error(err)
	}
	if walked == 0 {
		t.Error("nobody walked")
	}
}

// TestShots makes the pictures that somebody has to look at; `make shots` runs it.
func TestShots(t *testing.T) {
	if os.Getenv("PARLEY_SHOOT") == "" {
		t.Skip("PARLEY_SHOOT is not set: run make shots")
	}
	cmd := newBrowser(t).node(t, "shots.mjs")
	cmd.Stdout = os.Stdout
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
}

// browser is what the walks need: a Chromium, the binary, data that is too much to be said by hand.
type browser struct{ bin, long, shots string }

func newBrowser(t *testing.T) browser {
	t.Helper()
	if os.Getenv("PARLEY_TEST_CHROMIUM") == "" {
		t.Skip("PARLEY_TEST_CHROMIUM is not set: run .ci/browser go test …")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	b := browser{bin: filepath.Join(dir, "parley"), long: filepath.Join(dir, "long"), shots: filepath.Join(root, "bin", "shots")}
	if s := os.Getenv("PARLEY_SHOTS"); s != "" {
		b.shots = s
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", b.bin, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	if err := writeLong(t, b.long); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b browser) node(t *testing.T, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), "node", args...)
	cmd.Dir = filepath.Join("..", "..", "channels", "webchat", "ui", "e2e")
	cmd.Env = append(os.Environ(), "PARLEY_BIN="+b.bin, "PARLEY_LONG="+b.long, "PARLEY_SHOTS="+b.shots)
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it ends what it started
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

const (
	longTurns  = 2500 // of four entries each: 10,000
	moreChats  = 999  // beside the long one
	chatsDaily = 40
)

// writeLong makes a data directory with a transcript of 10,000 entries and 1,000 sessions, over some weeks.
func writeLong(t *testing.T, dir string) (err error) {
	end := time.Now().Add(-time.Hour)
	now := end
	s, err := store.Open(t.Context(), store.Options{Dir: dir, Now: func() time.Time { return now }, BallastBytes: -1, Synchronous: "OFF"})
	if err != nil {
		return err
	}
	defer func() {
		if cerr := s.Close(); err == nil {
			err = cerr
		}
	}()
	for i := range moreChats {
		now = end.Add(-time.Duration(moreChats-i) * 24 * time.Hour / chatsDaily)
		key := workspace.Key{Agent: "assistant", Scope: workspace.ScopeLocal, Local: fmt.Sprintf("chat-%04d", i)}
		if err := turn(s, key, fmt.Sprintf("Question %d about %s", i, topics[i%len(topics)]), fmt.Sprintf("Answer %d.", i)); err != nil {
			return err
		}
	}
	long := workspace.Key{Agent: "assistant", Scope: workspace.ScopeLocal, Local: "long"}
	for i := range longTurns {
		now = end.Add(-time.Duration(longTurns-i) * time.Minute)
		if err := turn(s, long, fmt.Sprintf("Message %d: %s?", i+1, topics[i%len(topics)]), longAnswer(i+1)); err != nil {
			return err
		}
	}
	return nil
}

var topics = []string{"a leaking tap", "train times to Bern", "the tax form", "a recipe for lentils", "Go's garbage collector", "names for a cat", "rain on Sunday"}

// longAnswer is one of several lengths and forms.
func longAnswer(n int) string {
	switch n % 5 {
	case 0:
		return fmt.Sprintf("Answer %d with code:\n\n```go\nfunc answer() int {\n\treturn %d\n}\n```\n\nThat is all.", n, n)
	case 1:
		return fmt.Sprintf("Answer %d with a list:\n\n- one\n- **two**\n- `three`", n)
	case 2:
		return fmt.Sprintf("Answer %d with a table:\n\n| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |", n)
	}
	return fmt.Sprintf("Answer %d in some words that go over more than one line, so that not every answer is as high as the one before it and the page has to measure them.", n)
}

// turn is one message of the local owner with its answer, as WebChat and a model would have left it.
func turn(s *store.Store, key workspace.Key, ask, answer string) error {
	run := workspace.Run{ID: workspace.RunID(s.IDs().New()), Requester: "local", Role: workspace.Owner}
	id := s.IDs().New()
	got, err := s.Accept(store.Arrival{
		Input: workspace.Input{ID: workspace.InputID(id), Source: "webchat", Account: "local", Key: id, Kind: channels.KindMessage, Person: "local", Role: workspace.Owner,
			Agent: key.Agent, Mode: workspace.ModeTurn, State: workspace.InputQueued, Text: ask, Decision: workspace.Decision{Allow: true, Rule: "local"},
			Binding: workspace.Binding{Agent: key.Agent, Key: key.String(), Rule: "local"}},
		Room: channels.Address{Network: "webchat", Account: "local", Kind: channels.DM, Peer: channels.PeerID(key.String())}, Key: key, Begin: &store.Begin{Run: run},
	})
	if err != nil {
		return err
	}
	_, err = s.Finish(store.Finish{Run: got[0].Begun.Run, State: workspace.RunCompleted, Model: "main", Inputs: []workspace.Input{got[0].Input}, InputState: workspace.InputAnswered,
		Entries: []workspace.Entry{{RunID: run.ID, Role: workspace.RoleAssistant, Body: workspace.EntryBody{Content: []workspace.Content{{Kind: workspace.Text, Text: answer}}}}}})
	return err
}
