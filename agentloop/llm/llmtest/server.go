package llmtest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Server is an http.Handler for /chat/completions, /messages, /models and /audio/transcriptions below any prefix. Its fields are set before it serves.
type Server struct {
	URL    string   // of Start: with its /v1
	Models []string // what /models lists
	Key    string   // when set, any other bearer token or x-api-key gets a 401
	Keep   int      // how many requests are recorded; later ones are only counted

	script Script
	n      atomic.Int64
	done   chan struct{}
	once   sync.Once

	mu      sync.Mutex
	kept    []*Request
	hearing hearing
}

// New is a server that records nothing, for a load driver.
func New(s Script) *Server {
	return &Server{Models: []string{"test-model"}, script: s, done: make(chan struct{})}
}

// Start serves the script on a loopback port until the test ends and records the first 1,000 requests.
func Start(t interface{ Cleanup(func()) }, s Script) *Server {
	srv := New(s)
	srv.Keep = 1000
	ts := httptest.NewServer(srv)
	srv.URL = ts.URL + "/v1"
	t.Cleanup(func() {
		srv.Close()
		ts.Close()
	})
	return srv
}

// Close lets go of every request that hangs. It may be called twice.
func (s *Server) Close() { s.once.Do(func() { close(s.done) }) }

// Count is the number of completion requests so far.
func (s *Server) Count() int { return int(s.n.Load()) }

// Requests are those recorded, in order of arrival.
func (s *Server) Requests() []*Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*Request(nil), s.kept...)
}

// Bodies of the recorded requests, in order of arrival.
func (s *Server) Bodies() []string {
	var out []string
	for _, r := range s.Requests() {
		out = append(out, string(r.Body))
	}
	return out
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/v1/messages") && r.Method == http.MethodPost:
		s.messages(w, r)
	case s.Key != "" && r.Header.Get("Authorization") != "Bearer "+s.Key:
		sendError(w, Unauthorized())
	case strings.HasSuffix(r.URL.Path, "/models"):
		s.listModels(w)
	case strings.HasSuffix(r.URL.Path, "/chat/completions") && r.Method == http.MethodPost:
		s.complete(w, r)
	case strings.HasSuffix(r.URL.Path, "/audio/transcriptions") && r.Method == http.MethodPost:
		s.transcribe(w, r)
	default:
		sendError(w, Failing(http.StatusNotFound))
	}
}

func (s *Server) listModels(w http.ResponseWriter) {
	type model struct {
		ID     string `json:"id"`
		Object string `json:"object"`
	}
	list := struct {
		Object string  `json:"object"`
		Data   []model `json:"data"`
	}{Object: "list"}
	for _, m := range s.Models {
		list.Data = append(list.Data, model{m, "model"})
	}
	w.Header().Set("Content-Type", "application/json")
	// The client may be gone; there is nobody to tell.
	_ = json.NewEncoder(w).Encode(list)
}

func (s *Server) complete(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.answer(w, r, &Request{Header: r.Header, Body: body})
}

// begin does what comes before any answer; false: the client is gone.
func (s *Server) begin(w http.ResponseWriter, r *http.Request, reply Reply) bool {
	if reply.HangBefore {
		s.wait(r, -1)
		panic(http.ErrAbortHandler)
	}
	if !s.wait(r, reply.Latency) {
		return false
	}
	for k, v := range reply.Header {
		w.Header().Set(k, v)
	}
	return true
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, req *Request) {
	s.record(req)
	reply := s.script(req)
	if !s.begin(w, r, reply) {
		return
	}
	chunks, whole := chunks, whole
	if req.anthropic {
		chunks, whole = events, wholeMessage
	}
	switch {
	case reply.Status > 299 && req.anthropic && reply.ErrorBody == "":
		reply.ErrorBody = anthropicError(reply.Status, http.StatusText(reply.Status))
		sendError(w, reply)
	case reply.Status > 299:
		sendError(w, reply)
	case reply.Raw != nil:
		s.stream(w, r, reply, rawChunks(reply.Raw))
	case reply.Whole || !streamed(req.Body):
		w.Header().Set("Content-Type", "application/json")
		// As above: nobody to tell.
		_, _ = w.Write(whole(req, reply))
	default:
		s.stream(w, r, reply, chunks(req, reply))
	}
}

func (s *Server) record(req *Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	req.N = int(s.n.Add(1))
	if len(s.kept) < s.Keep {
		s.kept = append(s.kept, req)
	}
}

// stream sends chunks; they are flushed one by one only when somebody could tell the difference.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, reply Reply, chunks [][]byte) {
	w.Header().Set("Content-Type", "text/event-stream")
	slow := reply.TokenDelay > 0 || reply.HangAfter > 0 || reply.CutAfter > 0
	flush := http.NewResponseController(w)
	for i, c := range chunks {
		if reply.HangAfter > 0 && i == reply.HangAfter {
			s.wait(r, -1)
			panic(http.ErrAbortHandler)
		}
		if reply.CutAfter > 0 && i == reply.CutAfter {
			panic(http.ErrAbortHandler)
		}
		if !s.wait(r, reply.TokenDelay) {
			return
		}
		if _, err := w.Write(c); err != nil {
			return
		}
		if slow && flush.Flush() != nil {
			return
		}
	}
}

// wait for d, or for ever when it is negative. It is false when the client left or the server closed.
func (s *Server) wait(r *http.Request, d time.Duration) bool {
	if d == 0 {
		return true
	}
	var tick <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		tick = t.C
	}
	select {
	case <-tick:
		return true
	case <-r.Context().Done():
	case <-s.done:
	}
	return false
}

func sendError(w http.ResponseWriter, reply Reply) {
	body := reply.ErrorBody
	if body == "" {
		body = `{"error":{"message":"` + http.StatusText(reply.Status) + `","type":"server_error","param":null,"code":null}}`
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(reply.Status)
	// The client may be gone; there is nobody to tell.
	_, _ = io.WriteString(w, body)
}
