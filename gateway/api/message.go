package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"time"

	"parley/gateway/control"
	"parley/workspace"
)

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

// postMessage journals a message and, if asked, waits for the end of its turn. A client that leaves cancels nothing.
func (s *server) postMessage(w http.ResponseWriter, r *http.Request) error {
	var req messageRequest
	if err := decode(w, r, &req); err != nil {
		return err
	}
	if req.Wait < 0 || req.Wait > maxWait {
		return fault(http.StatusBadRequest, "invalid", fmt.Sprintf("wait is a number of seconds from 0 to %d.", maxWait))
	}
	key := r.Header.Get("Idempotency-Key")
	if len(r.Header.Values("Idempotency-Key")) > 1 {
		return fault(http.StatusBadRequest, "invalid", "Send one Idempotency-Key.")
	}
	call := s.call(r)
	files, err := s.attached(r, req.Files)
	if err != nil {
		return err
	}
	leave := func() {}
	if key != "" {
		if leave, err = s.turns.enter(r.Context(), turnOf(call, key)); err != nil {
			return err
		}
	}
	got, err := s.opt.Control.Message(r.Context(), control.Submission{Actor: call.Actor, Agent: workspace.AgentID(req.Agent),
		Session: req.Session, Text: req.Text, Files: files, Key: key, Hash: hash(req), Borrowed: call.Borrowed})
	leave() // it is journalled under its key: who comes next finds it, and waits by itself
	if err != nil {
		return err
	}
	var waits bool
	if req.Wait > 0 { // the message is journalled: where too many wait, nobody is refused but the waiting
		var stay func()
		if stay, waits = s.waits.take(call.Actor.Person); waits {
			defer stay()
		}
	}
	if waits {
		bodyDone(r)
		view, ended, err := s.await(r.Context(), call, got, time.Duration(req.Wait)*time.Second)
		if err != nil {
			return err
		}
		if ended {
			reply(w, http.StatusOK, view)
			return nil
		}
		got.RunID = workspace.RunID(view.RunID)
	}
	w.Header().Set("Location", "/v1/runs/"+string(got.InputID))
	reply(w, http.StatusAccepted, accepted{string(got.InputID), optional(got.RunID), got.Session})
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
func (s *server) await(ctx context.Context, call control.Call, got control.Submitted, most time.Duration) (runView, bool, error) {
	timer, again := time.NewTimer(most), time.NewTicker(lookAgain)
	defer timer.Stop()
	defer again.Stop()
	sub := s.opt.Feed.Stored(got.Session)
	defer func() { sub.Close() }()
	for {
		f, err := s.opt.Control.Find(ctx, call, control.RunWord(got.InputID))
		if err != nil {
			return runView{}, false, err
		}
		if f.Ended() {
			view, err := s.view(ctx, call, string(got.InputID))
			return view, err == nil, err
		}
		select {
		case <-ctx.Done():
			return runView{}, false, ctx.Err()
		case <-timer.C:
			return runView{RunID: string(f.Run.ID)}, false, nil
		case <-s.closing:
			return runView{RunID: string(f.Run.ID)}, false, nil
		case <-again.C:
		case _, ok := <-sub.C:
			if !ok { // it fell behind: begin again
				sub = s.opt.Feed.Stored(got.Session)
			}
		}
	}
}
