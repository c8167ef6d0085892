package view

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"parley/gateway/control"
	"parley/workspace"
)

// Event is the envelope of everything that is watched. Stored events are the session's transcript: their sequence is
// the line's number. What is synthetic is not stored: its sequence is the one that the next stored event is expected
// to get, and it has no id to resume after.
type Event struct {
	EventID   string    `json:"event_id"`
	Sequence  int64     `json:"sequence"`
	Time      time.Time `json:"time"`
	SessionID string    `json:"session_id"`
	RunID     *string   `json:"run_id"`
	Source    string    `json:"source"` // agent or daemon
	Synthetic bool      `json:"synthetic"`
	Type      string    `json:"type"`
	Data      any       `json:"data"`
}

// Item is what a turn is made of: message, tool_call, tool_result, system, status.
type Item struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Role    string `json:"role,omitempty"`
	Name    string `json:"name,omitempty"` // of the speaker or the tool
	Parts   []Part `json:"parts,omitempty"`
	Quoted  []Part `json:"quoted,omitempty"`  // what others said before, as data
	Command string `json:"command,omitempty"` // of system: the line that was answered
	Reason  string `json:"reason,omitempty"`
	Partial bool   `json:"partial,omitempty"` // cut by a stop
	// Trouble is, of a status, the failure of a model that is behind it.
	Trouble *Trouble `json:"trouble,omitempty"`
}

// Part is one piece of an item. Reasoning is private and has none.
type Part struct {
	Type   string          `json:"type"`
	Text   string          `json:"text,omitempty"`
	Name   string          `json:"name,omitempty"`
	CallID string          `json:"call_id,omitempty"`
	Args   json.RawMessage `json:"args,omitempty"`
	Error  bool            `json:"error,omitempty"`
	MIME   string          `json:"mime,omitempty"`
	Blob   string          `json:"blob,omitempty"`
	Size   int64           `json:"size,omitempty"` // bytes of the file
}

type ItemData struct {
	Item Item `json:"item"`
}

// Delta is text that an item grew by. Put it over what the part has from offset on, counted in UTF-16 code units:
// then a delta that comes twice does no harm, and offset 0 begins again.
type Delta struct {
	ItemID string `json:"item_id"`
	Part   int    `json:"part"`
	Offset int    `json:"offset"`
	Text   string `json:"text"`
}

// OutputData is the end of what a command has written, while it runs; it replaces what was told of it before.
type OutputData struct {
	ItemID string `json:"item_id"` // of the call
	Text   string `json:"text"`    // the last lines
	Lines  int64  `json:"lines"`   // that were ended so far
}

// AskedData is a model that is asked and has sent nothing yet.
type AskedData struct {
	Model    string    `json:"model"`    // as configured
	Provider string    `json:"provider"` // what people call who is asked
	Time     time.Time `json:"time"`     // since when
}

type EndData struct {
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
}

type ErrorData struct {
	Code    string `json:"code"`
	Message string `json:"message,omitempty"`
}

type SessionData struct {
	Key        string `json:"key"`
	Generation int    `json:"generation"`
}

// AnswerID names the answer of one model call: what grows and what is stored have the same.
func AnswerID(run workspace.RunID, step int) string { return fmt.Sprintf("%s:%d", run, step) }

// Stored is the event of one line of the transcript.
func Stored(e workspace.Entry) Event {
	ev := Event{EventID: fmt.Sprintf("%s/%d", e.SessionID, e.N), Sequence: e.N, Time: e.At.UTC(), SessionID: string(e.SessionID),
		RunID: Optional(e.RunID), Source: "agent"}
	if e.Role == workspace.RoleEvent || e.Role == workspace.RoleUser {
		ev.Source = "daemon"
	}
	ev.Type, ev.Data = "item.completed", nil
	switch {
	case e.Role != workspace.RoleEvent:
		ev.Data = ItemData{itemOf(e)}
	case e.Body.Type == "command":
		ev.Data = ItemData{commandItem(e)}
	case e.Body.Type == workspace.EventCompacted || e.Body.Type == workspace.EventUndone:
		ev.Data = ItemData{markItem(e)}
	case e.Body.Approval != nil:
		ev.Type, ev.Data = e.Body.Type, permission(e)
	case e.Body.Type == workspace.EventPaused || e.Body.Type == workspace.EventResumed:
		ev.Type, ev.Data = e.Body.Type, Hold{e.Body.Reason}
	case e.Body.Type == "turn.ended":
		state, reason, _ := strings.Cut(e.Body.Reason, ": ")
		ev.Type, ev.Data = e.Body.Type, EndData{state, reason}
	case e.Body.Type == "error":
		ev.Type, ev.Data = e.Body.Type, ErrorData{Code: e.Body.Reason, Message: e.Body.Plain()}
	default:
		ev.Type, ev.Data = e.Body.Type, struct{}{}
	}
	return ev
}

// Optional is nil for none.
func Optional[T ~string](id T) *string {
	if id == "" {
		return nil
	}
	s := string(id)
	return &s
}

func itemOf(e workspace.Entry) Item {
	it := Item{ID: fmt.Sprintf("%s/%d", e.SessionID, e.N), Type: "message", Role: string(e.Role), Name: e.Body.Name,
		Parts:  append(partsOf(e.Body.Content), partsOf(e.Body.Files)...),
		Reason: e.Body.Reason, Partial: e.Body.Partial}
	for _, line := range e.Body.Context {
		it.Quoted = append(it.Quoted, Part{Type: "text", Name: line.Label(), Text: line.Text})
	}
	switch e.Role {
	case workspace.RoleUser:
		if e.InputID != "" { // a line that was taken along from an earlier generation has none
			it.ID = string(e.InputID)
		}
	case workspace.RoleAssistant:
		it.ID = AnswerID(e.RunID, e.StepN)
		if len(it.Parts) > 0 && it.Parts[0].Type == "tool_call" {
			it.Type = "tool_call"
		}
	case workspace.RoleTool:
		it.Type = "tool_result"
	}
	return it
}

// commandItem is a slash command with its reply.
func commandItem(e workspace.Entry) Item {
	it := Item{ID: string(e.InputID), Type: "system", Parts: partsOf(e.Body.Content)}
	if it.ID == "" {
		it.ID = fmt.Sprintf("%s/%d", e.SessionID, e.N)
	}
	for _, line := range e.Body.Context {
		it.Command, it.Name = line.Text, line.Name
	}
	return it
}

// markItem tells what the prompt holds no more: the record still does.
func markItem(e workspace.Entry) Item {
	text := fmt.Sprintf("Taken out of what the agent sees: events %d to %d.", e.Body.From, e.Body.To)
	if e.Body.Type == workspace.EventCompacted {
		text = fmt.Sprintf("For the agent this summary stands in place of everything up to event %d:\n\n%s", e.Body.To, e.Body.Plain())
	}
	reason := e.Body.Type
	if e.Body.Reason == workspace.UndoneToRetry {
		reason = e.Body.Reason
	}
	return Item{ID: fmt.Sprintf("%s/%d", e.SessionID, e.N), Type: "system", Reason: reason, Parts: []Part{{Type: "text", Text: text}}}
}

// partsOf leaves out what is private: reasoning, and what a provider wants back unchanged.
func partsOf(content []workspace.Content) []Part {
	parts := []Part{}
	for _, c := range content {
		if c.Kind != workspace.Reasoning {
			parts = append(parts, Part{Type: string(c.Kind), Text: c.Text, Name: c.Name, CallID: c.CallID, Args: control.AsJSON(c.Args),
				Error: c.Error, MIME: c.MIME, Blob: c.Blob, Size: c.Size})
		}
	}
	return parts
}
