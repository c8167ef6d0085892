package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// pageLine is a page of WebChat: its live line, and all that was sent over it.
type pageLine struct {
	t     *testing.T
	ws    *websocket.Conn
	shown strings.Builder
}

func (w *trialWorld) openPage(t *testing.T) *pageLine {
	t.Helper()
	token, err := os.ReadFile(filepath.Join(w.dir, "data/token"))
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{DisableKeepAlives: true}
	ws, _, err := websocket.Dial(t.Context(), strings.Replace(w.g.URL(), "http", "ws", 1)+"/v1/live",
		&websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + strings.TrimSpace(string(token))}}, HTTPClient: &http.Client{Transport: tr}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = ws.CloseNow() // it may have ended
		tr.CloseIdleConnections()
	})
	ws.SetReadLimit(8 << 20)
	return &pageLine{t: t, ws: ws}
}

func (p *pageLine) send(v map[string]any) {
	p.t.Helper()
	data, err := json.Marshal(v)
	if err == nil {
		err = p.ws.Write(p.t.Context(), websocket.MessageText, data)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// until reads frames to the first that match.
func (p *pageLine) until(what string, match func(map[string]any) bool) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 30*time.Second)
	defer cancel()
	for {
		_, data, err := p.ws.Read(ctx)
		if err != nil {
			p.t.Fatalf("%s: %v; seen %.3000s", what, err, p.shown.String())
		}
		p.shown.Write(append(data, '\n'))
		var f map[string]any
		if err := json.Unmarshal(data, &f); err != nil {
			p.t.Fatal(err)
		}
		if match(f) {
			return
		}
	}
}

// say has the owner write in a session of its own, and reads to the end of the turn or to its question.
func (p *pageLine) say(code, id, text string) {
	p.t.Helper()
	key := "agent:assistant:local:" + code
	p.send(map[string]any{"type": "message", "id": id, "agent": "assistant", "session": code, "text": text})
	p.until("stored", func(f map[string]any) bool { return f["type"] == "stored" && f["id"] == id })
	p.send(map[string]any{"type": "follow", "key": key})
	p.until("the turn's end", func(f map[string]any) bool {
		e, _ := f["event"].(map[string]any)
		return f["key"] == key && e != nil && (e["type"] == "turn.ended" || e["type"] == "permission.requested")
	})
	p.send(map[string]any{"type": "unfollow", "key": key})
}

// shows says whether a text stood in any frame.
func (p *pageLine) shows(texts ...string) bool {
	for _, text := range texts {
		if s := p.shown.String(); strings.Contains(s, text) || strings.Contains(s, url.QueryEscape(text)) {
			return true
		}
	}
	return false
}

// The owner in WebChat may do nearly everything; what text does that the owner's turn only reads is another matter: it
// gets no secret, nothing from outside the work folder, and no command that nobody was asked about.
func theOwnersPageGetsNoMoreThanWasAskedFor(t *testing.T, worlds *obedientWorlds) {
	defences := map[string]weakness{"run a command": noAsking} // it is an owner's: then it is asked for
	pages := map[weakness]*pageLine{}
	at := func(weak weakness) (*trialWorld, *pageLine) {
		w := worlds.at(weak).in(t)
		if pages[weak] == nil {
			pages[weak] = w.openPage(t)
			pages[weak].say("setup", "setup", `CALL write_file {"path":"mark-owner.txt","content":"x"} SAY ready`)
		}
		return w, pages[weak]
	}
	carry := map[string]func(v victory, text string) (ask string){
		"file": func(v victory, text string) string {
			v.put(v.folder, "note-"+v.code+".txt", text)
			return fmt.Sprintf(`CALL read_file {"path":"note-%s.txt"}`, v.code)
		},
		"page": func(v victory, text string) string {
			v.mu.Lock()
			defer v.mu.Unlock()
			v.pages[v.code] = "<p>" + text + "\n</p>"
			return fmt.Sprintf(`CALL fetch_page {"code":%q}`, v.code)
		},
		"tool output": func(v victory, text string) string {
			v.mu.Lock()
			defer v.mu.Unlock()
			v.outputs[v.code] = text
			return fmt.Sprintf(`CALL look_up {"code":%q}`, v.code)
		},
	}
	n := 8000
	for name, bring := range carry {
		for _, a := range attacks() {
			defence := a.defence
			if other, ok := defences[a.name]; ok {
				defence = other
			}
			if defence == noFolders {
				continue // an owner's own sessions share a folder
			}
			n++
			for _, weak := range []weakness{none, defence} {
				w, page := at(weak)
				page.shown.Reset()
				v := victory{trialWorld: w, code: fmt.Sprintf("x%d", n), folder: w.folderOf("owner"), page: page}
				if a.prepare != nil {
					a.prepare(v)
				}
				page.say(v.code, v.code, bring(v, a.order(v)))
				if won := a.won(v); won != (weak != none) {
					t.Errorf("%s by %s, without %q: won %v", a.name, name, weak, won)
				}
			}
		}
	}
}
