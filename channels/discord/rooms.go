package discord

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"parley/channels"
)

// rooms knows the channels of the bot's servers, and which roles the bot has there.
type rooms struct {
	mu       sync.Mutex
	channels map[string]channel
	roles    map[string][]string // the bot's own, by server
}

func newRooms() *rooms { return &rooms{channels: map[string]channel{}, roles: map[string][]string{}} }

func (r *rooms) put(all ...channel) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range all {
		if c.ID != "" && c.Guild != "" {
			if old, ok := r.channels[c.ID]; ok && older(c.Last, old.Last) {
				c.Last = old.Last
			}
			r.channels[c.ID] = c
		}
	}
}

func (r *rooms) drop(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.channels, id)
}

// leave forgets a server.
func (r *rooms) leave(guild string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.roles, guild)
	maps.DeleteFunc(r.channels, func(_ string, c channel) bool { return c.Guild == guild })
}

// heard notes a message, so that the next reading back knows where something is new.
func (r *rooms) heard(id, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c, ok := r.channels[id]; ok && older(c.Last, message) {
		c.Last = message
		r.channels[id] = c
	}
}

func (r *rooms) find(id string) (channel, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, ok := r.channels[id]
	return c, ok
}

// all are the channels and threads of all servers.
func (r *rooms) all() []channel {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]channel, 0, len(r.channels))
	for _, c := range r.channels {
		list = append(list, c)
	}
	return list
}

// ours says whether the bot has one of the roles in a server.
func (r *rooms) ours(guild string, roles []string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(roles, func(id string) bool { return slices.Contains(r.roles[guild], id) })
}

// hasRoles says whether the bot's roles in a server are known.
func (r *rooms) hasRoles(guild string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.roles[guild]
	return ok
}

func (r *rooms) setRoles(guild string, roles []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.roles[guild] = roles
}

// learn takes from an event what it tells about servers and channels.
func (c *Channel) learn(self *identity, name string, raw json.RawMessage) {
	switch name {
	case "GUILD_CREATE":
		g, err := decode[guild](raw)
		if err != nil {
			c.log.Warn("a server cannot be read", "err", err)
			return
		}
		for _, list := range [][]channel{g.Channels, g.Threads} {
			for i := range list {
				list[i].Guild = g.ID // inside they do not say it
			}
			c.rooms.put(list...)
		}
		for _, m := range g.Members {
			if m.User != nil && m.User.ID == self.id {
				c.rooms.setRoles(g.ID, m.Roles)
			}
		}
	case "CHANNEL_CREATE", "CHANNEL_UPDATE", "THREAD_CREATE", "THREAD_UPDATE":
		if ch, err := decode[channel](raw); err == nil {
			c.rooms.put(*ch)
		}
	case "GUILD_DELETE":
		if g, err := decode[guild](raw); err == nil && !g.Away {
			c.rooms.leave(g.ID)
		}
	case "CHANNEL_DELETE", "THREAD_DELETE":
		if ch, err := decode[channel](raw); err == nil {
			c.rooms.drop(ch.ID)
		}
	case "THREAD_LIST_SYNC":
		if g, err := decode[struct {
			Guild   string    `json:"guild_id"`
			Threads []channel `json:"threads"`
		}](raw); err == nil {
			for i := range g.Threads {
				g.Threads[i].Guild = g.Guild
			}
			c.rooms.put(g.Threads...)
		}
	case "GUILD_MEMBER_UPDATE":
		if m, err := decode[struct {
			Guild string   `json:"guild_id"`
			User  *user    `json:"user"`
			Roles []string `json:"roles"`
		}](raw); err == nil && m.User != nil && m.User.ID == self.id {
			c.rooms.setRoles(m.Guild, m.Roles)
		}
	}
}

// room is a channel of a server, asked for when it is not known. A channel that is gone is an empty one.
func (c *Channel) room(ctx context.Context, guild, id string) (channel, error) {
	if ch, ok := c.rooms.find(id); ok {
		return ch, nil
	}
	var ch channel
	err := c.rest.get(ctx, "look at a channel", "channels/"+id, &ch)
	switch channels.ClassOf(err) {
	case channels.PeerGone, channels.BadMessage:
		return channel{ID: id, Guild: guild}, nil
	case channels.Retry, channels.Fatal, channels.Unknown:
		if err != nil {
			return channel{}, err
		}
	}
	ch.ID, ch.Guild = id, guild // some servers leave them out
	c.rooms.put(ch)
	return ch, nil
}

// address is where a message of a channel stands. A thread belongs to its channel, whose bindings it has.
func (s *identity) address(guild string, ch channel) channels.Address {
	a := channels.Address{Network: Network, Account: channels.AccountID(s.id), Kind: channels.Room, Peer: channels.PeerID(ch.ID)}
	if guild == "" {
		a.Kind = channels.DM
	}
	if ch.thread() && ch.Parent != "" {
		a.Peer, a.Thread = channels.PeerID(ch.Parent), channels.ThreadID(ch.ID)
	}
	return a
}

// place is the channel of an address: the thread's own, if there is one.
func place(a channels.Address) (string, error) {
	id := string(a.Peer)
	if a.Thread != "" {
		id = string(a.Thread)
	}
	if !idFormat().MatchString(id) {
		return "", bad("channel id %q is not Discord's", id)
	}
	return id, nil
}
