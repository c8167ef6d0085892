package gateway_test

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/agentloop/llm/llmtest"
	"parley/channels/telegram/telegramtest"
	"parley/gateway"
	"parley/gateway/client"
	"parley/tools/sandbox"
)

// proven is a sandbox that runs commands, or the test is skipped; PARLEY_REQUIRE_SANDBOX makes that a failure.
func proven(t *testing.T) sandbox.Backend {
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
	return b
}

func withSandbox(b sandbox.Backend) func(*gateway.Options) {
	return func(o *gateway.Options) { o.Sandbox = b }
}

// owner is the configured name of 11, an owner of the slot.
func (r *rig) owner() string { return "ana" + r.n() }

// ownFolder is where a slot's owner has their files, of an agent.
func (r *rig) ownFolder(agent string) string {
	return filepath.Join(r.dir, "data/agents", agent, "work/owner-"+r.owner())
}

// What an agent does for whom, in a sandbox that runs commands, on one daemon.
func TestT16_AgentsActInTheirSandbox(t *testing.T) {
	t.Parallel()
	ro, rw := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(ro, "plan"), []byte("the plan\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const allow = ", tools: {exec: allow}"
	together(t, setup{opt: withSandbox(proven(t)), extra: quiet, agent: allow, own: map[string]own{
		"in a local session":                            {agent: allow},
		"commands find an owner's folders":              {agent: allow + fmt.Sprintf(`, folders: [{path: %q, as: notes}, {path: %q, as: code, mode: rw}]`, ro, rw)},
		"commands are allowed, asked about and refused": {agent: `, tools: {exec: allowlist, exec_allow: [{program: echo, args: [hello, "*"]}]}`},
		"the offline responder shows tools":             {model: ", api: offline"},
	}}, map[string]func(*rig){
		"for its owner": actsForItsOwner,
		"T16_for a guest in a folder of their own":      guestActsInAFolderOfTheirOwn,
		"in a local session":                            actsInALocalSession,
		"commands find an owner's folders":              func(r *rig) { commandsFindFolders(r, rw) },
		"commands are allowed, asked about and refused": commandsAreAllowedAskedRefused,
		"the offline responder shows tools":             offlineResponderShowsTools,
	})
}

func actsForItsOwner(r *rig) {
	r.answers(llmtest.TurnOf(
		llmtest.Act("write_file", "path", "notes/a.txt", "content", "one\ntwo\n"),
		llmtest.Act("edit_file", "path", "notes/a.txt", "old_text", "two", "new_text", "three"),
		llmtest.Act("read_file", "path", "notes/a.txt"),
		llmtest.Act("list_dir", "path", "notes"),
		llmtest.Act("resolve_path", "kind", "docs", "filename", "plan.md"),
		llmtest.Act("exec", "command", "wc -l < a.txt; id -u > who; pwd; cat /agent/SOUL.md | head -c 6; echo x > /agent/SOUL.md", "working_dir", "notes"),
		llmtest.Act("send_file", "path", "notes/a.txt"),
	))
	ana := r.person(11)
	r.say(ana, 11, "do it")
	got := r.wait(ana, 2)
	doc, answer := got[0], got[1]
	if len(doc.Files) != 1 || doc.Files[0].Name != "a.txt" || string(doc.Files[0].Data) != "one\nthree\n" {
		r.t.Errorf("the first message is %+v", doc)
	}
	for _, want := range []string{"Wrote notes/a.txt (new, 8 bytes).", "Changed notes/a.txt at line 2.", "one/three", "a.txt  10", "docs/plan.md/(does not exist yet)",
		"2//work/notes/", "a.txt (text/plain, 10 bytes) is on its way"} {
		if !strings.Contains(answer.Text, want) {
			r.t.Errorf("the answer lacks %q:\n%s", want, answer.Text)
		}
	}
	if data, err := os.ReadFile(filepath.Join(r.dir, "data/agents/assistant/SOUL.md")); err != nil || strings.HasPrefix(string(data), "x") {
		r.t.Errorf("SOUL.md holds %q, %v", data, err)
	}
	if _, err := os.Stat(filepath.Join(r.ownFolder("assistant"), "notes/who")); err != nil {
		r.t.Error(err)
	}
	r.say(ana, 11, "/why")
	why := r.wait(ana, 3)[2].Text
	for _, want := range []string{"tool exec: done, allow by exec level:allow", "built-in pass (role:owner)", "tool send_file: done, allow by"} {
		if !strings.Contains(why, want) {
			r.t.Errorf("/why lacks %q:\n%s", want, why)
		}
	}
	if got := r.rows(`SELECT kind, body FROM outbound WHERE kind = 'file'`); len(got) != 1 || got[0] != "file|a.txt" {
		r.t.Errorf("files: %q", got)
	}
}

func guestActsInAFolderOfTheirOwn(r *rig) {
	r.answers(llmtest.TurnOf(
		llmtest.Act("read_file", "path", "secret.txt"),
		llmtest.Act("exec", "command", "echo hi"),
		llmtest.Act("write_file", "path", "mine.txt", "content", "x"),
		llmtest.Act("list_dir", "path", "."),
	))
	owners := r.ownFolder("assistant")
	if err := os.MkdirAll(owners, 0o700); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(owners, "secret.txt"), []byte("hush"), 0o600); err != nil {
		r.t.Fatal(err)
	}
	bob := r.person(13)
	r.say(bob, 13, "do it")
	answer := r.wait(bob, 1)[0].Text
	for _, want := range []string{"there is no such file", "Refused: Commands are for owners here.", "Wrote mine.txt", "mine.txt  1"} {
		if !strings.Contains(answer, want) {
			r.t.Errorf("the answer lacks %q:\n%s", want, answer)
		}
	}
	if strings.Contains(answer, "hush") {
		r.t.Errorf("a guest reads an owner's file: %s", answer)
	}
	for _, body := range r.bodies() {
		for _, tool := range (&llmtest.Request{Body: []byte(body)}).Chat().Tools {
			if tool.Function.Name == "exec" {
				r.t.Error("a guest is shown exec")
			}
		}
	}
	ana := r.person(11)
	r.say(ana, 11, "do it")
	answer = r.wait(ana, 1)[0].Text
	if !strings.HasPrefix(answer, "hush |") || !strings.Contains(answer, "secret.txt  4") || strings.Count(answer, "mine.txt  1") != 1 {
		r.t.Errorf("the owner: %s", answer)
	}
}

// What the allow-list has runs unasked and without a shell, the rest waits for the owner's button, and a no is a no.
func commandsAreAllowedAskedRefused(r *rig) {
	r.answers(llmtest.TurnOf(
		llmtest.Act("exec", "command", "echo hello 'a  b'"),
		llmtest.Act("exec", "command", "echo hello; echo more"),
		llmtest.Act("exec", "command", "echo never > never.txt"),
	))
	ana := r.person(11)
	r.say(ana, 11, "do it")
	first := r.question(ana)
	if !strings.Contains(first.Text, "echo hello; echo more") {
		r.t.Fatalf("asked %q", first.Text)
	}
	r.tg.Press(ana.ID, first.ID, r.user(11), button(r.t, first, "Once"))
	r.until("the second question", func(v telegramtest.View) bool {
		for _, m := range v.Sent(ana.ID) {
			if m.ID > first.ID && len(m.Buttons) > 0 {
				first = m
				return true
			}
		}
		return false
	})
	r.tg.Press(ana.ID, first.ID, r.user(11), button(r.t, first, "Deny"))
	r.said(ana, "hello a  b/(exit code 0")
	r.said(ana, "hello/more/(exit code 0")
	if list, err := filepath.Glob(filepath.Join(r.dir, "data/agents/*/work/*/never.txt")); err != nil || len(list) > 0 {
		r.t.Errorf("it ran after a no: %v %v", list, err)
	}
	r.stored("the calls", `SELECT state, json_extract(body, '$.decision.rule') FROM steps WHERE tool = 'exec' ORDER BY n`,
		"done|exec_allow:1", "done|level:allowlist", "refused|level:allowlist")
}

// By the API, as WebChat reads it: the file stands in the transcript and can be fetched.
func actsInALocalSession(r *rig) {
	r.answers(llmtest.TurnOf(
		llmtest.Act("write_file", "path", "r.csv", "content", "a,b\n"), llmtest.Act("read_file", "path", "r.csv"),
		llmtest.Act("edit_file", "path", "r.csv", "old_text", "b", "new_text", "c"),
		llmtest.Act("list_dir", "path", "."), llmtest.Act("exec", "command", "cat r.csv"), llmtest.Act("send_file", "path", "r.csv")))
	c := r.client()
	got, err := c.Send(r.t.Context(), client.Message{Agent: "a" + r.n(), Text: "do it", Wait: 60})
	if err != nil {
		r.t.Fatal(err)
	}
	var run struct {
		Text  string `json:"text"`
		Steps []struct {
			Tool   string `json:"tool"`
			State  string `json:"state"`
			Policy struct {
				Outcome string `json:"outcome"`
				Record  []struct{ Layer string }
			} `json:"policy"`
		} `json:"steps"`
	}
	if err := c.Get(r.t.Context(), "/v1/runs/"+got.RunID, &run); err != nil {
		r.t.Fatal(err)
	}
	if !strings.Contains(run.Text, "Wrote r.csv") || !strings.Contains(run.Text, "a,c/(exit code 0") || !strings.Contains(run.Text, "is on its way") {
		r.t.Errorf("the answer: %s", run.Text)
	}
	done := 0
	for _, st := range run.Steps {
		if st.Tool != "" && st.State == "done" && st.Policy.Outcome == "allow" && len(st.Policy.Record) > 1 {
			done++
		}
	}
	if done != 6 {
		r.t.Errorf("%d calls are done with their decision: %+v", done, run.Steps)
	}
	var entries struct {
		Items []struct {
			Data struct {
				Item struct {
					Type  string `json:"type"`
					Parts []struct{ Type, Name, Blob string }
				} `json:"item"`
			} `json:"data"`
		} `json:"items"`
	}
	if err := c.Get(r.t.Context(), "/v1/sessions/"+url.PathEscape(got.Session)+"/entries", &entries); err != nil {
		r.t.Fatal(err)
	}
	ref := ""
	for _, e := range entries.Items {
		for _, p := range e.Data.Item.Parts {
			if p.Type == "file_ref" && p.Name == "r.csv" && e.Data.Item.Type == "tool_result" {
				ref = p.Blob
			}
		}
	}
	file, err := c.Stream(r.t.Context(), "GET", "/v1/files/"+ref+"?name=r.csv", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	defer file.Close()
	if data, err := io.ReadAll(file); err != nil || string(data) != "a,c\n" {
		r.t.Errorf("the file holds %q, %v", data, err)
	}
	all := *r
	all.slot = nil
	if list := all.rows(`SELECT kind FROM outbound WHERE run_id = ?`, got.RunID); len(list) != 0 {
		r.t.Errorf("something else was sent: %v", list)
	}
}

// With no model at all one sees tools, an approval and a file at work.
func offlineResponderShowsTools(r *rig) {
	ana := r.person(11)
	r.say(ana, 11, "help")
	r.said(ana, "(writes a file and sends it to you)")
	r.say(ana, 11, "tool")
	r.said(ana, "(the folder is empty)")
	r.say(ana, 11, "file")
	r.until("a document", func(v telegramtest.View) bool {
		return slices.ContainsFunc(v.Sent(ana.ID), func(m telegramtest.Message) bool { return len(m.Files) == 1 && m.Files[0].Name == "hello.txt" })
	})
	r.said(ana, "is on its way to this conversation")
	r.say(ana, 11, "approval")
	q := r.question(ana)
	r.tg.Press(ana.ID, q.ID, r.user(11), button(r.t, q, "Once"))
	r.said(ana, "hello from the sandbox\n(exit code 0")
}

// An owner's folders are where commands look for them: under the same name as for the file tools.
func commandsFindFolders(r *rig, rw string) {
	r.answers(llmtest.TurnOf(
		llmtest.Act("exec", "command", "cat notes/plan; echo made > code/out; touch notes/x 2>/dev/null || echo read-only"),
		llmtest.Act("exec", "command", "cat out", "working_dir", "code"),
		llmtest.Act("read_file", "path", "code/out"),
		llmtest.Act("write_file", "path", "code/out", "content", "by a tool"),
		llmtest.Act("exec", "command", "cat code/out")))
	ana := r.person(11)
	r.say(ana, 11, "do it")
	got := r.wait(ana, 1)[0].Text
	if want := "the plan/read-only/(exit code 0"; !strings.Contains(got, want) || strings.Count(got, "made") != 2 || !strings.Contains(got, "by a tool/(exit code 0") {
		r.t.Errorf("the answer: %s", got)
	}
	if data, err := os.ReadFile(filepath.Join(rw, "out")); err != nil || string(data) != "by a tool" {
		r.t.Errorf("%q %v", data, err)
	}
}

// What an agent does without a sandbox, and what becomes of files that it sends, on one daemon that drops what may have been sent.
func TestE48_T16_AgentsActWithoutASandbox(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "plan"), []byte("the owner's plan"), 0o600); err != nil {
		t.Fatal(err)
	}
	const folders, places = "T16_folders are for owners", "policy of places narrows"
	tests := map[string]func(*rig){
		"exec is neither shown nor run":           execIsNeitherShownNorRun,
		"names of sent files are plain":           namesOfSentFilesArePlain,
		"a file that cannot be delivered is told": undeliveredFileIsTold,
		"R05_a swallowed answer is dropped":       swallowedIsDropped,
		folders:                                   func(r *rig) { foldersAreForOwners(r, dir) },
		places:                                    policyOfPlacesNarrows,
	}
	together(t, setup{access: "{dm: open, groups: open, require_mention: false}", extra: "tools: {deny: [resolve_path]}" + strings.Replace(quiet, "}", ", maybe_sent: drop}", 1),
		routes: fmt.Sprintf("  - {channel: tg, peer: \"%d\", agent: assistant, tools: {deny: [list_dir]}}\n", baseOf(tests, places)+11),
		own: map[string]own{
			folders:                         {agent: fmt.Sprintf(`, folders: [{path: %q, as: notes, mode: rw}]`, dir), chats: []int64{13}},
			"exec is neither shown nor run": {agent: ", tools: {exec: allow}"},
		}}, tests)
}

// T16: owners see their own directories, also in a group; nobody else does, there or elsewhere.
func foldersAreForOwners(r *rig, dir string) {
	r.answers(llmtest.TurnOf(llmtest.Act("read_file", "path", "notes/plan"), llmtest.Act("write_file", "path", "notes/new", "content", "x")))
	ana, bob, group := r.person(11), r.person(13), r.group()
	r.say(bob, 13, "look")
	if got := r.wait(bob, 1)[0].Text; strings.Contains(got, "plan") && strings.Contains(got, "the owner") {
		r.t.Errorf("a guest reads it: %s", got)
	}
	r.say(group, 13, "look")
	if got := r.wait(group, 1)[0].Text; strings.Contains(got, "the owner") {
		r.t.Errorf("a member of a group reads it: %s", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); err == nil {
		r.t.Error("somebody else wrote there")
	}
	r.say(group, 11, "look")
	if got := r.wait(group, 2)[1].Text; !strings.HasPrefix(got, "the owner's plan | Wrote notes/new") {
		r.t.Errorf("the owner in the group: %s", got)
	}
	r.say(ana, 11, "look")
	if got := r.wait(ana, 1)[0].Text; !strings.HasPrefix(got, "the owner's plan | Wrote notes/new") {
		r.t.Errorf("the owner: %s", got)
	}
}

func execIsNeitherShownNorRun(r *rig) {
	r.answers(llmtest.TurnOf(llmtest.Act("exec", "command", "echo hi")))
	ana := r.person(11)
	r.say(ana, 11, "do it")
	if got := r.wait(ana, 1)[0].Text; !strings.Contains(got, "does not work here: no exec: sandbox.backend is none") {
		r.t.Errorf("the answer: %s", got)
	}
}

// The lists of the gateway and of a route hold where the turn came through them.
func policyOfPlacesNarrows(r *rig) {
	r.answers(llmtest.TurnOf(llmtest.Act("list_dir", "path", "."), llmtest.Act("resolve_path", "kind", "docs", "filename", "x")))
	ana, bob := r.person(11), r.person(13)
	r.say(ana, 11, "do it")
	got := r.wait(ana, 1)[0].Text
	if !strings.Contains(got, "list_dir is not allowed in this conversation (route policy)") || !strings.Contains(got, "resolve_path is not allowed in this conversation (global policy)") {
		r.t.Errorf("where the route is: %s", got)
	}
	r.say(bob, 13, "do it")
	if got := r.wait(bob, 1)[0].Text; !strings.Contains(got, "(the folder is empty)") {
		r.t.Errorf("elsewhere: %s", got)
	}
}

// E48: what an agent calls a file does not reach the network as it is.
func namesOfSentFilesArePlain(r *rig) {
	r.answers(func(q *llmtest.Request) llmtest.Reply {
		name := q.LastUser()
		return llmtest.TurnOf(llmtest.Act("write_file", "path", name, "content", "some text"), llmtest.Act("send_file", "path", name))(q)
	})
	bob := r.person(13)
	for _, c := range []struct{ name, want string }{
		{"a.txt", "a.txt"}, {"-rf.txt", "rf.txt"}, {"x;rm -rf.sh", "x_rm-rf.sh"}, {"a b.pdf", "a_b.pdf"}, {".profile", "profile.txt"},
	} {
		before := len(r.tg.View().Sent(bob.ID))
		r.say(bob, 13, c.name)
		got := r.wait(bob, before+2)[before]
		if len(got.Files) != 1 || got.Files[0].Name != c.want {
			r.t.Errorf("%q came as %+v", c.name, got.Files)
		}
	}
}

// A file that cannot be delivered is told: the room hears of it once.
func undeliveredFileIsTold(r *rig) {
	r.answers(llmtest.TurnOf(llmtest.Act("write_file", "path", "a.txt", "content", "x"), llmtest.Act("send_file", "path", "a.txt")))
	bob := r.person(13)
	r.tg.AddFault(telegramtest.Fault{Chat: bob.ID, Method: "sendDocument", Do: telegramtest.Reply, Status: 400,
		Body: `{"ok":false,"error_code":400,"description":"Bad Request: wrong file"}`})
	r.say(bob, 13, "do it")
	r.said(bob, "I could not deliver the file a.txt here")
	r.said(bob, "is on its way")
}
