package api_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"parley/gateway/client"
	"parley/gateway/control"
	"parley/gateway/control/operator"
	"parley/gateway/control/person"
	"parley/gateway/control/run"
	"parley/gateway/control/session"
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

func theClientKnowsWhatTheGatewaySays(t *testing.T, r *rig) {
	r.send(client.Message{Text: "good day", Wait: 20})
	ctx, key := t.Context(), url.PathEscape(r.key())
	strictly[spec.List[operator.RouteRow]](t, r, "/v1/routes")
	strictly[operator.Config](t, r, "/v1/config")
	strictly[client.List[client.LogItem]](t, r, "/v1/logs?level=debug")

	made := strictly[session.Item](t, r, "/v1/sessions/"+key)
	var twice [2]session.Item
	for i := range twice {
		a := r.ask("POST", "/v1/sessions", `{"name":"Voyage"}`, func(q *http.Request) { q.Header.Set("Idempotency-Key", "client") })
		if err := json.Unmarshal([]byte(a.body), &twice[i]); err != nil || a.StatusCode != 201 {
			t.Errorf("%d, %v: %s", a.StatusCode, err, a.body)
		}
	}
	if twice[0].SessionID == made.SessionID || twice[0].SessionID != twice[1].SessionID {
		t.Errorf("%+v, then %+v", twice[0], twice[1])
	}
	trip, name := session.BySession{Session: control.SessionWord(twice[0].Key)}, "Journey"
	if s, err := session.Rename.Ask(ctx, r.c, session.RenameIn{BySession: trip, Name: &name}); err != nil || s.Name != name {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := session.Delete.Ask(ctx, r.c, trip); err != nil {
		t.Error(err)
	}
	if s, err := session.Fork.Ask(ctx, r.c, session.ForkIn{BySession: session.BySession{Session: control.SessionWord(r.session)}, Before: 3}); err != nil || s.Generation != 2 {
		t.Errorf("%+v, %v", s, err)
	}
	runs := run.ListIn{Agent: "assistant", Session: control.SessionWord("assistant/" + r.session), Page: spec.Page{Limit: 1}}
	if l, err := run.List.Ask(ctx, r.c, runs); err != nil || len(l.Items) != 1 || l.Items[0].Session != r.key() {
		t.Errorf("%+v, %v", l, err)
	}
	if l, err := session.List.Ask(ctx, r.c, session.ListIn{Text: "no such thing"}); err != nil || len(l.Items) != 0 {
		t.Errorf("%+v, %v", l, err)
	}
	if u, err := operator.SumUsage.Ask(ctx, r.c, operator.UsageIn{By: "model"}); err != nil || u.Total.Runs < 1 {
		t.Errorf("%+v, %v", u, err)
	}
	if p, err := person.Show.Ask(ctx, r.c, control.ByID{ID: "local"}); err != nil || p.Role != "owner" {
		t.Errorf("%+v, %v", p, err)
	}
}
