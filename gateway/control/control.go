// Package control holds the verbs, one function each: whatever a person can ask the gateway to do, from whatever
// surface — a slash command, HTTP, the command line. It is the only place that checks roles. A verb takes who asks
// and how (Call) and returns a value; its surface parses before and renders after.
//
// A verb that came as a journalled command commits its effect, its input's end and its reply as one unit.
// It starts no goroutine.
package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"parley/agentloop"
	"parley/agentloop/lane"
	"parley/channels"
	"parley/gateway/approval"
	"parley/gateway/rights"
	"parley/gateway/snapshot"
	"parley/gateway/transport"
	"parley/gateway/turn"
	"parley/routes"
	"parley/workspace"
	"parley/workspace/blob"
	"parley/workspace/store"
)

// Call is who asks, from where, and how the answer goes back.
type Call struct {
	Actor   workspace.Actor
	Kind    channels.PeerKind // of the room; empty: local or HTTP
	Room    workspace.RoomID
	Session workspace.Key
	// Home is the session that the chat's route names, where it was switched to another; zero: Session is.
	Home workspace.Key
	// Input is the journalled command that asks; nil for HTTP and the command line.
	Input *workspace.Input
	// Pressed says that a button decides, which is all that does in a group.
	Pressed bool
	// Via is the surface of a call without an input, Key the client's idempotency key; empty: it has none.
	Via, Key string
	// Borrowed says that a browser's sign-in asks that is not fresh: it may be a copy in strange hands, and nothing is done for it
	// that would outlive the sign-in, or make it stronger (T28).
	Borrowed bool
	// Read says that the room's people read its transcript, where every reply stands: it is not sent to them besides.
	Read bool
	// Private says that whoever calls reads the reply alone, in a group too.
	Private bool
	// Render writes the chat's reply from the verb's value. It must be pure.
	Render func(value any) string

	file string // kept for the reply
}

// Surfaces of calls without an input, as the audit log has them.
const (
	ViaAPI      = "api"
	ViaPage     = "webchat"
	ViaTerminal = "cli"
)

// Intake is the way in, for what comes from inside. *intake.Receiver is it.
type Intake interface {
	// LocalKey is the session that somebody names; empty are the default agent and main.
	LocalKey(who workspace.Actor, agent workspace.AgentID, session string) (workspace.Key, error)
	// Submit journals a message of a local person and returns after the commit.
	Submit(ctx context.Context, who workspace.Actor, key workspace.Key, in channels.Inbound) (store.Accepted, error)
	// Explain is what would become of a made-up event.
	Explain(f routes.Facts, channel string) (routes.Verdict, routes.Route, []routes.Considered, error)
	// PeopleChanged drops what is remembered of who is who, RoomsChanged of what is set for rooms.
	PeopleChanged()
	RoomsChanged()
}

// Turns is the turns of all sessions. *turn.Turns is one.
type Turns interface {
	// Lane shows what runs and what waits in a session.
	Lane(key string) lane.View
	// Cancel ends the running turn of a session if match accepts its first input.
	Cancel(key string, cause error, match func(first workspace.Input) bool) bool
	// Remove takes inputs out of the queue that are ended in the journal, Offer queues some.
	Remove(key string, seqs ...int64)
	Offer(inputs ...workspace.Input)
	// Pausing asks the turn of a session, if match accepts its first input, to pause at its next step, or to go on.
	Pausing(key string, on bool, match func(first workspace.Input) bool)
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
	// CancelSummary ends the summary that a command is having made, if match accepts the command.
	CancelSummary(key string, match func(command workspace.Input) bool) bool
}

// WorkFolders is the folders in which turns work. turn.WorkFolders is.
type WorkFolders interface {
	// Work opens the one that a turn of this session by this actor, asked for in this room, has; fs.ErrNotExist: nothing has
	// worked there, and the rest of Work is told all the same.
	Work(key workspace.Key, actor workspace.Actor, room workspace.RoomID) (turn.Work, error)
	// Output opens a file in the one that a run of this session by this actor had.
	Output(key workspace.Key, actor workspace.Actor, room workspace.RoomID, name string) (*os.File, error)
}

// Outbox is the way out. *delivery.Outbox is it.
type Outbox interface {
	// PushAll sends what a unit stored.
	PushAll(list []workspace.Outbound)
	// CutFor divides a reply into the parts that a room takes.
	CutFor(room workspace.RoomID, text string) []store.Span
	// Attach keeps a file for a room; ok is false where the network takes none.
	Attach(room workspace.RoomID, data []byte) (ref string, ok bool)
}

// Agent as people see it.
type Agent struct {
	ID      workspace.AgentID `json:"id"`
	Name    string            `json:"name"`
	Models  []string          `json:"models"`
	Default bool              `json:"default"`
	// Choices are further models that a session of it may be switched to.
	Choices []string `json:"choices,omitempty"`
}

// agent is a configured agent; of one that is not, only its id is known.
func (c *Control) agent(id workspace.AgentID) (Agent, bool) {
	snap := c.Snapshot()
	a, ok := snap.Agents[id]
	if !ok {
		return Agent{ID: id, Name: string(id)}, false
	}
	return Agent{ID: a.ID, Name: a.Name, Models: a.Models, Choices: a.Choices, Default: id == snap.Default}, true
}

// agents are the configured ones, in their order.
func (c *Control) agents() []Agent {
	var out []Agent
	for _, id := range c.Snapshot().Order {
		a, _ := c.agent(id)
		out = append(out, a)
	}
	return out
}

// Control is the verbs over a store and a running gateway. Safe for concurrent use.
type Control struct {
	Store     *store.Store
	Blobs     *blob.Store
	Turns     Turns
	Prompts   Prompts
	Work      WorkFolders
	Questions *approval.Questions
	Intake    Intake
	Outbox    Outbox
	Changed   func(session string) // drops what is remembered of a session, and tells lists
	Process   Process
	Snapshot  func() *snapshot.Snapshot // of the configuration in force
	Transport *transport.Channels
	Logins    *transport.Logins
	Now       func() time.Time
	Folders   Folders
	Logger    *slog.Logger        // nil: nobody reads it
	Hide      *workspace.Redactor // takes secrets out of replies; nil: none are known
	Verbs     []Any               // the verbs that are values, of all nouns

	usage spent
}

// verb names what is asked for, as docs/rights.md does.
type verb string

// row is what docs/rights.md says of a verb; a test holds them together. Verbs that are values (verb.go) have their own.
// What is not listed is refused.
func row(v verb) rights.Row {
	switch v {
	case "help", "commands":
		return rights.Row{Owner: rights.Yes, Member: rights.Yes, Guest: rights.Yes}
	case "whoami", "status", "why", "resume", "models", "session.current":
		return rights.Row{Owner: rights.Yes, Member: rights.Own, Guest: rights.Own}
	case "new", "reset", "queue", "compact", "retry", "undo", "reasoning", "usage", "session.new", "session.switch":
		return rights.Row{Owner: rights.Yes, Member: rights.OwnDirect, Guest: rights.OwnDirect}
	case "session.export", "files", "files.remove", "link":
		return rights.Row{Owner: rights.Direct, Member: rights.OwnDirect, Guest: rights.OwnDirect}
	case "model", "think", "verbose", "context":
		return rights.Row{Owner: rights.Yes, Member: rights.OwnDirect}
	case "approve.button":
		return rights.Row{Owner: rights.Yes, Member: rights.Own}
	case "message", "approval.list", "approve",
		"describe", "file.put", "file.get", "me":
		return rights.Row{Owner: rights.Direct, Member: rights.OwnDirect}
	case "send", "activation":
		return rights.Row{Owner: rights.Yes}
	case "run.output", "route.explain",
		"policy.explain", "logs", "backup", "metrics", "sign-in.code":
		return rights.Owners
	}
	return rights.Row{}
}

// may refuses what the actor's role does not reach.
func (c *Control) may(call Call, v verb) error { return c.allow(call, v, c.row(v)) }

// row is that of a verb of either kind.
func (c *Control) row(v verb) rights.Row {
	for _, one := range c.Verbs {
		if name, row := one.Right(); name == string(v) {
			return row
		}
	}
	return row(v)
}

func (c *Control) allow(call Call, v verb, r rights.Row) error {
	group := call.Kind == channels.Group || call.Kind == channels.Room
	if err := r.Refuse(call.Actor.Role, group); err != nil {
		if (v == "approve" || v == "approve.button") && r.Of(call.Actor.Role) == rights.No {
			return workspace.Say(fmt.Errorf("%s: %w", v, err), "You may not decide this.")
		}
		return fmt.Errorf("%s: %w", v, err)
	}
	return lasting(call, v)
}

// ErrBorrowed says that an act wants the gateway's token or a fresh sign-in.
var ErrBorrowed = errors.New("the sign-in is not fresh")

// pairingOwner is the part of pairing.approve that makes an owner.
const pairingOwner verb = "pairing.approve owner"

// lasting refuses a borrowed call what would outlive it: a copy of the data with its token, another way in, another owner. Whatever
// comes to be of this kind is named here.
func lasting(call Call, v verb) error {
	if !call.Borrowed {
		return nil
	}
	var line string
	switch v {
	case "backup":
		line = "parley backup"
	case "folder.accept":
		line = "parley folder accept <name> <path>"
	case "sign-in.code":
		line = "parley webchat"
	case pairingOwner:
		line = "parley pairing approve <id> --as owner"
	case "link":
		return workspace.Say(fmt.Errorf("%s: %w: %w", v, ErrBorrowed, workspace.ErrDenied), "Accounts are not linked from a browser. Ask for the code and give it in the two chats that are to be one.")
	default:
		return nil
	}
	return workspace.Say(fmt.Errorf("%s: %w: %w", v, ErrBorrowed, workspace.ErrDenied),
		"This wants a fresh sign-in: run `parley webchat` on the machine that Parley runs on, open the link that it prints, and do it within ten minutes. Or run `%s` there.", line)
}

// May says whether the actor may use a verb in the place of the call; surfaces use it to show and hide.
func (c *Control) May(call Call, v string) bool { return c.may(call, verb(v)) == nil }

// owner says whether the call has an owner's rights over other people's things.
func owner(call Call) bool { return call.Actor.Role.AtLeast(workspace.Owner) }

// commit stores a verb's changes, in their order, with the end and reply of its command, then hands the reply on.
func (c *Control) commit(call Call, value func(store.Did) any, changes ...store.Change) (store.Did, error) {
	cmd := store.Command{Changes: changes}
	render := func(d store.Did) string { return c.Hide.Redact(call.Render(value(d))) }
	if call.Input != nil {
		cmd.Input = *call.Input
		if call.Room != "" && !call.Read && call.Render != nil {
			cmd.Reply = &store.NewOutbound{Key: workspace.InputKey(call.Input.ID, "reply"), InputID: call.Input.ID, RoomID: call.Room, Kind: workspace.OutReply,
				OnUnknown: workspace.MarkUnknown, ReplyTo: replyTo(call)}
			cmd.Text = render
			cmd.Spans = func(text string) []store.Span { return c.Outbox.CutFor(call.Room, text) }
			if call.file != "" {
				cmd.Spans = func(text string) []store.Span { return []store.Span{{To: len(text)}, {Blob: call.file}} }
			}
		}
		if call.Render != nil {
			cmd.Note = render
		}
	}
	did, err := c.Store.RunCommand(cmd)
	if err != nil {
		return did, err
	}
	c.Outbox.PushAll(did.Reply)
	return did, nil
}

func replyTo(call Call) channels.MessageID {
	if call.Kind == channels.DM {
		return ""
	}
	return call.Input.Data.Message
}

// answer ends a command that changes nothing.
func (c *Control) answer(call Call, value any) error {
	if call.Input == nil {
		return nil
	}
	_, err := c.commit(call, func(store.Did) any { return value })
	return err
}

// Refuse ends a command that could not be done with one plain sentence. It is not an error unless it cannot be stored.
func (c *Control) Refuse(call Call, sentence string) error {
	if call.Input == nil {
		return nil
	}
	sentence = c.Hide.Redact(sentence)
	cmd := store.Command{Input: *call.Input, Failed: true, Reason: sentence, Note: func(store.Did) string { return sentence }}
	if call.Room != "" && !call.Read {
		cmd.Reply = &store.NewOutbound{Key: workspace.InputKey(call.Input.ID, "reply"), InputID: call.Input.ID, RoomID: call.Room, Kind: workspace.OutReply, Text: sentence,
			Spans: []store.Span{{To: len(sentence)}}, ReplyTo: replyTo(call)}
	}
	did, err := c.Store.RunCommand(cmd)
	if err == nil {
		c.Outbox.PushAll(did.Reply)
	}
	return err
}
