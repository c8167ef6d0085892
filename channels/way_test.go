package channels_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"parley/channels"
)

func TestWayTellsWhatCannotHaveArrived(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		panic(http.ErrAbortHandler) // it is done, and the answer is lost
	}))
	t.Cleanup(srv.Close)
	nobody := httptest.NewServer(http.NotFoundHandler())
	nobody.Close()
	for name, c := range map[string]struct {
		url    string
		body   io.Reader
		unsent bool
	}{
		"nobody listens":       {url: nobody.URL, body: strings.NewReader("hello"), unsent: true},
		"broken while written": {url: srv.URL, body: io.MultiReader(strings.NewReader("hel"), broken{}), unsent: true},
		"answer lost":          {url: srv.URL, body: strings.NewReader("hello")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := &http.Transport{}
			t.Cleanup(tr.CloseIdleConnections)
			var w channels.Way
			req, err := http.NewRequestWithContext(w.Watch(t.Context()), http.MethodPost, c.url, c.body)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := tr.RoundTrip(req)
			if err == nil {
				resp.Body.Close()
				t.Fatal("it was answered")
			}
			if w.Unsent() != c.unsent {
				t.Errorf("unsent is %v after %v", w.Unsent(), err)
			}
		})
	}
}

// broken is a file that cannot be read on.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestWayBeginsAnewWhenTheTransportTriesAgain(t *testing.T) {
	t.Parallel()
	calls := 0
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls++ }))
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	get := func() (*channels.Way, error) {
		w := &channels.Way{}
		req, err := http.NewRequestWithContext(w.Watch(t.Context()), http.MethodGet, srv.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := tr.RoundTrip(req)
		if err == nil {
			resp.Body.Close()
		}
		return w, err
	}
	if w, err := get(); err != nil || w.Unsent() {
		t.Fatalf("first: %v, unsent %v", err, w.Unsent())
	}
	srv.Close() // the pooled connection is dead, and a new one cannot be had
	if w, err := get(); err == nil || !w.Unsent() || calls != 1 {
		t.Errorf("then: %v, unsent %v after %d calls", err, w.Unsent(), calls)
	}
}
