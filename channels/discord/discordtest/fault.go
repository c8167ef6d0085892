package discordtest

import (
	"net/http"
	"strconv"
	"time"

	"parley/channels/channeltest/stage"
)

// Do is what a Fault does to a request.
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

// Fault spoils REST requests.
type Fault struct {
	Route  string // such as "POST /channels/{channel}/messages"; empty: all
	Do     Do
	Times  int     // how many it spoils; 0: until ClearFaults
	Chance float64 // of each, 0 to 1; 0: every one
	Status int     // of Reply; 429 without a Body is Discord's own, with After as Retry-After
	Body   string  // of Reply
	Global bool    // of a 429
	After  time.Duration
}

// BadGateway is the page of the front end in trouble, Banned the CDN's for an address with too many bad requests.
const (
	BadGateway = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n<hr><center>cloudflare</center>\r\n</body>\r\n</html>\r\n"
	Banned     = htmlLimited
)

// Rule is what the stage looks at.
func (f Fault) Rule() stage.Rule {
	return stage.Rule{Call: f.Route, Do: f.Do, Times: f.Times, Chance: f.Chance, After: f.After}
}

// AddFault adds a rule behind those that stand; the first that fits is taken.
func (s *Server) AddFault(f Fault) { s.faults.Add(f) }

// ClearFaults removes all rules and those of the gateway, and lets what hangs go: its connections are cut.
func (s *Server) ClearFaults() {
	s.faults.Clear()
	s.Gateway(func(f *GatewayFault) { *f = GatewayFault{} })
}

// Freeze makes the server deaf: REST and the gateway accept everything and answer nothing, until ClearFaults.
func (s *Server) Freeze() {
	s.AddFault(Fault{Do: Hang})
	s.Gateway(func(f *GatewayFault) { f.Frozen = true })
}

func (s *Server) answer(w http.ResponseWriter, f Fault) {
	if f.Body == "" && f.Status == http.StatusTooManyRequests {
		s.refuse(w, s.limited(w, max(f.After, time.Millisecond), f.Global))
		return
	}
	if f.Body == "" {
		s.refuse(w, refuse(f.Status, 0, strconv.Itoa(f.Status)+": "+http.StatusText(f.Status)))
		return
	}
	if f.After > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(f.After/time.Second)))
	}
	w.Header().Set("Content-Type", "text/html; charset=UTF-8")
	w.WriteHeader(f.Status)
	_, _ = w.Write([]byte(f.Body)) // the client may be gone
}
