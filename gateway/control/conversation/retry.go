package conversation

import (
	"context"
	"errors"
	"strings"
	"time"

	"parley/channels"
	"parley/gateway/control"
	"parley/gateway/spec"
	"parley/workspace"
	"parley/workspace/clip"
	"parley/workspace/store"
)

// Retry takes the last exchange out of the prompt and asks the same again. It is asked in the name of who asked before,
// and so only they may (T10). While the session's turn does nothing but wait for its model, that is asked again at once instead.
var Retry = control.Verb[*Conversations, struct{}, Undone]{
	Name: "retry", Help: "Ask the last question of a session again", Rights: mayChange,
	Chat: "retry", Order: spec.AheadOfWait, Say: Undone.say,
	Do: func(_ context.Context, c *Conversations, call control.Call, _ struct{}) (Undone, error) {
		return c.retry(call)
	},
}

func (c *Conversations) retry(call control.Call) (Undone, error) {
	if call.Input == nil {
		return Undone{}, workspace.Say(workspace.ErrInvalid, "A retry is a message: send /retry.")
	}
	mine := func(first workspace.Input) bool { return call.Owner() || first.Person == call.Actor.Person }
	if c.Lanes.Anew(call.Session.String(), mine) {
		v := Undone{Now: true}
		return v, c.Answer(call, v)
	}
	ses, x, err := c.mine(call)
	if err != nil {
		return Undone{}, err
	}
	run, err := c.Store.Run(x.run)
	if err != nil {
		return Undone{}, err
	}
	ask := c.again(call, "retry", "")
	if ask.Input, err = c.asAsked(call, run, ask.Input, x.said); err != nil {
		return Undone{}, err
	}
	v := Undone{Said: control.OneLine(ask.Input.Text, control.PreviewLength), Again: true}
	did, err := c.Commit(call, func(store.Did) any { return v }, x.mark(ses), ask)
	if err != nil {
		return v, err
	}
	c.Changed(call.Session.String())
	if did.Asked != nil {
		c.Lanes.Offer(*did.Asked)
	}
	return v, nil
}

// asAsked gives a new input what the inputs of a run said, without the lines that were added for the model. It is asked in the name
// of who asked before, and so only they may.
func (c *Conversations) asAsked(call control.Call, run workspace.Run, in workspace.Input, said []string) (workspace.Input, error) {
	if run.Requester != call.Actor.Person {
		return in, workspace.Say(workspace.ErrDenied, "The question was somebody else's. Only they can ask it again.")
	}
	inputs, err := c.Store.RunInputs(run.ID)
	if err != nil {
		return in, err
	}
	texts := said
	if len(inputs) > 0 {
		texts = nil
	}
	in.Data.Attachments, in.Data.Quote = nil, nil
	for _, was := range inputs {
		texts = append(texts, was.Text)
		in.Data.Attachments = append(in.Data.Attachments, was.Data.Attachments...)
		if in.Data.Quote == nil {
			in.Data.Quote = was.Data.Quote
		}
	}
	in.Text = strings.Join(texts, "\n\n")
	return in, nil
}

// Retried is what came of a further try.
type Retried struct {
	RunID workspace.RunID `json:"run_id"` // that was tried again
	// State is running: the model of its turn is asked again now; or queued: what it was asked is asked again, by a run of its own.
	State   workspace.RunState `json:"state"`
	InputID workspace.InputID  `json:"input_id,omitempty"` // of the message that asks again
}

// RetryIn names a run.
type RetryIn struct {
	Run control.RunWord `path:"id" help:"*id* of the run, or of its message"`
}

// RetryRun tries a run again: while it goes on its model is asked at once, without the wait before; after its end, what it was
// asked is asked once more. However often it is asked for, one run is asked again once.
var RetryRun = control.Verb[*Conversations, RetryIn, Retried]{
	Name: "retry", Help: "Try a run again whose model failed", Rights: mayChange,
	HTTP: "POST /v1/runs/{id}/retry", Group: "runs", CLI: "run retry <id>",
	Do: func(_ context.Context, c *Conversations, call control.Call, in RetryIn) (Retried, error) {
		return c.retryRun(call, in.Run)
	},
	Show: func(_ RetryIn, v Retried) spec.Shown {
		if v.State == workspace.RunRunning {
			return spec.Shown{Line: "run " + workspace.Short(v.RunID) + ": its model is asked again"}
		}
		return spec.Shown{Line: "what run " + workspace.Short(v.RunID) + " was asked is asked again"}
	},
}

func (c *Conversations) retryRun(call control.Call, word control.RunWord) (Retried, error) {
	run, ses, err := c.runOf(call, word)
	if err != nil {
		return Retried{}, err
	}
	v := Retried{RunID: run.ID, State: workspace.RunRunning}
	key := ses.Key.String()
	if c.Lanes.Anew(key, func(first workspace.Input) bool { return first.RunID == "" || first.RunID == run.ID }) {
		return v, nil
	}
	if run, err = c.Store.Run(run.ID); err != nil { // it may have ended meanwhile
		return Retried{}, err
	}
	switch run.State {
	case workspace.RunRunning: // it has just begun to answer, or another one wanted the same
		return v, nil
	case workspace.RunWaiting, workspace.RunPaused:
		return Retried{}, workspace.Say(workspace.ErrConflict, "Run %s waits for a person, and for no model.", workspace.Short(run.ID))
	case workspace.RunCompleted:
		return Retried{}, workspace.Say(workspace.ErrConflict, "Run %s was answered.", workspace.Short(run.ID))
	}
	call.Session = ses.Key
	for tries := 0; ; tries++ {
		v, err = c.askAgain(call, run)
		if err == nil || !errors.Is(err, workspace.ErrConflict) || tries == 3 {
			return v, err
		}
	}
}

// runOf finds a run and its session, as far as the caller reaches.
func (c *Conversations) runOf(call control.Call, word control.RunWord) (run workspace.Run, ses workspace.Session, err error) {
	missing := workspace.Say(workspace.ErrNotFound, "There is no run %q.", clip.Runes(string(word), 40))
	id, err := c.Find.Run(call, word)
	if err != nil {
		return run, ses, err
	}
	run, err = c.Store.Run(workspace.RunID(id))
	if errors.Is(err, workspace.ErrNotFound) {
		in, inErr := c.Store.Input(workspace.InputID(id))
		if inErr != nil || in.RunID == "" {
			return run, ses, missing
		}
		run, err = c.Store.Run(in.RunID)
	}
	switch {
	case err != nil:
		return run, ses, err
	case !call.Owner() && run.Requester != call.Actor.Person:
		return run, ses, missing
	}
	ses, err = c.Store.Session(run.SessionID)
	return run, ses, err
}

// askAgain asks what an ended run was asked, by a message that the run's id makes the only one. Where nothing was said since, the
// failed exchange is taken out of the prompt. ErrConflict: something was said just now.
func (c *Conversations) askAgain(call control.Call, run workspace.Run) (Retried, error) {
	v := Retried{RunID: run.ID, State: "queued"}
	inputs, err := c.Store.RunInputs(run.ID)
	if err != nil {
		return v, err
	}
	if len(inputs) == 0 {
		return v, workspace.Say(workspace.ErrInvalid, "Nobody asked run %s anything that could be asked again.", workspace.Short(run.ID))
	}
	first := inputs[0]
	key := "retry:" + string(run.ID)
	if was, err := c.Store.InputByKey(first.Source, first.Account, key); !errors.Is(err, workspace.ErrNotFound) {
		v.InputID = was.ID
		return v, err
	}
	ses, err := c.Store.SessionByKey(call.Session)
	if err != nil {
		return v, err
	}
	if ses.ID != run.SessionID {
		return v, workspace.Say(workspace.ErrInvalid, "A fresh session has begun here since, so run %s is not asked again.",
			workspace.Short(run.ID))
	}
	in := first
	in.ID, in.Key, in.Kind = workspace.InputID(c.Store.IDs().New()), key, channels.KindMessage
	in.Mode, in.State = workspace.ModeTurn, workspace.InputQueued
	in.Reason, in.Seq, in.RunID, in.TargetKey, in.Role = "", 0, "", "", call.Actor.Role
	in.Sent, in.Received, in.Binding.Rule = c.Now(), time.Time{}, "retry"
	in.Data = workspace.InputData{Message: first.Data.Message, User: first.Data.User, Channel: first.Data.Channel}
	if in, err = c.asAsked(call, run, in, nil); err != nil {
		return v, err
	}
	changes := []store.Change{}
	if x, err := c.lastExchange(ses); err == nil && x.run == run.ID {
		mark := x.mark(ses)
		mark.Body.Reason = workspace.UndoneToRetry
		changes = append(changes, mark)
	}
	did, err := c.Commit(call, func(store.Did) any { return v }, append(changes, store.Arrival{Input: in, Key: call.Session})...)
	if err != nil {
		return v, err
	}
	v.InputID = in.ID
	c.Changed(call.Session.String())
	if did.Asked != nil {
		c.Lanes.Offer(*did.Asked)
	}
	return v, nil
}
