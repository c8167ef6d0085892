package gateway_test

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
)

// bench is a daemon whose agent runs commands and writes files for anybody, and what it is killed with.
type bench struct {
	t    *testing.T
	dir  string
	tg   *telegramtest.Server
	prog program
	log  *logBuffer
	next int64 // user of the next turn
}

func newBench(t *testing.T, prog func(*testing.T, string) program, script llmtest.Script) *bench {
	t.Helper()
	proven(t)
	b := &bench{t: t, dir: t.TempDir(), log: &logBuffer{}, tg: telegramtest.Start(t, telegramtest.Options{NoLimits: true}), next: 100}
	model := llmtest.Start(t, script)
	conf := filepath.Join(b.dir, "parley.yaml")
	yaml := fmt.Sprintf(`
data_dir: %s/data
gateway: {listen: "127.0.0.1:0"}
models: [{name: m, api: openai, base_url: "%s", api_key: sk-test-canary, model: test-1}]
agents: [{id: assistant, default: true, model: m, tools: {exec: allow, by_role: {guest: {exec: allow}}}}]
channels: [{name: tg, type: telegram, token: "%s", api_url: "%s", stream: "off", access: {dm: open}}]%s
`, b.dir, strings.TrimRight(model.URL, "/"), b.tg.Token(), b.tg.URL(), quiet)
	if err := os.WriteFile(conf, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	b.prog = prog(t, conf)
	b.prog.env = append(b.prog.env, childSandbox+"=1")
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(b.log.String())
		}
	})
	return b
}

// boot starts the daemon and returns when its sandbox self-test passed, so that it is at work when a message comes.
func (b *bench) boot(env ...string) *daemon {
	b.t.Helper()
	before := strings.Count(b.log.String(), "sandbox self-test passed")
	d := b.prog.start(b.t, b.log, func() { b.tg.Raw("poll", "{}") }, env...) // who waits for the network looks again
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	if err := b.log.wait(ctx, "sandbox self-test passed", before+1); err != nil {
		b.t.Fatal(err)
	}
	return d
}

// ask has a new person say something.
func (b *bench) ask(text string) telegramtest.Chat {
	b.next++
	chat := b.tg.AddPrivate(telegramtest.User{ID: b.next, First: "P"})
	b.tg.Message(telegramtest.In{Chat: chat.ID, From: telegramtest.User{ID: b.next, First: "P"}, Text: text})
	return chat
}

// answer is the text that the chat gets in the end.
func (b *bench) answer(chat telegramtest.Chat) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	var text string
	err := b.tg.WaitFor(ctx, func(v telegramtest.View) bool {
		for _, m := range v.Sent(chat.ID) {
			if m.Text != "" {
				text = m.Text
				return true
			}
		}
		return false
	})
	if err != nil {
		b.t.Fatalf("the turn does not end visibly: %v", err)
	}
	return text
}

func (b *bench) documents(chat telegramtest.Chat) (n int) {
	for _, m := range b.tg.View().Sent(chat.ID) {
		n += len(m.Files)
	}
	return n
}

// work are the work folders with a file of the name.
func (b *bench) work(name string) map[string]bool {
	b.t.Helper()
	list, err := filepath.Glob(filepath.Join(b.dir, "data/agents/assistant/work/*", name))
	if err != nil {
		b.t.Fatal(err)
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

// TestR04_NothingIsSilentlyRunAgain kills the daemon at every commit of a turn that runs a command, writes a file and
// sends it: before it is durable and after. The turn ends for all to see, and nothing was done twice.
func TestR04_NothingIsSilentlyRunAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts forty daemons")
	}
	b := newBench(t, hookedProgram, turnOf(
		act("exec", "command", "echo ran >> ran.txt"),
		act("write_file", "path", "note.txt", "content", "kept"),
		act("send_file", "path", "note.txt"),
	))
	all := killsWanted(t, 0) > 0 // else those that differ most
	points, unknown := 0, 0
	for _, unit := range []string{"commit step", "committed step", "commit finish", "committed finish"} {
		for n := 1; ; n++ {
			if !all && unit != "committed step" && n != 2 {
				if n > 2 {
					break
				}
				continue
			}
			point := fmt.Sprintf("%s#%d", unit, n)
			ranBefore, noteBefore := b.work("ran.txt"), b.work("note.txt")
			d := b.boot(childPoint + "=" + point)
			chat := b.ask("do it")
			if !b.diesFor(d, chat) {
				d.kill()
				break // there is no such point
			}
			points++
			noteDir := fresh(b.work("note.txt"), noteBefore)
			ino := inode(filepath.Join(noteDir, "note.txt"))
			d = b.boot()
			said := b.answer(chat)
			d.kill()
			ran, err := os.ReadFile(filepath.Join(fresh(b.work("ran.txt"), ranBefore), "ran.txt"))
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
			if files := b.documents(chat); files > 1 && !strings.HasPrefix(unit, "committed") || files > 2 {
				t.Errorf("%s: the file came %d times", point, files)
			}
		}
	}
	t.Logf("killed at %d points, %d times the outcome of a call was unknown", points, unknown)
	if points < 8 || unknown < 1 {
		t.Errorf("only %d points, %d unknown outcomes", points, unknown)
	}
}

// diesFor waits until the daemon is gone; false: it answers.
func (b *bench) diesFor(d *daemon, chat telegramtest.Chat) bool {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	err := b.tg.WaitFor(ctx, func(v telegramtest.View) bool {
		for _, m := range v.Sent(chat.ID) {
			if m.Text != "" {
				return true
			}
		}
		return d.gone()
	})
	if err != nil && !d.gone() {
		b.t.Fatal(err)
	}
	return d.gone()
}

// TestR04_ACommandUnderWayIsNotRunAgain: the binary that people run dies while the command does its work.
func TestR04_ACommandUnderWayIsNotRunAgain(t *testing.T) {
	slow := turnOf(act("exec", "command", "echo ran >> ran.txt; sleep 30"), act("read_file", "path", "ran.txt"))
	all := turnOf(act("write_file", "path", "a/b.txt", "content", "one"), act("edit_file", "path", "a/b.txt", "old_text", "one", "new_text", "two"),
		act("read_file", "path", "a/b.txt"), act("list_dir", "path", "a"), act("exec", "command", "cat b.txt", "working_dir", "a"), act("send_file", "path", "a/b.txt"))
	b := newBench(t, realProgram, func(q *llmtest.Request) llmtest.Reply {
		if strings.Contains(q.LastUser(), "slow") {
			return slow(q)
		}
		return all(q)
	})
	d := b.boot()
	chat := b.ask("something slow")
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for len(b.work("ran.txt")) == 0 {
		select {
		case <-look.C:
		case <-d.exited:
			t.Fatal("the daemon ended by itself")
		case <-t.Context().Done():
			t.Fatal("the command did not begin")
		}
	}
	d.kill()
	d = b.boot()
	said := b.answer(chat)
	if !strings.Contains(said, "outcome unknown") || !strings.HasSuffix(said, "| ran") {
		t.Errorf("the answer: %s", said)
	}
	chat = b.ask("everything")
	said = b.answer(chat)
	d.kill()
	for _, want := range []string{"Wrote a/b.txt (new, 3 bytes).", "Changed a/b.txt at line 1.", "| two |", "b.txt  3", "two/(exit code 0", "on its way"} {
		if !strings.Contains(said, want) {
			t.Errorf("the answer lacks %q: %s", want, said)
		}
	}
	if n := b.documents(chat); n != 1 {
		t.Errorf("%d documents came", n)
	}
}
