package openai

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/agentloop/llm"
	"parley/agentloop/llm/llmtest"
)

func transcriber(t *testing.T, srv *llmtest.Server, change func(*TranscriberOptions)) *Transcriber {
	t.Helper()
	o := TranscriberOptions{Model: "whisper-1", BaseURL: srv.URL, APIKey: testKey, HTTP: &http.Client{Transport: &http.Transport{}}, Pause: time.Millisecond}
	if change != nil {
		change(&o)
	}
	tr, err := NewTranscriber(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.HTTP.CloseIdleConnections)
	return tr
}

func TestRecordingIsSentAsAFormAndComesBackAsText(t *testing.T) {
	t.Parallel()
	srv, _ := serve(t, llmtest.Echo)
	srv.Hear(func(*llmtest.Audio) llmtest.Reply { return llmtest.Reply{Text: " buy \"milk\"\n"} })
	tr := transcriber(t, srv, func(o *TranscriberOptions) { o.Language = "de" })
	sound := strings.Repeat("OggS", 5000)
	text, err := tr.Transcribe(t.Context(), `rec"o.ogg`, "audio/ogg", strings.NewReader(sound))
	if err != nil || text != `buy "milk"` {
		t.Fatalf("%q, %v", text, err)
	}
	a := srv.Heard()[0]
	if a.Model != "whisper-1" || a.Language != "de" || a.MIME != "audio/ogg" || a.Name != `rec"o.ogg` || string(a.Data) != sound {
		t.Errorf("%s %s %s %q, %d bytes", a.Model, a.Language, a.MIME, a.Name, len(a.Data))
	}
	if a.Header.Get("Content-Length") != "" && a.Header.Get("Transfer-Encoding") != "" {
		t.Error("the length is not told")
	}
}

func TestTranscriptionThatMayPassIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		replies []llmtest.Reply
		calls   int
		kind    llm.Kind // empty: it works
	}{
		"limit":       {[]llmtest.Reply{{Status: 429}, {Text: "fine"}}, 2, ""},
		"overload":    {[]llmtest.Reply{{Status: 503}, {Status: 500}, {Text: "fine"}}, 3, ""},
		"always":      {[]llmtest.Reply{{Status: 503}}, 3, llm.Overload},
		"long limit":  {[]llmtest.Reply{{Status: 429, Header: map[string]string{"Retry-After": "3600"}}}, 1, llm.Limited},
		"bad audio":   {[]llmtest.Reply{{Status: 400}}, 1, llm.Rejected},
		"key":         {[]llmtest.Reply{{Status: 401}}, 1, llm.Auth},
		"too large":   {[]llmtest.Reply{{Status: 413}}, 1, llm.Overflow},
		"a page":      {[]llmtest.Reply{{Raw: []string{"<html>"}}}, 1, llm.Malformed},
		"no text":     {[]llmtest.Reply{{Raw: []string{`{"task":"transcribe"}`}}}, 1, llm.Malformed},
		"an endless":  {[]llmtest.Reply{{Text: strings.Repeat("x", maxTranscript)}}, 1, llm.Malformed},
		"quota is up": {[]llmtest.Reply{{Status: 429, ErrorBody: `{"error":{"message":"no","code":"insufficient_quota"}}`}}, 1, llm.Auth},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, _ := serve(t, llmtest.Echo)
			srv.Hear(func(a *llmtest.Audio) llmtest.Reply { return c.replies[min(a.N, len(c.replies))-1] })
			text, err := transcriber(t, srv, nil).Transcribe(t.Context(), "a.ogg", "audio/ogg", strings.NewReader("sound"))
			if llm.KindOf(err) != c.kind || c.kind == "" && (err != nil || text != "fine") {
				t.Errorf("%q, %v", text, err)
			}
			heard := srv.Heard()
			if len(heard) != c.calls {
				t.Errorf("%d calls, want %d", len(heard), c.calls)
			}
			for _, a := range heard {
				if string(a.Data) != "sound" {
					t.Errorf("call %d brought %q", a.N, a.Data)
				}
			}
			if err != nil && strings.Contains(err.Error(), testKey) {
				t.Error("the key is in the error")
			}
		})
	}
}

func TestTranscriptionThatHangsEnds(t *testing.T) {
	t.Parallel()
	srv, _ := serve(t, llmtest.Echo)
	srv.Hear(func(*llmtest.Audio) llmtest.Reply { return llmtest.Reply{HangBefore: true} })
	tr := transcriber(t, srv, func(o *TranscriberOptions) { o.Timeout = 20 * time.Millisecond })
	if _, err := tr.Transcribe(t.Context(), "a.ogg", "audio/ogg", strings.NewReader("sound")); llm.KindOf(err) != llm.TimedOut {
		t.Errorf("%v", err)
	}
	gone := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if _, err := tr.Transcribe(ctx, "a.ogg", "audio/ogg", strings.NewReader("sound")); llm.KindOf(err) != llm.Cancelled || !errors.Is(err, gone) {
		t.Errorf("%v", err)
	}
}

// refusing answers every call with 503 without a socket.
type refusing struct{ calls int }

func (r *refusing) RoundTrip(*http.Request) (*http.Response, error) {
	r.calls++
	return &http.Response{StatusCode: 503, Body: http.NoBody, Header: http.Header{"Retry-After": {"5"}}}, nil
}

func TestTranscriptionWaitsAsLongAsTheServerSays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tr, err := NewTranscriber(TranscriberOptions{Model: "w", BaseURL: "http://127.0.0.1:1/v1", HTTP: &http.Client{Transport: &refusing{}}})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, err = tr.Transcribe(t.Context(), "a.ogg", "audio/ogg", strings.NewReader("x"))
		if took := time.Since(start); llm.KindOf(err) != llm.Overload || took != 10*time.Second {
			t.Errorf("%v after %s", err, took)
		}
	})
}
