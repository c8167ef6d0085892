package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"time"

	"parley/gateway/api/limit"
	"parley/gateway/api/once"
	"parley/gateway/api/wire"
	"parley/gateway/control"
	"parley/gateway/control/conversation"
	"parley/gateway/control/run"
	"parley/gateway/control/view"
	"parley/gateway/live"
	"parley/workspace"
)

// messages takes what somebody says.
type messages struct {
	base
	feed    *live.Feed
	keys    *once.Keys
	limits  *limit.Limits
	closing <-chan struct{}
}

func (m messages) routes() []route {
	return []route{{"POST /v1/messages", m.post, journaled,
		operation{"messages", "Say something", "", messageRequest{}, map[int]any{200: run.Run{}, 202: accepted{}}, ""}}}
}

// maxWait is how long a request may wait for the end of its turn.
const maxWait = 600

// lookAgain is how often a waiter reads the record although nothing told it to.
const lookAgain = 5 * time.Second

type messageRequest struct {
	Agent   string        `json:"agent,omitempty"`   // by id; left out: the default agent
	Session string        `json:"session,omitempty"` // a name, or a whole key; left out: main
	Text    string        `json:"text"`
	Files   []fileRequest `json:"files,omitempty"` // that were uploaded, at most 10
	Wait    int           `json:"wait,omitempty"`  // seconds until the answer comes without the end of the turn, at most 600
}

// accepted is the answer to a message that is journalled.
type accepted struct {
	InputID string  `json:"input_id"`
	RunID   *string `json:"run_id"`
	Session string  `json:"session"`
}

// post journals a message and, if asked, waits for the end of its turn. A client that leaves cancels nothing.
func (m messages) post(w http.ResponseWriter, r *http.Request) error {
	var req messageRequest
	if err := wire.Decode(w, r, &req); err != nil {
		return err
	}
	if req.Wait < 0 || req.Wait > maxWait {
		return wire.Invalid(fmt.Sprintf("wait is a number of seconds from 0 to %d.", maxWait))
	}
	key, err := once.KeyOf(r)
	if err != nil {
		return err
	}
	call := m.call(r)
	files, err := attached(r, m.base, req.Files)
	if err != nil {
		return err
	}
	leave := func() {}
	if key != "" {
		if leave, err = m.keys.Enter(r.Context(), call, key); err != nil {
			return err
		}
	}
	got, err := m.control.Conversations.Submit(r.Context(), conversation.Submission{Actor: call.Actor, Agent: workspace.AgentID(req.Agent),
		Session: req.Session, Text: req.Text, Files: files, Key: key, Hash: hash(req), Borrowed: call.Borrowed})
	leave() // it is journalled under its key: who comes next finds it, and waits by itself
	if err != nil {
		return err
	}
	var waits bool
	if req.Wait > 0 { // the message is journalled: where too many wait, nobody is refused but the waiting
		var stay func()
		if stay, waits = m.limits.Waits.Take(call.Actor.Person); waits {
			defer stay()
		}
	}
	if waits {
		limit.BodyDone(r)
		run, ended, err := m.await(r.Context(), call, got, time.Duration(req.Wait)*time.Second)
		if err != nil {
			return err
		}
		if ended {
			wire.Reply(w, http.StatusOK, run)
			return nil
		}
		got.RunID = workspace.RunID(run.RunID)
	}
	w.Header().Set("Location", "/v1/runs/"+string(got.InputID))
	wire.Reply(w, http.StatusAccepted, accepted{string(got.InputID), view.Optional(got.RunID), got.Session})
	return nil
}

// hash is of what the message says: a client may come back for the same message with another wait.
func hash(req messageRequest) string {
	text := req.Agent + "\x00" + req.Session + "\x00" + req.Text
	for _, f := range req.Files {
		text += "\x00" + f.Ref
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// await waits until nothing more will come of the message, for at most the time. The record is read after the
// subscription, so that no end is missed.
func (m messages) await(ctx context.Context, call control.Call, got conversation.Submitted, most time.Duration) (run.Run, bool, error) {
	timer, again := time.NewTimer(most), time.NewTicker(lookAgain)
	defer timer.Stop()
	defer again.Stop()
	sub := m.feed.Stored(got.Session)
	defer func() { sub.Close() }()
	for {
		f, err := m.control.Runs.Of(ctx, call, control.RunWord(got.InputID))
		if err != nil {
			return run.Run{}, false, err
		}
		if f.Ended() {
			run, err := m.control.Runs.Whole(ctx, call, control.RunWord(got.InputID))
			return run, err == nil, err
		}
		select {
		case <-ctx.Done():
			return run.Run{}, false, ctx.Err()
		case <-timer.C:
			return run.Run{RunID: string(f.Run.ID)}, false, nil
		case <-m.closing:
			return run.Run{RunID: string(f.Run.ID)}, false, nil
		case <-again.C:
		case _, ok := <-sub.C:
			if !ok { // it fell behind: begin again
				sub = m.feed.Stored(got.Session)
			}
		}
	}
}
