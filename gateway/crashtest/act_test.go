//go:build !race

package crashtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/agentloop/llm/llmtest"
	"parley/channels/telegram/telegramtest"
	"parley/tools/sandbox"
)

// newActs is a story in which the agent runs commands and writes files for anybody. Without a sandbox the test is skipped;
// PARLEY_REQUIRE_SANDBOX makes that a failure.
func newActs(t *testing.T, prog func(*testing.T, string) program, script llmtest.Script) *story {
	t.Helper()
	b := sandbox.New(sandbox.Config{Backend: "ns"}, sandbox.Deps{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if r := b.Probe(ctx); r.Tier == sandbox.TierNone {
		if os.Getenv("PARLEY_REQUIRE_SANDBOX") != "" {
			t.Fatal(r.String())
		}
		t.Skip(r.String())
	}
	s := newStory(t, prog, script, "agents: [{id: assistant, default: true, model: m, tools: {exec: allow, by_role: {guest: {exec: allow}}}}]\n"+noSigns)
	s.prog.env = append(s.prog.env, childSandbox+"=1")
	return s
}

// boot starts the daemon and returns when its sandbox self-test passed, so that it is at work when a message comes.
func (s *story) boot(env ...string) {
	s.t.Helper()
	const passed = "sandbox self-test passed"
	before := s.log.Count(passed)
	s.start(env...)
	s.logged(passed, before+1)
}

// documents are the files that came into a chat.
func (s *story) documents(chat telegramtest.Chat) (n int) {
	for _, m := range s.sent(chat) {
		n += len(m.Files)
	}
	return n
}

// work are the work folders with a file of the name.
func (s *story) work(name string) map[string]bool {
	s.t.Helper()
	list, err := filepath.Glob(filepath.Join(s.dir, "data/agents/assistant/work/*", name))
	if err != nil {
		s.t.Fatal(err)
	}
	found := map[string]bool{}
	for _, p := range list {
		found[filepath.Dir(p)] = true
	}
	return found
}

// fresh are those that are in now and were not before.
func fresh(now, before map[string]bool) string {
	for dir := range now {
		if !before[dir] {
			return dir
		}
	}
	return ""
}

func inode(file string) uint64 {
	fi, err := os.Stat(file)
	if err != nil {
		return 0
	}
	return fi.Sys().(*syscall.Stat_t).Ino
}

// notRunAgain kills the daemon at every commit of a turn that runs a command, writes a file and sends it: before it is durable
// and after. The turn ends for all to see, and nothing was done twice.
func notRunAgain(t *testing.T, r row) {
	t.Parallel()
	s := newActs(t, testProgram, llmtest.TurnOf(
		llmtest.Act("exec", "command", "echo ran >> ran.txt"),
		llmtest.Act("write_file", "path", "note.txt", "content", "kept"),
		llmtest.Act("send_file", "path", "note.txt"),
	))
	points, unknown := 0, 0
	for _, unit := range []string{"commit step", "committed step", "commit finish", "committed finish"} {
		for n := 1; ; n++ {
			if !full() && unit != "committed step" && n != 2 { // else those that differ most
				if n > 2 {
					break
				}
				continue
			}
			point := fmt.Sprintf("%s#%d", unit, n)
			ranBefore, noteBefore := s.work("ran.txt"), s.work("note.txt")
			s.boot(childPoint + "=" + point)
			chat := s.somebody()
			s.say(chat, "do it")
			s.seen("an end of the turn or of the daemon", func() bool { return s.d.gone() || strings.Join(texts(s.sent(chat)), "") != "" })
			if !s.d.gone() {
				s.d.kill()
				break // there is no such point
			}
			points++
			noteDir := fresh(s.work("note.txt"), noteBefore)
			ino := inode(filepath.Join(noteDir, "note.txt"))
			s.boot()
			said := s.answer(chat)
			s.d.kill()
			ran, err := os.ReadFile(filepath.Join(fresh(s.work("ran.txt"), ranBefore), "ran.txt"))
			early := strings.Contains(said, "the sandbox is being tried") // on a machine where that takes long: refused, and said
			if err != nil && !early && !strings.Contains(said, "outcome unknown") || strings.Count(string(ran), "ran") > 1 {
				t.Errorf("%s: the command ran %q, %v; the answer: %s", point, ran, err, said)
			}
			if noteDir != "" && inode(filepath.Join(noteDir, "note.txt")) != ino {
				t.Errorf("%s: the file was written again; the answer: %s", point, said)
			}
			if strings.Contains(said, "outcome unknown") {
				unknown++
			} else if !early && !strings.Contains(said, "exit code 0") || !strings.Contains(said, "Wrote note.txt") {
				t.Errorf("%s: the answer says %q", point, said)
			}
			most := 2 // it may have been on its way: Telegram cannot be asked
			if unit == "commit step" {
				most = 1 // nothing of it was kept, so nothing was sent
			}
			if files := s.documents(chat); files > most {
				t.Errorf("%s: the file came %d times", point, files)
			}
		}
	}
	t.Logf("killed at %d points, %d times the outcome of a call was unknown", points, unknown)
	if points < r.few || unknown < 1 {
		t.Errorf("only %d points, %d unknown outcomes", points, unknown)
	}
}

// underWay kills the binary that people run while the command does its work: it is not run again.
func underWay(t *testing.T, _ row) {
	t.Parallel()
	slow := llmtest.TurnOf(llmtest.Act("exec", "command", "echo ran >> ran.txt; sleep 30"), llmtest.Act("read_file", "path", "ran.txt"))
	all := llmtest.TurnOf(llmtest.Act("write_file", "path", "a/b.txt", "content", "one"), llmtest.Act("edit_file", "path", "a/b.txt", "old_text", "one", "new_text", "two"),
		llmtest.Act("read_file", "path", "a/b.txt"), llmtest.Act("list_dir", "path", "a"), llmtest.Act("exec", "command", "cat b.txt", "working_dir", "a"), llmtest.Act("send_file", "path", "a/b.txt"))
	s := newActs(t, realProgram, func(q *llmtest.Request) llmtest.Reply {
		if strings.Contains(q.LastUser(), "slow") {
			return slow(q)
		}
		return all(q)
	})
	s.boot()
	chat := s.somebody()
	s.say(chat, "something slow")
	s.until("the command's work", func() bool {
		ran, err := os.ReadFile(filepath.Join(fresh(s.work("ran.txt"), nil), "ran.txt"))
		return err == nil && len(ran) > 0 || s.d.gone()
	})
	if s.d.gone() {
		t.Fatal("the daemon ended by itself")
	}
	s.d.kill()
	s.boot()
	if said := s.answer(chat); !strings.Contains(said, "outcome unknown") || !strings.HasSuffix(said, "| ran") {
		t.Errorf("the answer: %s", said)
	}
	chat = s.somebody()
	s.say(chat, "everything")
	said := s.answer(chat)
	s.d.kill()
	for _, want := range []string{"Wrote a/b.txt (new, 3 bytes).", "Changed a/b.txt at line 1.", "| two |", "b.txt  3", "two/(exit code 0", "on its way"} {
		if !strings.Contains(said, want) {
			t.Errorf("the answer lacks %q: %s", want, said)
		}
	}
	if n := s.documents(chat); n != 1 {
		t.Errorf("%d documents came", n)
	}
}
