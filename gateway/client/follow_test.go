package client

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
)

func TestFollowLogsHandsOverLinesUntilTheGatewayStops(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.URL.RequestURI(); got != "/v1/logs/events?after=7&level=warn" {
			t.Errorf("asked for %s", got)
		}
		fmt.Fprint(w, "id: 8\nevent: line\ndata: {\"n\":8,\"message\":\"a\"}\n\n: still here\n\nid: 9\nevent: line\ndata: {\"n\":9,\"message\":\"b\"}\n\n"+
			"event: error\ndata: {\"code\":\"closing\"}\n\n")
	}))
	defer srv.Close()
	c, err := New(srv.URL, "t")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var got []string
	if err := c.FollowLogs(t.Context(), "warn", 7, func(l LogItem) error { got = append(got, l.Message); return nil }); err != nil || !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("got %q, %v", got, err)
	}
	if err := c.FollowLogs(t.Context(), "warn", 7, func(LogItem) error { return ErrEnough }); err != nil {
		t.Errorf("enough: %v", err)
	}
	failed := errors.New("reader failed")
	if err := c.FollowLogs(t.Context(), "warn", 7, func(LogItem) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("a reader's error: %v", err)
	}
}
