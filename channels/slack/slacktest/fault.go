package slacktest

import (
	"io"
	"net/http"
	"time"

	"parley/channels/channeltest/stage"
)

// Do is what a Fault does to a call.
type Do = stage.Do

// What a Fault does: see the stage.
const (
	Reply     = stage.Reply
	CutBefore = stage.CutBefore
	CutAfter  = stage.CutAfter
	CutMiddle = stage.CutMiddle
	Hang      = stage.Hang
	Delay     = stage.Delay
)

// Fault spoils calls of the Web API.
type Fault struct {
	Method string // such as "chat.postMessage"; "upload", "download" and "response_url" for what is not a method; empty: all
	Do     Do
	Times  int     // how many calls it spoils; 0: until ClearFaults
	Chance float64 // of each call, 0 to 1; 0: every call
	Status int     // of Reply; 429 without a Body is Slack's own, with After as Retry-After
	Body   string  // of Reply: sent as HTML
	Error  string  // of Reply: {"ok":false,"error":…} with status 200
	After  time.Duration
}

// someAnswer is what CutMiddle halves.
const someAnswer = `{"ok":true,"channel":"C024BE91L"}`

// BadGateway is a page as Slack's front end gives in trouble.
const BadGateway = "<html><head><title>502 Bad Gateway</title></head><body><center><h1>502 Bad Gateway</h1></center></body></html>\n"

// Rule is what the stage looks at.
func (f Fault) Rule() stage.Rule {
	return stage.Rule{Call: f.Method, Do: f.Do, Times: f.Times, Chance: f.Chance, After: f.After}
}

// AddFault adds a rule behind those that stand; the first that fits is taken.
func (s *Server) AddFault(f Fault) { s.faults.Add(f) }

// ClearFaults removes all rules, lets hanging calls go (their connections are cut) and ends a Freeze.
func (s *Server) ClearFaults() {
	s.faults.Clear()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen = false
	s.events.mode = Faults{}
	s.flushHeld()
	for _, k := range s.sockets {
		k.stir()
	}
}

// Freeze makes the server deaf: it accepts every call and answers none, and its sockets neither speak nor ping.
func (s *Server) Freeze() {
	s.AddFault(Fault{Do: Hang})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen = true
}

func (s *Server) answerFault(w http.ResponseWriter, f Fault) {
	switch {
	case f.Error != "":
		writeFailure(w, fail(f.Error))
	case f.Status == http.StatusTooManyRequests && f.Body == "":
		writeFailure(w, limited(max(time.Second, f.After)))
	default:
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(f.Status)
		_, _ = io.WriteString(w, f.Body) // the client may be gone
	}
}
