package webchat

import (
	"encoding/json"

	"parley/channels"
)

// frame is what a page says. Which fields count depends on Type; what is not known is passed over, so that an older
// gateway understands a newer page as far as it can.
type frame struct {
	Type string `json:"type"`

	// follow, unfollow
	Key       string `json:"key"`
	SessionID string `json:"session_id"`
	After     int64  `json:"after"`

	// message, edit, delete, press: ID is the page's own, new for each
	ID      string    `json:"id"`
	Agent   string    `json:"agent"`
	Session string    `json:"session"`
	Text    string    `json:"text"`   // of press: the button's value
	Target  string    `json:"target"` // id of the message, or of the post, that it is about
	Files   []fileRef `json:"files"`
	At      int64     `json:"at"` // when it was written, milliseconds since 1970; 0: now

	// got: ID is of the post. Problem says why it is not shown: gone, busy (Wait seconds), anything else
	Problem string  `json:"problem"`
	Wait    float64 `json:"wait"`
}

type fileRef struct {
	Ref  string `json:"ref"`
	Name string `json:"name,omitempty"`
	MIME string `json:"mime,omitempty"`
	Size int64  `json:"size,omitempty"`
}

// Frames to the page that are the line's own; events, sessions and needs come from the Desk.
type (
	helloFrame struct {
		Type    string `json:"type"`
		Boot    int64  `json:"boot"`
		Version string `json:"version"`
		Person  Person `json:"person"`
	}
	storedFrame struct {
		Type string `json:"type"`
		ID   string `json:"id"`
		Stored
	}
	refusedFrame struct {
		Type    string          `json:"type"`
		ID      string          `json:"id"`
		Problem json.RawMessage `json:"problem"`
	}
	unfollowedFrame struct {
		Type    string          `json:"type"`
		Key     string          `json:"key"`
		Problem json.RawMessage `json:"problem"`
	}
	// postFrame is what the gateway says to a conversation beside its transcript. The page answers with got. A post with an
	// id that is shown replaces it; one that is removed has nothing but its id.
	postFrame struct {
		Type    string              `json:"type"`
		ID      string              `json:"id"`
		Session string              `json:"session"`
		Text    string              `json:"text"`
		Actions [][]channels.Action `json:"actions,omitempty"`
		Files   []fileRef           `json:"files,omitempty"`
		ReplyTo string              `json:"reply_to,omitempty"`
		Removed bool                `json:"removed,omitempty"`
	}
	typingFrame struct {
		Type    string `json:"type"`
		Session string `json:"session"`
	}
	lastFrame struct {
		Type    string `json:"type"`
		Message string `json:"message,omitempty"`
	}
)
