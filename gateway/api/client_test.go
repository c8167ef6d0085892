package api_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"parley/channels"
	"parley/gateway/client"
	"parley/gateway/control"
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
	strictly[client.List[client.Session]](t, r, "/v1/sessions")
	strictly[client.Session](t, r, "/v1/sessions/"+key)
	strictly[client.List[client.Generation]](t, r, "/v1/sessions/"+key+"/generations")
	strictly[client.List[client.RunItem]](t, r, "/v1/runs")
	strictly[client.List[client.Route]](t, r, "/v1/routes")
	strictly[client.Config](t, r, "/v1/config")
	strictly[client.List[client.LogItem]](t, r, "/v1/logs?level=debug")

	made, err := r.c.NewSession(ctx, "", "Trip", "k")
	if again, err2 := r.c.NewSession(ctx, "", "Trip", "k"); err != nil || err2 != nil || again.SessionID != made.SessionID {
		t.Errorf("%+v, %v, then %+v, %v", made, err, again, err2)
	}
	if s, err := r.c.RenameSession(ctx, made.Key, "Journey"); err != nil || s.Name != "Journey" {
		t.Errorf("%+v, %v", s, err)
	}
	if err := r.c.DeleteSession(ctx, made.Key); err != nil {
		t.Error(err)
	}
	if s, err := r.c.ForkSession(ctx, local, 3, ""); err != nil || s.Generation != 2 {
		t.Errorf("%+v, %v", s, err)
	}
	if l, err := r.c.Runs(ctx, client.Query{"agent": "assistant"}.Page(1, "")); err != nil || len(l.Items) != 1 || l.Items[0].Session != local {
		t.Errorf("%+v, %v", l, err)
	}
	if l, err := r.c.Sessions(ctx, client.Query{"q": "no such thing"}); err != nil || len(l.Items) != 0 {
		t.Errorf("%+v, %v", l, err)
	}
	if u, err := control.SumUsage.Ask(ctx, r.c, control.UsageIn{By: "model"}); err != nil || u.Total.Runs != 1 {
		t.Errorf("%+v, %v", u, err)
	}
	if p, err := control.ShowPerson.Ask(ctx, r.c, control.ByID{ID: "local"}); err != nil || p.Role != "owner" {
		t.Errorf("%+v, %v", p, err)
	}
}
