package api_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// What owners do about people, ways in and the configuration is told by the audit log, and its chain holds.
func auditTellsWhatOwnersDid(t *testing.T, r *rig) {
	last := r.lastAudit()
	r.net.write(t, "73", "let me in")
	id := r.pairing("73")
	r.ask("POST", "/v1/pairings/"+id+"/approve", `{"as":"member"}`, nil)
	code := r.ask("POST", "/v1/sign-in/codes", "", nil).fields(t)["code"].(string)
	r.ask("POST", "/v1/sign-in", `{"code":"`+code+`"}`, nil)

	rows := r.ask("GET", fmt.Sprint("/v1/audit?after=", last), "", nil).fields(t)["items"].([]any)
	var kinds []string
	for _, row := range rows {
		kinds = append(kinds, fmt.Sprint(row.(map[string]any)["kind"]))
	}
	want := []string{"pairing.decided", "signin.code", "signin.done"}
	if !slices.Equal(kinds, want) {
		t.Fatalf("rows: %q, want %q", kinds, want)
	}
	decided := rows[0].(map[string]any)
	what := decided["what"].(map[string]any)
	if decided["actor"] != "local" || decided["via"] != "api" || what["user"] != "73" || what["role"] != "member" || what["state"] != "approved" {
		t.Errorf("pairing: %v", decided)
	}
	if all := fmt.Sprint(rows); strings.Contains(all, code) {
		t.Errorf("the code stands in the log: %s", all)
	}
	page := r.ask("GET", "/v1/audit?after=0&limit=2", "", nil).fields(t)
	if len(page["items"].([]any)) != 2 || page["next"] != "2" {
		t.Errorf("first page: %v", page)
	}
	head := fmt.Sprintf("%v:%v", decided["n"], decided["hash"])
	if v := r.ask("GET", "/v1/audit/verify?head="+url.QueryEscape(head), "", nil).fields(t); v["ok"] != true || v["rows"] != float64(last+3) {
		t.Errorf("check: %v", v)
	}
	wrong := fmt.Sprintf("%v:%064d", decided["n"], 0)
	if v := r.ask("GET", "/v1/audit/verify?head="+url.QueryEscape(wrong), "", nil).fields(t); v["ok"] != false {
		t.Errorf("a row that never was is found: %v", v)
	}
	r.ask("GET", "/v1/audit/verify?head=x", "", nil).wantProblem(t, 400, "invalid")
}
