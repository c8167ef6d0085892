package slacktest

import (
	"slices"
	"strings"
)

func apiTest(*call) (reply, *failure) { return nil, nil }

func authTest(c *call) (reply, *failure) {
	if c.team == nil { // the app-level token
		return reply{"app_name": "Parley", "app_id": c.s.app.ID}, nil
	}
	t := c.team
	return reply{"url": "https://" + t.Domain + ".slack.com/", "team": t.Name, "user": t.Bot.Name, "team_id": t.ID,
		"user_id": t.Bot.ID, "bot_id": t.Bot.BotID, "is_enterprise_install": false}, nil
}

func (c *call) channelReply(ch *Channel) reply {
	out := reply{"id": ch.ID, "name": ch.Name, "is_archived": ch.Archived, "is_channel": ch.Kind == Public, "is_group": ch.Kind == Private,
		"is_im": ch.Kind == IM, "is_mpim": ch.Kind == MPIM, "is_private": ch.Kind != Public, "is_member": ch.isMember(c.team.Bot.ID),
		"context_team_id": ch.Team, "num_members": len(ch.Members), "created": 1700000000}
	if ch.Kind == IM {
		for _, u := range ch.Members {
			if u != c.team.Bot.ID {
				out["user"] = u
			}
		}
		delete(out, "name")
	}
	return out
}

func conversationInfo(c *call) (reply, *failure) {
	ch := c.s.chans[c.get("channel")]
	if ch == nil || ch.Team != c.team.ID || ch.Kind != Public && !ch.isMember(c.team.Bot.ID) {
		return nil, fail("channel_not_found")
	}
	if bad := c.scopeOf(ch, "read"); bad != nil {
		return nil, bad
	}
	return reply{"channel": c.channelReply(ch)}, nil
}

func conversationOpen(c *call) (reply, *failure) {
	if id := c.get("channel"); id != "" {
		ch := c.s.chans[id]
		if ch == nil || ch.Team != c.team.ID {
			return nil, fail("channel_not_found")
		}
		return reply{"channel": reply{"id": ch.ID}, "no_op": true, "already_open": true}, nil
	}
	users := strings.FieldsFunc(c.get("users"), func(r rune) bool { return r == ',' })
	if len(users) == 0 {
		return nil, fail("users_list_not_supplied")
	}
	if len(users) > 8 {
		return nil, fail("too_many_users")
	}
	for _, id := range users {
		u := c.s.users[id]
		switch {
		case u == nil || u.Team != c.team.ID:
			return nil, fail("user_not_found")
		case u.Deleted:
			return nil, fail("user_disabled")
		}
	}
	if len(users) == 1 {
		return reply{"channel": reply{"id": c.s.im(c.team, users[0]).ID}}, nil
	}
	ch := &Channel{ID: c.s.id("G"), Team: c.team.ID, Kind: MPIM, Members: append(users, c.team.Bot.ID), byTS: map[string]*Message{}}
	c.s.chans[ch.ID] = ch
	return reply{"channel": reply{"id": ch.ID}}, nil
}

// conversationList is conversations.list and users.conversations, which is the same of where the bot is.
func conversationList(c *call) (reply, *failure) {
	types := strings.Split(c.get("types"), ",")
	if c.get("types") == "" {
		types = []string{"public_channel"}
	}
	names := map[ChannelKind]string{Public: "public_channel", Private: "private_channel", IM: "im", MPIM: "mpim"}
	var all []*Channel
	for _, ch := range c.s.chans {
		member := ch.isMember(c.team.Bot.ID)
		hidden := ch.Kind != Public || c.name == "users.conversations"
		if ch.Team != c.team.ID || !slices.Contains(types, names[ch.Kind]) || hidden && !member || ch.Archived && c.bool("exclude_archived") {
			continue
		}
		if bad := c.scopeOf(ch, "read"); bad != nil {
			return nil, bad
		}
		all = append(all, ch)
	}
	slices.SortFunc(all, func(a, b *Channel) int { return strings.Compare(a.ID, b.ID) })
	ids := make([]string, len(all))
	for i, ch := range all {
		ids[i] = ch.ID
	}
	page, next := c.ids(ids)
	list := []reply{}
	for _, id := range page {
		list = append(list, c.channelReply(c.s.chans[id]))
	}
	return reply{"channels": list, "response_metadata": reply{"next_cursor": next}}, nil
}

// ids cuts a sorted list after the cursor.
func (c *call) ids(all []string) (page []string, next string) {
	if cur := c.get("cursor"); cur != "" {
		i, _ := slices.BinarySearch(all, cur)
		all = all[min(i, len(all)):]
	}
	limit := c.int("limit", 100)
	if limit < 1 || limit > 1000 {
		limit = 100
	}
	if len(all) > limit {
		return all[:limit], all[limit]
	}
	return all, ""
}

func conversationMembers(c *call) (reply, *failure) {
	ch, bad := c.place("channel", false)
	if bad != nil {
		return nil, bad
	}
	members := slices.Clone(ch.Members)
	slices.Sort(members)
	page, next := c.ids(members)
	return reply{"members": page, "response_metadata": reply{"next_cursor": next}}, nil
}

func usersInfo(c *call) (reply, *failure) {
	u := c.s.users[c.get("user")]
	if u == nil || u.Team != c.team.ID {
		return nil, fail("user_not_found")
	}
	return reply{"user": reply{"id": u.ID, "team_id": u.Team, "name": u.Name, "real_name": u.Real, "deleted": u.Deleted, "is_bot": u.Bot,
		"tz": u.TZ, "profile": reply{"real_name": u.Real, "display_name": u.Name, "bot_id": u.BotID}}}, nil
}

func botsInfo(c *call) (reply, *failure) {
	for _, u := range c.s.users {
		if u.BotID == c.get("bot") && u.BotID != "" && u.Team == c.team.ID {
			return reply{"bot": reply{"id": u.BotID, "user_id": u.ID, "name": u.Name, "app_id": c.s.app.ID, "deleted": u.Deleted}}, nil
		}
	}
	return nil, fail("bot_not_found")
}

func teamInfo(c *call) (reply, *failure) {
	return reply{"team": reply{"id": c.team.ID, "name": c.team.Name, "domain": c.team.Domain}}, nil
}

// target is the message that reactions.add and remove name.
func (c *call) target() (*Channel, *Message, *failure) {
	if c.get("channel") == "" || c.get("timestamp") == "" {
		return nil, nil, fail("no_item_specified")
	}
	ch, bad := c.place("channel", false)
	if bad != nil {
		return nil, nil, bad
	}
	m := ch.find(c.get("timestamp"))
	if m == nil {
		return nil, nil, fail("message_not_found")
	}
	if name := c.get("name"); name == "" || strings.ContainsFunc(name, func(r rune) bool { return r > 127 || r == ' ' }) {
		return nil, nil, fail("invalid_name") // names, never the emoji itself
	}
	return ch, m, nil
}

func reactionAdd(c *call) (reply, *failure) {
	ch, m, bad := c.target()
	if bad != nil {
		return nil, bad
	}
	if ch.Archived {
		return nil, fail("is_archived")
	}
	if !m.react(strings.Trim(c.get("name"), ":"), c.team.Bot.ID) {
		return nil, fail("already_reacted")
	}
	c.s.tellReaction(ch, m, "reaction_added", c.get("name"), c.team.Bot.ID)
	return nil, nil
}

func reactionRemove(c *call) (reply, *failure) {
	ch, m, bad := c.target()
	if bad != nil {
		return nil, bad
	}
	if !m.unreact(strings.Trim(c.get("name"), ":"), c.team.Bot.ID) {
		return nil, fail("no_reaction")
	}
	c.s.tellReaction(ch, m, "reaction_removed", c.get("name"), c.team.Bot.ID)
	return nil, nil
}

func (m *Message) react(name, user string) bool {
	for i := range m.Reactions {
		if m.Reactions[i].Name == name {
			if slices.Contains(m.Reactions[i].Users, user) {
				return false
			}
			m.Reactions[i].Users = append(m.Reactions[i].Users, user)
			return true
		}
	}
	m.Reactions = append(m.Reactions, Reaction{name, []string{user}})
	return true
}

func (m *Message) unreact(name, user string) bool {
	for i, r := range m.Reactions {
		j := slices.Index(r.Users, user)
		if r.Name != name || j < 0 {
			continue
		}
		m.Reactions[i].Users = slices.Delete(slices.Clone(r.Users), j, j+1)
		if len(m.Reactions[i].Users) == 0 {
			m.Reactions = slices.Delete(slices.Clone(m.Reactions), i, i+1)
		}
		return true
	}
	return false
}
