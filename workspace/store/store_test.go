package store_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"parley/channels"
	"parley/workspace"
	"parley/workspace/store"
)

// open waits for the watcher's note of its first look, which would else come in between.
func open(t testing.TB) *store.Store {
	t.Helper()
	looked := make(chan struct{})
	s, err := store.Open(t.Context(), store.Options{Dir: t.TempDir(), Now: time.Now, BallastBytes: -1, Point: func(name string) {
		if name == "committed checked" {
			close(looked)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	<-looked
	return s
}

// plain drives one message through the line: accept with begin, finish, receipt.
func plain(s *store.Store, chat, n int) error {
	addr := channels.Address{Network: "telegram", Account: "42", Kind: channels.DM, Peer: channels.PeerID(fmt.Sprint(chat))}
	key := workspace.Key{Agent: "assistant", Scope: workspace.ScopeAddress, Network: addr.Network, Account: addr.Account, Kind: addr.Kind, Peer: addr.Peer}
	run := workspace.Run{ID: workspace.RunID(s.IDs().New()), Requester: "p1", Role: workspace.Guest}
	got, err := s.Accept(store.Arrival{
		Input: workspace.Input{ID: workspace.InputID(s.IDs().New()), Source: "telegram", Account: "42", Key: fmt.Sprintf("m:%d:%d", chat, n), Kind: channels.KindMessage,
			Person: "p1", Role: workspace.Guest, Agent: "assistant", Mode: workspace.ModeTurn, State: workspace.InputQueued, Text: fmt.Sprintf("ping %d", n),
			Decision: workspace.Decision{Allow: true, Rule: "dm:open"}, Binding: workspace.Binding{Agent: "assistant", Key: key.String(), Rule: "fallback", Fallback: true}},
		Room: addr, Key: key, Begin: &store.Begin{Run: run},
	})
	if err != nil {
		return err
	}
	a := got[0]
	if a.Duplicate {
		return fmt.Errorf("duplicate")
	}
	fin, err := s.Finish(store.Finish{Run: a.Begun.Run, State: workspace.RunCompleted, Inputs: []workspace.Input{a.Input}, InputState: workspace.InputAnswered,
		Entries: []workspace.Entry{{RunID: run.ID, Role: workspace.RoleAssistant, Body: workspace.EntryBody{Content: []workspace.Content{{Kind: workspace.Text, Text: "pong"}}}}},
		Answer:  &store.NewOutbound{Key: workspace.AnswerKey(run.ID), RoomID: a.Input.RoomID, RunID: run.ID, Kind: workspace.OutAnswer, Spans: []store.Span{{To: 4}}, Sending: true}})
	if err != nil {
		return err
	}
	s.Receipt(store.Move{Part: fin.Answer.Parts[0], To: workspace.PartSent, Remote: "77"})
	return nil
}

func TestPlainMessageTakesTwoWaitedCommitsAndNineStatements(t *testing.T) {
	t.Parallel()
	s := open(t)
	if err := plain(s, 1, 1); err != nil { // makes room and session
		t.Fatal(err)
	}
	if err := s.SetSetting("barrier", "1"); err != nil {
		t.Fatal(err)
	}
	before := s.Counts()
	if err := plain(s, 1, 2); err != nil {
		t.Fatal(err)
	}
	if err := s.SetSetting("barrier", "2"); err != nil {
		t.Fatal(err)
	}
	after := s.Counts()
	if waited := after.Waited - before.Waited - 1; waited != 2 {
		t.Errorf("waited commits: %d, want 2", waited)
	}
	if statements := after.Statements - before.Statements - 1; statements > 9 {
		t.Errorf("statements: %d, want at most 9", statements)
	}
	ses, err := s.Heads()
	if err != nil || len(ses) != 1 {
		t.Fatalf("sessions: %v %v", ses, err)
	}
	entries, err := s.LastEntries(ses[0].ID, 100)
	if err != nil || len(entries) != 8 {
		t.Fatalf("entries: %d %v", len(entries), err)
	}
	for i, e := range entries {
		if e.N != int64(i+1) {
			t.Errorf("entry %d has number %d", i, e.N)
		}
	}
	if got := entries[5].Body.Plain(); got != "ping 2" {
		t.Errorf("user text %q", got)
	}
	if und, err := s.OpenOutbound(); err != nil || len(und) != 0 {
		t.Errorf("undelivered: %v %v", und, err)
	}
}

// written is what this process has handed to write calls, and the seconds of processor it took; zero where the
// system does not count.
type written struct{ bytes, calls, cpu float64 }

func diskIO(b *testing.B) (w written) {
	b.Helper()
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	w.cpu = time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds()
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return w
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			b.Fatal(err)
		}
		switch name {
		case "wchar":
			w.bytes = n
		case "syscw":
			w.calls = n
		}
	}
	return w
}

// BenchmarkLine prints messages a second through the durable line alone, with waited commits and statements.
func BenchmarkLine(b *testing.B) {
	for _, chats := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("chats=%d", chats), func(b *testing.B) {
			s := open(b)
			work := make(chan int)
			done := make(chan error, chats)
			for chat := range chats {
				go func() {
					var err error
					for i := range work {
						if err == nil {
							err = plain(s, chat, i)
						}
					}
					done <- err
				}()
			}
			before, disk := s.Counts(), diskIO(b)
			b.ResetTimer()
			for i := range b.N {
				work <- i
			}
			close(work)
			for range chats {
				if err := <-done; err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			c := s.Counts()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
			b.ReportMetric(float64(c.Statements-before.Statements)/float64(b.N), "statements/msg")
			b.ReportMetric(float64(c.Commits-before.Commits)/float64(b.N), "commits/msg")
			b.ReportMetric(float64(c.Waited-before.Waited)/float64(b.N), "waited/msg")
			now := diskIO(b)
			b.ReportMetric((now.bytes-disk.bytes)/float64(b.N), "B/msg")
			b.ReportMetric((now.calls-disk.calls)/float64(b.N), "writes/msg")
			b.ReportMetric((now.cpu-disk.cpu)*1e6/float64(b.N), "cpu-µs/msg")
		})
	}
}
