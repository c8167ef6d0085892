package stage_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"parley/channels/channeltest/stage"
)

// client is one whose connections go with the test.
func client(t *testing.T) *http.Client {
	t.Helper()
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: time.Minute}
}

// up makes a host that listens until the test ends.
func up(t *testing.T, serve http.HandlerFunc, cut func()) *stage.Host {
	t.Helper()
	h := stage.New("", serve, cut)
	if err := h.Up(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

// ask gets the host's root; whatever comes, the connection is given back.
func ask(t *testing.T, c *http.Client, h *stage.Host) (string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

func hello(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }

func TestHostRisesOnTheAddressWhereItFell(t *testing.T) {
	t.Parallel()
	cuts := 0
	h, c := up(t, hello, func() { cuts++ }), client(t)
	first := h.Addr()
	for range 3 {
		if got, err := ask(t, c, h); got != "hello" || err != nil || !h.Listening() {
			t.Fatalf("up: %q, %v", got, err)
		}
		h.Down()
		if _, err := ask(t, c, h); !errors.Is(err, syscall.ECONNREFUSED) || h.Listening() {
			t.Fatalf("down: %v", err)
		}
		for range 2 { // the second time there is nothing to do
			if err := h.Up(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if h.Addr() != first || cuts != 3 {
		t.Errorf("moved from %s to %s; cut %d times", first, h.Addr(), cuts)
	}
}

func TestACutRightBeforeAFallLeavesNoListener(t *testing.T) {
	t.Parallel()
	h := up(t, hello, nil)
	for range 200 { // Serve has mostly not begun when Down comes
		if err := h.Cut(); err != nil {
			t.Fatal(err)
		}
		h.Down()
		l, err := net.Listen("tcp", h.Addr())
		if err != nil {
			t.Fatalf("somebody listens after the fall: %v", err)
		}
		if err := errors.Join(l.Close(), h.Up()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCloseWaitsForHandlersAndLetsThemKnow(t *testing.T) {
	t.Parallel()
	entered, left := make(chan struct{}), atomic.Bool{}
	var h *stage.Host
	h = stage.New("", func(http.ResponseWriter, *http.Request) {
		close(entered)
		<-h.Done()
		left.Store(true)
	}, nil)
	if err := h.Up(); err != nil {
		t.Fatal(err)
	}
	c := client(t)
	var asking sync.WaitGroup
	asking.Go(func() { _, _ = ask(t, c, h) }) // it is cut
	<-entered
	h.Close()
	if !left.Load() {
		t.Error("Close came back before the handler")
	}
	h.Close()
	asking.Wait()
	if err := h.Up(); err != nil || h.Listening() {
		t.Errorf("a closed host rose again: %v", err)
	}
	defer func() {
		if p := recover(); p != http.ErrAbortHandler { //nolint:errorlint // it is the value that net/http looks for
			t.Errorf("a request after Close: %v", p)
		}
	}()
	h.ServeHTTP(nil, nil)
}

func TestHostSaysThatItsAddressIsTaken(t *testing.T) {
	t.Parallel()
	h := stage.New(up(t, hello, nil).Addr(), hello, nil)
	defer h.Close()
	if err := h.Up(); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("up on a taken address: %v", err)
	}
}

func TestWaitSeesEveryChange(t *testing.T) {
	t.Parallel()
	var w stage.Watch
	var n atomic.Int64
	const most = 10_000
	var waiting sync.WaitGroup
	for range 4 {
		waiting.Go(func() {
			if err := w.Wait(t.Context(), func() bool { return n.Load() == most }); err != nil {
				t.Error(err)
			}
		})
	}
	for range most {
		n.Add(1)
		w.Changed()
	}
	waiting.Wait() // the last change was not missed by any
}

func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	var w stage.Watch
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	err := w.Wait(ctx, func() bool {
		asked++
		cancel()
		return false
	})
	if !errors.Is(err, context.Canceled) || asked != 1 {
		t.Errorf("%v after %d questions", err, asked)
	}
}
