package webchat

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"parley/channels"
	"parley/channels/channeltest"
)

// browser is a person's page as the network's far side: it keeps what it said until that is stored, shows posts, and comes
// back by itself.
type browser struct {
	w    *world
	who  channeltest.Who
	done chan struct{}

	saying sync.Mutex // held while something is said, so that it is said in order

	// The rest is guarded by world.mu.
	ws      *websocket.Conn
	pending []outgoing
	stored  map[string]bool
	shown   []postFrame
	typing  map[string]int
}

// outgoing is something that the page says until it hears what became of it.
type outgoing struct {
	id   string
	data []byte
}

// hear is what a page understands.
type hear struct {
	Type    string                `json:"type"`
	ID      string                `json:"id"`
	Session string                `json:"session"`
	Problem *struct{ Status int } `json:"problem"`
	postFrame
}

// live is the page's life: it dials when it may and reads until the line is cut.
func (b *browser) live(ctx context.Context) {
	defer close(b.done)
	for ctx.Err() == nil {
		if !b.w.mayDial(ctx) {
			return
		}
		ws, err := b.dial(ctx)
		if err != nil {
			channels.Sleep(ctx, 5*time.Millisecond)
			continue
		}
		b.read(ctx, ws)
		b.w.change(func() { b.ws = nil })
		_ = ws.CloseNow() // it has ended
	}
}

func (b *browser) dial(ctx context.Context) (*websocket.Conn, error) {
	h := http.Header{"Cookie": {"parley=" + secret}}
	ws, _, err := websocket.Dial(ctx, strings.Replace(b.w.server.URL, "http", "ws", 1)+"?who="+string(b.who), &websocket.DialOptions{HTTPClient: b.w.http, HTTPHeader: h})
	if err != nil {
		return nil, err
	}
	ws.SetReadLimit(-1)
	return ws, nil
}

func (b *browser) read(ctx context.Context, ws *websocket.Conn) {
	for {
		_, data, err := ws.Read(ctx)
		if err != nil {
			return
		}
		var f hear
		if err := json.Unmarshal(data, &f); err != nil {
			panic(fmt.Sprintf("the line sent %q: %v", data, err))
		}
		b.heard(ctx, ws, f)
	}
}

func (b *browser) heard(ctx context.Context, ws *websocket.Conn, f hear) {
	switch f.Type {
	case "hello":
		b.saying.Lock()
		defer b.saying.Unlock()
		var again []outgoing
		down := false
		b.w.change(func() { b.ws, again, down = ws, slices.Clone(b.pending), b.w.down })
		if down { // it came while the line was being cut
			_ = ws.CloseNow()
		}
		for _, o := range again {
			b.write(ctx, ws, o.data)
		}
	case "closing":
		b.w.change(func() { b.w.stopped = true })
	case "stored":
		b.w.change(func() {
			b.stored[f.ID] = true
			b.drop(f.ID)
		})
	case "refused":
		b.refused(ctx, ws, f)
	case "typing":
		b.w.change(func() { b.typing[f.Session]++ })
	case "post":
		b.post(ctx, ws, f)
	}
}

// refused says it again if it was not the page's fault.
func (b *browser) refused(ctx context.Context, ws *websocket.Conn, f hear) {
	var again []byte
	b.w.change(func() {
		for _, o := range b.pending {
			if o.id == f.ID && f.Problem != nil && f.Problem.Status >= 500 {
				again = o.data
			}
		}
		if again == nil {
			b.drop(f.ID)
		}
	})
	if again != nil && channels.Sleep(ctx, time.Millisecond) {
		b.write(ctx, ws, again)
	}
}

// post shows what the gateway says, and answers as the test wants the network to.
func (b *browser) post(ctx context.Context, ws *websocket.Conn, f hear) {
	p := f.postFrame
	p.ID, p.Session = f.ID, f.Session
	var how string
	var wait time.Duration
	b.w.change(func() {
		known := slices.ContainsFunc(b.shown, func(old postFrame) bool { return old.ID == p.ID })
		switch {
		case b.w.frozen:
			how = "frozen"
		case !known: // what is shown already comes again with every new line
			how, wait = b.w.how, b.w.wait
			b.w.how = ""
		}
		if how == "" || how == "swallow" {
			b.show(p)
		}
	})
	switch how {
	case "":
		b.say(ctx, ws, map[string]any{"type": "got", "id": p.ID})
	case "swallow":
		_ = ws.CloseNow() // the page dies with its answer
	case "flood":
		b.say(ctx, ws, map[string]any{"type": "got", "id": p.ID, "problem": "busy", "wait": wait.Seconds()})
	case "trouble":
		b.say(ctx, ws, map[string]any{"type": "got", "id": p.ID, "problem": "TypeError: x is undefined"})
	case "bad":
		b.write(ctx, ws, []byte("<html>502</html>"))
	}
}

// show puts a post where its id says.
func (b *browser) show(p postFrame) {
	i := slices.IndexFunc(b.shown, func(old postFrame) bool { return old.ID == p.ID })
	switch {
	case p.Removed && i >= 0:
		b.shown = slices.Delete(b.shown, i, i+1)
	case p.Removed:
	case i >= 0:
		b.shown[i] = p
	default:
		b.shown = append(b.shown, p)
	}
}

func (b *browser) drop(id string) {
	b.pending = slices.DeleteFunc(b.pending, func(o outgoing) bool { return o.id == id })
}

func (b *browser) say(ctx context.Context, ws *websocket.Conn, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	b.write(ctx, ws, data)
}

// write hands the line a frame; a cut one is noticed by who reads.
func (b *browser) write(ctx context.Context, ws *websocket.Conn, data []byte) {
	_ = ws.Write(ctx, websocket.MessageText, data) // said again after the next hello
}

// world is WebChat's network: the pages of two people, and the gateway behind the line.
type world struct {
	t      channeltest.T
	server *httptest.Server
	http   *http.Client
	desk   *fakeDesk
	pages  map[channeltest.Who]*browser
	cancel context.CancelFunc
	ctx    context.Context

	mu      sync.Mutex
	changed chan struct{}
	ch      *Channel
	serving int
	down    bool
	frozen  bool
	stopped bool // the gateway has said goodbye, and was not started again
	how     string
	wait    time.Duration
	ids     int
}
