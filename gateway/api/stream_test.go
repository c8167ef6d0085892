package api_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"parley/gateway/client"
)

// onlyStored are the events that have an id.
func onlyStored(events []client.Event) []client.Event {
	var out []client.Event
	for _, e := range events {
		if e.ID != "" {
			out = append(out, e)
		}
	}
	return out
}

// wantGapless checks that stored events are numbered from first on without gap or double.
func wantGapless(t *testing.T, events []client.Event, first int64) {
	t.Helper()
	for i, e := range onlyStored(events) {
		if e.Sequence != first+int64(i) || e.ID != strconv.FormatInt(e.Sequence, 10) {
			t.Fatalf("event %d is %s with sequence %d, want %d: %v", i, e.ID, e.Sequence, first+int64(i), kinds(events))
		}
		if e.Synthetic {
			t.Errorf("%d is stored and synthetic", e.Sequence)
		}
	}
	for _, e := range events {
		if e.ID == "" && !e.Synthetic {
			t.Errorf("%s without an id is not synthetic", e.Type)
		}
	}
}

func runStreamTellsAWholeTurnAndEnds(t *testing.T, r *rig) {
	a := r.send(client.Message{Text: "hold on"})
	<-r.model.asked
	rd := r.follow("/v1/runs/"+a.InputID+"/events", 0)
	events := rd.until("the start", typed("turn.started"))
	for _, piece := range []string{"Grüße ", "an ", "😀 ", "alle"} {
		r.model.say(t, piece)
	}
	r.model.finish()
	events = append(events, rd.rest()...)
	wantGapless(t, events, 1)
	var types []string
	for _, e := range onlyStored(events) {
		types = append(types, e.Type)
		if e.RunID == "" || e.SessionID == "" || e.EventID == "" {
			t.Errorf("%+v", e)
		}
	}
	if strings.Join(types, " ") != "turn.started item.completed item.completed turn.ended" {
		t.Errorf("%v", types)
	}
	whole := completed(t, events)
	for id, text := range grown(t, events) {
		if text != "Grüße an 😀 alle" || whole[id] != text {
			t.Errorf("item %s grew to %q and ended as %q", id, text, whole[id])
		}
	}
	if len(grown(t, events)) != 1 {
		t.Errorf("%d items grew", len(grown(t, events)))
	}
}

// Who comes late begins with a snapshot, and deltas that come twice do no harm.
func lateReaderBeginsWithASnapshot(t *testing.T, r *rig) {
	a := r.send(client.Message{Text: "hold on"})
	<-r.model.asked
	early := r.follow("/v1/runs/"+a.InputID+"/events", 0)
	r.model.say(t, "one ")
	r.model.say(t, "two ")
	first := early.until("two", func(e client.Event) bool { return strings.Contains(string(e.Data), "two ") })
	late := r.follow("/v1/runs/"+a.InputID+"/events", 0)
	seen := late.until("the snapshot", func(e client.Event) bool { return e.Type == "item.delta" })
	if d := string(seen[len(seen)-1].Data); !strings.Contains(d, `"offset":0`) || !strings.Contains(d, "one two ") {
		t.Errorf("snapshot %s", d)
	}
	r.model.say(t, "three")
	r.model.finish()
	first, seen = append(first, early.rest()...), append(seen, late.rest()...)
	for name, events := range map[string][]client.Event{"early": first, "late": seen} {
		for id, text := range grown(t, events) {
			if text != "one two three" {
				t.Errorf("%s: %s grew to %q", name, id, text)
			}
		}
	}
	var twice []client.Event
	for _, e := range first {
		twice = append(twice, e, e)
	}
	for _, text := range grown(t, twice) {
		if text != "one two three" {
			t.Errorf("with every delta twice: %q", text)
		}
	}
}

// T15, by way of the API: what a model thinks stays in.
func reasoningNeverLeaves(t *testing.T, r *rig) {
	a := r.send(client.Message{Text: "hold on"})
	<-r.model.asked
	rd := r.follow("/v1/runs/"+a.InputID+"/events", 0)
	rd.until("the start", typed("turn.started"))
	for range 5 {
		r.model.say(t, "(think)")
	}
	r.model.say(t, "done")
	r.model.finish()
	events := rd.rest()
	status := 0
	for _, e := range events {
		if strings.Contains(string(e.Data), "SECRET-REASONING") || strings.Contains(string(e.Data), "reasoning") {
			t.Errorf("%s", e.Data)
		}
		if strings.Contains(string(e.Data), `"status"`) {
			status++
		}
	}
	if status != 1 {
		t.Errorf("that it thinks was told %d times", status)
	}
	for _, path := range []string{"/v1/runs/" + a.InputID, "/v1/runs/" + a.InputID + "/log", strings.TrimSuffix(r.events(), "events") + "entries"} {
		if b := r.ask("GET", path, "", nil).body; strings.Contains(b, "SECRET-REASONING") {
			t.Errorf("%s: %s", path, b)
		}
	}
}

// A reader that is cut anywhere and comes back with its last id misses nothing and gets nothing twice, over a restart too.
func resumeHasNoGapAndNoDouble(t *testing.T, r *rig) (after func(*testing.T, *rig)) {
	for i := range 4 {
		r.send(client.Message{Text: fmt.Sprintf("message %d", i), Wait: 20})
	}
	whole := onlyStored(r.follow(r.events(), 0).until("the last", func(e client.Event) bool { return e.ID == "16" }))
	wantGapless(t, whole, 1)
	resume := func(t *testing.T, r *rig, from, to int64) {
		for cut := from; cut < to; cut++ {
			rd := r.follow(r.events(), cut)
			rest := onlyStored(rd.until("the last", func(e client.Event) bool { return e.ID == "16" }))
			rd.cancel()
			wantGapless(t, rest, cut+1)
			for i, e := range rest {
				if was := whole[cut+int64(i)]; string(was.Data) != string(e.Data) || was.EventID != e.EventID || was.Type != e.Type {
					t.Errorf("event %d differs after a resume: %s, was %s", e.Sequence, e.Data, was.Data)
				}
			}
		}
	}
	resume(t, r, 0, 8)
	return func(t *testing.T, r *rig) {
		resume(t, r, 8, 16)
		rd := r.follow(r.events(), 16)
		rd.until("the stream", typed("session.started"))
		r.send(client.Message{Text: "one more", Wait: 20})
		wantGapless(t, rd.until("its end", typed("turn.ended")), 17)
		r.ask("GET", r.events(), "", func(q *http.Request) { q.Header.Set("Last-Event-ID", "x") }).wantProblem(t, 400, "invalid")
	}
}

// A session may be watched before it exists; a fresh generation counts from one again, and says so.
func sessionStreamFollowsIntoTheNextGeneration(t *testing.T, r *rig) {
	rd := r.follow(r.events(), 0)
	r.send(client.Message{Text: "first", Wait: 20})
	one := rd.until("its end", typed("turn.ended"))
	wantGapless(t, one, 1)
	r.send(client.Message{Text: "/new", Wait: 20})
	turn := rd.until("the next generation", typed("session.started"))
	if len(turn) < 2 || turn[len(turn)-2].Type != "session.ended" {
		t.Errorf("%v", kinds(turn))
	}
	r.send(client.Message{Text: "second", Wait: 20})
	two := rd.until("its end", typed("turn.ended"))
	wantGapless(t, two, 1)
	if one[len(one)-1].SessionID == two[len(two)-1].SessionID {
		t.Error("it is the same generation")
	}
	old := one[len(one)-1]
	back := r.follow(r.events()+"?session_id="+old.SessionID, old.Sequence)
	wantGapless(t, back.until("its end", typed("turn.ended")), 1)
}

// Over several model calls each answer grows under the id with which it is stored, also beside a command that is
// answered in between.
func deltasCarryTheIDOfTheirItem(t *testing.T, r *rig) {
	r.send(client.Message{Text: "/status", Wait: 20})
	rd := r.follow(r.events(), 0)
	rd.until("the command", typed("item.completed")) // from now on it misses no delta
	r.send(client.Message{Text: "look inside", Wait: 20})
	events := rd.until("its end", typed("turn.ended"))
	r.send(client.Message{Text: "hold on"})
	r.model.say(t, "This answer ")
	events = append(events, rd.until("a delta", typed("item.delta"))...)
	r.send(client.Message{Text: "/status", Wait: 20})
	r.model.say(t, "comes slowly")
	r.model.finish()
	events = append(events, rd.until("its end", typed("turn.ended"))...)
	wantGapless(t, events, 2)
	text, whole := grown(t, events), completed(t, events)
	slow := 0
	for id, got := range text { // what is stored before its deltas were read grows no more
		if whole[id] == "" || !strings.HasPrefix(whole[id], got) {
			t.Errorf("%s grew to %q and was stored as %q", id, got, whole[id])
		}
		if got == "This answer comes slowly" && got == whole[id] {
			slow++
		}
	}
	if slow != 1 {
		t.Errorf("the slow answer did not grow to its end: %q", text)
	}
	began, stored := 0, 0
	for _, e := range events {
		if !strings.Contains(string(e.Data), `"type":"tool_call"`) {
			continue
		}
		if e.Type == "item.started" {
			began++ // none, when the reader was told of the record first
		} else {
			stored++
		}
	}
	if began > 1 || stored != 1 {
		t.Errorf("%d tool calls began and %d are stored", began, stored)
	}
}
