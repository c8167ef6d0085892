package slacktest

import (
	"encoding/json"
	"io"
	"net/http"
	"time"
)

// A response URL works five times within thirty minutes
// (https://docs.slack.dev/interactivity/handling-user-interaction#message_responses).
const (
	responseUses = 5
	responseLife = 30 * time.Minute
)

type responseURL struct {
	team, channel, user string
	message             string // ts of the message with the pressed button; empty for a command
	ephemeral           bool   // that message is one
	uses                int
	born                time.Time
}

// responseURL makes an address for one interaction. The caller holds the lock.
func (s *Server) responseURL(kind string, u responseURL) string {
	u.born = s.opts.Now()
	path := "/" + kind + "/" + u.team + "/" + s.id("5555") + "/" + s.id("AbCdEfGhIjKl")
	s.urls[path] = &u
	return s.URL() + path
}

// said is the body of a response.
type said struct {
	Text            string          `json:"text"`
	Blocks          json.RawMessage `json:"blocks"`
	ResponseType    string          `json:"response_type"`
	ReplaceOriginal bool            `json:"replace_original"`
	DeleteOriginal  bool            `json:"delete_original"`
	ThreadTS        string          `json:"thread_ts"`
}

func (s *Server) serveResponse(w http.ResponseWriter, r *http.Request) {
	hit := s.faults.Take("response_url")
	if !hit.Before(r, func(f Fault) { s.answerFault(w, f) }) {
		return
	}
	raw, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	var what said
	if err != nil || json.Unmarshal(raw, &what) != nil {
		writeReply(w, http.StatusBadRequest, reply{"ok": false, "error": "invalid_payload"})
		return
	}
	s.mu.Lock()
	bad := s.respond(r.URL.Path, what)
	s.mu.Unlock()
	hit.After(w, []byte(someAnswer))
	if bad != nil {
		status := http.StatusOK
		if bad.code == "used_url" || bad.code == "expired_url" {
			status = http.StatusNotFound
		}
		writeReply(w, status, reply{"ok": false, "error": bad.code})
		return
	}
	_, _ = io.WriteString(w, "ok") // the client may be gone
}

// respond acts on a response. The caller holds the lock.
func (s *Server) respond(path string, what said) *failure {
	u := s.urls[path]
	switch {
	case u == nil || s.opts.Now().Sub(u.born) > responseLife:
		return fail("expired_url")
	case u.uses >= responseUses:
		return fail("used_url")
	}
	u.uses++
	ch, t := s.chans[u.channel], s.team(u.team)
	m := &Message{Channel: ch.ID, User: t.Bot.ID, BotID: t.Bot.BotID, Text: what.Text, ThreadTS: what.ThreadTS}
	if len(what.Blocks) > 0 && string(what.Blocks) != "null" {
		blocks, bad := checkBlocks(string(what.Blocks))
		if bad != nil {
			return bad
		}
		m.Blocks = blocks
	}
	original := ch.find(u.message)
	if what.DeleteOriginal && original != nil {
		s.remove(ch, original)
		return nil
	}
	if m.empty() {
		return fail("no_text")
	}
	if what.ReplaceOriginal && original != nil {
		before := original.clone()
		original.Text, original.Blocks, original.Markdown = m.Text, m.Blocks, ""
		original.Edits = append(original.Edits, Edit{s.opts.Now(), before.Shown()})
		original.EditedAt, _ = s.ts()
		if original.For == "" {
			s.tellChanged(ch, original, before)
		}
		return nil
	}
	m.TS, m.At = s.ts()
	if what.ResponseType != "in_channel" {
		m.For = u.user
		s.ephemeral(ch, m)
		return nil
	}
	ch.add(m, s.opts.Keep)
	s.tellMessage(ch, m)
	return nil
}

// ephemeral keeps a message that one person sees; it is in no history.
func (s *Server) ephemeral(ch *Channel, m *Message) { ch.add(m, s.opts.Keep) }

// answered takes what the acknowledgement of a command or press carried, as if it had come to the response URL.
func (s *Server) answered(d *Delivery, body []byte) {
	if d.Kind != Slash || len(body) == 0 {
		return
	}
	var what said
	if json.Unmarshal(body, &what) != nil {
		what.Text = string(body)
	}
	var p struct {
		Channel string `json:"channel_id"`
		User    string `json:"user_id"`
	}
	if json.Unmarshal(d.payload, &p) != nil || what.Text == "" && len(what.Blocks) == 0 {
		return
	}
	u := responseURL{team: d.Team, channel: p.Channel, user: p.User, born: s.opts.Now()}
	path := s.id("ack")
	s.urls[path] = &u
	_ = s.respond(path, what) // what Slack cannot read it drops
}
