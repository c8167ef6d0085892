package control

import (
	"context"
	"errors"
	"strings"

	"parley/channels"
	"parley/routes"
	"parley/workspace"
)

// Submission is a message of a person by the API: of a program, or of the terminal.
type Submission struct {
	Actor   workspace.Actor
	Agent   workspace.AgentID // empty: the default agent
	Session string            // name of a local session, or a whole session key; empty: main
	Text    string
	// Key is the client's idempotency key; empty: each is a message of its own.
	Key  string
	Hash string // of the request's body; a repeated Key with another Hash is refused
	// Borrowed is the call's: a command in the text is judged by it.
	Borrowed bool
	// Files came with it; Parley's own store has them.
	Files []channels.Attachment
}

// Submitted is a journalled message.
type Submitted struct {
	Input    workspace.Input   `json:"-"`
	InputID  workspace.InputID `json:"input_id"`
	RunID    workspace.RunID   `json:"run_id,omitempty"`
	Session  string            `json:"session"`
	Repeated bool              `json:"-"` // the key had been journalled before: this is the first answer again
}

// Limits of a submission.
const (
	MaxText    = 256 << 10 // bytes
	MaxKey     = 200
	MaxSession = 64
)

// ErrOtherBody says that an idempotency key came again with another request.
var ErrOtherBody = errors.New("idempotency key was used for another request")

// ErrTooLarge says that a text is longer than is taken.
var ErrTooLarge = errors.New("too large")

// Message journals a message and returns after the commit.
func (c *Control) Message(ctx context.Context, m Submission) (Submitted, error) {
	if err := c.may(Call{Actor: m.Actor}, "message"); err != nil {
		return Submitted{}, err
	}
	switch {
	case strings.TrimSpace(m.Text) == "" && len(m.Files) == 0:
		return Submitted{}, workspace.Say(workspace.ErrInvalid, "The message has no text.")
	case len(m.Text) > MaxText:
		return Submitted{}, workspace.Say(errors.Join(ErrTooLarge, workspace.ErrInvalid), "The message is longer than %d bytes.", MaxText)
	case len(m.Key) > MaxKey:
		return Submitted{}, workspace.Say(workspace.ErrInvalid, "The idempotency key is longer than %d bytes.", MaxKey)
	case len(m.Session) > MaxSession && !strings.HasPrefix(m.Session, "agent:"):
		return Submitted{}, workspace.Say(workspace.ErrInvalid, "The session name is longer than %d bytes.", MaxSession)
	}
	if m.Agent != "" {
		if _, ok := c.agent(m.Agent); !ok {
			return Submitted{}, workspace.Say(workspace.ErrNotFound, "There is no agent %q.", string(m.Agent))
		}
	}
	if m.Key != "" {
		if _, err := c.Store.AnswerOf(m.Actor.Person, m.Key); !errors.Is(err, workspace.ErrNotFound) {
			return Submitted{}, errors.Join(otherBody(), err)
		}
	}
	key, err := c.Intake.LocalKey(m.Actor, m.Agent, m.Session)
	if err != nil {
		return Submitted{}, err
	}
	got, err := c.Intake.Submit(ctx, m.Actor, key, channels.Inbound{Key: m.Key, Text: m.Text, Hash: m.Hash, Borrowed: m.Borrowed, Attachments: m.Files})
	if err != nil {
		return Submitted{}, err
	}
	in := got.Input
	if got.Duplicate && m.Hash != in.Data.BodyHash {
		return Submitted{}, workspace.Say(errors.Join(ErrOtherBody, workspace.ErrConflict), "This idempotency key was used for another message.")
	}
	return Submitted{Input: in, InputID: in.ID, RunID: in.RunID, Session: in.Binding.Key, Repeated: got.Duplicate}, nil
}

// RunView is a run with what it was for and what it did.
type RunView struct {
	Run    workspace.Run
	Inputs []workspace.Input
	Steps  []workspace.Step
	Text   string // of the answer, or of the failure
	Key    string // of the session
}

// Run reads a run by its id, or by the id of an input: then the run that took it. An input that no run has taken
// yet gives a view with no run in it.
func (c *Control) Run(_ context.Context, call Call, word RunWord) (RunView, error) {
	if err := c.may(call, "run.read"); err != nil {
		return RunView{}, err
	}
	id, err := c.runOf(call, word)
	if err != nil {
		return RunView{}, err
	}
	missing := workspace.Say(workspace.ErrNotFound, "There is no run %q.", id)
	var v RunView
	run, err := c.Store.Run(workspace.RunID(id))
	if errors.Is(err, workspace.ErrNotFound) {
		in, err := c.Store.Input(workspace.InputID(id))
		if err != nil {
			return v, missing
		}
		v.Inputs, v.Key = []workspace.Input{in}, in.Binding.Key
		if !owner(call) && in.Person != call.Actor.Person {
			return RunView{}, missing
		}
		if in.RunID == "" {
			v.Text, err = c.commandReply(in)
			return v, err
		}
		run, err = c.Store.Run(in.RunID)
		if err != nil {
			return v, err
		}
	} else if err != nil {
		return v, err
	}
	if !owner(call) && run.Requester != call.Actor.Person {
		return RunView{}, missing
	}
	v.Run = run
	if v.Inputs, err = c.Store.RunInputs(run.ID); err != nil {
		return v, err
	}
	if len(v.Inputs) > 0 {
		v.Key = v.Inputs[0].Binding.Key
	}
	if v.Steps, err = c.Store.Steps(run.ID); err != nil {
		return v, err
	}
	v.Text, err = c.answerText(run)
	return v, err
}

// shortID is how many characters chats show of an id.
const shortID = 6

// runOf is the id that a word names.
func (c *Control) runOf(call Call, word RunWord) (string, error) {
	if len(word) != shortID {
		return string(word), nil
	}
	rows, err := c.Store.RunsBefore("", lookAt)
	if err != nil {
		return "", err
	}
	for _, r := range rows {
		if strings.EqualFold(workspace.Short(r.ID), string(word)) && (owner(call) || r.Requester == call.Actor.Person) {
			return string(r.ID), nil
		}
	}
	return "", workspace.Say(workspace.ErrNotFound, "None of the newest %d runs has the id %q.", lookAt, string(word))
}

// answerText is the last thing a run said.
func (c *Control) answerText(run workspace.Run) (string, error) {
	entries, err := c.Store.RunEntries(run.SessionID, run.ID)
	if err != nil {
		return "", err
	}
	for i := len(entries) - 1; i >= 0; i-- {
		e := entries[i]
		if text := e.Body.Plain(); text != "" && (e.Role == workspace.RoleAssistant || e.Body.Type == "error") {
			return text, nil
		}
	}
	return "", nil
}

// commandReply is what a command of a local session was answered.
func (c *Control) commandReply(in workspace.Input) (string, error) {
	e, err := c.Store.InputEntry(in.ID)
	if errors.Is(err, workspace.ErrNotFound) {
		return "", nil
	}
	return e.Body.Plain(), err
}

// Explain is a dry run of gate and routes for a made-up message.
func (c *Control) Explain(_ context.Context, call Call, f routes.Facts, channel string) (routes.Verdict, routes.Route, []routes.Considered, error) {
	if err := c.may(call, "route.explain"); err != nil {
		return routes.Verdict{}, routes.Route{}, nil, err
	}
	return c.Intake.Explain(f, channel)
}
