package slack

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
)

// envelope is one frame of the socket, or one request over HTTP.
type envelope struct {
	ID      string          `json:"envelope_id"`
	Type    string          `json:"type"` // events_api, slash_commands, interactive, disconnect, hello
	Reason  string          `json:"reason"`
	Payload json.RawMessage `json:"payload"`

	For []installation `json:"-"` // empty: it does not say
	raw []byte         // the whole frame
	bad bool           // it cannot be read; ID is as far as it could be
}

// readEnvelope reads as much of a frame as can be read: what cannot is journalled as it is.
func readEnvelope(raw []byte) envelope {
	var e envelope
	if err := json.Unmarshal(raw, &e); err != nil {
		e.bad = true
		var id struct {
			ID string `json:"envelope_id"`
		}
		if json.Unmarshal(raw, &id) == nil {
			e.ID = id.ID
		}
	}
	e.raw = raw
	e.For = installations(e.Payload)
	return e
}

// installation is one of the app in a workspace, or in a whole organisation (Enterprise Grid).
type installation struct {
	team, enterprise string
	user             string // the bot's
}

// installations are those that a payload is for, the surest first. An event in a channel that is shared between workspaces
// has the writer's as its team_id: what counts is the installation through which it came
// (https://docs.slack.dev/apis/events-api/#authorizations).
func installations(payload json.RawMessage) (list []installation) {
	var at struct {
		TeamID  string `json:"team_id"`
		Context string `json:"context_team_id"`
		Team    struct {
			ID string `json:"id"`
		} `json:"team"`
		Authorizations []struct {
			Team       string `json:"team_id"`
			User       string `json:"user_id"`
			Enterprise string `json:"enterprise_id"`
			Whole      bool   `json:"is_enterprise_install"`
			Bot        bool   `json:"is_bot"`
		} `json:"authorizations"`
	}
	_ = json.Unmarshal(payload, &at) // what cannot be read is ours to journal
	for _, a := range at.Authorizations {
		in := installation{team: a.Team}
		if a.Bot {
			in.user = a.User
		}
		if a.Whole {
			in.enterprise = a.Enterprise
		}
		list = append(list, in)
	}
	for _, team := range []string{at.Context, at.TeamID, at.Team.ID} {
		if in := (installation{team: team}); team != "" && !slices.Contains(list, in) {
			list = append(list, in)
		}
	}
	return list
}

// callback is an Events API payload.
type callback struct {
	EventID string          `json:"event_id"`
	Time    int64           `json:"event_time"`
	Event   json.RawMessage `json:"event"`
}

// slackEvent is the part of inner events that is read, https://docs.slack.dev/reference/events.
type slackEvent struct {
	Type        string      `json:"type"`
	Subtype     string      `json:"subtype"`
	Channel     string      `json:"channel"`
	ChannelType string      `json:"channel_type"`
	User        string      `json:"user"`
	BotID       string      `json:"bot_id"`
	Username    string      `json:"username"`
	Text        string      `json:"text"`
	TS          string      `json:"ts"`
	ThreadTS    string      `json:"thread_ts"`
	EventTS     string      `json:"event_ts"`
	ParentUser  string      `json:"parent_user_id"`
	LatestReply string      `json:"latest_reply"` // of a root in the history
	DeletedTS   string      `json:"deleted_ts"`
	Files       []slackFile `json:"files"`
	Message     *slackEvent `json:"message"`
	Previous    *slackEvent `json:"previous_message"`
	Edited      *struct {
		User string `json:"user"`
		TS   string `json:"ts"`
	} `json:"edited"`
	BotProfile *struct {
		Name string `json:"name"`
	} `json:"bot_profile"`
	Reaction string `json:"reaction"`
	Item     struct {
		Type    string `json:"type"`
		Channel string `json:"channel"`
		TS      string `json:"ts"`
	} `json:"item"`
	Metadata *struct {
		Type    string          `json:"event_type"`
		Payload json.RawMessage `json:"event_payload"`
	} `json:"metadata"`
	Blocks      []json.RawMessage `json:"blocks"`
	Attachments []struct {
		Text     string `json:"text"`
		Fallback string `json:"fallback"`
		Share    bool   `json:"is_share"` // a message that was passed on
	} `json:"attachments"`
}

// slackFile is https://docs.slack.dev/reference/objects/file-object.
type slackFile struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Title    string `json:"title"`
	MIME     string `json:"mimetype"`
	Subtype  string `json:"subtype"`
	Size     int64  `json:"size"`
	Mode     string `json:"mode"`
	External bool   `json:"is_external"`
	Private  string `json:"url_private"`
	Download string `json:"url_private_download"`
}

// slash is the payload of a command, https://docs.slack.dev/interactivity/implementing-slash-commands.
type slash struct {
	TeamID   string `json:"team_id"`
	Channel  string `json:"channel_id"`
	Name     string `json:"channel_name"`
	User     string `json:"user_id"`
	UserName string `json:"user_name"`
	Command  string `json:"command"`
	Text     string `json:"text"`
	Response string `json:"response_url"`
	Trigger  string `json:"trigger_id"`
}

// press is a block_actions payload, https://docs.slack.dev/reference/interaction-payloads/block_actions-payload.
type press struct {
	Type    string `json:"type"`
	Trigger string `json:"trigger_id"`
	User    struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"user"`
	Channel struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"channel"`
	Container struct {
		Type    string `json:"type"`
		TS      string `json:"message_ts"`
		Channel string `json:"channel_id"`
		Thread  string `json:"thread_ts"`
	} `json:"container"`
	Response string `json:"response_url"`
	Actions  []struct {
		Type  string `json:"type"`
		Value string `json:"value"`
		TS    string `json:"action_ts"`
	} `json:"actions"`
}

// fingerprint names raw bytes for which there is no better name.
func fingerprint(raw []byte) string {
	h := fnv.New128a()
	_, _ = h.Write(raw) // a hash takes everything
	return strconv.Itoa(len(raw)) + "-" + fmt.Sprintf("%x", h.Sum(nil))
}
