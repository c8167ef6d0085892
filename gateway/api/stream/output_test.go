package stream

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"parley/agentloop"
	"parley/gateway/control"
	"parley/gateway/control/run"
	"parley/gateway/live"
	"parley/workspace"
)

// What a command writes is for those who may have all of its output, judged anew each time; where nobody judges it is for nobody.
func TestWhatACommandWritesIsForOwners(t *testing.T) {
	t.Parallel()
	who := control.Call{Actor: workspace.Actor{Role: workspace.Owner}}
	told := func(s *Streams, src source) bool {
		t.Helper()
		rec := httptest.NewRecorder()
		rd := s.newReader(&sse{rec, http.NewResponseController(rec)}, src, 0)
		l := live.Update{Session: "s", Run: "r", Step: 1, Event: agentloop.Event{Type: agentloop.EventOutput, Call: "c", Text: "from inside\n", Lines: 3}}
		if err := rd.live(l); err != nil {
			t.Fatal(err)
		}
		l.Event = agentloop.Event{Type: agentloop.EventText, Text: "an answer"}
		if err := rd.live(l); err != nil || !strings.Contains(rec.Body.String(), "an answer") {
			t.Errorf("%v: %s", err, rec.Body)
		}
		return strings.Contains(rec.Body.String(), `{"item_id":"c","text":"from inside\n","lines":3}`)
	}
	owners := New(Options{Now: time.Now, Output: func(c control.Call) bool { return c.Actor.Role == workspace.Owner }})
	for name, s := range map[string]*Streams{"judged": owners, "not judged": New(Options{Now: time.Now})} {
		of := func() control.Call { return who }
		sources := []source{&sessionSource{ses: workspace.Session{ID: "s"}, output: s.sees(of)},
			&runSource{found: run.Found{Run: workspace.Run{ID: "r"}}, output: s.sees(of)}}
		for _, src := range sources {
			for _, role := range []workspace.Role{workspace.Owner, workspace.Member, workspace.Guest, "", workspace.Owner} {
				who.Actor.Role = role
				if got, want := told(s, src), s == owners && role == workspace.Owner; got != want {
					t.Errorf("%s, %T, %q: %v", name, src, role, got)
				}
			}
		}
	}
}
