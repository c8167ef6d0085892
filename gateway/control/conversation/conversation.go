// Package conversation is the verbs about what is said: messages and settings of a session, what its next prompt holds, and how
// it and the gateway behind it are.
package conversation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/agentloop"
	"parley/agentloop/lane"
	"parley/channels"
	"parley/gateway/control"
	"parley/gateway/intake"
	"parley/gateway/snapshot"
	"parley/gateway/spec"
	"parley/gateway/transport"
	"parley/gateway/turn"
	"parley/workspace"
	"parley/workspace/store"
)

// Conversations does the verbs about what is said. All fields are needed.
type Conversations struct {
	*control.Kernel
	Store    Store
	Snapshot func() *snapshot.Snapshot // of the configuration in force
	Intake   Intake
	Lanes    Lanes
	Prompts  Prompts
	Channels *transport.Channels
	Spent    *control.Spent
	Changed  func(session string) // drops what is remembered of a session, and tells lists
	Process  Process
}

// Store is what these verbs use of the store, by what it is for. Over fills it.
type Store struct {
	Records
	Asked
	Rooms
	Daemon
}

// Over is all of it over one store.
func Over(s *store.Store) Store { return Store{Records: s, Asked: s, Rooms: s, Daemon: s} }

// Records reads sessions and what was done in them.
type Records interface {
	SessionByKey(key workspace.Key) (workspace.Session, error)
	Entries(session workspace.SessionID, after int64, limit int) ([]workspace.Entry, error)
	LastEntries(session workspace.SessionID, limit int) ([]workspace.Entry, error)
	Run(id workspace.RunID) (workspace.Run, error)
	LastRun(session workspace.SessionID) (workspace.Run, error)
	RunInputs(run workspace.RunID) ([]workspace.Input, error)
}

// Asked finds what is asked again.
type Asked interface {
	Session(id workspace.SessionID) (workspace.Session, error)
	Input(id workspace.InputID) (workspace.Input, error)
	InputByKey(source, account, key string) (workspace.Input, error)
}

// Rooms reads what is set for a room, and what was set aside in it.
type Rooms interface {
	PlaceIn(room workspace.RoomID) (store.Place, error)
	StaleInputs(room workspace.RoomID) ([]workspace.Input, error)
	Parked(room workspace.RoomID) ([]workspace.Outbound, error)
}

// Daemon tells how the store is, what a client's key was answered, and makes ids.
type Daemon interface {
	Health() (store.Health, string)
	AnswerOf(person workspace.PersonID, key string) (store.Answer, error)
	IDs() *workspace.IDs
}

// Intake is the way in, for what comes from inside. *intake.Receiver is it.
type Intake interface {
	// LocalKey is the session that somebody names; empty are the default agent and main.
	LocalKey(who workspace.Actor, agent workspace.AgentID, session string) (workspace.Key, error)
	// Submit journals a message of a local person and returns after the commit.
	Submit(ctx context.Context, who workspace.Actor, key workspace.Key, in channels.Inbound) (store.Accepted, error)
	// RoomsChanged drops what is remembered of what is set for rooms.
	RoomsChanged()
}

// Lanes is what runs and waits in sessions. *turn.Turns is it.
type Lanes interface {
	// Lane shows what runs and what waits in a session.
	Lane(key string) lane.View
	// Offer queues inputs.
	Offer(inputs ...workspace.Input)
	// Stuck says whether the turn of a session does nothing but wait for its model, which fails or has sent nothing yet.
	Stuck(key string) bool
	// Anew has the turn of a session, if it is stuck and match accepts its first input, ask the models that the session has now, at once.
	Anew(key string, match func(first workspace.Input) bool) bool
	// Queue is how a session handles messages during a turn.
	Queue(key string) lane.Settings
}

// Prompts is what the prompts of sessions hold. *turn.Prompts is one.
type Prompts interface {
	// Compose weighs the session's next prompt.
	Compose(by turn.Asked) (turn.Composed, error)
	// Summarize asks the agent's summarizer, or its model, for a summary of the older part of a session. It ends with
	// agentloop.ErrStopped when the session is stopped, and with agentloop.ErrShutdown when the gateway is.
	Summarize(ctx context.Context, by turn.Asked, ses workspace.Session, instructions string) (agentloop.Compaction, error)
}

// Process is what the running gateway tells of itself.
type Process struct {
	Began      time.Time
	ConfigFile func() control.ConfigFile
}

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

// Limits of a submission, in bytes.
const (
	MaxText    = 256 << 10
	maxSession = 64
)

// Submit journals a message and returns after the commit.
func (c *Conversations) Submit(ctx context.Context, m Submission) (Submitted, error) {
	if err := c.Allow(control.Call{Actor: m.Actor}, "message"); err != nil {
		return Submitted{}, err
	}
	switch {
	case strings.TrimSpace(m.Text) == "" && len(m.Files) == 0:
		return Submitted{}, workspace.Say(workspace.ErrInvalid, "The message has no text.")
	case len(m.Text) > MaxText:
		return Submitted{}, workspace.Say(errors.Join(control.ErrTooLarge, workspace.ErrInvalid),
			"The message is longer than %d bytes.", MaxText)
	case len(m.Key) > control.MaxKey:
		return Submitted{}, workspace.Say(workspace.ErrInvalid, "The idempotency key is longer than %d bytes.", control.MaxKey)
	case len(m.Session) > maxSession && !strings.HasPrefix(m.Session, "agent:"):
		return Submitted{}, workspace.Say(workspace.ErrInvalid, "The session name is longer than %d bytes.", maxSession)
	}
	if m.Agent != "" {
		if _, ok := c.Find.Agent(m.Agent); !ok {
			return Submitted{}, workspace.Say(workspace.ErrNotFound, "There is no agent %q.", string(m.Agent))
		}
	}
	if m.Key != "" {
		if _, err := c.Store.AnswerOf(m.Actor.Person, m.Key); !errors.Is(err, workspace.ErrNotFound) {
			return Submitted{}, errors.Join(control.OtherBody(), err)
		}
	}
	key, err := c.Intake.LocalKey(m.Actor, m.Agent, m.Session)
	switch {
	case err != nil:
		return Submitted{}, err
	case m.Agent != "" && key.Agent != m.Agent:
		return Submitted{}, workspace.Say(workspace.ErrInvalid,
			"The session %q is one of the agent %q, and not of %q. Name the agent once.", m.Session, string(key.Agent), string(m.Agent))
	}
	said := channels.Inbound{Key: m.Key, Text: m.Text, Hash: m.Hash, Borrowed: m.Borrowed, Attachments: m.Files}
	got, err := c.Intake.Submit(ctx, m.Actor, key, said)
	if err != nil {
		return Submitted{}, err
	}
	in := got.Input
	if got.Duplicate && m.Hash != in.Data.BodyHash {
		return Submitted{}, workspace.Say(errors.Join(control.ErrOtherBody, workspace.ErrConflict),
			"This idempotency key was used for another message.")
	}
	return Submitted{Input: in, InputID: in.ID, RunID: in.RunID, Session: in.Binding.Key, Repeated: got.Duplicate}, nil
}

// Resumed is how many stale messages are answered now.
type Resumed struct {
	Messages int
	Answers  int // late ones, sent now
}

func (v Resumed) say() string {
	messages, answers := workspace.Plural(v.Messages, "message"), workspace.Plural(v.Answers, "late answer")
	switch {
	case v.Messages == 0 && v.Answers == 0:
		return "Nothing is waiting here from while I was away."
	case v.Answers == 0:
		return fmt.Sprintf("I answer %s now.", messages)
	case v.Messages == 0:
		return fmt.Sprintf("I send %s now.", answers)
	}
	return fmt.Sprintf("I send %s and answer %s now.", answers, messages)
}

// Resume takes up what was set aside in the room after an outage: messages are queued again, late answers sent. Others
// than owners resume their own.
var Resume = control.Verb[*Conversations, struct{}, Resumed]{
	Name: "resume", Help: "Answer what came while the gateway was away", Rights: mayLook, Chat: "resume", Say: Resumed.say,
	Do: func(_ context.Context, c *Conversations, call control.Call, _ struct{}) (Resumed, error) {
		return c.resume(call)
	},
}

func (c *Conversations) resume(call control.Call) (Resumed, error) {
	if call.Room == "" {
		return Resumed{}, c.Answer(call, Resumed{})
	}
	stale, err := c.Store.StaleInputs(call.Room)
	if err != nil {
		return Resumed{}, err
	}
	var changes []store.Change
	var again []workspace.Input
	for _, in := range stale {
		if call.Owner() || in.Person == call.Actor.Person {
			changes = append(changes, store.Ending{Seq: in.Seq, From: workspace.InputStale, To: workspace.InputQueued,
				Reason: intake.ResumedReason})
			in.State = workspace.InputQueued
			again = append(again, in)
		}
	}
	late, err := c.lateAnswers(call)
	if err != nil {
		return Resumed{}, err
	}
	value := func(d store.Did) Resumed { return Resumed{Messages: len(again), Answers: len(d.Late)} }
	did, err := c.Commit(call, func(d store.Did) any { return value(d) }, append(changes, late)...)
	if err != nil {
		return Resumed{}, err
	}
	c.Push(did.Late)
	c.Lanes.Offer(again...)
	return value(did), nil
}

// lateAnswers of the room that the caller may have: owners all, others those to their own questions.
func (c *Conversations) lateAnswers(call control.Call) (ids store.Unpark, err error) {
	parked, err := c.Store.Parked(call.Room)
	if err != nil {
		return nil, err
	}
	for _, o := range parked {
		mine := call.Owner()
		if !mine && o.RunID != "" {
			run, err := c.Store.Run(o.RunID)
			if err != nil {
				return nil, err
			}
			mine = run.Requester == call.Actor.Person
		}
		if mine {
			ids = append(ids, o.ID)
		}
	}
	return ids, nil
}

// Fresh is a new generation of a session.
type Fresh struct {
	Session   workspace.SessionID
	Key       string
	Model     string              // that it was begun with
	Asked     bool                // a message is answered in it at once
	Overrides workspace.Overrides // kept from the generation before
}

func (v Fresh) say() string {
	s := "A fresh session begins"
	if v.Model != "" {
		s += " with the model **" + v.Model + "**"
	}
	s += ". What was said before is kept, but I no longer see it."
	if o := overrides(v.Overrides); o != "" {
		s += " Settings stay: " + o + "."
	}
	return s
}

// NewIn is what is said first.
type NewIn struct {
	Text string `json:"text,omitempty" help:"a message, which may begin with the name of a model"`
}

// New starts a fresh generation under the same key. What waits in the queue belongs to it, and what was changed
// for the session stays. Text may begin with the name of a model, for those who may choose one; the rest is answered.
var New = control.Verb[*Conversations, NewIn, Fresh]{
	Name: "new", Help: "Start a fresh session; the old one is kept", Rights: mayChange,
	Chat: "new [model] [text]", Order: spec.InOrder, Say: Fresh.say,
	Do: func(_ context.Context, c *Conversations, call control.Call, in NewIn) (Fresh, error) {
		return c.fresh(call, in.Text)
	},
}

// Reset is New without a message.
var Reset = control.Verb[*Conversations, struct{}, Fresh]{
	Name: "reset", Help: "Start a fresh session", Rights: mayChange, Chat: "reset", Order: spec.InOrder, Say: Fresh.say,
	Do: func(_ context.Context, c *Conversations, call control.Call, _ struct{}) (Fresh, error) {
		return c.fresh(call, "")
	},
}

func (c *Conversations) fresh(call control.Call, text string) (Fresh, error) {
	key := call.Session.String()
	v := Fresh{Key: key}
	was, err := c.overridesOf(call)
	if err != nil {
		return v, err
	}
	v.Overrides = was
	changes := []store.Change{store.NewGeneration{Key: call.Session}}
	if word, rest, _ := strings.Cut(text, " "); word != "" && c.May(call, "model") {
		if m, ok := find(c.choices(call, call.Session.Agent, was).Choices, word, false); ok {
			v.Model, text, v.Overrides.Model = m.Name, strings.TrimSpace(rest), m.Name
			changes = append(changes, store.SetOverrides{Overrides: v.Overrides})
		}
	}
	if text != "" {
		if call.Input == nil {
			return v, workspace.Say(workspace.ErrInvalid, "Send the message by itself, or /new with it as one message.")
		}
		changes, v.Asked = append(changes, c.again(call, "new", text)), true
	}
	did, err := c.Commit(call, func(d store.Did) any { v.Session = d.Session; return v }, changes...)
	if err != nil {
		return v, err
	}
	v.Session = did.Session
	c.Changed(key)
	if did.Asked != nil {
		c.Lanes.Offer(*did.Asked)
	}
	return v, nil
}

// again is a message that a command asks for its sender: with their rights, in their room, and once.
func (c *Conversations) again(call control.Call, why, text string) store.Arrival {
	in := *call.Input
	in.ID, in.Key, in.Kind = workspace.InputID(c.Store.IDs().New()), why+":"+string(call.Input.ID), channels.KindMessage
	in.Mode, in.State, in.Reason, in.Text, in.Seq, in.RunID, in.TargetKey = workspace.ModeTurn, workspace.InputQueued, "", text, 0, "", ""
	in.Binding.Rule = why
	in.Data = workspace.InputData{Message: in.Data.Message, User: in.Data.User, Channel: in.Data.Channel}
	return store.Arrival{Input: in, Key: call.Session}
}
