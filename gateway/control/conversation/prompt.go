package conversation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"parley/agentloop"
	"parley/gateway/control"
	"parley/gateway/spec"
	"parley/gateway/transcript"
	"parley/gateway/turn"
	"parley/workspace"
	"parley/workspace/store"
)

// File is an agent's file in the prompt.
type File struct {
	Name   string `json:"name"`
	Tokens int    `json:"tokens"`
	Note   string `json:"note,omitempty"` // why it is cut or missing
}

// Composed is what the session's next prompt is made of.
type Composed struct {
	agentloop.Composition
	Model   string `json:"model"`
	Files   []File `json:"files"`
	Session string `json:"session"`
	Form    string `json:"-"` // list, detail or json
}

// ContextIn says how it is told.
type ContextIn struct {
	Form string `json:"form,omitempty" enum:"list,detail,json" help:"how it is told"`
}

// Context tells what the session's next prompt is made of, about.
var Context = control.Verb[*Conversations, ContextIn, Composed]{
	Name: "context", Help: "Show what the next prompt of a session is made of", Rights: mayMembers,
	Chat: "context [list|detail|json]", Say: Composed.say,
	Do: func(_ context.Context, c *Conversations, call control.Call, in ContextIn) (Composed, error) {
		got, err := c.Prompts.Compose(asked(call))
		if err != nil {
			return Composed{}, err
		}
		v := Composed{Composition: got.Composition, Model: got.Model, Files: []File{}, Session: call.Session.String(), Form: in.Form}
		for _, f := range got.Files {
			v.Files = append(v.Files, File{Name: f.Name, Tokens: agentloop.Tokens(f.Chars), Note: f.Note})
		}
		return v, c.Answer(call, v)
	},
}

func (v Composed) say() string {
	if v.Form == "json" {
		b, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			return "It cannot be written as JSON."
		}
		return "```json\n" + string(b) + "\n```"
	}
	var b strings.Builder
	share := 0
	if v.Window > 0 {
		share = 100 * v.Used() / v.Window
	}
	fmt.Fprintf(&b, "The next prompt to `%s` is about **%d tokens**, %d %% of its window of %d; %d are kept for the answer. "+
		"(Estimates: four bytes a token.)\n", v.Model, v.Used(), share, v.Window, v.Output)
	fmt.Fprintf(&b, "- who I am, with my files: %d\n- tools: %d in %d\n- date, place, person: %d\n",
		v.System, len(v.Schemas), v.Tools, v.Volatile)
	if v.Summary > 0 {
		fmt.Fprintf(&b, "- summary of what was said earlier: %d\n", v.Summary)
	}
	fmt.Fprintf(&b, "- conversation: %s in %d", workspace.Plural(v.Messages, "message"), v.History)
	if v.Free() < 0 {
		b.WriteString("\nThat is too long: the older part is summed up, or left out. /compact does it now.")
	}
	if v.Form != "detail" {
		return b.String()
	}
	b.WriteString("\n\n**Files**")
	for _, f := range v.Files {
		fmt.Fprintf(&b, "\n- `%s`: %d", f.Name, f.Tokens)
		if f.Note != "" {
			b.WriteString(" (" + f.Note + ")")
		}
	}
	b.WriteString("\n\n**Tools**")
	for _, t := range v.Schemas {
		fmt.Fprintf(&b, "\n- `%s`: %d", t.Name, t.Tokens)
	}
	b.WriteString("\n\n**Conversation**")
	for _, role := range []string{"user", "assistant", "tool"} {
		fmt.Fprintf(&b, "\n- %s: %d", role, v.Roles[role])
	}
	return b.String()
}

// asked is who asks about the prompt of the session.
func asked(c control.Call) turn.Asked {
	return turn.Asked{Session: c.Session, Actor: c.Actor, Kind: c.Kind, Room: c.Room, Command: c.Input}
}

// Compacted is what a summary took the place of.
type Compacted struct {
	Turns  int
	Before int // tokens, about
	After  int
	Usage  workspace.Usage
	Model  string
}

// CompactIn says how it is summed up.
type CompactIn struct {
	Instructions string `json:"instructions,omitempty" help:"what the summary is to mind"`
}

// Compact has a model sum up the older part of the conversation; the summary takes its place in the prompt, and the
// record stays. Until the commit nothing is changed: after a crash the command is done again.
var Compact = control.Verb[*Conversations, CompactIn, Compacted]{
	Name: "compact", Help: "Sum up the older part of a session", Rights: mayChange,
	Chat: "compact [instructions]", Order: spec.InOrder,
	Do: func(ctx context.Context, c *Conversations, call control.Call, in CompactIn) (Compacted, error) {
		return c.compact(ctx, call, in.Instructions)
	},
	Say: func(v Compacted) string {
		return fmt.Sprintf("I summed up %s: about %d tokens are now %d. The record stays as it was. (`%s`: %s)",
			workspace.Plural(v.Turns, "exchange"), v.Before, v.After, v.Model, control.UsageOf(v.Usage).Text())
	},
}

func (c *Conversations) compact(ctx context.Context, call control.Call, instructions string) (Compacted, error) {
	ses, err := c.Store.SessionByKey(call.Session)
	if err != nil {
		return Compacted{}, workspace.Say(err, "Nothing was said here yet.")
	}
	got, err := c.Prompts.Summarize(ctx, asked(call), ses, instructions)
	switch {
	case errors.Is(err, agentloop.ErrShort):
		return Compacted{}, workspace.Say(err, "There is nothing yet that a summary would make shorter.")
	case errors.Is(err, agentloop.ErrStopped):
		return Compacted{}, workspace.Say(err, "Stopped. Nothing was changed.")
	case errors.Is(err, context.DeadlineExceeded):
		return Compacted{}, workspace.Say(err, "The model did not answer in time. Nothing was changed.")
	case errors.Is(err, agentloop.ErrShutdown):
		return Compacted{}, err
	case err != nil:
		return Compacted{}, workspace.Say(err, "%s Nothing was changed.", agentloop.Explain(err))
	}
	v := Compacted{Turns: got.Turns, Before: got.Before, After: got.After, Usage: got.Usage, Model: got.Model}
	body := transcript.Compaction(got)
	body.Usage = &got.Usage // it belongs to no run
	mark := store.Mark{Session: ses.ID, Body: body, Was: ses.Compacted}
	if _, err := c.Commit(call, func(store.Did) any { return v }, mark); err != nil {
		return v, err
	}
	c.Changed(call.Session.String())
	return v, nil
}

// Undone is the exchange that the prompt leaves out from now on.
type Undone struct {
	Said  string // what the person had said
	Again bool   // it is asked once more
	Now   bool   // nothing is: the turn that waits for its model asks it again
}

// exchange is a turn of the transcript.
type exchange struct {
	run      workspace.RunID
	from, to int64
	last     int64 // of the whole transcript
	said     []string
}

// lastExchange finds the newest turn that the prompt still holds.
func (c *Conversations) lastExchange(ses workspace.Session) (x exchange, err error) {
	list, err := c.Store.LastEntries(ses.ID, 1000)
	if err != nil {
		return x, err
	}
	out := transcript.Undone(list)
	upto := int64(0)
	if ses.Compacted > 0 {
		mark, err := c.Store.Entries(ses.ID, ses.Compacted-1, 1)
		if err != nil {
			return x, err
		}
		if len(mark) == 1 {
			upto = mark[0].Body.To
		}
	}
	for i := len(list) - 1; i >= 0 && x.from == 0; i-- {
		e := list[i]
		x.last = max(x.last, e.N)
		switch {
		case out(e.N) || e.RunID == "" || x.run != "" && e.RunID != x.run:
		case e.N <= upto:
			return exchange{}, workspace.Say(workspace.ErrNotFound,
				"What was said before is in the summary already; it cannot be taken out of it.")
		case x.run == "":
			x.run, x.to = e.RunID, e.N
		}
		if e.RunID == x.run && x.run != "" && !out(e.N) {
			if e.Role == workspace.RoleUser {
				x.said = append([]string{e.Body.Plain()}, x.said...)
			}
			if e.Role == workspace.RoleEvent && e.Body.Type == "turn.started" {
				x.from = e.N
			}
		}
	}
	if x.from == 0 || len(x.said) == 0 {
		return exchange{}, workspace.Say(workspace.ErrNotFound, "There is nothing here to take back.")
	}
	return x, nil
}

func (v Undone) say() string {
	if v.Now {
		return "I ask the model again now."
	}
	if v.Again {
		return fmt.Sprintf("I answer “%s” again.", v.Said)
	}
	return fmt.Sprintf("“%s” and my answer are out of what I see. The record keeps them.", v.Said)
}

// Undo takes the last exchange out of the prompt; the record stays.
var Undo = control.Verb[*Conversations, struct{}, Undone]{
	Name: "undo", Help: "Take the last exchange out of the prompt; the record stays", Rights: mayChange,
	Chat: "undo", Order: spec.InOrder, Say: Undone.say,
	Do: func(_ context.Context, c *Conversations, call control.Call, _ struct{}) (Undone, error) {
		ses, x, err := c.mine(call)
		if err != nil {
			return Undone{}, err
		}
		v := Undone{Said: control.OneLine(strings.Join(x.said, " "), control.PreviewLength)}
		if _, err := c.Commit(call, func(store.Did) any { return v }, x.mark(ses)); err != nil {
			return v, err
		}
		c.Changed(call.Session.String())
		return v, nil
	},
}

func (x exchange) mark(ses workspace.Session) store.Mark {
	return store.Mark{Session: ses.ID, Last: x.last, Body: workspace.EntryBody{Type: workspace.EventUndone, From: x.from, To: x.to}}
}

// mine is the last exchange, if the caller may take it back: their own, for owners anybody's.
func (c *Conversations) mine(call control.Call) (ses workspace.Session, x exchange, err error) {
	if ses, err = c.Store.SessionByKey(call.Session); err != nil {
		return ses, x, workspace.Say(err, "Nothing was said here yet.")
	}
	if x, err = c.lastExchange(ses); err != nil {
		return ses, x, err
	}
	run, err := c.Store.Run(x.run)
	if err == nil && !call.Owner() && run.Requester != call.Actor.Person {
		err = workspace.Say(workspace.ErrDenied, "The last question was somebody else's.")
	}
	return ses, x, err
}
