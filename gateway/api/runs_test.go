package api_test

import (
	"fmt"
	"net/url"
	"slices"
	"testing"

	"parley/gateway/client"
	"parley/gateway/control"
	"parley/gateway/control/run"
	"parley/gateway/spec"
)

// collect reads a list of runs page by page.
func collect(t *testing.T, r *rig, q run.ListIn) []string {
	t.Helper()
	var ids []string
	for range 1000 {
		l, err := run.List.Ask(t.Context(), r.c, q)
		if err != nil {
			t.Fatal(err)
		}
		for _, it := range l.Items {
			ids = append(ids, string(it.ID))
		}
		if l.Next == nil {
			return ids
		}
		q.After = *l.Next
	}
	t.Fatal("the list has no end")
	return nil
}

func runsAreListedOnceAndNarrowed(t *testing.T, r *rig) {
	before := collect(t, r, run.ListIn{Page: spec.Page{Limit: 500}})
	completed := collect(t, r, run.ListIn{State: "completed", Page: spec.Page{Limit: 500}})
	failed := collect(t, r, run.ListIn{State: "failed", Page: spec.Page{Limit: 500}})
	var all, mine, theirs []string
	for i := range 7 {
		m := client.Message{Text: fmt.Sprint("message ", i), Wait: 20}
		if i%3 == 2 {
			m.Agent = "other"
		}
		id := r.send(m).RunID
		all = append(all, id)
		if m.Agent == "" {
			mine = append(mine, id)
		} else {
			theirs = append(theirs, id)
		}
		if i == 3 {
			r.send(client.Message{Text: "/new", Wait: 20}) // the session's list goes over its generations
		}
	}
	for _, list := range [][]string{all, mine, theirs} {
		slices.Reverse(list)
	}
	for _, limit := range []int{1, 2, 3, 50} {
		for name, c := range map[string]struct {
			q    run.ListIn
			want []string
		}{
			"everybody's": {run.ListIn{}, slices.Concat(all, before)}, "an agent's": {run.ListIn{Agent: "other"}, theirs}, "a session's": {run.ListIn{Session: control.SessionWord(r.key())}, mine},
			"completed ones": {run.ListIn{State: "completed"}, slices.Concat(all, completed)}, "failed ones": {run.ListIn{State: "failed"}, failed}, "live ones": {run.ListIn{State: "running"}, nil},
			"nobody's": {run.ListIn{Requester: "nobody"}, nil},
		} {
			c.q.Limit = limit
			if got := collect(t, r, c.q); !slices.Equal(got, c.want) {
				t.Errorf("%s by %d: %v, want %v", name, limit, got, c.want)
			}
		}
	}
	r.ask("GET", "/v1/runs?state=odd", "", nil).wantProblem(t, 400, "invalid")
	r.ask("GET", "/v1/runs?session="+url.QueryEscape("agent:assistant:local:none"), "", nil).wantProblem(t, 404, "not_found")
}
