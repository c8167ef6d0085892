package llmtest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"parley/agentloop/llm"
	"parley/agentloop/llm/wire"
)

// What an adapter promises of calls that fail.

// fails asks a server that gives the reply, and says how often it was asked.
func (r *rig) fails(f Failure) (asked int, err error) {
	r.Helper()
	srv, m := r.serve(Sequence(f.Reply), nil)
	_, err = m.Stream(r.Context(), Ask("hi"), nil)
	r.failed(err, f)
	return srv.Count(), err
}

// classifiesStatuses gives each status in the words of both wire formats, since servers mix them.
func classifiesStatuses(r *rig) {
	says := map[int]string{400: "m refuses the request [(]400[)]", 401: "m refuses the key [(]401[)]",
		402: "the account at m has no credit left [(]402[)]", 403: "m does not allow this key to use the model [(]403[)]",
		404: "m does not know the model [(]404[)]", 408: "m did not answer in time [(]408[)]", 422: "m refuses the request [(]422[)]",
		429: "m takes no more requests for now [(]429[)]", 500: "m answers 500", 503: "m is unavailable [(]503[)]",
		504: "m did not answer in time [(]504[)]", 529: "m is overloaded [(]529[)]"}
	seconds := map[string]string{"Retry-After": "7"}
	resets := map[string]string{"X-Ratelimit-Remaining-Requests": "3", "X-Ratelimit-Reset-Requests": "9m",
		"X-Ratelimit-Remaining-Tokens": "0", "X-Ratelimit-Reset-Tokens": "6m0s"}
	for _, c := range []struct {
		status  int
		message string
		kind    llm.Kind
		told    string // of the message; empty: all of it
		header  map[string]string
		after   time.Duration
	}{
		{status: 400, message: "messages.0.content: bad \x1b[31m field", kind: llm.Rejected, told: `messages.0.content: bad \[31m field`},
		{status: 401, message: "Incorrect API key: sk-te******0123.", kind: llm.Auth, told: `Incorrect API key: \[redacted\]`},
		{status: 402, message: "no", kind: llm.Auth},
		{status: 403, message: "not for you", kind: llm.Auth},
		{status: 404, message: "model: `test-model`", kind: llm.Rejected, told: "model: 'test-model'"},
		{status: 408, message: "too slow", kind: llm.Overload},
		{status: 422, message: "bad field", kind: llm.Rejected},
		{status: 429, message: "slow down", kind: llm.Limited},
		{status: 429, message: "slow down", kind: llm.Limited, header: seconds, after: 7 * time.Second},
		{status: 429, message: "prompt is too long for your rate limit: context window", kind: llm.Limited},
		{status: 429, message: "slow down", kind: llm.Limited, header: resets, after: 6 * time.Minute},
		{status: 500, message: "upstream exploded for " + suiteKey, kind: llm.Overload, told: `upstream exploded for \[redacted\]`},
		{status: 500, message: "exploded", kind: llm.Overload, header: resets},
		{status: 503, message: "Unavailable", kind: llm.Overload},
		{status: 504, message: "timeout", kind: llm.Overload},
		{status: 529, message: "Overloaded", kind: llm.Overload, header: seconds, after: 7 * time.Second},
		{status: 413, message: "Request exceeds the maximum size", kind: llm.Overflow},
		{status: 400, message: "prompt is too long: 210000 tokens > 200000 maximum", kind: llm.Overflow},
		{status: 400, message: "input length and `max_tokens` exceed context limit: 195000 + 8192 > 200000", kind: llm.Overflow},
	} {
		for shape, body := range map[string]func(int, string) string{"openai": openAIError, "anthropic": anthropicError} {
			f := Failure{Name: fmt.Sprintf("%d %s in the shape of %s", c.status, c.message, shape), Kind: c.kind, After: c.after,
				Reply: Reply{Status: c.status, ErrorBody: body(c.status, c.message), Header: c.header}}
			if told := cmp.Or(c.told, c.message); c.kind != llm.Overflow { // of which people are told in other words
				f.Says = fmt.Sprintf("%s: `%s( .req_test.)?`", says[c.status], told)
			}
			asked, err := r.fails(f)
			if asked > 1 && (c.kind != llm.Rejected || asked > r.Wire.tries) {
				r.Errorf("%s: asked %d times", f.Name, asked)
			}
			if e := KindOf(r, err, c.kind); e.Status != c.status || shape == "anthropic" && !strings.Contains(e.Error(), r.Wire.support) {
				r.Errorf("%s: status %d, %v", f.Name, e.Status, e)
			}
		}
	}
}

func classifiesFailures(r *rig) {
	w := r.Wire
	inStream := func(status int, message string) string { return w.event + w.failure(status, message) }
	begun := w.head + w.text("a")
	const unreadable = "the answer of m cannot be read.*"
	const broken = "the connection to m broke off in the middle of an answer"
	raw := func(lines ...string) Reply { return Reply{Raw: append([]string{}, lines...)} }
	over := inStream(529, "Overloaded")
	for _, f := range append([]Failure{
		{Name: "502 of a proxy", Reply: Reply{Status: 502, ErrorBody: "<html>Bad gateway</html>"}, Kind: llm.Overload,
			Says: "m answers 502: `<html>Bad gateway</html>`"},
		{Name: "no words", Reply: Reply{Status: 503, ErrorBody: "{}"}, Kind: llm.Overload, Says: `m is unavailable \(503\).*`},
		{Name: "many words", Reply: Reply{Status: 500, ErrorBody: strings.Repeat("long ", 200)}, Kind: llm.Overload,
			Says: "m answers 500: `(long )+.{0,8}`"},
		{Name: "overloaded in the stream", Reply: raw(over), Kind: llm.Overload, Says: "m is overloaded \\(529\\): `Overloaded.*`"},
		{Name: "overloaded half-way", Reply: raw(begun, over), Kind: llm.Cut},
		{Name: "limited in the stream", Reply: raw(inStream(429, "slow down")), Kind: llm.Limited,
			Says: "m takes no more requests for now \\(429\\): `slow down.*`"},
		{Name: "key in the stream", Reply: raw(inStream(401, "No such key")), Kind: llm.Auth},
		{Name: "overflow in the stream", Reply: raw(inStream(413, "too large")), Kind: llm.Overflow},
		{Name: "key with status 200", Reply: raw(w.failure(401, "No such key")), Kind: llm.Auth},
		{Name: "one word with status 200", Reply: raw(`{"error":"boom"}`), Kind: llm.Overload},
		{Name: "garbage", Reply: raw("data: {nonsense"), Kind: llm.Malformed,
			Says: "the answer of m cannot be read: `unreadable event: .+`"},
		{Name: "an event that is cut", Reply: raw(`data: {"choices": [`), Kind: llm.Malformed, Says: unreadable},
		{Name: "a whole answer that is cut", Reply: raw(`{"type":"message","content":[{"type":"text","te`),
			Kind: llm.Malformed, Says: unreadable},
		{Name: "a web page", Reply: raw("<html><title>Welcome</title></html>"), Kind: llm.Malformed, Says: unreadable},
		{Name: "nothing at all", Reply: raw(), Kind: llm.Cut, Says: broken},
		{Name: "no end", Reply: raw(begun), Kind: llm.Cut, Says: broken},
		{Name: "an endless line", Reply: raw("data: " + strings.Repeat("x", wire.MaxLine)), Kind: llm.TooLong},
	}, r.Failures...) {
		if asked, _ := r.fails(f); asked != 1 {
			r.Errorf("%s: asked %d times", f.Name, asked)
		}
	}
}

func knowsOverflows(r *rig) {
	for name, reply := range Overflows() {
		if name == "gemini" && !r.Wire.lists {
			continue
		}
		if asked, _ := r.fails(Failure{Name: name, Reply: reply, Kind: llm.Overflow}); asked != 1 {
			r.Errorf("%s: asked %d times", name, asked)
		}
	}
}

func keepsTheKey(r *rig) {
	twice := fmt.Sprintf(`{"type":"error","error":{"type":%q,"code":%q,"message":"your key %s is wrong"}}`, suiteKey, suiteKey, suiteKey)
	for name, reply := range map[string]Reply{
		"body":      {Status: 400, ErrorBody: "bad key " + suiteKey + "\x1b[31m\nred\u202e"},
		"json":      {Status: 401, ErrorBody: twice},
		"at cut":    {Status: 500, ErrorBody: strings.Repeat("x", 290) + suiteKey},
		"split":     {Status: 500, ErrorBody: "key " + suiteKey[:8] + "\x00" + suiteKey[8:]},
		"stream":    {Raw: []string{r.Wire.event + r.Wire.failure(500, suiteKey)}},
		"malformed": {Raw: []string{"data: " + suiteKey}},
		"redirect":  {Status: 302, Header: map[string]string{"Location": "https://elsewhere.example/" + suiteKey}},
	} {
		r.fails(Failure{Name: name, Reply: reply})
	}
}

func followsNoRedirect(r *rig) {
	hit := make(chan struct{}, 10)
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hit <- struct{}{} }))
	defer thief.Close()
	for _, status := range []int{301, 302, 307, 308} {
		reply := Reply{Status: status, ErrorBody: "moved", Header: map[string]string{"Location": thief.URL + "/v1/x?q=1"}}
		_, err := r.fails(Failure{Name: "redirect", Reply: reply, Kind: llm.Rejected,
			Says: fmt.Sprintf("m answers %d: `it redirects elsewhere.*`", status)})
		if !strings.Contains(err.Error(), thief.URL) {
			r.Errorf("does not say where to: %v", err)
		}
	}
	if len(hit) != 0 {
		r.Error("followed")
	}
}

func hostOf(address string) string { return strings.TrimPrefix(address, "http://") }

func namesUnreachable(r *rig) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0)
	untrusted.StartTLS()
	defer untrusted.Close()
	resets := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer resets.Close()
	nowhere := &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "models.internal", IsNotFound: true}}
	for url, says := range map[string]string{
		gone.URL:                 "nothing listens at " + hostOf(gone.URL),
		"http://models.internal": "the host name models.internal is not known",
		strings.Replace(plain.URL, "http:", "https:", 1): "there is no TLS at " + hostOf(plain.URL),
		untrusted.URL: "its certificate is not trusted",
		resets.URL:    "the connection was closed before an answer",
	} {
		m := r.open(url+"/v1", func(o *Options) {
			if url == "http://models.internal" {
				o.HTTP.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) {
					return nil, nowhere
				}
			}
		})
		_, err := m.Stream(r.Context(), Ask("hi"), nil)
		r.failed(err, Failure{Name: says, Kind: llm.Overload, Says: "m cannot be reached: `" + says + "`"})
	}
}
