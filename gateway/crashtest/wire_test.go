//go:build !race

package crashtest

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/agentloop/llm/llmtest"
	"parley/channels/telegram/telegramtest"
)

// wire stands between the daemon and its network and model, which survive it. It names the moments that a daemon
// can be killed at, and is told of each before it goes on.
type wire struct {
	tg    *telegramtest.Server
	llm   *llmtest.Server
	net   *httptest.Server
	model *httptest.Server
	// pass is called at every point. It is true when the daemon has just died there.
	pass func(point string) (died bool)

	script  atomic.Pointer[llmtest.Reply] // instead of the markers
	hung    chan struct{}                 // told when script was used
	acked   atomic.Int64                  // the highest update that was confirmed by a call that arrived
	again   atomic.Int64                  // updates that were given once more, for want of an acknowledgement
	asked   atomic.Int64                  // model calls
	reasked atomic.Int64                  // … of them, for an answer that had been asked for before: a turn is taken up again
	mu      sync.Mutex
	given   map[int64]bool
	wanted  map[string]bool
}

// wirePoints are the moments on the network's side, in the order of a message's life.
func wirePoints() []string {
	return []string{
		"getMe arrived", "getUpdates ready", "getUpdates given", "getUpdates confirms", "model asked", "model delta", "model answered",
		"model asked with results", "sendChatAction arrived", "placeholder arrived", "placeholder taken", "placeholder given",
		"edit arrived", "edit taken", "edit given", "answer arrived", "answer taken", "answer given",
		"last edit arrived", "last edit taken", "last edit given",
	}
}

func newWire(t *testing.T, opt telegramtest.Options) *wire {
	t.Helper()
	w := &wire{hung: make(chan struct{}), given: map[int64]bool{}, wanted: map[string]bool{}, pass: func(string) bool { return false }}
	w.tg = telegramtest.Start(t, opt)
	w.llm = llmtest.New(w.reply)
	w.net = httptest.NewServer(http.HandlerFunc(w.network))
	w.model = httptest.NewServer(http.HandlerFunc(w.complete))
	t.Cleanup(func() {
		w.tg.Close()
		w.llm.Close()
		w.net.Close()
		w.model.Close()
	})
	return w
}

// network is the Bot API with its points: a call has arrived, was taken (acted upon, no answer yet), was given its answer.
func (w *wire) network(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	form, _ := url.ParseQuery(string(body)) // a body of another kind has no fields that matter here
	method := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	switch name := called(method, form); {
	case method == "getUpdates":
		w.updates(rw, r, form)
	case strings.HasPrefix(name, "getMe"), strings.HasPrefix(name, "sendChatAction"):
		w.here(name + " arrived")
		w.tg.ServeHTTP(rw, r)
	case name != "":
		w.here(name + " arrived")
		answer := httptest.NewRecorder()
		w.tg.ServeHTTP(answer, r)
		w.here(name + " taken")
		give(rw, answer)
		w.pass(name + " given")
	default:
		w.tg.ServeHTTP(rw, r)
	}
}

// called names a call by what it means to the person who reads.
func called(method string, form url.Values) string {
	text := form.Get("text")
	switch {
	case method == "sendMessage" && text == "…":
		return "placeholder"
	case method == "sendMessage":
		return "answer"
	case method == "editMessageText" && marker.MatchString(text):
		return "last edit"
	case method == "editMessageText":
		return "edit"
	case method == "getMe" || method == "sendChatAction":
		return method
	}
	return ""
}

// here passes a point; a daemon that died there gets nothing more, and what it had asked for is not done.
func (w *wire) here(point string) {
	if w.pass(point) {
		panic(http.ErrAbortHandler)
	}
}

func give(rw http.ResponseWriter, answer *httptest.ResponseRecorder) {
	for k, v := range answer.Header() {
		rw.Header()[k] = v
	}
	rw.WriteHeader(answer.Code)
	_, _ = rw.Write(answer.Body.Bytes()) // the daemon may be gone
	_ = http.NewResponseController(rw).Flush()
}

// updates is getUpdates. A call whose offset is new is an acknowledgement on the wire.
func (w *wire) updates(rw http.ResponseWriter, r *http.Request, form url.Values) {
	offset, _ := strconv.ParseInt(form.Get("offset"), 10, 64) // absent: 0
	w.pass("getUpdates arrived")
	if offset-1 > w.acked.Load() {
		w.here("getUpdates confirms")
		w.acked.Store(offset - 1)
	}
	answer := httptest.NewRecorder()
	w.tg.ServeHTTP(answer, r)
	some := w.count(answer.Body.Bytes())
	if some {
		w.here("getUpdates ready")
	}
	give(rw, answer)
	if some {
		w.pass("getUpdates given")
	}
}

var updateID = regexp.MustCompile(`"update_id":(\d+)`)

// count notes which updates an answer holds, and says whether there is one.
func (w *wire) count(answer []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := updateID.FindAllSubmatch(answer, -1)
	for _, m := range all {
		id, _ := strconv.ParseInt(string(m[1]), 10, 64) // digits
		if w.given[id] {
			w.again.Add(1)
		}
		w.given[id] = true
	}
	return len(all) > 0
}

// ask notes what the model is asked.
func (w *wire) ask(body []byte) {
	w.asked.Add(1)
	sum := fmt.Sprintf("%x", sha256.Sum256(body))
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.wanted[sum] {
		w.reasked.Add(1)
	}
	w.wanted[sum] = true
}

// complete is the model server with its points.
func (w *wire) complete(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	w.ask(body)
	w.here("model asked")
	if (&llmtest.Request{Body: body}).ToolResults() != nil {
		w.here("model asked with results")
	}
	w.llm.ServeHTTP(&deltas{ResponseWriter: rw, w: w}, r)
	w.pass("model answered")
}

// deltas passes a point between the chunks of a stream that is sent slowly.
type deltas struct {
	http.ResponseWriter
	w *wire
	n int
}

func (d *deltas) Flush() {
	_ = http.NewResponseController(d.ResponseWriter).Flush() // the daemon may be gone
	if d.n++; d.n > 3 {
		d.w.here("model delta")
	}
}

// marker is what each message carries and its answer repeats: the chat and the message's number in it.
var marker = regexp.MustCompile(`c\d\dn\d{4}`)

func markerOf(chat, n int) string { return fmt.Sprintf("c%02dn%04d", chat, n) }

func (w *wire) reply(r *llmtest.Request) llmtest.Reply {
	if s := w.script.Load(); s != nil {
		select {
		case w.hung <- struct{}{}:
		default: // nobody waits for it
		}
		return *s
	}
	return markers(r)
}

// markers is the script of the model: it answers all that was not answered yet, in order and with the markers at the
// end. A message that says "tools" is answered after three rounds of calls, one that says "stream" slowly. The others
// take what a very fast model takes.
func markers(r *llmtest.Request) llmtest.Reply {
	var open []string
	var tools, stream bool
	rounds := 0
	for _, m := range r.Chat().Messages {
		switch m.Role {
		case "user":
			text := m.Text()
			for _, k := range marker.FindAllString(text, -1) {
				if !slices.Contains(open, k) {
					open = append(open, k)
				}
			}
			tools = tools || strings.Contains(text, "tools")
			stream = stream || strings.Contains(text, "stream")
		case "assistant":
			if len(m.ToolCalls) > 0 {
				rounds++
				continue
			}
			open, tools, stream, rounds = nil, false, false, 0
		}
	}
	if tools && rounds < 3 {
		return llmtest.Reply{Calls: []llmtest.Call{
			{Name: "list_dir", Args: `{"path": "."}`},
			{Name: "read_file", Args: fmt.Sprintf(`{"path": "note-%d.txt"}`, rounds)},
		}}
	}
	end := "done: " + strings.Join(open, " ")
	if !stream {
		return llmtest.Reply{Text: end, Latency: time.Duration(20+rand.IntN(80)) * time.Millisecond}
	}
	words := strings.SplitAfter(strings.Repeat("a long answer ", 4), " ")
	return llmtest.Reply{Pieces: append(words, end), TokenDelay: 10 * time.Millisecond}
}
