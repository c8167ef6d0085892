package gateway_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/agentloop/llm/llmtest"
	"parley/channels/telegram/telegramtest"
)

// A daemon that is killed between the fetch of a file and the commit that takes its message fetches it again, or finds
// it; what was transcribed is not transcribed again; the answer comes once.
func TestR05_T18_KillBetweenFetchAndCommit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		point   string
		fetches int64 // over both lives
	}{
		{"commit accept", 2}, // the fetch has not begun, the message comes again
		{"committed accept", 2},
		{"commit hear", 2},
		{"committed hear", 2},
		{"commit begin", 2},
		{"committed begin", 1},
	} {
		t.Run(c.point, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			tg := telegramtest.Start(t, telegramtest.Options{NoLimits: true})
			model := llmtest.Start(t, llmtest.Echo)
			model.Hear(func(*llmtest.Audio) llmtest.Reply { return llmtest.Reply{Text: "buy milk"} })
			conf := filepath.Join(dir, "parley.yaml")
			yaml := fmt.Sprintf("data_dir: %s/data\ngateway: {listen: \"127.0.0.1:0\"}\nmodels: [{name: m, api: openai, base_url: %q, api_key: sk-test-canary, model: test-1}]\n"+
				"channels: [{name: tg, type: telegram, token: %q, api_url: %q, access: {dm: open}}]\ntranscription: {model: w, base_url: %q, api_key: sk-test-canary}\n",
				dir, model.URL, tg.Token(), tg.URL(), model.URL)
			if err := os.WriteFile(conf, []byte(yaml), 0o600); err != nil {
				t.Fatal(err)
			}
			log := &logBuffer{}
			t.Cleanup(func() {
				if t.Failed() {
					t.Log(log.String())
				}
			})
			ana := tg.AddPrivate(telegramtest.User{ID: 11, First: "Ana"})
			prog := testProgram(t, conf)
			d := prog.start(t, log, func() {}, childPoint+"="+c.point+"#1")
			tg.Message(telegramtest.In{Chat: ana.ID, From: user(11), Text: "remember", File: telegramtest.File{Type: "voice", MIME: "audio/ogg", Data: ogg}})
			select {
			case <-d.exited:
			case <-time.After(time.Minute):
				d.kill()
				t.Fatalf("the point %q was not passed", c.point)
			}
			next := prog.start(t, log, func() {})
			defer next.kill()
			r := &rig{t: t, dir: dir, tg: tg, llm: model, log: log}
			got := texts(r.wait(ana, 1))
			if len(got) != 1 || !strings.Contains(got[0], "remember") || !strings.HasSuffix(got[0], "inbox/voice.ogg, audio/ogg, 538 bytes, transcribed]\n\nbuy milk") {
				t.Errorf("answers %q", got)
			}
			heard := 1
			if c.point == "commit hear" { // the answer had not been kept
				heard = 2
			}
			if n := len(model.Heard()); n != heard {
				t.Errorf("transcribed %d times, want %d", n, heard)
			}
			if n := tg.View().Calls("getFile"); n > c.fetches {
				t.Errorf("fetched %d times, want at most %d", n, c.fetches)
			}
			if got := r.inboxes(); len(got) != 1 {
				t.Errorf("files %q, want one", got)
			}
		})
	}
}

func TestStopEndsAFetchThatHangs(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{})
	ana := r.person(11)
	r.tg.AddFault(telegramtest.Fault{Method: "file", Do: telegramtest.Hang, Times: 1})
	r.send(ana, 11, "read it", telegramtest.File{Type: "document", Name: "a.txt", Data: []byte("text")})
	r.until("the fetch", func(v telegramtest.View) bool { return v.Calls("getFile") == 1 })
	r.until("typing", func(v telegramtest.View) bool { return len(v.Actions(ana.ID)) > 0 })
	r.say(ana, 11, "/stop")
	r.wait(ana, 1)
	r.say(ana, 11, "hello")
	got := texts(r.wait(ana, 2))
	if got[1] != "echo: hello" {
		t.Errorf("%q", got)
	}
	if got := r.rows(`SELECT state, text FROM inputs ORDER BY seq`); got[0] != "cancelled|read it" {
		t.Errorf("inputs %q", got)
	}
	r.tg.ClearFaults()
}

func TestEditDuringAFetchIsWhatIsAnswered(t *testing.T) {
	t.Parallel()
	r := newRig(t, setup{})
	ana := r.person(11)
	r.tg.AddFault(telegramtest.Fault{Method: "file", Do: telegramtest.Hang})
	id := r.send(ana, 11, "read it", telegramtest.File{Type: "document", Name: "a.txt", Data: []byte("text")})
	r.until("the fetch", func(v telegramtest.View) bool { return v.Calls("getFile") == 1 })
	r.tg.EditIn(ana.ID, id, "count its letters")
	r.stored("the edit", `SELECT text FROM inputs ORDER BY seq`, "count its letters", "count its letters")
	r.tg.ClearFaults()
	if got := texts(r.wait(ana, 1)); !strings.HasPrefix(got[0], "echo: count its letters\n\n[attached file: inbox/a.txt") {
		t.Errorf("%q", got)
	}
	r.say(ana, 11, "next")
	r.wait(ana, 2)
	if b := r.llm.Bodies(); strings.Contains(b[1], "read it") || !strings.Contains(b[1], "count its letters") {
		t.Error("the next turn sees another text")
	}
}

// A text that is followed at once by its picture is one turn, and the picture is in it.
func TestPictureRightBehindItsQuestionIsAnsweredWithIt(t *testing.T) {
	t.Parallel()
	hold, asked := make(chan struct{}), make(chan int, 10)
	r := newRig(t, setup{extra: "sessions: {queue: {debounce: 60s}}\nreplies: {placeholder_after: 1m}", script: func(q *llmtest.Request) llmtest.Reply {
		asked <- q.N
		if !strings.Contains(string(q.Body), "image_url") {
			<-hold
		}
		return llmtest.Echo(q)
	}})
	defer close(hold)
	ana := r.person(11)
	r.say(ana, 11, "what is this?")
	receive(t, asked, "a model call")
	r.send(ana, 11, "", telegramtest.File{Type: "photo", Data: photo(t, 30, 20)})
	got := r.wait(ana, 1)
	if !strings.Contains(got[0].Text, "30×20") {
		t.Errorf("%q", got[0].Text)
	}
	if got := r.rows(`SELECT state, count(DISTINCT run_id), count(*) FROM inputs GROUP BY state`); got[0] != "answered|1|2" {
		t.Errorf("inputs %q", got)
	}
}
