package discord

import (
	"encoding/json"
	"strconv"
	"time"
)

// The parts of Discord's objects that are read. They are decoded from the raw events: the SDK's own types fail as a whole
// on one component that they do not know, and in a page of messages take the rest along.

type user struct {
	ID     string `json:"id"`
	Name   string `json:"username"`
	Global string `json:"global_name"`
	Bot    bool   `json:"bot"`
}

type member struct {
	User  *user    `json:"user"`
	Nick  string   `json:"nick"`
	Roles []string `json:"roles"`
}

// Types of messages, https://discord.com/developers/docs/resources/message#message-object-message-types.
const (
	typeDefault = 0
	typeReply   = 19
	typeStarter = 21 // stands in a thread for the message from which it was started
)

const flagVoice = 1 << 13

type message struct {
	ID          string       `json:"id"`
	Channel     string       `json:"channel_id"`
	Guild       string       `json:"guild_id"`
	Type        int          `json:"type"`
	Author      *user        `json:"author"`
	Member      *member      `json:"member"`
	Webhook     string       `json:"webhook_id"`
	Content     string       `json:"content"`
	Time        string       `json:"timestamp"`
	Edited      string       `json:"edited_timestamp"`
	Flags       int          `json:"flags"`
	Nonce       any          `json:"nonce"`
	Mentions    []user       `json:"mentions"`
	RoleMention []string     `json:"mention_roles"`
	Attachments []attachment `json:"attachments"`
	Reference   *struct {
		Message string `json:"message_id"`
		Channel string `json:"channel_id"`
		Type    int    `json:"type"` // 1: a forward
	} `json:"message_reference"`
	Referenced *message `json:"referenced_message"`
	Snapshots  []struct {
		Message struct {
			Content     string       `json:"content"`
			Attachments []attachment `json:"attachments"`
		} `json:"message"`
	} `json:"message_snapshots"`
	Stickers []struct {
		Name string `json:"name"`
	} `json:"sticker_items"`
	Poll *struct {
		Question struct {
			Text string `json:"text"`
		} `json:"question"`
	} `json:"poll"`
	Reactions []struct {
		Me    bool  `json:"me"`
		Emoji emoji `json:"emoji"`
	} `json:"reactions"`
}

type attachment struct {
	ID   string `json:"id"`
	Name string `json:"filename"`
	MIME string `json:"content_type"`
	Size int64  `json:"size"`
	URL  string `json:"url"`
}

type emoji struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

type reaction struct {
	User    string  `json:"user_id"`
	Channel string  `json:"channel_id"`
	Message string  `json:"message_id"`
	Guild   string  `json:"guild_id"`
	Member  *member `json:"member"`
	Emoji   emoji   `json:"emoji"`
}

type deletion struct {
	ID      string   `json:"id"`
	IDs     []string `json:"ids"`
	Channel string   `json:"channel_id"`
	Guild   string   `json:"guild_id"`
}

// Types of interactions.
const (
	typeCommand   = 2
	typeComponent = 3
)

type interaction struct {
	ID      string      `json:"id"`
	Type    int         `json:"type"`
	Token   string      `json:"token"`
	Guild   string      `json:"guild_id"`
	Channel string      `json:"channel_id"`
	Place   *channel    `json:"channel"`
	Member  *member     `json:"member"` // in servers
	User    *user       `json:"user"`   // in direct messages
	Message *message    `json:"message"`
	Data    interactive `json:"data"`
}

type interactive struct {
	Name     string   `json:"name"`
	CustomID string   `json:"custom_id"`
	Options  []option `json:"options"`
}

type option struct {
	Name    string   `json:"name"`
	Value   any      `json:"value"`
	Options []option `json:"options"`
}

// Types of channels.
const (
	typeDirect        = 1
	typeGroup         = 3
	typeNewsThread    = 10
	typePublicThread  = 11
	typePrivateThread = 12
)

type channel struct {
	ID     string `json:"id"`
	Type   int    `json:"type"`
	Guild  string `json:"guild_id"`
	Parent string `json:"parent_id"`
	Name   string `json:"name"`
	Last   string `json:"last_message_id"`
}

func (c *channel) direct() bool { return c.Type == typeDirect || c.Type == typeGroup }

func (c *channel) thread() bool {
	return c.Type == typeNewsThread || c.Type == typePublicThread || c.Type == typePrivateThread
}

type guild struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Away     bool      `json:"unavailable"`
	Channels []channel `json:"channels"`
	Threads  []channel `json:"threads"`
	Members  []member  `json:"members"`
}

type ready struct {
	Session string  `json:"session_id"`
	Resume  string  `json:"resume_gateway_url"`
	Guilds  []guild `json:"guilds"`
}

// epoch is the beginning of Discord's time, in milliseconds
// (https://discord.com/developers/docs/reference#snowflakes).
const epoch = 1420070400000

// born is when an id was made; zero for what is not an id.
func born(id string) time.Time {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(int64(n>>22) + epoch).UTC() //nolint:gosec // 42 bits
}

// at is the smallest id of a time.
func at(t time.Time) string {
	ms := max(0, t.UnixMilli()-epoch)
	return strconv.FormatUint(uint64(ms)<<22, 10) //nolint:gosec // not negative
}

// older says that one id was made before another.
func older(a, b string) bool { return len(a) < len(b) || len(a) == len(b) && a < b }

// when reads Discord's time; what cannot be read is the id's.
func when(stamp, id string) time.Time {
	t, err := time.Parse(time.RFC3339, stamp)
	if err != nil {
		return born(id)
	}
	return t.UTC()
}

// decode reads raw into a new T.
func decode[T any](raw json.RawMessage) (*T, error) {
	var v T
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, err
	}
	return &v, nil
}
