package telegramtest

import (
	"net/http"
	"strconv"
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

// Fault spoils calls.
type Fault struct {
	Method string // such as "sendMessage"; empty: all
	Chat   int64  // whose calls it spoils; 0: those of all chats, and of none
	Do     Do
	Times  int     // how many calls it spoils; 0: until ClearFaults
	Chance float64 // of each call, 0 to 1; 0: every call
	Status int     // of Reply; 429 without a Body is Telegram's flood error with After
	Body   string  // of Reply
	After  time.Duration
}

// BadGateway is the HTML page that Telegram's front end gives in trouble.
const BadGateway = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n<hr><center>nginx/1.18.0</center>\r\n</body>\r\n</html>\r\n"

// Rule is what the stage looks at.
func (f Fault) Rule() stage.Rule {
	return stage.Rule{Call: f.Method, Room: roomOf(f.Chat), Do: f.Do, Times: f.Times, Chance: f.Chance, After: f.After}
}

func roomOf(chat int64) string {
	if chat == 0 {
		return ""
	}
	return strconv.FormatInt(chat, 10)
}

// AddFault adds a rule behind those that stand; the first that fits is taken.
func (s *Server) AddFault(f Fault) { s.faults.Add(f) }

// ClearFaults removes all rules and lets hanging calls go: their connections are cut.
func (s *Server) ClearFaults() { s.faults.Clear() }

// Freeze makes the server deaf: it accepts every call and answers none, until ClearFaults.
func (s *Server) Freeze() { s.AddFault(Fault{Do: Hang}) }

func (s *Server) answerFault(w http.ResponseWriter, f Fault) {
	if f.Body == "" && f.Status == http.StatusTooManyRequests {
		s.writeError(w, tooMany(max(1, int(f.After/time.Second))))
		return
	}
	if f.Body == "" {
		s.writeError(w, &apiError{code: f.Status, text: http.StatusText(f.Status)})
		return
	}
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(f.Status)
	_, _ = w.Write([]byte(f.Body)) // the client may be gone
}
