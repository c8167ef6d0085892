package session

import (
	"context"
	"net/http"

	"parley/gateway/control"
	"parley/gateway/spec"
	"parley/workspace"
)

// ReadIn is how far the caller has read.
type ReadIn struct {
	BySession
	Of       workspace.SessionID `json:"session_id,omitempty" help:"*id* of the generation; left out: the newest"`
	Sequence int64               `json:"sequence" help:"*number* of the newest event that was seen"`
}

// MarkRead notes how far the caller has read a session, for all the caller's pages and devices. A mark never goes back.
var MarkRead = control.Verb[*Sessions, ReadIn, struct{}]{
	Name: "session.mark", Help: "Note how far you have read a session", Rights: readSession,
	HTTP: "PUT /v1/sessions/{key}/read", Status: http.StatusNoContent, Group: "sessions", Unkept: true,
	Do: func(ctx context.Context, c *Sessions, call control.Call, in ReadIn) (none struct{}, err error) {
		ses, err := c.Of(ctx, call, in.Session, string(in.Of))
		if err != nil {
			return none, err
		}
		last, err := c.Last(ses)
		if err != nil {
			return none, err
		}
		moved, err := c.Store.MarkRead(call.Actor.Person, ses.Key, ses.Gen, min(max(in.Sequence, 0), last))
		if moved {
			c.Seen(ses.Key.String(), call.Actor.Person)
		}
		return none, err
	},
	Show: func(ReadIn, struct{}) spec.Shown { return spec.Shown{Line: "done"} },
}

// Look begins to keep marks for who looks at sessions: what was said before counts as read.
func (c *Sessions) Look(call control.Call) error {
	if call.Actor.Person == "" {
		return nil
	}
	return c.Store.KeepReads(call.Actor.Person)
}
