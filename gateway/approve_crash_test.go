package gateway_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/channels/telegram/telegramtest"
	"parley/tools"
)

// fileTool is act with an effect that outlives the process: a line in a file, on the disk before it returns.
type fileTool struct {
	actTool
	file  string
	point func(string)
}

func (t fileTool) Call(context.Context, tools.Call) (tools.Result, error) {
	pass := func(name string) {
		if t.point != nil {
			t.point(name)
		}
	}
	pass("act begins")
	f, err := os.OpenFile(t.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return tools.Result{}, err
	}
	if _, err := f.WriteString("acted\n"); err != nil {
		return tools.Result{}, err
	}
	if err := f.Sync(); err != nil {
		return tools.Result{}, err
	}
	pass("act ends")
	return tools.TextResult("acted once"), f.Close()
}

// R04: a gateway that is killed at any line around asking, deciding, using up and starting runs an approved call at most
// once, and the turn always ends where people see it.
func TestR04_AnApprovedCallRunsOnceOverAKillAtEveryLine(t *testing.T) {
	t.Parallel()
	list := filepath.Join(t.TempDir(), "points")
	approvedCall(t, childPoints+"="+list) // nothing dies: which points there are
	text, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	points := strings.Split(strings.TrimSpace(string(text)), "\n")
	for _, must := range []string{"commit ask", "committed ask", "commit command", "committed command", "commit move run", "committed move run", "commit step", "committed step",
		"commit finish", "committed finish", "act begins", "act ends"} {
		if !slices.Contains(points, must) {
			t.Errorf("%q is not passed, but %q", must, points)
		}
	}
	for _, point := range points {
		if strings.Contains(point, "boot") || strings.Contains(point, "clean") {
			continue // there is nothing yet, or no more
		}
		for _, nth := range []string{"1", "3"} {
			if nth == "3" && !strings.HasSuffix(point, " step") && !strings.HasSuffix(point, " outbound") {
				continue
			}
			t.Run(point+" "+nth, func(t *testing.T) {
				t.Parallel()
				approvedCall(t, childPoint+"="+point+"#"+nth)
			})
		}
	}
}

// approvedCall has a daemon asked for a call and approves it by a button, and starts the daemon again whenever it is gone.
func approvedCall(t *testing.T, env string) {
	t.Helper()
	r := newRig(t, setup{script: acts("touch x"), extra: actors + quiet})
	r.stop()
	done := filepath.Join(t.TempDir(), "done")
	p := testProgram(t, r.conf)
	ana := r.person(11)
	d := p.start(t, r.log, func() {}, childAct+"="+done, env)
	defer func() { d.kill() }()
	r.say(ana, 11, "act")
	limit := time.After(60 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	pressed := time.Time{}
	for {
		sent := r.tg.View().Sent(ana.ID)
		if slices.ContainsFunc(sent, func(m telegramtest.Message) bool { return strings.Contains(m.Text, "result:") }) {
			break
		}
		if i := slices.IndexFunc(sent, func(m telegramtest.Message) bool { return len(m.Buttons) > 0 }); i >= 0 && time.Since(pressed) > 3*time.Second {
			pressed = time.Now() // again, if nothing comes of it: as people do
			r.tg.Press(ana.ID, sent[i].ID, user(11), button(t, sent[i], "Once"))
		}
		select {
		case <-d.exited:
			d = p.start(t, r.log, func() {}, childAct+"="+done)
		case <-tick.C:
		case <-limit:
			t.Fatalf("the turn does not end: %q, approvals %v, steps %v, runs %v", texts(sent), r.rows(`SELECT state, via FROM approvals`),
				r.rows(`SELECT tool, state FROM steps`), r.rows(`SELECT state, tries FROM runs`))
		}
	}
	ran := 0
	if text, err := os.ReadFile(done); err == nil {
		ran = strings.Count(string(text), "acted")
	}
	r.stored("no question stands", `SELECT count(*) FROM approvals WHERE state NOT IN ('consumed')`, "0")
	step := r.rows(`SELECT state FROM steps WHERE tool = 'act'`)
	switch {
	case slices.Equal(step, []string{"done"}) && ran == 1:
	case slices.Equal(step, []string{"unknown"}) && ran <= 1:
	default:
		t.Errorf("it ran %d times and its step is %v", ran, step)
	}
	r.until("the question is closed", func(v telegramtest.View) bool {
		return !slices.ContainsFunc(v.Sent(ana.ID), func(m telegramtest.Message) bool { return len(m.Buttons) > 0 })
	})
}
