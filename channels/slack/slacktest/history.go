package slacktest

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
)

// scopeOf is the scope that a kind of channel needs: channels, groups, im or mpim, with ":history" or ":read".
func (c *call) scopeOf(ch *Channel, what string) *failure {
	area := map[ChannelKind]string{Public: "channels", Private: "groups", IM: "im", MPIM: "mpim"}[ch.Kind]
	return needs(c.team.Scopes, []string{area + ":" + what})
}

// between says whether ts is in the asked range; timestamps have one length, so text order is time order.
func (c *call) between(ts string) bool {
	if o := c.get("oldest"); o != "" && o != "0" && (stamp(ts) < stamp(o) || ts == o && !c.bool("inclusive")) {
		return false
	}
	if l := c.get("latest"); l != "" && l != "now" && (stamp(ts) > stamp(l) || ts == l && !c.bool("inclusive")) {
		return false
	}
	return true
}

// stamp is a ts in microseconds.
func stamp(ts string) int64 {
	sec, frac, _ := strings.Cut(ts, ".")
	n, err := strconv.ParseInt(sec, 10, 64)
	if err != nil {
		return 0
	}
	f, err := strconv.ParseInt((frac + "000000")[:6], 10, 64)
	if err != nil {
		return n * 1e6
	}
	return n*1e6 + f
}

// conversationHistory is conversations.history: newest first. With oldest alone the page is the one closest to it, so that one can
// go forward (https://docs.slack.dev/reference/methods/conversations.history).
func conversationHistory(c *call) (reply, *failure) {
	ch, bad := c.place("channel", false)
	if bad != nil {
		return nil, bad
	}
	if bad := c.scopeOf(ch, "history"); bad != nil {
		return nil, bad
	}
	var all []*Message
	for _, m := range ch.msgs {
		top := m.ThreadTS == "" || m.ThreadTS == m.TS || m.Broadcast
		if top && !m.Deleted && m.For == "" && c.between(m.TS) {
			all = append(all, m)
		}
	}
	forward := c.get("oldest") != "" && c.get("oldest") != "0" && c.get("latest") == ""
	if !forward {
		slices.Reverse(all)
	}
	page, more, next, bad := c.page(all, 100, 999)
	if bad != nil {
		return nil, bad
	}
	if forward {
		slices.Reverse(page)
	}
	out := reply{"messages": c.wires(ch, page), "has_more": more, "pin_count": 0}
	if more {
		out["response_metadata"] = reply{"next_cursor": next}
	}
	return out, nil
}

func (c *call) wires(ch *Channel, list []*Message) []reply {
	out := make([]reply, 0, len(list))
	for _, m := range list {
		out = append(out, c.s.wire(ch, m, c.bool("include_all_metadata")))
	}
	return out
}

// page cuts list after the cursor: the last ts that was given.
func (c *call) page(list []*Message, usual, most int) (page []*Message, more bool, next string, bad *failure) {
	limit := c.int("limit", usual)
	if limit < 1 || limit > most {
		limit = usual
	}
	if cur := c.get("cursor"); cur != "" {
		raw, err := base64.StdEncoding.DecodeString(cur)
		ts, ok := strings.CutPrefix(string(raw), "next_ts:")
		if err != nil || !ok {
			return nil, false, "", fail("invalid_cursor")
		}
		i := slices.IndexFunc(list, func(m *Message) bool { return m.TS == ts })
		list = list[i+1:]
	}
	if len(list) > limit {
		list, more = list[:limit], true
		next = base64.StdEncoding.EncodeToString([]byte("next_ts:" + list[limit-1].TS))
	}
	return list, more, next, nil
}

// replies is conversations.replies: the root on every page, then its replies, oldest first.
func replies(c *call) (reply, *failure) {
	ch, bad := c.place("channel", false)
	if bad != nil {
		return nil, bad
	}
	if bad := c.scopeOf(ch, "history"); bad != nil {
		return nil, bad
	}
	root := ch.byTS[c.get("ts")]
	if root == nil {
		return nil, fail("thread_not_found")
	}
	if root.ThreadTS != "" && root.ThreadTS != root.TS {
		root = ch.byTS[root.ThreadTS]
	}
	if root == nil {
		return nil, fail("thread_not_found")
	}
	var rest []*Message
	for _, m := range ch.repliesOf(root.TS) {
		if c.between(m.TS) {
			rest = append(rest, m)
		}
	}
	if root.Deleted && len(rest) == 0 {
		return nil, fail("thread_not_found")
	}
	page, more, next, bad := c.page(rest, 1000, 1000)
	if bad != nil {
		return nil, bad
	}
	out := reply{"messages": c.wires(ch, append([]*Message{root}, page...)), "has_more": more}
	if more {
		out["response_metadata"] = reply{"next_cursor": next}
	}
	return out, nil
}

// wire is a message as Slack writes it.
func (s *Server) wire(ch *Channel, m *Message, metadata bool) reply {
	out := reply{"type": "message", "ts": m.TS, "text": m.Text, "team": ch.Team}
	if m.Deleted { // the root of a thread that still has replies
		return reply{"type": "message", "subtype": "tombstone", "ts": m.TS, "thread_ts": m.TS, "user": "USLACKBOT",
			"text": "This message was deleted.", "hidden": true}
	}
	set := func(k string, v string) {
		if v != "" {
			out[k] = v
		}
	}
	set("user", m.User)
	set("bot_id", m.BotID)
	set("subtype", m.Subtype)
	set("thread_ts", m.ThreadTS)
	if m.BotID == "" {
		set("client_msg_id", m.clientID)
	} else if u := s.users[m.User]; u != nil {
		out["app_id"] = s.app.ID
		out["bot_profile"] = reply{"id": m.BotID, "app_id": s.app.ID, "user_id": m.User, "name": u.Name, "team_id": ch.Team}
	}
	if len(m.Blocks) > 0 {
		out["blocks"] = m.Blocks
	}
	if metadata && len(m.Metadata) > 0 {
		out["metadata"] = m.Metadata
	}
	if m.EditedAt != "" {
		out["edited"] = reply{"user": m.User, "ts": m.EditedAt}
	}
	if len(m.Files) > 0 {
		var files []reply
		for _, f := range m.Files {
			files = append(files, s.wireFile(&f, false))
		}
		out["files"], out["upload"] = files, false
	}
	if len(m.Reactions) > 0 {
		var list []reply
		for _, r := range m.Reactions {
			list = append(list, reply{"name": r.Name, "users": r.Users, "count": len(r.Users)})
		}
		out["reactions"] = list
	}
	if m.ThreadTS != "" && m.ThreadTS != m.TS {
		if root := ch.byTS[m.ThreadTS]; root != nil {
			set("parent_user_id", root.User)
		}
	}
	s.wireThread(ch, m, out)
	return out
}

// wireThread adds what the root of a thread says of it.
func (s *Server) wireThread(ch *Channel, m *Message, out reply) {
	if m.ThreadTS != "" && m.ThreadTS != m.TS {
		return
	}
	list := ch.repliesOf(m.TS)
	if len(list) == 0 {
		return
	}
	var users []string
	for _, r := range list {
		if !slices.Contains(users, r.User) && len(users) < 5 {
			users = append(users, r.User)
		}
	}
	out["thread_ts"], out["reply_count"], out["reply_users"] = m.TS, len(list), users
	out["reply_users_count"], out["latest_reply"] = len(users), list[len(list)-1].TS
}
