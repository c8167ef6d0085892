package slack

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"time"

	"parley/channels"
)

const (
	namesMost = 20_000
	namesHold = 6 * time.Hour
	namesRest = 5 * time.Minute // after a refusal, such as a missing scope
)

// names remembers what conversations and people are called. A name is a label and never an identity: where it cannot be
// learnt in time there is none.
type names struct {
	mu    sync.Mutex
	rooms map[string]room
	users map[string]known
}

type room struct {
	kind, title string
	until       time.Time
}

type known struct {
	name  string
	until time.Time
}

func newNames() *names { return &names{rooms: map[string]room{}, users: map[string]known{}} }

// room is what conversations.info says of a conversation.
func (c *Channel) room(ctx context.Context, id string) room {
	now := c.clock.Now()
	c.names.mu.Lock()
	got, ok := c.names.rooms[id]
	c.names.mu.Unlock()
	if ok && now.Before(got.until) {
		return got
	}
	info, err := read[struct {
		Channel struct {
			Name  string `json:"name"`
			MPIM  bool   `json:"is_mpim"`
			IM    bool   `json:"is_im"`
			Group bool   `json:"is_group"`
		} `json:"channel"`
	}](ctx, c, "conversations.info", url.Values{"channel": {id}})
	hold, keep := rest(err)
	got = room{kind: "channel", title: info.Channel.Name, until: now.Add(hold)}
	switch {
	case info.Channel.MPIM:
		got.kind = "mpim"
	case info.Channel.IM:
		got.kind = "im"
	}
	if keep {
		c.names.mu.Lock()
		if len(c.names.rooms) > namesMost {
			clear(c.names.rooms)
		}
		c.names.rooms[id] = got
		c.names.mu.Unlock()
	}
	return got
}

// rest says how long an answer holds, and whether it is to be kept at all.
func rest(err error) (time.Duration, bool) {
	var e *channels.Error
	switch {
	case err == nil:
		return namesHold, true
	case errors.As(err, &e) && e.Class != channels.Unknown && e.Class != channels.Retry:
		return namesRest, true
	}
	return 0, false
}

// kind is what sort of conversation it is; said is the event's own word, which some events lack.
func (c *Channel) kind(ctx context.Context, id, said string) channels.PeerKind {
	if said == "" {
		if strings.HasPrefix(id, "D") {
			return channels.DM
		}
		said = c.room(ctx, id).kind
	}
	switch said {
	case "im", "app_home":
		return channels.DM
	case "mpim":
		return channels.Group
	}
	return channels.Room
}

// title is the name of a channel; direct messages have none.
func (c *Channel) title(ctx context.Context, id string) string {
	if strings.HasPrefix(id, "D") {
		return ""
	}
	return c.room(ctx, id).title
}

// person is somebody's name.
func (c *Channel) person(ctx context.Context, id string) string {
	if id == "" || id == "USLACKBOT" {
		return ""
	}
	now := c.clock.Now()
	c.names.mu.Lock()
	got, ok := c.names.users[id]
	c.names.mu.Unlock()
	if ok && now.Before(got.until) {
		return got.name
	}
	info, err := read[struct {
		User struct {
			Name    string `json:"name"`
			Real    string `json:"real_name"`
			Profile struct {
				Display string `json:"display_name"`
				Real    string `json:"real_name"`
			} `json:"profile"`
		} `json:"user"`
	}](ctx, c, "users.info", url.Values{"user": {id}})
	u := info.User
	for _, name := range []string{u.Profile.Display, u.Profile.Real, u.Real, u.Name} {
		if got.name = name; name != "" {
			break
		}
	}
	hold, keep := rest(err)
	got.until = now.Add(hold)
	if keep {
		c.names.mu.Lock()
		if len(c.names.users) > namesMost {
			clear(c.names.users)
		}
		c.names.users[id] = got
		c.names.mu.Unlock()
	}
	return got.name
}
