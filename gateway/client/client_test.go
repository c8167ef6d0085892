package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf16"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func frames(t *testing.T, wire string) []Frame {
	t.Helper()
	var out []Frame
	for f := NewFrames(strings.NewReader(wire)); ; {
		one, err := f.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, one)
	}
}

// The cases of the standard's own text (WHATWG HTML §9.2.6) and some of our own.
func TestFramesReadWhatTheStandardSays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		wire string
		want []Frame
	}{
		"two lines":       {"data: YHOO\ndata: +2\ndata: 10\n\n", []Frame{{Data: "YHOO\n+2\n10"}}},
		"comments and id": {": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n", []Frame{{ID: "1", Data: "first event"}, {Data: "second event"}, {Data: " third event"}}},
		"empty data":      {"data\n\ndata\ndata\n\ndata:\n", []Frame{{Data: ""}, {Data: "\n"}}},
		"space":           {"data:test\n\ndata: test\n\n", []Frame{{Data: "test"}, {Data: "test"}}},
		"line ends":       {"data: a\r\rdata: b\r\n\r\ndata: c\n\n", []Frame{{Data: "a"}, {Data: "b"}, {Data: "c"}}},
		"byte order mark": {"\ufeffdata: a\n\n", []Frame{{Data: "a"}}},
		"event and id":    {"id: 7\nevent: x\ndata: y\n\nevent: z\n\ndata: w\n\n", []Frame{{ID: "7", Event: "x", Data: "y"}, {ID: "7", Data: "w"}}},
		"cut":             {"data: a\n\ndata: b\n", []Frame{{Data: "a"}}},
		"nul in id":       {"id: a\x00b\ndata: c\n\n", []Frame{{Data: "c"}}},
	} {
		if got := frames(t, c.wire); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	long := NewFrames(io.MultiReader(strings.NewReader("data: "), endless{}))
	if _, err := long.Next(); !errors.Is(err, ErrLine) {
		t.Errorf("an endless line: %v", err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}

// Whatever stands in an event comes out as it went in, however the wire is cut.
func FuzzFramesReadBackWhatWasWritten(f *testing.F) {
	f.Add("1", "item.delta", `{"a":"b"}`, "data: x\r\n\n")
	f.Add("", "", "", "\ufeff:\x00\nid: \n\n")
	f.Fuzz(func(t *testing.T, id, event, data, noise string) {
		reader := NewFrames(strings.NewReader(noise)) // must neither panic nor hang
		for {
			if _, err := reader.Next(); err != nil {
				break
			}
		}
		if strings.ContainsAny(id+event, "\r\n\x00") || strings.HasPrefix(id, " ") {
			return
		}
		body, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		wire := fmt.Sprintf(": beat\n\nid: %s\nevent: %s\ndata: %s\n\n", id, event, body)
		got := frames(t, wire)
		if len(got) != 1 || got[0].ID != id || got[0].Event != event || got[0].Data != string(body) {
			t.Fatalf("%q from %q", got, wire)
		}
	})
}

// Deltas put together give the text, in whatever order copies of them come again.
func TestDeltasAppliedTwiceDoNoHarm(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOfN(rapid.StringOf(rapid.RuneFrom([]rune("aß😀\n€ "))), 1, 8).Draw(t, "pieces")
		var list []Delta
		at := 0
		for _, p := range pieces {
			list = append(list, Delta{Offset: at, Text: p})
			at += len(utf16.Encode([]rune(p)))
		}
		text := ""
		for i := 0; i < len(list); {
			var err error
			if text, err = list[i].Apply(text); err != nil {
				t.Fatal(err)
			}
			i++
			if back := rapid.IntRange(0, 3).Draw(t, "back"); back == 3 {
				i = rapid.IntRange(0, i).Draw(t, "again from")
			} else if back == 2 {
				again, err := list[i-1].Apply(text)
				if err != nil || again != text {
					t.Fatalf("%q twice: %q, %v", list[i-1].Text, again, err)
				}
			}
		}
		if want := strings.Join(pieces, ""); text != want {
			t.Fatalf("%q, want %q", text, want)
		}
		if _, err := (Delta{Offset: at + 1, Text: "x"}).Apply(text); !errors.Is(err, ErrGap) {
			t.Fatalf("a gap: %v", err)
		}
	})
}

// T03: the token goes to the gateway only: not over plain HTTP to another machine, not along a redirect.
func TestT03_TokenStaysWithTheGateway(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"http://192.0.2.1:8420", "http://gateway.example", "http://127.0.0.1.evil.example", "ftp://127.0.0.1", "127.0.0.1:8420", "http://u:p@127.0.0.1",
		"http://127.0.0.1/?token=x", "http://127.0.0.1/#x", ""} {
		if _, err := New(base, "token"); err == nil {
			t.Errorf("%q is taken", base)
		}
	}
	for _, base := range []string{"http://127.0.0.1:8420", "http://localhost:1/", "http://[::1]:8420", "https://gateway.example"} {
		if _, err := New(base, "token"); err != nil {
			t.Errorf("%q: %v", base, err)
		}
	}
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("it was asked with %q", r.Header) }))
	defer other.Close()
	s := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer s.Close()
	c, err := New(s.URL, "token")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var p *Problem
	if err := c.Get(t.Context(), "/v1/agents", nil); !errors.As(err, &p) || p.Status != http.StatusTemporaryRedirect {
		t.Errorf("%v", err)
	}
}

func TestProblemsAndUnreachableGatewaysAreToldApart(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusConflict)
		fmt.Fprint(w, `{"type":"urn:parley:error:conflict","title":"Conflict","status":409,"detail":"No."}`)
	}))
	c, err := New(s.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var p *Problem
	if err := c.Post(t.Context(), "/v1/x", nil, nil); !errors.As(err, &p) || p.Code() != "conflict" || p.Error() != "No." {
		t.Errorf("%v", err)
	}
	s.Close()
	if err := c.Get(t.Context(), "/v1/x", nil); !errors.Is(err, ErrUnreachable) {
		t.Errorf("%v", err)
	}
}
