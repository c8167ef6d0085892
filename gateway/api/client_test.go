package api_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"parley/channels"
	"parley/gateway/client"
	"parley/gateway/control"
	"parley/gateway/spec"
)

// strictly reads a real answer into a client's type: a name that the client does not know is a drift.
func strictly[T any](t *testing.T, r *rig, path string) (v T) {
	t.Helper()
	a := r.ask("GET", path, "", nil)
	d := json.NewDecoder(strings.NewReader(a.body))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil || a.StatusCode != 200 {
		t.Errorf("%s: %d, %v\n%s", path, a.StatusCode, err, a.body)
	}
	return v
}

func TestTheClientKnowsWhatTheGatewaySays(t *testing.T) {
	t.Parallel()
	net := newStrangers()
	r := start(t, setup{yaml: strangerYAML, nets: []channels.Factory{net.factory()}})
	r.send(client.Message{Text: "good day", Wait: 20})
	ctx, key := t.Context(), url.PathEscape(local)
	strictly[spec.List[control.RouteRow]](t, r, "/v1/routes")
	strictly[control.Config](t, r, "/v1/config")
	strictly[client.List[client.LogItem]](t, r, "/v1/logs?level=debug")

	made := strictly[control.SessionItem](t, r, "/v1/sessions/"+key)
	var twice [2]control.SessionItem
	for i := range twice {
		a := r.ask("POST", "/v1/sessions", `{"name":"Trip"}`, func(q *http.Request) { q.Header.Set("Idempotency-Key", "k") })
		if err := json.Unmarshal([]byte(a.body), &twice[i]); err != nil || a.StatusCode != 201 {
			t.Errorf("%d, %v: %s", a.StatusCode, err, a.body)
		}
	}
	if twice[0].SessionID == made.SessionID || twice[0].SessionID != twice[1].SessionID {
		t.Errorf("%+v, then %+v", twice[0], twice[1])
	}
	trip, name := control.BySession{Session: control.SessionWord(twice[0].Key)}, "Journey"
	if s, err := control.RenameSession.Ask(ctx, r.c, control.RenameIn{BySession: trip, Name: &name}); err != nil || s.Name != name {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := control.DeleteSession.Ask(ctx, r.c, trip); err != nil {
		t.Error(err)
	}
	if s, err := control.ForkSession.Ask(ctx, r.c, control.ForkIn{BySession: control.BySession{Session: "main"}, Before: 3}); err != nil || s.Generation != 2 {
		t.Errorf("%+v, %v", s, err)
	}
	runs := control.RunsIn{Agent: "assistant", Session: "assistant/main", Page: spec.Page{Limit: 1}}
	if l, err := control.ListRuns.Ask(ctx, r.c, runs); err != nil || len(l.Items) != 1 || l.Items[0].Session != local {
		t.Errorf("%+v, %v", l, err)
	}
	if l, err := control.ListSessions.Ask(ctx, r.c, control.SessionsIn{Text: "no such thing"}); err != nil || len(l.Items) != 0 {
		t.Errorf("%+v, %v", l, err)
	}
	if u, err := control.SumUsage.Ask(ctx, r.c, control.UsageIn{By: "model"}); err != nil || u.Total.Runs != 1 {
		t.Errorf("%+v, %v", u, err)
	}
	if p, err := control.ShowPerson.Ask(ctx, r.c, control.ByID{ID: "local"}); err != nil || p.Role != "owner" {
		t.Errorf("%+v, %v", p, err)
	}
}
