package wire

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"parley/channels"
	"parley/workspace"
)

// said is a body as a test reads it.
type said struct {
	Text string   `json:"text"`
	Tags []string `json:"tags,omitempty"`
}

func decode(body, kind string) (said, error) {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	var v said
	err := Decode(httptest.NewRecorder(), r, &v)
	return v, err
}

func TestBodiesAreReadStrictly(t *testing.T) {
	t.Parallel()
	const json = "application/json"
	for name, c := range map[string]struct {
		body, kind string
		status     int
	}{
		"a body": {`{"text":"a","tags":["b"]}`, json, 0}, "with a charset": {`{"text":"a"}`, json + "; charset=utf-8", 0}, "of no kind": {`{"text":"a"}`, "", 0}, "empty": {"", json, 0},
		"unknown field": {`{"text":"a","txet":"b"}`, json, 400}, "two values": {`{"text":"a"}{"text":"b"}`, json, 400}, "no JSON": {`text=a`, json, 400}, "cut": {`{"text":"a`, json, 400},
		"a list": {`[]`, json, 400}, "wrong type": {`{"text":5}`, json, 400}, "other letters": {`{"Text":"a"}`, json, 400}, "a name twice": {`{"text":"a","text":"b"}`, json, 400},
		"nested deeply": {`{"tags":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`, json, 400},
		"a form":        {`text=a`, "application/x-www-form-urlencoded", 415}, "plain text": {`{"text":"a"}`, "text/plain", 415}, "too long": {`{"text":"` + strings.Repeat("a", MaxBody) + `"}`, json, 413},
	} {
		v, err := decode(c.body, c.kind)
		var p *Problem
		switch {
		case c.status == 0 && (err != nil || c.body != "" && v.Text != "a"):
			t.Errorf("%s: %+v, %v", name, v, err)
		case c.status != 0 && (!errors.As(err, &p) || p.Status != c.status):
			t.Errorf("%s: %v, want %d", name, err, c.status)
		case p != nil && (strings.Contains(p.Detail, "json:") || strings.Contains(p.Detail, "Go ")):
			t.Errorf("%s speaks of Go: %s", name, p.Detail)
		}
	}
}

// What has words for people is told with its status; what has none says nothing but that, and is logged.
func TestProblemsSayWhatIsForPeople(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]string{
		workspace.Say(workspace.ErrNotFound, "There is no such thing."): `404 not_found There is no such thing.`,
		workspace.Say(workspace.ErrInvalid, "Say it otherwise."):        `400 invalid Say it otherwise.`,
		workspace.Say(workspace.ErrDenied, "You may not."):              `403 denied You may not.`,
		workspace.Say(errors.New("odd"), "It is refused."):              `422 refused It is refused.`,
		channels.ErrBusy:                   `503 busy Too much is going on.`,
		channels.ErrUnwritable:             `503 unwritable The store takes nothing`,
		errors.New("pq: password=hunter2"): `500 internal Something went wrong`,
		fmt.Errorf("wrapped: %w", RetryAfter(429, "rate_limited", "Slow.", 6)): `429 rate_limited Slow.`,
	} {
		var log strings.Builder
		rec := httptest.NewRecorder()
		Fail(rec, httptest.NewRequest(http.MethodGet, "/", nil), err, slog.New(slog.NewTextHandler(&log, nil)))
		p := ProblemOf(err)
		got := fmt.Sprintf("%d %s %s", rec.Code, strings.TrimPrefix(p.Type, "urn:parley:error:"), p.Detail)
		if !strings.HasPrefix(got, want) || rec.Header().Get("Content-Type") != "application/problem+json" || strings.Contains(rec.Body.String(), "hunter2") {
			t.Errorf("%v: %s %s", err, got, rec.Body)
		}
		if (rec.Code == 500) != strings.Contains(log.String(), "hunter2") || (p.After > 0) != (rec.Header().Get("Retry-After") != "") {
			t.Errorf("%v: log %q, Retry-After %q", err, log.String(), rec.Header().Get("Retry-After"))
		}
	}
	rec := httptest.NewRecorder()
	Fail(rec, httptest.NewRequest(http.MethodGet, "/", nil), Unauthorized(), slog.New(slog.DiscardHandler))
	if rec.Code != 401 || rec.Header().Get("WWW-Authenticate") == "" {
		t.Errorf("%d %v", rec.Code, rec.Header())
	}
}

func TestPagesHaveBounds(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]int{"": defaultPage, "limit=1": 1, "limit=500": 500, "limit=0": 0, "limit=501": 0, "limit=x": 0, "limit=-1": 0} {
		p, err := PageOf(httptest.NewRequest(http.MethodGet, "/?after=x&"+query, nil))
		if (err == nil) != (want > 0) || want > 0 && (p.Limit != want || p.After != "x") {
			t.Errorf("%q: %+v, %v", query, p, err)
		}
	}
	for query, good := range map[string]bool{"": true, "n=0": true, "n=7": true, "n=-1": false, "n=x": false} {
		if _, err := Number(httptest.NewRequest(http.MethodGet, "/?"+query, nil), "n"); (err == nil) != good {
			t.Errorf("%q: %v", query, err)
		}
	}
}
