package telegram

import "encoding/json"

// The structs here are the part of https://core.telegram.org/bots/api#update that is read. They are ours since
// the SDK's stop at Bot API 5, before topics, reactions and quotes.

// allowedUpdates is sent with every poll: the server remembers the last list, and reactions are off unless named.
const allowedUpdates = `["message","edited_message","channel_post","callback_query","my_chat_member","message_reaction"]`

type update struct {
	ID       int64           `json:"update_id"`
	Message  *message        `json:"message"`
	Edited   *message        `json:"edited_message"`
	Post     *message        `json:"channel_post"`
	Callback *callback       `json:"callback_query"`
	Reaction *reactionUpdate `json:"message_reaction"`
}

type message struct {
	ID         int64    `json:"message_id"`
	Thread     int64    `json:"message_thread_id"`
	IsTopic    bool     `json:"is_topic_message"` // else Thread marks a reply chain
	From       *user    `json:"from"`             // missing on channel posts
	SenderChat *chat    `json:"sender_chat"`      // anonymous admins, channels
	Chat       *chat    `json:"chat"`
	Date       int64    `json:"date"` // seconds; 0: inaccessible
	EditDate   int64    `json:"edit_date"`
	Forward    *present `json:"forward_origin"`
	ViaBot     *present `json:"via_bot"`
	ReplyTo    *message `json:"reply_to_message"`
	External   *present `json:"external_reply"`
	Quote      *quote   `json:"quote"`
	Album      string   `json:"media_group_id"`

	Text            string   `json:"text"`
	Entities        []entity `json:"entities"`
	Caption         string   `json:"caption"`
	CaptionEntities []entity `json:"caption_entities"`

	Document  *media    `json:"document"`
	Photo     []media   `json:"photo"`
	Voice     *media    `json:"voice"`
	Audio     *media    `json:"audio"`
	Video     *media    `json:"video"`
	VideoNote *media    `json:"video_note"`
	Animation *media    `json:"animation"`
	Sticker   *media    `json:"sticker"`
	Location  *location `json:"location"`
	Venue     *venue    `json:"venue"`
	Contact   *contact  `json:"contact"`
	Poll      *poll     `json:"poll"`
	Dice      *dice     `json:"dice"`
	Story     *present  `json:"story"`
	Paid      *present  `json:"paid_media"`
	Game      *titled   `json:"game"`
	Invoice   *titled   `json:"invoice"`
	Checklist *titled   `json:"checklist"`

	MigrateTo   int64 `json:"migrate_to_chat_id"`
	MigrateFrom int64 `json:"migrate_from_chat_id"`
}

type chat struct {
	ID       int64  `json:"id"`
	Type     string `json:"type"`
	Title    string `json:"title"`
	Username string `json:"username"`
}

type user struct {
	ID       int64  `json:"id"`
	IsBot    bool   `json:"is_bot"`
	First    string `json:"first_name"`
	Last     string `json:"last_name"`
	Username string `json:"username"`
}

// entity is a span of a text, counted in UTF-16 units.
type entity struct {
	Type   string `json:"type"`
	Offset int    `json:"offset"`
	Length int    `json:"length"`
	User   *user  `json:"user"` // of text_mention
}

type quote struct {
	Text string `json:"text"`
}

// media is any file: the fields that the kinds share, and the few that they do not.
type media struct {
	FileID     string `json:"file_id"`
	Name       string `json:"file_name"`
	MIME       string `json:"mime_type"`
	Size       int64  `json:"file_size"`
	Width      int64  `json:"width"`
	Height     int64  `json:"height"`
	Emoji      string `json:"emoji"`       // of a sticker
	IsAnimated bool   `json:"is_animated"` // of a sticker: .tgs
	IsVideo    bool   `json:"is_video"`    // of a sticker: .webm
}

type location struct {
	Latitude  float64 `json:"latitude"`
	Longitude float64 `json:"longitude"`
}

type venue struct {
	Title   string `json:"title"`
	Address string `json:"address"`
}

type contact struct {
	Phone string `json:"phone_number"`
	First string `json:"first_name"`
	Last  string `json:"last_name"`
}

type poll struct {
	Question string `json:"question"`
	Options  []struct {
		Text string `json:"text"`
	} `json:"options"`
}

type dice struct {
	Emoji string `json:"emoji"`
	Value int    `json:"value"`
}

// titled is a game, an invoice or a checklist.
type titled struct {
	Title string `json:"title"`
	Tasks []struct {
		Text string `json:"text"`
	} `json:"tasks"`
}

type callback struct {
	ID      string   `json:"id"`
	From    *user    `json:"from"`
	Message *message `json:"message"`
	Data    string   `json:"data"`
}

type reactionUpdate struct {
	Chat  *chat      `json:"chat"`
	ID    int64      `json:"message_id"`
	User  *user      `json:"user"`
	Actor *chat      `json:"actor_chat"` // of an anonymous admin
	Date  int64      `json:"date"`
	Old   []reaction `json:"old_reaction"`
	New   []reaction `json:"new_reaction"`
}

type reaction struct {
	Type   string `json:"type"` // emoji, custom_emoji, paid
	Emoji  string `json:"emoji"`
	Custom string `json:"custom_emoji_id"`
}

// present notes only that a field is there, whatever is in it.
type present struct{}

// UnmarshalJSON takes anything.
func (*present) UnmarshalJSON([]byte) error { return nil }

// updateID reads the id of an update whose rest cannot be read; 0: it has none.
func updateID(raw json.RawMessage) int64 {
	var u struct {
		ID int64 `json:"update_id"`
	}
	if json.Unmarshal(raw, &u) != nil {
		return 0
	}
	return u.ID
}
