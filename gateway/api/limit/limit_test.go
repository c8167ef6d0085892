package limit

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/goleak"

	"parley/gateway/api/wire"
	"parley/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// T26: a stranger's connection does not rest for long; one that has carried a request that was let in does.
func TestT26_StrangersConnectionsDoNotRest(t *testing.T) {
	t.Parallel()
	k := newConns()
	k.idle = 20 * time.Millisecond
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		defer k.Serve(r)()
		if r.URL.Path == "/known" {
			k.Admit(r)
		}
	}))
	srv.Listener = k.Listen(srv.Listener)
	srv.Config.ConnContext, srv.Config.ConnState = k.ConnContext, k.ConnState
	srv.Start()
	defer srv.Close()
	dial := func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err == nil {
			err = c.SetDeadline(time.Now().Add(10 * time.Second))
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	ask := func(c net.Conn, path string) {
		t.Helper()
		if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close() // it is empty
	}
	known, stranger := dial(), dial()
	ask(known, "/known")
	ask(stranger, "/")
	if _, err := stranger.Read(make([]byte, 1)); err != io.EOF { // ends with the deadline, else
		t.Errorf("a stranger's connection: %v", err)
	}
	ask(known, "/")
}

// T26: whatever is held open counts once, by person and in all.
func TestT26_HeldRequestsHaveOneCount(t *testing.T) {
	t.Parallel()
	p := Slots{own: 3, all: 5}
	var leave []func()
	take := func(who workspace.PersonID, want bool) {
		t.Helper()
		l, ok := p.Take(who)
		if ok != want {
			t.Errorf("%s: %t with %d taken", who, ok, p.Count())
		}
		if ok {
			leave = append(leave, l)
		}
	}
	for range 3 {
		take("ana", true)
	}
	take("ana", false)
	take("ben", true)
	take("ben", true)
	take("cid", false)
	leave[0]()
	leave[0]()
	take("cid", true)
	take("ana", false)
	for _, l := range leave {
		l()
	}
	if p.Count() != 0 || len(p.each) != 0 {
		t.Errorf("%d are left, of %v", p.Count(), p.each)
	}
}

// T26: bodies of strangers do not take the room of those who were let in.
func TestT26_StrangersBodiesAreBounded(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
	r.ContentLength = -1
	b := newBodies()
	for range bodiesStrangers / wire.MaxBody {
		if _, err := b.Reserve(r, false, wire.MaxBody); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Reserve(r, false, wire.MaxBody); wire.ProblemOf(err).Status != http.StatusServiceUnavailable {
		t.Errorf("beyond the room: %v", err)
	}
	if _, err := b.Reserve(r, true, wire.MaxBody); err != nil {
		t.Errorf("who was let in: %v", err)
	}
}
